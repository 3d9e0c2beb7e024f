"""Tables of texts in XML: Android's strings.xml and .NET's .resx and .resw. Both are in the source
language, and what is written in the target language; every other byte stays."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tmnmt.codes.placeholders import ALL_FINDERS, Finder
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.plurals import description_of, is_plural, needed_categories
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, Unit
from tmnmt.files.whole import Edit, WholeFile
from tmnmt.files.xml_places import CDATA, TOKEN, check, elements, encoding_of, escaped, plain

_ANDROID_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|([\s\S]))")
_REFERENCE = re.compile(r"[@?][+*]?[\w.]+(?:[:/][\w.]+)*")  # to another resource
_ESCAPED_BLANKS = re.compile(r"((?:\\u0020|\\u00[aA]0)*)[\s\S]*?((?:\\u0020|\\u00[aA]0)*)")
_ANDROID_SIGNS = {"n": "\n", "t": "\t"}


class Insertion(NamedTuple):
    """A text that the file has no element for yet: where it is put in, and what stands around it
    there."""

    place: int
    prefix: str
    suffix: str


class Entry(NamedTuple):
    """A text of a table. What is inside its element is from `start` to `end`; `begin`: what is put
    in before the element begins there. `category`: that of CLDR, of a plural form. Of a form that
    the target language needs and the file lacks, these are the places of the form that it is
    made of, and `insertion` says where it goes."""

    id: str
    start: int
    end: int
    notes: tuple[str, ...]
    begin: int = 0
    category: str = ""
    insertion: Insertion | None = None


# what stands in front of the text of a new plural form, and behind it; of the form that it is in
# front of, and its category
Around = Callable[[Entry, str], tuple[str, str]]


class StringTable(WholeFile[Entry]):
    """A table of texts in XML. What the file's character set lacks is written as a number."""

    errors = "xmlcharrefreplace"
    finders: Sequence[Finder] = ALL_FINDERS  # of placeholders

    def _encoding(self, data: bytes) -> str:
        return encoding_of(data)

    @cached_property
    def _slots(self) -> list[Entry]:
        check(self.text, self.wrong)
        return [
            entry
            for entry in self._entries()
            if any(map(str.isalnum, self._read(self.text[entry.start : entry.end])))
        ]

    @abstractmethod
    def _entries(self) -> Iterator[Entry]:
        """The places of all texts."""

    @abstractmethod
    def _read(self, inside: str) -> str:
        """The text that stands inside an element."""

    @abstractmethod
    def _written(self, string: str, inside: str) -> str:
        """What stands inside an element for a text; `inside`: what stood there."""

    def _unit(self, slot: Entry) -> Unit:
        inside = self.text[slot.start : slot.end]
        unit = unit_of(
            self._read(inside),
            finders=self.finders,
            id=slot.id,
            notes=slot.notes,
            line=self.line(slot.start),
        )
        if "<!--" in inside:
            return replace(unit, state="locked", problem="a comment inside the text")
        plural = description_of(slot.category, self.tgt_lang) if slot.category else ""
        return replace(unit, plural=plural)

    def _text_place(self, slot: Entry) -> tuple[int, int] | None:
        return (slot.start, slot.end) if slot.insertion is None else None

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        for entry, filling in zip(self._slots, fillings, strict=True):
            if filling is not None:
                string = string_of(filling.target)
                inside = self.text[entry.start : entry.end]
                new = self._written(string, inside)
                if entry.insertion is None:
                    yield Edit(entry.start, entry.end, new)
                else:
                    place, prefix, suffix = entry.insertion
                    yield Edit(place, place, f"{prefix}{new}{suffix}")

    def _with_needed_forms(self, forms: Sequence[Entry], around: Around) -> Iterator[Entry]:
        """The plural forms of a message, and those that the target language needs beside them, in
        front of the last resort `other`, from whose text they are made. `around`: what is
        written around a new one."""
        names = [form.category for form in forms]
        needed = needed_categories(names, self.tgt_lang) if is_plural(names) else names
        for form in forms:
            if form.category == "other":
                for category in needed:
                    if category not in names:
                        yield _new_form(form, category, around)
            yield form

    def _separator(self, offset: int) -> str:
        """The line end and blanks in front of a place, or nothing where it does not begin a
        line."""
        start = offset
        while start and self.text[start - 1] in " \t\r\n":
            start -= 1
        blanks = self.text[start:offset]
        return blanks if "\n" in blanks else ""


class AndroidStrings(StringTable):
    """Android's resources: strings, lists of strings and plural forms. What says
    translatable="false" stays."""

    kind = "android"
    title = FILE_KINDS["android"].title

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By what it begins with."""
        return (
            FILE_KINDS[cls.kind].has_name(path) and re.search(rb"<resources[\s>]", head) is not None
        )

    def _entries(self) -> Iterator[Entry]:
        forms = list[Entry]()
        for opened, end, _ in elements(self.text, self.wrong):
            names = [element.name for element in opened[1:]]
            if names == ["plurals"]:
                yield from self._with_needed_forms(forms, self._around)
                forms = []
            if names not in (["string"], ["string-array", "item"], ["plurals", "item"]):
                continue
            element, parent = opened[-1], opened[1]
            if any(each.attributes.get("translatable") == "false" for each in opened):
                continue
            label = parent.attributes.get("name", "")
            category = element.attributes.get("quantity", "")
            if names != ["string"]:
                label += f"[{category}]"
            entry = Entry(
                label, element.start, end, element.notes or parent.notes, element.begin, category
            )
            if names == ["plurals", "item"]:
                forms.append(entry)
            else:
                yield entry

    def _around(self, form: Entry, category: str) -> tuple[str, str]:
        return f'<item quantity="{category}">', f"</item>{self._separator(form.begin)}"

    def _read(self, inside: str) -> str:
        def sign(match: re.Match[str]) -> str:
            if match[1]:
                return chr(int(match[1], 16))
            return _ANDROID_SIGNS.get(match[2], match[2])

        string = plain(inside).strip()
        if _is_quoted(string):
            string = string[1:-1]
        elif _REFERENCE.fullmatch(string):
            return ""
        else:
            string = " ".join(string.split())
        return _ANDROID_ESCAPE.sub(sign, string).strip()

    def _written(self, string: str, inside: str) -> str:
        marked_up = _marked_up(string, inside, _android)
        original = plain(inside).strip()
        if _is_quoted(original):
            quoted = original[1:-1]
            first = quoted[: len(quoted) - len(quoted.lstrip())]
            return f'"{first}{marked_up}{quoted[len(quoted.rstrip()) :]}"'
        blanks = _ESCAPED_BLANKS.fullmatch(original)
        first, last = (blanks[1], blanks[2]) if blanks else ("", "")
        if string[:1] in ("@", "?") and not first:
            first = "\\"  # else it would be a reference
        return f"{first}{marked_up}{last}"


class ResourceFile(StringTable):
    """.NET's resources. What has a type, as an image or a size has, stays."""

    kind = "resx"
    title = FILE_KINDS["resx"].title

    def _entries(self) -> Iterator[Entry]:
        comments = dict[str, str]()
        values = list[Entry]()
        for opened, end, _ in elements(self.text, self.wrong):
            names = [element.name for element in opened]
            if names[:2] != ["root", "data"] or len(names) != 3:
                continue
            data, element = opened[1], opened[2]
            label = data.attributes.get("name", "")
            if data.attributes.keys() & {"type", "mimetype"} or label.startswith(">>"):
                continue
            if element.name == "comment":
                comments[label] = plain(self.text[element.start : end]).strip()
            elif element.name == "value":
                values.append(Entry(label, element.start, end, ()))
        for entry in values:
            comment = comments.get(entry.id, "")
            yield entry._replace(notes=(comment,) if comment else ())

    def _read(self, inside: str) -> str:
        return plain(inside)

    def _written(self, string: str, inside: str) -> str:
        return _marked_up(string, inside, str)


def _new_form(form: Entry, category: str, around: Around) -> Entry:
    """A form like another one, in a category that the file lacks."""
    prefix, suffix = around(form, category)
    return form._replace(
        id=form.id.removesuffix(f"[{form.category}]") + f"[{category}]",
        category=category,
        insertion=Insertion(form.begin, prefix, suffix),
    )


def _is_quoted(string: str) -> bool:
    """Whether a string of Android stands in quotation marks, which keep its blanks."""
    return len(string) > 1 and string[0] == string[-1] == '"' and string[-2] != "\\"


def _android(string: str) -> str:
    """A text as a string of Android has it."""
    return re.sub(r"([\\'\"])", r"\\\1", string).replace("\n", "\\n").replace("\t", "\\t")


def _marked_up(string: str, inside: str, escape: Callable[[str], str]) -> str:
    """A string of `_plain` as XML, as what stood inside the element was written: with tags, with
    tags as text, or in CDATA. `escape`: what the format does to text outside of tags."""
    if CDATA in inside:
        return f"{CDATA}{_outside_tags(string, escape)}]]>"
    if any(token["name"] is not None for token in TOKEN.finditer(inside)):
        return _outside_tags(string, lambda text: escaped(escape(text)))
    return escaped(escape(string))


def _outside_tags(string: str, change: Callable[[str], str]) -> str:
    parts, end = list[str](), 0
    for token in TOKEN.finditer(string):
        if token["name"] is not None:
            parts += (change(string[end : token.start()]), token[0])
            end = token.end()
    return "".join([*parts, change(string[end:])])
