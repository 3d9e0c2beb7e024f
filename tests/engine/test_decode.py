"""Beam search: against greedy, against trying everything, batched against one by one, and what it
hands back."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from tmnmt.engine.beam_search import Hypothesis, SearchSettings, beam_search, continuations
from tmnmt.layers.combine import LayerInputs
from tmnmt.models.base import Backbone, Inject
from tmnmt.models.rnnsearch import Annotations, RNNsearch
from tmnmt.models.rnnsearch_fast import FastRNNsearch
from tmnmt.vocab import BOS, EOS, PAD, UNK

VOCABULARY = 75  # not a multiple of the block, so that the last one is padded


def bias_of(model: Backbone) -> Tensor:
    """Of its output words, to be written to."""
    assert isinstance(model, FastRNNsearch)
    return model.model.output_bias


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def backbone(vocabulary: int = VOCABULARY, seed: int = 0, fast: bool = True) -> Backbone:
    """A random model with enough contrast to prefer some words."""
    torch.manual_seed(seed)
    model = RNNsearch(vocabulary, embedding=8, hidden=16, attention=8, dropout=0.0).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5)
    return FastRNNsearch(model) if fast else model


def sources(lengths: list[int], vocabulary: int = VOCABULARY) -> tuple[Tensor, Tensor]:
    torch.manual_seed(len(lengths))
    src = torch.randint(4, vocabulary, (len(lengths), max(lengths)))
    for row, length in zip(src, lengths, strict=True):
        row[length:] = PAD
    return src, torch.tensor(lengths)


def search(
    model: Backbone,
    src: Tensor,
    src_len: Tensor,
    max_len: int = 12,
    settings: SearchSettings | None = None,
) -> list[Hypothesis]:
    with torch.inference_mode():
        encoded = model.encode(src, src_len)
    return beam_search(
        model, None, encoded, LayerInputs(), [max_len] * len(src), settings or SearchSettings()
    )


def log_prob_of(model: Backbone, src: Tensor, ids: tuple[int, ...], ended: bool) -> float:
    tgt = torch.tensor([[*ids, EOS]] if ended else [ids])
    with torch.inference_mode():
        encoded = model.encode(src, torch.tensor([src.shape[1]]))
        contexts, hiddens = model.forced(encoded, tgt)
        prev = torch.cat([torch.tensor([[BOS]]), tgt[:, :-1]], 1)
        log_p = torch.log_softmax(model.readout(prev, hiddens, contexts), -1)
    return float(log_p.gather(2, tgt[..., None]).sum())


def greedy(model: Backbone, src: Tensor, max_len: int) -> tuple[int, ...]:
    with torch.inference_mode():
        encoded = model.encode(src, torch.tensor([src.shape[1]]))
        state, prev, ids = model.start(encoded), torch.tensor([BOS]), []
        for _ in range(max_len):
            state, context, hidden = model.step(prev, state, encoded)
            logits = model.readout(prev, hidden, context)
            logits[:, [PAD, BOS, UNK]] = -torch.inf
            prev = logits.argmax(1)
            if prev.item() == EOS:
                break
            ids.append(int(prev))
    return tuple(ids)


def test_the_fast_step_is_the_plain_step() -> None:
    fast, plain = backbone(fast=True), backbone(fast=False)
    src, src_len = sources([5, 3])
    prev, state = torch.randint(4, VOCABULARY, (6,)), torch.randn(6, 16)
    with torch.inference_mode():
        encoded = plain.encode(src, src_len)
        rows = encoded.rows(torch.tensor([0, 0, 0, 1, 1, 1]))
        for a, b in zip(
            fast.step(prev, state, encoded), plain.step(prev, state, rows), strict=True
        ):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=0)
        _, context, hidden = plain.step(prev, state, rows)
        torch.testing.assert_close(
            fast.readout(prev, hidden, context),
            plain.readout(prev, hidden, context),
            atol=1e-4,
            rtol=0,
        )


def test_a_step_reads_annotations_projected_ahead_as_it_does_others() -> None:
    fast = backbone(fast=True)
    prev, state = torch.randint(4, VOCABULARY, (6,)), torch.randn(6, 16)
    with torch.inference_mode():
        for lengths, ahead in (([5, 3], True), ([9, 8], False)):  # of d = 16 annotations at most
            encoded = fast.encode(*sources(lengths))
            wide = fast.for_beam(encoded)
            assert (wide.values.shape[2] == 16 + 3 * 16) == ahead
            for a, b in zip(
                fast.step(prev, state, wide), fast.step(prev, state, encoded), strict=True
            ):
                torch.testing.assert_close(a, b, atol=1e-5, rtol=0)


def test_targets_forced_together_are_what_each_is_alone() -> None:
    fast, plain = backbone(fast=True), backbone(fast=False)
    src, src_len = sources([5, 3, 6])
    lengths = [2, 7, 4]  # in no order, and two positions that no target has
    tgt = torch.randint(4, VOCABULARY, (3, 9)).masked_fill(
        torch.arange(9) >= torch.tensor(lengths)[:, None], PAD
    )
    with torch.inference_mode():
        found = fast.forced(fast.encode(src, src_len), tgt)
        for row, length in enumerate(lengths):
            alone = plain.encode(src[row : row + 1, : src_len[row]], src_len[row : row + 1])
            for together, wanted in zip(
                found, plain.forced(alone, tgt[row : row + 1, :length]), strict=True
            ):
                torch.testing.assert_close(together[row, :length], wanted[0], atol=1e-5, rtol=0)
                assert not together[row, length:].any()


def test_bf16_products_stay_close() -> None:
    fast = backbone(fast=True)
    low = FastRNNsearch(backbone(fast=False), torch.bfloat16)  # type: ignore[arg-type]
    src, src_len = sources([5, 3])
    prev, state = torch.randint(4, VOCABULARY, (2,)), torch.randn(2, 16)
    with torch.inference_mode():
        encoded = fast.encode(src, src_len)
        exact, near = fast.step(prev, state, encoded)[0], low.step(prev, state, encoded)[0]
    assert 0 < (exact - near).abs().max() < 0.05


@pytest.mark.parametrize("seed", range(5))
def test_beam_one_equals_greedy(seed: int) -> None:
    model = backbone(seed=seed)
    src, src_len = sources([7])
    found = search(model, src, src_len, 15, SearchSettings(beam=1))[0]
    assert found.ids == greedy(model, src, 15)


def test_no_translation_is_without_a_subword() -> None:
    """Where all others repeat themselves up to the longest length, it would be the best."""
    model = backbone()
    with torch.no_grad():
        bias_of(model)[EOS] += 100
    src, src_len = sources([4, 2])
    for beam in (1, 5):
        hypotheses = search(model, src, src_len, settings=SearchSettings(beam=beam))
        assert [len(each.ids) for each in hypotheses] == [1, 1]
        assert all(each.finished for each in hypotheses)


def test_a_beam_as_wide_as_all_prefixes_finds_the_best_of_all() -> None:
    model = backbone(vocabulary=7)
    src, src_len = sources([4], 7)
    words = [w for w in range(7) if w not in (PAD, BOS, UNK, EOS)]
    all_outputs = [ids for length in range(1, 4) for ids in itertools.product(words, repeat=length)]
    scores = {ids: log_prob_of(model, src, ids, ended=True) / (len(ids) + 1) for ids in all_outputs}
    best = max(scores, key=lambda ids: scores[ids])
    found = search(model, src, src_len, 4, SearchSettings(beam=27))[0]
    assert found.ids == best
    assert found.score == pytest.approx(scores[best], abs=1e-5)


def test_n_best_of_a_beam_as_wide_as_all_prefixes_are_the_best_of_all() -> None:
    model, (src, src_len), words = backbone(), sources([4]), [4, 5, 6]
    with torch.no_grad():
        bias_of(model)[:] = -1000
        bias_of(model)[words] = 0.0
        bias_of(model)[EOS] = 3.0
    all_outputs = [ids for length in range(1, 4) for ids in itertools.product(words, repeat=length)]
    scores = {ids: log_prob_of(model, src, ids, ended=True) / (len(ids) + 1) for ids in all_outputs}
    ranked = sorted(scores, key=lambda ids: -scores[ids])
    best = search(model, src, src_len, 4, SearchSettings(beam=27, n_best=6))[0]
    assert [h.ids for h in (best, *best.alternatives)] == ranked[:6]
    assert [h.score for h in (best, *best.alternatives)] == pytest.approx(
        [scores[ids] for ids in ranked[:6]], abs=1e-5
    )


@pytest.mark.parametrize("n_best", [2, 5])
def test_the_best_is_the_same_however_many_are_asked_for(n_best: int) -> None:
    model, (src, src_len) = backbone(seed=1), sources([9, 1, 4, 12])
    with torch.no_grad():
        bias_of(model)[EOS] = 3.0
    alone = search(model, src, src_len, 20)
    found = search(model, src, src_len, 20, SearchSettings(n_best=n_best, keep_states=True))
    assert [h.ids for h in found] == [h.ids for h in alone] and [h.score for h in found] == [
        h.score for h in alone
    ]
    assert all(h.alternatives == () for h in alone) and any(h.alternatives for h in found)
    for best in found:
        listed = [best, *best.alternatives]
        assert len(listed) <= n_best and len({h.ids for h in listed}) == len(listed)
        assert [h.score for h in listed] == sorted((h.score for h in listed), reverse=True)
        assert all(h.contexts is not None and len(h.contexts) == len(h.ids) for h in listed)


class Scripted(RNNsearch):
    """A model whose next word depends on the step and the word before alone: logits (T, V, V) by
    step and word."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__(logits.shape[-1], embedding=4, hidden=4, attention=4, dropout=0.0)
        self.logits = logits

    def step(
        self, prev: Tensor, state: Tensor, encoded: Annotations, inject: Inject | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The state counts the steps."""
        if (prev == BOS).all():
            state = torch.zeros_like(state)
        return state + 1, encoded.start.new_zeros(len(prev), self.context_size), state

    def readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        return self.logits[hidden[:, 0].long(), prev].clone()


def copying(seed: int, length: int, doubt: float) -> Scripted:
    """One path of `length` words that are nearly certain after `doubt`ful first ones; words beside
    it soon end."""
    torch.manual_seed(seed)
    words = 4 + torch.randint(30, (length,))
    logits = torch.randn(2 * length + 13, 34, 34)
    logits[:, :, EOS] += 4.0  # what has left the path ends early
    before = BOS
    for t, word in enumerate([*words.tolist(), EOS]):
        logits[t, before, word] += doubt if t < 3 else 14.0
        before = word
    return Scripted(logits)


def path_of(model: Scripted, length: int) -> tuple[tuple[int, ...], float]:
    """The greedy hypothesis of a scripted model and its log probability, </s> included."""
    logits = model.logits.clone()
    logits[:, :, [PAD, BOS, UNK]] = -torch.inf
    ids: list[int] = []
    log_prob, before = 0.0, BOS
    for t in range(2 * length + 12):
        log_p = model.logits[t, before].log_softmax(-1)
        before = int(logits[t, before].argmax())
        log_prob += float(log_p[before])
        if before == EOS:
            return tuple(ids), log_prob
        ids.append(before)
    raise AssertionError("the path has no end")


@pytest.mark.parametrize("beam", [2, 5])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_beam_scores_no_less_than_greedy(beam: int, penalty: float) -> None:
    """What has more than 1 / (K + 1) of the probability is always among the K best: such a greedy
    one is never lost."""
    held = 0
    for seed in range(30):
        length = 4 + seed
        model = copying(seed, length, doubt=6.0)
        ids, log_prob = path_of(model, length)
        if log_prob <= -math.log(beam + 1) or len(ids) > length:
            continue
        held += 1
        src = torch.full((1, length), 4)
        found = search(
            model, src, torch.tensor([length]), 2 * length + 12, SearchSettings(beam, penalty)
        )[0]
        assert found.score >= log_prob / (len(ids) + 1) ** penalty - 1e-5
    assert held >= 10


def test_hypotheses_that_end_early_do_not_end_one_that_is_better() -> None:
    length = 20
    model = copying(1, length, doubt=6.0)
    ids, log_prob = path_of(model, length)
    found = search(model, torch.full((1, 20), 4), torch.tensor([20]), 52, SearchSettings(beam=5))[0]
    assert len(ids) == length and found.ids == ids
    assert found.score == pytest.approx(log_prob / 21, abs=1e-5)


def test_a_good_end_does_not_end_what_is_unsure_at_first_and_certain_later() -> None:
    length, junk = 20, 30
    logits = torch.zeros(53, 34, 34)
    logits[1, junk, EOS] = (
        20.0  # after one word of 0.4 it ends: -0.5 a word; the path has -0.8 a word by then
    )
    for t in range(length + 1):
        logits[t, BOS if t == 0 else 3 + t, EOS if t == length else 4 + t] = 20.0
    logits[0, BOS, [4, junk]] = torch.tensor([7.0, 6.8])
    logits[1, 4, 5] = 3.0
    found = search(
        Scripted(logits), torch.full((1, 20), 4), torch.tensor([20]), 52, SearchSettings(beam=5)
    )[0]
    assert found.ids == tuple(range(4, 24))


@pytest.mark.parametrize("fast", [True, False])
def test_batched_equals_one_by_one(fast: bool) -> None:
    model = backbone(seed=3, fast=fast)
    lengths = [9, 1, 4, 30, 7]
    src, src_len = sources(lengths)
    together = search(model, src, src_len, 25)
    for i, length in enumerate(lengths):
        alone = search(model, src[i : i + 1, :length], src_len[i : i + 1], 25)[0]
        assert together[i].ids == alone.ids
        assert together[i].score == pytest.approx(alone.score, abs=1e-4)


def test_score_is_the_log_probability_over_a_power_of_the_length() -> None:
    model, (src, src_len) = backbone(seed=1), sources([6])
    with torch.no_grad():
        bias_of(model)[EOS] = 3.0
    for penalty in (0.0, 0.7, 1.0):
        found = search(model, src, src_len, 20, SearchSettings(length_penalty=penalty))[0]
        assert found.finished
        assert found.log_prob == pytest.approx(
            log_prob_of(model, src, found.ids, ended=True), abs=1e-4
        )
        assert found.score == pytest.approx(
            found.log_prob / (len(found.ids) + 1) ** penalty, abs=1e-6
        )


def test_an_unfinished_translation_is_cut_at_its_own_maximal_length() -> None:
    model = backbone()
    with torch.no_grad():
        bias_of(model)[EOS] = -1000
    src, src_len = sources([5, 5])
    with torch.inference_mode():
        encoded = model.encode(src, src_len)
    found = beam_search(model, None, encoded, LayerInputs(), [3, 8], SearchSettings(beam=2))
    assert [len(h.ids) for h in found] == [3, 8]
    assert not any(h.finished for h in found)
    assert found[1].log_prob == pytest.approx(
        log_prob_of(model, src[1:], found[1].ids, ended=False), abs=1e-4
    )


def test_unk_padding_and_start_are_never_produced() -> None:
    model = backbone()
    with torch.no_grad():
        bias_of(model)[[PAD, BOS, UNK]] = 1000
    found = search(model, *sources([5, 8]))
    assert not {PAD, BOS, UNK} & {i for h in found for i in h.ids}


def test_contexts_and_hiddens_are_those_of_the_best() -> None:
    model = backbone(seed=2)
    lengths = [8, 3]
    src, src_len = sources(lengths)
    for i, found in enumerate(search(model, src, src_len, 15, SearchSettings(keep_states=True))):
        with torch.inference_mode():
            encoded = model.encode(src[i : i + 1, : lengths[i]], src_len[i : i + 1])
            contexts, hiddens = model.forced(encoded, torch.tensor([[*found.ids, EOS]]))
        assert found.contexts is not None and found.hiddens is not None
        torch.testing.assert_close(found.contexts, contexts[0, : len(found.ids)], atol=1e-4, rtol=0)
        torch.testing.assert_close(found.hiddens, hiddens[0, : len(found.ids)], atol=1e-4, rtol=0)


def test_traces_of_the_plain_model_multiply_to_its_log_probability() -> None:
    model = backbone(seed=4)
    found = search(model, *sources([6]), settings=SearchSettings(explain=True))[0]
    assert len(found.traces) == len(found.probabilities) == len(found.ids)
    assert [float(t.plain) for t in found.traces] == pytest.approx(found.probabilities)
    assert not any(t.layers for t in found.traces)
    plain = search(model, *sources([6]))[0]
    assert plain.traces == () and plain.contexts is None and plain.ids == found.ids


@pytest.mark.parametrize("words", [3, 64, 75, 200])
def test_continuations_are_the_best_of_all_extensions(words: int) -> None:
    torch.manual_seed(words)
    scores, log_probs = torch.randn(3, 2), torch.randn(6, words)
    found = continuations(scores, log_probs, 4)
    everything = (log_probs + scores.view(6, 1)).view(3, -1)
    torch.testing.assert_close(found.scores, everything.topk(4).values)
    rows, tokens = found.parents, found.columns
    torch.testing.assert_close(log_probs[rows, tokens] + scores.view(-1)[rows], found.scores)
    assert (rows // 2 == torch.arange(3)[:, None]).all()
