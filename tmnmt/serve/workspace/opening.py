"""A file as it becomes a document: its segments, what the file has confirmed already, and what the
memories have for the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from tmnmt.batch.pretranslate import Pretranslator
from tmnmt.codes.record import Placed, Source, Text, plain_of
from tmnmt.engine.confirmed import confirmable, confirmed_now
from tmnmt.engine.full_match import value_of
from tmnmt.engine.retrieve import Retriever
from tmnmt.errors import UsageError
from tmnmt.files.unit import Unit
from tmnmt.segments import ConfirmedPair
from tmnmt.serve.confirming import draft_checks
from tmnmt.serve.documents import Upload, unit_record, units_of
from tmnmt.serve.http_error import Refused
from tmnmt.serve.markup import markup, single_text
from tmnmt.serve.workspace.segment import MOST_COMMENTS, OF_FILE, ORIGINS, WorkSegment
from tmnmt.session import Session
from tmnmt.text import words

Fill = Literal["none", "full", "adapted"]
FILLS: tuple[Fill, ...] = get_args(Fill)
MOST_BACKGROUND = 10_000  # pairs of the file that a session knows from the beginning
_ORIGINS: dict[Fill, tuple[str, ...]] = {
    "none": (),
    "full": ("memory",),
    "adapted": ("memory", "adapted"),
}
_FIELDS = (
    *("source", "document", "id", "context", "plural", "problem", "markup"),
    "max_length",
)


@dataclass(frozen=True)
class FileContent:
    """What is read of a file.

    kind: the name of its kind.
    sentences: whether its text is cut into sentences.
    segments: its segments in order.
    sources: what they are looked up by.
    background: the pairs that it has confirmed already."""

    kind: str
    sentences: bool
    segments: Sequence[WorkSegment]
    sources: Sequence[Source]
    background: Sequence[ConfirmedPair]


def read_file(upload: Upload) -> FileContent:
    """What a file has. Raises Refused for what is no file of a kind that is translated, and for one
    without segments."""
    file = units_of(upload)
    if not file.units:
        raise Refused(400, "empty", "there is nothing to translate in the document")
    segments = [_segment(number, *entry) for number, entry in enumerate(file.units, 1)]
    units = [unit for _, unit in file.units]
    sources = [_source(*entry) for entry in zip(segments, units, strict=True)]
    background = [
        pair
        for segment, source, unit in zip(segments, sources, units, strict=True)
        if unit.confirmation != "none" and (pair := _confirmed_pair(segment, source)) is not None
    ]
    repeated = _with_repetitions(segments)
    return FileContent(file.kind, file.sentences, repeated, sources, background[-MOST_BACKGROUND:])


def _segment(number: int, name: str, unit: Unit) -> WorkSegment:
    record = unit_record(name, unit)
    fields = {field: record[field] for field in _FIELDS}
    file = {"target": record["target"], "state": record["state"]}
    comments = [
        {"id": f"{OF_FILE}{place}", "by": entry.author, "time": entry.time, "text": entry.text}
        for place, entry in enumerate(unit.comments[:MOST_COMMENTS])
    ]
    return WorkSegment(
        number,
        file=file,
        words=words(unit.source.plain),
        notes=list(unit.notes),
        comments=comments,
        **fields,
    )


def _source(segment: WorkSegment, unit: Unit) -> Source:
    """The source as sessions look it up, at its place in the file."""
    try:
        text = single_text(segment.source, "xml")
    except Refused:  # it has more tags than a text may have, and is locked
        return unit.source.plain
    place = unit.source
    if not isinstance(place, Placed):
        return text
    codes = text.codes if isinstance(text, Text) else ()
    return Placed(plain_of(text), codes, place.previous, place.next, place.id)


def _confirmed_pair(segment: WorkSegment, source: Source) -> ConfirmedPair | None:
    """None where it is nothing that a session takes."""
    target = segment.file["target"]
    if not target or not target.strip():
        return None
    try:
        return confirmed_now(*confirmable(source, single_text(target, "xml")))
    except (UsageError, Refused):
        return None


def _with_repetitions(segments: Sequence[WorkSegment]) -> list[WorkSegment]:
    """The segments, each with what it repeats, or what repeats it. A plural form repeats none of
    another form, and what may have so many characters nothing with another limit."""
    groups = dict[tuple[str, str, int | None], list[int]]()
    for segment in segments:
        groups.setdefault((segment.source, segment.plural, segment.max_length), []).append(
            segment.number
        )
    repeated = list(segments)
    for first, *numbers in groups.values():
        if numbers:
            repeated[first - 1] = replace(segments[first - 1], repetitions=numbers)
        for number in numbers:
            repeated[number - 1] = replace(segments[number - 1], repeats=first)
    return repeated


@dataclass(frozen=True)
class Preparation:
    """What the memories have for segments, and what the checks find in them.

    session: the session of the document.
    retriever: asks the memories.
    rule: which matches become drafts: "full" takes those of the same text, "adapted" those, too,
    that numbers were put into, and "none" takes none.
    sources: what the segments are looked up by, in the order of the document."""

    session: Session
    retriever: Retriever
    rule: Fill
    sources: Sequence[Source]

    def prepare(self, segments: Sequence[WorkSegment]) -> list[WorkSegment]:
        """Segments that follow one another, with drafts where the file has no target, and with
        checks of what stands there."""
        return [self._with_checks(segment) for segment in self._filled(segments)]

    def has_work(self, segments: Sequence[WorkSegment]) -> bool:
        """Whether these can become others: a text stands in one of them, or is to be filled in."""
        return any(
            segment.present_text is not None or (self.rule != "none" and _is_empty(segment))
            for segment in segments
        )

    def _filled(self, segments: Sequence[WorkSegment]) -> list[WorkSegment]:
        filled = list(segments)
        if self.rule == "none" or not any(map(_is_empty, segments)):
            return filled
        sources = [self.sources[segment.number - 1] for segment in segments]
        translations = Pretranslator(self.retriever).stream(sources)
        for index, translation in enumerate(translations):
            segment = segments[index]
            if translation.origin not in _ORIGINS[self.rule] or not _is_empty(segment):
                continue
            target = Text(translation.tgt, translation.tgt_codes)
            text = markup(segment.source, "xml").filled([target])
            origin = next(name for name in ORIGINS if name == translation.origin)
            match = value_of(translation.matches[0]) if translation.matches else None
            filled[index] = replace(segment, text=text, origin=origin, match=match)
        return filled

    def _with_checks(self, segment: WorkSegment) -> WorkSegment:
        text = segment.present_text
        if segment.is_locked or text is None:
            return segment
        found = draft_checks(self.session, segment.source, text, segment.max_length)
        return replace(segment, checks=found)


def _is_empty(segment: WorkSegment) -> bool:
    return segment.state == "untouched" and bool(segment.file["state"] == "new")
