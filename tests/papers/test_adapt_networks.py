"""`tmnmt adapt-reference` and `tmnmt adapt-context`: a model folder whose decoder reads a network
beside its base."""

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
from tmnmt.config.options import TranslationOptions
from tmnmt.formats import write_tsv
from tmnmt.index import build
from tmnmt.models.folder import load_model
from tmnmt.papers.context_network import InDocument
from tmnmt.papers.context_training import ContextPart
from tmnmt.papers.reference_network import Referring
from tmnmt.papers.reference_training import ReferencePart

TEXTS = ["It shall apply from 1 January 1996.", "The Commission shall inform the Member States."]
BOTH = ["reference", "context"]
FORMS = [
    ("reference", "monolingual"),
    ("reference", "bilingual"),
    ("context", "attended"),
    ("context", "gated"),
    ("context", "around"),
]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    torch.set_num_threads(1)
    write_tsv(tmp_path / "pairs.tsv", documents())
    return write_tiny_model(tmp_path / "model")


def adapt(network: str, model: Path, output: Path, *more: str) -> int:
    options = ["--model", str(model), "-o", str(output), "--sentences", "100", "--epochs", "2"]
    options += ["--anchors", "5"] if network == "reference" else []
    pairs = str(model.with_name("pairs.tsv"))
    return run([f"adapt-{network}", pairs, *options, "--dev-share", "0.2", *more])


def said(model: Path, **decoding: object) -> list[tuple[str, float]]:
    options = TranslationOptions(mode="off", cache=0, **decoding)  # type: ignore[arg-type]
    translator = Translator.load(model, options=options)
    return [(each.tgt, each.score) for each in translator.translate(TEXTS)]


def same(one: Path, other: Path, name: str) -> bool:
    """Whether the folders have the same numbers in file `name`."""
    read, expected = (load_file(folder / name) for folder in (one, other))
    return all(torch.equal(value, expected[key]) for key, value in read.items())


@pytest.mark.parametrize(("network", "form"), FORMS)
def test_the_command_makes_a_model_that_reads_the_network_or_the_base_alone(
    network: str, form: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert adapt(network, model, out, "--form", form, "--no-decoder") == 0
    told = capsys.readouterr()
    assert told.out == f"{out}\n" and f"{network}: dev " in told.err
    assert same(model, out, "base.safetensors")
    assert (out / "memory.safetensors").read_bytes() == (model / "memory.safetensors").read_bytes()
    plain = said(model)
    assert said(out) != plain
    assert said(out, **{network: False}) == plain
    other = BOTH[1 - BOTH.index(network)]
    assert said(out, **{other: False}) == said(out)
    assert not (tmp_path / "out.partial").exists()


def test_the_network_is_of_the_form_that_was_asked_for(model: Path, tmp_path: Path) -> None:
    assert adapt("reference", model, tmp_path / "anchored", "--no-decoder") == 0
    made = load_model(tmp_path / "anchored").backbone
    assert isinstance(made, Referring) and made.network.kind.anchors == 5
    assert adapt("context", model, tmp_path / "gated", "--form", "gated", "--no-decoder") == 0
    made = load_model(tmp_path / "gated").backbone
    assert isinstance(made, InDocument) and made.network.kind.form == "gated"
    assert load_file(tmp_path / "gated" / "context.safetensors")["into.weight"].any()
    # a first segment has nothing before it
    assert said(tmp_path / "gated")[0][1] == pytest.approx(said(model)[0][1], abs=1e-5)


def test_where_the_decoder_learns_the_layers_of_the_old_one_are_left_out(
    model: Path, tmp_path: Path
) -> None:
    assert adapt("reference", model, tmp_path / "out") == 0
    assert not (tmp_path / "out" / "memory.safetensors").exists()
    base = load_file(model / "base.safetensors")
    made = load_file(tmp_path / "out" / "base.safetensors")
    assert torch.equal(made["encoder_weight"], base["encoder_weight"])
    assert not torch.equal(made["decoder_weight"], base["decoder_weight"])


def test_memory_layers_learn_beside_a_network_and_it_stays(tmp_path: Path) -> None:
    folder, out = write_reading_model(tmp_path / "model"), tmp_path / "out"
    build(tmp_path / "index", documents(), "en", "fr")
    assert adapt_layers(folder, tmp_path / "index", out, "--no-cache", "--no-fusion") == 0
    name = "context.safetensors"
    assert (out / name).read_bytes() == (folder / name).read_bytes()
    assert load_model(out).hash == load_model(folder).hash


@pytest.mark.parametrize(
    ("network", "part", "options"),
    [
        ("reference", ReferencePart, ("--form", "bilingual")),
        ("context", ContextPart, ("--form", "attended")),
    ],
)
def test_an_interrupted_run_goes_on_and_wrong_use_is_one_line(
    network: str,
    part: type[ReferencePart] | type[ContextPart],
    options: tuple[str, ...],
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert adapt(network, model, whole, *options) == 0
    assert adapt(network, model, whole, *options) == 2
    assert "exists; name another folder" in capsys.readouterr().err
    assert adapt(network, whole, out) == 2
    assert f"has a {network} network already" in capsys.readouterr().err
    losses, count = part.losses, iter(range(100))

    def stopping(trained: object, unit: list[int]) -> object:
        if next(count) == 2:
            raise KeyboardInterrupt
        return losses(trained, unit)  # type: ignore[arg-type]

    with monkeypatch.context() as broken:
        broken.setattr(part, "losses", stopping)
        assert adapt(network, model, out, *options) == 130
    assert "go on with --resume" in capsys.readouterr().err and not out.exists()
    assert adapt(network, model, out, *options) == 2
    assert adapt(network, model, out, *options, "--resume") == 0
    for name in (f"{network}.safetensors", "base.safetensors"):
        assert same(whole, out, name)
