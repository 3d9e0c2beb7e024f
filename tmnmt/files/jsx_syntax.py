"""Where tags of JSX and expressions in braces stand in a file of MDX (mdxjs.com, *What is MDX?*).
What is code of Markdown is passed over."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from tmnmt.errors import FormatError
from tmnmt.files.html_syntax import Attribute

_FENCE = re.compile(
    r"^[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})(?![^\n]*`)", re.MULTILINE
)
_TICKS = re.compile(r"`+")
_SIGN = re.compile(r"\\[\s\S]|`+|[<{]|\n[ \t>]*(?=\n|\Z)")
_NAME = re.compile(r"/?[ \t]*(?:[A-Za-z_$][\w$.:-]*)?")
_ATTRIBUTE = re.compile(r"[A-Za-z_$][\w$:-]*")
_VALUE = re.compile(r"\s*=\s*")
_BLANKS = re.compile(r"(?:\s|/\*[\s\S]*?\*/)*")
_LINK = re.compile(r"<(?:https?|mailto):[^\s<>]*>")
_CODE = re.compile(r"/\*[\s\S]*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[{}`]|\\`")
_TEMPLATE = re.compile(r"\\[\s\S]|`|\$\{")
_DEEPEST = 50  # braces inside one another

Kind = Literal["start", "end", "alone", "expression"]
Wrong = Callable[[int, str], FormatError]


class Token(NamedTuple):
    """A tag or an expression. `attributes`: those whose values are strings."""

    kind: Kind
    start: int
    stop: int
    name: str = ""
    attributes: tuple[Attribute, ...] = ()


def tokens(text: str, start: int, wrong: Wrong) -> Iterator[Token]:
    """The tags and expressions of a text, in order.

    text: the text.
    start: where it begins.
    wrong: makes the error for a place and what is wrong there: a tag or a brace that does not
    end."""
    offset = start
    fence = _FENCE.search(text, offset)
    while sign := _SIGN.search(text, offset):
        while fence and fence.end() <= sign.start():
            fence = _FENCE.search(text, fence.end())
        if fence and fence.start(1) <= sign.start():
            offset = _fence_end(text, fence)
            fence = _FENCE.search(text, offset)
        elif sign[0][0] == "`":
            offset = _ticks_end(text, sign)
        elif sign[0] == "{":
            token = Token("expression", sign.start(), _braces_end(text, sign.end(), wrong))
            yield token
            offset = token.stop
        elif sign[0] == "<" and (tag := _tag(text, sign.start(), wrong)) is not None:
            yield tag
            offset = tag.stop
        else:
            offset = sign.end()


def fence_end(text: str, offset: int) -> int | None:
    """Where a block of code ends; None where none begins.

    text: the file.
    offset: where its first line begins, in characters."""
    fence = _FENCE.match(text, offset)
    return _fence_end(text, fence) if fence else None


def _fence_end(text: str, fence: re.Match[str]) -> int:
    closing = re.compile(rf"^[ \t>]*{fence[1][0]}{{{len(fence[1])},}}[ \t]*\r?$", re.MULTILINE)
    begin = text.find("\n", fence.end())
    end = closing.search(text, begin + 1) if begin >= 0 else None
    return end.end() if end else len(text)


def _ticks_end(text: str, ticks: re.Match[str]) -> int:
    """Where a span of code ends; behind its first ticks where it does not end in its paragraph."""
    blank = re.compile(r"\n[ \t>]*\r?\n").search(text, ticks.end())
    limit = blank.start() if blank else len(text)
    for end in _TICKS.finditer(text, ticks.end(), limit):
        if len(end[0]) == len(ticks[0]):
            return end.end()
    return ticks.end()


def _braces_end(text: str, offset: int, wrong: Wrong, depth: int = 0) -> int:
    """Where an expression ends whose brace is before `offset`."""
    begin, level = offset - 1, 1
    while level and (sign := _CODE.search(text, offset)):
        offset = sign.end()
        if sign[0] == "`":
            offset = _template_end(text, offset, wrong, depth + 1)
        elif sign[0] in "{}":
            level += 1 if sign[0] == "{" else -1
    if level:
        raise wrong(begin, "a { that does not end; one that is text is written \\{")
    return offset


def _template_end(text: str, offset: int, wrong: Wrong, depth: int) -> int:
    """Where a template of JavaScript ends whose first tick is before `offset`."""
    begin = offset - 1
    while sign := _TEMPLATE.search(text, offset):
        offset = sign.end()
        if sign[0] == "`":
            return offset
        if sign[0] == "${" and depth < _DEEPEST:
            offset = _braces_end(text, offset, wrong, depth)
    raise wrong(begin, "a ` in an expression that does not end")


def _tag(text: str, start: int, wrong: Wrong) -> Token | None:
    """The tag that begins there; None: the < is text."""
    if text.startswith("<!--", start):
        end = text.find("-->", start)
        if end < 0:
            raise wrong(start, "a comment that does not end")
        return Token("alone", start, end + 3)
    if link := _LINK.match(text, start):
        return Token("expression", start, link.end())
    name = _NAME.match(text, start + 1)
    if name is None or (not name[0] and not text.startswith(">", start + 1)):
        return None
    attributes, offset = list[Attribute](), name.end()
    while True:
        blanks = _BLANKS.match(text, offset)
        offset = blanks.end() if blanks else offset
        if text.startswith(("/>", ">"), offset):
            break
        offset = _attribute_end(text, offset, attributes, wrong)
        if not offset:
            raise wrong(start, "a tag that does not end; a < that is text is written \\<")
    is_alone = text[offset] == "/"
    kind: Kind = "alone" if is_alone else "end" if name[0].startswith("/") else "start"
    label = name[0].lstrip("/ \t")
    return Token(kind, start, offset + 1 + is_alone, label, tuple(attributes))


def _attribute_end(text: str, offset: int, attributes: list[Attribute], wrong: Wrong) -> int:
    """Where an attribute ends, or {...what is spread}; 0: none begins there. One whose value is a
    string is added."""
    if text.startswith("{", offset):
        return _braces_end(text, offset + 1, wrong)
    name = _ATTRIBUTE.match(text, offset)
    if name is None:
        return 0
    equals = _VALUE.match(text, name.end())
    if equals is None:
        return name.end()
    begin = equals.end()
    quote = text[begin : begin + 1]
    if quote == "{":
        return _braces_end(text, begin + 1, wrong)
    end = text.find(quote, begin + 1) if quote in ("'", '"') else -1
    if end < 0:
        return 0
    attributes.append(Attribute(name[0], begin + 1, end, quote))
    return end + 1
