"""`tmnmt adapt-reference`: a model folder whose decoder reads a reference network."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from adapting import documents
from safetensors.torch import load_file
from tiny_model import write_tiny_model

from tmnmt import Translator
from tmnmt.cli import run
from tmnmt.config.options import Decoding, Remembering
from tmnmt.formats import write_tsv
from tmnmt.models.folder import load_model
from tmnmt.models.reference import Referring
from tmnmt.training.reference import ReferencePart

TEXTS = ["It shall apply from 1 January 1996.", "The Commission shall inform the Member States."]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    torch.set_num_threads(1)
    write_tsv(tmp_path / "pairs.tsv", documents())
    return write_tiny_model(tmp_path / "model")


def adapt(model: Path, output: Path, *more: str) -> int:
    options = ["--model", str(model), "-o", str(output), "--sentences", "100", "--epochs", "2"]
    pairs = str(model.with_name("pairs.tsv"))
    return run(["adapt-reference", pairs, *options, "--dev-share", "0.2", *more])


def said(model: Path, **decoding: object) -> list[tuple[str, float]]:
    options = Decoding(mode="off", **decoding)  # type: ignore[arg-type]
    translator = Translator.load(model, decoding=options, remembering=Remembering(cache=0))
    return [(each.tgt, each.score) for each in translator.translate(TEXTS)]


@pytest.mark.parametrize("form", ["monolingual", "bilingual"])
def test_the_command_makes_a_model_that_reads_it_or_the_base_alone(
    form: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert adapt(model, out, "--form", form, "--no-decoder", "--anchors", "5") == 0
    told = capsys.readouterr()
    assert told.out == f"{out}\n" and "reference: dev " in told.err
    made = load_model(out)
    assert isinstance(made.backbone, Referring) and made.backbone.network.kind.anchors == 5
    base = load_file(model / "base.safetensors")
    assert all(torch.equal(v, base[k]) for k, v in load_file(out / "base.safetensors").items())
    assert (out / "memory.safetensors").read_bytes() == (model / "memory.safetensors").read_bytes()
    assert said(out) != said(model)
    assert said(out, reference=False) == said(model)
    assert not (tmp_path / "out.partial").exists()


def test_where_the_decoder_learns_the_layers_of_the_old_one_are_left_out(
    model: Path, tmp_path: Path
) -> None:
    assert adapt(model, tmp_path / "out", "--anchors", "5") == 0
    assert not (tmp_path / "out" / "memory.safetensors").exists()
    base = load_file(model / "base.safetensors")
    made = load_file(tmp_path / "out" / "base.safetensors")
    assert torch.equal(made["encoder_weight"], base["encoder_weight"])
    assert not torch.equal(made["decoder_weight"], base["decoder_weight"])


def test_an_interrupted_run_goes_on_and_wrong_use_is_one_line(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert adapt(model, whole, "--form", "bilingual") == 0
    assert adapt(model, whole, "--form", "bilingual") == 2
    assert "exists; name another folder" in capsys.readouterr().err
    assert adapt(whole, out) == 2
    assert "has a reference network already" in capsys.readouterr().err
    losses, count = ReferencePart.losses, iter(range(100))

    def stopping(part: ReferencePart, unit: list[int]) -> object:
        if next(count) == 2:
            raise KeyboardInterrupt
        return losses(part, unit)

    with monkeypatch.context() as broken:
        broken.setattr(ReferencePart, "losses", stopping)
        assert adapt(model, out, "--form", "bilingual") == 130
    assert "go on with --resume" in capsys.readouterr().err and not out.exists()
    assert adapt(model, out, "--form", "bilingual") == 2
    assert adapt(model, out, "--form", "bilingual", "--resume") == 0
    one, other = (load_file(folder / "reference.safetensors") for folder in (whole, out))
    assert all(torch.equal(value, other[name]) for name, value in one.items())
