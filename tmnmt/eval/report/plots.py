"""Which plots the report of a test set has, and the figures behind each of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from tmnmt.eval.report.inline_svg import Plot, Point, Series, svg, swatch
from tmnmt.eval.report.markup import UNKNOWN, e, figure, table
from tmnmt.eval.report.run_folder import Node

METRIC = "BLEU"  # what is plotted
# a setting that says where outputs are kept, and nothing of how they were made
OUTPUTS = "translations"
TALLEST_BAR = 0.35  # of the plot's height, for the largest band


def plots(test: Node) -> Iterator[Element]:
    """The plots that the data of a test set allow, each a <figure> with a legend and a table of its
    figures."""
    for plot in (_by_band(test), *_by_setting(test), *_gains(test), _speed(test)):
        if plot is not None and any(
            point.y is not None for series in plot.series for point in series.points
        ):
            yield _figure(plot)


def is_paste(system: Node) -> bool:
    """Whether the system pastes the best match's target: the line to beat."""
    return bool(system.node("settings").raw("paste"))


def baseline_of(test: Node) -> Node | None:
    """The system that the others are compared with."""
    return next((system for system in test.nodes("systems") if system.flag("baseline")), None)


def best_of(test: Node) -> Node:
    """The system of the highest BLEU, other than the baseline where there is another."""
    systems = test.nodes("systems")
    candidates = [system for system in systems if not system.flag("baseline")] or systems
    return max(
        candidates, key=lambda system: system.node("metrics").node(METRIC).number("score") or 0
    )


def _by_band(test: Node) -> Plot | None:
    bands = {band.text("band"): band.number("segments") or 0 for band in test.nodes("bands")}
    if not bands:
        return None
    series = []
    for style, system in enumerate(test.nodes("systems")):
        scores = {
            row.text("band"): row.node("metrics").number(METRIC) for row in system.nodes("by_band")
        }
        points = [Point(place, scores.get(band)) for place, band in enumerate(bands)]
        series.append(Series(system.name("name"), points, style, is_paste(system)))
    maximum = max(bands.values()) or 1
    return Plot(
        f"{METRIC} by the best match in the memory",
        "best fuzzy match; segments below it, as bars",
        METRIC,
        series,
        [(band, f"{count:,.0f}") for band, count in bands.items()],
        [count / maximum * TALLEST_BAR for count in bands.values()],
    )


def _by_setting(test: Node) -> Iterator[Plot]:
    """One plot for every number in the settings in which some systems differ, and in
    nothing else."""
    systems = [system for system in test.nodes("systems") if not is_paste(system)]
    for setting in dict.fromkeys(
        key for system in systems for key in system.node("settings").keys()
    ):
        alike: dict[str, list[tuple[float, Node, int]]] = {}
        for style, system in enumerate(systems):
            value = _as_number(system.node("settings").raw(setting))
            if value is not None:
                alike.setdefault(_other_settings(system, setting), []).append(
                    (value, system, style)
                )
        groups = [group for group in alike.values() if len({value for value, _, _ in group}) > 1]
        if groups:
            yield _setting_plot(setting, groups)


def _other_settings(system: Node, setting: str) -> str:
    settings = system.node("settings")
    remaining = {key: settings.raw(key) for key in settings.keys() if key not in (setting, OUTPUTS)}
    return json.dumps(remaining, sort_keys=True)


def _as_number(value: object) -> float | None:
    """A number, also where it is told as text."""
    try:
        number = (
            float(value)
            if isinstance(value, str | int | float) and not isinstance(value, bool)
            else math.nan
        )
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _setting_plot(setting: str, groups: list[list[tuple[float, Node, int]]]) -> Plot:
    values = sorted({value for group in groups for value, _, _ in group})
    series = []
    for group in groups:
        points = []
        for value, system, _ in sorted(group, key=lambda point: point[0]):
            score = system.node("metrics").node(METRIC)
            points.append(
                Point(
                    values.index(value),
                    score.number("score"),
                    score.number("low"),
                    score.number("high"),
                )
            )
        series.append(
            Series(" / ".join(system.name("name") for _, system, _ in group), points, group[0][2])
        )
    name = setting.replace("_", " ")
    places: list[tuple[str, ...]] = [(f"{value:,g}",) for value in values]
    return Plot(f"{METRIC} over {name}", name, f"{METRIC}, with 95 % intervals", series, places)


def _gains(test: Node) -> Iterator[Plot]:
    """What the systems gain over the baseline, by position in the document and by length."""
    for key, title, label in (
        ("by_position", "by position in the document", "segments from the start of the document"),
        ("by_length", "by length of the source", "words"),
    ):
        baseline = baseline_of(test)
        if baseline is None or not baseline.nodes(key):
            continue
        places = [span(row) for row in baseline.nodes(key)]
        baseline_scores = _scores(baseline, key)
        series = [
            Series(
                system.name("name"),
                _differences(places, baseline_scores, _scores(system, key)),
                style,
                is_paste(system),
            )
            for style, system in enumerate(test.nodes("systems"))
            if not system.flag("baseline")
        ]
        yield Plot(
            f"Gain in {METRIC} over {baseline.name('name')} {title}",
            label,
            f"{METRIC}, difference",
            series,
            [(place,) for place in places],
            level=0,
        )


def span(row: Node) -> str:
    """The values from `from` to `to`; without an end when `to` is not known."""
    low, high = row.number("from"), row.number("to")
    if high is None:
        return f"{low or 0:g}+"
    return f"{low or 0:g}" if low == high else f"{low or 0:g}–{high:g}"


def _scores(system: Node, key: str) -> dict[str, float | None]:
    return {span(row): row.node("metrics").number(METRIC) for row in system.nodes(key)}


def _differences(
    places: list[str],
    baseline_scores: dict[str, float | None],
    system_scores: dict[str, float | None],
) -> list[Point]:
    points = []
    for place, name in enumerate(places):
        old, new = baseline_scores.get(name), system_scores.get(name)
        points.append(Point(place, None if old is None or new is None else new - old))
    return points


def _speed(test: Node) -> Plot | None:
    series = []
    for style, system in enumerate(test.nodes("systems")):
        rate = system.node("cost").number("words_per_second")
        score = system.node("metrics").node(METRIC)
        if rate and rate > 0 and score.number("score") is not None:
            point = Point(rate, score.number("score"), score.number("low"), score.number("high"))
            series.append(Series(system.name("name"), [point], style, is_paste(system)))
    return Plot(f"Speed against {METRIC}", "words a second", METRIC, series) if series else None


def _figure(plot: Plot) -> Element:
    names = (e("li", swatch(series, bool(plot.places)), " ", series.name) for series in plot.series)
    return e(
        "figure",
        e("figcaption", plot.title),
        e("div", svg(plot), class_="plot-frame"),
        e("ul", *names, class_="legend"),
        e("details", e("summary", "Figures"), _table(plot)),
    )


def _table(plot: Plot) -> Element:
    if not plot.places:
        points = [(series.name, series.points[0]) for series in plot.series]
        rows = [[name, figure(point.x, 0), figure(point.y)] for name, point in points]
        return table(plot.title, ["System", plot.x_label, plot.y_label], rows)
    lines = []
    for place, name in enumerate(plot.places):
        figures = ([figure(p.y) for p in series.points if p.x == place] for series in plot.series)
        lines.append([" · ".join(name), *((values or [UNKNOWN])[0] for values in figures)])
    return table(plot.title, [plot.x_label, *(series.name for series in plot.series)], lines)
