"""Files that are read as a whole: their text, places in it that are replaced, and the same bytes
everywhere else."""

from __future__ import annotations

import re
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Generic, NamedTuple, TypeVar

from tmnmt.codes.record import Text
from tmnmt.errors import FormatError, short_repr
from tmnmt.files.unit import Document, Filling, TranslatableFile, Unit
from tmnmt.formats.encoding import charset
from tmnmt.formats.languages import normal_code
from tmnmt.formats.stream import open_file
from tmnmt.quantities import quantity

MAX_FILE = 1 << 30  # bytes
_BLOCK = 1 << 20  # bytes that are read at once
BOM = "\ufeff"
NARROW, NO_BREAK = "\u202f", "\u00a0"
_NEWLINE = re.compile("\n")
Wrong = Callable[[int, str], FormatError]  # the error for what is wrong at a place


class Edit(NamedTuple):
    """A part of a text that another one takes the place of.

    start: where it begins, in characters.
    end: where it ends.
    new: what takes its place."""

    start: int
    end: int
    new: str


Slot = TypeVar("Slot")  # what a format knows of a unit's place


class WholeFile(TranslatableFile, Generic[Slot]):
    """A file that is one document. On the first use it raises FormatError where it cannot be
    read."""

    errors = "strict"  # what becomes of characters that the file's character set lacks
    verbatim: Sequence[Edit] = ()  # what `write` puts in as it stands, in order, beside fillings

    def __init__(self, path: Path, src_lang: str = "", tgt_lang: str = "") -> None:
        """path: the file.
        src_lang: the source language, where the file does not say one; "" where nobody knows it.
        tgt_lang: the target language, where the file does not say one; "" where nobody knows it."""
        self.path = path
        self.src_lang, self.tgt_lang = normal_code(src_lang), normal_code(tgt_lang)

    @abstractmethod
    def _encoding(self, data: bytes) -> str:
        """Python's name of the file's character set; it keeps a byte-order mark as a character."""

    @property
    @abstractmethod
    def _slots(self) -> Sequence[Slot]:
        """The places of all units, in order."""

    @abstractmethod
    def _unit(self, slot: Slot) -> Unit:
        """The unit of a place."""

    @abstractmethod
    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        """What is replaced, in the text's order; one filling for every unit."""

    def _text_place(self, slot: Slot) -> tuple[int, int] | None:
        """Where the whole text of a unit stands, which can be copied into another file of the kind;
        None where more than that depends on it."""
        return None

    @property
    def places(self) -> list[tuple[int, int]] | None:
        """Where the texts of all units stand in the file, in characters; None where they cannot be
        copied from one file into another."""
        places = [place for slot in self._slots if (place := self._text_place(slot)) is not None]
        return places if len(places) == len(self._slots) else None

    def documents(self) -> Iterator[Document]:
        slots = self._slots
        yield Document(self.path.name, (self._unit(slot) for slot in slots))

    def write(self, destination: BinaryIO, fillings: Iterable[Filling | None]) -> None:
        filling_list, units = list(fillings), len(self._slots)
        if len(filling_list) != units:
            raise ValueError(
                f"{quantity(len(filling_list), 'filling')} for {quantity(units, 'unit')}"
            )
        for slot, filling in zip(self._slots, filling_list, strict=True):
            if filling is not None:
                unit = self._unit(slot)
                if why := self.refused(unit, filling.target):
                    raise ValueError(f"{self.path}, line {unit.line}: {why}")
        pieces, end = list[str](), 0
        for edit in self._all_edits(filling_list):
            pieces += (self.text[end : edit.start], edit.new)
            end = edit.end
        pieces.append(self.text[end:])
        destination.write(self._encoded("".join(pieces)))

    def _all_edits(self, fillings: Sequence[Filling | None]) -> list[Edit]:
        """The edits of fillings, but where something is put in as it stands."""
        if not self.verbatim:
            return [*self._edits(fillings)]
        ends = [edit.end for edit in self.verbatim]

        def is_free(edit: Edit) -> bool:
            number = bisect_right(ends, edit.start)
            return number == len(ends) or self.verbatim[number].start >= edit.end

        return sorted([*self.verbatim, *filter(is_free, self._edits(fillings))])

    def _encoded(self, text: str) -> bytes:
        """The text as the file's character set has it. A narrow no-break space that it lacks
        becomes a wide one. Raises FormatError for another character that it lacks."""
        try:
            return text.encode(self.encoding, self.errors)
        except UnicodeEncodeError:
            pass
        try:
            return text.replace(NARROW, NO_BREAK).encode(self.encoding, self.errors)
        except UnicodeEncodeError as error:
            lacking = short_repr(text[error.start])
            raise FormatError(
                f"{self.path}: a translation has {lacking}, which {self.encoding.upper()} lacks: "
                "convert the file to UTF-8 first"
            ) from error

    def refused(self, unit: Unit, target: Text) -> str:
        """What makes a unit locked."""
        return unit.problem

    @cached_property
    def _decoded(self) -> tuple[str, str]:
        with open_file(self.path) as file:
            data = bytearray()  # a read of 1 GB at once would ask for so much memory
            while block := file.read(_BLOCK):
                data += block
                if len(data) > MAX_FILE:
                    raise FormatError(f"{self.path}: larger than {MAX_FILE >> 20:,} MB")
        whole = bytes(data)
        encoding = self._encoding(whole)
        return decoded(whole, encoding, self.path), encoding

    @property
    def text(self) -> str:
        return self._decoded[0]

    @property
    def encoding(self) -> str:
        return self._decoded[1]

    @cached_property
    def _lines(self) -> list[int]:
        return [newline.end() for newline in _NEWLINE.finditer(self.text)]

    def line_start(self, offset: int) -> int:
        """Where the line of a place in the text begins.

        offset: the place."""
        line = bisect_right(self._lines, offset)
        return self._lines[line - 1] if line else 0

    @cached_property
    def newline(self) -> str:
        """What ends the lines of the text."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def line(self, offset: int) -> int:
        """The line of a place in the text, from 1.

        offset: the place, in characters."""
        return bisect_right(self._lines, offset) + 1

    def wrong(self, offset: int, problem: str) -> FormatError:
        """The error that says what is wrong at a place.

        offset: the place, in characters.
        problem: what is wrong, in words."""
        line = str(self.line(offset))
        return FormatError(
            "{file}, line {line}: {problem}", file=str(self.path), line=line, problem=problem
        )


def decoded(data: bytes, encoding: str, path: Path) -> str:
    """The text of some bytes, which gives the same bytes when it is encoded.

    data: the bytes.
    encoding: their encoding.
    path: the file, for messages.

    Raises FormatError where there is no such text."""
    if not data:
        raise FormatError("{file}: the file is empty", file=str(path))
    if not charset(encoding):
        raise FormatError(f"{path}: {encoding!r} is no character set that is known")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(
            "{file}, line {line}: bytes that are not {encoding}, as the file should be",
            **{"file": str(path), "line": str(line), "encoding": encoding.upper()},
        ) from error
    if text.encode(encoding) != data:
        raise FormatError(
            f"{path}: written back in {encoding.upper()} it would not be the same bytes; convert "
            "it to UTF-8 first"
        )
    return text
