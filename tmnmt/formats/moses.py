"""A pair of plain files, line by line each other's translation: PREFIX for PREFIX.en and PREFIX.fr
(Moses, OPUS).

OPUS puts a third beside them, PREFIX.ids, which says of every line what documents it is from,
between tabs: en/1970/jrc21970A0720_01-en.xml.gz, fr/1970/jrc21970A0720_01-fr.xml.gz, sentence
numbers of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import count, repeat, zip_longest
from pathlib import Path

from tmnmt.errors import FormatError
from tmnmt.formats.clean import clean
from tmnmt.formats.encoding import MARK, lines
from tmnmt.formats.report import Report
from tmnmt.formats.stream import Source, file_source
from tmnmt.formats.tsv import MAX_LINE
from tmnmt.quantities import quantity
from tmnmt.segments import Segment

_PACKINGS = ("", ".gz", ".xz")


def moses_pair(prefix: Path, src_lang: str, tgt_lang: str) -> tuple[Source, Source] | None:
    """The two files of a pair, each also as .gz or .xz; None where neither is there.

    prefix: what the paths of both begin with, before the dot and the language.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.

    Raises FormatError where one is there without the other."""
    paths = [_existing(prefix, lang) for lang in (src_lang, tgt_lang)]
    if paths[0] is None and paths[1] is None:
        return None
    for lang, path in zip((src_lang, tgt_lang), paths, strict=True):
        if path is None:
            raise FormatError(
                f"{prefix}.{lang}: no such file; a pair of plain files needs both languages"
            )
    src, tgt = (file_source(path) for path in paths if path is not None)
    return src, tgt


def _existing(prefix: Path, lang: str) -> Path | None:
    candidates = (prefix.with_name(f"{prefix.name}.{lang}{packing}") for packing in _PACKINGS)
    return next((path for path in candidates if path.is_file()), None)


def moses_pairs(sources: Iterable[Source], src_lang: str, tgt_lang: str) -> dict[str, Source]:
    """For the label of every source file NAME.src in an archive its target file NAME.tgt, where
    that is there.

    sources: the members of the archive.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language."""
    by_path = {_path_of(source): source for source in sources}
    pairs = {}
    for path, source in by_path.items():
        target = by_path.get(path[: -len(src_lang)] + tgt_lang)
        if path.endswith(f".{src_lang}") and target is not None:
            pairs[source.label] = target
    return pairs


def _path_of(source: Source) -> str:
    return source.label[:-3] if source.label.lower().endswith(_PACKINGS[1:]) else source.label


def moses_ids(prefix: Path) -> Source | None:
    """The file of ids of a pair, also as .gz or .xz; None where there is none.

    prefix: what the paths of the pair begin with, before the dot and the language."""
    path = _existing(prefix, "ids")
    return file_source(path) if path else None


def member_ids(pairs: Iterable[str], sources: Sequence[Source]) -> dict[str, Source]:
    """For the label of every source file NAME.src in an archive its file of ids NAME.ids, where
    that is there.

    pairs: the labels of the source files.
    sources: the members of the archive."""
    by_path = {_path_of(source): source for source in sources[::-1]}
    names = {source.label: _path_of(source).rpartition(".")[0] + ".ids" for source in sources}
    return {label: by_path[names[label]] for label in pairs if names[label] in by_path}


def read_moses(
    src: Source, tgt: Source, report: Report, ids: Source | None = None
) -> Iterator[tuple[int, Segment]]:
    """Every pair of lines with its number.

    src: the file of the source language.
    tgt: the file of the target language.
    report: counts the lines, and says what is wrong with those that are skipped.
    ids: the file that says of which document each line is, and where it stands there. None takes
    the prefix's name, and the line counted from 0.

    Raises FormatError where the files have different numbers of lines; the message has both."""
    with (
        src.stream() as src_stream,
        tgt.stream() as tgt_stream,
        ids.stream() if ids else nullcontext() as ids_stream,
    ):
        places = (
            _places(lines(ids_stream, MAX_LINE)) if ids_stream else zip(repeat(src.stem), count())
        )
        src_count = tgt_count = places_used = 0
        for src_line, tgt_line in zip_longest(
            lines(src_stream, MAX_LINE), lines(tgt_stream, MAX_LINE)
        ):
            src_count += src_line is not None
            tgt_count += tgt_line is not None
            if src_line is None or tgt_line is None:
                continue
            place = next(places, None)
            if place is None:
                continue  # too few ids, which is told below
            places_used += 1
            if MARK in src_line or MARK in tgt_line:
                report.skip_undecodable(src_count, "UTF-8")
                continue
            (src_text, src_cleaned), (tgt_text, tgt_cleaned) = clean(src_line), clean(tgt_line)
            report.cleaned += src_cleaned + tgt_cleaned
            yield src_count, Segment(src_text, tgt_text, *place, 0, src.stem)
        places_used += sum(1 for _ in places) if ids else 0
    if src_count != tgt_count:
        raise FormatError(
            f"{src.label} has {quantity(src_count, 'line')} and {tgt.label} {tgt_count:,}: "
            "they are no line-by-line translation"
        )
    if ids and places_used != src_count:
        raise FormatError(
            f"{ids.label} has {quantity(places_used, 'line')} and {src.label} {src_count:,}"
        )
    report.end_file("UTF-8")


def _places(ids: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Every line's document, "1970/jrc21970A0720_01-en", and the place in it."""
    lines_of: Counter[str] = Counter()
    for line in ids:
        document = (
            line.partition("\t")[0].partition("/")[2].removesuffix(".gz").removesuffix(".xml")
        )
        yield document, lines_of[document]
        lines_of[document] += 1
