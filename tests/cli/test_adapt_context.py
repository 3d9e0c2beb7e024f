"""`tmnmt adapt-context`: a model folder whose decoder reads the source segments before."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from adapting import adapt as adapt_layers
from adapting import documents
from reading_model import write_reading_model
from safetensors.torch import load_file
from tiny_model import write_tiny_model

from tmnmt import Translator
from tmnmt.cli import run
from tmnmt.config.options import Decoding, Remembering
from tmnmt.formats import write_tsv
from tmnmt.index import build
from tmnmt.models.document_context import InDocument
from tmnmt.models.folder import load_model
from tmnmt.training.context import ContextPart

TEXTS = ["It shall apply from 1 January 1996.", "The Commission shall inform the Member States."]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    torch.set_num_threads(1)
    write_tsv(tmp_path / "pairs.tsv", documents())
    return write_tiny_model(tmp_path / "model")


def adapt(model: Path, output: Path, *more: str) -> int:
    options = ["--model", str(model), "-o", str(output), "--sentences", "100", "--epochs", "2"]
    pairs = str(model.with_name("pairs.tsv"))
    return run(["adapt-context", pairs, *options, "--dev-share", "0.2", *more])


def said(model: Path, **decoding: object) -> list[float]:
    options = Decoding(mode="off", **decoding)  # type: ignore[arg-type]
    translator = Translator.load(model, decoding=options, remembering=Remembering(cache=0))
    return [each.score for each in translator.translate(TEXTS)]


@pytest.mark.parametrize("form", ["attended", "gated"])
def test_the_command_makes_a_model_that_reads_what_stands_before_or_the_base_alone(
    form: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert adapt(model, out, "--form", form, "--no-decoder") == 0
    told = capsys.readouterr()
    assert told.out == f"{out}\n" and "context: dev " in told.err
    made = load_model(out)
    assert isinstance(made.backbone, InDocument) and made.backbone.network.kind.form == form
    base = load_file(model / "base.safetensors")
    assert all(torch.equal(v, base[k]) for k, v in load_file(out / "base.safetensors").items())
    assert (out / "memory.safetensors").read_bytes() == (model / "memory.safetensors").read_bytes()
    assert load_file(out / "context.safetensors")["into.weight"].any()
    plain = said(model)
    assert said(out)[0] == pytest.approx(plain[0], abs=1e-5)
    assert said(out, context=False) == plain
    assert said(out, reference=False) == said(out)
    assert not (tmp_path / "out.partial").exists()


def test_memory_layers_learn_beside_it_and_it_stays(tmp_path: Path) -> None:
    folder, out = write_reading_model(tmp_path / "model"), tmp_path / "out"
    build(tmp_path / "index", documents(), "en", "fr")
    assert adapt_layers(folder, tmp_path / "index", out, "--no-cache", "--no-fusion") == 0
    name = "context.safetensors"
    assert (out / name).read_bytes() == (folder / name).read_bytes()
    assert load_model(out).hash == load_model(folder).hash


def test_an_interrupted_run_goes_on_and_wrong_use_is_one_line(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert adapt(model, whole) == 0
    assert not (whole / "memory.safetensors").exists()  # it was of the decoder before
    assert adapt(whole, out) == 2
    assert "has a context network already" in capsys.readouterr().err
    losses, count = ContextPart.losses, iter(range(100))

    def stopping(part: ContextPart, unit: list[int]) -> object:
        if next(count) == 2:
            raise KeyboardInterrupt
        return losses(part, unit)

    with monkeypatch.context() as broken:
        broken.setattr(ContextPart, "losses", stopping)
        assert adapt(model, out) == 130
    assert "go on with --resume" in capsys.readouterr().err and not out.exists()
    assert adapt(model, out, "--resume") == 0
    for name in ("context.safetensors", "base.safetensors"):
        one, other = (load_file(folder / name) for folder in (whole, out))
        assert all(torch.equal(value, other[key]) for key, value in one.items())
