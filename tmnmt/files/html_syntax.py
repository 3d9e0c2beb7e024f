"""HTML cut into tags, texts and what is neither, by where they stand (WHATWG, *HTML*, 13.2.5
Tokenization). No tree is built: a page is cut and put together again, whatever is wrong in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from tmnmt.errors import FormatError
from tmnmt.files.whole import BOM

Wrong = Callable[[int, str], FormatError]

_VALUE = r"""\s*+=\s*+(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s>"'][^\s>]*+))"""
_ATTRIBUTE = re.compile(rf"(?P<name>[^\s/>=]++)(?:{_VALUE})?+")
_UNNAMED = re.sub(r"\(\?P<\w+>", "(?:", _VALUE)
_TAG = re.compile(
    rf"<(?P<end>/?)(?P<name>[A-Za-z][^\s/>]*+)(?:[\s/]++|=|[^\s/>=]++(?:{_UNNAMED})?+)*+>"
)
_ASIDE = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>", "<!": ">", "</": ">"}
# what is text up to the end tag, whatever stands in it
_RAW = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes", "textarea", "title"})


class Attribute(NamedTuple):
    """Where its value stands, without its quotation marks."""

    name: str
    start: int
    end: int
    quote: str  # "" where it has none


class Token(NamedTuple):
    """`aside`: a comment, a DOCTYPE, an instruction. `raw`: what a script and the like hold."""

    kind: Literal["start", "end", "text", "raw", "aside"]
    start: int
    stop: int
    name: str = ""  # of a tag, or of the element around raw text; in lower case


def tokens(text: str, wrong: Wrong, start: int = 0) -> Iterator[Token]:
    """The tokens of a text, in order; together they are the text.

    text: the text.
    wrong: makes the error of a place and of what is wrong there: a tag or a comment that does not
    end.
    start: where the first token begins."""
    offset = start or (1 if text.startswith(BOM) else 0)
    begin = offset  # of a text
    while (offset := text.find("<", offset)) >= 0:
        token = _token(text, offset, wrong)
        if token is None:
            offset += 1
            continue
        if begin < offset:
            yield Token("text", begin, offset)
        yield token
        begin = offset = token.stop
        if token.kind == "start" and token.name in _RAW and not _is_self_closing(text, token):
            begin = offset = _raw_end(text, token, wrong)
            if token.stop < offset:
                yield Token("raw", token.stop, offset, token.name)
    if begin < len(text):
        yield Token("text", begin, len(text))


def attributes(text: str, tag: Token) -> Iterator[Attribute]:
    """The attributes of a start tag that have a value.

    text: the text.
    tag: the start tag."""
    for attribute in _ATTRIBUTE.finditer(text, tag.start + 1 + len(tag.name), tag.stop - 1):
        for group, quote in (("double", '"'), ("single", "'"), ("bare", "")):
            if attribute[group] is not None:
                yield Attribute(attribute["name"].lower(), *attribute.span(group), quote)


def _token(text: str, offset: int, wrong: Wrong) -> Token | None:
    """The tag or the like that begins there; None: the < is text."""
    tag = _TAG.match(text, offset)
    if tag is not None:
        kind: Literal["start", "end"] = "end" if tag["end"] else "start"
        return Token(kind, offset, tag.end(), tag["name"].lower())
    opening = next((mark for mark in _ASIDE if text.startswith(mark, offset)), "")
    if not opening and not text[offset + 1 : offset + 2].isalpha():
        return None
    end = text.find(_ASIDE[opening], offset + len(opening)) if opening else -1
    if end < 0:
        label = "a comment" if opening == "<!--" else "a tag"
        raise wrong(offset, f"{label} that does not end")
    return Token("aside", offset, end + len(_ASIDE[opening]))


def _is_self_closing(text: str, tag: Token) -> bool:
    """Whether a tag is <a/> in XHTML, where that closes it."""
    return text.startswith("<?xml") and text.startswith("/>", tag.stop - 2)


def _raw_end(text: str, tag: Token, wrong: Wrong) -> int:
    end = re.compile(rf"</{tag.name}(?=[\s/>])", re.IGNORECASE).search(text, tag.stop)
    if end is None:
        raise wrong(tag.start, f"<{tag.name}> without </{tag.name}>")
    return end.start()
