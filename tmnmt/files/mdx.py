"""MDX: Markdown with tags of JSX, expressions in braces and statements of a module.

A unit is what it is in Markdown. Tags and expressions inside a text are codes; those that have
lines of their own part the texts before and behind them. Attributes that are read, such as title
and label, are units of their own, where they are strings. Statements of a module and
expressions are left alone."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from tmnmt.errors import FormatError
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.front_matter import front_matter_end
from tmnmt.files.html import Slot, in_order
from tmnmt.files.jsx_syntax import Token, Wrong, fence_end, tokens
from tmnmt.files.markdown import MarkdownFile, MarkdownSlot
from tmnmt.files.markdown_syntax import (
    Block,
    HtmlBlock,
    Reader,
    line_spans,
    module_end,
)
from tmnmt.files.pieces import Piece

# what tags and expressions are read as inside a text, since they are no signs of Markdown
_FIRST: dict[str, str] = {
    "start": "\ue000",
    "end": "\ue001",
    "alone": "\ue002",
    "expression": "\ue003",
}
_FURTHER = "\ue004"
_MASK = re.compile(rf"([\ue000-\ue003])(?:{_FURTHER}|\r?\n{_FURTHER})*")
_MASKS = re.compile("[\ue000-\ue004]")
_PIECES = {mask: "placeholder" if kind == "expression" else kind for kind, mask in _FIRST.items()}
_SIGN = re.compile(r"[^\r\n]")
_STATEMENT = re.compile(r"(?:import|export)[ \t]")
_TEXT_ATTRIBUTES = frozenset(
    {"alt", "title", "placeholder", "aria-label", "summary", "label", "description", "caption"}
)


class MdxFile(MarkdownFile):
    """A file of MDX 2 or 3, in UTF-8 or as its byte-order mark says."""

    kind = "mdx"
    title = FILE_KINDS["mdx"].title
    required_signs = r"[<{]"

    def __init__(self, path: Path, src_lang: str = "", tgt_lang: str = "") -> None:
        super().__init__(path, src_lang, tgt_lang)
        self._jsx = JsxReader(self.wrong)
        self._reader = self._jsx

    @cached_property
    def _slots(self) -> list[Slot]:
        return in_order([*super()._slots, *self._attribute_slots()])

    def _attribute_slots(self) -> Iterator[Slot]:
        for token in self._jsx.tokens:
            for attribute in token.attributes:
                value = self.text[attribute.start : attribute.end]
                if attribute.name in _TEXT_ATTRIBUTES and any(map(str.isalnum, value)):
                    yield MarkdownSlot(attribute.start, attribute.end, attribute=attribute)

    def _escaped_start(self, text: str) -> str:
        """A paragraph must not begin as a statement of a module does."""
        if _STATEMENT.match(text):
            return f"&#{ord(text[0])};{text[1:]}"
        return super()._escaped_start(text)


class JsxReader(Reader):
    """Reads Markdown in which tags and expressions are masked. After `blocks`, `tokens` has those
    of the file."""

    def __init__(self, wrong: Wrong) -> None:
        """wrong: makes the error of a place and of what is wrong there."""
        super().__init__()
        self._parser.disable(["code", "html_block", "html_inline", "autolink"])
        self._wrong = wrong
        self.tokens = list[Token]()

    def blocks(self, text: str) -> Iterator[Block | HtmlBlock]:
        start = front_matter_end(text)
        prose = _without_statements(_MASKS.sub(" ", text), start)
        self.tokens = list(tokens(prose, start, self._wrong))
        yield from super().blocks(_masked(prose, self.tokens))

    def pieces(self, block: Block) -> list[Piece]:
        """The pieces of a text of the file, or of one that is to be written. One whose tags or
        braces do not end has a piece that no other text has."""
        try:
            jsx_tokens = list(tokens(block.content, 0, self._wrong))
        except FormatError:
            return [Piece("placeholder", 0, len(block.content), "unreadable")]
        return super().pieces(Block(_inline_masked(block.content, jsx_tokens), block.lines))

    def _markup(self, content: str) -> Iterator[Piece]:
        yield from super()._markup(content)
        for mask in _MASK.finditer(content):
            yield Piece(_PIECES[mask[1]], *mask.span(), "jsx")


def _without_statements(text: str, start: int) -> str:
    """The text with blanks for the statements of a module, which begin a paragraph."""
    lines = line_spans(text, start)
    blank = [not text[slice(*line)].strip() for line in lines]
    parts, end, number = list[str](), 0, 0
    while number < len(lines):
        if (code_end := fence_end(text, lines[number][0])) is not None:
            number = bisect_left(lines, (code_end,))
            continue
        is_first = number == 0 or blank[number - 1]
        if not is_first or not _STATEMENT.match(text, lines[number][0]):
            number += 1
            continue
        last = next((index for index in range(number, len(lines)) if blank[index]), len(lines))
        stop = max(module_end(text, lines, number, last), last)
        begin, finish = lines[number][0], lines[stop - 1][1]
        parts += (text[end:begin], _SIGN.sub(" ", text[begin:finish]))
        end, number = finish, stop
    return "".join([*parts, text[end:]])


def _masked(text: str, jsx_tokens: Sequence[Token]) -> str:
    """The text with blanks for tags and expressions that have lines of their own, and with masks
    for the others."""
    parts, end = list[str](), 0
    for run in _runs(text, jsx_tokens):
        begin = text.rfind("\n", 0, run[0].start) + 1
        finish = text.find("\n", run[-1].stop)
        finish = len(text) if finish < 0 else finish
        inner = _inline_masked(text[begin:finish], run, begin)
        is_apart = not _MASKS.sub("", inner).strip()
        parts += (text[end:begin], _SIGN.sub(" ", inner) if is_apart else inner)
        end = finish
    return "".join([*parts, text[end:]])


def _runs(text: str, jsx_tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """Tokens that share lines."""
    run = list[Token]()
    for token in jsx_tokens:
        if run and "\n" in text[run[-1].stop : token.start]:
            yield run
            run = []
        run.append(token)
    if run:
        yield run


def _inline_masked(text: str, jsx_tokens: Iterable[Token], start: int = 0) -> str:
    """A text that stands at `start` with masks for these tokens; line ends stay."""
    parts, end = list[str](), 0
    for token in jsx_tokens:
        begin, finish = token.start - start, token.stop - start
        further = _SIGN.sub(_FURTHER, text[begin + 1 : finish])
        parts += (text[end:begin], _FIRST[token.kind], further)
        end = finish
    return "".join([*parts, text[end:]])
