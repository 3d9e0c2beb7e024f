"""The picture of docs/overview.md: the way of one sentence, and what each step reads.

    python docs/architecture.py [--picture docs/architecture.svg]

The picture is one SVG of boxes and arrows. It follows the colour scheme of the reader, light or
dark, and its text stays readable at the width of a telephone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WIDTH, MARGIN = 524, 10  # units of the picture, pixels where it is shown at its own size
ROW, GAP = 46, 14  # the height of a box, and of the arrow below it
LEFT_WIDTH, RIGHT_X = 256, 304
RAIL = WIDTH - MARGIN  # where what is confirmed goes up again
RIGHT_WIDTH = RAIL - 26 - RIGHT_X

STYLE = """
text { font: 15px system-ui, sans-serif; fill: #1c2b33; }
.small { font-size: 13px; fill: #47565e; }
.title { font-weight: 600; }
rect { rx: 8px; stroke-width: 1.5px; }
.page { fill: #ffffff; }
.step { fill: #e0f2f1; stroke: #00796b; }
.source { fill: #fff4e0; stroke: #b26a00; }
.outside { fill: none; stroke: #78909c; stroke-dasharray: 5 4; }
.arrow { fill: none; stroke: #546e7a; stroke-width: 1.6px; }
.head { fill: #546e7a; }
@media (prefers-color-scheme: dark) {
  text { fill: #eceff1; }
  .page { fill: #1e2129; }
  .small { fill: #b0bec5; }
  .step { fill: #123b38; stroke: #4db6ac; }
  .source { fill: #3d2e12; stroke: #ffb74d; }
  .outside { stroke: #90a4ae; }
  .arrow { stroke: #b0bec5; }
  .head { fill: #b0bec5; }
}
"""


class Box(NamedTuple):
    """A box of the picture: `kind` is a class of the style, `label` and `detail` its two lines."""

    kind: str
    label: str
    detail: str


# The way of a sentence from top to bottom, and beside each step what it reads.
STEPS = (
    Box("outside", "A segment arrives", "command line, file, server, page"),
    Box("step", "1  Prepare", "filter the text, cut it if it is long"),
    Box("step", "2  Retrieve", "look up similar segments"),
    Box("step", "3  Take, or decode", "a full match, or the model's text"),
    Box("step", "4  Restore", "undo the filters, join the pieces"),
    Box("step", "5  Place codes", "tags go where they belong"),
    Box("step", "6  Check and count", "terms, what must be kept"),
    Box("outside", "A person confirms it", "changed or not"),
)
SOURCES = {
    1: Box("source", "Filters", "repairs of texts"),
    2: Box("source", "Memories", "indexes of segments"),
    3: Box("source", "Model and layers", "read pairs and session"),
    6: Box("source", "Lists of terms", "what has to come"),
}
REMEMBERED = (2, 3)  # the steps whose sources learn what is confirmed
HEIGHT = 2 * MARGIN + len(STEPS) * ROW + (len(STEPS) - 1) * GAP


def main() -> None:
    """Writes the picture and prints where it lies."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--picture", type=Path, default=ROOT / "docs" / "architecture.svg")
    path = options.parse_args().picture
    path.write_text(picture(), encoding="utf-8")
    print(path)


def picture() -> str:
    """The whole SVG."""
    shapes = "\n".join([*_steps(), *_sources(), *_confirmation()])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n'
        "<title>The six steps of a sentence, and what each of them reads</title>\n"
        f"<style>{STYLE}</style>\n"
        '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path class="head" d="M0 0L8 4L0 8Z"/></marker>\n'
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>\n'
        f"{shapes}\n</svg>\n"
    )


def _top(row: int) -> int:
    return MARGIN + row * (ROW + GAP)


def _middle(row: int) -> int:
    return _top(row) + ROW // 2


def _steps() -> Iterator[str]:
    for row, step in enumerate(STEPS):
        yield _box(step, MARGIN, _top(row), LEFT_WIDTH)
        if row:
            middle = MARGIN + LEFT_WIDTH // 2
            yield _arrow([(middle, _top(row) - GAP), (middle, _top(row))])


def _sources() -> Iterator[str]:
    for row, source in SOURCES.items():
        yield _box(source, RIGHT_X, _top(row), RIGHT_WIDTH)
        yield _arrow([(RIGHT_X, _middle(row)), (MARGIN + LEFT_WIDTH, _middle(row))])


def _confirmation() -> Iterator[str]:
    """What is confirmed goes back into the memories and the session."""
    row = len(STEPS) - 1
    for number in REMEMBERED:
        yield _arrow(
            [
                (MARGIN + LEFT_WIDTH, _middle(row)),
                (RAIL, _middle(row)),
                (RAIL, _middle(number)),
                (RIGHT_X + RIGHT_WIDTH, _middle(number)),
            ]
        )


def _box(box: Box, x: int, y: int, width: int) -> str:
    return (
        f'<rect class="{box.kind}" x="{x}" y="{y}" width="{width}" height="{ROW}"/>'
        f'<text class="title" x="{x + 14}" y="{y + 19}">{escape(box.label)}</text>'
        f'<text class="small" x="{x + 14}" y="{y + 37}">{escape(box.detail)}</text>'
    )


def _arrow(points: Sequence[tuple[int, int]]) -> str:
    line = " ".join(f"{x},{y}" for x, y in points)
    return f'<polyline class="arrow" points="{line}" marker-end="url(#head)"/>'


if __name__ == "__main__":
    main()
