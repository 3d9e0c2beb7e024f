"""`tmnmt search --concordance`, and searches of some segments only, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tmnmt.cli import run
from tmnmt.cli.concordance import PHRASE_STYLE, _marked
from tmnmt.index import MemoryIndex, build
from tmnmt.segments import Segment

OLD, NEW = "2020-01-01T00:00:00Z", "2024-05-01T12:00:00Z"
SEGMENTS = [
    Segment("A notice of default.", "Un avis de défaut.", "law", changed=OLD, user="ann"),
    Segment("A notice of default.", "Un avis de défaut.", "act", changed=NEW, user="bob"),
    Segment(
        "Notice is given.",
        "L’avis est donné.",
        "act",
        changed=OLD,
        user="ann",
        properties=(("client", "Smith"),),
    ),
]


@pytest.fixture
def index(tmp_path: Path) -> str:
    build(tmp_path / "m", SEGMENTS, "en", "fr")
    return str(tmp_path / "m")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["search", *arguments]) == 0
    return capsys.readouterr().out


def test_a_phrase_is_shown_with_its_pairs_newest_first(
    index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, "--index", index, "--concordance", "NOTICE").splitlines() == [
        "NOTICE",
        "  #2  act  2024-05-01  (2 times)",
        "    A notice of default.",
        "    Un avis de défaut.",
        "  #3  act  2020-01-01",
        "    Notice is given.",
        "    L’avis est donné.",
    ]
    one = said(capsys, "--index", index, "--concordance", "notice", "--max-count", "1")
    assert one.splitlines()[-1] == "  and more: --max-count says how many are shown"
    none = said(capsys, "--index", index, "--concordance", "notice", "--in", "target")
    assert none.splitlines() == ["notice", "  not in any target"]


def test_json_says_where_it_stands(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--index", index, "--concordance", "default not*", "--within", "2", "--json"]
    line = json.loads(said(capsys, *arguments))
    assert line == {
        "query": "default not*",
        "in": "source",
        "matches": [
            {
                "id": 2,
                "src": "A notice of default.",
                "tgt": "Un avis de défaut.",
                "document": "act",
                "changed": NEW,
                "user": "bob",
                "places": [[2, 8], [12, 19]],
                "times": 2,
            }
        ],
        "more": False,
    }
    exact = said(capsys, "--index", index, "--concordance", "Notice", "--match-case", "--json")
    assert [match["id"] for match in json.loads(exact)["matches"]] == [3]


@pytest.mark.parametrize(
    ("filtered", "ids"),
    [
        (["--document", "act"], [2, 3]),
        (["--user", "ann"], [1, 3]),
        (["--since", "2024-05-01"], [2]),
        (["--before", "2024-05-01"], [1, 3]),
        (["--property", "client=Smith"], [3]),
        (["--property", "client", "--user", "bob"], []),
    ],
)
def test_only_segments_that_are_meant_are_shown(
    index: str, capsys: pytest.CaptureFixture[str], filtered: list[str], ids: list[int]
) -> None:
    base = ["--index", index, "--json", *filtered]
    found = json.loads(said(capsys, *base, "--concordance", "notice"))["matches"]
    assert sorted(match["id"] for match in found) == ids
    similar = json.loads(said(capsys, *base, "--threshold", "0", "A notice"))["matches"]
    assert sorted(match["id"] for match in similar) == ids


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--in", "target", "x"], "--in is of --concordance"),
        (["--concordance", "x", "y"], "--concordance and 'y' both say what to look for"),
        (["--concordance", "x", "--explain"], "--explain is of a search for similar pairs"),
        (["--concordance", "x", "--select", "greedy"], "--select is of a search for similar"),
        (["--concordance", " "], "no word to look for"),
        (["--since", "May", "x"], "'May' is no date"),
        (["--concordance", "x", "--within", "31"], "--within is 31; it must be"),
    ],
)
def test_what_does_not_go_together_is_told(
    index: str, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert run(["search", "--index", index, *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_terminal_shows_the_places_in_colour_or_between_marks() -> None:
    coloured = _marked("A notice.", [(2, 8)], ("", ""))
    assert coloured.plain == "A notice." and [tuple(span) for span in coloured.spans] == [
        (2, 8, PHRASE_STYLE)
    ]
    assert _marked("A notice.", [(2, 8)], ("[", "]")).plain == "A [notice]."


def test_the_best_of_the_segments_meant_are_found_not_the_meant_among_the_best(
    tmp_path: Path,
) -> None:
    from tmnmt.index.filter import Filter

    others = [Segment("Open the file", "x", user="bob")] * 50
    build(tmp_path / "m", [*others, Segment("Open a file now", "y", user="ann")], "en", "fr")
    with MemoryIndex.open(tmp_path / "m") as index:
        assert all(m.segment.user == "bob" for m in index.search(["Open the file"], 3)[0])
        (found,) = index.restricted_to(Filter(user="ann")).search(["Open the file"], 3)
        assert [match.segment.tgt for match in found] == ["y"]
