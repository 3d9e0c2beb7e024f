"""Tags that stand in a text as it is written, as codes: <b> in a message of a program, {1> in a
file of Phrase.

    Click <b>here</b>, then <file>      the string
    Click here, then <file>             plain, with two codes of no form

What looks like a tag may be words: <file> is none, as long as nothing says </file>."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tmnmt.codes.record import Code, Kind, Part, Text, join_parts

# those that are tags also without the other half; names of arguments, as <input>, are not here
_ALONE_NAMES = """a abbr b big blockquote br center div em font h1 h2 h3 h4 h5 h6 hr i img li ol p
    pre s small span strike strong sub sup table tbody td th thead tr tt u ul wbr"""
_ALONE = frozenset(_ALONE_NAMES.split())
_VOID = frozenset({"br", "hr", "img", "wbr"})
# %<PRIu64> and %<name>s are placeholders
_HTML = re.compile(
    r"""(?:(?<!%)<|<(?P<end>/))(?P<name>[A-Za-z0-9][\w:.-]{0,40})"""
    r"""(?P<rest>(?:\s(?:[^<>"']|"[^"<]*"|'[^'<]*')*+)?/?)>"""
)
_PHRASE = re.compile(r"\{(?P<open>\w{1,20})>|<(?P<close>\w{1,20})\}|\{(?P<alone>\d{1,9})\}")

_OVERRIDE = re.compile(r"\{(?:\\(?P<on>[bius])1|\\(?P<off>[bius])0|[^{}]*+)\}")


class Tag(NamedTuple):
    """Where a tag stands. `is_sure`: also without its other half."""

    start: int
    end: int
    kind: Kind
    name: str
    is_sure: bool = True


Tags = Callable[[str], Iterable[Tag]]


def html_tags(text: str) -> Iterator[Tag]:
    """The tags of HTML, and of what looks like it: <0> of React, <command> of DocBook.

    text: the text."""
    for match in _HTML.finditer(text):
        name = match["name"].lower()
        rest = match["rest"]
        is_sure = name in _ALONE and (not rest.strip("/ ") or "=" in rest)  # not "a <b or c> d"
        if rest.endswith("/") or (name in _VOID and not match["end"]):
            yield Tag(*match.span(), "standalone", name, is_sure or rest.endswith("/"))
        else:
            yield Tag(*match.span(), "close" if match["end"] else "open", name, is_sure)


def override_tags(text: str) -> Iterator[Tag]:
    r"""The tags of SubStation Alpha, in braces: {\i1} and {\i0} around words, {\an8} alone.

    text: the text."""
    for match in _OVERRIDE.finditer(text):
        kind: Kind = "open" if match["on"] else "close" if match["off"] else "standalone"
        yield Tag(*match.span(), kind, f"\\{match['on'] or match['off'] or ''}")


def phrase_tags(text: str) -> Iterator[Tag]:
    """The tags of Phrase: {1} alone, {1> and <1} around words.

    text: the text."""
    for match in _PHRASE.finditer(text):
        kind: Kind = "open" if match["open"] else "close" if match["close"] else "standalone"
        yield Tag(*match.span(), kind, match[match.lastgroup or 0])


def with_tags(text: Text, find: Tags) -> Text:
    """A text with codes in place of its tags. One that stands alone between two words covers a
    space, so that they do not run together.

    text: the text.
    find: finds the tags."""
    tags = _of_text(text.plain, list(find(text.plain)))
    parts = list[Part]()
    offset = 0
    for part in text.parts():
        if not isinstance(part, str):
            parts.append(part)
            offset += len(part[1])
            continue
        end = offset + len(part)
        for tag, pair in tags:
            if offset <= tag.start and tag.end <= end:
                parts += [text.plain[offset : tag.start], _code(text.plain, tag, pair)]
                offset = tag.end
        parts.append(text.plain[offset:end])
        offset = end
    return join_parts(parts) if tags else text


def _code(text: str, tag: Tag, pair: str) -> Part:
    preceding, following = text[tag.start - 1 : tag.start], text[tag.end : tag.end + 1]
    is_isolated = tag.kind == "standalone" and preceding.isalnum() and following.isalnum()
    return Code(0, tag.kind, text[tag.start : tag.end], pair), " " * is_isolated


def _of_text(text: str, tags: Sequence[Tag]) -> list[tuple[Tag, str]]:
    """Those that are tags, with the names of their spans."""
    waiting = defaultdict[str, list[int]](list)
    pairs = dict[int, str]()
    for number, tag in enumerate(tags):
        if tag.kind == "open":
            waiting[tag.name].append(number)
        elif tag.kind == "close" and waiting[tag.name]:
            opening = waiting[tag.name].pop()
            pairs[opening] = pairs[number] = str(opening + 1)
    return [
        (tag, pairs.get(number, ""))
        for number, tag in enumerate(tags)
        if tag.is_sure or number in pairs
    ]
