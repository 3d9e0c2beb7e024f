"""What a network reads is told apart from what it feeds as a constant, both ways."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_memory_training import base, documents, sentences
from torch import nn

from tmnmt.config.options import Form
from tmnmt.errors import ModelError
from tmnmt.models.folder import load_model, save_model
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.papers.network_adaptation import stored_network
from tmnmt.papers.network_config import ContextConfig, ReferenceConfig
from tmnmt.papers.reading import interval, reading_of
from tmnmt.papers.reference_network import Monolingual, ReferenceNetwork, Referring, network_of
from tmnmt.papers.reference_training import ReferencePart, train_reference
from tmnmt.vocab import EOS, Vocabulary

CONFIG = ReferenceConfig(
    anchors=5, anchor_size=6, hidden=8, decoder=False, batch_tokens=200, anchor_epochs=2
)
DEV = documents()[5]
SIZES = {"embedding": 8, "hidden": 16, "attention": 8}  # of the base


@pytest.fixture(scope="module")
def vocab() -> Vocabulary:
    return Vocabulary.train((text for s in sentences() for text in (s.src, s.tgt)), 320)


@pytest.fixture(scope="module")
def plain(vocab: Vocabulary) -> RNNsearch:
    return base(vocab).eval().requires_grad_(False)


def network_with(
    plain: RNNsearch, form: Form = "monolingual", scale: float = 0.5
) -> ReferenceNetwork:
    torch.manual_seed(4)
    network = network_of(replace(CONFIG, form=form).kind(), plain)
    for value in network.parameters():
        nn.init.normal_(value, std=scale)
    return network.requires_grad_(False)


def part_of(network: ReferenceNetwork, plain: RNNsearch, vocab: Vocabulary) -> ReferencePart:
    return ReferencePart(network, plain, vocab, [], DEV, replace(CONFIG, form=network.kind.form))


def loss_of(backbone: Referring | RNNsearch, vocab: Vocabulary) -> float:
    """A sentence at a time, in nats a subword."""
    total, words = 0.0, 0
    for segment in DEV:
        src, tgt = (torch.tensor([[*vocab.encode(t), EOS]]) for t in (segment.src, segment.tgt))
        encoded = backbone.encode(src, torch.tensor([src.shape[1]]))
        contexts, hiddens = backbone.forced(encoded, tgt)
        prev = torch.cat([torch.tensor([[1]]), tgt[:, :-1]], 1)
        logits = backbone.readout(prev[0], hiddens[0], contexts[0])
        log_p = logits.log_softmax(-1).gather(1, tgt[0, :, None])
        total, words = total - float(log_p.sum()), words + tgt.shape[1]
    return total / words


def test_a_network_that_feeds_a_constant_does_not_read(plain: RNNsearch, vocab: Vocabulary) -> None:
    """However much the constant changes: all its anchors are the same."""
    network = network_with(plain)
    assert isinstance(network, Monolingual)
    network.anchors.copy_(network.anchors[:1].expand_as(network.anchors))
    reading = reading_of(part_of(network, plain, vocab))
    assert abs(reading.off - reading.loss) > 0.01
    assert reading.mean == pytest.approx(reading.loss, abs=1e-5)
    assert reading.shuffled == pytest.approx(reading.loss, abs=1e-5)
    assert reading.varying == pytest.approx(0.0, abs=1e-5) and not reading.reads


def test_the_losses_are_those_of_the_base_with_and_without_the_network(
    plain: RNNsearch, vocab: Vocabulary
) -> None:
    network = network_with(plain)
    reading = reading_of(part_of(network, plain, vocab))
    assert reading.off == pytest.approx(loss_of(plain, vocab), abs=1e-4)
    assert reading.loss == pytest.approx(loss_of(Referring(plain, network), vocab), abs=1e-4)
    assert 0 < reading.varying < 1 and reading.entropy is not None
    assert 0 < reading.entropy < torch.tensor(5.0).log()


def test_a_network_that_feeds_what_does_not_fit_is_worse_than_its_mean(
    plain: RNNsearch, vocab: Vocabulary
) -> None:
    reading = reading_of(part_of(network_with(plain, "bilingual", scale=1.0), plain, vocab))
    assert reading.over_mean.value < 0 and not reading.reads


def test_an_interval_is_as_wide_as_sentences_differ() -> None:
    """Against the textbook's: of sentences with as many words, that of a mean."""
    differences, counts = torch.tensor([2.0, 4.0, 6.0, 4.0]), torch.full((4,), 2.0)
    each = differences / counts
    error = 1.96 * float(each.std()) / 2
    assert interval(differences, counts) == pytest.approx((2.0, 2.0 - error, 2.0 + error))
    assert interval(-differences, counts).high < 0 < interval(differences, counts).low


def test_the_control_of_a_bilingual_network_has_its_size_and_no_anchors(plain: RNNsearch) -> None:
    kind = ReferenceConfig(form="bilingual").kind()
    sizes = [
        sum(value.numel() for value in network_of(replace(kind, form=form), plain).parameters())
        for form in ("bilingual", "regression")
    ]
    assert sizes[1] <= sizes[0] < 1.01 * sizes[1]
    reading = network_of(replace(kind, form="regression"), plain)
    assert not any("anchor" in name for name, _ in reading.named_parameters())


@pytest.mark.parametrize("form", ["bilingual", "regression"])
def test_a_network_that_learns_reads_and_learns_on_from_where_it_is(
    form: Form, tmp_path: Path, vocab: Vocabulary
) -> None:
    """With the base fixed, from the sentences that it is measured on: what it expects next fits."""
    config = replace(CONFIG, form=form, epochs=8, learning_rate=3e-2, validate_every=1000)
    backbone = base(vocab).half().float()  # as it is stored
    learned = train_reference(backbone, vocab, [DEV], [DEV], tmp_path / "first", config)
    network = learned.backbone.network
    assert isinstance(network, ReferenceNetwork)
    reading = reading_of(part_of(network, backbone, vocab))
    assert reading.loss == pytest.approx(learned.loss_after, abs=1e-4)
    assert reading.loss < min(reading.mean, reading.shuffled, reading.off) and reading.reads
    assert (reading.entropy is None) == (form == "regression")
    made = {"src_lang": "en", "tgt_lang": "fr", "max_subwords": 40, "model": SIZES}
    save_model(tmp_path / "model", learned.backbone, vocab, made, half=True)
    file, model = tmp_path / "model" / "reference.safetensors", load_model(tmp_path / "model")
    start = stored_network(file, model.plain(), config)
    more = replace(config, epochs=1, learning_rate=1e-3)
    second = train_reference(backbone, vocab, [DEV], [DEV], tmp_path / "second", more, start=start)
    assert second.loss_before == pytest.approx(learned.loss_after, abs=1e-5)
    assert second.loss_after <= second.loss_before
    for other, message in (
        (replace(config, anchors=4), "what learns is"),
        (ContextConfig(), "no context network"),
    ):
        with pytest.raises(ModelError, match=message):
            stored_network(file, model.plain(), other)
    with pytest.raises(ModelError, match="it has learned with the base"):
        stored_network(file, replace(model.plain(), base_hash="0" * 16), config)


def test_a_network_that_learns_on_keeps_its_anchors(
    tmp_path: Path, plain: RNNsearch, vocab: Vocabulary
) -> None:
    network = network_of(CONFIG.kind(), plain)
    assert isinstance(network, Monolingual)
    anchors = nn.init.normal_(network.anchors).clone()
    config = replace(CONFIG, epochs=1)
    learned = train_reference(base(vocab), vocab, [DEV], [DEV], tmp_path, config, start=network)
    assert torch.equal(learned.backbone.network.anchors, anchors)  # type: ignore[arg-type]
    assert not (tmp_path / "memory-anchors-last.safetensors").exists()
