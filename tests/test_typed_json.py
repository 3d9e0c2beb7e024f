"""Records as JSON and back again, by their types."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pytest

from tmnmt.checks import Check
from tmnmt.codes.record import Code
from tmnmt.segments import (
    Agreement,
    CacheSource,
    Match,
    MemorySource,
    Other,
    Provenance,
    Reason,
    Rival,
    SearchWork,
    Segment,
    Token,
    Translation,
    Word,
    Work,
    Worth,
)
from tmnmt.typed_json import dumps, loads, record_of


class Place(NamedTuple):
    line: int
    name: str = ""


@dataclass(frozen=True)
class Record:
    place: Place
    kind: Literal["a", "b"]
    share: float | None
    pairs: tuple[tuple[str, int], ...] = ()


def again(record: Any) -> Any:
    return record_of(type(record), loads(dumps(record)))


def test_a_translation_with_everything_comes_back_as_it_was() -> None:
    segment = Segment("x", "y", "d", 3, 4, properties=(("domain", "law"),))
    worth = Worth(90, (Reason("number", -3),), "z")
    match = Match(segment, 1 / 3, 1, worth, Agreement(1, 2, (Rival("r", 1),)), "memory")
    token = Token(
        "▁a",
        "memory",
        0.1 + 0.2,
        0.2,
        0.3,
        (Provenance("copy", 0.1, 0.2, "memory", True),),
        (MemorySource(0, 1, 0.5),),
        slots=(CacheSource(1, "x", 0.2),),
    )
    translation = Translation(
        "a \ud800",  # half of a character, as a damaged file may have
        "b",
        -1 / 7,
        (match,),
        (token,),
        "model",
        src_codes=(Code(0, "open", "<b>"),),
        user_checks=(Check("terms", "b"),),
        others=(Other("c", -2.0, 3),),
        words=(Word("b", 0.3),),
        confidence=0.7,
        work=Work(SearchWork(1, 2), 3, 4),
    )
    result = again(translation)
    assert result == translation
    assert result.work == translation.work and result.matches[0].memory == "memory"
    assert result.matches[0].agreement == match.agreement
    assert math.isnan(again(Translation("a", "", math.nan)).score)
    assert again(Translation("a", "", -math.inf)).score == -math.inf


def test_records_in_records_come_back_by_their_types() -> None:
    record = Record(Place(3, "x"), "b", None, (("a", 1), ("b", 2)))
    assert again(record) == record
    assert type(again(record).place) is Place


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        [[1, "x"], "a"],  # a field is missing
        [[1, "x", 2], "a", None, []],
        [["1", "x"], "a", None, []],
        [[True, "x"], "a", None, []],
        [[1, "x"], "c", None, []],
        [[1, "x"], ["a"], None, []],
        [[1, "x"], "a", "0.5", []],
        [[1, "x"], "a", None, [["a"]]],
        [[1, "x"], "a", None, "ab"],
    ],
)
def test_what_is_no_such_record_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        record_of(Record, value)


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError, match="set has no form in JSON"):
        dumps([{1}])
