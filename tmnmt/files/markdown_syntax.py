"""Markdown cut into blocks with text, and these into words and markup, by where they stand
(CommonMark 0.31; tables and ~~strikethrough~~ as GitHub has them). markdown-it-py decides what is
what; its rules are watched to learn where it stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, Any

from tmnmt.files.front_matter import front_matter_end
from tmnmt.files.pieces import LINE_END, SPAN_PREFIX, Piece
from tmnmt.files.whole import BOM

if TYPE_CHECKING:
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_NEWLINE = re.compile(r"\r\n|\n|\r")
_HASHES = re.compile(r"#{1,6}[ \t]*")
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][\w-]*)")
_VOID = frozenset({"br", "hr", "img", "wbr", "input"})
# boxes of tasks, kinds of alerts, names of footnotes, at the beginning of a text
_MARK = re.compile(r"\[(?:[ xX]|![A-Za-z]+)\](?=\s)|\[\^[^\]\s]{1,100}\]:(?=\s)")
_SIGN = re.compile(
    r"\\([!-/:-@\[-`{-~])|(&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
)
# statements of a module of JavaScript between blocks, as MDX has them
_FROM = r"""["'][^"'\n]+["']\s*;?"""
_MODULE = re.compile(
    rf"""import\s+(?:{_FROM}\s*$|(?:type\s+)?(?:[\w$]+\s*,\s*)?\{{[^}}\n]*(?:\}}\s*from\b|$)|
    (?:type\s+)?[\w$*]+(?:\s*,\s*\*)?(?:\s+as\s+[\w$]+)?\s+from\s+{_FROM})
    |export\s+(?:(?:async\s+)?function\b\s*\*?\s*[\w$]*\s*\(|(?:const|let|var)\s+[\w$\[{{][^=\n]*=
    |class\s+[\w$]+[^{{\n]*\{{|(?:type|interface)\s+[\w$]+[^={{\n]*[={{]|\{{[^}}\n]*(?:\}}\s*(?:from\b|;|$)|$)|\*\s*(?:as\s+[\w$]+\s+)?from\b
    |default\s+(?:(?:async\s+)?function\b|class\b|\(|\{{|\[|[\w$.]+\s*(?:\(.*)?;?\s*$))""",
    re.VERBOSE | re.MULTILINE,
)
_CONTAINER = ":::"
_LONGEST_STATEMENT = 200  # lines
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
BY_WORDS = ("]", "][]")  # ends of links that are found by their words


@dataclass(slots=True)
class Block:
    """A text: its lines put together, and where each of them begins, there and in the file."""

    content: str
    lines: Sequence[tuple[int, int]] = ((0, 0),)
    is_paragraph: bool = False  # or a heading that is underlined
    is_cell: bool = False

    def place(self, offset: int) -> int:
        """The place in the file of a place in the content.

        offset: the place in the content, in characters."""
        begin, file_offset = self.lines[bisect_right(self.lines, offset, key=_begin) - 1]
        return file_offset + offset - begin


def _begin(line: tuple[int, int]) -> int:
    return line[0]


@dataclass(slots=True)
class HtmlBlock:
    """Where HTML stands that is a block of its own."""

    start: int
    stop: int


@dataclass(slots=True)
class _Event:
    """What an inline rule took: where, the tokens that it made and their lengths, and of a link or
    an image where its label ends."""

    rule: str
    start: int
    stop: int
    tokens: list[tuple[Token, int]]
    label: int


class Reader:
    """Reads one file, and what is to be written into it. Every text is Markdown."""

    def __init__(self) -> None:
        from markdown_it import MarkdownIt

        parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        names = parser.get_active_rules()["inline"]
        for name, rule in zip(names, parser.inline.ruler.getRules(""), strict=True):
            parser.inline.ruler.at(name, self._watched(name, rule))
        parser.core.ruler.disable("inline")  # which `pieces` does
        parser.inline.ruler2.disable("fragments_join")  # tokens stay as they were made
        self._parser = parser
        self._env: dict[str, Any] = {}  # what links refer to
        self._events, self._tokens = list[_Event](), list["Token"]()

    def blocks(self, text: str) -> Iterator[Block | HtmlBlock]:
        """The blocks of a file, in order. Code, front matter and definitions of links are none.

        text: the file."""
        start = len(BOM) if text.startswith(BOM) else 0
        end = front_matter_end(text)
        body = "\n" * text.count("\n", start, end) + text[end:]
        lines = line_spans(text, start)
        tokens = self._parser.parse(body, self._env)
        cell = 0  # where the cells of a table that were found end
        module = 0  # the line behind a statement that goes on
        for previous, token in zip([None, *tokens], tokens, strict=False):
            if token.map is None or not token.content.strip():
                continue
            first, last = token.map
            if first < module:
                continue
            content = token.content
            if token.type == "inline" and token.level == 1:
                module = module_end(text, lines, first, last)
                if module >= last:
                    continue
                content = content.split("\n", module - first)[-1]
                first = module
            if token.type == "inline":
                first, last, content = _without_fences(content, first, last)
                if not content.strip():
                    continue
            if token.type == "html_block":
                if token.level:
                    continue  # its lines may begin with marks of what it is in
                yield HtmlBlock(lines[first][0], lines[last - 1][1])
            elif token.type == "inline" and previous is not None:
                if previous.type in ("th_open", "td_open"):
                    content = content.replace("|", r"\|")
                    cell_start = text.find(content, max(cell, lines[first][0]), lines[first][1])
                    cell = cell_start + len(content)
                    newline = (
                        Block(content, [(0, cell_start)], is_cell=True) if cell_start >= 0 else None
                    )
                else:
                    newline = _block(text, lines[first:last], content, previous)
                if newline is not None:
                    yield newline

    def pieces(self, block: Block) -> list[Piece]:
        """The pieces of a block, by their places in the file.

        block: the block."""
        content = block.content
        self._events, self._tokens = [], []
        self._parser.inline.parse(content, self._parser, self._env, self._tokens)
        result, end = list[Piece](), 0
        pieces = sorted(self._markup(content), key=lambda piece: (piece.start, piece.stop))
        if mark := _MARK.match(content):
            pieces = [Piece("alone", 0, mark.end()), *pieces]
        for piece in pieces:
            if piece.start < end:
                continue  # of a mark
            result += [Piece("text", end, piece.start)] if piece.start > end else []
            result.append(piece)
            end = piece.stop
        result += [Piece("text", end, len(content))] if end < len(content) else []
        for piece in result:
            piece.start, piece.stop = block.place(piece.start), block.place(piece.stop - 1) + 1
        return result

    def images(self, block: Block) -> Iterator[tuple[int, int]]:
        """Where the words of the images stand in a block.

        block: the block, the last of which `pieces` gave the pieces."""
        for event in self._events:
            if event.rule == "image" and event.label > event.start + 2:
                yield block.place(event.start + 2), block.place(event.label - 1) + 1

    def _watched(
        self, name: str, rule: Callable[[StateInline, bool], bool]
    ) -> Callable[[StateInline, bool], bool]:
        """The rule; what it takes is noted, what it only looks at ahead is not."""

        def watched(state: StateInline, silent: bool) -> bool:
            # A line end takes blanks away that are pending, and they become no token.
            is_pending = bool(state.pending.strip(" ") if name == "newline" else state.pending)
            start, count = state.pos, len(state.tokens) + is_pending
            if not rule(state, silent):
                return False
            if not silent and state.tokens is self._tokens:
                label = 0
                if name in ("link", "image"):
                    label_start = start + (name == "image")
                    label = state.md.helpers.parseLinkLabel(state, label_start, name == "link")
                new_tokens = [(token, len(token.content)) for token in state.tokens[count:]]
                self._events.append(_Event(name, start, state.pos, new_tokens, label))
            return True

        return watched

    def _markup(self, content: str) -> Iterator[Piece]:
        for event in self._events:
            start, stop = event.start, event.stop
            token_types = [token.type for token, _ in event.tokens]
            match event.rule:
                case "emphasis" | "strikethrough":
                    yield from _delimiters(event)
                case "link":
                    by_words = content[event.label : stop] in BY_WORDS
                    name = f"{SPAN_PREFIX if by_words else 'link'} {start}"
                    yield Piece("start", start, start + 1, name)
                    yield Piece("end", event.label, stop, name)
                case "image":
                    yield Piece("alone", start, stop, "image")
                case "autolink":
                    yield Piece("placeholder", start, stop, "link")
                case "backticks" if token_types == ["code_inline"]:
                    yield Piece("placeholder", start, stop, "code")
                case "html_inline":
                    yield _tag(content, start, stop)
                case "newline" | "escape" if "hardbreak" in token_types:
                    yield Piece("alone", _before_blanks(content, start), stop, "br")
                case "newline":
                    yield Piece("text", _before_blanks(content, start), stop, LINE_END)


def _without_fences(content: str, first: int, last: int) -> tuple[int, int, str]:
    """A text and its lines without those at its ends that begin or end a container, as `:::note`
    does."""
    lines = content.split("\n")
    while lines and lines[0].startswith(_CONTAINER):
        lines, first = lines[1:], first + 1
    while lines and lines[-1].startswith(_CONTAINER):
        lines, last = lines[:-1], last - 1
    return first, last, "\n".join(lines)


def line_spans(text: str, start: int) -> list[tuple[int, int]]:
    """Where the lines of a text begin and end, in characters.

    text: the text.
    start: where the first line begins."""
    ends = [newline.span() for newline in _NEWLINE.finditer(text, start)]
    begins = [start, *(stop for _, stop in ends)]
    return list(zip(begins, [*(first for first, _ in ends), len(text)], strict=True))


def words(text: str, piece: Piece) -> str:
    """What a piece says.

    text: the file.
    piece: the piece."""
    raw = text[piece.start : piece.stop]
    if piece.kind == "placeholder":
        return raw.strip("`").strip() if piece.name == "code" else raw[1:-1]
    if piece.name == LINE_END:
        return " "
    if piece.kind != "text":
        return ""
    return _SIGN.sub(lambda match: match[1] or unescape(match[2]), raw)


def _block(
    text: str, lines: Sequence[tuple[int, int]], content: str, opening: Token
) -> Block | None:
    """The text of a paragraph or heading in these lines of the file; None where it does not stand
    there as it was read."""
    places, offset = list[tuple[int, int]](), 0
    is_atx = opening.type == "heading_open" and opening.markup.startswith("#")
    for line, (begin, end) in zip(content.split("\n"), lines, strict=False):
        core = line.strip(" \t")
        whole = text[begin:end]
        if is_atx and (hashes := _HASHES.search(whole)):
            core_start = whole.find(core, hashes.end())
        else:
            core_start = len(whole.rstrip(" \t")) - len(core)
        if core_start < 0 or whole[core_start : core_start + len(core)] != core:
            return None
        indent = len(line) - len(line.lstrip(" \t"))
        places.append((offset, begin + core_start - indent))
        offset += len(line) + 1
    return Block(content, places, is_paragraph=not is_atx)


def module_end(text: str, lines: Sequence[tuple[int, int]], first: int, last: int) -> int:
    """The number of the line behind the statements of a module with which a paragraph begins;
    `first` where it begins with none. A statement ends with a line where its brackets are closed,
    or else with the paragraph: no statement is longer than 200 lines.

    text: the file.
    lines: where its lines begin and end.
    first: the number of the paragraph's first line.
    last: the number of its last line."""
    number = first
    while number < last and _MODULE.match(text, lines[number][0]):
        depth = 0
        for end in range(number, min(number + _LONGEST_STATEMENT, len(lines))):
            depth += sum(_BRACKETS.get(sign, 0) for sign in text[slice(*lines[end])])
            if depth <= 0:
                number = end + 1
                break
        else:
            return last
    return number


def _before_blanks(content: str, offset: int) -> int:
    while content[offset - 1 : offset] in (" ", "\t"):
        offset -= 1
    return offset


def _tag(content: str, start: int, stop: int) -> Piece:
    tag = _TAG.match(content, start)
    name = tag["name"].lower() if tag else ""
    if not tag or name in _VOID or content[stop - 2] == "/":
        return Piece("alone", start, stop, name)
    return Piece("end" if tag["end"] else "start", start, stop, name)


def _delimiters(event: _Event) -> Iterator[Piece]:
    """The delimiters of a run that have found each other. One of two signs is two tokens: what
    opens is the second, what closes the first."""
    offset = event.start
    for token, length in event.tokens:
        size = len(token.markup)
        if token.nesting > 0:
            yield Piece("start", offset + length - size, offset + length, token.tag)
        elif token.nesting < 0:
            yield Piece("end", offset, offset + size, token.tag)
        offset += length
