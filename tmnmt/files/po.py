"""PO and POT, the message catalogues of GNU gettext (its manual, *The Format of PO Files*).

A unit is one msgstr; of a message with plurals there are as many as the header's Plural-Forms say.
What the manual leaves to the tool is decided so:
- The source of the plural form that the number 1 has is msgid; of every other, and of one that all
  numbers have, it is msgid_plural.
- A translation that somebody has to look at is marked fuzzy. So is a message with plurals that has
  some of its forms and lacks others: without the mark msgfmt counts it as translated. A message is
  no longer fuzzy when all its forms are full matches or confirmed. Its comments with the previous
  msgid go, since they belong to the translation that goes. That of a fuzzy match gets the source of
  the match as its previous msgid, as msgmerge writes it.
- The comments of translators, "# ...", are comments of the unit: those that stand together are one,
  and "#" alone stands between two. New ones go behind them. A form of a plural has those of its
  message.
- A msgstr begins and ends with a line end where its msgid does, as `msgfmt -c` wants it.
- Lines are broken as in the file: at column 79, or nowhere but behind a line end where the file has
  longer lines.
- Filling in a target sets Language, charset and Plural-Forms of the header where a template left
  them open. Plural-Forms is added where it is missing and there are plurals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tmnmt.codes.record import Text
from tmnmt.errors import FormatError, Reason, short_repr
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.plurals import Plurals, plurals_of, plurals_of_language
from tmnmt.files.po_flags import finders_of, max_length_of
from tmnmt.files.po_lines import WIDTH, is_wrapped, lines_of
from tmnmt.files.po_syntax import Entry, Field, entries, escaped
from tmnmt.files.states import state_of_all
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Comment, Filling, State, Unit
from tmnmt.files.whole import Edit, WholeFile
from tmnmt.formats.clean import excerpt
from tmnmt.formats.encoding import byte_order_mark, charset
from tmnmt.formats.languages import locale_name, normal_code

_CHARSET = re.compile(rb'"Content-Type:[^"\n]*?charset=([\w.:-]+)', re.IGNORECASE)
_TO_BE_SET = "CHARSET"  # what xgettext writes into a template
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[_-][A-Za-z0-9]{2,4})*")
_FLAG = re.compile(r"[^\s,]+")
_HEADER_EXCERPT = 100_000  # bytes


class _Slot(NamedTuple):
    """A unit's place: an entry, and which msgstr of it."""

    entry: Entry
    form: int


class PoFile(WholeFile[_Slot]):
    """A PO or POT file. The languages given are those of a header that names none. FormatError:
    it cannot be read."""

    kind = "po"
    title = FILE_KINDS["po"].title
    is_memory = is_bilingual = True
    marks_drafts = takes_comments = True

    def __init__(self, path: Path, src_lang: str = "", tgt_lang: str = "") -> None:
        super().__init__(path, src_lang, tgt_lang)
        header = self._header
        if language := _LANGUAGE.match(header.get("language", "")):
            self.tgt_lang = normal_code(language[0])
        if language := _LANGUAGE.match(header.get("x-source-language", "")):
            self.src_lang = normal_code(language[0])

    def _encoding(self, data: bytes) -> str:
        marked, length = byte_order_mark(data)
        if length:
            return marked
        declared = _CHARSET.search(data[:_HEADER_EXCERPT])
        name = declared[1].decode("ascii", "replace") if declared else _TO_BE_SET
        if name == _TO_BE_SET:
            return "utf-8"
        encoding = charset(name)
        if not encoding:
            raise FormatError(
                f"{self.path}: unknown charset {excerpt(name)!r} in the header; "
                "allowed: a character set, as UTF-8"
            )
        return "utf-8" if encoding == "ascii" else encoding

    # --- reading

    @cached_property
    def _entries(self) -> list[Entry]:
        entries_ = list(entries(self.text, self.wrong))
        if not entries_:
            raise FormatError("{file}: a PO file without a message: no msgid", file=str(self.path))
        return entries_

    @cached_property
    def _header(self) -> dict[str, str]:
        """The fields of the header, by their names in lower case."""
        header = next((entry for entry in self._entries if entry.is_header), None)
        lines = header.msgstr[0].value.split("\n") if header else []
        fields = [line.partition(":") for line in lines]
        return {name.strip().lower(): value.strip() for name, _, value in fields}

    @cached_property
    def _plurals(self) -> Plurals | None:
        """None: neither the header nor the language says it."""
        formula = self._header.get("plural-forms", "")
        if not formula or "INTEGER" in formula:
            return plurals_of_language(self.tgt_lang)
        try:
            return plurals_of(formula)
        except ValueError as error:
            raise FormatError(
                f"{self.path}: Plural-Forms of the header: {error}; allowed: "
                "nplurals=2; plural=(n != 1);"
            ) from error

    @cached_property
    def _slots(self) -> list[_Slot]:
        return [
            _Slot(entry, form)
            for entry in self._entries
            if not entry.is_header
            for form in range(self._forms(entry))
        ]

    def _forms(self, entry: Entry) -> int:
        if entry.msgid_plural is None:
            return 1
        return self._plurals.count if self._plurals else len(entry.msgstr)

    def _unit(self, slot: _Slot) -> Unit:
        entry, form = slot
        flags = self._flags(entry)
        finders = finders_of(flags)
        target = entry.msgstr[form].value if form < len(entry.msgstr) else ""
        state: State = "new" if not target else "draft" if "fuzzy" in flags else "translated"
        unit = unit_of(
            self._source(entry, form).value,
            target,
            finders,
            state=state,
            context=entry.msgctxt.value if entry.msgctxt else "",
            notes=tuple(self._notes(entry)),
            line=self.line(entry.start),
        )
        return replace(
            unit,
            plural=self._plural(entry, form),
            max_length=max_length_of(flags),
            comments=tuple(map(Comment, self._translator_comments(entry))),
        )

    def _plural(self, entry: Entry, form: int) -> str:
        if entry.msgid_plural is None:
            return ""
        count = self._forms(entry)
        return (
            self._plurals.describe(form) if self._plurals else f"plural form {form + 1} of {count}"
        )

    def _source(self, entry: Entry, form: int) -> Field:
        if entry.msgid_plural is None:
            return entry.msgid
        singular = self._plurals.singular if self._plurals else 0
        return entry.msgid if form == singular else entry.msgid_plural

    def _comments(self, entry: Entry, mark: str) -> Iterator[tuple[int, int]]:
        return (span for span in entry.comments if self.text.startswith(mark, span[0]))

    def _flags(self, entry: Entry) -> list[str]:
        return [
            flag
            for start, end in self._comments(entry, "#,")
            for flag in _FLAG.findall(self.text[start + 2 : end])
        ]

    def _notes(self, entry: Entry) -> Iterator[str]:
        """What programmers wrote."""
        for start, end in self._comments(entry, "#."):
            if note := self.text[start + 2 : end].strip():
                yield note

    def _translator_comments(self, entry: Entry) -> Iterator[str]:
        lines = list[str]()
        for start, end in entry.comments:
            line = self.text[start + 1 : end].strip() if self._is_translators(start) else ""
            if line:
                lines.append(line)
            elif lines:
                yield "\n".join(lines)
                lines = []
        if lines:
            yield "\n".join(lines)

    def _is_translators(self, start: int) -> bool:
        return self.text[start + 1 : start + 2] not in (".", ":", ",", "|")

    # --- writing

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        edits = list[Edit]()
        form_fillings = list[tuple[int, Filling]]()
        for (entry, form), filling in zip(self._slots, fillings, strict=True):
            if filling is not None:
                form_fillings.append((form, filling))
            if form == self._forms(entry) - 1 and form_fillings:
                edits += self._filled(entry, form_fillings)
                form_fillings = []
        return sorted([*self._set(), *edits]) if edits else []

    def refused(self, unit: Unit, target: Text) -> str:
        """Also characters that the file's character set lacks."""
        try:
            string_of(target).encode(self.encoding)
        except UnicodeEncodeError as error:
            return Reason(
                "{encoding} lacks {sign}; `msgconv -t UTF-8` converts the file",
                encoding=self.encoding.upper(),
                sign=short_repr(error.object[error.start]),
            )
        return unit.problem

    def _can_write(self, string: str) -> bool:
        try:
            string.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def _filled(self, entry: Entry, form_fillings: list[tuple[int, Filling]]) -> Iterator[Edit]:
        """The entry with these targets, and with the marks that go with them."""
        comments = [comment for _, filling in form_fillings for comment in filling.comments]
        if comments:
            yield self._commented(entry, dict.fromkeys(comments))
        form_fillings = [pair for pair in form_fillings if pair[1].has_target]
        if not form_fillings:
            return
        strings = {form: self._target(entry, filling) for form, filling in form_fillings}
        is_draft = state_of_all(filling.origin for _, filling in form_fillings).is_draft
        exact = not is_draft and not self._lacks_forms(entry, strings)
        whole = len(form_fillings) == self._forms(entry)
        fuzzy = "fuzzy" in self._flags(entry)
        previous = self._previous(entry, form_fillings) if whole else ""
        if not exact and not fuzzy:
            yield self._marked_fuzzy(entry)
        if previous:
            yield Edit(entry.start, entry.start, previous)
        for start, end in entry.comments:
            if whole and self.text.startswith("#|", start):
                yield Edit(*self._line_of(start, end), "")
            elif whole and exact and fuzzy and self.text.startswith("#,", start):
                yield self._not_fuzzy(start, end)
        for form, old in enumerate(entry.msgstr):
            if form in strings:
                yield Edit(old.begin, old.end, self._lines_of(strings[form], self._keyword(old)))
            elif form >= self._forms(entry) and not old.value:
                yield Edit(*self._line_of(old.start, old.end), "")
        if new_forms := "".join(self._new_forms(entry, strings)):
            yield Edit(entry.msgstr[-1].end, entry.msgstr[-1].end, new_forms)

    def _commented(self, entry: Entry, comments: Iterable[Comment]) -> Edit:
        """The entry with further comments. Signs that the file's character set lacks are written by
        their numbers."""
        existing = [span for span in entry.comments if self._is_translators(span[0])]
        lines = list[str]()
        for comment in comments:
            lines += ["#"] if existing or lines else []
            lines += [f"# {line}".rstrip() for line in comment.line.splitlines()]
        text = "".join(line + self._newline for line in lines)
        text = text.encode(self.encoding, "xmlcharrefreplace").decode(self.encoding)
        first = entry.comments[0][0] if entry.comments else entry.start
        position = self._line_of(*existing[-1])[1] if existing else first
        return Edit(position, position, text)

    def _lacks_forms(self, entry: Entry, strings: dict[int, str]) -> bool:
        """Whether the entry, filled with these strings, has some of its forms and lacks others."""
        new_strings = {form: old.value for form, old in enumerate(entry.msgstr)} | strings
        has_form = [bool(new_strings.get(form)) for form in range(self._forms(entry))]
        return any(has_form) and not all(has_form)

    def _new_forms(self, entry: Entry, strings: dict[int, str]) -> Iterator[str]:
        """The plural forms that the file does not have yet, as far as the last that is filled."""
        for form in range(len(entry.msgstr), max(strings) + 1):
            keyword = f"msgstr[{form}]"
            yield self._newline + keyword + " " + self._lines_of(strings.get(form, ""), keyword)

    def _keyword(self, old: Field) -> str:
        return self.text[old.start : old.begin].strip()

    def _target(self, entry: Entry, filling: Filling) -> str:
        """The target, with line ends at its ends where the msgid has them."""
        string, msgid = string_of(filling.target), entry.msgid.value
        if not string:
            return ""
        if msgid.startswith("\n") != string.startswith("\n"):
            string = "\n" + string if msgid.startswith("\n") else string.lstrip("\n")
        if msgid.endswith("\n") != string.endswith("\n"):
            string = string + "\n" if msgid.endswith("\n") else string.rstrip("\n")
        return string

    def _marked_fuzzy(self, entry: Entry) -> Edit:
        flags = next(self._comments(entry, "#,"), None)
        if flags:
            return Edit(flags[0] + 2, flags[0] + 2, " fuzzy,")
        position = next(self._comments(entry, "#|"), (entry.start, 0))[0]
        return Edit(position, position, f"#, fuzzy{self._newline}")

    def _previous(self, entry: Entry, form_fillings: list[tuple[int, Filling]]) -> str:
        """The comments with what a message was whose translation this one has now: the sources of
        its fuzzy and adapted matches; "" where it has none, or the file's character set lacks a
        sign of them."""
        sources = {
            self._source(entry, form).keyword: string_of(Text(match.src, match.src_codes))
            for form, filling in form_fillings
            if filling.origin in ("fuzzy", "adapted")
            for match in (candidate.segment for candidate in filling.matches[:1])
        }
        if not sources or not self._can_write("".join(sources.values())):
            return ""
        fields = [field for field in (entry.msgid, entry.msgid_plural) if field is not None]
        lines = [
            f"#| {line}"
            for field in fields
            for line in self._quoted(field.keyword, sources.get(field.keyword, field.value))
        ]
        return self._newline.join([*lines, ""])

    def _quoted(self, keyword: str, string: str) -> list[str]:
        """A keyword with its string, in lines that have room for the mark of a comment."""
        width = self._width and self._width - len("#| ") - 1  # a blank at the end counts there
        first, *rest = lines_of(string, keyword, width)
        return [f"{keyword} {first}", *rest]

    def _not_fuzzy(self, start: int, end: int) -> Edit:
        flags = [flag for flag in _FLAG.findall(self.text[start + 2 : end]) if flag != "fuzzy"]
        if not flags:
            return Edit(*self._line_of(start, end), "")
        return Edit(start, start + len(self.text[start:end].rstrip()), "#, " + ", ".join(flags))

    def _line_of(self, start: int, end: int) -> tuple[int, int]:
        """The same with its line end, where it has a line of its own."""
        line_end = self.text.find("\n", end) + 1
        return start, line_end if line_end and not self.text[end:line_end].strip() else end

    # --- lines

    @cached_property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text[:_HEADER_EXCERPT] else "\n"

    @cached_property
    def _width(self) -> int | None:
        return WIDTH if is_wrapped(self.text) else None

    def _lines_of(self, string: str, keyword: str) -> str:
        return self._newline.join(lines_of(string, keyword, self._width))

    # --- the header

    @cached_property
    def _has_plurals(self) -> bool:
        return any(entry.msgid_plural for entry in self._entries)

    def _set(self) -> Iterator[Edit]:
        """What is still to be set in the header."""
        header = next((entry for entry in self._entries if entry.is_header), None)
        if header is None:
            return
        place = header.msgstr[0]
        header_text = self.text[place.begin : place.end]
        if self._plurals and "plural-forms" not in self._header and self._has_plurals:
            field = escaped(f"Plural-Forms: {self._plurals.formula}\n")
            yield Edit(place.end, place.end, f'{self._newline}"{field}"')
        for pattern, value in self._to_be_set():
            if value and (match := re.search(pattern, header_text)):
                yield Edit(place.begin + match.start(1), place.begin + match.end(1), value)

    def _to_be_set(self) -> Iterator[tuple[str, str]]:
        yield r'"Language:( *)\\n', f" {locale_name(self.tgt_lang)}" if self.tgt_lang else ""
        yield r'"Content-Type:[^"\n]*charset=(CHARSET)', "UTF-8"
        yield (
            r'"Plural-Forms: (nplurals=INTEGER; plural=EXPRESSION;)',
            self._plurals.formula if self._plurals else "",
        )
