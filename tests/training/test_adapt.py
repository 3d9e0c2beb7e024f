"""`tmnmt adapt`: parameters from a memory alone, held-out documents by hash, and no folder that
makes dev worse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from adapting import adapt, documents
from safetensors.torch import load_file
from tiny_model import write_tiny_model

from tmnmt import Translator
from tmnmt.config.options import Selection, TranslationOptions
from tmnmt.errors import DataError
from tmnmt.index import build
from tmnmt.segments import Segment
from tmnmt.text import match_tokens
from tmnmt.training.adapt import refuse_worse, split, unimproved
from tmnmt.training.cache import CachePart
from tmnmt.training.data import split_of
from tmnmt.training.memory import Reached
from tmnmt.training.tm import TMPart


@pytest.fixture
def model(tmp_path: Path) -> Path:
    torch.set_num_threads(1)
    return write_tiny_model(tmp_path / "model", memories=False)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    build(tmp_path / "index", documents(), "en", "fr")
    return tmp_path / "index"


def test_a_plain_model_learns_to_use_a_memory(
    tmp_path: Path, model: Path, index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert adapt(model, index, tmp_path / "out", "--no-cache", "--no-fusion") == 0
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'out'}\n" and "copy: dev " in err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "config.toml",
        "base.safetensors",
        "spm.model",
        "memory.safetensors",
        "train.jsonl",
    }
    assert not (tmp_path / "out.partial").exists()
    assert (tmp_path / "out" / "base.safetensors").read_bytes() == (
        model / "base.safetensors"
    ).read_bytes()
    losses = [
        json.loads(line) for line in (tmp_path / "out" / "train.jsonl").read_text().splitlines()
    ]
    dev = [line for line in losses if "dev_copy" in line]
    assert min(line["dev_copy"] for line in dev) < dev[0]["dev_plain"]
    translator = Translator.load(tmp_path / "out", [index])
    assert translator.settings.mode == "copy" and translator.settings.cache == 0
    assert adapt(model, index, tmp_path / "out", "--no-cache") == 2
    assert "exists; name another folder" in capsys.readouterr().err


def test_what_makes_dev_worse_is_not_saved(
    tmp_path: Path,
    model: Path,
    index: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    validate = TMPart.validate

    def pessimist(self: TMPart) -> dict[str, float]:
        losses = validate(self)
        return losses | {"copy": losses["plain"] + 0.25}

    monkeypatch.setattr(TMPart, "validate", pessimist)
    assert adapt(model, index, tmp_path / "out", "--no-cache", "--no-fusion") == 1
    err = capsys.readouterr().err
    assert (
        "nothing is saved, since dev is worse than the plain model, or no better" in err
        and "copy" in err
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("bad", "figure"),
    [("copy", "copy"), ("copy", "copy irrelevant"), ("fusion", "fusion"), ("cache", "cache")],
)
def test_the_advice_on_refusal_keeps_the_other_parts(
    tmp_path: Path,
    model: Path,
    index: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    bad: str,
    figure: str,
) -> None:
    part = CachePart if bad == "cache" else TMPart
    validate = part.validate

    def pessimist(self: TMPart | CachePart) -> dict[str, float]:
        losses = validate(self)  # type: ignore[arg-type]
        return losses | {figure: 1.02 * losses["plain"]}

    monkeypatch.setattr(part, "validate", pessimist)
    given = ["--epochs", "4", *(["--no-cache"] if bad != "cache" else ["--no-fusion"])]
    assert adapt(model, index, tmp_path / "out", *given) == 1
    err = capsys.readouterr().err.splitlines()[-1]
    (advice,) = re.findall(r"--resume(?: --no-\w+)+", err)
    assert f": {figure} " in err and not (tmp_path / "out").exists()
    trained = load_file(tmp_path / "out.partial" / "memory-tm-best.safetensors")
    assert adapt(model, index, tmp_path / "out", *given, *advice.split()) == 0
    made = load_file(tmp_path / "out" / "memory.safetensors")
    assert made and not any(f"{bad}." in name for name in made)
    for name, value in made.items():
        assert torch.equal(value, trained["model." + name.removeprefix("tm.")]), name
    translator = Translator.load(
        tmp_path / "out",
        [index],
        TranslationOptions(cache=0, mode="fusion" if bad == "copy" else "copy"),
    )
    assert translator.translate(["This Decision is addressed to the Member States."])


def test_irrelevant_pairs_may_do_no_harm_beyond_noise(tmp_path: Path) -> None:
    good, same = Reached(1.0, 0.5), Reached(1.0, 1.0)
    refuse_worse({"copy": good, "copy irrelevant": Reached(1.0, 1.009)}, tmp_path)
    with pytest.raises(
        DataError, match=r"copy irrelevant 1\.0110, plain 1\.0000; more --sentences.*deleted\)$"
    ):
        refuse_worse({"copy": good, "copy irrelevant": Reached(1.0, 1.011)}, tmp_path)
    with pytest.raises(
        DataError, match=r": fusion 1\.0000, plain.* for copy alone, .* --resume --no-fusion$"
    ):
        refuse_worse({"copy": good, "fusion": same, "fusion irrelevant": same}, tmp_path)


def test_what_the_model_had_stays_where_nothing_is_gained() -> None:
    better, worse, slightly = (Reached(1.0, learned, 0.5) for learned in (0.4, 0.6, 0.501))
    assert unimproved({"cache": Reached(1.0, 0.5)}) == set()  # new: there is nothing to go back to
    assert unimproved({"copy": better, "cache": worse}) == {"cache"}
    assert unimproved({"copy": better, "cache": Reached(1.0, 0.5, 0.5)}) == {"cache"}
    assert unimproved({"copy": better, "fusion": slightly, "cache": better}) == set()
    assert unimproved({"copy": better, "fusion": worse}) == {"copy", "fusion"}
    assert unimproved({"copy": slightly, "fusion": slightly}) == {"copy", "fusion"}
    for learned, before, left in ((1.02, 1.0, True), (1.02, 1.03, False), (1.009, 0.9, False)):
        irrelevant = Reached(1.0, learned, before)
        assert bool(unimproved({"copy": better, "copy irrelevant": irrelevant})) is left


def test_what_the_model_has_is_gone_on_with_and_a_line_a_part_says_what_it_gained(
    tmp_path: Path, model: Path, index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    assert adapt(model, index, first, "--epochs", "4") == 0
    err = capsys.readouterr().err
    lines = [
        line for line in err.splitlines() if not re.match(r"(indexing|learning|retriev)", line)
    ]
    numbers = r"dev (\d\.\d{4}) to (\d\.\d{4}) nats a subword"
    said = [re.fullmatch(rf"(\w+): {numbers}, kept", line) for line in lines]
    assert [found and found[1] for found in said] == ["copy", "fusion", "cache"], err
    learned = {found[1]: found[3] for found in said if found}
    assert adapt(first, index, second) == 0  # a quarter of that: from nothing it would be worse
    for name, before, after, kept in re.findall(
        rf"(\w+): {numbers} \(plain \d\.\d+\), (.*)", capsys.readouterr().err
    ):
        assert before == learned.pop(name)
        assert kept == "kept" and (after < before or name == "fusion")
    assert not learned
    assert adapt(first, index, third, "--no-copy", "--no-fusion") == 0
    parts = [load_file(folder / "memory.safetensors") for folder in (first, second, third)]
    assert parts[0].keys() == parts[1].keys() == parts[2].keys()
    for name in parts[0]:  # what is not trained stays
        assert torch.equal(parts[0][name], parts[2][name]) is not name.startswith("cache."), name


def test_parts_that_gain_nothing_stay_bit_for_bit(
    tmp_path: Path,
    index: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = write_tiny_model(tmp_path / "model")
    monkeypatch.setattr("tmnmt.training.adapt.unimproved", lambda reached: {*reached})
    assert adapt(model, index, tmp_path / "out") == 0
    err = capsys.readouterr().err
    assert err.count("not kept: it stays as the model had it") == 3
    made, had = (load_file(f / "memory.safetensors") for f in (tmp_path / "out", model))
    assert made.keys() == had.keys() and all(torch.equal(made[name], had[name]) for name in had)


def interrupted_once(losses: Any) -> Any:
    """A part's `losses` whose second unit is interrupted."""
    units = list[object]()

    def interrupted(self: Any, unit: Any) -> Iterator[Any]:
        units.append(unit)
        if len(units) == 2:
            raise KeyboardInterrupt
        yield from losses(self, unit)

    return interrupted


def test_a_run_that_goes_on_from_what_the_model_has_is_resumed_exactly(
    tmp_path: Path, index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = write_tiny_model(tmp_path / "model")
    assert adapt(model, index, tmp_path / "whole", "--epochs", "3") == 0
    for part in (TMPart, CachePart):
        monkeypatch.setattr(part, "losses", interrupted_once(part.losses))
    for resume, code in (([], 130), (["--resume"], 130), (["--resume"], 0)):
        assert adapt(model, index, tmp_path / "out", "--epochs", "3", *resume) == code
    made, whole = (load_file(tmp_path / name / "memory.safetensors") for name in ("out", "whole"))
    assert made.keys() == whole.keys() and all(torch.equal(made[key], whole[key]) for key in whole)


def test_an_interrupted_run_is_gone_on_with(
    tmp_path: Path,
    model: Path,
    index: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = ("--no-cache", "--no-fusion")
    assert adapt(model, index, tmp_path / "whole", *parts) == 0

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tmnmt.training.parts.PartTrainer._after_unit", interrupted)
    assert adapt(model, index, tmp_path / "out", *parts) == 130
    monkeypatch.undo()
    assert "go on with --resume" in capsys.readouterr().err and not (tmp_path / "out").exists()
    assert adapt(model, index, tmp_path / "out", *parts) == 2
    assert "--resume" in capsys.readouterr().err
    assert adapt(model, index, tmp_path / "out", *parts, "--resume", "--seed", "5") == 2
    assert "was begun with --seed 1, not 5" in capsys.readouterr().err
    assert adapt(model, index, tmp_path / "out", *parts, "--resume") == 0
    made, whole = (load_file(tmp_path / name / "memory.safetensors") for name in ("out", "whole"))
    assert made.keys() == whole.keys() and all(torch.equal(made[key], whole[key]) for key in whole)


def test_the_last_validation_is_made_again_where_it_was_interrupted(
    tmp_path: Path, model: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the memories of the first validation came back, which are untrained."""
    parts = ("--no-cache", "--no-fusion")
    assert adapt(model, index, tmp_path / "whole", *parts) == 0
    validate, calls = TMPart.validate, list[int]()

    def interrupted(self: TMPart) -> dict[str, float]:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return validate(self)

    monkeypatch.setattr(TMPart, "validate", interrupted)
    assert adapt(model, index, tmp_path / "out", *parts) == 130
    assert adapt(model, index, tmp_path / "out", *parts, "--resume") == 0 and len(calls) == 3
    made, whole = (load_file(tmp_path / name / "memory.safetensors") for name in ("out", "whole"))
    assert made.keys() == whole.keys() and all(torch.equal(made[key], whole[key]) for key in whole)


def test_which_pairs_are_learned_from_is_an_option(
    tmp_path: Path,
    model: Path,
    index: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def told(*arguments: Any) -> None:
        asked.append(arguments[5])
        raise KeyboardInterrupt

    monkeypatch.setattr("tmnmt.training.adapt.train_layers", told)
    options = ("--top-k", "2", "--select", "contrastive", "--alpha", "0.3", "--similarity", "bleu")
    assert adapt(model, index, tmp_path / "out", *options) == 130
    (config,) = asked
    assert (config.k, config.selection()) == (2, Selection("contrastive", "bleu", 0.3))
    assert adapt(model, index, tmp_path / "other", "--alpha", "0.3") == 2
    assert "alpha is of select contrastive" in capsys.readouterr().err


def test_a_cache_without_documents_is_refused_before_anything_is_trained(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(
        tmp_path / "index", [replace(s, document="", position=0) for s in documents()], "en", "fr"
    )
    assert adapt(model, tmp_path / "index", tmp_path / "out") == 1
    err = capsys.readouterr().err
    assert "cache: no document of two or more segments to learn from" in err and "--no-cache" in err
    assert "update 0" not in err and not (tmp_path / "out.partial").exists()
    assert adapt(model, tmp_path / "index", tmp_path / "out", "--no-fusion", "--no-cache") == 0


def test_nothing_to_train_is_a_usage_error(tmp_path: Path, model: Path, index: Path) -> None:
    assert adapt(model, index, tmp_path / "out", "--no-copy", "--no-fusion", "--no-cache") == 2


def test_held_out_sources_are_not_learned_from() -> None:
    segments = [
        *documents(),
        *(Segment(s.src, "again", "another", i) for i, s in enumerate(documents())),
    ]
    train, dev = split(segments, 0.3)
    kept_out = {tuple(match_tokens(s.src)) for document in dev for s in document}
    assert kept_out and not kept_out & {
        tuple(match_tokens(s.src)) for document in train for s in document
    }
    assert all(len({s.document for s in document}) == 1 for document in train + dev)


def test_a_memory_file_without_documents_is_split_by_stretches(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    memory = tmp_path / "memory.tsv"
    memory.write_text(
        "en\tfr\n" + "".join(f"{s.src}\t{s.tgt}\n" for s in documents()), encoding="utf-8"
    )
    assert adapt(model, memory, tmp_path / "out", "--no-cache", "--no-fusion", "-v") == 0
    err = capsys.readouterr().err
    assert (
        "1 document: too few to hold some out, so stretches of 40 segments are split instead" in err
    )
    assert "80 segments to learn from, 40 segments held out: 1 of 3 stretches" in err


@pytest.mark.parametrize("dev_share", [0.001, 0.2, 0.5])
def test_of_one_document_whole_stretches_are_held_out_by_their_place(dev_share: float) -> None:
    segments = [
        Segment(f"number {i % 390}", str(i), "all", i) for i in range(400)
    ]  # the last ten repeat the first
    train, dev = split(segments, dev_share)
    places = [[int(s.tgt) for s in stretch] for stretch in dev]
    assert places and all(
        place == [*range(place[0], place[0] + 40)] and place[0] % 40 == 0 for place in places
    )
    kept_out = {s.src for stretch in dev for s in stretch}
    assert {s.src for stretch in train for s in stretch} == {s.src for s in segments} - kept_out
    assert len(dev) == 1 if dev_share < 0.1 else len(dev) < 10
    more, again = split([*segments, Segment("one more", "400", "all", 400)], dev_share)
    assert dev_share < 0.1 or ([s for s in again if len(s) == 40] == dev and more)


def test_one_stretch_cannot_be_split() -> None:
    assert [] in split([Segment(f"number {i}", str(i), "all", i) for i in range(40)], 0.5)


def test_a_memory_that_is_a_sample_by_hash_is_split_all_the_same() -> None:
    names = [name for name in (f"doc{n}" for n in range(2000)) if split_of(name, 0.05, 0) == "dev"]
    train, dev = split([Segment(f"text of {name}", "", name) for name in names], 0.2)
    assert len(train) > 2 * len(dev) > 0
