"""Shortlists: the read-out of some words is that of all, a file of them is checked, and the
translator compares only what they name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save
from tiny_model import PAIRS, segments, write_tiny_model
from torch import Tensor

from tmnmt import Translator
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import ModelError, UsageError
from tmnmt.index import build
from tmnmt.models.decoding import for_decoding
from tmnmt.models.folder import SHORTLIST_FILE, load_model, stamp
from tmnmt.models.kinds import make
from tmnmt.models.shortlist import Shortlist
from tmnmt.vocab import BOS, EOS, PAD, UNK

WITH = TranslationOptions(shortlist=True)
SIZES: dict[str, dict[str, Any]] = {
    "rnnsearch": {"embedding": 16, "hidden": 24, "attention": 16},
    "transformer": {"hidden": 32, "feed_forward": 48, "heads": 2},
}


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_what_is_compared_is_as_without_a_shortlist(kind: str, dtype: torch.dtype | None) -> None:
    torch.manual_seed(3)
    model = for_decoding(make(60, {"kind": kind, **SIZES[kind]}), dtype)
    words = torch.tensor([2, 7, 31, 59])
    prev = torch.tensor([4, 9, 50])
    hidden, context = torch.randn(3, model.hidden_size), torch.randn(3, model.context_size)
    with torch.inference_mode():
        every = model.readout(prev, hidden, context)
        some = model.limited_to(words).readout(prev, hidden, context)
        assert torch.equal(every, model.readout(prev, hidden, context))
        columns = model.limited_to(words).columns
    compared = words if columns is None else columns.words
    assert (columns is None) == (kind == "rnnsearch") and set(words.tolist()) <= {
        *compared.tolist()
    }
    if columns is None:
        left_out = torch.ones(60, dtype=torch.bool).index_fill(0, words, False)
        assert (some[:, left_out] == -torch.inf).all()
        some = some[:, words]
    torch.testing.assert_close(some, every[:, compared], atol=2e-2 if dtype else 1e-5, rtol=0)


def test_words_of_a_batch_are_those_of_all_its_sources() -> None:
    of_source = torch.tensor([[PAD, PAD]] * 5 + [[7, 8], [9, PAD]])
    always, others = torch.tensor([EOS, 20]), [torch.tensor([[BOS, 30], [PAD, UNK]])]
    assert Shortlist(of_source, always, False).words([5, 6], others).tolist() == [
        2,
        7,
        8,
        9,
        20,
        30,
    ]
    assert Shortlist(of_source, always, True).words([6]).tolist() == [2, 6, 9, 20]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "model")


def shortlist(folder: Path, targets: Tensor) -> None:
    """The same words for all source words; no source word stays what it is."""
    size = len(load_model(folder).vocab)
    Shortlist(targets.repeat(size, 1), torch.tensor([EOS]), True).save(folder)


def test_a_list_of_all_words_changes_nothing(folder: Path) -> None:
    shortlist(folder, torch.arange(len(load_model(folder).vocab)))
    texts = [source for source, _ in PAIRS]
    plain, limited = Translator.load(folder), Translator.load(folder, options=WITH)
    for one, other in zip(plain.translate(texts), limited.translate(texts), strict=True):
        assert one.tgt == other.tgt and one.score == pytest.approx(other.score, abs=1e-4)


def test_only_words_of_the_list_and_of_pairs_are_said(folder: Path, tmp_path: Path) -> None:
    vocab = load_model(folder).vocab
    allowed = vocab.encode("La Commission")
    shortlist(folder, torch.tensor(allowed))
    source, target = PAIRS[2]
    said = Translator.load(folder, options=WITH).translate([source])[0].tgt
    assert set(vocab.encode(said)) <= {*allowed, *vocab.encode(source)}
    build(tmp_path / "index", segments(), "en", "fr")
    from_pairs = TranslationOptions(shortlist=True, verbatim=0)
    (read,) = Translator.load(folder, [tmp_path / "index"], options=from_pairs).translate([source])
    assert set(vocab.encode(target)) & set(vocab.encode(read.tgt)) - {
        *allowed,
        *vocab.encode(source),
    }


def test_a_model_without_a_shortlist_says_how_to_make_one(folder: Path) -> None:
    with pytest.raises(UsageError, match="no shortlist; tmnmt shortlist makes one"):
        Translator.load(folder, options=WITH)


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        ({"source": torch.zeros(3, 2), "always": torch.zeros(1)}, "another size"),
        (
            {"source": torch.zeros(420, 2), "always": torch.full((1,), 420.0)},
            "words that the model",
        ),
        ({"source": torch.zeros(420, 2)}, "always"),
    ],
)
def test_a_shortlist_of_another_model_is_refused(
    folder: Path, tensors: dict[str, Tensor], reason: str
) -> None:
    assert len(load_model(folder).vocab) == 420
    (folder / SHORTLIST_FILE).write_bytes(save(tensors))
    with pytest.raises(UsageError, match="no shortlist"):
        Translator.load(folder, options=WITH)  # config.toml does not name it
    stamp(folder)
    with pytest.raises(ModelError, match=f"{SHORTLIST_FILE}: no shortlist of this model.*{reason}"):
        Translator.load(folder, options=WITH)
