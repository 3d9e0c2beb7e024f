"""What every kind of file is to those who translate it: units in documents, and the same bytes with
other targets in them.

    file = opened(path)                       tmnmt/files/opening.py
    for document in file.documents():         in order; a PO file is one, an XLIFF has many
        for unit in document.units: ...       source, target, state
    file.write(stream, fillings)              one for every unit, in order; None leaves it alone

What is not a target is written as it was read, to the byte."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from tmnmt.checks import Check, limit_checks
from tmnmt.codes.record import Text
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.segments import Match

State = Literal["new", "draft", "translated", "locked"]
Confirmation = Literal["none", "translated", "approved"]


@dataclass(frozen=True, slots=True)
class Comment:
    """What somebody who works on a translation has said of it.

    text: the comment, which may have several lines.
    author: who has said it; "" where that is not known.
    time: when, a time of ISO 8601; "" where that is not known."""

    text: str
    author: str = ""
    time: str = ""

    @property
    def line(self) -> str:
        """The text with its author, for formats that have no place for one."""
        return f"{self.author}: {self.text}" if self.author else self.text


@dataclass(frozen=True, slots=True)
class Unit:
    """One segment of a file.

    source: the source.
    target: its translation; None where there is none.
    state: "new" has no translation; "draft" has one that somebody has to look at, as a fuzzy one of
    a PO file; "translated"; "locked" must not be touched.
    id: its name in the file; "" where it has none.
    context: what tells it from another unit of the same source, such as msgctxt.
    notes: what the file says of it for translators.
    line: where it begins in the file, from 1.
    problem: why it cannot be translated, in words. Such a unit is "locked", and the others are not.
    plural: which plural form of a message it is and of which numbers, in words; "" where it is
    none.
    confirmation: how far the file says that its target is right, also where the unit is locked:
    "translated" and nobody has to look at it, or "approved" by a reviewer. Formats that know no
    reviewer say "approved" of what is translated.
    max_length: how many characters its target may have, where the file says so; None where it does
    not.
    comments: what those who work on its translation have said of it in the file."""

    source: Text
    target: Text | None = None
    state: State = "new"
    id: str = ""
    context: str = ""
    notes: tuple[str, ...] = ()
    line: int = 0
    problem: str = ""
    plural: str = ""
    confirmation: Confirmation = "none"
    max_length: int | None = None
    comments: tuple[Comment, ...] = ()

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes, and the texts of the comments."""
        return (*self.notes, *(comment.text for comment in self.comments))


def confirmation_of(state: State, is_approved: bool = True) -> Confirmation:
    """How far the target of a unit is confirmed.

    state: the state of the unit.
    is_approved: whether a reviewer has approved the target; this counts for a translated unit
    alone."""
    if state != "translated":
        return "none"
    return "approved" if is_approved else "translated"


@dataclass(frozen=True, slots=True)
class Document:
    """Units that belong together, in order; a session goes through one document.

    name: the name of the document in the file.
    units: the units, which are read while one goes through them, and only once."""

    name: str
    units: Iterable[Unit]


@dataclass(frozen=True, slots=True)
class Filling:
    """What is put into a unit.

    target: the target.
    origin: where the target comes from, one of `tmnmt.segments.ORIGINS`, or "repetition"; the file
    says of the target what `tmnmt.files.states` has for it. With "" matches and comments alone are
    told, and the unit keeps its target and state. Only a file that `tells_matches` or
    `takes_comments` is given such a filling.
    matches: matches that are told where a format has a place for them. The first is what a target
    that comes from a memory was taken from.
    comments: comments that the file gets beside those that it has, where it `takes_comments`."""

    target: Text
    origin: str
    matches: tuple[Match, ...] = ()
    comments: tuple[Comment, ...] = ()

    @property
    def has_target(self) -> bool:
        """Whether the unit gets a target, and not matches or comments alone."""
        return bool(self.origin)


class TranslatableFile(ABC):
    """A file of one kind. Languages are codes such as "en", and "" where the file does not say
    them; then whoever translates sets them, and `write` puts them where the format has a place for
    them.

    kind: the name of the kind in the registry.
    title: what messages call such files.
    is_memory: whether its finished units are read as a memory, too.
    is_bilingual: whether it has sources and targets beside one another.
    sentences: whether its texts are cut into sentences; this is set before it is read.
    has_running_text: whether its texts can be cut into sentences.
    marks_drafts: whether it can say of a target that somebody has to look at it.
    tells_matches: whether it has a place for matches beside the target.
    takes_comments: whether it has a place for what people say of a translation.
    src_lang: the source language.
    tgt_lang: the target language."""

    kind: str
    title: str
    is_memory = False
    is_bilingual = False
    sentences = False
    has_running_text = False
    marks_drafts = False
    tells_matches = False
    takes_comments = False
    src_lang: str
    tgt_lang: str

    @abstractmethod
    def __init__(self, path: Path) -> None:
        """path: the file.

        Raises FormatError where the file is not of this kind, or its beginning is broken."""

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """Whether a file is of this kind: by its name, where a kind does not look at its content.

        head: the first bytes of the file.
        path: the file, of which the name counts; it need not be there."""
        return FILE_KINDS[cls.kind].has_name(path)

    @abstractmethod
    def documents(self) -> Iterator[Document]:
        """The documents of the file, in order.

        Raises FormatError with file and line for what cannot be read."""

    @abstractmethod
    def write(self, destination: BinaryIO, fillings: Iterable[Filling | None]) -> None:
        """Writes the file with other targets.

        destination: where the bytes go.
        fillings: one for every unit of every document, in order; None leaves a unit as it is.

        Raises ValueError for another number of fillings, and for a target that `refused` gives a
        reason for."""

    def layout_checks(self, unit: Unit, number: int, target: Text | None = None) -> list[Check]:
        """What somebody should look at in how a text fits its place: how long it may be, and the
        times and lines of a subtitle.

        unit: the unit.
        number: its number in the file, from 0.
        target: its target; None: what the file has there."""
        text = unit.target if target is None else target
        return limit_checks(text.plain, unit.max_length) if text is not None else []

    def refused(self, unit: Unit, target: Text) -> str:
        """Why a target cannot be put into a unit of this file, in words; "" where it can.

        unit: the unit.
        target: the target."""
        return ""
