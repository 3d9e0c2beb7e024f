"""reStructuredText cut into blocks with text, by where they stand (docutils, *reStructuredText
Markup Specification*). docutils itself keeps no places of what it reads, so its rules are followed
line by line; the tests hold the blocks to its tree.

What is no prose is no block: code, comments, targets of links, options of
directives, and directives that `_DIRECTIVES` does not name."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tmnmt.files.markdown_syntax import Block
from tmnmt.files.rst_lines import Line, columns, dedented
from tmnmt.files.rst_tables import Cell, column_count, comma_cells, grid_table, simple_table
from tmnmt.files.whole import BOM

_DEEPEST = 40  # blocks inside one another; what lies deeper is left alone
_PUNCTUATION = r"[!-/:-@\[-`{-~]"
_ROMAN = r"(?=[ivxlcdm])m{0,4}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})"
_ORDINAL = rf"(?:\d{{1,9}}|[a-zA-Z]|#|{_ROMAN}|(?i:{_ROMAN}))"
_END = r"(?:[ \t\f\v]+|$)"
SIMPLE_NAME = r"(?:(?!_)\w){1,200}(?:[-._+:](?:(?!_)\w){1,200}){0,50}"

_BULLET = re.compile(rf"[-+*•‣⁃]{_END}")
_ENUMERATOR = re.compile(rf"(?:\({_ORDINAL}\)|{_ORDINAL}[.)]){_END}")
_FIELD = re.compile(rf":(?![: ])((?:[^:\\\n]|\\.|:(?![ `]|$)){{1,500}})(?<! ):{_END}")
_OPTION = r"(?:-\w|\+\w|--\w[\w-]*|/\w+)(?:[ =]?(?:[A-Za-z][\w-]*|<[^<>\n]{1,100}>))?"
_OPTIONS = re.compile(rf"{_OPTION}(?:, {_OPTION}){{0,20}}(?:[ \t]{{2,}}|$)")
_DOCTEST = re.compile(rf">>>{_END}")
_LINE_BLOCK = re.compile(rf"\|{_END}")
_GRID = re.compile(r"\+-[-+]+-\+$")
_BORDER = re.compile(r"=+(?: +=+)+$")
_EXPLICIT = re.compile(rf"\.\.{_END}")
_ANONYMOUS = re.compile(rf"__{_END}")
_ADORNMENT = re.compile(rf"({_PUNCTUATION})\1*$")
_SHORT = 4  # an adornment of fewer characters must be as long as its title
_DIRECTIVE = re.compile(rf"({SIMPLE_NAME})[ ]?::{_END}")
_SUBSTITUTION = re.compile(rf"\|(?![ |])[^|\n]{{1,200}}\|[ \t]+(?={SIMPLE_NAME}[ ]?::)")
_NOTE = re.compile(rf"\[(?:\d{{1,9}}|\*|#?{SIMPLE_NAME}|#)\]{_END}")
_VERSION = re.compile(r"\S+[ \t]*")
_OTHER_CELLS = re.compile(r":(?:delim|quote|escape|file|url|keepspace):")
_CSV_HEADER = re.compile(r":header:[ \t]+")
_DESCRIPTION = re.compile(
    r":(?:description|keywords|(?:name=)?twitter:(?:title|description)"
    r"|property=og\\?:(?:title|description))(?:[ \t][^:\n]{1,100})?:[ \t]+"
)
_BREAK = re.compile(r"(?<=[^\s\\]) (?=[^\W_]|[(\"'«“‘*`])")  # where a paragraph may be broken
_CLASSIFIER = re.compile(r"(?<=[^\s`:])[ \t]+:[ \t]+")
_ATTRIBUTION = re.compile(r"(?:---?(?!-)|—)[ \t]*")
_COLONS = re.compile(r"(?<!\\)(?:\\\\)*::$")

# what stands in a directive besides its options: the argument and the content
Kind = Literal[
    "body",
    "title",
    "titled body",
    "argument and body",
    "version and body",
    "glossary",
    "title and cells",
    "descriptions",
]
_NAMES: dict[Kind, str] = {
    "body": "attention caution danger error hint important note tip warning seealso todo epigraph"
    " highlights pull-quote hlist replace compound",
    "title": "rubric centered",
    "titled body": "admonition topic sidebar table list-table dropdown collapse",
    "argument and body": "figure container class only tab-set tab-item grid card"
    " function method staticmethod classmethod decorator decoratormethod attribute property data"
    " exception module describe object option cmdoption program envvar confval role directive"
    " opcode pdbcommand macro struct union enum enumerator type member var variable concept alias"
    " jinja-template details tabs tab group-tab opcode setting templatetag templatefilter"
    " fieldlookup django-admin django-admin-option",
    "version and body": "versionadded versionchanged deprecated versionremoved deprecated-removed",
    "glossary": "glossary",
    "title and cells": "csv-table",
    "descriptions": "meta",
}
_DIRECTIVES: dict[str, Kind] = {
    name: kind for kind, names in _NAMES.items() for name in names.split()
}
# fields whose body is data, by the first word of their names
_DATA_NAMES = """author authors organization contact address version revision status date copyright
    orphan tocdepth nocomments nosearch keywords type rtype vartype kwtype meta license url"""
_DATA_FIELDS = frozenset(_DATA_NAMES.split())


class Adornment(NamedTuple):
    """The lines of punctuation that make a title: where they begin and end in the file."""

    overline: tuple[int, int] | None
    underline: tuple[int, int]


@dataclass(slots=True)
class TextBlock(Block):
    """A text that is prose. `adornment`: of a title. `opens_literal`: its last colon is the first
    of the two behind which a literal block begins. `needs_break`: its second line says how far the
    rest of its block is indented. `wraps`: it may go on in further lines. `cell`: of a table, in
    which it stands."""

    adornment: Adornment | None = None
    opens_literal: bool = False
    needs_break: bool = False
    wraps: bool = False
    cell: Cell | None = None


def blocks(text: str) -> list[TextBlock]:
    """The blocks of a file that are prose, in order.

    text: the file."""
    start = len(BOM) if text.startswith(BOM) else 0
    lines = list[Line]()
    for line in text[start:].split("\n"):
        lines.append(Line(start, line.rstrip()))
        start += len(line) + 1
    reader = _Reader()
    reader.read(lines, 0)
    return reader.blocks


class _Reader:
    """Gathers the blocks. Every rule takes lines and the number of one that is not blank, and says
    at which line it ends; None: it does not apply."""

    def __init__(self) -> None:
        self.blocks = list[TextBlock]()
        self._depth = 0
        self._cell: Cell | None = None

    def read(self, lines: Sequence[Line], depth: int) -> None:
        """Reads the body of a block, or the whole file."""
        if depth > _DEEPEST:
            return
        outer, self._depth = self._depth, depth
        number = 0
        while number < len(lines):
            if not lines[number].text:
                number += 1
                continue
            ends = (rule(self, lines, number) for rule in _RULES)
            number = next(end for end in ends if end is not None)
        self._depth = outer

    def _inside(self, lines: Sequence[Line]) -> None:
        self.read(lines, self._depth + 1)

    def _behind_mark(self, first: Line, rest: Sequence[Line]) -> None:
        """Reads a body that begins behind a mark, and whose other lines stand as far right as the
        leftmost of them."""
        number = len(self.blocks)
        self._inside([first, *dedented(rest)])
        if not first.text or len(self.blocks) == number:
            return
        block = self.blocks[number]
        size = len(block.lines) - 1
        if size and block.place(0) == first.bare.start:
            column, further = (
                min((line.indent for line in part if line.text), default=0)
                for part in (rest[:size], rest[size:])
            )
            block.needs_break = further > column

    def _add(self, lines: Iterable[Line], **properties: bool | Adornment) -> None:
        """A text that stands in these lines."""
        content, places = list[str](), list[tuple[int, int]]()
        offset = 0
        for line in lines:
            bare = line.bare
            content.append(bare.text)
            places.append((offset, bare.start))
            offset += len(bare.text) + 1
        if any(content):
            block = TextBlock("\n".join(content), places, cell=self._cell, **properties)  # type: ignore[arg-type]
            self.blocks.append(block)

    def _in_cells(self, cells: Iterable[Cell]) -> None:
        """Reads the cells of a table, but of one that stands in another's cell."""
        if self._cell is None:
            for cell in cells:
                self._cell = cell
                self._inside(dedented(cell.lines))
            self._cell = None

    # --- the rules, in the order in which docutils tries them

    def _quote(self, lines: Sequence[Line], number: int) -> int | None:
        if not lines[number].indent:
            return None
        end = _indented_end(lines, number)
        body = dedented(lines[number:end])
        attribution = next(
            (
                index
                for index in range(len(body) - 1, 0, -1)
                if _ATTRIBUTION.match(body[index].text) and not body[index - 1].text
            ),
            None,
        )
        if attribution is None or attribution == 0:
            self._inside(body)
            return end
        self._inside(body[:attribution])
        mark = _ATTRIBUTION.match(body[attribution].text)
        stop = _paragraph_end(body, attribution)
        first = body[attribution].skip(mark.end() if mark else 0)
        self._add([first, *body[attribution + 1 : stop]])
        return end

    def _bullet(self, lines: Sequence[Line], number: int) -> int | None:
        return self._item(lines, number, _BULLET.match(lines[number].text))

    def _enumerated(self, lines: Sequence[Line], number: int) -> int | None:
        match = _ENUMERATOR.match(lines[number].text)
        following = lines[number + 1] if number + 1 < len(lines) else Line(0, "")
        is_text = following.text and not following.indent and not _ENUMERATOR.match(following.text)
        return None if is_text else self._item(lines, number, match)

    def _item(self, lines: Sequence[Line], number: int, match: re.Match[str] | None) -> int | None:
        """An item whose further lines stand as far right as its text."""
        if match is None:
            return None
        line = lines[number]
        has_text = match.end() < len(line.text)
        column = columns(line.text[: match.end()]) if has_text else 1
        end = _indented_end(lines, number + 1, column)
        rest = lines[number + 1 : end]
        further = [line.dedent(column) for line in rest] if has_text else dedented(rest)
        self._inside([line.skip(match.end()), *further])
        return end

    def _field(self, lines: Sequence[Line], number: int) -> int | None:
        match = _FIELD.match(lines[number].text)
        if match is None:
            return None
        end = _indented_end(lines, number + 1)
        if match[1].partition(" ")[0].lower() not in _DATA_FIELDS:
            self._behind_mark(lines[number].skip(match.end()), lines[number + 1 : end])
        return end

    def _options(self, lines: Sequence[Line], number: int) -> int | None:
        match = _OPTIONS.match(lines[number].text)
        if match is None:
            return None
        end = _indented_end(lines, number + 1)
        first, rest = lines[number].skip(match.end()), lines[number + 1 : end]
        if not any(line.text for line in (first, *rest)):
            return None
        self._behind_mark(first, rest)
        return end

    def _doctest(self, lines: Sequence[Line], number: int) -> int | None:
        if not _DOCTEST.match(lines[number].text):
            return None
        while number < len(lines) and lines[number].text:
            number += 1
        return number

    def _line_block(self, lines: Sequence[Line], number: int) -> int | None:
        if not _LINE_BLOCK.match(lines[number].text):
            return None
        run = list[Line]()
        while number < len(lines) and lines[number].text:
            match = _LINE_BLOCK.match(lines[number].text)
            if match is None and not lines[number].indent:
                break
            if match is not None:
                self._add(run)
                run = []
            run.append(lines[number].skip(match.end() if match else 0))
            number += 1
        self._add(run)
        return number

    def _grid(self, lines: Sequence[Line], number: int) -> int | None:
        if not _GRID.match(lines[number].text):
            return None
        start = number
        while number < len(lines) and lines[number].text[:1] in ("+", "|"):
            number += 1
        table = grid_table(lines[start:number])
        self._in_cells(table.cells if table else ())
        return number

    def _simple_table(self, lines: Sequence[Line], number: int) -> int | None:
        if not _BORDER.match(lines[number].text):
            return None
        borders = 0
        for index in range(number + 1, len(lines)):
            if _BORDER.match(lines[index].text) or re.match(r"=+$", lines[index].text):
                borders += 1
                if borders == 2 or index + 1 == len(lines) or not lines[index + 1].text:
                    table = simple_table(lines[number : index + 1])
                    self._in_cells(table.cells if table else ())
                    return index + 1
        return len(lines)

    def _explicit(self, lines: Sequence[Line], number: int) -> int | None:
        match = _EXPLICIT.match(lines[number].text)
        if match is None:
            return None
        first = lines[number].skip(match.end())
        following = lines[number + 1].text if number + 1 < len(lines) else ""
        if not first.text and not following:
            return number + 1  # an empty comment
        if first.text.startswith("_"):
            return _target_end(lines, number)
        end = _indented_end(lines, number + 1)
        rest = lines[number + 1 : end]
        if note := _NOTE.match(first.text):
            self._behind_mark(first.skip(note.end()), rest)
            return end
        if substitution := _SUBSTITUTION.match(first.text):
            first = first.skip(substitution.end())
        if directive := _DIRECTIVE.match(first.text):
            name = directive[1].rpartition(":")[2].lower()
            if not substitution or name == "replace":
                self._directive(name, first.skip(directive.end()), rest)
        return end

    def _anonymous(self, lines: Sequence[Line], number: int) -> int | None:
        is_target = _ANONYMOUS.match(lines[number].text)
        return _target_end(lines, number) if is_target else None

    def _overline(self, lines: Sequence[Line], number: int) -> int | None:
        """A title with lines above and below it, or a line between paragraphs."""
        overline = lines[number].text
        if not _ADORNMENT.match(overline):
            return None
        title, underline = (
            lines[index].text if index < len(lines) else "" for index in (number + 1, number + 2)
        )
        if title and underline == overline and not self._depth:
            span = _span(lines[number])
            self._add([lines[number + 1]], adornment=Adornment(span, _span(lines[number + 2])))
            return number + 3
        if overline == "::":
            return _literal_end(lines, number + 1)
        return number + 1 if len(overline) >= _SHORT and not title else None

    def _text(self, lines: Sequence[Line], number: int) -> int:
        """A title, a term with its definition, or a paragraph."""
        line = lines[number]
        following = lines[number + 1] if number + 1 < len(lines) else Line(0, "")
        if _ADORNMENT.match(following.text) and (
            len(following.text) >= min(_SHORT, width(line.text))
        ):
            if not self._depth:  # elsewhere it is an error, and stays as it is
                self._add([line], adornment=Adornment(None, _span(following)))
            return number + 2
        if following.text and following.indent:
            return self._definition(lines, number)
        end = _paragraph_end(lines, number)
        if end < len(lines) and lines[end].text:
            return end  # followed by an unexpected indentation
        run = lines[number:end]
        if not _COLONS.search(run[-1].text):
            self._add(run, wraps=True)
            return end
        last = run[-1].text[:-1]
        if last.strip() not in (":", ""):
            self._add([*run[:-1], Line(run[-1].start, last)], opens_literal=True)
        return _literal_end(lines, end)

    def _definition(self, lines: Sequence[Line], number: int) -> int:
        end = _indented_end(lines, number + 1)
        line = lines[number]
        if _COLONS.search(line.text):
            return end  # code without a blank line before it
        classifier = _CLASSIFIER.search(line.text)
        self._add([Line(line.start, line.text[: classifier.start()] if classifier else line.text)])
        self._inside(dedented(lines[number + 1 : end]))
        return end

    # --- directives

    def _directive(self, name: str, first: Line, rest: Sequence[Line]) -> None:
        kind = _DIRECTIVES.get(name)
        if kind is None:
            return
        lines = [first, *dedented(rest)]
        start = 0 if first.text else 1
        blank = next((i for i in range(start, len(lines)) if not lines[i].text), len(lines))
        option = next((i for i in range(start, blank) if _FIELD.match(lines[i].text)), blank)
        arguments, content = lines[start:option], lines[blank:]
        match kind:
            case "body" if first.text and option == blank:
                self._behind_mark(first, rest)
            case "body":
                self._inside([*arguments, *content])
            case "title":
                self._add(arguments)
            case "titled body":
                self._add(arguments)
                self._inside(content)
            case "argument and body":
                self._inside(content)
            case "version and body":
                version = _VERSION.match(arguments[0].text) if arguments else None
                if version is not None:
                    self._add([arguments[0].skip(version.end()), *arguments[1:]])
                self._inside(content)
            case "title and cells":
                self._add(arguments)
                options = lines[option:blank]
                if not any(_OTHER_CELLS.match(line.text) for line in options):
                    headers = [_CSV_HEADER.match(line.text) for line in options]
                    for line, header in zip(options, headers, strict=True):
                        self._in_cells(comma_cells([line.skip(header.end())]) if header else ())
                    self._in_cells(comma_cells(content))
            case "descriptions":  # plain texts
                for line in [*arguments, *lines[option:]]:
                    mark = _DESCRIPTION.match(line.text)
                    if mark is not None and "\\" not in line.text:
                        self._add([line.skip(mark.end())])
            case "glossary":  # its terms are names, which the text refers to
                for index, line in enumerate(content):
                    if line.text and line.indent and (not index or not content[index - 1].indent):
                        end = _indented_end(content, index)
                        self._inside(dedented(content[index:end]))


_RULES: tuple[Callable[[_Reader, Sequence[Line], int], int | None], ...] = (
    _Reader._quote,
    _Reader._bullet,
    _Reader._enumerated,
    _Reader._field,
    _Reader._options,
    _Reader._doctest,
    _Reader._line_block,
    _Reader._grid,
    _Reader._simple_table,
    _Reader._explicit,
    _Reader._anonymous,
    _Reader._overline,
    _Reader._text,
)
# what begins a block that is no paragraph
_BEGINNINGS = (
    *(_BULLET, _FIELD, _OPTIONS, _DOCTEST, _LINE_BLOCK, _GRID, _BORDER, _EXPLICIT, _ANONYMOUS),
    _ADORNMENT,
)


def begins_block(text: str, is_title: bool) -> bool:
    """Whether a text would begin another block than a paragraph or a title.

    text: the text.
    is_title: whether the text is a title."""
    is_item = not is_title and _ENUMERATOR.match(text)
    return bool(is_item) or any(pattern.match(text) for pattern in _BEGINNINGS)


def is_mark(text: str) -> bool:
    """Whether a text is the mark of an item.

    text: the text."""
    return bool(_BULLET.fullmatch(text) or _ENUMERATOR.fullmatch(text))


def wrapped(line: str, size: int, indent: int) -> list[str]:
    """A line of a paragraph, in several lines where it is too long. It is broken at blanks before
    words, but not inside markup that is copied; so one of the lines may still be too long.

    line: the line.
    size: how many columns a line may have.
    indent: the columns of blanks before each line but the first."""
    markup = [mark for mark in inline_markup(line) if mark.words is None and mark.name != STRAY]
    begins = [mark.start for mark in markup]

    def is_free(place: int) -> bool:
        number = bisect_right(begins, place) - 1
        return number < 0 or markup[number].stop <= place

    blanks = (blank.start() for blank in _BREAK.finditer(line))
    places = [place for place in blanks if place > indent and is_free(place)]
    lines, start = list[str](), 0
    for place, following in zip(places, [*places, len(line)][1:], strict=True):
        blank = indent if start else 0
        if blank + column_count(line[start:following]) > size:
            lines.append(" " * blank + line[start:place])
            start = place + 1
    return [*lines, " " * (indent if start else 0) + line[start:]]


def width(text: str) -> int:
    """The columns of a text, as docutils counts them: two for signs of East Asia, none for
    combining marks.

    text: the text."""
    import unicodedata

    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def _span(line: Line) -> tuple[int, int]:
    return line.start, line.start + len(line.text)


def _indented_end(lines: Sequence[Line], number: int, column: int = 1) -> int:
    """Where lines end from `number` on that are blank or indented so far."""
    while number < len(lines) and (not lines[number].text or lines[number].indent >= column):
        number += 1
    return number


def _paragraph_end(lines: Sequence[Line], number: int) -> int:
    """Where a paragraph ends that begins there: before a line that is blank or indented."""
    number += 1
    while number < len(lines) and lines[number].text and not lines[number].indent:
        number += 1
    return number


def _target_end(lines: Sequence[Line], number: int) -> int:
    """Where a target ends: before a line that is blank or not indented."""
    number += 1
    while number < len(lines) and lines[number].text and lines[number].indent:
        number += 1
    return number


def _literal_end(lines: Sequence[Line], number: int) -> int:
    """Where a literal block ends that is indented, or quoted by one sign in front of every line."""
    while number < len(lines) and not lines[number].text:
        number += 1
    if number == len(lines) or lines[number].indent:
        return _indented_end(lines, number)
    sign = lines[number].text[0]
    if re.match(_PUNCTUATION, sign):
        while number < len(lines) and lines[number].text.startswith(sign):
            number += 1
    return number


# --- inline markup

_NAME_BEHIND = re.compile(r"(?:\s+|\A)<(?=\S)[^<>]{1,500}(?<=\S)>\Z")


STRAY = "stray"  # the name of what begins markup that has no end


class Markup(NamedTuple):
    """Inline markup: where it stands in a text; and of a span where its words begin and end.
    `name`: "strong", "link" and so on."""

    name: str
    start: int
    stop: int
    words: tuple[int, int] | None = None


_ROLE = rf":{SIMPLE_NAME}:"
_START = re.compile(
    rf"(?P<escape>\\[\s\S])|(?P<strong>\*\*)(?=\S)|(?P<emphasis>\*)(?=[^\s*])|(?P<literal>``)(?=\S)"
    rf"|(?P<role>{_ROLE})?(?P<tick>`)(?=[^\s`])|(?P<target>_`)(?=\S)|(?P<substitution>\|)(?=\S)"
    rf"|\[(?:\d{{1,9}}|\*|#?{SIMPLE_NAME}|#)\]_(?!_)|(?<![\w])(?P<reference>{SIMPLE_NAME}__?)(?!\w)"
)
_ENDS = {
    "strong": re.compile(r"\\[\s\S]|(?<!(?<!\\)\s)\*\*"),
    "emphasis": re.compile(r"\\[\s\S]|(?<!(?<!\\)\s)\*"),
    "literal": re.compile(r"(?<!(?<!\\)\s)``(?!`)"),
    "tick": re.compile(rf"\\[\s\S]|(?<!(?<!\\)\s)`(?:{_ROLE}|__?)?"),
    "target": re.compile(r"\\[\s\S]|(?<!(?<!\\)\s)`"),
    "substitution": re.compile(r"\\[\s\S]|(?<!(?<!\\)\s)\|_{0,2}"),
}
_CLOSING = {"'": "'", '"': '"', "(": ")", "[": "]", "{": "}", "<": ">", "«": "»", "“": "”"}
# roles whose words are prose where they have a target of their own
_PROSE_ROLES = frozenset({":ref:", ":doc:", ":term:", ":any:", ":numref:", ":download:"})
_WORD_ROLES = frozenset({":emphasis:", ":strong:", ":dfn:"})


def inline_markup(text: str) -> Iterator[Markup]:
    """The inline markup of a text, in order. What has no end is text, and called stray.

    text: the text."""
    endless = set[str]()
    offset = 0
    while start := _START.search(text, offset):
        kind = start.lastgroup or "note"
        offset = start.end()
        if kind == "escape":
            yield Markup("escape", *start.span())
            continue
        if kind in ("reference", "note"):
            if may_precede(_preceding_sign(text, start)) and may_follow(text[offset : offset + 1]):
                yield Markup(kind, *start.span())
            continue
        if not _may_start(text, start):
            offset = start.start() + 1
            continue
        end = None if kind in endless else _end(text, start.end(), kind)
        if end is None:
            endless.add(kind)
            yield Markup(STRAY, *start.span())
            continue
        offset = end.end()
        yield _markup(text, start, end, kind)


def _end(text: str, offset: int, kind: str) -> re.Match[str] | None:
    for end in _ENDS[kind].finditer(text, offset + 1):
        if not end[0].startswith("\\") and may_follow(text[end.end() : end.end() + 1]):
            return end
    return None


def _markup(text: str, start: re.Match[str], end: re.Match[str], kind: str) -> Markup:
    inner = start.end(), end.start()
    if kind in ("strong", "emphasis"):
        return Markup(kind, start.start(), end.end(), inner)
    if kind != "tick":
        return Markup(kind, start.start(), end.end())
    target = _NAME_BEHIND.search(text[slice(*inner)])
    if target is not None:
        inner = inner[0], inner[0] + target.start()
    has_words = inner[1] > inner[0]
    suffix, role = end[0][1:], start["role"]
    if suffix in ("_", "__"):
        is_nameable = target or suffix == "__" or "<" not in text[slice(*inner)]
        words = inner if has_words and is_nameable else None
        return Markup("link", start.start(), end.end(), words)
    is_prose = role in _WORD_ROLES or (role in _PROSE_ROLES and target is not None)
    words = inner if is_prose and has_words else None
    return Markup("role", start.start(), end.end(), words)


def _may_start(text: str, start: re.Match[str]) -> bool:
    previous = _preceding_sign(text, start)
    following = text[start.end() : start.end() + 1]
    return may_precede(previous) and _CLOSING.get(previous, "") != (following or None)


def _preceding_sign(text: str, start: re.Match[str]) -> str:
    return text[start.start() - 1] if start.start() else ""


def may_precede(sign: str) -> bool:
    """Whether markup may begin behind a character.

    sign: the character; "" for the beginning of the text."""
    import unicodedata

    if sign.isascii():
        return not sign or sign.isspace() or sign in "'\"([{<-/:"
    return sign.isspace() or unicodedata.category(sign) in ("Ps", "Pi", "Pf", "Pd", "Po")


def may_follow(sign: str) -> bool:
    """Whether markup may end before a character.

    sign: the character; "" for the end of the text."""
    import unicodedata

    if sign.isascii():
        return not sign or sign.isspace() or sign in "'\")]}>-/\\:.,;!?"
    return sign.isspace() or unicodedata.category(sign) in ("Pe", "Pi", "Pf", "Pd", "Po")
