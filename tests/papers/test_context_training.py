"""Context networks learn what only the sentences before say, and a broken run goes on."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from tiny_memory_training import PLACES, base, documents, interrupt_at, log_of, sentences
from tiny_model import padded

from tmnmt.errors import DataError
from tmnmt.models.base import SurroundingText
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.papers import context_training
from tmnmt.papers.context_network import (
    ContextForm,
    InDocument,
    context_network_of,
    surveyed,
)
from tmnmt.papers.context_training import examples, surrounded, train_context
from tmnmt.papers.network_config import ContextConfig
from tmnmt.papers.own_words import own_words
from tmnmt.segments import Segment
from tmnmt.training.trainers import NetworkOutcome
from tmnmt.vocab import EOS, PAD, Vocabulary

FORMS: list[ContextForm] = ["attended", "auxiliary", "gated", "around"]
CONFIG = ContextConfig(
    size=16,
    hidden=16,
    decoder=False,
    epochs=12,
    learning_rate=3e-2,
    base_learning_rate=5e-3,
    batch_tokens=200,
    validate_every=8,
    checkpoint_every=3,
)


@pytest.fixture(scope="module")
def vocab() -> Vocabulary:
    return Vocabulary.train((text for s in sentences() for text in (s.src, s.tgt)), 320)


def answers(count: int) -> list[list[Segment]]:
    """Documents of two: a place, and a sentence whose translation names it."""
    made = []
    for number in range(count):
        src, tgt = PLACES[number % len(PLACES)]
        pairs = (src, tgt), ("It may refuse .", f"Le {tgt} refuse .")
        made.append([Segment(*pair, f"d{number}", at) for at, pair in enumerate(pairs)])
    return made


@cache
def knowing(vocab: Vocabulary) -> RNNsearch:
    """A base that has learned all of these sentences, without what stands before them."""
    torch.manual_seed(5)
    made = RNNsearch(len(vocab), embedding=16, hidden=32, attention=16, dropout=0.0)
    pairs = [one for document in answers(len(PLACES)) for one in document]
    src, tgt = (
        padded([[*vocab.encode(getattr(one, side)), EOS] for one in pairs])
        for side in ("src", "tgt")
    )
    optimiser = torch.optim.Adam(made.parameters(), lr=0.03)
    for _ in range(60):
        optimiser.zero_grad()
        (made.loss(src, (src != PAD).sum(1), tgt) / (tgt != PAD).sum()).backward()
        optimiser.step()
    return made


def learn(
    folder: Path, vocab: Vocabulary, config: ContextConfig, resume: bool = False
) -> NetworkOutcome:
    backbone = deepcopy(knowing(vocab))
    return train_context(backbone, vocab, answers(40), answers(12), folder, config, resume)


@pytest.mark.parametrize("form", FORMS)
def test_what_only_the_sentence_before_says_is_learned(
    form: ContextForm, tmp_path: Path, vocab: Vocabulary
) -> None:
    before = knowing(vocab).state_dict()
    learned = learn(tmp_path, vocab, replace(CONFIG, form=form))
    assert isinstance(learned.backbone, InDocument)
    after = learned.backbone.base.state_dict()
    assert all(torch.equal(value, before[name]) for name, value in after.items())
    own, other = (
        log_of(tmp_path, "context", f"dev_{name}") for name in ("criterion", "of another document")
    )
    assert own[0] == other[0] == pytest.approx(learned.loss_before, abs=1e-5)
    assert min(own) == pytest.approx(learned.loss_after, abs=1e-5)
    assert learned.loss_after < 0.9 * learned.loss_before and own[-1] < 0.8 * other[-1]
    reads, varying = (log_of(tmp_path, "context", f"dev_{name}") for name in ("reads", "varying"))
    assert (reads[0], reads[-1]) == (0.0, 1.0) and varying[0] == 0.0 < varying[-1]


def test_the_decoder_learns_with_it_and_the_encoder_stays(
    tmp_path: Path, vocab: Vocabulary
) -> None:
    before = knowing(vocab).state_dict()
    after = learn(tmp_path, vocab, replace(CONFIG, decoder=True, epochs=2)).backbone.base
    moved = {name for name, v in after.state_dict().items() if not torch.equal(v, before[name])}
    assert moved == {name for name in before if not name.startswith(("embedding", "encoder_"))}


@pytest.mark.parametrize("form", ["attended", "gated", "around"])
def test_the_seed_says_all_and_a_broken_run_goes_on_as_if_it_had_not_been(
    form: ContextForm, tmp_path: Path, vocab: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(CONFIG, form=form, decoder=True, epochs=2)
    whole = learn(tmp_path / "whole", vocab, config).backbone.state_dict()
    with monkeypatch.context() as broken:
        interrupt_at(broken, 5)
        with pytest.raises(KeyboardInterrupt):
            learn(tmp_path / "broken", vocab, config)
    resumed = learn(tmp_path / "broken", vocab, config, resume=True).backbone.state_dict()
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())
    other = learn(tmp_path / "other", vocab, replace(config, seed=2)).backbone.state_dict()
    assert any(not torch.equal(value, other[name]) for name, value in whole.items())


def test_examples_have_what_stands_before_them_in_their_document_alone(vocab: Vocabulary) -> None:
    made = documents()[:2]
    made[0][1] = replace(made[0][1], src=f"{made[0][1].src} " * 40)  # too long to be learned from
    unnamed = [[replace(one, document="") for one in documents()[2]]]
    found = examples([*made, *unnamed], vocab, 2, 40, 1000)
    at = {one.src: one.place for one in found}
    assert len(found) == 29 and made[0][1].src not in at
    assert at[made[0][0].src] == at[made[1][0].src] == []
    long = vocab.encode(made[0][1].src)[:40]
    assert at[made[0][2].src] == [vocab.encode(made[0][0].src), long]
    assert at[made[1][5].src] == [vocab.encode(made[1][n].src) for n in (3, 4)]
    assert all(at[one.src] == [] for one in unnamed[0])


def test_around_a_segment_is_what_the_base_says_of_its_stretch(
    tmp_path: Path, vocab: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_training, "STRETCH", 3)
    backbone, made = knowing(vocab), documents()[:1]
    found = surrounded(backbone, made, vocab, CONFIG, 1000, tmp_path / "said.jsonl.gz")
    whole = len(made[0]) - (len(made[0]) % 3 == 1)  # one by itself has nothing around it
    assert [one.src for one in sorted(found, key=lambda one: number_of(one.src, made[0]))] == [
        one.src for one in made[0][:whole]
    ]
    for one in found:
        assert isinstance(one.place, SurroundingText)
        at = number_of(one.src, made[0])
        assert one.place.sentence == at % 3
        stretch = made[0][at - at % 3 :][:3]
        [said] = own_words(backbone, vocab, [stretch], tmp_path / f"{at}", torch.device("cpu"))
        pairs = [(vocab.encode(each.src), vocab.encode(each.tgt)) for each in said]
        expected = surveyed(backbone, pairs, torch.device("cpu"))
        torch.testing.assert_close(one.place.document.sources, expected.sources)
        torch.testing.assert_close(one.place.document.targets, expected.targets)


def test_the_control_of_what_is_around_swaps_that_alone(tmp_path: Path, vocab: Vocabulary) -> None:
    """In documents that differ in the last sentence alone, it reads the same in each of them; also
    where the network does read what asks, and what is around."""
    shared = [Segment(src, f"le {tgt}") for src, tgt in PLACES[:2]]
    last = ("It may refuse .", "The permit is void .", "It stands .", "The minister may be asked .")
    made = [
        [
            replace(one, document=f"d{number}", position=at)
            for at, one in enumerate([*shared, Segment(src, "Il refuse .")])
        ]
        for number, src in enumerate(last)
    ]
    backbone, config = knowing(vocab), replace(CONFIG, form="around")
    network = context_network_of(config.kind(), backbone)
    torch.manual_seed(3)
    torch.nn.init.normal_(network.get_parameter("into.weight"))
    found = surrounded(backbone, made, vocab, config, 1000, tmp_path / "said.jsonl.gz")
    asking = [one for one in found if one.src in last]
    part = context_training.ContextPart(network, backbone, vocab, asking, asking, config)
    losses = part.validate()
    assert losses["of another document"] == pytest.approx(losses["criterion"], abs=1e-5)
    with torch.no_grad():
        plain = -part.log_probs(asking, [None] * len(asking)).mean()
    assert losses["criterion"] != pytest.approx(float(plain), abs=1e-2)


def number_of(src: str, document: list[Segment]) -> int:
    """Where a source stands in its document."""
    return [one.src for one in document].index(src)


@pytest.mark.parametrize("form", ["attended", "around"])
def test_documents_that_are_not_named_teach_nothing(
    form: ContextForm, tmp_path: Path, vocab: Vocabulary
) -> None:
    made = [[replace(one, document="") for one in document] for document in documents()]
    with pytest.raises(DataError, match="memory files must say which document"):
        train_context(base(vocab), vocab, made[:4], made[4:], tmp_path, replace(CONFIG, form=form))
