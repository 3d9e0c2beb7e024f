"""What a match is worth: two hundred cases made by hand, in data/worth.tsv."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from places import TESTS

from tmnmt.codes.record import Code
from tmnmt.config.options import Penalties
from tmnmt.index.fuzzy import edit_distance, fuzzy_score
from tmnmt.index.match_value import AdjacentSources, Query, Trust, most_worth, worth
from tmnmt.segments import Match, Reason, Segment, Worth
from tmnmt.text import match_tokens


class Case(NamedTuple):
    """A line of the table; `more` is JSON."""

    asked: str
    src: str
    tgt: str
    more: str
    value: str
    reasons: str
    adapted: str


TABLE = (TESTS / "data" / "worth.tsv").read_text(encoding="utf-8").splitlines()
CASES = [Case(*line.split("\t")) for line in TABLE[1:] if not line.startswith("#")]


def codes(markup: Sequence[str] | None) -> tuple[Code, ...] | None:
    return None if markup is None else tuple(Code(0, "standalone", one) for one in markup)


def match_of(text: str, segment: Segment) -> Match:
    tokens = match_tokens(text), match_tokens(segment.src)
    return Match(segment, fuzzy_score(*tokens), edit_distance(*tokens))


def found(case: Case) -> Worth:
    more: dict[str, Any] = json.loads(case.more or "{}")
    of_asked, of_segment = map(codes, more.get("codes", [None, []]))
    asked = Query(case.asked, of_asked, **more.get("asked", {}))
    about = more.get("segment", {})
    about["properties"] = tuple(map(tuple, about.get("properties", [])))
    segment = Segment(case.src, case.tgt, src_codes=of_segment or (), **about)
    return worth(
        asked,
        match_of(case.asked, segment),
        AdjacentSources(*more.get("around", [])),
        Penalties(**more.get("penalties", {})),
        Trust(**more.get("trust", {})),
    )


def test_there_are_two_hundred_cases() -> None:
    assert len(CASES) >= 200 and len(set(CASES)) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.asked}~{case.src}")
def test_a_case_of_the_table(case: Case) -> None:
    got = found(case)
    reasons = ", ".join(f"{reason.what} {reason.points}" for reason in got.reasons)
    assert (str(got.value), reasons, got.tgt) == (case.value, case.reasons, case.adapted)


def test_of_equal_worth_the_more_alike_then_the_newest_then_the_smallest_id_comes_first() -> None:
    def one(number: int, value: int, score: float = 1.0, changed: str = "") -> Match:
        return Match(Segment("a", "b", id=number, changed=changed), score, 0, Worth(value))

    mixed = [
        one(1, 99),
        one(5, 100, 0.5, "2026"),
        one(4, 100, 1.0, "2001"),
        one(2, 100),
        one(3, 100),
        one(6, 101, 1.0),
    ]
    assert [match.segment.id for match in most_worth(mixed, 5)] == [6, 4, 2, 3, 5]


def test_a_match_gives_the_adapted_target_where_there_is_one() -> None:
    plain = Match(Segment("a", "b"), 1.0, 0)
    assert plain.tgt == "b"
    assert Match(plain.segment, 1.0, 0, Worth(100, (Reason("numbers", 0),), "c")).tgt == "c"
