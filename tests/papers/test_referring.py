"""TM and session cache on top of a reference network: all that they keep is of states that read
it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt import Translator
from tmnmt.config.options import Form, TranslationOptions
from tmnmt.index import build
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import load_model, save_model
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.papers.reference_network import ReferenceKind, Referring, network_of
from tmnmt.vocab import EOS

NEW, CONFIRMED = "The Commission shall inform the Commission.", "The Member States shall apply."


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    torch.set_num_threads(1)
    build(tmp_path / "index", segments(), "en", "fr")
    return write_tiny_model(tmp_path / "plain")


def with_network(plain: Path, form: Form) -> Path:
    """The same model with a network that does something, and the same memory layers."""
    model, folder = load_model(plain), plain.with_name(form)
    assert isinstance(model.backbone, RNNsearch)
    torch.manual_seed(3)
    network = network_of(ReferenceKind(form, anchors=4, hidden=5, size=3), model.backbone)
    with torch.no_grad():
        for value in network.state_dict().values():
            value.normal_(std=0.1)
    save_model(folder, Referring(model.backbone, network), model.vocab, model.config)
    layers = MemoryLayers.load(plain / "memory.safetensors", model.backbone)
    layers.save(folder / "memory.safetensors")
    return folder


def translator(folder: Path, **decoding: Any) -> Translator:
    return Translator.load(
        folder,
        [folder.with_name("index")],
        TranslationOptions(mode="both", verbatim=0, **decoding, cache=25, threads=1),
    )


def said(made: Translator) -> tuple[str, float]:
    """A translation after something was confirmed, whose parts add up, and that read both."""
    session = made.session()
    session.confirm(CONFIRMED, "Les États membres appliquent.")
    found = session.translate(NEW, explain=True)
    assert found.tokens is not None
    for token in found.tokens:
        parts = token.generated + token.recalled + token.copied
        assert parts == pytest.approx(token.probability, abs=1e-5)
    assert any(token.copied > 0.01 for token in found.tokens)
    assert any(token.cache_effect != 0 for token in found.tokens)
    return found.tgt, found.score


@pytest.mark.parametrize("form", ["monolingual", "bilingual"])
def test_tm_and_cache_work_on_top_and_without_it_are_as_on_the_base(
    form: Form, plain: Path
) -> None:
    base = said(translator(plain))
    folder = with_network(plain, form)
    referred = said(translator(folder))
    assert abs(referred[1] - base[1]) > 1e-4
    assert said(translator(folder, reference=False)) == base


def test_keys_are_of_states_that_read_the_network(plain: Path) -> None:
    folder = with_network(plain, "bilingual")
    with_it, without = translator(folder), translator(folder, reference=False)
    assert with_it.model_hash != without.model_hash == translator(plain).model_hash
    stores = [each.pipeline.keys for each in (with_it, without)]
    (found,), (other,) = (store.keys_of([[PAIRS[1]]])[0] for store in stores)
    backbone, vocab = load_model(folder).backbone, with_it.vocab
    src, tgt = (torch.tensor([[*vocab.encode(text), EOS]]) for text in PAIRS[1])
    with torch.no_grad():
        encoded = backbone.encode(src, torch.tensor([src.shape[1]]))
        contexts, hiddens = backbone.forced(encoded, tgt)
    torch.testing.assert_close(found.contexts, contexts[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(found.hiddens, hiddens[0], atol=1e-5, rtol=0)
    assert (found.hiddens - other.hiddens).abs().max() > 0.01
