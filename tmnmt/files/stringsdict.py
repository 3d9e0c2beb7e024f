"""Apple's .stringsdict: a property list in XML with texts that have plural forms (Xcode
documentation, *Localizing strings that contain plurals*).

    <key>%d files</key><dict>
      <key>NSStringLocalizedFormatKey</key><string>%#@files@</string>
      <key>files</key><dict>
        <key>NSStringFormatSpecTypeKey</key><string>NSStringPluralRuleType</string>
        <key>one</key><string>%d file</string> ...

The file is in the source language, and what is written in the target language, with the plural
forms that this one has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.apple_strings import APPLE_FINDERS
from tmnmt.files.plurals import CATEGORIES
from tmnmt.files.string_tables import Entry, StringTable
from tmnmt.files.xml_places import Element, elements, escaped, plain

_NO_TEXTS = ("NSStringFormatSpecTypeKey", "NSStringFormatValueTypeKey")
_RULE = re.compile(r"%(?:\d{1,2}\$)?#@\w+@")
_FORMAT = "NSStringLocalizedFormatKey"


class StringsDict(StringTable):
    """A table of texts with plural forms."""

    kind = "stringsdict"
    title = FILE_KINDS["stringsdict"].title
    finders = APPLE_FINDERS

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the name."""
        return FILE_KINDS[cls.kind].has_name(path) and not head.startswith(b"bplist")

    def _entries(self) -> Iterator[Entry]:
        keys = dict[int, tuple[str, int]]()  # the last key of each <dict>, by where that begins
        forms = list[Entry]()
        for path, end, _ in elements(self.text, self.wrong):
            element = path[-1]
            if element.name == "dict":
                yield from self._with_needed_forms(forms, self._around)
                forms = []
            if path[-2:-1] == [] or path[-2].name != "dict":
                continue
            if element.name == "key":
                keys[path[-2].begin] = plain(self.text[element.start : end]), element.begin
            elif element.name == "string" and path[-2].begin in keys:
                entry = self._entry(path, end, keys)
                if entry.category:
                    forms.append(entry)
                elif not entry.id.endswith(_NO_TEXTS) and self._has_words(entry):
                    yield entry

    def _has_words(self, entry: Entry) -> bool:
        """Whether a text is more than the names of plural rules, as "%#@files@" is not."""
        text = _RULE.sub("", plain(self.text[entry.start : entry.end]))
        return any(map(str.isalnum, text))

    def _entry(self, path: list[Element], end: int, keys: dict[int, tuple[str, int]]) -> Entry:
        """The text of a string, whatever it is."""
        element, names = path[-1], [keys[part.begin][0] for part in path if part.begin in keys]
        key, begin = keys[path[-2].begin]
        category = key if key in CATEGORIES else ""
        label = ".".join(names[:-1] if key == _FORMAT and names[:-1] else names)
        if category:
            label = f"{'.'.join(names[:-1])}[{category}]"
        return Entry(label, element.start, end, element.notes, begin, category)

    def _around(self, form: Entry, category: str) -> tuple[str, str]:
        separator = self._separator(form.begin)
        return f"<key>{category}</key>{separator}<string>", f"</string>{separator}"

    def _read(self, inside: str) -> str:
        return plain(inside)

    def _written(self, string: str, inside: str) -> str:
        return escaped(string)
