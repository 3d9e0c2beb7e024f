"""Plots as SVG text: lines over ordered points, and a heat map; legible on light and dark grounds
alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from tmnmt.eval.report.inline_svg import ticks

INK = "#7a7a7a"  # as far from white as from black
GRID = 'stroke="#7a7a7a" stroke-opacity="0.3"'
COLOURS = ("#d1702a", "#2f86c5", "#3f9b55", "#b0559f", "#9a8220", "#4c9aa0", "#c4515b", "#7b74c9")
WIDTH, HEIGHT = 720, 420  # of a line chart, in pixels
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 40, 56
TICKS = 12  # labels along an axis, at most
CELL = 22  # pixels, of a heat map
LETTER = 7.0  # pixels, about the width of one


def line_chart(
    title: str,
    x_title: str,
    y_title: str,
    labels: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    has_lines: bool = True,
) -> str:
    """An SVG of one line a series; points stand at equal distances under `labels`, a series may
    have fewer, and None where it has no point.

    `has_lines` False: points only, where what lies between two labels is nothing.

    There must be a label and a number. Titles are to name units."""
    values = [value for line in series.values() for value in line if value is not None]
    lines_at = ticks(min(values), max(values))
    low, high = min(lines_at[0], *values), max(lines_at[-1], *values)

    def x(i: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (i / (len(labels) - 1) if len(labels) > 1 else 0.5)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)

    parts = [_text((LEFT + WIDTH - RIGHT) / 2, 22, title, "middle", 15)]
    for tick in lines_at:
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" {GRID}/>'
        )
        parts.append(_text(LEFT - 8, y(tick) + 4, f"{tick:.6g}", "end"))
    label_step = -(-len(labels) // TICKS)
    parts += [
        _text(x(i), HEIGHT - BOTTOM + 18, labels[i], "middle")
        for i in range(0, len(labels), label_step)
    ]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_title, "middle"))
    parts.append(_text(18, (TOP + HEIGHT - BOTTOM) / 2, y_title, "middle", angle=-90))
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = [(x(i), y(value)) for i, value in enumerate(line) if value is not None]
        parts += _dots(points, colour) if len(labels) <= 2 * TICKS or not has_lines else []
        parts += _line(points, colour) if has_lines else []
        legend_y = TOP + 10 + 20 * number
        parts += _line([(WIDTH - RIGHT + 14, legend_y), (WIDTH - RIGHT + 34, legend_y)], colour)
        parts.append(_text(WIDTH - RIGHT + 40, legend_y + 4, name))
    return _document(WIDTH, max(HEIGHT, TOP + 20 * (len(series) + 1)), parts)


def heat_map(
    title: str,
    x_title: str,
    y_title: str,
    columns: Sequence[str],
    rows: Sequence[str],
    values: Sequence[Sequence[float]],
) -> str:
    """An SVG of values[row][column] >= 0, the greatest fully coloured; there must be a row and a
    column."""
    greatest = max(max(row) for row in values) or 1.0
    margin = 40 + LETTER * max(map(len, rows))
    top = 40 + LETTER * max(map(len, columns))
    bottom = top + CELL * len(rows)
    width = max(
        margin + CELL * len(columns) + 30,
        LETTER * 1.4 * len(title) + 20,
        LETTER * len(x_title) + margin + 20,
    )
    parts = [_text(width / 2, 22, title, "middle", 15)]
    for c, column in enumerate(columns):
        parts.append(_text(margin + CELL * (c + 0.5) + 4, top - 8, column, angle=-90))
    for r, row in enumerate(rows):
        parts.append(_text(margin - 6, top + CELL * (r + 0.5) + 4, row, "end"))
        for c, value in enumerate(values[r]):
            x, y = margin + CELL * c, top + CELL * r
            place = f'x="{x:.1f}" y="{y:.1f}" width="{CELL}" height="{CELL}"'
            paint = f'fill="{COLOURS[0]}" fill-opacity="{value / greatest:.3f}" {GRID}'
            parts.append(
                f"<rect {place} {paint}><title>{escape(row)} / {escape(columns[c])}: "
                f"{value:.4f}</title></rect>"
            )
    parts.append(_text(margin, bottom + 22, x_title))
    parts.append(_text(margin, bottom + 40, f"full colour: {greatest:.3f}; no colour: 0"))
    parts.append(_text(14, (top + bottom) / 2, y_title, "middle", angle=-90))
    return _document(width, max(bottom + 52, top + LETTER * len(y_title)), parts)


def _line(points: Sequence[tuple[float, float]], colour: str) -> list[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']


def _dots(points: Sequence[tuple[float, float]], colour: str) -> list[str]:
    return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]


def _text(
    x: float, y: float, text: str, anchor: str = "start", size: int = 12, angle: int = 0
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    turn = f' transform="rotate({angle} {x:.1f} {y:.1f})"' if angle else ""
    return f'<text {place} fill="{INK}"{turn}>{escape(text)}</text>'


def _document(width: float, height: float, parts: Sequence[str]) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">'
    return "\n".join([head, *parts, "</svg>", ""])
