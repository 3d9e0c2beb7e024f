"""Transformers and students with products in int8: their steps, their files, and what is bound to
the numbers that they give."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_student import Architecture, shortlist, write_student
from safetensors.torch import load_file, save_file
from torch import Tensor

from tmnmt import Translator
from tmnmt.config.options import Decoding, Precision, TranslationOptions
from tmnmt.errors import ModelError, UsageError
from tmnmt.keys.compute import header_of
from tmnmt.model_import.marian import import_marian, read_marian
from tmnmt.models.decoding import for_decoding
from tmnmt.models.folder import load_model, save_model, stamp
from tmnmt.models.int8 import Int8Weight
from tmnmt.models.kinds import make
from tmnmt.models.transformer_step import CompiledStep, Int8Step
from tmnmt.vocab import BOS, FIRST

SMALL = Architecture(32, 48, 2, encoder_layers=2, heads=4)
SIZES: dict[str, dict[str, Any]] = {
    "transformer": {"hidden": 32, "feed_forward": 48, "heads": 2},
    "transformer, norms behind": {"hidden": 32, "feed_forward": 48, "heads": 2, "norm": "post"},
    "transformer, swish": {"hidden": 32, "feed_forward": 48, "heads": 2, "activation": "swish"},
    "student": {"hidden": 32, "feed_forward": 48, "heads": 4},
}
WORDS = 90


def backbone_of(name: str) -> Any:
    torch.manual_seed(3)
    return make(WORDS, {"kind": name.split(",")[0], **SIZES[name]}).eval()


def batch() -> tuple[Tensor, Tensor, Tensor]:
    """Sources (3, 9), their lengths, targets (3, 12)."""
    random = torch.Generator().manual_seed(5)
    src = torch.randint(FIRST, WORDS, (3, 9), generator=random)
    lengths = torch.tensor([9, 3, 6])
    src = src.masked_fill(torch.arange(9) >= lengths[:, None], 0)
    return src, lengths, torch.randint(FIRST, WORDS, (3, 12), generator=random)


def steps_along(backbone: Any, rows: int = 1) -> list[Tensor]:
    """Contexts, hidden states and logits of every step, `rows` of a sentence; they change places
    at every step."""
    src, lengths, tgt = batch()
    encoded = backbone.for_beam(backbone.encode(src, lengths))
    order = torch.arange(3).repeat_interleave(rows)
    state = backbone.reordered(backbone.start(encoded), order)
    prev, steps = torch.full((3 * rows,), BOS), []
    turned = torch.arange(3 * rows).view(3, rows).roll(1, 1).flatten()
    for t in range(tgt.shape[1]):
        state, context, hidden = backbone.step(prev, state, encoded)
        steps.append((context, hidden, backbone.readout(prev, hidden, context)))
        prev, state = tgt[order, t], backbone.reordered(state, turned)
    return [torch.stack([step[part] for step in steps], 1) for part in range(3)]


@torch.no_grad()
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("rows", [1, 3])
def test_a_step_in_int8_is_that_of_its_weights_in_fp32(name: str, rows: int) -> None:
    backbone = backbone_of(name)
    for parameter in backbone.parameters():
        if parameter.dim() == 2:
            parameter.copy_(Int8Weight.rounded(parameter).exact())
    whole: Any = for_decoding(backbone, torch.int8)
    assert type(whole.compiled) is (CompiledStep if "swish" in name else Int8Step)
    for ours, plain in zip(steps_along(whole, rows), steps_along(backbone), strict=True):
        expected = plain.repeat_interleave(rows, 0)
        torch.testing.assert_close(ours[..., FIRST:], expected[..., FIRST:], atol=2e-3, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("name", SIZES)
def test_keys_of_a_target_are_what_its_steps_give(name: str) -> None:
    whole = for_decoding(backbone_of(name), torch.int8)
    src, lengths, tgt = batch()
    contexts, hiddens = whole.forced(whole.encode(src, lengths), tgt)
    ours = steps_along(whole)
    torch.testing.assert_close(ours[0], contexts, atol=1e-4, rtol=0)
    torch.testing.assert_close(ours[1], hiddens, atol=1e-4, rtol=0)


@torch.no_grad()
def test_a_shortlist_limits_a_product_in_int8() -> None:
    whole = for_decoding(backbone_of("student"), torch.int8)
    read = torch.tensor([5] * 4), torch.randn(4, whole.hidden_size), torch.randn(4, 32)
    words = torch.tensor([2, 7, 50])
    limited = whole.limited_to(words)
    assert limited.columns is not None and limited.columns.words.tolist() == [0, 1, 2, 3, 7, 50]
    logits = limited.readout(*read)
    assert torch.equal(logits, whole.readout(*read)[:, limited.columns.words])


@torch.no_grad()
@pytest.mark.parametrize("name", SIZES)
def test_one_call_gives_what_norm_read_out_and_softmax_give(name: str) -> None:
    whole = for_decoding(backbone_of(name), torch.int8)
    size = whole.hidden_size
    for backbone in (whole, whole.limited_to(torch.tensor([2, 7, 50]))):
        for rows in (1, 4, 7):
            read = torch.tensor([5] * rows), torch.randn(rows, size), torch.randn(rows, size)
            expected = backbone.readout(*read).log_softmax(-1)
            torch.testing.assert_close(backbone.log_readout(*read), expected, atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match="states of 3 numbers"):
        whole.log_readout(torch.tensor([5]), torch.randn(1, 3), torch.randn(1, 3))


def test_a_step_refuses_what_it_would_misread() -> None:
    whole = for_decoding(backbone_of("student"), torch.int8)
    src, lengths, _ = batch()
    encoded = whole.encode(src, lengths)
    state, words = whole.start(encoded), torch.full((3,), BOS)
    with pytest.raises(ValueError, match="words"):
        whole.step(words.int(), state, encoded)
    with pytest.raises(ValueError, match="cells"):
        whole.step(words, replace(state, cells=state.cells[:, :2]), encoded)
    with pytest.raises(ValueError, match="cells"):
        whole.step(words, replace(state, cells=state.cells.double()), encoded)


def test_recurrent_models_have_no_products_in_int8() -> None:
    backbone = make(WORDS, {"embedding": 16, "hidden": 24, "attention": 16})
    with pytest.raises(UsageError, match="Transformer or a student"):
        for_decoding(backbone, torch.int8)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_student(tmp_path / "mozilla", SMALL)
    import_marian(tmp_path / "mozilla", tmp_path / "model", "en", "pt")
    return tmp_path / "model"


def test_an_imported_model_keeps_the_whole_numbers_of_its_file(model: Path) -> None:
    stored = load_file(model / "base.safetensors")
    expected = read_marian(model.parent / "mozilla", "pt").backbone.state_dict()
    loaded = load_model(model)
    for name, matrix in expected.items():
        if matrix.dim() == 2:
            assert stored[name].dtype == torch.int8
            exact = stored[name].float() * stored[f"{name}.scales"][:, None]
            assert torch.equal(exact, matrix)
        assert torch.equal(loaded.backbone.state_dict()[name], matrix)
    assert loaded.precision == "int8"
    size = sum(matrix.numel() for matrix in expected.values())
    assert (model / "base.safetensors").stat().st_size < 2 * size


def test_what_is_stored_in_int8_is_what_decodes(model: Path) -> None:
    loaded: Any = load_model(model)
    read = loaded.backbone._int8_weight("embedding.weight", loaded.backbone.embedding.weight)
    assert read is loaded.backbone.int8["embedding.weight"]
    with torch.no_grad():
        loaded.backbone.embedding.weight[7] += 1.0
    read = loaded.backbone._int8_weight("embedding.weight", loaded.backbone.embedding.weight)
    torch.testing.assert_close(read.exact(), loaded.backbone.embedding.weight, atol=0.02, rtol=0)
    assert "embedding.weight" not in loaded.backbone.stored_int8()


def test_a_folder_is_written_again_as_it_was(model: Path, tmp_path: Path) -> None:
    loaded = load_model(model)
    save_model(tmp_path / "again", loaded.backbone, loaded.vocab, loaded.config)
    assert load_model(tmp_path / "again").hash == loaded.hash


@pytest.mark.parametrize("damage", ["missing", "short", "infinite", "negative"])
def test_scales_that_do_not_fit_are_refused(model: Path, damage: str) -> None:
    path = model / "base.safetensors"
    tensors = load_file(path)
    name = "decoder.0.cross.query.weight.scales"
    scales = tensors.pop(name)
    if damage != "missing":
        tensors[name] = {
            "short": scales[1:],
            "infinite": scales * torch.inf,
            "negative": -scales,
        }[damage].contiguous()
    save_file(tensors, path)
    stamp(model)
    with pytest.raises(ModelError, match=re.escape("decoder.0.cross.query.weight")):
        load_model(model)


def test_a_precision_of_a_folder_is_one_of_three(model: Path) -> None:
    path = model / "config.toml"
    path.write_text(path.read_text().replace('"int8"', '"int4"'))
    with pytest.raises(ModelError, match="key `precision` is 'int4', wanted: fp32 or bf16 or int8"):
        load_model(model)


def test_keys_are_bound_to_the_kind_of_products(model: Path) -> None:
    whole = load_model(model)
    plain = replace(whole, products="fp32")
    assert whole.states_hash == whole.hash
    assert plain.hash == whole.hash != plain.states_hash
    assert replace(whole, products="bf16").states_hash != whole.states_hash
    assert header_of(plain).model == plain.states_hash
    assert replace(whole, products="int8").states_hash == whole.states_hash


def test_a_student_reads_its_shortlist_unless_it_is_not_to(tmp_path: Path) -> None:
    size = len(write_student(tmp_path / "mozilla", SMALL)["Wemb"])
    import_marian(tmp_path / "mozilla", tmp_path / "plain", "en", "pt")
    lists = [[word] if word > 1 else [] for word in range(size)]
    (tmp_path / "mozilla" / "lex.50.50.enpt.s2t.bin").write_bytes(shortlist(lists, 5))
    import_marian(tmp_path / "mozilla", tmp_path / "listed", "en", "pt")
    for folder, option, read in (
        ("listed", None, True),
        ("listed", False, False),
        ("plain", None, False),
    ):
        translator = Translator.load(
            tmp_path / folder, options=TranslationOptions(shortlist=option)
        )
        assert (translator.pipeline.decoder.shortlist is not None) == read
    with pytest.raises(UsageError, match="no shortlist"):
        Translator.load(tmp_path / "plain", options=TranslationOptions(shortlist=True))


def test_a_translator_makes_products_as_its_folder_says(model: Path) -> None:
    steps: list[tuple[Precision | None, type]]
    steps = [(None, Int8Step), ("int8", Int8Step), ("fp32", CompiledStep)]
    for precision, step in steps:
        backbone: Any = Translator.load(
            model, options=TranslationOptions(precision=precision)
        ).pipeline.backbone
        assert type(backbone.compiled) is step
    with pytest.raises(UsageError, match="precision"):
        Decoding(precision="int4")  # type: ignore[arg-type]
