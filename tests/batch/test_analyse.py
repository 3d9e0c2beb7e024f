"""Segments and words by what the best match is worth, as CAT tools count them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from brute_force import real_segments

from tmnmt.batch.analyse import NAMES, Analysis, Counts, queries_of_lines, queries_of_units
from tmnmt.cli import run
from tmnmt.codes.record import Code, Text
from tmnmt.files.unit import Unit
from tmnmt.index import MemoryIndex, build
from tmnmt.index.embedded.delta_segments import LOOSE
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.index.match_value import Trust
from tmnmt.segments import Segment
from tmnmt.text import match_tokens, normalise

MEMORY = [
    Segment("Here it begins.", "Début.", "manual", 0),
    Segment("Page 3 of 12.", "Page 3 sur 12.", "manual", 1),
    Segment("It goes on.", "Suite.", "manual", 2),
    Segment("Choose the file that is to be opened now, and wait.", "Choisir", "manual", 3),
]
LINES = [
    "Here it begins.",
    "Page 3 of 12.",
    "It goes on.",
    "Page 4 of 12.",
    "page 4 of 12.",
    "Choose the file that is to be closed now, and wait.",
    "A cat sat on the mat all day.",
    "A dog sat on the mat all day.",
    "A DOG sat on the mat all day.",
    "A dog sat on the mat all day.",
    "Here it begins.",
    "Nothing else",
    "...",
    "",
]
BANDS = {
    "101": 2,
    "102": 1,
    "100": 1,
    "95-99": 1,
    "85-94": 1,
    "internal 85-94": 1,
    "internal 95-99": 1,
    "repetitions": 2,
    "no match": 3,
}


@pytest.fixture
def index(tmp_path: Path) -> MemoryIndex:
    build(tmp_path / "m", MEMORY, "en", "fr")
    return MemoryIndex.open(tmp_path / "m")


def counted(lines: Sequence[str], index: MemoryIndex, trust: Sequence[Trust] = ()) -> Counts:
    return Analysis([index], trust=trust).counts(queries_of_lines(lines))


def test_every_segment_is_in_one_band(index: MemoryIndex) -> None:
    counts = counted(LINES, index)
    assert dict(counts.segments) == BANDS
    assert set(counts.words) <= set(NAMES)
    assert counts.words["internal 85-94"] == 8 and counts.words["101"] == 6
    assert counts.segments.total() == len(LINES) - 1


def test_without_a_memory_there_are_repetitions_and_internal_matches(index: MemoryIndex) -> None:
    counts = Analysis([]).counts(queries_of_lines(["a b c d", "a b c d", "a b c e", "x"]))
    assert dict(counts.segments) == {"no match": 2, "repetitions": 1, "internal 75-84": 1}


def test_what_came_in_an_earlier_file_is_a_repetition(index: MemoryIndex) -> None:
    analysis = Analysis([index])
    analysis.counts(queries_of_lines(["Something else"]))
    assert dict(analysis.counts(queries_of_lines(["Something else"])).segments) == {
        "repetitions": 1
    }


def test_tags_in_lines_are_codes_be_they_text_or_codes_in_the_memory(tmp_path: Path) -> None:
    pairs = [("It <b>goes</b> on.", "Cela <b>continue</b>."), ("It is so.", "C'est ainsi.")]
    build(tmp_path / "m", [Segment(*pair, "d") for pair in pairs], "en", "fr")
    with MemoryIndex.open(tmp_path / "m") as index:
        counts = counted(["It <b>goes</b> on.", "", "<i>It is so.</i>"], index)
    assert dict(counts.segments) == {"100": 1, "95-99": 1}
    assert counts.words.total() == 6


def test_a_memory_that_is_trusted_less_moves_segments_to_lower_bands(index: MemoryIndex) -> None:
    lines = ["It goes on.", "Page 4 of 12."]
    assert dict(counted(lines, index).segments) == {"100": 2}
    assert dict(counted(lines, index, [Trust(10)]).segments) == {"85-94": 2}


def test_internal_matches_are_those_of_brute_force(index: MemoryIndex) -> None:
    texts = list(dict.fromkeys(normalise(one.src) for one in real_segments()))[: LOOSE + 200]
    random.Random(5).shuffle(texts)
    texts = [text for text in texts if not any(sign.isdigit() for sign in text)]
    seen, expected = list[list[str]](), 0
    skeletons = set[str]()
    for text in texts:
        tokens = match_tokens(text)
        if tokens:
            bare = "".join(sign for sign in text.lower() if sign.isalnum())
            best = max((fuzzy_score(tokens, other) for other in seen), default=0)
            expected += best >= 0.5 or bare in skeletons
            seen.append(tokens)
            skeletons.add(bare)
    counts = Analysis([]).counts(queries_of_lines(texts))
    internal = sum(n for band, n in counts.segments.items() if band.startswith("internal"))
    assert internal == expected > 20


def test_units_are_asked_with_their_neighbours_codes_and_names() -> None:
    bold = (Code(0, "standalone", "<b/>"),)
    one, other = Unit(Text("a", bold), id="7"), Unit(Text("b"), id="8", context="menu")
    first, second = queries_of_units([one, other])
    assert (first.text, first.codes, first.previous, first.next, first.id) == (
        "a",
        bold,
        "",
        "b",
        "7",
    )
    assert (second.previous, second.next, second.id) == ("a", "", "menu")
    assert queries_of_units([replace(one, id="")])[0].id == ""


def test_the_command_prints_a_table_or_json(
    index: MemoryIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, other = tmp_path / "a.txt", tmp_path / "b.txt"
    text.write_text("\n".join(LINES), encoding="utf-8")
    other.write_text("It goes on.\n", encoding="utf-8")
    asked = ["analyse", str(text), "--memory", str(index.path)]
    assert run(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["match", "segments", "words", "share"]
    assert lines[1].split()[:3] == ["102", "%", "1"] and lines[-1].split() == ["all", "13", "67"]
    assert run([*asked, str(other), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [one["file"] for one in record["files"]] == [str(text), str(other)]
    assert record["files"][1]["bands"]["repetitions"] == {"segments": 1, "words": 3}
    assert record["total"]["segments"] == 14 and list(record["total"]["bands"]) == list(NAMES)
    assert run([*asked, str(other)]) == 0
    assert capsys.readouterr().out.count("segments") == 3


def test_a_file_that_is_no_text_and_a_memory_without_languages_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.odt").write_bytes(b"PK\x03\x04")
    assert run(["analyse", str(tmp_path / "a.odt")]) == 1
    assert "saves it as plain text" in capsys.readouterr().err
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "m.tsv").write_text("src\ttgt\na\tb\n")
    assert run(["analyse", str(tmp_path / "a.txt"), "--memory", str(tmp_path / "m.tsv")]) == 2
    assert "of which languages the memory file is" in capsys.readouterr().err
