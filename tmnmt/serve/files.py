"""What jobs do: a file into a memory, a memory into a file, a document through a model. Each goes
in slices: it yields where something else may have its turn."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tmnmt.batch.filling import (
    Documents,
    Finished,
    agree_on_languages,
    translate_file,
    with_confirmed,
)
from tmnmt.batch.own_translations import FileMemory
from tmnmt.batch.repetitions import Repetitions
from tmnmt.codes.record import Source, plain_of
from tmnmt.engine.history import History
from tmnmt.files.as_memory import read_memories
from tmnmt.files.opening import kind_of, open_translatable
from tmnmt.files.paragraphs import ParagraphFile
from tmnmt.formats.dates import iso_utc
from tmnmt.formats.tmx_writer import tmx_writer
from tmnmt.formats.tsv import tsv_writer
from tmnmt.segments import ConfirmedPair, Segment, Translation

if TYPE_CHECKING:
    from tmnmt.config.options import Overwrite, OwnTranslations
    from tmnmt.files.unit import TranslatableFile
    from tmnmt.index.base import WritableIndex
    from tmnmt.serve.in_turn import InTurn
    from tmnmt.serve.jobs import Advance, Steps

AT_ONCE = 32  # segments of a document that are handed to the model together, at most
AT_ONCE_CHARACTERS = 4_000  # of these, but for a single longer one
AT_ONCE_IN_MEMORY = 2_000  # segments of a memory that are read or written in a slice
UNITS_LISTED = 5  # units of a document that are told as left


def read_into(index: WritableIndex, path: Path, name: str, advance: Advance, longest: int) -> Steps:
    """All segments of a memory file into an index, all or none. `name`: of documents that have none
    in the file. `longest`: characters of a text; a segment with a longer one is skipped. Raises
    FormatError for what is no memory, and LockedError where another process writes to the index."""
    size = path.stat().st_size
    reader = read_memories(
        [path],
        index.src_lang,
        index.tgt_lang,
        progress=lambda _, share: advance(int(size * share), size),
    )
    segments = list[Segment]()
    for number, segment in enumerate(reader, 1):
        if max(len(segment.src), len(segment.tgt)) <= longest:
            document = _document_name(segment.document, path, name)
            segments.append(replace(segment, document=document))
        if number % AT_ONCE_IN_MEMORY == 0:
            yield
    if segments:
        index.add(segments)
    advance(size, size)
    report = reader.report
    return {"added": len(segments), "skipped": report.units - len(segments)}, None


def _document_name(document: str, path: Path, name: str) -> str:
    """The name of a document, in which `name` stands for the file: readers call a document without
    a name by the file's, and the documents of an XLIFF by its path."""
    if document == path.name.partition(".")[0]:
        return name
    prefix = path.as_posix()
    return f"{name}{document.removeprefix(prefix)}" if document.startswith(prefix) else document


def written_from(
    segments: Iterable[Segment], languages: tuple[str, str], path: Path, advance: Advance
) -> Steps:
    """A memory as a file, TMX or TSV by the end of its name."""
    writer = tsv_writer(path) if path.suffix == ".tsv" else tmx_writer(path, *languages)
    number = 0
    with writer as write:
        for number, segment in enumerate(segments, 1):
            advance(number, None)
            created, changed = iso_utc(segment.created) or "", iso_utc(segment.changed) or ""
            write(replace(segment, created=created, changed=changed))
            if number % AT_ONCE_IN_MEMORY == 0:
                yield
    advance(number, number)
    return {}, path.read_bytes()


@dataclass(frozen=True)
class DocumentOrder:
    """Which units of a file are filled, and what is known of the others.

    name: what the file is called in messages.
    languages: those that are wanted of it.
    overwrite: which translations are made anew.
    level: which of the others are taken as confirmed."""

    name: str
    languages: tuple[str, str]
    overwrite: Overwrite
    level: OwnTranslations


def _open_document(path: Path) -> TranslatableFile:
    """A file of a kind that is filled, or plain text (.txt). Raises FormatError for another."""
    if kind_of(path) is None and ParagraphFile.accepts(b"", path):
        return ParagraphFile(path)
    return open_translatable(path)


def document_through(
    path: Path,
    order: DocumentOrder,
    translated: InTurn,
    advance: Advance,
    confirmed: Callable[[], Sequence[ConfirmedPair]] = tuple,
) -> Steps:
    """A translator's file with what has no translation translated; all else stays. `confirmed`:
    gives what the session has confirmed, once all is translated. Raises FormatError for what is no
    such file, and UsageError for one of other languages."""
    file = _open_document(path)
    agree_on_languages(file, *order.languages)
    translated = translated.in_region(file.tgt_lang)
    memory = FileMemory(order.overwrite, order.level)
    total = memory.read(file, Path(order.name)).open_units
    if len(memory):
        translated = translated.with_memory(memory.index)
    repetitions = Repetitions(memory.repeated, translated.best_matches, copies=True)

    def translate_slices(documents: Documents) -> Iterator[Translation]:
        completed = 0
        for document in documents:
            history = History(document.pairs)
            for place, together in _slices(document.texts):
                stretch = history.stretch_of(place + len(together) // 2)
                yield from translated(together, [pair[:2] for pair in history.nearest(stretch)])
                completed += len(together)
                advance(completed, total)

    finished_units = list[Finished]()
    for finished in translate_file(
        file, order.overwrite, translate_slices, None, order.level, repetitions
    ):
        finished_units.append(finished)
        yield
    advance(total, total)
    finished_units = list(with_confirmed(finished_units, confirmed()))
    buffer = io.BytesIO()
    fillings = [finished.filling for finished in finished_units]
    file.write(buffer, fillings)
    problems = [
        f"line {finished.unit.line}: {finished.problem or finished.unit.problem}"
        for finished in finished_units
        if finished.problem or finished.unit.problem
    ]
    filled = sum(finished.is_filled for finished in finished_units)
    counts = {
        "segments": len(finished_units),
        "translated": filled,
        "repetitions": sum(unit.is_filled and unit.is_repetition for unit in finished_units),
        "left": problems[:UNITS_LISTED],
    }
    return counts, buffer.getvalue()


def _slices(texts: Iterable[Source]) -> Iterator[tuple[int, list[Source]]]:
    """The texts, as many together as are handed to the model at once, and how many stand before
    them."""
    together, size, place = list[Source](), 0, 0
    for text in texts:
        size += len(plain_of(text))
        if together and (len(together) == AT_ONCE or size > AT_ONCE_CHARACTERS):
            yield place, together
            place += len(together)
            together, size = [], len(plain_of(text))
        together.append(text)
    if together:
        yield place, together
