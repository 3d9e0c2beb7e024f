"""XML that is changed in place: where its elements stand in the text of a file, and their texts.

A parser decides first whether the text is well-formed. Declarations of entities are refused, and
nothing outside the file is ever read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple
from xml.parsers import expat

from tmnmt.errors import FormatError, short_repr
from tmnmt.files.whole import BOM, Wrong
from tmnmt.formats.encoding import byte_order_mark

CDATA = "<![CDATA["
MAX_DEPTH = 200  # elements inside one another
_ENCODING = re.compile(
    rb"""\A(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding=["']([A-Za-z0-9._-]{1,40})["']"""
)
_DECLARATION = re.compile(rf"\A{BOM}?<\?xml[^>]*\?>")
_ENTITY = re.compile(r"<!(?:ENTITY|ATTLIST|ELEMENT)\b")
TOKEN = re.compile(
    r"<!--(?P<comment>[\s\S]*?)-->|<!\[CDATA\[(?P<cdata>[\s\S]*?)\]\]>|<\?[\s\S]*?\?>"
    r"|<!(?:[^<>\"']|\"[^\"]*\"|'[^']*')*+>"
    r"|<(?P<end>/)?(?P<name>[^\W\d][\w.:-]*+)"
    r"(?P<attributes>(?:[^<>\"'/]|/(?!>)|\"[^\"]*\"|'[^']*')*+)"
    r"(?P<empty>/)?>"
)
_ATTRIBUTE = re.compile(r"([A-Za-z_][\w.:-]*)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


class Element(NamedTuple):
    """The beginning of an element. `begin`: where its start tag begins; `start`: what is inside
    begins there; `notes`: the comments right in front of it."""

    name: str
    attributes: dict[str, str]
    begin: int
    start: int
    notes: tuple[str, ...]


class Ended(NamedTuple):
    """An element that has ended. `path`: the elements around it, and itself as the last; the list
    changes while one goes on. `end`: where its inside ends; `stop`: where its end tag ends, or the
    one tag of an empty element."""

    path: list[Element]
    end: int
    stop: int


def encoding_of(data: bytes) -> str:
    """The encoding that a byte-order mark or the declaration says; else UTF-8.

    data: the beginning of a file."""
    marked, length = byte_order_mark(data)
    declared = _ENCODING.match(data)
    return marked if length or declared is None else declared[1].decode().lower()


def check(text: str, wrong: Wrong) -> None:
    """Checks that a text is XML which can be read safely.

    text: the text.
    wrong: makes the error of a place and of what is wrong there: no XML, declarations of entities,
    more than 200 elements inside one another."""
    if declaration := _ENTITY.search(text):
        raise wrong(declaration.start(), "a DOCTYPE with declarations in it, which are not read")
    depth = 0

    def begin(_name: str, _attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise _Deep

    def finish(_name: str) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.EndElementHandler = begin, finish
    # a declaration with another encoding says nothing of a text
    declaration_end = match.end() if (match := _DECLARATION.match(text)) else text.startswith(BOM)
    try:
        parser.Parse(text[declaration_end:].encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        line = text.count("\n", 0, declaration_end) + error.lineno
        raise wrong(_line_start(text, line), f"no XML: {expat.ErrorString(error.code)}") from error
    except _Deep:
        line = text.count("\n", 0, declaration_end) + parser.CurrentLineNumber
        problem = f"more than {MAX_DEPTH} elements inside one another"
        raise wrong(_line_start(text, line), problem) from None


class _Deep(FormatError):
    """Elements that are too deep inside one another."""


def _line_start(text: str, line: int) -> int:
    """Where a line begins, by its number from 1."""
    offset = 0
    for _ in range(line - 1):
        offset = text.find("\n", offset) + 1
    return offset


def elements(text: str, wrong: Wrong) -> Iterator[Ended]:
    """Every element of a text, when it ends.

    text: the text, which `check` has found well-formed.
    wrong: makes an error of a place and of what is wrong there.

    Raises what `wrong` makes of a tag that is well-formed and yet is not read here."""
    opened, notes = list[Element](), list[str]()
    for token in TOKEN.finditer(text):
        if token["comment"] is not None:
            notes.append(" ".join(token["comment"].split()))
        if token["name"] is None:
            continue
        if token["end"]:
            if not opened or opened[-1].name != token["name"]:
                raise wrong(token.start(), f"the tag {short_repr(token[0])} cannot be read here")
            yield Ended(opened, token.start(), token.end())
            opened.pop()
        else:
            comments = tuple(filter(None, notes))
            attributes = attributes_of(token["attributes"])
            opened.append(Element(token["name"], attributes, token.start(), token.end(), comments))
            if token["empty"]:
                yield Ended(opened, token.end(), token.end())
                opened.pop()
        notes = []


def attributes_of(inside: str) -> dict[str, str]:
    """The attributes of a tag, by their names.

    inside: what stands behind the tag's name."""
    return {
        match[1]: unescape(match[2] if match[2] is not None else match[3])
        for match in _ATTRIBUTE.finditer(inside)
    }


def plain(inside: str) -> str:
    """The text of an element, with tags as they are written, without comments, and with entities as
    characters.

    inside: what is inside the element."""
    parts, end = list[str](), 0
    for token in TOKEN.finditer(inside):
        parts.append(unescape(inside[end : token.start()]))
        if token["cdata"] is not None:
            parts.append(token["cdata"])
        elif token["name"] is not None:
            parts.append(token[0])
        end = token.end()
    return "".join([*parts, unescape(inside[end:])])


def escaped(string: str) -> str:
    """A string as the text of an element.

    string: the string."""
    return string.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
