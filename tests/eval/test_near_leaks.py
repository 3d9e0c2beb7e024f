"""References that stand in a memory, or in what a model has learned from, under another source: all
that were planted are found, nothing else is, and every report says so."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from places import JRC
from tiny_model import segments, write_tiny_model

from tmnmt.cli import run
from tmnmt.eval.data.near_leaks import FEWEST_WORDS, long_targets, near_leaks
from tmnmt.eval.report.write import table
from tmnmt.formats import read_memory, write_tsv
from tmnmt.segments import Segment
from tmnmt.text import normalise, words

TEST = [
    (
        "The Commission shall inform the Council.",
        "La Commission informe le Conseil sans délai et sans frais.",
    ),
    ("This Regulation shall enter into force now.", "Le présent règlement entre en vigueur."),
    (
        "It shall apply from 3 March 1997.",
        "Il est applicable à partir du 3 mars 1997 au plus tard.",
    ),
    ("Having regard to the opinion of the Commission,", "vu l'avis de la Commission,"),
]
RECIPE = """
name = "near"
baseline = "base"
[[test]]
name = "own"
files = ["test.tsv"]
memory = "tm"
[[model]]
name = "tiny"
path = "model"
{training}
[[memory]]
name = "tm"
path = "memory.tsv"
[[system]]
name = "base"
beam = 1
[[system]]
name = "paste"
paste = true
"""


def disguised(text: str) -> str:
    return unicodedata.normalize("NFD", "  " + text.replace(" ", "\u00a0 ", 1) + " ")


def test_all_planted_targets_are_found_and_nothing_else() -> None:
    distinct = {normalise(one.tgt): one.tgt for one in read_memory(JRC, "en", "fr")}
    targets = sorted(distinct.values())
    draw = random.Random(8)
    draw.shuffle(targets)
    test, memory = targets[:300], targets[300:]
    assert near_leaks([test], {"m": long_targets(memory)}).segments == []
    planted = sorted(draw.sample(range(len(test)), 120))
    memory += [disguised(test[number]) for number in planted]
    found = near_leaks([test], {"m": long_targets(memory), "none": set()})
    long = [number for number in planted if words(test[number]) >= FEWEST_WORDS]
    assert 20 < len(long) < len(planted)
    assert found.places == {"m": long, "none": []} and found.segments == long


def test_of_several_references_any_counts() -> None:
    long = ["a b c d e f g h", "i j k l m n o p"]
    other = ["x", "y"]
    found = near_leaks([other, long], {"a": long_targets(long[:1]), "b": long_targets(long)})
    assert found.places == {"a": [0], "b": [0, 1]} and found.segments == [0, 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model, test.tsv, memory.tsv with the first long reference planted, taught.tsv with both."""
    made = tmp_path_factory.mktemp("near")
    write_tiny_model(made / "model")
    write_tsv(made / "test.tsv", [Segment(*pair, "d", at) for at, pair in enumerate(TEST)])
    planted = [
        replace(segments()[0], src=f"Something else {number}.", tgt=disguised(TEST[number][1]))
        for number in (0, 2, 1)
    ]
    write_tsv(made / "memory.tsv", [*segments(), planted[0]])
    write_tsv(made / "taught.tsv", planted)
    return made


def evaluated(folder: Path, monkeypatch: pytest.MonkeyPatch, training: str = "") -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    (folder / "recipe.toml").write_text(RECIPE.format(training=training), encoding="utf-8")
    out = folder / "out"
    assert run(["evaluate", "run", str(folder / "recipe.toml"), "--out", str(out)]) == 0
    return out


def sizes(places: Sequence[dict[str, object]]) -> list[tuple[object, ...]]:
    return [(place["name"], place["segments"], place["words"]) for place in places]


def test_every_report_names_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = evaluated(folder, monkeypatch, 'training = ["taught.tsv"]')
    test = json.loads((out / "report.json").read_text(encoding="utf-8"))["tests"][0]
    near = test["near_leaks"]
    lengths = [words(reference) for _, reference in TEST]
    both = lengths[0] + lengths[2]
    assert sizes(near["places"]) == [
        ("memory tm", 1, lengths[0]),
        ("training of tiny", 2, both),
    ]
    assert (near["segments"], near["words"], near["unknown"]) == (2, both, [])
    assert near["share"] == 0.5 and near["word_share"] == pytest.approx(both / sum(lengths))
    assert [(part["band"], part["segments"]) for part in test["near"]] == [
        ("near leaks", 2),
        ("all others", 2),
    ]
    assert all(len(system["by_near_leak"]) == 2 for system in test["systems"])
    share = f"{100 * near['word_share']:.1f} % of the words"
    written = (out / "report.md").read_text(encoding="utf-8")
    assert f"2 segments ({share}) in all; 1 segment (" in written
    assert (
        f"2 segments ({share}) in training of tiny" in written and "| near leaks | 2 |" in written
    )
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "training of tiny" in page and "Near leaks" in page and "By near leak" in page


def test_what_a_model_has_learned_from_is_unknown_where_no_file_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = evaluated(folder, monkeypatch)
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    near = report["tests"][0]["near_leaks"]
    assert sizes(near["places"]) == [("memory tm", 1, words(TEST[0][1]))]
    assert near["unknown"] == ["tiny"]
    assert "what tiny has learned from is not named" in table(report)
    del report["tests"][0]["near_leaks"], report["tests"][0]["near"]  # a report of before
    assert "near leaks" not in table(report)
