"""What a loaded model holds: no parameter beside its packed form. Bytes of tensors are counted, and
not what the system says of the process, which depends on the machine."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_student import Architecture, shortlist, write_student
from tiny_model import trained

from tmnmt import Translator
from tmnmt.config.options import TranslationOptions
from tmnmt.model_import.marian import import_marian
from tmnmt.models.folder import save_model
from tmnmt.models.kinds import make
from tmnmt.models.weights import reduced_copy

SIZES: dict[str, dict[str, Any]] = {
    "rnnsearch": {"kind": "rnnsearch", "embedding": 16, "hidden": 192, "attention": 64},
    "transformer": {
        "kind": "transformer",
        "hidden": 64,
        "feed_forward": 512,
        "heads": 2,
        "encoder_layers": 2,
        "decoder_layers": 1,
    },
}


def storages() -> dict[int, int]:
    """Bytes of all tensors that there are, by their addresses."""
    gc.collect()
    tensors = [
        thing for thing in gc.get_objects() if type(thing) in (torch.Tensor, torch.nn.Parameter)
    ]
    return {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors}


def held(folder: Path, options: TranslationOptions) -> int:
    """Bytes of the tensors that a translator has after its first translation, tables of words
    aside, which take no memory where they are not filled."""
    before = storages()
    translator = Translator.load(folder, options=options)
    translator.translate(["The Commission shall inform the Council."])
    made = {at: size for at, size in storages().items() if at not in before}
    backbone = translator.pipeline.backbone
    for name in ("input_table", "readout_table"):
        if (table := getattr(backbone, name, None)) is not None:
            del made[table._table.untyped_storage().data_ptr()]
    return sum(made.values())


@pytest.mark.skipif(
    "fbgemm" not in torch.backends.quantized.supported_engines, reason="nothing is packed here"
)
@pytest.mark.parametrize("kind", SIZES)
def test_what_is_packed_is_not_held_in_fp32_too(kind: str, tmp_path: Path) -> None:
    """Parameters take twice the bytes of their file in fp16; what is not packed of them, which is
    embeddings and an encoder, less than once."""
    vocab, _ = trained()
    torch.manual_seed(1)
    languages = {"src_lang": "en", "tgt_lang": "fr", "max_subwords": 40}
    config = {**languages, "model": SIZES[kind]}
    save_model(tmp_path / "model", make(len(vocab), SIZES[kind]), vocab, config, half=True)
    assert (
        held(tmp_path / "model", TranslationOptions(threads=1))
        < (tmp_path / "model" / "base.safetensors").stat().st_size
    )


@pytest.mark.parametrize("mode", ["off", "nearest"])
def test_a_student_in_int8_has_its_weights_once(mode: str, tmp_path: Path) -> None:
    """A byte for each weight, the table of embeddings apart."""
    sizes = Architecture(32, 512, 2, encoder_layers=2, heads=4)
    words = len(write_student(tmp_path / "mozilla", sizes)["Wemb"])
    (tmp_path / "mozilla" / "lex.50.50.enpt.s2t.bin").write_bytes(shortlist([[]] * words, 5))
    import_marian(tmp_path / "mozilla", tmp_path / "model", "en", "pt")
    options = TranslationOptions(threads=1, mode=mode)
    assert (
        held(tmp_path / "model", options)
        < 2 * (tmp_path / "model" / "base.safetensors").stat().st_size
    )


def test_a_reduced_copy_shares_all_but_what_it_lacks() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    copied: Any = reduced_copy(module, ["0.weight"])
    assert copied[0].weight is None and module[0].weight is not None
    assert copied[0].bias is module[0].bias and copied[1].weight is module[1].weight
    assert [*copied.state_dict()] == ["0.bias", "1.weight", "1.bias"]
