"""Segments packed for a page that unpacks them when they are looked at: chunks of rows, and columns
to sort them by.

A chunk is JSON, gzipped, in base64: a hundred thousand segments take a third of their size, and the
browser holds the few chunks that it shows. No character of base64 means anything to HTML."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from tmnmt.errors import DataError
from tmnmt.eval.report.run_folder import Node
from tmnmt.records import join_subwords

CHUNK = 250  # segments that are unpacked together


def packed(value: Any) -> str:
    """`value` as JSON, gzipped, in base64; the same value always gives the same text."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode(
        "ascii"
    )


class Columns:
    """What the page sorts and filters by, one entry a segment, and the names that its numbers stand
    for."""

    def __init__(self, report: Node) -> None:
        self._tests = {test.name("name"): i for i, test in enumerate(report.nodes("tests"))}
        names = [
            system.name("name")
            for test in report.nodes("tests")
            for system in test.nodes("systems")
        ]
        self.systems = {name: i for i, name in enumerate(dict.fromkeys(names))}
        bands = [
            band.text("band") for test in report.nodes("tests") for band in test.nodes("bands")
        ]
        self.bands = {name: i for i, name in enumerate(dict.fromkeys(bands))}
        self.documents: dict[str, int] = {}
        self.rows = 0
        self._table: dict[str, list[int]] = {"test": [], "document": [], "band": [], "position": []}
        self._scores: dict[str, list[list[float | None]]] = {
            key: [[] for _ in self.systems] for key in _DIGITS
        }

    def add(self, segment: Node) -> None:
        """DataError when the segment's test set or a system is not in report.json."""
        test = segment.name("test")
        unknown = [name for name in segment.node("systems").keys() if name not in self.systems]
        if test not in self._tests or unknown:
            subject = f"system {unknown[0]!r}" if test in self._tests else f"test set {test!r}"
            raise DataError(f"{segment.location}: {subject} is not in report.json")
        self._table["test"].append(self._tests[test])
        self._table["document"].append(_number_of(self.documents, segment.text("document")))
        self._table["band"].append(_number_of(self.bands, segment.text("band")))
        self._table["position"].append(int(segment.number("position") or 0))
        for key, digits in _DIGITS.items():
            for name, number in self.systems.items():
                value = segment.node("systems").node(name).number(key)
                self._scores[key][number].append(None if value is None else round(value, digits))
        self.rows += 1

    def packed(self) -> str:
        return packed(self._table | self._scores)


_DIGITS = {"bleu": 2, "edit_rate": 4}


def _number_of(numbers: dict[str, int], name: str) -> int:
    return numbers.setdefault(name, len(numbers))


def chunks(segments: Iterable[Node], columns: Columns) -> Iterator[str]:
    """Packed chunks of at most CHUNK rows; every segment is added to `columns`."""
    rows: list[Any] = []
    for segment in segments:
        columns.add(segment)
        rows.append(_row(segment, columns.systems))
        if len(rows) == CHUNK:
            yield packed(rows)
            rows = []
    if rows:
        yield packed(rows)


def _row(segment: Node, systems: dict[str, int]) -> dict[str, Any]:
    """A segment; its matches stand in it once, whichever systems were given them."""
    matches: dict[tuple[str, str, str, float | None], int] = {}
    best = segment.node("best")
    row = {
        "src": segment.text("src"),
        "refs": segment.texts("refs") or [segment.text("ref")],
        "best": _match(best, matches) if best else None,
        "out": {
            systems[name]: _output(segment.node("systems").node(name), matches)
            for name in _names(segment)
        },
    }
    return row | {"matches": list(matches)}


def _names(segment: Node) -> list[str]:
    return segment.node("systems").keys()


def _output(output: Node, matches: dict[tuple[str, str, str, float | None], int]) -> list[Any]:
    records = [_match(match, matches) for match in output.nodes("matches")]
    return [
        output.text("hyp"),
        records,
        runs((t.text("text"), t.text("origin")) for t in output.nodes("tokens")),
    ]


def _match(match: Node, matches: dict[tuple[str, str, str, float | None], int]) -> int:
    key = (match.text("src"), match.text("tgt"), match.text("document"), match.number("score"))
    return matches.setdefault(key, len(matches))


def runs(pieces: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """(origin, words): neighbouring words of one origin, of subwords with their origins."""
    by_origin = groupby(join_subwords(list(pieces)), key=lambda word: word[1])
    return [(origin, " ".join(word for word, _ in run)) for origin, run in by_origin]
