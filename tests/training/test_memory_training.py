"""Training of the memories: the batched forward is the decoder's own step, losses fall, and nothing
leaks."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_memory_training import (
    CONFIG,
    PAPER,
    by_steps,
    documents,
    interrupt_at,
    learned,
    log_of,
    sentences,
)
from torch import Tensor

from tmnmt.config.options import Selection
from tmnmt.engine.beam_search import SearchSettings, beam_search
from tmnmt.engine.retrieve import Retriever
from tmnmt.errors import DataError, UsageError
from tmnmt.index import fuzzy_score
from tmnmt.index.base import Index
from tmnmt.keys.pair_keys import PairKeyStore
from tmnmt.layers.collated import collate
from tmnmt.layers.combine import LayerInputs, MemoryLayers
from tmnmt.layers.contract import Collated
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.papers.own_words import own_words
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens
from tmnmt.trained_layers.cache import CacheContents, CacheKind, SessionCache, collate_caches
from tmnmt.trained_layers.tm import TMKind, TranslationMemory
from tmnmt.training.cache import (
    OTHER_DOCUMENT,
    CachePart,
    SideBySide,
    WrittenStretches,
    elsewhere,
    stretches,
)
from tmnmt.training.memory import train_layers
from tmnmt.training.memory_config import MemoryConfig
from tmnmt.training.parts import PartTrainer
from tmnmt.training.retrieve import RetrievedPair, Shares, choose, draw, noisy, retrieve
from tmnmt.training.teacher_forcing import force_references, gold_log_probs
from tmnmt.training.tm import batches, tm_log_probs
from tmnmt.vocab import EOS, PAD, Vocabulary


@pytest.fixture(scope="module")
def vocab() -> Vocabulary:
    return Vocabulary.train([text for s in sentences() for text in (s.src, s.tgt)], 340)


@pytest.fixture(scope="module")
def backbone(vocab: Vocabulary) -> RNNsearch:
    """An untrained base: what it says does not matter, that the memories learn on it does."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = RNNsearch(len(vocab), embedding=8, hidden=16, attention=8, dropout=0.0)
    return model.eval().requires_grad_(False)


class BruteForce(Index):
    """The index's answer by scoring every segment."""

    src_lang, tgt_lang = "en", "fr"

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments, self.searches = segments, 0

    def search(
        self,
        queries: Sequence[str],
        k: int = 4,
        threshold: float = 0.5,
        *,
        exclude_sources: bool = False,
        exclude_documents: Sequence[str] | None = None,
    ) -> list[list[Match]]:
        self.searches += 1
        documents = exclude_documents or [""] * len(queries)
        both = zip(queries, documents, strict=True)
        return [
            self._best(query, threshold, exclude_sources, document)[:k] for query, document in both
        ]

    def _best(self, query: str, threshold: float, exclude: bool, document: str) -> list[Match]:
        tokens = match_tokens(query)
        others = [s for s in self.segments if not document or s.document != document]
        others = [s for s in others if not (exclude and match_tokens(s.src) == tokens)]
        scored = [Match(s, fuzzy_score(tokens, match_tokens(s.src)), 0) for s in others]
        return sorted((m for m in scored if m.score >= threshold), key=lambda m: -m.score)


KINDS = [
    TMKind(),
    TMKind(words=False, preferences=False, fusion_gate="scalar"),
    TMKind(coverage="off", matching="identity"),
    TMKind(coverage="plain", matching="full"),
    TMKind(coverage="gru"),
    PAPER,
]


@pytest.mark.parametrize(
    "kind",
    KINDS,
    ids=lambda kind: f"{kind.matching}-{kind.coverage}-{kind.fusion_gate}-{kind.gate_signs}",
)
@pytest.mark.parametrize("mode", ["copy", "fusion"])
def test_the_batched_forward_equals_repeated_steps(
    backbone: RNNsearch, vocab: Vocabulary, mode: str, kind: TMKind
) -> None:
    segments = sentences()[:4]
    tm = learned(TranslationMemory(16, 16, 8, kind))
    random = Random(1)
    pairs = [
        [(s.src, s.tgt) for s in some]
        for some in (sentences()[10:13], sentences()[20:21], [], sentences()[5:9])
    ]
    with torch.no_grad():
        scores = [[random.random() for _ in some] for some in pairs]
        state = collate(PairKeyStore(backbone, vocab, 50).keys_of(pairs), scores)
        assert state is not None
        batch = force_references(backbone, vocab, segments, "cpu")
        log_p = tm_log_probs(tm, backbone, batch, state)[mode]
        expected = by_steps(MemoryLayers(tm), backbone, batch, Collated(pairs=state), mode)
    positions = [tuple(p) for p in batch.real.nonzero().tolist()]
    torch.testing.assert_close(
        log_p, torch.stack([expected[b, t] for b, t in positions]), atol=1e-5, rtol=0
    )
    plain = tm_log_probs(tm, backbone, batch, state)["plain"]
    without = torch.tensor([b == 2 for b, _ in positions])
    assert torch.equal(log_p[without], plain[without]) and not torch.equal(
        log_p[~without], plain[~without]
    )
    unscored = tm_log_probs(
        tm, backbone, batch, replace(state, marks=torch.zeros_like(state.marks))
    )[mode]
    assert torch.equal(unscored, log_p) == (kind == PAPER)


CACHES = [
    CacheKind(),
    CacheKind(words=False, matching="learned", combining="add"),
    CacheKind("shallow"),
    CacheKind("shallow", matching="joint", signs=True, follows=True, empty=True),
    CacheKind(gate="scalar"),
]


NOTHING = WrittenStretches([], [])


@pytest.mark.parametrize(
    "kind", CACHES, ids=lambda kind: f"{kind.fusion}-{kind.matching}-{kind.gate}"
)
def test_the_cache_forward_equals_repeated_steps(
    backbone: RNNsearch, vocab: Vocabulary, kind: CacheKind
) -> None:
    torch.manual_seed(2)
    cache = SessionCache(16, 16, 8, replace(kind, size=7))
    if cache.signs is not None:
        torch.nn.init.normal_(cache.signs.weight)
    part = CachePart(SideBySide(cache, backbone, vocab, 2), NOTHING, NOTHING, 1)
    contents = [CacheContents(7, 16, 16) for _ in range(2)]
    with torch.no_grad():
        before = force_references(backbone, vocab, sentences()[:2], "cpu")
        part.documents.write(before, contents)
        batch = force_references(backbone, vocab, sentences()[20:22], "cpu")
        log_p = part.log_probs(batch, contents)
        state = Collated(histories={"cache": collate_caches(contents)})
        expected = by_steps(MemoryLayers(None, part.documents.cache), backbone, batch, state, "off")
    assert log_p is not None
    positions = [tuple(p) for p in batch.real.nonzero().tolist()]
    torch.testing.assert_close(
        log_p, torch.stack([expected[b, t] for b, t in positions]), atol=3e-5, rtol=0
    )


def test_a_cache_that_learns_from_its_own_words_is_filled_with_what_the_base_says(
    tmp_path: Path, backbone: RNNsearch, vocab: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, path = sentences()[:3], tmp_path / "own.gz"
    [said] = own_words(backbone, vocab, [document], path, torch.device("cpu"))
    with torch.inference_mode():
        for segment, own in zip(document, said, strict=True):
            ids = torch.tensor([[*vocab.encode(segment.src), EOS]])
            encoded = backbone.encode(ids, torch.tensor([ids.shape[1]]))
            settings = SearchSettings(beam=1)
            [best] = beam_search(
                backbone, None, encoded, LayerInputs(), [2 * ids.shape[1] + 10], settings
            )
            assert own == replace(segment, tgt=vocab.decode(best.ids))
    assert said != document
    monkeypatch.setattr("tmnmt.papers.own_words._greedy", None)  # the second time it is read
    assert own_words(backbone, vocab, [document], path, torch.device("cpu")) == [said]
    torch.manual_seed(3)
    cache = SessionCache(16, 16, 8, CacheKind("shallow", size=7))
    documents = SideBySide(cache, backbone, vocab, 1)
    part = CachePart(
        documents, WrittenStretches([document], [said]), WrittenStretches([document], [said]), 1
    )
    contents, losses = documents.empty(), []
    for segment, own in zip(document, said, strict=True):
        log_p = part.log_probs(force_references(backbone, vocab, [segment], "cpu"), [contents])
        losses += [float(-log_p.sum().detach())] if log_p is not None else []
        documents.write(force_references(backbone, vocab, [own], "cpu"), [contents])
    assert [float(loss.detach()) for loss, _ in part.losses([0])] == losses
    tokens = sum(len([*vocab.encode(segment.tgt), EOS]) for segment in document[1:])
    assert part.validate()["cache"] == pytest.approx(sum(losses) / tokens, abs=1e-5)


def test_leave_one_out_never_gives_the_pair_itself_nor_a_duplicate(tmp_path: Path) -> None:
    segments = [
        *sentences(),
        Segment(sentences()[0].src, "Une autre traduction .", "d9", 1),
        sentences()[1],
    ]
    found = retrieve(lambda: BruteForce(segments), segments, 4, 0.3, tmp_path / "found.gz")
    assert all(pairs for pairs in found)
    for segment, pairs in zip(segments, found, strict=True):
        assert all(match_tokens(pair.src) != match_tokens(segment.src) for pair in pairs)
        assert len({(pair.src, pair.tgt) for pair in pairs}) == len(pairs)


SELECTIONS = [
    Selection("topk"),
    Selection("greedy"),
    Selection("walk"),
    Selection("contrastive", alpha=0.9),
    Selection("greedy", "bleu"),
    Selection("topk", "bleu"),
]


@pytest.mark.parametrize("selection", SELECTIONS, ids=lambda s: f"{s.select}-{s.similarity}")
def test_pairs_are_chosen_as_decoding_chooses_them(tmp_path: Path, selection: Selection) -> None:
    segments = [*sentences()[::3], Segment("A bank shall keep the appeal and a fee .", "u", "d9")]
    found = retrieve(
        lambda: BruteForce(segments),
        segments,
        3,
        0.2,
        tmp_path / "found.gz",
        selection=selection,
        strong=0.6,
    )
    weaker = 0
    for segment, pairs in zip(segments, found, strict=True):
        others = [s for s in segments if match_tokens(s.src) != match_tokens(segment.src)]
        strong, weak = (
            Retriever([BruteForce(others)], 3, threshold, selection=selection).search(
                [segment.src]
            )[0]
            for threshold in (0.6, 0.2)
        )
        assert [(m.segment.src, m.segment.tgt) for m in strong or weak] == [
            (p.src, p.tgt) for p in pairs
        ]
        for pair in pairs:  # whatever ranks them, the gates read the fuzzy score
            assert pair.score == pytest.approx(
                fuzzy_score(match_tokens(segment.src), match_tokens(pair.src)), abs=1e-5
            )
        weaker += not strong
    assert 0 < weaker < len(segments)


def test_another_selection_is_retrieved_anew(tmp_path: Path) -> None:
    index, path = BruteForce(sentences()), tmp_path / "found.gz"
    made = [retrieve(lambda: index, sentences(), 4, 0.3, path, selection=s) for s in SELECTIONS]
    assert index.searches == len(SELECTIONS) and made[0] != made[1]
    retrieve(lambda: index, sentences(), 4, 0.3, path, selection=SELECTIONS[-1], strong=0.5)
    assert index.searches == len(SELECTIONS) + 1


def test_noise_replaces_some_words_of_the_target_by_words_of_other_pairs() -> None:
    pair = RetrievedPair("a b", "  une deux, trois quatre cinq six sept huit neuf dix\t", 0.7)
    pool = [Segment("x", "x1 x2"), Segment("y", " ")]
    made = [noisy(pair, pool, Random(seed)) for seed in range(50)]
    assert made == [noisy(pair, pool, Random(seed)) for seed in range(50)]
    replaced = set()
    for one in made:
        words, before = one.tgt.split(), pair.tgt.split()
        changed = [i for i, word in enumerate(before) if word not in words]
        assert len(changed) == 2 and one.src == pair.src and one.score == pair.score
        assert (
            set(words) - set(before) <= {"x1", "x2"} and one.tgt[:2] == "  " and one.tgt[-1] == "\t"
        )
        replaced.update(changed)
    assert replaced == set(range(10))
    assert noisy(RetrievedPair("a", "un", 0.5), [Segment("x", "z")], Random(1)).tgt == "z"
    assert noisy(RetrievedPair("a", "", 0.5), pool, Random(1)).tgt == ""
    assert sorted(noisy(RetrievedPair("a", "我们", 0.5), [Segment("x", "z")], Random(1)).tgt) in (
        ["z", "们"],
        ["z", "我"],
    )


def test_the_whole_document_is_left_out_where_that_is_asked_for(tmp_path: Path) -> None:
    documents_of = {(s.src, s.tgt): s.document for s in sentences()}
    kept, left_out = (
        retrieve(
            lambda: BruteForce(sentences()),
            sentences(),
            4,
            0.3,
            tmp_path / "found.gz",
            whole_documents=whole,
        )
        for whole in (False, True)
    )

    def own(found: list[list[RetrievedPair]]) -> int:
        both = zip(sentences(), found, strict=True)
        return sum(
            documents_of[pair.src, pair.tgt] == s.document for s, pairs in both for pair in pairs
        )

    assert own(kept) > 0 == own(left_out) and all(left_out)


def test_retrieval_is_done_once_for_the_same_questions(tmp_path: Path) -> None:
    index, path = BruteForce(sentences()), tmp_path / "found.gz"
    first = retrieve(lambda: index, sentences(), 4, 0.3, path)
    searched = index.searches
    assert retrieve(lambda: index, sentences(), 4, 0.3, path) == first
    assert index.searches == searched
    assert retrieve(lambda: index, sentences()[:7], 4, 0.3, path) == first[:7]
    assert index.searches > searched
    for damage in (path.read_bytes()[:-20], b"", b"no gzip"):
        path.write_bytes(damage)
        assert retrieve(lambda: index, sentences()[:7], 4, 0.3, path) == first[:7]


def test_the_shares_of_weak_and_irrelevant_pairs_are_kept() -> None:
    strong, weak = (
        [RetrievedPair("a b", "x", 0.8), RetrievedPair("a c", "y", 0.4)],
        [RetrievedPair("c", "z", 0.35)],
    )
    found = [strong] * 800 + [weak] * 800 + [[]] * 50
    chosen = choose(found, 0.5, 1000, 0.2, seed=1)
    assert sum(i < 800 for i in chosen) == 800 == len(chosen) - 200 and any(
        i >= 1600 for i in chosen
    )
    segments = [Segment("a foreign one", "u")] * len(found)
    pool = [Segment("foreign", "f")]

    def drawn(seed: str) -> list[list[RetrievedPair]]:
        return draw(segments, found, chosen, pool, 4, Shares(0.5, 0.25, 0.1), seed).pairs

    pairs = drawn("1")
    kinds = [tuple(shown) for shown in pairs]
    irrelevant = (RetrievedPair("foreign", "f", 1 - 2 / 3),) * 4  # two of three words are missing
    assert all(kind == irrelevant for i, kind in zip(chosen, kinds, strict=True) if not found[i])
    assert (
        200
        < sum(kind == irrelevant for i, kind in zip(chosen, kinds, strict=True) if found[i])
        < 300
    )
    strongest = RetrievedPair("a b", "x", 0.8)
    weaker = RetrievedPair("c", "z", 0.35)
    itself = RetrievedPair("a foreign one", "u", 1.0)
    exact = [kind for kind in kinds if kind[0] == itself]
    assert 60 < len(exact) < 140
    assert set(kinds) == {
        irrelevant,
        (strongest,),
        (weaker,),
        (itself, strongest),
        (itself, weaker),
    }
    assert drawn("1") == pairs != drawn("2")


def test_noise_and_no_pair_take_their_shares_of_what_was_retrieved() -> None:
    segments, pair = [Segment("a b", "u v")] * 1000, RetrievedPair("a c", "y z", 0.6)
    shares = Shares(0.5, irrelevant=0.1, exact=0.1, noise=0.3, no_pair=0.2)
    shown = draw(segments, [[pair]] * 1000, range(1000), [Segment("p", "q")], 4, shares, "1").pairs
    assert 150 < shown.count([]) < 250 and 250 < shown.count([pair]) < 350
    noise = [pairs for pairs in shown if pairs and pairs[0].tgt in ("q z", "y q")]
    assert 250 < len(noise) < 350 and all(len(pairs) == 1 for pairs in noise)


def test_batches_hold_every_sentence_once_within_the_limit() -> None:
    sizes = {i: (1 + i % 9, 1 + i % 13) for i in range(200)}
    made = batches(sizes, 40, "1")
    assert sorted(i for batch in made for i in batch) == list(range(200))
    assert max(len(batch) * max(max(sizes[i]) for i in batch) for batch in made) <= 40


@pytest.mark.parametrize(
    "kind",
    [CacheKind(), CacheKind("shallow", matching="joint", signs=True, follows=True, empty=True)],
)
def test_documents_side_by_side_lose_what_they_lose_one_at_a_time(
    backbone: RNNsearch, vocab: Vocabulary, kind: CacheKind
) -> None:
    made = sentences()
    documents = [made[:6], made[6:8], made[20:24], made[24:31], made[40:43]]  # of several lengths
    torch.manual_seed(9)
    cache = SessionCache(16, 16, 8, replace(kind, size=7))
    torch.nn.init.normal_(cache.U.bias)
    if cache.signs is not None:
        torch.nn.init.normal_(cache.signs.weight)
    part = CachePart(
        SideBySide(cache, backbone, vocab, len(documents)),
        WrittenStretches(documents, documents),
        NOTHING,
        1,
    )
    together = [
        (float(loss.detach()), tokens) for loss, tokens in part.losses([*range(len(documents))])
    ]
    alone = [
        (float(loss.detach()), n) for i in range(len(documents)) for loss, n in part.losses([i])
    ]
    assert (
        len(together) == 6 < len(alone)
    )  # as many updates as the longest has sentences with a past
    (loss, tokens), (loss_alone, tokens_alone) = (
        map(sum, zip(*some, strict=True)) for some in (together, alone)
    )
    assert tokens == tokens_alone and loss == pytest.approx(loss_alone, rel=1e-6)


def test_stretches_keep_the_order_and_have_a_past() -> None:
    documents = [[Segment(str(i), "", f"d{d}", i) for i in range(d)] for d in range(1, 8)]
    made = stretches(documents, 3, 1000, 1)
    assert all(2 <= len(s) <= 3 and len({x.document for x in s}) == 1 for s in made)
    assert all(
        [x.position for x in s] == list(range(s[0].position, s[0].position + len(s))) for s in made
    )


@given(st.lists(st.sampled_from("abc"), min_size=1), st.integers(0, 9))
def test_what_stands_elsewhere_is_of_the_next_other_document(names: list[str], ahead: int) -> None:
    places = elsewhere(names, ahead)
    if len(set(names)) == 1:
        assert places is None
        return
    assert places is not None
    for own, at in enumerate(places):
        assert names[at] != names[own]
        between = range(own + ahead, own + ahead + (at - own - ahead) % len(names))
        assert all(names[i % len(names)] == names[own] for i in between)


def test_the_control_of_a_cache_is_of_another_document(
    backbone: RNNsearch, vocab: Vocabulary
) -> None:
    made = sentences()
    stretches = [  # of three documents, those of one next to each other where they are as long
        [replace(segment, document=name) for segment in made[at : at + 4]]
        for name, at in (("a", 0), ("a", 4), ("a", 8), ("b", 20), ("c", 24), ("c", 28))
    ]
    torch.manual_seed(9)
    documents = SideBySide(SessionCache(16, 16, 8, CacheKind(size=7)), backbone, vocab, 6)

    def losses(dev: list[list[Segment]]) -> dict[str, float]:
        return CachePart(documents, NOTHING, WrittenStretches(dev, dev), 1).validate()

    assert OTHER_DOCUMENT in losses(stretches) and OTHER_DOCUMENT not in losses(stretches[:3])
    pair = losses([stretches[0], stretches[3]])
    with torch.no_grad():
        contents, total, tokens = [documents.empty() for _ in range(2)], 0.0, 0
        for batch, _ in documents.steps([stretches[0], stretches[3]]):
            crossed = documents.remembered(batch, contents[::-1])
            if crossed is not None:
                log_p = gold_log_probs(backbone, batch, crossed.hiddens, batch.real)
                total, tokens = total - float(log_p.sum()), tokens + len(log_p)
            documents.write(batch, contents)
    assert pair[OTHER_DOCUMENT] == pytest.approx(total / tokens, abs=1e-5) != pair["cache"]


def test_losses_fall_below_the_plain_model_and_a_resumed_run_equals_an_unbroken_one(
    tmp_path: Path, backbone: RNNsearch, vocab: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = documents()[:5], documents()[5:]
    whole, reached = train_layers(backbone, vocab, *data, tmp_path / "whole", CONFIG)
    assert set(reached) == {"copy", "copy irrelevant", "fusion", "fusion irrelevant", "cache"}
    for name, (plain, with_it, before) in reached.items():
        assert before is None
        logged = log_of(tmp_path / "whole", "cache" if name == "cache" else "tm", f"dev_{name}")
        assert (with_it < plain or "irrelevant" in name) and any(
            abs(with_it - value) < 1e-4 for value in logged
        )
    plain = log_of(tmp_path / "whole", "tm", "dev_plain")[0]
    assert min(log_of(tmp_path / "whole", "tm", "dev_copy")) < plain - 0.2
    # the states of an untrained base say little of the next word, so fusion and cache can gain
    # little
    assert min(log_of(tmp_path / "whole", "tm", "dev_fusion")) < plain
    assert (
        min(log_of(tmp_path / "whole", "cache", "dev_cache"))
        < log_of(tmp_path / "whole", "cache", "dev_plain")[0]
    )
    interrupt_at(monkeypatch, 8)
    with pytest.raises(KeyboardInterrupt):
        train_layers(backbone, vocab, *data, tmp_path / "broken", CONFIG)
    monkeypatch.undo()
    resumed, reached_again = train_layers(
        backbone, vocab, *data, tmp_path / "broken", CONFIG, resume=True
    )
    assert reached_again == reached
    for name, parameter in whole.state_dict().items():
        assert torch.equal(parameter, resumed.state_dict()[name]), name
    resumed.save(tmp_path / "memory.safetensors")
    loaded = MemoryLayers.load(tmp_path / "memory.safetensors", backbone)
    assert loaded.modes == ("copy", "fusion", "both", "nearest", "knn", "off")
    assert loaded.cache is not None
    with pytest.raises(UsageError, match="--resume"):
        train_layers(backbone, vocab, *data, tmp_path / "whole", CONFIG)


def test_the_papers_form_is_trained_as_it_stands(
    tmp_path: Path, backbone: RNNsearch, vocab: Vocabulary
) -> None:
    config = replace(CONFIG, cache=False, tm_epochs=2, **asdict(PAPER))
    made, reached = train_layers(
        backbone, vocab, documents()[:5], documents()[5:], tmp_path / "run", config
    )
    assert reached["copy"][1] < reached["copy"][0] - 0.1
    made.save(tmp_path / "memory.safetensors")
    loaded = MemoryLayers.load(tmp_path / "memory.safetensors", backbone)
    assert loaded.tm is not None and loaded.tm.kind == PAPER and not loaded.tm.trusts


def _interrupt_before(monkeypatch: pytest.MonkeyPatch, updates: set[int]) -> None:
    original = PartTrainer._update

    def interrupt(self: PartTrainer, loss: Tensor, tokens: int, run: float) -> None:
        if self.standing.update in updates:
            updates.remove(self.standing.update)
            raise KeyboardInterrupt
        original(self, loss, tokens, run)

    monkeypatch.setattr(PartTrainer, "_update", interrupt)


@pytest.mark.parametrize("history", ["own", "confirmed"])
def test_a_cache_that_is_interrupted_within_a_document_goes_on_as_if_it_had_not_been(
    tmp_path: Path,
    backbone: RNNsearch,
    vocab: Vocabulary,
    monkeypatch: pytest.MonkeyPatch,
    history: str,
) -> None:
    config = replace(CONFIG, copy=False, fusion=False, cache_history=history)  # type: ignore[arg-type]
    data = documents()[:5], documents()[5:]
    whole, _ = train_layers(backbone, vocab, *data, tmp_path / "whole", config)
    assert whole.cache is not None and whole.cache.kind.matching == "joint"
    _interrupt_before(monkeypatch, {2, 3, 7})
    for resume in (False, True, True):
        with pytest.raises(KeyboardInterrupt):
            train_layers(backbone, vocab, *data, tmp_path / "broken", config, resume)
    resumed, _ = train_layers(backbone, vocab, *data, tmp_path / "broken", config, True)
    for name, value in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value), name
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    assert ({"own-training.jsonl.gz", "own-dev.jsonl.gz"} <= names) == (history == "own")


def test_a_cache_of_another_kind_is_trained_anew(
    tmp_path: Path, backbone: RNNsearch, vocab: Vocabulary, caplog: pytest.LogCaptureFixture
) -> None:
    config = replace(CONFIG, copy=False, fusion=False, cache_size=50)
    data = documents()[:5], documents()[5:]
    train_layers(backbone, vocab, *data, tmp_path / "run", config)
    other = replace(config, cache_size=5)
    again, _ = train_layers(backbone, vocab, *data, tmp_path / "run", other, True)
    assert "or is of another kind; the part is trained anew" in caplog.text
    alone, _ = train_layers(backbone, vocab, *data, tmp_path / "alone", other)
    for name, value in alone.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cache_fusion": "deep"}, 'cache_matching = "joint" keeps no states'),
        ({"tune_gates": 1, "cache_history": "own"}, 'cache_history must be "confirmed"'),
    ],
)
def test_settings_of_the_cache_that_do_not_go_together_are_usage_errors(
    tmp_path: Path, backbone: RNNsearch, vocab: Vocabulary, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        train_layers(backbone, vocab, [], [], tmp_path, MemoryConfig(**changed))


@pytest.mark.parametrize("damage", [lambda lines: lines[:-1], lambda lines: [*lines[:-1], "1"]])
def test_what_was_kept_of_its_own_words_and_is_damaged_is_made_again(
    tmp_path: Path,
    backbone: RNNsearch,
    vocab: Vocabulary,
    damage: Callable[[list[str]], list[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    document, path = sentences()[:3], tmp_path / "own.gz"
    made = own_words(backbone, vocab, [document], path, torch.device("cpu"))
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(damage(lines)))
    assert own_words(backbone, vocab, [document], path, torch.device("cpu")) == made
    assert "damaged" in caplog.text and "made again" in caplog.text


def test_nothing_to_learn_from_is_one_clear_error(
    tmp_path: Path, backbone: RNNsearch, vocab: Vocabulary
) -> None:
    lonely = [
        [Segment("Only this .", "Seulement cela .", "a")],
        [Segment("And that", "Et cela", "b")],
    ]
    with pytest.raises(DataError, match="none of 2 training sentences"):
        train_layers(backbone, vocab, lonely, lonely, tmp_path, replace(CONFIG, cache=False))


def test_a_table_that_trains_nothing_is_a_usage_error(
    tmp_path: Path, backbone: RNNsearch, vocab: Vocabulary
) -> None:
    with pytest.raises(UsageError, match="nothing is to be trained"):
        train_layers(
            backbone, vocab, [], [], tmp_path, MemoryConfig(copy=False, fusion=False, cache=False)
        )


def test_references_end_with_the_end_of_the_sentence(
    backbone: RNNsearch, vocab: Vocabulary
) -> None:
    batch = force_references(backbone, vocab, sentences()[:3], "cpu")
    assert all(row[row != PAD][-1] == EOS for row in batch.tgt)
