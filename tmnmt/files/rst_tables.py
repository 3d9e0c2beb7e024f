"""Tables of reStructuredText: those that are drawn, with `+---+` or `===`, and those of commas
(docutils, *reStructuredText Markup Specification* and *Directives*). Here stands where their cells
are, and how a table looks when the texts of its cells are others. What is in a cell, other modules
read.

A drawn table gets wider columns and higher rows where the new texts need them, and nothing else in
it moves."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate
from typing import NamedTuple

from tmnmt.files.rst_lines import Line
from tmnmt.files.whole import Edit

_LARGEST = 1 << 19  # characters of a table that is drawn
_MOST_STEPS = 1 << 21  # characters that are looked at on the search for cells
_HEADER = re.compile(r"\+=[=+]+=\+$")
_RULE = re.compile(r"=[ =]*$|-[ -]*$")
_RUN = re.compile(r"=+|-+")
_CSV_CELL = re.compile(
    r" *(?:\"(?P<quoted>(?:[^\"]|\"\")*)\"|(?P<plain>[^,\"\n][^,\n]*|))(?=,|\n|\Z)"
)
_PAD = "\0"  # the second column of a wide character

# a line of a paragraph, in lines of so many columns, of which all but the first are indented
Wrap = Callable[[str, int, int], list[str]]


class Change(NamedTuple):
    """What takes the place of a text in a cell.

    edit: where the text stands in the file, and what takes its place.
    indent: the column at which further lines of it begin; None where it must not have any."""

    edit: Edit
    indent: int | None


class Frame(ABC):
    """What is written anew as a whole where a text in it changes."""

    @abstractmethod
    def edit(self, text: str, changes: Mapping[Cell, Sequence[Change]], wrap: Wrap) -> Edit:
        """What takes its place in the file.

        text: the file.
        changes: those of each of its cells that has some, in order.
        wrap: breaks a line of a paragraph."""


@dataclass(slots=True, eq=False)
class Cell:
    """A cell of a table.

    frame: what is written anew where the cell changes.
    lines: what the cell says.
    top: the line above it, or its first one in a table without frames around its cells.
    left_edge: the column to the left of it, or its first one.
    bottom: the line below it.
    right_edge: the column to the right of it."""

    frame: Frame
    lines: list[Line]
    top: int = 0
    left_edge: int = 0
    bottom: int = 0
    right_edge: int = 0


@dataclass(slots=True, eq=False)
class DrawnTable(Frame):
    """A table that is drawn. `inner`: how many lines and columns a frame takes of each cell, 1 or
    0. `header`: the number of the line with `=` in a table with frames."""

    lines: Sequence[Line]
    inner: int
    header: int = -1
    cells: list[Cell] = field(default_factory=list)

    def add(self, top: int, left_edge: int, bottom: int, right_edge: int, stop: int) -> None:
        """A cell by the lines and columns around it; its last column is before `stop`."""
        inside = self.lines[top + self.inner : bottom]
        lines = [part(line, left_edge + self.inner, stop) for line in inside]
        self.cells.append(Cell(self, lines, top, left_edge, bottom, right_edge))

    def edit(self, text: str, changes: Mapping[Cell, Sequence[Change]], wrap: Wrap) -> Edit:
        new = {cell: self._changed(cell, changes.get(cell, ()), wrap) for cell in self.cells}
        rows = self._draw(new)
        start = self.lines[0].start
        end = self.lines[-1].start + len(self.lines[-1].text)
        newline = "\r\n" if "\r\n" in text[start:end] else "\n"
        second = self.lines[1].start
        indentation = text[text.rfind("\n", 0, second) + 1 : second]
        return Edit(start, end, f"{newline}{indentation}".join(rows))

    def _changed(self, cell: Cell, changes: Sequence[Change], wrap: Wrap) -> list[str]:
        """The lines of a cell with its changes; they are broken where they become too long."""
        starts = [line.start for line in cell.lines]
        lines: list[tuple[str, int | None]] = [(line.text, None) for line in cell.lines]
        longest = max((column_count(text) for text, _ in lines), default=0)
        for (start, end, new), indent in reversed(changes):
            first, last = bisect_right(starts, start) - 1, bisect_left(starts, end) - 1
            head, tail = lines[first][0][: start - starts[first]], lines[last][0]
            text = head + new + tail[end - starts[last] :]
            lines[first : last + 1] = [(text, indent)]
        size = max(longest, cell.right_edge - cell.left_edge - 2 * self.inner)
        is_first = not self.inner and cell.left_edge == 0  # a line in this column begins a row
        return [
            part
            for line, indent in lines
            for part in ([line] if indent is None or is_first else wrap(line, size, indent))
        ]

    def _draw(self, new: Mapping[Cell, Sequence[str]]) -> list[str]:
        """The lines of the table with these texts in its cells."""
        widths, down = list[tuple[int, int, int]](), list[tuple[int, int, int]]()
        for cell, texts in new.items():
            size = max(map(column_count, texts), default=0)
            size += bool(self.inner and texts != [line.text for line in cell.lines])
            size_now = (
                cell.right_edge - cell.left_edge - self.inner,
                cell.bottom - cell.top - self.inner,
            )
            widths.append((cell.left_edge, cell.right_edge, size - size_now[0]))
            down.append((cell.top, cell.bottom, len(texts) - size_now[1]))
        wider, higher = _Stretch(widths), _Stretch(down)
        canvas = _Canvas()
        if self.inner:
            self._draw_frames(canvas, wider, higher)
        else:
            self._draw_rules(canvas, wider, higher)
        for cell, texts in new.items():
            x, y = wider.place_of(cell.left_edge), higher.place_of(cell.top)
            for number, text in enumerate(texts):
                canvas.put(x + self.inner, y + self.inner + number, padded(text))
        return canvas.lines()

    def _draw_frames(self, canvas: _Canvas, wider: _Stretch, higher: _Stretch) -> None:
        corners = list[tuple[int, int]]()
        for cell in self.cells:
            left_edge, right_edge = wider.place_of(cell.left_edge), wider.place_of(cell.right_edge)
            top, bottom = higher.place_of(cell.top), higher.place_of(cell.bottom)
            for line, y in ((cell.top, top), (cell.bottom, bottom)):
                canvas.put(
                    left_edge, y, ("=" if line == self.header else "-") * (right_edge - left_edge)
                )
            for y in range(top, bottom):
                canvas.put(left_edge, y, "|")
                canvas.put(right_edge, y, "|")
            corners += [(x, y) for x in (left_edge, right_edge) for y in (top, bottom)]
        for x, y in corners:
            canvas.put(x, y, "+")

    def _draw_rules(self, canvas: _Canvas, wider: _Stretch, higher: _Stretch) -> None:
        for number, line in enumerate(self.lines):
            if _RULE.match(line.text):
                for run in _RUN.finditer(line.text):
                    begin, end = wider.place_of(run.start()), wider.place_of(run.end())
                    canvas.put(begin, higher.place_of(number), run[0][0] * (end - begin))


class _Stretch:
    """How lines or columns move when there have to be more of them between some."""

    def __init__(self, needs: Sequence[tuple[int, int, int]]) -> None:
        """needs: of each cell where it begins and ends, and how much more it needs there."""
        self._borders = sorted({border for need in needs for border in need[:2]})
        numbers = {border: number for number, border in enumerate(self._borders)}
        growth = [0] * len(self._borders)  # before each border
        for begin, end, needed in sorted(needs, key=lambda need: need[1] - need[0]):
            first, last = numbers[begin], numbers[end]
            growth[last] += max(0, needed - sum(growth[first + 1 : last + 1]))
        self._shifts = list(accumulate(growth))

    def place_of(self, place: int) -> int:
        """Where a line or column comes to stand."""
        number = bisect_right(self._borders, place) - 1
        return place + (self._shifts[number] if number >= 0 else 0)


class _Canvas:
    """Lines on which texts are put at columns."""

    def __init__(self) -> None:
        self._rows = list[list[str]]()

    def put(self, x: int, y: int, text: str) -> None:
        while len(self._rows) <= y:
            self._rows.append([])
        row = self._rows[y]
        row.extend(" " * (x + len(text) - len(row)))
        row[x : x + len(text)] = text

    def lines(self) -> list[str]:
        return ["".join(row).replace(_PAD, "").rstrip() for row in self._rows]


def padded(text: str) -> str:
    """A text with a further character behind each that takes two columns, as docutils counts.

    text: the text."""
    if text.isascii():
        return text
    import unicodedata

    return "".join(
        sign + _PAD if unicodedata.east_asian_width(sign) in "WF" else sign for sign in text
    )


def column_count(text: str) -> int:
    """How many columns of a table a text takes.

    text: the text."""
    return len(padded(text))


def part(line: Line, left_edge: int, right_edge: int) -> Line:
    """What stands in some columns of a line.

    line: the line.
    left_edge: the first column.
    right_edge: the column behind the last."""
    whole = padded(line.text)
    start = line.start + len(whole[:left_edge].replace(_PAD, ""))
    return Line(start, whole[left_edge:right_edge].replace(_PAD, "").rstrip())


# --- tables with frames


def grid_table(lines: Sequence[Line]) -> DrawnTable | None:
    """A table whose cells have frames; None where it is none, and where it is too large or has
    tabs.

    lines: the lines of the table."""
    rows = [padded(line.text) for line in lines]
    size = len(rows[0])
    is_whole = all(len(row) == size and row[-1] in "+|" and "\t" not in row for row in rows)
    if not is_whole or size * len(rows) > _LARGEST:
        return None
    headers = [number for number, row in enumerate(rows) if _HEADER.match(row)]
    if len(headers) > 1 or headers in ([0], [len(rows) - 1]):
        return None
    for number in headers:
        rows[number] = rows[number].replace("=", "-")
    table = DrawnTable(lines, 1, headers[0] if headers else -1)
    search = _GridSearch(rows)
    try:
        for top, left_edge, bottom, right_edge in search.cells():
            table.add(top, left_edge, bottom, right_edge, right_edge)
    except ValueError:
        return None
    return table


class _GridSearch:
    """Looks for cells as docutils does: from every corner to the right, down, and back."""

    def __init__(self, rows: Sequence[str]) -> None:
        self._rows = rows
        self._bottom, self._right = len(rows) - 1, len(rows[0]) - 1
        self._steps = 0

    def cells(self) -> Iterator[tuple[int, int, int, int]]:
        """The lines and columns around each cell: top, left, bottom, right. Raises ValueError where
        something of the table is in no cell, and for a table that takes too long."""
        depths = [-1] * self._right  # down to where each column is in cells
        corners = [(0, 0)]
        known_corners = {(0, 0)}
        while corners:
            top, left_edge = heappop(corners)
            if top == self._bottom or left_edge == self._right or top <= depths[left_edge]:
                continue
            result = self._cell(top, left_edge)
            if result is None:
                continue
            bottom, right_edge, further = result
            if any(row != top - 1 for row in depths[left_edge:right_edge]):
                raise ValueError("cells do not fit together")
            depths[left_edge:right_edge] = [bottom - 1] * (right_edge - left_edge)
            yield top, left_edge, bottom, right_edge
            for corner in {*further, (top, right_edge), (bottom, left_edge)} - known_corners:
                heappush(corners, corner)
                known_corners.add(corner)
        if any(row != self._bottom - 1 for row in depths):
            raise ValueError("something is in no cell")

    def _cell(self, top: int, left_edge: int) -> tuple[int, int, set[tuple[int, int]]] | None:
        """The smallest cell at a corner: bottom, right, and the corners on its frame."""
        if self._rows[top][left_edge] != "+":
            return None
        further = set[tuple[int, int]]()
        for right_edge in range(left_edge + 1, self._right + 1):
            self._count()
            sign = self._rows[top][right_edge]
            if sign == "+":
                further.add((top, right_edge))
                if result := self._down(top, left_edge, right_edge):
                    return result[0], right_edge, further | result[1]
            elif sign != "-":
                return None
        return None

    def _down(
        self, top: int, left_edge: int, right_edge: int
    ) -> tuple[int, set[tuple[int, int]]] | None:
        further = set[tuple[int, int]]()
        for bottom in range(top + 1, self._bottom + 1):
            self._count()
            sign = self._rows[bottom][right_edge]
            if sign == "+":
                further.add((bottom, right_edge))
                frame = self._frame_corners(top, left_edge, bottom, right_edge)
                if frame is not None:
                    return bottom, further | frame
            elif sign != "|":
                return None
        return None

    def _frame_corners(
        self, top: int, left_edge: int, bottom: int, right_edge: int
    ) -> set[tuple[int, int]] | None:
        """The corners below and to the left of a cell; None where there is no frame."""
        self._count(right_edge - left_edge + bottom - top)
        bottom_line = self._rows[bottom][left_edge : right_edge + 1]
        side_line = "".join(row[left_edge] for row in self._rows[top : bottom + 1])
        if (
            bottom_line.strip("+-")
            or side_line.strip("+|")
            or bottom_line[0] != "+"
            or side_line[0] != "+"
        ):
            return None
        return {
            *(
                (bottom, left_edge + column)
                for column, sign in enumerate(bottom_line)
                if sign == "+"
            ),
            *((top + row, left_edge) for row, sign in enumerate(side_line) if sign == "+"),
        }

    def _count(self, steps: int = 1) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise ValueError("the table takes too long")


# --- tables with rules


def simple_table(lines: Sequence[Line]) -> DrawnTable | None:
    """A table whose columns stand between rules of `=`; None where it is none, and where it is too
    large or has tabs.

    lines: the lines of the table."""
    rows = [padded(line.text) for line in lines]
    if sum(map(len, rows)) > _LARGEST or any("\t" in row for row in rows):
        return None
    columns = [run.span() for run in _RUN.finditer(rows[0])]
    table = DrawnTable(lines, 0)
    start, has_text = 1, False
    try:
        for number in range(1, len(rows)):
            row = rows[number]
            if _RULE.match(row):
                if start < number:
                    _add_row(table, rows, (start, number), columns, _spans_of(row, columns))
                start, has_text = number + 1, False
            elif row[slice(*columns[0])].strip():
                if has_text:
                    _add_row(table, rows, (start, number), columns, columns)
                start, has_text = number, True
            elif not has_text:
                if row.strip():
                    return None  # docutils drops it
                start = number + 1
    except ValueError:
        return None
    return table


def _spans_of(rule: str, columns: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Which columns a row has that ends with a rule. Raises ValueError where they are none of the
    table."""
    spans = [run.span() for run in _RUN.finditer(rule)]
    begins, ends = ({column[side] for column in columns} for side in (0, 1))
    is_whole = spans[0][0] == columns[0][0] and spans[-1][1] == columns[-1][1]
    if not is_whole or not all(begin in begins and end in ends for begin, end in spans):
        raise ValueError("a rule that does not fit the columns")
    return spans


def _add_row(
    table: DrawnTable,
    rows: Sequence[str],
    lines: tuple[int, int],
    columns: Sequence[tuple[int, int]],
    spans: Sequence[tuple[int, int]],
) -> None:
    """Adds the cells of a row. Raises ValueError where a text stands between two columns."""
    for number, (left_edge, right_edge) in enumerate(spans):
        is_last = number + 1 == len(spans)
        following = len(max(rows, key=len)) if is_last else spans[number + 1][0]
        if not is_last and any(row[right_edge:following].strip() for row in rows[slice(*lines)]):
            raise ValueError("a text between two columns")
        table.add(lines[0], left_edge, lines[1], right_edge, following)


# --- tables of commas


@dataclass(slots=True, eq=False)
class CommaCell(Frame):
    """A cell between commas, which stands in quotes where it has some. `start`, `stop`: of what is
    inside the quotes."""

    start: int
    stop: int
    is_quoted: bool

    def edit(self, text: str, changes: Mapping[Cell, Sequence[Change]], wrap: Wrap) -> Edit:
        new, end = "", self.start
        for change in (change for of_cell in changes.values() for change in of_cell):
            new += text[end : change.edit.start] + change.edit.new
            end = change.edit.end
        new += text[end : self.stop]
        if not self.is_quoted and not set(',"').isdisjoint(new):
            return Edit(self.start, self.stop, '"{}"'.format(new.replace('"', '""')))
        return Edit(self.start, self.stop, new.replace('"', '""') if self.is_quoted else new)


def comma_cells(lines: Sequence[Line]) -> Iterator[Cell]:
    """The cells of a table of commas, in order, without those that have quotes inside. Where
    something stands there that is none, nothing more is given.

    lines: the lines of the table."""
    starts, size = list[int](), 0
    for line in lines:
        starts.append(size)
        size += len(line.text) + 1
    whole = "\n".join(line.text for line in lines)

    def place(offset: int) -> tuple[int, int]:
        """The number of a line, and the place in the file."""
        number = bisect_right(starts, offset) - 1
        return number, lines[number].start + offset - starts[number]

    offset = 0
    while offset <= len(whole) and (match := _CSV_CELL.match(whole, offset)):
        name = "quoted" if match["quoted"] is not None else "plain"
        begin, end = match.span(name)
        offset = match.end() + 1
        if begin == end or '""' in match[name]:
            continue
        (first, start), (last, stop) = place(begin), place(end)
        frame = CommaCell(start, stop, name == "quoted")
        ends = [*(len(lines[number].text) for number in range(first, last)), end - starts[last]]
        begins = [begin - starts[first], *[0] * (last - first)]
        yield Cell(
            frame,
            [
                Line(lines[first + n].start + a, lines[first + n].text[a:b].rstrip())
                for n, (a, b) in enumerate(zip(begins, ends, strict=True))
            ],
        )
