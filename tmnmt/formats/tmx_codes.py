"""The inline elements of TMX 1.4b as codes, and codes as inline elements.

The content of bpt, ept, it, ph and ut is native code and no text; hi is text. What the standard
leaves to the tool is decided so:
- A ph or ut covers a space where it is of type "lb" (a line break) or stood between two letters or
  digits, so that words do not run together.
- A sub flow (a footnote, an ALT text) is a text of its own inside a code: it stays in the markup.
- A code of another format becomes bpt and ept, ph, or it where its other half is missing; its
  markup is their content.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, cast

from lxml import etree

from tmnmt.codes.record import TMX, Code, Kind, Part, Text, join_parts, pairs
from tmnmt.errors import FormatError
from tmnmt.formats.elements import Malformed, parsed
from tmnmt.formats.xml_text import escaped, escaped_attribute

MAX_CODES = 1000  # of a text; more than its tokens may be
MAX_NESTED = 100  # elements inside one another in a text

_CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})
_SPACED = frozenset({"ph", "ut"})  # the others may stand inside a word: un<b>believ</b>able


def excess(seg: etree._Element) -> str:
    """What a segment has too much of to be a text with codes, in words; "" where it has not.

    seg: the <seg>."""
    if sum(1 for _ in zip(seg.iter(), range(MAX_CODES + 2), strict=False)) > MAX_CODES + 1:
        return f"more than {MAX_CODES:,} codes"
    inside = [seg]
    for _ in range(MAX_NESTED + 1):
        inside = [child for element in inside for child in element]
    return f"more than {MAX_NESTED} elements inside one another" if inside else ""


def text_of(seg: etree._Element) -> Text:
    """The text of a <seg>, as it stands there.

    seg: the <seg>."""
    return join_parts(_flow(seg, count(1))) if len(seg) else Text(seg.text or "")


def seg_of(text: Text) -> str:
    """The content of a <seg>. `text_of` makes an equal text of it, and equal codes where they are
    of TMX.

    text: the text.

    Raises FormatError where the markup of a code is no XML in its place."""
    if not text.codes:
        return escaped(text.plain)
    spans = pairs(text.codes)
    number = {index: i for i, span in enumerate(spans.items(), 1) for index in span}
    content, index = "", 0
    for part in text.parts():
        if isinstance(part, str):
            content += escaped(part)
        else:
            content += _element(part[0], number.get(index))
            index += 1
    _check(content)
    return content


def _flow(element: etree._Element, numbers: Iterator[int]) -> list[Part]:
    text = element.text or ""
    parts = list[Part]([text])
    last = text[-1:]
    for child in element:
        tail = child.tail or ""
        if child.tag in _CODES:
            letters = last.isalnum() and tail[:1].isalnum()
            spaced = child.tag in _SPACED and (child.get("type") == "lb" or letters)
            parts.append((_code(child), " " if spaced else ""))
            last = " " if spaced else last
        else:
            parts += (inside := _highlighted(child, numbers))
            last = join_parts(inside).plain[-1:] or last
        parts.append(tail)
        last = tail[-1:] or last
    return parts


def _highlighted(element: etree._Element, numbers: Iterator[int]) -> list[Part]:
    """What is text and markup: hi, and whatever else stands in a segment."""
    name = etree.QName(element).localname
    pair = f"{name} {next(numbers)}"
    empty = etree.Element(element.tag, nsmap=cast(Any, element.nsmap))
    for attribute, value in element.items():
        empty.set(attribute, value)
    start = etree.tostring(empty, encoding="unicode").removesuffix("/>")
    tag = start[1:].split(None, 1)[0]
    opening = Code(0, "open", start + ">", pair, TMX)
    closing = Code(0, "close", f"</{tag}>", pair, TMX)
    return [(opening, ""), *_flow(element, numbers), (closing, "")]


def _code(element: etree._Element) -> Code:
    markup = etree.tostring(element, encoding="unicode", with_tail=False)
    kind, pair = _kind(element)
    return Code(0, kind, markup, pair, TMX)


def _kind(element: etree._Element) -> tuple[Kind, str]:
    match element.tag, element.get("pos"):
        case "bpt", _:
            return "open", element.get("i") or ""
        case "ept", _:
            return "close", element.get("i") or ""
        case "it", "begin":
            return "open", ""
        case "it", "end":
            return "close", ""
        case _:
            return "standalone", ""


def _element(code: Code, number: int | None) -> str:
    """`number`: of its span; None: its other half is missing, or it never had one."""
    if code.form == TMX:
        return code.markup
    if not code.form:
        return escaped(code.markup)
    content = escaped(code.markup)
    if code.kind not in ("open", "close"):
        return f'<ph type="{escaped_attribute(code.form)}">{content}</ph>'
    if number is None:
        return f'<it pos="{"begin" if code.kind == "open" else "end"}">{content}</it>'
    name = "bpt" if code.kind == "open" else "ept"
    return f'<{name} i="{number}">{content}</{name}>'


def _check(content: str) -> None:
    try:
        _, repaired = parsed(f"<seg>{content}</seg>".encode())
    except (Malformed, UnicodeEncodeError) as error:
        raise FormatError(f"the markup of a code is no XML ({error})") from error
    if repaired:
        raise FormatError("the markup of a code has characters that XML cannot hold")
