"""The tables of a test set: the summary that is read first, and what stands behind it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from urllib.parse import urlencode
from xml.etree.ElementTree import Element

from tmnmt.eval.measures.slices import NONE
from tmnmt.eval.measures.verdict import RULE, differs
from tmnmt.eval.report.markup import UNKNOWN, Cell, Child, e, figure, share, table
from tmnmt.eval.report.plots import baseline_of, span
from tmnmt.eval.report.run_folder import Node

ORIGINS = ("memory", "cache", "model")


def summary(test: Node) -> Element:
    """Every system with its metrics: the best in bold, intervals below, ▲ and ▼ where it differs
    from the baseline."""
    names = metrics_of(test)
    extras = _available(_OPTIONAL_COLUMNS, test.nodes("systems"))
    rows: list[list[Child | Cell]] = []
    for system in test.nodes("systems"):
        rows.append(
            [
                _name_cell(test, system),
                *(_score(test, system, name) for name in names),
                *(Cell(show(value(system))) for _, value, show in extras),
                _links(test, system),
            ]
        )
    columns = [
        "System",
        *(_headed(name) for name in names),
        *(title for title, _, _ in extras),
        "Segments",
    ]
    return table(f"{test.name('name')}: scores of all segments. {_legend(test)}", columns, rows)


# its title, what it has of a system, and how that is shown
Column = tuple[str, Callable[[Node], float | None], Callable[[float | None], str]]


def _cost_column(title: str, key: str, digits: int = 0) -> Column:
    return (
        title,
        lambda system: system.node("cost").number(key),
        lambda value: figure(value, digits),
    )


def _mebibytes(size: float | None) -> str:
    return UNKNOWN if size is None else f"{size / 2**20:,.0f} MiB"


_MODEL_COLUMNS = [
    _cost_column("Parameters", "parameters"),
    _cost_column("Training seconds", "training_seconds"),
]
_OPTIONAL_COLUMNS: list[Column] = [
    ("Edit rate ↓", lambda system: system.node("effort").number("edit_rate"), share),
    ("LTCR ↑", lambda system: system.node("consistency").number("LTCR"), share),
    _cost_column("Words a second", "words_per_second"),
    *_MODEL_COLUMNS,
]
_COSTS: list[Column] = [
    _cost_column("Seconds", "seconds", 1),
    _cost_column("Words a second", "words_per_second", 1),
    ("Peak memory", lambda system: system.node("cost").number("peak_bytes"), _mebibytes),
    *_MODEL_COLUMNS,
    _cost_column("Training subwords a second", "training_tokens_per_second"),
]


def _available(columns: list[Column], systems: list[Node]) -> list[Column]:
    """Those in which there is a figure."""
    return [
        column for column in columns if any(column[1](system) is not None for system in systems)
    ]


def metrics_of(test: Node) -> list[str]:
    """Names of all metrics, in the order in which the systems have them."""
    return list(
        dict.fromkeys(
            name for system in test.nodes("systems") for name in system.node("metrics").keys()
        )
    )


def _lower_is_better(metric: str) -> bool:
    return metric.upper().startswith("TER")


def _headed(metric: str) -> str:
    return f"{metric} {'↓' if _lower_is_better(metric) else '↑'}"


def _name_cell(test: Node, system: Node) -> Element:
    name = system.name("name")
    return e("span", name, e("small", "baseline")) if system.flag("baseline") else e("span", name)


def _score(test: Node, system: Node, metric: str) -> Cell:
    score = system.node("metrics").node(metric)
    value, low, high = score.number("score"), score.number("low"), score.number("high")
    if value is None:
        return Cell(UNKNOWN)
    mark, difference = _difference(test, system, metric)
    return Cell(
        figure(value), _interval(low, high), figure(value) == _best(test, metric), mark, difference
    )


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{figure(low)} to {figure(high)}"


def _best(test: Node, metric: str) -> str:
    scores = (
        system.node("metrics").node(metric).number("score") for system in test.nodes("systems")
    )
    numbers = [score for score in scores if score is not None]
    return figure((min if _lower_is_better(metric) else max)(numbers))


def _difference(test: Node, system: Node, metric: str) -> tuple[str, str]:
    """▲ or ▼ and what it says, where the system differs from the baseline by this metric."""
    baseline = baseline_of(test)
    if baseline is None:
        return "", ""
    name = baseline.name("name")
    comparisons = [
        v
        for v in system.nodes("versus")
        if v.text("metric") == metric and v.text("against") == name
    ]
    if not any(differs(v.text("test"), v.number("p_holm")) for v in comparisons):
        return "", ""
    better = ((comparisons[0].number("difference") or 0) > 0) != _lower_is_better(metric)
    return (
        ("▲", f"significantly better than {name}")
        if better
        else ("▼", f"significantly worse than {name}")
    )


def _legend(test: Node) -> str:
    baseline = baseline_of(test)
    parts = ["Best in bold; below, 95 % intervals."]
    if baseline is not None and any(system.nodes("versus") for system in test.nodes("systems")):
        parts.append(f"▲ better, ▼ worse than {baseline.name('name')}: {RULE}.")
    return " ".join([*parts, *_owner_note(test)])


def _owner_note(test: Node) -> list[str]:
    """What parameters and training are of, where they are known."""
    titles = [title for title, _, _ in _available(_MODEL_COLUMNS, test.nodes("systems"))]
    owners = "of the backbone and of the memory layers that a system reads"
    return [f"{' and '.join(titles).capitalize()}: {owners}."] if titles else []


def _links(test: Node, system: Node) -> Element:
    def link(text: str, order: str) -> Element:
        fragment = urlencode(
            {"test": test.name("name"), "system": system.name("name"), "order": order}
        )
        return e("a", text, href=f"#{fragment}")

    if system.flag("baseline") or baseline_of(test) is None:
        return e("span", link("read", "text"), class_="links")
    return e("span", link("losses", "loss"), " ", link("gains", "gain"), class_="links")


def tables(test: Node) -> Iterator[tuple[str, Element]]:
    """(title, table) of everything else that is known of a test set."""
    for title, make in (
        ("Gain by match band", _gains),
        ("Significance", _significance),
        ("Match bands", _bands),
        ("Near leaks", _near_leaks),
        ("Where the words come from", _origins),
        ("Lexical consistency", _consistency),
        ("Post-editing effort", _effort),
        ("Cost", _cost),
        ("Settings", _settings),
        ("Signatures", _signatures),
    ):
        element = make(test)
        if element is not None:
            yield title, element
    for key, title in (
        ("by_band", "match band"),
        ("by_near_leak", "near leak"),
        ("by_position", "position"),
        ("by_length", "length"),
    ):
        by_metric = [_by_place(test, key, title, metric) for metric in _place_metrics(test, key)]
        if by_metric:
            yield f"By {title}", e("div", *by_metric)


def _significance(test: Node) -> Element | None:
    rows = [
        [
            system.name("name"),
            versus.text("against"),
            versus.text("metric"),
            versus.text("test"),
            figure(versus.number("difference")),
            _p(versus.number("p")),
            _p(versus.number("p_holm")),
        ]
        for system in test.nodes("systems")
        for versus in system.nodes("versus")
    ]
    columns = ["System", "Against", "Metric", "Test", "Difference", "p", "p after Holm"]
    return table("Tests of the differences", columns, rows, text_columns=4) if rows else None


def _p(value: float | None) -> str:
    return "< 0.001" if value is not None and value < 0.001 else figure(value, 3)


def _bands(test: Node) -> Element | None:
    rows: list[list[Child | Cell]] = [
        [
            band.text("band"),
            figure(band.number("segments"), 0),
            share(band.number("share")),
            figure(band.number("words"), 0),
            share(band.number("word_share")),
        ]
        for band in (*test.nodes("halves"), *test.nodes("bands"))
    ]
    words = "Source words" if test.flag("has_sources") else "Reference words"
    columns = ["Best fuzzy match", "Segments", "Share", words, "Share of them"]
    return (
        table("Segments by their best match in the memory, each once", columns, rows)
        if rows
        else None
    )


def _near_leaks(test: Node) -> Element | None:
    """Where references stand that a system may know."""
    leaks = test.node("near_leaks")
    if not leaks:
        return None
    places: list[list[Child | Cell]] = [
        [
            name,
            figure(size.number("segments"), 0),
            share(size.number("share")),
            figure(size.number("words"), 0),
            share(size.number("word_share")),
        ]
        for name, size in (
            *((place.text("name"), place) for place in leaks.nodes("places")),
            ("any of them", leaks),
        )
    ]
    caption = (
        f"References of {figure(leaks.number('fewest_words'), 0)} words or more that stand as they "
        "are in what systems know"
    )
    unknown = leaks.texts("unknown")
    note = f"What is not named: what {', '.join(unknown)} learned from." if unknown else ""
    columns = ["Where", "Segments", "Share", "Reference words", "Share of them"]
    return table(f"{caption}. {note}".strip(), columns, places)


def _gains(test: Node) -> Element | None:
    """What every system gains over the baseline, of all segments and by the best match, and what
    share has it."""
    baseline = baseline_of(test)
    rivals = [system for system in test.nodes("systems") if not system.flag("baseline")]
    parts = (part for system in rivals for part in system.nodes("by_band"))
    metrics = list(dict.fromkeys(name for part in parts for name in part.node("gain").keys()))
    if baseline is None or not metrics:
        return None
    return e(
        "div", *(_gain_table(test, rivals, baseline.name("name"), metric) for metric in metrics)
    )


def _gain_table(test: Node, rivals: list[Node], baseline: str, metric: str) -> Element:
    rows: list[list[Child | Cell]] = [
        ["all", share(1.0), share(1.0), *(_gain(s.node("gain"), metric) for s in rivals)]
    ]
    for size, key in (("halves", "by_half"), ("bands", "by_band")):
        for part in test.nodes(size):
            if (band := part.text("band")) != NONE:
                gains = (
                    next((p for p in s.nodes(key) if p.text("band") == band), None) for s in rivals
                )
                cells = [
                    Cell(UNKNOWN) if entry is None else _gain(entry.node("gain"), metric)
                    for entry in gains
                ]
                rows.append(
                    [band, share(part.number("share")), share(part.number("word_share")), *cells]
                )
    columns = ["Best fuzzy match", "Segments", "Words", *(system.name("name") for system in rivals)]
    return table(f"{metric}: gain over {baseline}", columns, rows)


def _gain(gains: Node, metric: str) -> Cell:
    gain = gains.node(metric)
    value = gain.number("difference")
    if value is None:
        return Cell(UNKNOWN)
    return Cell(
        f"{'+' if value >= 0 else ''}{figure(value)}",
        _interval(gain.number("low"), gain.number("high")),
    )


def _origins(test: Node) -> Element | None:
    rows: list[list[Child | Cell]] = []
    for system in test.nodes("systems"):
        for origin in ORIGINS:
            node = system.node("origin").node(origin)
            if node:
                tokens, part, precision = (
                    node.number(key) for key in ("tokens", "share", "precision")
                )
                rows.append(
                    [system.name("name"), origin, figure(tokens, 0), share(part), share(precision)]
                )
    columns = ["System", "From", "Tokens", "Share", "Precision"]
    caption = "Output tokens by origin; precision: the share of them that the reference has"
    return table(caption, columns, rows, text_columns=2) if rows else None


def _consistency(test: Node) -> Element | None:
    nodes = [(system.name("name"), system.node("consistency")) for system in test.nodes("systems")]
    nodes.append(("reference", test.node("reference")))
    names = list(dict.fromkeys(key for _, measures in nodes for key in measures.keys()))
    rows: list[list[Child | Cell]] = [
        [name, *(share(measures.number(key)) for key in names)] for name, measures in nodes
    ]
    caption = "Terms translated alike within a document; a translation can be consistent and wrong"
    return table(caption, ["System", *names], rows) if names else None


def _effort(test: Node) -> Element | None:
    systems = [system for system in test.nodes("systems") if system.node("effort")]
    rows: list[list[Child | Cell]] = []
    for system in systems:
        effort = system.node("effort")
        words = effort.node("words_by_band")
        counts = "; ".join(f"{band}: {figure(words.number(band), 0)}" for band in words.keys())
        rows.append(
            [
                system.name("name"),
                share(effort.number("edit_rate")),
                figure(effort.number("weighted_words"), 0),
                counts,
            ]
        )
    columns = ["System", "Edit rate", "Weighted words", "Words by band"]
    return (
        table(
            "Word edits against the reference, and words as a CAT analysis counts them",
            columns,
            rows,
        )
        if rows
        else None
    )


def _cost(test: Node) -> Element | None:
    systems = [system for system in test.nodes("systems") if system.node("cost")]
    columns = _available(_COSTS, systems)
    rows = [
        [system.name("name"), *(show(value(system)) for _, value, show in columns)]
        for system in systems
    ]
    titles = ["System", *(title for title, _, _ in columns)]
    return table(" ".join(["Time and memory.", *_owner_note(test)]), titles, rows) if rows else None


def _settings(test: Node) -> Element | None:
    systems = test.nodes("systems")
    keys = list(dict.fromkeys(key for system in systems for key in system.node("settings").keys()))
    rows = [
        [system.name("name"), *(_value(system.node("settings").raw(key)) for key in keys)]
        for system in systems
    ]
    return (
        table("Settings of the systems", ["System", *keys], rows, text_columns=len(keys) + 1)
        if keys
        else None
    )


def _value(value: object) -> str:
    if value is None:
        return UNKNOWN
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _signatures(test: Node) -> Element | None:
    """Every metric with its signature, once where all systems have the same."""
    systems: dict[tuple[str, str], list[str]] = {}
    for system in test.nodes("systems"):
        for metric in system.node("metrics").keys():
            signature = system.node("metrics").node(metric).text("signature")
            if signature:
                systems.setdefault((metric, signature), []).append(system.name("name"))
    count = len(test.nodes("systems"))
    rows: list[list[Child]] = [
        [metric, e("code", signature), "all" if len(names) == count else ", ".join(names)]
        for (metric, signature), names in systems.items()
    ]
    return (
        table("Signatures of the metrics", ["Metric", "Signature", "Systems"], rows, text_columns=3)
        if rows
        else None
    )


def _place_metrics(test: Node, key: str) -> list[str]:
    rows = (row for system in test.nodes("systems") for row in system.nodes(key))
    return list(dict.fromkeys(name for row in rows for name in row.node("metrics").keys()))


def _by_place(test: Node, key: str, title: str, metric: str) -> Element:
    """A metric of all systems at every place: a band, or a span of positions or lengths."""
    places: dict[str, float | None] = {}
    scores: dict[tuple[str, str], Cell] = {}
    systems = [system.name("name") for system in test.nodes("systems")]
    for system in test.nodes("systems"):
        for row in system.nodes(key):
            place = row.text("band") or span(row)
            places.setdefault(place, row.number("segments"))
            bounds = row.node("intervals").node(metric)
            interval = _interval(bounds.number("low"), bounds.number("high"))
            scores[place, system.name("name")] = Cell(
                figure(row.node("metrics").number(metric)), interval
            )
    rows: list[list[Child | Cell]] = [
        [
            place,
            figure(count, 0),
            *(scores.get((place, system), Cell(UNKNOWN)) for system in systems),
        ]
        for place, count in places.items()
    ]
    return table(f"{metric} by {title}", [title.capitalize(), "Segments", *systems], rows)
