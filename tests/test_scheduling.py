"""The order in which several processes run the files of the tests."""

from __future__ import annotations

from places import ROOT
from scheduling import ELASTIC, LONGEST, rank_of, scope_of


def test_files_that_need_elasticsearch_are_run_by_one_process() -> None:
    elastic = "tests/index/elastic/test_elastic.py", "tests/index/test_concordance.py"
    assert {scope_of(file) for file in elastic} == {ELASTIC}
    assert scope_of("tests/test_scheduling.py") == "tests/test_scheduling.py"


def test_what_takes_longest_is_begun_first() -> None:
    assert all((ROOT / scope).is_file() for scope in LONGEST if scope != ELASTIC)
    small, large = "tests/test_scheduling.py", "tests/engine/test_engine.py"
    scopes = [small, large, *reversed(LONGEST)]
    assert sorted(scopes, key=rank_of) == [*LONGEST, large, small]
