"""Who is next: in turn by what each has cost, with nothing saved up and nobody forgotten."""

from __future__ import annotations

import random
from collections import Counter

from tmnmt.serve.turns import TurnPath, Turns


def served(turns: Turns, waiting: dict[TurnPath, float], times: int) -> Counter[TurnPath]:
    """How much each is given where all of them wait all the time."""
    given = Counter[TurnPath]()
    for _ in range(times):
        path = turns.order(waiting)[0]
        turns.charge(path, waiting[path])
        given[path] += int(waiting[path])
    return given


def test_each_tenant_has_as_much_however_many_requests_it_has() -> None:
    waiting: dict[TurnPath, float] = {("loud", 0, n): 100.0 for n in range(24)}
    waiting["quiet", 0, 99] = 5.0
    given = served(Turns(), waiting, 400)
    loud = sum(cost for path, cost in given.items() if path[0] == "loud")
    assert abs(loud - given["quiet", 0, 99]) <= 100


def test_a_short_request_that_comes_late_is_next() -> None:
    turns = Turns()
    flood: dict[TurnPath, float] = {("loud", 0, n): 1000.0 for n in range(24)}
    served(turns, flood, 50)
    assert turns.order({**flood, ("quiet", 0, 99): 8.0})[0] == ("quiet", 0, 99)
    assert turns.order({**flood, ("loud", 0, 99): 8.0})[0] == ("loud", 0, 99)


def test_who_was_away_has_saved_nothing_up_and_owes_what_it_had() -> None:
    turns = Turns()
    served(turns, {("a", 0, 1): 10.0}, 1000)
    given = served(turns, {("a", 0, 1): 10.0, ("b", 0, 2): 10.0}, 100)
    assert given["a", 0, 1] == given["b", 0, 2] == 500
    turns.charge(("a", 0, 1), 500)
    turns.order({("b", 0, 2): 10.0})  # a pauses
    given = served(turns, {("a", 0, 1): 10.0, ("b", 0, 2): 10.0}, 100)
    assert abs(given["b", 0, 2] - given["a", 0, 1] - 500) <= 20


def test_a_long_request_is_not_passed_for_ever_by_short_ones_that_come() -> None:
    turns, long = Turns(), ("a", 0, 0)
    number = 0
    for number in range(1, 1000):
        first = turns.order({long: 1000.0, ("a", 0, number): 10.0})[0]
        turns.charge(first, 10.0)
        if first == long:
            break
    assert 180 <= number <= 220


def test_a_weight_shares_and_starves_nobody() -> None:
    turns = Turns(lambda path: 8.0 if path[1:2] == (0,) else 1.0)
    given = served(turns, {("a", 0, 1): 10.0, ("a", 1, 2): 10.0}, 900)
    assert abs(given["a", 0, 1] - 8000) <= 80 and given["a", 1, 2] >= 920


def test_what_is_remembered_does_not_grow() -> None:
    turns, draw = Turns(), random.Random(1)
    for number in range(2000):
        path = (f"tenant {draw.randrange(3)}", draw.randrange(2), number)
        turns.charge(turns.order({path: 10.0, ("steady", 0, 0): 10.0})[0], 10.0)
    assert len(turns._cost) < 30 and len(turns._clock) < 10
