"""Qt Linguist's .ts (Qt Linguist Manual, *TS File Format*): messages in contexts, each with its
translation. A unit is one translation; of a message with numbers there are as many as Qt has for
the language.

- A translation that somebody has to look at is `type="unfinished"`. So is a message that has some
  of its forms and lacks others. Messages that the program has lost (`vanished`, `obsolete`) stay.
- Where the file does not say its language yet, it is set with the first translation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.plurals import Plurals, plurals_of, plurals_of_language
from tmnmt.files.po_flags import finders_of
from tmnmt.files.states import state_of_all
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, State, Unit
from tmnmt.files.whole import Edit, WholeFile
from tmnmt.files.xml_places import (
    TOKEN,
    Element,
    attributes_of,
    check,
    elements,
    encoding_of,
    escaped,
    plain,
)
from tmnmt.formats.languages import is_code, locale_name, normal_code

_ROOT = re.compile(rb"<!DOCTYPE\s+TS\b|<TS[\s>]")
_FINDERS = finders_of(["qt-format"])
_TYPE = re.compile(r"""\s+type\s*=\s*(?:"[^"]*"|'[^']*')""")
_NOTES = ("extracomment", "translatorcomment")
_BEFORE_TRANSLATION = ("source", "oldsource", "comment", "oldcomment", *_NOTES, "location")
_INDENT = "    "
# where Qt has another number of forms than gettext, as `lupdate` of Qt 6.4 writes them
_FORMS_OF_QT = {
    code: plurals_of(formula)
    for formula, codes in (
        ("nplurals=1; plural=0;", "fa hu tr"),
        ("nplurals=2; plural=(n != 1);", "is lo"),
    )
    for code in codes.split()
}


class _Place(NamedTuple):
    """An element of a message: its start tag begins at `begin`, its inside is from `start` to
    `end`, and it stops at `stop`."""

    attributes: dict[str, str]
    begin: int
    start: int
    end: int
    stop: int


@dataclass(slots=True)
class _Message:
    """A message while it is read, and when it is whole."""

    begin: int
    end: int = 0  # of its inside
    name: str = ""
    has_numbers: bool = False
    parts: dict[str, _Place] = field(default_factory=dict)  # its elements, by name
    forms: list[_Place] = field(default_factory=list)


class _Slot(NamedTuple):
    """A unit's place: a message, and which form of it; the name of its context."""

    message: _Message
    form: int
    context: str


class QtFile(WholeFile[_Slot]):
    """A .ts file of Qt Linguist."""

    kind = "qt"
    title = FILE_KINDS["qt"].title
    errors = "xmlcharrefreplace"
    is_memory = is_bilingual = True
    marks_drafts = True

    def __init__(self, path: Path, src_lang: str = "", tgt_lang: str = "") -> None:
        super().__init__(path, src_lang, tgt_lang)
        attributes = attributes_of(self._root["attributes"]) if self._root else {}
        if is_code(source := normal_code(attributes.get("sourcelanguage", ""))):
            self.src_lang = source
        if is_code(target := normal_code(attributes.get("language", ""))):
            self.tgt_lang = target

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the name and what it begins with: programs in TypeScript and videos are called .ts,
        too."""
        return FILE_KINDS[cls.kind].has_name(path) and _ROOT.search(head) is not None

    def _encoding(self, data: bytes) -> str:
        return encoding_of(data)

    @cached_property
    def _root(self) -> re.Match[str] | None:
        """The start tag of the file's root element."""
        return next((token for token in TOKEN.finditer(self.text) if token["name"]), None)

    # --- reading

    @cached_property
    def _slots(self) -> list[_Slot]:
        check(self.text, self.wrong)
        return [
            _Slot(message, form, context)
            for message, context in self._messages()
            for form in range(self._count(message))
        ]

    def _messages(self) -> Iterator[tuple[_Message, str]]:
        """The messages that the program has, each with the name of its context."""
        context, message = "", None
        for path, end, stop in elements(self.text, self.wrong):
            names = [element.name for element in path]
            if names[-2:] == ["context", "name"]:
                context = plain(self.text[path[-1].start : end])
            if names[-1] == "message":
                message = _of(path[-1], message)
                message.end = end
                if self._is_alive(message):
                    yield message, context if "context" in names else ""
                message = None
            elif "message" in names:
                message = _of(path[names.index("message")], message)
                place = _Place(path[-1].attributes, path[-1].begin, path[-1].start, end, stop)
                if names[-2:] == ["translation", "numerusform"]:
                    message.forms.append(place)
                elif names[-2] == "message":
                    message.parts[names[-1]] = place

    def _is_alive(self, message: _Message) -> bool:
        translation = message.parts.get("translation")
        kind = translation.attributes.get("type", "") if translation else ""
        return "source" in message.parts and kind not in ("vanished", "obsolete")

    def _count(self, message: _Message) -> int:
        if not message.has_numbers:
            return 1
        return self._plurals.count if self._plurals else max(1, len(message.forms))

    @cached_property
    def _plurals(self) -> Plurals | None:
        """None: the language's are not known."""
        language = self.tgt_lang.partition("-")[0]
        return _FORMS_OF_QT.get(language) or plurals_of_language(self.tgt_lang)

    def _unit(self, slot: _Slot) -> Unit:
        message, form, context = slot
        target = self._target(message, form)
        translation = message.parts.get("translation")
        is_unfinished = translation is None or translation.attributes.get("type") == "unfinished"
        state: State = "new" if not target else "draft" if is_unfinished else "translated"
        comment = self._part(message, "comment")
        unit = unit_of(
            self._part(message, "source"),
            target,
            _FINDERS,
            state=state,
            id=message.name,
            context=": ".join(filter(None, (context, comment))),
            notes=tuple(filter(None, [comment, *(self._part(message, name) for name in _NOTES)])),
            line=self.line(message.begin),
        )
        unit = replace(unit, plural=self._plural(message, form))
        if problem := self._problem(message):
            return replace(unit, state="locked", problem=problem, confirmation="none")
        return unit

    def _part(self, message: _Message, name: str) -> str:
        place = message.parts.get(name)
        return plain(self.text[place.start : place.end]) if place else ""

    def _target(self, message: _Message, form: int) -> str:
        if not message.has_numbers:
            return self._part(message, "translation")
        if form >= len(message.forms):
            return ""
        place = message.forms[form]
        return plain(self.text[place.start : place.end])

    def _plural(self, message: _Message, form: int) -> str:
        if not message.has_numbers:
            return ""
        count = self._count(message)
        return (
            self._plurals.describe(form) if self._plurals else f"plural form {form + 1} of {count}"
        )

    def _problem(self, message: _Message) -> str:
        """Why a message cannot be written."""
        inside = self.text[message.begin : message.end]
        if "<lengthvariant" in inside:
            return "translations of several lengths"
        return "a byte that XML has no character for" if "<byte" in inside else ""

    # --- writing

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        edits, form_fillings = list[Edit](), dict[int, Filling]()
        for (message, form, _), filling in zip(self._slots, fillings, strict=True):
            if filling is not None:
                form_fillings[form] = filling
            if form == self._count(message) - 1 and form_fillings:
                edits.append(self._filled(message, form_fillings))
                form_fillings = {}
        return [*self._language_edits(), *edits] if edits else []

    def _language_edits(self) -> Iterator[Edit]:
        """The language of the file, where it does not say it."""
        if self._root and self.tgt_lang and "language" not in attributes_of(self._root[0]):
            end = self._root.end("attributes")
            yield Edit(end, end, f' language="{locale_name(self.tgt_lang)}"')

    def _filled(self, message: _Message, form_fillings: dict[int, Filling]) -> Edit:
        """The translation of a message with these forms, and with the mark that goes with them."""
        strings = [
            string_of(form_fillings[form].target)
            if form in form_fillings
            else self._target(message, form)
            for form in range(self._count(message))
        ]
        is_draft = state_of_all(filling.origin for filling in form_fillings.values()).is_draft
        mark = ' type="unfinished"' if is_draft or not all(strings) else ""
        place = message.parts.get("translation")
        if place is None:
            last = max(
                message.parts[name].stop for name in _BEFORE_TRANSLATION if name in message.parts
            )
            indent = self._indent(message.parts["source"].begin)
            element = self._element(message, strings, mark, indent)
            return Edit(last, last, f"{self.newline}{indent}{element}")
        tag = TOKEN.match(self.text, place.begin)
        attributes = _TYPE.sub("", tag["attributes"]).rstrip() if tag else ""
        indent = self._indent(place.begin)
        return Edit(
            place.begin, place.stop, self._element(message, strings, attributes + mark, indent)
        )

    def _element(
        self, message: _Message, strings: Sequence[str], attributes: str, indent: str
    ) -> str:
        inside = _marked_up(strings[0])
        if message.has_numbers:
            newline = f"{self.newline}{indent}"
            inside = "".join(
                f"{newline}{_INDENT}<numerusform>{_marked_up(string)}</numerusform>"
                for string in strings
            )
            inside += newline
        return f"<translation{attributes}>{inside}</translation>"

    def _indent(self, offset: int) -> str:
        """The blanks in front of what stands there, where it begins its line."""
        blanks = self.text[self.line_start(offset) : offset]
        return "" if blanks.strip() else blanks


def _of(element: Element, message: _Message | None) -> _Message:
    """The message that an element begins, as it was begun before."""
    if message is not None:
        return message
    has_numbers = element.attributes.get("numerus") == "yes"
    return _Message(element.begin, name=element.attributes.get("id", ""), has_numbers=has_numbers)


def _marked_up(string: str) -> str:
    """A string as Qt writes it."""
    return escaped(string).replace('"', "&quot;").replace("'", "&apos;")
