"""The entries of a PO file and where they stand in its text, by the grammar of GNU gettext
(gettext-tools/src/po-lex.c and po-gram-gen.y): a string may be in several pieces, keywords need no
line of their own, and a comment goes on to the end of its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tmnmt.errors import FormatError
from tmnmt.files.whole import BOM
from tmnmt.formats.clean import excerpt

Wrong = Callable[[int, str], FormatError]

_TOKEN = re.compile(
    r'[ \t\r\n\v\f]++|(?P<comment>#[^\n]*+)|"(?P<string>(?:[^"\\\n]|\\.)*+)"'
    r"|(?P<keyword>msgctxt|msgid_plural|msgid|msgstr)(?!\w)|(?P<domain>domain\b[^\n]*+)"
    r"|\[[ \t]*+(?P<number>\d{1,2})[ \t]*+\]"
)
_ESCAPE = re.compile(r'\\(?:[ntrbfva\\"]|[0-7]{1,3}|x[0-9A-Fa-f]{1,8})')
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a"}
_SIGNS = {sign: f"\\{letter}" for letter, sign in _ESCAPED.items()} | {"\\": "\\\\", '"': '\\"'}
_TO_ESCAPE = re.compile(r'[\n\t\r\b\f\v\a\\"]')


@dataclass(slots=True)
class Field:
    """A keyword with its string. `start`: of the keyword; `begin`, `end`: from the first quotation
    mark to the last; `comments`: where those in front of it begin and end."""

    keyword: str
    start: int
    comments: list[tuple[int, int]]
    number: int = -1  # of msgstr[n]
    begin: int = 0
    end: int = 0
    value: str = ""


@dataclass(slots=True)
class Entry:
    """A message and its fields."""

    start: int  # of its first keyword
    comments: list[tuple[int, int]]
    msgctxt: Field | None
    msgid: Field
    msgid_plural: Field | None = None
    msgstr: list[Field] = field(default_factory=list)

    @property
    def is_header(self) -> bool:
        return not self.msgid.value and self.msgctxt is None


def unescaped(string: str) -> str:
    """What stands between quotation marks, as text. Unknown escapes stay as they are.

    string: what stands there."""
    return _ESCAPE.sub(_sign, string) if "\\" in string else string


def escaped(text: str) -> str:
    """A text as it stands between quotation marks.

    text: the text."""
    return _TO_ESCAPE.sub(lambda match: _SIGNS[match[0]], text)


def _sign(match: re.Match[str]) -> str:
    escape = match[0][1:]
    if escape[0] == "x" or escape.isdecimal():
        return chr(int(escape.removeprefix("x"), 16 if escape[0] == "x" else 8) & 0xFF)
    return _ESCAPED.get(escape, escape)


def entries(text: str, wrong: Wrong) -> Iterator[Entry]:
    """The entries in order, without obsolete ones.

    text: the file.
    wrong: makes the error of a place and of what is wrong there."""
    msgctxt = entry = None
    for po_field in _fields(text, wrong):
        if po_field.keyword in ("msgid", "msgctxt") and entry is not None:
            yield _whole(entry, wrong)
            entry = None
        if msgctxt is not None and po_field.keyword != "msgid":
            raise wrong(msgctxt.start, "msgctxt without msgid")
        if po_field.keyword == "msgctxt":
            msgctxt = po_field
        elif po_field.keyword == "msgid":
            first = msgctxt or po_field
            comments = [*msgctxt.comments, *po_field.comments] if msgctxt else po_field.comments
            entry, msgctxt = Entry(first.start, comments, msgctxt, po_field), None
        else:
            _add(entry, po_field, wrong)
    if msgctxt is not None:
        raise wrong(msgctxt.start, "msgctxt without msgid")
    if entry is not None:
        yield _whole(entry, wrong)


def _add(entry: Entry | None, po_field: Field, wrong: Wrong) -> None:
    """Adds a msgid_plural or msgstr to its entry."""
    if entry is None:
        raise wrong(po_field.start, f"{po_field.keyword} without msgid")
    if po_field.keyword == "msgid_plural":
        if entry.msgid_plural is not None or entry.msgstr:
            raise wrong(po_field.start, "a second msgid_plural, or one behind msgstr")
        entry.msgid_plural = po_field
        return
    expected = -1 if entry.msgid_plural is None else len(entry.msgstr)
    if po_field.number != expected or (entry.msgstr and expected < 0):
        allowed = "one msgstr" if expected < 0 else f"msgstr[{expected}]"
        raise wrong(po_field.start, f"another msgstr than was expected here; allowed: {allowed}")
    entry.msgstr.append(po_field)


def _whole(entry: Entry, wrong: Wrong) -> Entry:
    if not entry.msgstr:
        raise wrong(entry.start, "msgid without msgstr")
    return entry


def _fields(text: str, wrong: Wrong) -> Iterator[Field]:
    comments, last, pieces = list[tuple[int, int]](), None, list[str]()
    offset = 1 if text.startswith(BOM) else 0
    while token := _TOKEN.match(text, offset):
        kind, offset = token.lastgroup, token.end()
        if kind == "comment":
            if token[0].startswith("#~"):
                comments = []  # they are those of an obsolete entry
            else:
                comments.append(token.span())
        elif kind == "keyword":
            if last is not None:
                yield _complete(last, pieces, wrong)
            last, pieces = Field(token["keyword"], token.start(), comments), []
            comments = []
        elif kind == "string":
            if last is None:
                raise wrong(token.start(), "a text without msgid or msgstr")
            last.begin, last.end = last.begin if pieces else token.start(), offset
            pieces.append(token["string"])
        elif kind == "domain":
            comments = []
        elif kind == "number":
            if last is None or last.keyword != "msgstr" or last.number >= 0 or pieces:
                raise wrong(token.start(), f"{token[0]} stands behind no msgstr")
            last.number = int(token["number"])
    if offset < len(text):
        raise wrong(offset, _unknown(text, offset))
    if last is not None:
        yield _complete(last, pieces, wrong)


def _complete(last: Field, pieces: list[str], wrong: Wrong) -> Field:
    if not pieces:
        raise wrong(last.start, f"{last.keyword} without a text")
    last.value = unescaped("".join(pieces))
    return last


def _unknown(text: str, offset: int) -> str:
    if text[offset] == BOM:
        return "a byte-order mark in the middle of the file"
    if text[offset] == '"':
        return "a text without a quotation mark at its end"
    snippet = excerpt(text[offset : offset + 60].split("\n")[0])
    allowed = '#, msgctxt, msgid, msgid_plural, msgstr, "text"'
    return f"{snippet!r}: no part of a PO file; allowed: {allowed}"
