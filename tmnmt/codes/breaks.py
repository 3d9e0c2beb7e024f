"""Codes that stand for the end of a line, whatever the format of their file is, and for a tab."""

from __future__ import annotations

import re
from xml.sax.saxutils import unescape

from tmnmt.codes.record import Code, native

# What a code shows, where it is a line break: a line end or its escape, or a <br>.
_BREAK = re.compile(
    r"(?:<(?:\w+:)?br\b[^<>]*>|\\[nr]|[^\S\n\r]*[\n\r]\s*|LINE_BREAK)+", re.IGNORECASE
)
_TAB = re.compile(r"(?:\\t|\s*\t\s*)+")
# What an element of XLIFF or TMX says of itself: its type, or what it shows in place of itself.
_TYPE = re.compile(r"""\s(?:ctype|subType|type)\s*=\s*["'](?:xlf:|x-|x-html-)?(?:lb|br)["']""")
_DISPLAY = re.compile(r"""\s(?:equiv-text|equiv|disp)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_LINE_END = re.compile(r"<(?:\w+:)?br\b|\\n|\r\n?|\n", re.IGNORECASE)


def is_tab(code: Code, covered: str) -> bool:
    """Whether a code stands for a tab, which parts columns.

    code: the code.
    covered: the text that it covers."""
    return any(map(_TAB.fullmatch, _texts_of(code, covered)))


def line_ends(code: Code, covered: str) -> int:
    """How many lines end at a code. None does at white space that a format lets one change, which
    is a code of kind "blank".

    code: the code.
    covered: the text that it covers."""
    if code.kind in ("blank", "open", "close"):
        return 0
    text = next(filter(_BREAK.fullmatch, _texts_of(code, covered)), "")
    if text:
        return max(1, len(_LINE_END.findall(text)))
    return int(bool(code.form) and _TYPE.search(code.markup) is not None)


def _texts_of(code: Code, covered: str) -> list[str]:
    """The texts that may say what a code stands for."""
    texts = [code.markup, covered]
    if code.form:
        values = (double or single for double, single in _DISPLAY.findall(code.markup))
        entities = {"&quot;": '"', "&#10;": "\n", "&#xA;": "\n"}
        texts += [native(code), *(unescape(value, entities) for value in values)]
    return texts
