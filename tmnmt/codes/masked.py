"""Placeholders on their way through a model: each stands in its text as a mask, which the model
copies as it copies a number, and takes its own place again in what comes out.

    Delete %s files in {dir}?           the source
    Delete 901 files in 902?            what the model reads
    Supprimer 901 fichiers dans 902 ?   what it writes, where the masks are placed as codes
    Supprimer %s fichiers dans {dir} ?  the target

A mask that the model lost is put in where the links of the words say, one that it wrote twice
stays once. So every placeholder is there exactly once, whatever the model does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Code, Part, Text, joined

# what stands for a character is read as that character; these are no names that are unique
_READ_AS = {
    r"\n": " ",
    r"\r": " ",
    r"\t": " ",
    r"\"": '"',
    r"\'": "'",
    "%%": "%",
}
_OPENING = "([{«“‘\"'¿¡/"  # no blank behind these, and none before those
_CLOSING = " \u00a0\u202f)]}»”’\"'.,;:!?…/"


@dataclass(frozen=True)
class Masked:
    """A text whose placeholders are masks. `text` has the codes of `source`, in their order; those
    that stand for words cover their mask, and their markup ends in their number."""

    source: Text
    text: Text
    numbers: dict[str, int]  # of the codes that stand for words, by their markup in `text`
    masks: dict[int, str]  # by the number of the code: those that stand nowhere else
    by_person: bool = False  # what is written; else by a model

    def original(self, start: int, end: int) -> str:
        """The source's text between these characters of `text`; no mask is cut."""
        plain, at, found = self.source.plain, 0, ""
        moved = zip(self.source.codes, self.text.codes, strict=True)
        shift = 0  # of the source's characters against those of the text
        for code, masked in moved:
            stop = min(max(masked.at, start), end)
            found += plain[max(at, start) + shift : stop + shift] if stop > max(at, start) else ""
            at = masked.at + masked.covers
            if start <= masked.at and at <= end:
                found += plain[code.at : code.at + code.covers]
            shift = code.at + code.covers - at
        return found + (plain[max(at, start) + shift : end + shift] if end > at else "")

    def again(self, written: str, read: str) -> str:
        """What the model wrote for the text `read`, with a mask for a placeholder that it copied
        from a pair in place of the mask, and without others that it made."""
        for number in self.numbers.values():
            code = self.source.codes[number]
            covered = self.source.plain[code.at : code.at + code.covers]
            mask = self.masks.get(number)
            if mask is None and covered:
                written = written.replace(covered, _READ_AS[covered])
            elif mask is not None and _is_in(mask, read) and not _is_in(mask, written):
                written = _alone(covered).sub(mask, written, count=1)
        return self._without_made(written)

    def _without_made(self, written: str) -> str:
        words = "\0".join(part for part in self.source.parts() if isinstance(part, str))
        parts = list[str]()
        for part in with_placeholders(Text(written)).parts():
            if isinstance(part, str):
                parts.append(part)
            elif part[1] in words or part[1] in _READ_AS.values():
                parts.append(part[1])
            elif parts and parts[-1].endswith(" "):
                parts[-1] = parts[-1][:-1]
        return "".join(parts).strip()

    def lost(self, written: str, read: str) -> bool:
        """Whether a mask of the text `read` does not stand exactly once in what was written."""
        names = (_alone(mask) for mask in self.masks.values() if _is_in(mask, read))
        return any(len(name.findall(written)) != 1 for name in names)

    def unmasked(self, placed: Text) -> Text:
        """A target with the codes of `text` as one with those of the source. Masks that none of
        them covers are taken out."""
        left = [re.compile(rf"\s?{_alone(name).pattern}") for name in self.masks.values()]
        parts = list[Part]()
        ends = _Ends()
        for part in placed.parts():
            if isinstance(part, str):
                for name in left:
                    part = name.sub("", part)
                ends.words(parts, part)
                continue
            code, covered = part
            if code.markup not in self.numbers:
                ends.code(parts, code, covered)
                continue
            own = self.source.codes[self.numbers[code.markup]]
            stands = self.source.plain[own.at : own.at + own.covers]
            code = replace(code, markup=own.markup)
            if not stands:
                at = placed.plain[: part[0].at][-1:], placed.plain[part[0].at + len(covered) :][:1]
                ends.between(parts, code, "" if _are_apart(*at) else covered)
            elif covered:
                ends.covering(parts, code, stands)
            else:
                ends.put_in(parts, code, stands, *self._apart(own))
        return joined(parts)

    def _apart(self, code: Code) -> tuple[bool, bool]:
        """Whether a blank, or nothing, is in front of a code and behind it in the source."""
        plain, end = self.source.plain, code.at + code.covers
        return not plain[: code.at][-1:].strip(), not plain[end : end + 1].strip()


def mask(source: Text, by_person: bool = False) -> Masked:
    """The source as a model reads it; or, for a target that a person wrote, with every placeholder
    as it is."""
    unused, numbers, masks = _unused(source.plain), dict[str, int](), dict[int, str]()
    parts, number = list[Part](), 0
    for part in source.parts():
        if not isinstance(part, str):
            code, covered = part
            parts_words = not by_person and _parts_words(source.plain, code)
            if parts_words or (code.kind in ("placeholder", "standalone") and covered.strip()):
                code = replace(code, markup=f"{code.markup}\0{number}")
                numbers[code.markup] = number
                if parts_words:
                    covered = " "
                elif not by_person:
                    covered = _READ_AS.get(covered) or masks.setdefault(number, next(unused))
            part, number = (code, covered), number + 1
        parts.append(part)
    return Masked(source, joined(parts), numbers, masks, by_person)


def _parts_words(text: str, code: Code) -> bool:
    """Whether a code alone stands where a blank would, as a tab does in (1)<x/>The."""
    if code.kind != "standalone" or code.covers:
        return False
    return _are_apart(text[: code.at][-1:], text[code.at :][:1])


def _are_apart(before: str, behind: str) -> bool:
    """Whether two words stand here: behind a mark, or with a capital behind a small letter."""
    marked = before != "" and before in ").]:;,!?»" and behind.isalnum()
    return marked or (before.islower() and behind.isupper())


def _unused(text: str) -> Iterator[str]:
    """Masks that do not stand in a text."""
    return (name for number in count(901) if (name := str(number)) not in text)


def _alone(text: str) -> re.Pattern[str]:
    """A text that is no part of a longer word or number."""
    return re.compile(f"{_not(text[0], '<!')}{re.escape(text)}{_not(text[-1], '!')}")


def _not(sign: str, where: str) -> str:
    """An expression that more of the same word or number does not follow, or precede."""
    more = r"\d" if sign.isdigit() else r"\w" if sign.isalpha() else ""
    return f"(?{where}{more})" if more else ""


def _is_in(text: str, other: str) -> bool:
    return _alone(text).search(other) is not None


class _Ends:
    """Puts parts one behind another, with a blank where a placeholder is put in between words."""

    def __init__(self) -> None:
        self._wanted = False  # a blank, before the next word

    def words(self, parts: list[Part], words: str) -> None:
        if words:
            parts.append(" " + words if self._wanted and words[0] not in _CLOSING else words)
            self._wanted = False

    def code(self, parts: list[Part], code: Code, covered: str) -> None:
        if covered or code.kind == "open":
            self._blank(parts)
        parts.append((code, covered))

    def covering(self, parts: list[Part], code: Code, stands: str) -> None:
        self._blank(parts)
        parts.append((code, stands))

    def between(self, parts: list[Part], code: Code, blank: str) -> None:
        """A code, and the blank behind it that it did not take the place of."""
        self.code(parts, code, "")
        if blank:
            parts.append(blank)

    def put_in(
        self, parts: list[Part], code: Code, stands: str, before: bool, behind: bool
    ) -> None:
        self._blank(parts)
        if before and _ends_in_word(parts):
            at = len(parts)
            while at and _opens(parts[at - 1]):
                at -= 1
            parts.insert(at, " ")
        parts.append((code, stands))
        self._wanted = behind

    def _blank(self, parts: list[Part]) -> None:
        if self._wanted:
            parts.append(" ")
            self._wanted = False


def _ends_in_word(parts: Sequence[Part]) -> bool:
    plain = next((text for part in reversed(parts) if (text := _plain(part))), " ")
    return not plain[-1].isspace() and plain[-1] not in _OPENING


def _opens(part: Part) -> bool:
    return not isinstance(part, str) and part[0].kind == "open"


def _plain(part: Part) -> str:
    return part if isinstance(part, str) else part[1]
