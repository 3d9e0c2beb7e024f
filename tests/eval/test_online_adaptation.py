"""Online adaptation: a base learns from a pair, says it, and goes back bit for bit."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from places import ROOT
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt.formats import write_tsv
from tmnmt.index import MemoryIndex, build
from tmnmt.models.folder import load_model
from tmnmt.segments import Segment

NEW = ("It shall apply to the Member States.", "Les États membres en sont destinataires.")


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "online_adaptation", ROOT / "eval" / "online_adaptation.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["online_adaptation"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def adapting(tmp_path: Path, program: ModuleType) -> Any:
    torch.set_num_threads(1)
    return program.Adapting(load_model(write_tiny_model(tmp_path / "model", memories=False)))


def test_it_learns_a_pair_says_it_and_goes_back_bit_for_bit(adapting: Any) -> None:
    before = {name: p.clone() for name, p in adapting.backbone.state_dict().items()}
    plain = adapting.translate(NEW[0])
    losses = adapting.learn([NEW], updates=60, rate=1.0)
    assert losses[-1] < 0.2 * losses[0] and adapting.translate(NEW[0]) == NEW[1] != plain
    moved = {n for n, p in adapting.backbone.state_dict().items() if not torch.equal(p, before[n])}
    assert moved and not any(name.startswith(("embedding", "encoder_")) for name in moved)
    adapting.reset()
    after = adapting.backbone.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert adapting.translate(NEW[0]) == plain


def test_what_is_found_is_learned_for_one_segment_alone(
    adapting: Any, program: ModuleType, tmp_path: Path
) -> None:
    """The second segment has no match: it is the base's, whatever was learned before."""
    build(tmp_path / "index", [Segment(*NEW, "m", 0)], "en", "fr")
    source = "It shall apply to the Member States today."
    test = [Segment(source, "", "d", 0), Segment(PAIRS[3][0], "", "d", 1)]
    plain = [adapting.translate(segment.src) for segment in test]
    with MemoryIndex.open(tmp_path / "index") as index:
        said = list(program.from_retrieved(adapting, index, test, 60, 1.0))
    assert said[0] != plain[0] and said[1] == plain[1]
    assert adapting.seconds["finding"] > 0 and adapting.seconds["learning"] > 0


def test_the_better_the_match_the_more_is_learned(
    adapting: Any, program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "index", [Segment(*NEW, "m", 0)], "en", "fr")
    sources = [NEW[0], "It shall apply to the Member States now, and tomorrow, too."]
    learned: list[tuple[Any, ...]] = []
    monkeypatch.setattr(adapting, "learn", lambda *given: learned.append(given))
    with MemoryIndex.open(tmp_path / "index") as index:
        scores = [found[0].score for found in index.search(sources, 1, 0.5)]
        segments = [Segment(source, "") for source in sources]
        list(program.from_retrieved(adapting, index, segments, 10, 0.5))
    assert scores[0] == 1 and 0.5 <= scores[1] < 0.85
    expected = [([NEW], round(10 * score), pytest.approx(0.5 * score)) for score in scores]
    assert learned == expected


def test_what_is_confirmed_is_known_until_the_document_ends(
    adapting: Any, program: ModuleType
) -> None:
    plain = adapting.translate(NEW[0])
    test = [Segment(*NEW, "a", 0), Segment(*NEW, "a", 1), Segment(*NEW, "b", 0)]
    assert list(program.from_confirmed(adapting, test, 60, 1.0)) == [plain, NEW[1], plain]
    adapting.reset()
    assert list(program.from_confirmed(adapting, test, 60, 1.0, keep=True))[2] == NEW[1]


@pytest.mark.parametrize("way", ["retrieved", "confirmed"])
def test_the_program_writes_a_line_a_segment_and_tells_the_seconds(
    way: str,
    tmp_path: Path,
    program: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = write_tiny_model(tmp_path / "model", memories=False)
    write_tsv(tmp_path / "test.tsv", segments()[:3])
    build(tmp_path / "index", segments()[3:], "en", "fr")
    more = ["--memory", str(tmp_path / "index")] if way == "retrieved" else []
    paths = [str(model), str(tmp_path / "test.tsv"), str(tmp_path / "out.txt")]
    monkeypatch.setattr(sys, "argv", ["online_adaptation.py", *paths, way, *more])
    program.main()
    table = capsys.readouterr().out
    assert len((tmp_path / "out.txt").read_text().splitlines()) == 3
    assert "| base | " in table and f"| {way} | " in table
    monkeypatch.setattr(sys, "argv", ["online_adaptation.py", *paths, "retrieved"])
    with pytest.raises(SystemExit):
        program.main()
