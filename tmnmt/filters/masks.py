"""Placeholders on their way through a model: each stands in its text as a mask, which the model
copies as it copies a number, and takes its own place again in what comes out.

    Delete %s files in {dir}?           the source
    Delete 901 files in 902?            what the model reads
    Supprimer 901 fichiers dans 902 ?   what it writes, where the masks are placed as codes
    Supprimer %s fichiers dans {dir} ?  the target

Behind a word that says something else before a number, as No does, the mask is a letter.
A mask that the model lost is put in where the links of the words say, one that it wrote twice
stays once. So every placeholder is there exactly once, whatever the model does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from tmnmt.codes.form import DISPENSABLE, MARKED, READ_AS
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Code, Part, Source, Text, join_parts
from tmnmt.filters.contract import MASK_NAME, Filter, ModelOutput, Undo

Reads = Callable[[str], str | None]
Counts = Callable[[str], bool]
MASK = "\0"  # stands for a mask that is not chosen yet
LETTERS = "YZNWX"  # masks behind such a word. A student from English to Portuguese took them best
_NUMBER = re.compile("[0-9]+")
_A_MASK = re.compile(rf"\s?(?<![0-9])({MASK_NAME.pattern})")
_OPENING = "([{«“‘\"'¿¡/"  # no blank behind these, and none before those
_CLOSING = " \u00a0\u202f)]}»”’\"'.,;:!?…/"


class Masks(Filter):
    """Puts numbers in the places of placeholders."""

    is_for_people = True

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        if isinstance(source, str):
            return source, None
        masked = mask(source, self.reader.is_person, self.reader.reads, self.reader.counts)
        return masked.text, masked


@dataclass(frozen=True)
class Masked(Undo):
    """A text whose placeholders are masks. `text` has the codes of `source`, in their order; those
    that are read as something else cover that, and their markup ends in their number."""

    source: Text
    text: Text
    numbers: dict[str, int]  # of these codes, by their markup in `text`
    masks: dict[str, int]  # by what they cover: those that are masks, which stand nowhere else
    by_person: bool = False  # what is written; else by a model

    @cached_property
    def _words(self) -> str:
        """What the source has outside all codes."""
        return "\0".join(part for part in self.source.parts() if isinstance(part, str))

    def covered(self, number: int) -> str:
        """What a code of the source covers.

        number: the number of the code."""
        code = self.source.codes[number]
        return self.source.plain[code.at : _end(code)]

    def restore_piece(self, output: ModelOutput) -> str:
        """What the model wrote, with a mask for a placeholder that it copied from a pair in place
        of the mask, and without others that it made."""
        text = output.text
        for raw, name in self._read_as.items():
            text = text.replace(raw, name)
        names = set(MASK_NAME.findall(text))
        for name in MASK_NAME.findall(output.model_text):
            if name in self.masks and name not in names:
                text = alone(self.covered(self.masks[name])).sub(name, text, count=1)
        parts = list[str]()
        for part in with_placeholders(Text(text), MARKED.finders).parts():
            if isinstance(part, str):
                parts.append(part)
            elif part[1] in READ_AS.values() or part[1] in self._words:
                parts.append(part[1])
            elif parts and parts[-1].endswith(" "):
                parts[-1] = parts[-1][:-1]
        return "".join(parts).strip()

    def to_target(self, text: str) -> str:
        """A text that a person has typed, with a mask for every placeholder that stands in it."""
        for name, number in self.masks.items():
            text = alone(self.covered(number)).sub(name, text, count=1)
        return text

    def display(self, text: str) -> str:
        """What the model wrote with placeholders in place of their masks, wherever they stand."""
        return MASK_NAME.sub(
            lambda match: (
                self.covered(self.masks[match[0]]) if match[0] in self.masks else match[0]
            ),
            text,
        )

    @cached_property
    def _read_as(self) -> dict[str, str]:
        """The placeholders that are read as a character."""
        raw = {self.covered(number) for number in self.numbers.values()}
        return {placeholder: READ_AS[placeholder] for placeholder in raw if placeholder in READ_AS}

    def restore(self, target: Text) -> Text:
        """A target with the codes of `text` as one with those of the source. Masks that none of
        them covers are taken out."""
        parts = list[Part]()
        ends = _Ends()
        for part in target.parts():
            if isinstance(part, str):
                ends.words(parts, part if self.by_person else self._without_masks(part))
                continue
            code, covered = part
            if code.markup not in self.numbers:
                ends.code(parts, code, covered)
                continue
            number = self.numbers[code.markup]
            source_code, stands = self.source.codes[number], self.covered(number)
            code = replace(code, markup=source_code.markup)
            preceding, following = _neighbours(self.source.plain, source_code)
            if not covered and stands in DISPENSABLE:
                continue
            if covered.strip():
                ends.covering(parts, code, stands)
            else:
                ends.put_in(parts, code, stands, not preceding.strip(), not following.strip())
        return join_parts(parts)

    def _without_masks(self, words: str) -> str:
        return _A_MASK.sub(lambda match: "" if match[1] in self.masks else match[0], words)


def mask(
    source: Text,
    by_person: bool = False,
    reads: Reads = READ_AS.get,
    counts: Counts = lambda words: False,
) -> Masked:
    """A source as a model reads it; or, for a target that a person wrote, with every placeholder as
    it is.

    source: the source.
    by_person: whether a person wrote the target.
    reads: gives what the model reads for a placeholder that is no mask; None for a mask.
    counts: whether the last word of a text says something else before a number."""
    unused = _unused(source.plain)
    letters = iter([one for one in LETTERS if one not in MASK_NAME.findall(source.plain)])
    numbers = dict[str, int]()
    masks = dict[str, int]()
    parts = list[Part]()
    number = 0
    for part in source.parts():
        if not isinstance(part, str):
            code, covered = part
            if code.kind in ("placeholder", "standalone") and covered.strip():
                code = replace(code, markup=f"{code.markup}\0{number}")
                numbers[code.markup] = number
                if not by_person:
                    covered = _read(source.plain, source.codes[number], reads)
                if covered == MASK:
                    preceding = source.plain[: source.codes[number].at]
                    letter = next(letters, None) if counts(preceding) else None
                    covered = next(unused) if letter is None else letter
                    masks[covered] = number
            part, number = (code, covered), number + 1
        parts.append(part)
    return Masked(source, join_parts(parts), numbers, masks, by_person)


def _read(text: str, code: Code, reads: Reads) -> str:
    """What a model reads for a placeholder, MASK where it is a mask; nothing for a sign that is
    glued to one end of a word."""
    covered = text[code.at : _end(code)]
    if (character := reads(covered)) is not None:
        return character
    preceding, following = (sign.isalnum() for sign in _neighbours(text, code))
    is_sign = len(covered) == 1 and not covered.isalnum()
    return "" if is_sign and preceding != following else MASK


def _neighbours(text: str, code: Code) -> tuple[str, str]:
    """The characters before and behind a code."""
    return text[max(code.at - 1, 0) : code.at], text[_end(code) : _end(code) + 1]


def _end(code: Code) -> int:
    return code.at + code.covers


def _unused(text: str) -> Iterator[str]:
    """Masks that stand nowhere in a text, nor in its numbers."""
    lengths = range(3, 7)
    occupied = {
        run[start : start + length]
        for run in set(_NUMBER.findall(text))
        for length in lengths
        for start in range(len(run) - length + 1)
    }
    return (name for number in count(901) if (name := str(number)) not in occupied)


def alone(text: str) -> re.Pattern[str]:
    """A pattern of a text that is no part of a longer word or number.

    text: the text."""
    return re.compile(f"{_not(text[0], '<!')}{re.escape(text)}{_not(text[-1], '!')}")


def _not(sign: str, operator: str) -> str:
    """An expression that more of the same word or number does not follow, or precede."""
    pattern = r"\d" if sign.isdigit() else r"\w" if sign.isalpha() else ""
    return f"(?{operator}{pattern})" if pattern else ""


class _Ends:
    """Puts parts one behind another, with a blank where a placeholder is put in between words."""

    def __init__(self) -> None:
        self._blank_due = False  # a blank, before the next word

    def words(self, parts: list[Part], words: str) -> None:
        if words:
            parts.append(" " + words if self._blank_due and words[0] not in _CLOSING else words)
            self._blank_due = False

    def code(self, parts: list[Part], code: Code, covered: str) -> None:
        if covered or code.kind == "open":
            self._blank(parts)
        parts.append((code, covered))

    def covering(self, parts: list[Part], code: Code, stands: str) -> None:
        self._blank(parts)
        parts.append((code, stands))

    def put_in(
        self, parts: list[Part], code: Code, stands: str, leading_space: bool, trailing_space: bool
    ) -> None:
        self._blank(parts)
        if leading_space and _ends_in_word(parts):
            index = len(parts)
            while index and _opens(parts[index - 1]):
                index -= 1
            parts.insert(index, " ")
        parts.append((code, stands))
        self._blank_due = trailing_space

    def _blank(self, parts: list[Part]) -> None:
        if self._blank_due:
            parts.append(" ")
            self._blank_due = False


def _ends_in_word(parts: Sequence[Part]) -> bool:
    plain = next((text for part in reversed(parts) if (text := _plain(part))), " ")
    return not plain[-1].isspace() and plain[-1] not in _OPENING


def _opens(part: Part) -> bool:
    return not isinstance(part, str) and part[0].kind == "open"


def _plain(part: Part) -> str:
    return part if isinstance(part, str) else part[1]
