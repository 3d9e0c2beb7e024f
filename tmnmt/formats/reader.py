"""From paths to segments: what kind of file each is, its units one by one, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from tmnmt.errors import FormatError, UsageError
from tmnmt.formats.clean import MAX_TOKENS, clean_name, excerpt, is_name, too_long
from tmnmt.formats.duplicates import PairHashes
from tmnmt.formats.encoding import head_text, root_element
from tmnmt.formats.languages import listed
from tmnmt.formats.memory_formats import MEMORY_FORMATS, MemoryFile, MemoryFormat, Pairs
from tmnmt.formats.moses import member_ids, moses_ids, moses_pair, moses_pairs, read_moses
from tmnmt.formats.report import DUPLICATE, EMPTY, TOO_LONG, WRONG_LANGUAGE, Report
from tmnmt.formats.stream import (
    PACKED,
    NoMemory,
    Source,
    copy_bytes,
    file_source,
    is_pipe,
    is_zip,
    zip_sources,
)
from tmnmt.formats.tsv import Columns
from tmnmt.progress import ReadProgress
from tmnmt.quantities import quantity
from tmnmt.segments import Segment

PROGRESS_EVERY = 500
TERM_ROOTS = ("martif", "tbx")  # of lists of terms, in lower case
MOST_COPIED = 1 << 30  # bytes of a packed file that is unpacked to be read


@dataclass(frozen=True)
class PathKind:
    """Files that are read from their path, which streams have not. One that is packed is unpacked
    to be read.

    suffixes: of packed files that may be of this kind.
    pairs: the pairs of the file at a path from one language to another; None where it is of another
    kind. The source says what the file is called."""

    suffixes: Sequence[str]
    pairs: Callable[[Path, Source, str, str, Report], Pairs | None]


class _Share:
    """How far the reading of files of these sizes has come, one after another: `begin` before each,
    `watched` for what is read of it."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._file = -1
        # what is read of the file, packed as it lies there, and its bytes
        self._open: list[tuple[BinaryIO, int]] = []
        self._bytes = 0  # of all its sources

    def begin(self, sources: Sequence[Source]) -> None:
        """The next file is read; `sources` are all that is in it."""
        self._file = self._file + 1
        self._open = []
        self._bytes = sum(source.size for source in sources)

    def watched(self, source: Source) -> Source:
        """The same source, whose reading counts."""

        def open_watched() -> BinaryIO:
            stream = source.open()
            self._open.append((stream, source.size))
            return stream

        return replace(source, open=open_watched)

    def __float__(self) -> float:
        """In [0, 1]."""
        position = sum(size if stream.closed else stream.tell() for stream, size in self._open)
        share = min(1.0, position / self._bytes) if self._bytes else 0.0
        finished = sum(self._sizes[: max(self._file, 0)]) + (
            share * self._sizes[self._file] if self._file >= 0 else 0
        )
        return finished / max(sum(self._sizes), 1)


@dataclass
class Reader:
    """The segments of some memories, in order. Iterating reads the files, again each time, and
    makes a new `report`. It takes constant memory but for 11 to 22 bytes a unit, by which
    duplicates are found.

    paths: the memory files, archives, and PREFIXes of plain files.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    columns: which columns of tables are read; None finds them by their names.
    progress: is called with the number of units read since the last call and the share of all bytes
    read so far, from 0 to 1; None tells nobody.
    report: what became of the units.
    kinds: other kinds of files, which are looked for first.

    Raises FormatError, while one iterates, for a file that is missing, empty, damaged, of another
    format or encoding, or has no unit in both languages."""

    paths: Sequence[Path]
    src_lang: str
    tgt_lang: str
    columns: Columns | None = None
    progress: ReadProgress | None = None
    report: Report = field(default_factory=Report)
    kinds: Sequence[PathKind] = ()
    _share: _Share = field(default_factory=lambda: _Share([]), init=False)

    def __iter__(self) -> Iterator[Segment]:
        return (segment for _, segment in self.located())

    def located(self) -> Iterator[tuple[int, Segment]]:
        """The segments, each with the line where its unit starts, from 1."""
        self.report = report = Report()
        duplicates = PairHashes()
        reported = 0
        self._share = _Share([self._bytes(path) for path in self.paths])
        for path in self.paths:
            report.languages, previous = set(), (report.units, report.skipped[WRONG_LANGUAGE])
            for line, raw in self._pairs(path):
                segment = _clean_names(raw)
                if self._keep(line, segment, duplicates):
                    yield line, segment
                if self.progress and report.units - reported >= PROGRESS_EVERY:
                    self.progress(report.units - reported, float(self._share))
                    reported = report.units
            self._check_languages(path, *previous)
        if self.progress and report.units > reported:
            self.progress(report.units - reported, 1.0)

    def check_files(self) -> None:
        """Opens every file, but for pipes, which can be opened once.

        Raises FormatError for the first that is missing or cannot be opened."""
        for path in self.paths:
            pair = None if path.exists() else moses_pair(path, self.src_lang, self.tgt_lang)
            for source in pair or (() if is_pipe(path) else (file_source(path),)):
                source.open().close()

    def _keep(self, line: int, segment: Segment, duplicates: PairHashes) -> bool:
        report = self.report
        if not segment.src or not segment.tgt:
            report.skip(
                EMPTY,
                line,
                "no target" if segment.src else "no source" if segment.tgt else "no text",
            )
        elif too_long(segment.src) or too_long(segment.tgt):
            report.skip(TOO_LONG, line, f"more than {MAX_TOKENS:,} tokens")
        elif not duplicates.add(segment):
            report.skip(
                DUPLICATE,
                line,
                f"again {excerpt(segment.src)!r} in document {excerpt(segment.document)!r}",
            )
        else:
            report.keep()
            return True
        return False

    def _check_languages(self, path: Path, units: int, wrong: int) -> None:
        units, wrong = self.report.units - units, self.report.skipped[WRONG_LANGUAGE] - wrong
        if units and wrong == units:
            raise FormatError(
                f"{path}: none of its {quantity(units, 'unit')} has both {self.src_lang} and "
                f"{self.tgt_lang}; "
                f"languages in the file: {listed(self.report.languages)}"
            )

    def _bytes(self, path: Path) -> int:
        if path.exists():
            return path.stat().st_size
        return sum(source.size for source in moses_pair(path, self.src_lang, self.tgt_lang) or ())

    def _pairs(self, path: Path) -> Pairs:
        pair = None if path.exists() else moses_pair(path, self.src_lang, self.tgt_lang)
        if pair is not None:
            ids = moses_ids(path)
            self._share.begin([*pair, ids] if ids else pair)
            yield from self._moses(*pair, ids)
        elif (pairs := self._of_path(path, file_source(path))) is not None:
            self._share.begin([])
            yield from pairs
        elif is_zip(path):
            yield from self._members(path)
        else:
            source = file_source(path)
            self._share.begin([source])
            if path.suffix.lower() in PACKED and self._has_path(source):
                yield from self._unpacked(source)
            else:
                yield from self._file(source, path.parent)

    def _of_path(self, path: Path, source: Source) -> Pairs | None:
        """The pairs of a file of one of the other kinds; None where it is of none."""
        languages = self.src_lang, self.tgt_lang
        ways = (kind.pairs(path, source, *languages, self.report) for kind in self.kinds)
        return next((pairs for pairs in ways if pairs is not None), None)

    def _has_path(self, source: Source) -> bool:
        """Whether a packed file may be of a kind that is read from a path."""
        return any(source.suffix in kind.suffixes for kind in self.kinds)

    def _unpacked(self, source: Source) -> Pairs:
        """The pairs of a packed file that is read from a path. Raises NoMemory where it is of
        another kind."""
        with TemporaryDirectory(prefix="tmnmt-") as folder:
            path = Path(folder) / f"unpacked{source.suffix}"
            with self._share.watched(source).stream() as stream, path.open("xb") as copy:
                copy_bytes(stream, copy, MOST_COPIED, source.label)
            try:
                pairs = self._of_path(path, source)
                if pairs is None:
                    raise NoMemory(source.label, f"no file of the kind that {source.suffix} says")
                yield from pairs
            except NoMemory:
                raise
            except FormatError as error:
                raise FormatError(str(error).replace(str(path), source.label)) from error

    def _moses(self, src: Source, tgt: Source, ids: Source | None) -> Pairs:
        self.report.begin_file(f"{src.label}, {tgt.label}", src.allowance)
        self._need_no_columns(src)
        src = self._share.watched(src)
        tgt = self._share.watched(tgt)
        ids = ids and self._share.watched(ids)
        yield from read_moses(src, tgt, self.report, ids)

    def _members(self, path: Path) -> Pairs:
        """The memories in a zip archive, each a file of its own; what else lies there is named in a
        warning."""
        passed_over = []
        with zip_sources(path) as sources:
            self._share.begin(sources)
            pairs = moses_pairs(sources, self.src_lang, self.tgt_lang)
            ids = member_ids(pairs, sources)
            paired = {source.label for source in (*pairs.values(), *ids.values())}
            for source in sources:
                if source.label in pairs:
                    yield from self._moses(source, pairs[source.label], ids.get(source.label))
                elif source.label not in paired:
                    files, units = self.report.files, self.report.units
                    try:
                        yield from self._member(source)
                    except NoMemory as error:
                        if self.report.units > units:
                            raise
                        self.report.files = files
                        passed_over.append(excerpt(source.name) + (error.why and f" ({error.why})"))
            names = ", ".join(passed_over[:3]) + (", ..." if len(passed_over) > 3 else "")
            if len(passed_over) == len(sources):
                members = f" ({names})" if names else ""
                raise FormatError(
                    f"{path}: no memory among its {quantity(len(sources), 'member')}{members}; "
                    f"{_allowed()}"
                )
        if passed_over:
            self.report.warnings.append(
                f"{path}: {quantity(len(passed_over), 'member')} passed over, no memories: {names}"
            )

    def _member(self, source: Source) -> Pairs:
        """The units of an archive's member. NoMemory, before the first unit, where it is none."""
        if self._has_path(source):
            yield from self._unpacked(source)
            return
        if not any(
            source.suffix in memory_format.suffixes for memory_format in MEMORY_FORMATS.values()
        ):
            raise NoMemory(source.label, "")
        yield from self._file(source)

    def _file(self, source: Source, folder: Path | None = None) -> Pairs:
        with self._share.watched(source).stream() as stream:
            kind = _format_of(head_text(stream), source, self.columns)
            self.report.begin_file(source.label, source.allowance)
            if not kind.has_columns:
                self._need_no_columns(source)
            languages = self.src_lang, self.tgt_lang
            yield from kind.read(
                MemoryFile(stream, source, *languages, self.report, self.columns, folder)
            )

    def _need_no_columns(self, source: Source) -> None:
        """Where columns are given for what is no table: UsageError, or a warning where other files
        may have them."""
        if self.columns is None:
            return
        message = f"{source.label}: is no table, so it has no columns"
        if len(self.paths) == 1 and not is_zip(self.paths[0]):
            raise UsageError(message)
        self.report.warnings.append(message)


def _clean_names(segment: Segment) -> Segment:
    names = segment.document, segment.origin, segment.user
    if all(map(is_name, names)):
        return segment
    document, origin, user = map(clean_name, names)
    return replace(segment, document=document, origin=origin, user=user)


def _format_of(head: str, source: Source, columns: Columns | None) -> MemoryFormat:
    """The first format that accepts a file that begins so. Raises NoMemory where none does."""
    for memory_format in MEMORY_FORMATS.values():
        if memory_format.accepts(head, source, columns):
            return memory_format
    description = "no TMX" if source.suffix == ".tmx" else "no memory that can be read"
    root = root_element(head)
    if root.lower() in TERM_ROOTS:
        raise NoMemory(source.label, "a list of terms (TBX), not a memory: give it as --terms")
    if root:
        raise NoMemory(
            source.label, f"{description}: its root element is <{excerpt(root)}>", _allowed()
        )
    why = "it does not begin as XML or as tab-separated columns do"
    raise NoMemory(source.label, f"{description}: {why}", _allowed())


def _allowed() -> str:
    titles = ", ".join(memory_format.title for memory_format in MEMORY_FORMATS.values())
    return (
        f"allowed: {titles}, XLIFF, PO, XLSX, each also as .gz, .xz or in a .zip, or the PREFIX of "
        "two plain files"
    )


def read_memory(
    path: Path,
    src_lang: str,
    tgt_lang: str,
    *,
    columns: Columns | None = None,
    progress: ReadProgress | None = None,
) -> Reader:
    """The segments of one memory, as `Reader` gives them.

    path: a memory file, an archive, or the PREFIX of plain files.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    columns: which columns of tables are read; None finds them by their names.
    progress: is told of units that are read; None tells nobody."""
    return read_memories([path], src_lang, tgt_lang, columns=columns, progress=progress)


def read_memories(
    paths: Iterable[Path],
    src_lang: str,
    tgt_lang: str,
    *,
    columns: Columns | None = None,
    progress: ReadProgress | None = None,
) -> Reader:
    """The segments of several memories, one after another, as `Reader` gives them. Duplicates among
    them are left out.

    paths: memory files, archives, and PREFIXes of plain files.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    columns: which columns of tables are read; None finds them by their names.
    progress: is told of units that are read; None tells nobody."""
    return Reader([Path(path) for path in paths], src_lang, tgt_lang, columns, progress)
