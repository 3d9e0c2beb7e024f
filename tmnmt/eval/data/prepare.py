"""Train, dev, test and memory of an evaluation: whole documents kept out, or stretches of them
where they are too few, and nothing of them left where it may not be.

Two regimes. *research*: every pair whose source (as `tmnmt.text.normalise` sees it) stands in dev
or test is dropped from training and memory. *translator*: from training only, since at work exact
matches do come."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tmnmt import __version__
from tmnmt.durable import make_folder, rename, sync_tree
from tmnmt.errors import DataError, UsageError
from tmnmt.eval.faults import faults_in_numbers
from tmnmt.files.as_memory import read_memories
from tmnmt.formats import Columns, Reader, Report, write_tsv
from tmnmt.formats.atomic import writing
from tmnmt.formats.duplicates import PairHashes
from tmnmt.formats.moses import moses_ids, moses_pair
from tmnmt.formats.splits import (
    KINDS,
    Split,
    fresh_split,
    list_files,
    listed_split,
    stretches,
)
from tmnmt.formats.tsv import tsv_writer
from tmnmt.index import MemoryIndex
from tmnmt.index.embedded.build import build, in_runs
from tmnmt.index.embedded.store import NewStore, Store
from tmnmt.progress import Progress
from tmnmt.quantities import quantity
from tmnmt.segments import Segment
from tmnmt.text import match_tokens, normalise

if TYPE_CHECKING:
    from tmnmt.models.folder import Model

FORMAT = 1
MANIFEST_FILE = "manifest.json"
MOST_LOOKED_THROUGH = 200_000  # segments that are looked through for faults: some minutes
NEAR_DUPLICATE = 0.95  # fuzzy score from which on a match is called a near-duplicate

_STORE, INDEX = "store", "index"
_FILES = (
    *(f"{part}.tsv.gz" for part in ("train", "memory", *KINDS)),
    *(f"{kind}.txt" for kind in KINDS),
)
_QUERIES = 500

SAME_SOURCE, SAME_PAIR = "source in dev or test", "the same pair again"


@dataclass(frozen=True)
class Settings:
    """What decides what goes where; lengths are those of training pairs, in subwords of `vocab`,
    else match tokens."""

    regime: Literal["research", "translator"] = "research"
    segments: int = 2500  # of dev and of test, about
    # fewer segments where the memory has less than eight times as many, and two documents of one
    # name are one document
    lenient: bool = False
    # a folder with lists of dev and test documents, instead of a fresh split
    splits: Path | None = None
    max_length: int = 80  # as the papers
    # of the lengths, where the longer side has more than ten, as in training
    max_ratio: float = 2.0
    vocab: Path | None = None  # a sentencepiece model

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in asdict(self).items()
        }


def prepare(
    paths: Sequence[Path],
    src_lang: str,
    tgt_lang: str,
    output: Path,
    settings: Settings,
    columns: Columns | None = None,
    keep_index: bool = False,
    look_for_faults: bool = True,
    model: Model | None = None,
) -> tuple[dict[str, Any], Report]:
    """Writes train, memory, dev and test (.tsv.gz), the lists of dev and test documents and
    manifest.json into a new folder `output`, whole or not at all, and an index of the memory where
    it is to be kept; the manifest (settings, counts of every step, sha256 of every input and
    output) and what became of the units of the memory files `paths`.

    A memory of 200,000 segments at most is looked through for faults, also by a base `model`; they
    are counted, and nothing is left out. The same input gives the same bytes. Memory: the sources
    of dev and test, 22 bytes a training pair and the index by which near-duplicates are found; on
    disk meanwhile, beside `output`, three times the text. FormatError: an input or the disk;
    DataError: two documents with one id, or lists that do not fit; UsageError: `output` is there,
    or too much is asked for."""
    length = _length(settings.vocab)
    with _whole_folder(output) as folder:
        with Progress("reading", "units") as progress:
            reader = read_memories(
                paths, src_lang, tgt_lang, columns=columns, progress=progress.advance
            )
            pairs = _Pairs(reader, folder / _STORE, settings.lenient)
        with closing(pairs):
            split = _split(settings, pairs.sizes)
            if split.stretch:
                pairs.cut(split.stretch)
            counts = _write(pairs, split, folder, settings, (src_lang, tgt_lang), length)
        if look_for_faults:
            with MemoryIndex.open(folder / INDEX) as index:
                is_small = len(index) <= MOST_LOOKED_THROUGH
                counts["faults"] = faults_in_numbers(index, model) if is_small else None
        shutil.rmtree(folder / _STORE)
        if not keep_index:
            shutil.rmtree(folder / INDEX)
        manifest = _manifest(reader, settings, split, pairs.sizes, counts, folder)
        with writing(folder / MANIFEST_FILE) as file:
            file.write(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n")
    return manifest, reader.report


def _manifest(
    reader: Reader,
    settings: Settings,
    split: Split,
    sizes: Counter[str],
    counts: dict[str, Any],
    folder: Path,
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "tmnmt": __version__,
        "src_lang": reader.src_lang,
        "tgt_lang": reader.tgt_lang,
        "settings": settings.record(),
        "near_from": NEAR_DUPLICATE,
        "inputs": [_described(path, str(path)) for path in _inputs(reader, settings)],
        "read": _read_counts(reader.report),
        "split": {
            kind: {"documents": len(names), "segments": sum(sizes[name] for name in names)}
            for kind, names in (("dev", split.dev), ("test", split.test))
        },
        "stretch": split.stretch,
        "listed_but_absent": len(split.absent),
        **counts,
        "outputs": [_described(folder / name, name) for name in _FILES],
    }


class _Pairs:
    """All pairs of the input, in its order, on disk; `sizes`: the segments of every document."""

    def __init__(self, reader: Reader, path: Path, lenient: bool) -> None:
        self._is_lenient = lenient
        self.sizes: Counter[str] = Counter()
        # document, first and last id of consecutive segments
        self._runs: list[tuple[str, int, int]] = []
        self._is_cut = False
        path.mkdir()
        with closing(NewStore(path)) as store:
            for run in in_runs(self._watched(reader)):
                store.add(run)
            store.seal()
        if not self.sizes:
            raise DataError(
                f"{', '.join(map(str, reader.paths))}: no pair can be used: "
                f"{reader.report.lines()[0]}"
            )
        self._store = Store(path)

    def _watched(self, reader: Reader) -> Iterator[Segment]:
        """The same segments. DataError where a position of a document comes again: two documents
        with one id; where this is lenient they are one document."""
        places, last = PairHashes(), ("", -1)
        for number, segment in enumerate(reader, 1):
            place = segment.document, segment.position
            is_new = self._is_lenient or places.add(Segment("", "", *place))
            if place != last and not is_new:
                raise DataError(
                    f"two documents with one id: {segment.document!r} has its position "
                    f"{segment.position} again in "
                    f"{segment.origin or 'the input'}; give each document an id of its own"
                )
            if place[0] != last[0] or not self._runs:
                self._runs.append((segment.document, number, number))
            self._runs[-1] = (*self._runs[-1][:2], number)
            self.sizes[segment.document] += 1
            last = place
            yield segment

    def cut(self, length: int) -> None:
        """From now on `stretches` of so many segments are what documents were."""
        runs, offsets = list[tuple[str, int, int]](), Counter[str]()
        for document, first, last in self._runs:
            offset = offsets[document]
            offsets[document] += last + 1 - first
            for name, begin, end in stretches(document, self.sizes[document], length):
                span = max(begin, offset), min(end, offsets[document])
                if span[0] < span[1]:
                    runs.append((name, first + span[0] - offset, first + span[1] - offset - 1))
        self._runs, self.sizes, self._is_cut = runs, Counter(), True
        for name, first, last in runs:
            self.sizes[name] += last + 1 - first

    def select(self, documents: frozenset[str]) -> Iterator[Segment]:
        """The segments of these documents, in the order of the input; those of a stretch are of a
        document of its name."""
        for document, first, last in self._runs:
            if document in documents:
                for segment in self._store.by_ids(range(first, last + 1)).values():
                    yield replace(segment, document=document) if self._is_cut else segment

    def exclude(self, documents: frozenset[str]) -> Iterator[Segment]:
        """The segments of all other documents."""
        names = chain.from_iterable(
            repeat(document, last + 1 - first) for document, first, last in self._runs
        )
        for document, segment in zip(names, self._store, strict=True):
            if document not in documents:
                yield segment

    def close(self) -> None:
        self._store.close()


def _split(settings: Settings, sizes: Counter[str]) -> Split:
    if settings.splits is not None:
        return listed_split(settings.splits, sizes)
    maximum = max(1, sum(sizes.values()) // 8)
    return fresh_split(
        sizes, min(settings.segments, maximum) if settings.lenient else settings.segments
    )


def _write(
    pairs: _Pairs,
    split: Split,
    folder: Path,
    settings: Settings,
    languages: tuple[str, str],
    length: _Length,
) -> dict[str, Any]:
    """All files but the manifest; the counts of training and memory, and what of dev and test is
    also in the memory."""
    sources = {}
    for kind, documents in (("dev", split.dev), ("test", split.test)):
        sources[kind] = [segment.src for segment in pairs.select(documents)]
        write_tsv(folder / f"{kind}.tsv.gz", pairs.select(documents))
        with writing(folder / f"{kind}.txt") as file:
            file.writelines(f"{document}\n" for document in sorted(documents))
    kept_out = {normalise(src) for kind in KINDS for src in sources[kind]}
    rest = _Rest(settings, kept_out, length)
    held_out = split.dev | split.test
    total = sum(pairs.sizes.values()) - sum(map(len, sources.values()))
    with (
        Progress("writing and indexing", "pairs", total) as progress,
        tsv_writer(folder / "memory.tsv.gz") as to_memory,
        tsv_writer(folder / "train.tsv.gz") as to_train,
    ):
        memory = rest.sorted(pairs.exclude(held_out), to_memory, to_train)
        build(folder / INDEX, memory, *languages, progress=progress.advance)
    rest.check()
    with MemoryIndex.open(folder / INDEX) as index:
        overlap = {kind: _overlap(index, kind, sources[kind]) for kind in KINDS}
    in_dev = {normalise(src) for src in sources["dev"]}
    overlap["test"]["in_dev"] = sum(normalise(src) in in_dev for src in sources["test"])
    return {**rest.counts(), "also_in_memory": overlap}


_Length = Callable[[str], int]


class _Rest:
    """What is neither dev nor test, sorted into memory and training data; counts of both."""

    def __init__(self, settings: Settings, kept_out: set[str], length: _Length) -> None:
        self._settings, self._kept_out, self._length = settings, kept_out, length
        self._unit = "subwords" if settings.vocab else "tokens"
        self._duplicates = PairHashes()
        self._total = self._memory = 0
        self._dropped = dict.fromkeys(
            (
                SAME_SOURCE,
                SAME_PAIR,
                f"over {settings.max_length} {self._unit}",
                f"ratio over {settings.max_ratio:g}",
            ),
            0,
        )

    def sorted(
        self,
        segments: Iterable[Segment],
        to_memory: Callable[[Segment], None],
        to_train: Callable[[Segment], None],
    ) -> Iterator[Segment]:
        """The pairs of the memory; all of it is written where it belongs as it passes."""
        for segment in segments:
            self._total += 1
            is_kept_out = normalise(segment.src) in self._kept_out
            why = SAME_SOURCE if is_kept_out else self._why_not_trained(segment)
            if why:
                self._dropped[why] += 1
            else:
                to_train(segment)
            if not is_kept_out or self._settings.regime == "translator":
                self._memory += 1
                to_memory(segment)
                yield segment

    def _why_not_trained(self, segment: Segment) -> str:
        if not self._duplicates.add(Segment(segment.src, segment.tgt)):
            return SAME_PAIR
        lengths = self._length(segment.src), self._length(segment.tgt)
        longer, shorter = max(lengths), min(lengths)
        if longer > self._settings.max_length:
            return f"over {self._settings.max_length} {self._unit}"
        if not shorter or (longer > 10 and longer > self._settings.max_ratio * shorter):
            return f"ratio over {self._settings.max_ratio:g}"
        return ""

    def check(self) -> None:
        """DataError where nothing is left."""
        retained = self._total - sum(self._dropped.values())
        if not retained or not self._memory:
            reasons = ", ".join(f"{why} {count:,}" for why, count in self._dropped.items() if count)
            raise DataError(
                f"nothing is left for training: of {quantity(self._total, 'pair')}: "
                f"{reasons or 'none'}"
            )

    def counts(self) -> dict[str, dict[str, Any]]:
        """Of the manifest: what was read, dropped and kept."""
        retained = self._total - sum(self._dropped.values())
        return {
            "train": {"read": self._total, "dropped": self._dropped, "kept": retained},
            "memory": {
                "read": self._total,
                "dropped": {SAME_SOURCE: self._total - self._memory},
                "kept": self._memory,
            },
        }


def _overlap(index: MemoryIndex, kind: str, sources: list[str]) -> dict[str, int]:
    """How many of the sources have an exact match in the memory, and how many a near-duplicate at
    best."""
    exact = similar = 0
    with Progress(f"near-duplicates of {kind}", "segments", len(sources)) as progress:
        for first in range(0, len(sources), _QUERIES):
            queries = sources[first : first + _QUERIES]
            best = [
                matches[0].score for matches in index.search(queries, 1, NEAR_DUPLICATE) if matches
            ]
            exact += sum(score == 1 for score in best)
            similar += sum(score < 1 for score in best)
            progress.advance(len(queries))
    return {"segments": len(sources), "exact": exact, "near": similar}


def _length(vocab: Path | None) -> _Length:
    """What counts a text's subwords or match tokens."""
    if vocab is None:
        return lambda text: len(match_tokens(text))
    from tmnmt.vocab import Vocabulary

    subwords = Vocabulary.load(vocab)
    return lambda text: len(subwords.encode(text))


def _read_counts(report: Report) -> dict[str, Any]:
    """The stages of reading; links and how many of them are 1-1 where the input is an alignment."""
    links = (
        {"links": sum(report.links.values()), "1-1": report.links.get("1-1", 0)}
        if report.links
        else {}
    )
    return {
        "units": report.units,
        **links,
        "dropped": dict(report.skipped),
        "kept": report.retained,
    }


def _inputs(reader: Reader, settings: Settings) -> list[Path]:
    """Every file that was read."""
    files: list[Path] = []
    for path in reader.paths:
        pair = None if path.exists() else moses_pair(path, reader.src_lang, reader.tgt_lang)
        ids = moses_ids(path) if pair else None
        files += [Path(source.label) for source in (*pair, ids) if source] if pair else [path]
    lists = list_files(settings.splits) if settings.splits else []
    return (
        files + reader.report.related_files + lists + ([settings.vocab] if settings.vocab else [])
    )


def _described(path: Path, name: str) -> dict[str, Any]:
    with path.open("rb") as file:
        return {
            "file": name,
            "bytes": path.stat().st_size,
            "sha256": hashlib.file_digest(file, "sha256").hexdigest(),
        }


@contextmanager
def _whole_folder(output: Path) -> Iterator[Path]:
    """A folder beside `output` that takes its place when the block ends well, and else is gone."""
    output = output.absolute()
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"{output}: is there already; give a folder that is new or empty")
    partial = output.with_name(f"{output.name}.partial")
    _remove_partial(partial)
    parents = [parent for parent in output.parents if not parent.exists()]  # the innermost first
    try:
        make_folder(partial)
        yield partial
        sync_tree(partial)
        rename(partial, output)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        with suppress(OSError):  # not there, or no longer empty
            for parent in parents:
                parent.rmdir()
        raise


def _remove_partial(partial: Path) -> None:
    """What a killed run left; UsageError where it is something else."""
    if not partial.exists():
        return
    ours = {*_FILES, MANIFEST_FILE, _STORE, INDEX}
    names = [path.name for path in partial.iterdir()] if partial.is_dir() else [partial.name]
    foreign = [
        name
        for name in names
        if not any(name == expected or name.startswith(f".{expected}.") for expected in ours)
    ]
    if foreign:
        raise UsageError(
            f"{partial}: is in the way: it holds {foreign[0]}, which no unfinished run left"
        )
    shutil.rmtree(partial)
