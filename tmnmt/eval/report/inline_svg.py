"""Plots as inline SVG: lines over named places, and points over a logarithmic axis.

Nothing is told by colour alone: every series has a colour, a marker and a dash of its own, every
point a title. Colours are classes (`s0` … `s7`, the Okabe-Ito palette), so that the page's style
sheet has one set for light and one for dark."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement

STYLES = 8
WIDTH, HEIGHT = 560, 330
LEFT, RIGHT, TOP, BOTTOM = 52, 544, 14, 268  # edges of the area that is plotted in
INSET = 24  # of the first and the last tick of a logarithmic axis
WIDE = 100  # a ratio: beyond it a logarithmic axis has fewer ticks
_MARKERS = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",  # circle
    "M-4,-4h8v8h-8z",  # square
    "M0,-5l5,8.5h-10z",  # triangle
    "M0,-5.5l5.5,5.5l-5.5,5.5l-5.5,-5.5z",  # diamond
    "M0,5l5,-8.5h-10z",  # triangle downwards
    "M-1.6,-5h3.2v3.4h3.4v3.2h-3.4v3.4h-3.2v-3.4h-3.4v-3.2h3.4z",  # plus
    "M-5,-2.5h10v5h-10z",  # bar
    "M-2.5,-5h5v10h-5z",  # pillar
)


@dataclass(frozen=True)
class Point:
    """`low` and `high` are the ends of an interval around y; a y of None is a gap in the line."""

    x: float
    y: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """A line, or a point of a scatter plot. `style` picks colour and marker; a `reference` is
    dashed."""

    name: str
    points: list[Point]
    style: int
    reference: bool = False


@dataclass(frozen=True)
class Plot:
    """`places`: names of the x axis at 0, 1, 2 …, each of one or two lines; none: x is logarithmic.
    `bars`: a share in [0, 1] of each place, drawn behind the lines. `level`: a y that is always in
    sight and has a line of its own."""

    title: str
    x_label: str
    y_label: str
    series: list[Series]
    places: list[tuple[str, ...]] = field(default_factory=list)
    bars: list[float] = field(default_factory=list)
    level: float | None = None


def svg(plot: Plot) -> Element:
    """The plot as an <svg> with a title for those who do not see it."""
    root = Element("svg", {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "img", "class": "plot"})
    SubElement(
        root, "title"
    ).text = f"{plot.title}: {', '.join(series.name for series in plot.series)}"
    scale = _Scale.create(plot)
    _bars(root, plot, scale)
    _y_axis(root, plot, scale)
    _x_axis(root, plot, scale)
    for series in plot.series:
        _draw(root, series, plot, scale)
    return root


def swatch(series: Series, line: bool) -> Element:
    """The series' mark for a legend."""
    root = Element("svg", {"viewBox": "-16 -8 32 16", "class": "swatch", "aria-hidden": "true"})
    group = SubElement(root, "g", {"class": _classes(series)})
    if line:
        SubElement(group, "path", {"class": "line", "d": "M-15,0h30"})
    SubElement(group, "path", {"class": "marker", "d": _marker(series)})
    return root


def ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Two or more round numbers, evenly spaced, from at most `low` to at least `high`; some `count`
    of them."""
    if high <= low:
        low, high = low - (abs(low) or 1) / 10, low + (abs(low) or 1) / 10
    step = 10 ** math.floor(math.log10((high - low) / count))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, or 1 and 3 times over a wide range, from at most `low` to at
    least `high`, both above 0."""
    factors = (1, 2, 5) if high / low <= WIDE else (1, 3)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [factor * 10.0**power for power in powers for factor in factors]
    first = max(i for i, step in enumerate(steps) if step <= low * (1 + 1e-9))
    last = min(
        (i for i, step in enumerate(steps) if step >= high * (1 - 1e-9)), default=len(steps) - 1
    )
    return steps[first : max(last, first + 1) + 1]


@dataclass(frozen=True)
class _Scale:
    """Where values stand in the picture."""

    y_ticks: list[float]
    x_ticks: list[float]
    has_names: bool

    @classmethod
    def create(cls, plot: Plot) -> _Scale:
        points = [point for series in plot.series for point in series.points]
        values = [v for point in points for v in (point.y, point.low, point.high) if v is not None]
        values += [] if plot.level is None else [plot.level]
        low, high = min(values), max(values)
        # a plot of nearly equal values does not blow their difference up
        room = max(0.5 - (high - low) / 2, 0)
        xs = [float(i) for i in range(len(plot.places))] or log_ticks(
            min(p.x for p in points), max(p.x for p in points)
        )
        return cls(ticks(low - room, high + room), xs, bool(plot.places))

    def x(self, value: float) -> float:
        if self.has_names:
            return LEFT + (value + 0.5) / len(self.x_ticks) * (RIGHT - LEFT)
        low, high = math.log(self.x_ticks[0]), math.log(self.x_ticks[-1])
        return LEFT + INSET + (math.log(value) - low) / (high - low) * (RIGHT - LEFT - 2 * INSET)

    def y(self, value: float) -> float:
        low, high = self.y_ticks[0], self.y_ticks[-1]
        return BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP)


def _bars(root: Element, plot: Plot, scale: _Scale) -> None:
    width = (RIGHT - LEFT) / max(len(plot.bars), 1) * 0.7
    for place, share in enumerate(plot.bars):
        height = share * (BOTTOM - TOP)
        x, y = scale.x(place) - width / 2, BOTTOM - height
        SubElement(root, "rect", {"class": "bar", **_numbers(x=x, y=y, width=width, height=height)})


def _y_axis(root: Element, plot: Plot, scale: _Scale) -> None:
    for tick in scale.y_ticks:
        y = scale.y(tick)
        kind = "level" if tick == plot.level else "grid"
        SubElement(root, "line", {"class": kind, **_numbers(x1=LEFT, x2=RIGHT, y1=y, y2=y)})
        _text(root, _short(tick), LEFT - 7, y + 4, "end")
    middle = (TOP + BOTTOM) / 2
    label = _text(root, plot.y_label, 13, middle, "middle", "label")
    label.set("transform", f"rotate(-90 13 {middle:g})")


def _x_axis(root: Element, plot: Plot, scale: _Scale) -> None:
    SubElement(root, "line", {"class": "axis", **_numbers(x1=LEFT, x2=RIGHT, y1=BOTTOM, y2=BOTTOM)})
    for i, tick in enumerate(scale.x_ticks):
        x = scale.x(tick)
        if not scale.has_names:
            SubElement(root, "line", {"class": "grid", **_numbers(x1=x, x2=x, y1=TOP, y2=BOTTOM)})
        for row, name in enumerate(plot.places[i] if scale.has_names else (_short(tick),)):
            _text(root, name, x, BOTTOM + 17 + 14 * row, "middle", "small" if row else "")
    _text(root, plot.x_label, (LEFT + RIGHT) / 2, HEIGHT - 10, "middle", "label")


def _draw(root: Element, series: Series, plot: Plot, scale: _Scale) -> None:
    group = SubElement(root, "g", {"class": _classes(series)})
    for has_value, run in groupby(series.points, key=lambda point: point.y is not None):
        if has_value:
            path = "L".join(f"{scale.x(p.x):.1f},{scale.y(p.y or 0):.1f}" for p in run)
            SubElement(group, "path", {"class": "line", "d": f"M{path}"})
    for point in series.points:
        if point.y is not None:
            _mark(group, point.y, point, series, plot, scale)


def _mark(
    group: Element, value: float, point: Point, series: Series, plot: Plot, scale: _Scale
) -> None:
    x, y = scale.x(point.x), scale.y(value)
    if point.low is not None and point.high is not None:
        ends = _numbers(x1=x, x2=x, y1=scale.y(point.low), y2=scale.y(point.high))
        SubElement(group, "line", {"class": "interval", **ends})
    place = " ".join(plot.places[int(point.x)]) if plot.places else f"{point.x:,.0f} {plot.x_label}"
    attributes = {
        "class": "marker",
        "d": _marker(series),
        "transform": f"translate({x:.1f} {y:.1f})",
    }
    marker = SubElement(group, "path", attributes)
    SubElement(marker, "title").text = f"{series.name}, {place}: {value:.2f} {plot.y_label}"


def _marker(series: Series) -> str:
    """Another one for every round through the colours: no two of 64 series look alike."""
    return _MARKERS[(series.style + series.style // STYLES) % STYLES]


def _classes(series: Series) -> str:
    return f"s{series.style % STYLES}" + (" reference" if series.reference else "")


def _text(root: Element, text: str, x: float, y: float, anchor: str, kind: str = "") -> Element:
    element = SubElement(root, "text", {"class": kind, "text-anchor": anchor, **_numbers(x=x, y=y)})
    element.text = text
    return element


def _numbers(**values: float) -> dict[str, str]:
    return {name: f"{value:.1f}" for name, value in values.items()}


def _short(value: float) -> str:
    return f"{value:,.10g}".replace("-", "−")
