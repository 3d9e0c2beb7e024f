"""Laws of the memories over whole sentences, through the beam, and of their gradients.

Those of a single step, and numbers worked by hand, stand in test_tm, test_cache and
test_provenance; batched = single in test_engine; step = forced in test_rnnsearch and
test_memory_training; saved = never saved in test_engine and test_tm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import get_args

import pytest
import torch
from random_layers import (
    PAIRS,
    SCORES,
    D,
    V,
    cached,
    gates,
    learned,
    pair,
    random_base,
)
from stepping import pairs_in, step
from torch import Tensor, nn
from torch.func import functional_call

from tmnmt.engine.beam_search import Hypothesis, SearchSettings, beam_search
from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.collated import Pairs, collate
from tmnmt.layers.combine import LayerInputs, MemoryLayers
from tmnmt.layers.contract import Collated
from tmnmt.layers.trace import Trace
from tmnmt.models.base import Backbone
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.models.rnnsearch_fast import FastRNNsearch
from tmnmt.trained_layers.cache import CacheKind
from tmnmt.trained_layers.coverage import CoverageKind
from tmnmt.trained_layers.tm import Gate, Matching, PairsReady, TMKind
from tmnmt.training.teacher_forcing import ForcedBatch
from tmnmt.training.tm import tm_log_probs
from tmnmt.vocab import BOS, PAD

MODES: tuple[str, ...] = ("copy", "fusion", "both")
N = 8  # sentences: enough that the best translation of some changed its place in the beam
LENGTHS = torch.tensor([5, 3, 6, 4, 6, 5, 2, 6])
SRC = torch.randint(4, V, (N, 6), generator=torch.Generator().manual_seed(3))
SRC[torch.arange(6) >= LENGTHS[:, None]] = PAD


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def backbone() -> Backbone:
    return FastRNNsearch(random_base(V, D))


def both() -> Collated:
    """Four pairs and one in turn, beside a cache that is filled and one that is empty."""
    shown = [slice(at % 2, 4 if at % 2 == 0 else 2) for at in range(N)]
    return Collated(
        collate([PAIRS[some] for some in shown], [SCORES[some] for some in shown]),
        {"cache": cached(N)},
    )


def first_with(pairs: list[PairKeys], scores: list[float]) -> Pairs | None:
    """The first sentence alone has pairs."""
    return collate([pairs, *([] for _ in range(N - 1))], [scores, *([] for _ in range(N - 1))])


def search(
    backbone: Backbone, memories: MemoryLayers | None, state: Collated, mode: str, beam: int = 4
) -> list[Hypothesis]:
    with torch.inference_mode():
        encoded = backbone.encode(SRC, LENGTHS)
        ready = memories.ready(state, backbone, mode) if memories is not None else LayerInputs()
    return beam_search(
        backbone, memories, encoded, ready, [12] * N, SearchSettings(beam, explain=True)
    )


def replay(
    backbone: Backbone,
    memories: MemoryLayers,
    ids: tuple[int, ...],
    sentence: int,
    state: Collated,
    mode: str,
) -> tuple[Tensor, list[Trace]]:
    """log p (T, V) along one translation, one row after the other without any beam, and what each
    step says of it."""
    found, traces = [], []
    with torch.inference_mode():
        ready = memories.ready(state, backbone, mode).rows(torch.tensor([sentence]))
        length = LENGTHS[sentence]
        encoded = backbone.encode(SRC[sentence : sentence + 1, :length], length[None])
        inner, prev = backbone.start(encoded), torch.tensor([BOS])
        for word in ids:
            log_p, inner, _, ready, trace = memories.step(
                backbone, prev, inner, encoded, ready, explain=True
            )
            assert trace is not None
            found.append(log_p[0])
            traces.append(trace)
            prev = torch.tensor([word])
    return torch.stack(found), traces


def read_out(trace: Trace) -> dict[str, float]:
    """What is read out of the raw state, after the session cache, and after all layers."""
    plain = float(trace.plain)
    cache = trace.layers["cache"].fused if "cache" in trace.layers else None
    p_cache = float(cache.p) if cache is not None else plain
    tm = trace.layers["tm"].fused
    return {
        "p_plain": plain,
        "p_cache": p_cache,
        "p_gen": float(tm.p) if tm is not None else p_cache,
    }


def generated(trace: Trace) -> float:
    return read_out(trace)["p_gen"]


KINDS = [TMKind(coverage=kind) for kind in get_args(CoverageKind)] + [
    TMKind(matching="full", fusion_gate="scalar", gate_signs=False, preferences=False, words=False)
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cache", ["deep", "shallow"])
def test_closed_gates_translate_as_the_plain_model_does_bit_for_bit(
    backbone: Backbone, mode: str, cache: str
) -> None:
    memories = learned(cache=CacheKind(fusion=cache, signs=True, follows=True, empty=True))  # type: ignore[arg-type]
    assert memories.tm is not None and memories.cache is not None
    with torch.no_grad():
        for module in memories.modules():
            if isinstance(module, Gate):
                module.out.weight.zero_()
        for layer in (memories.cache.U, memories.cache.V, memories.cache.W):
            layer.weight.zero_()
        for gate in gates(memories):
            gate.fill_(-torch.inf)
    for found, plain in zip(
        search(backbone, memories, both(), mode),
        search(backbone, None, Collated(), "off"),
        strict=True,
    ):
        assert (found.ids, found.log_prob, found.score) == (plain.ids, plain.log_prob, plain.score)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.coverage}-{kind.matching}")
@pytest.mark.parametrize("cache", ["deep", "shallow"])
def test_probabilities_of_all_memories_together_sum_to_one(
    backbone: Backbone, kind: TMKind, cache: str
) -> None:
    memories = learned(kind, CacheKind(fusion=cache, signs=True, follows=True, empty=True))  # type: ignore[arg-type]
    for sentence in (0, 1):
        log_p, traces = replay(backbone, memories, (5, 6, 6, 7), sentence, both(), "both")
        torch.testing.assert_close(log_p.exp().sum(-1), torch.ones(4), atol=1e-5, rtol=0)
        for trace in traces:
            read_outs = [layer.fused.p for layer in trace.layers.values() if layer.fused]
            assert len(read_outs) == (2 if cache == "deep" else 1)
            for part in (trace.plain, *read_outs, trace.layers["tm"].weights):
                assert float(part.sum()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_the_order_of_pairs_and_of_equal_matches_does_not_matter(
    backbone: Backbone, mode: str
) -> None:
    memories, outcomes = learned(), []
    for order in list(permutations(range(4)))[::5]:  # 5 of 24, the equal ones both ways
        pairs, scores = [PAIRS[i] for i in order], [SCORES[i] for i in order]
        state = Collated(first_with(pairs, scores), {"cache": cached(N)})
        outcomes.append(search(backbone, memories, state, mode)[0])
    assert {found.ids for found in outcomes} == {outcomes[0].ids}
    for found in outcomes:
        assert found.probabilities == pytest.approx(outcomes[0].probabilities, abs=1e-6)
        for trace, first in zip(found.traces, outcomes[0].traces, strict=True):
            assert generated(trace) == pytest.approx(generated(first), abs=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("matching", get_args(Matching))
def test_two_copies_of_a_pair_give_what_one_gives_with_coverage_off(
    backbone: Backbone, mode: str, matching: Matching
) -> None:
    def given(copies: int, coverage: CoverageKind) -> Tensor:
        state = Collated(first_with(PAIRS[:1] * copies, [0.9] * copies))
        return replay(
            backbone,
            learned(TMKind(matching=matching, coverage=coverage)),
            (5, 6, 7, 8),
            0,
            state,
            mode,
        )[0]

    torch.testing.assert_close(given(2, "off").exp(), given(1, "off").exp(), atol=1e-6, rtol=0)
    assert not torch.allclose(
        given(2, "plain").exp(), given(1, "plain").exp(), atol=1e-4
    )  # each is read half as much


@pytest.mark.parametrize("kind", [kind for kind in get_args(CoverageKind) if kind != "off"])
def test_coverage_follows_the_back_pointers_of_the_beam(
    backbone: Backbone, kind: CoverageKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = learned(TMKind(coverage=kind))

    def is_replayed() -> bool:
        found = search(backbone, memories, both(), "copy", beam=6)
        assert sum(len(one.ids) for one in found) > 3 * N
        return all(equals_its_replay(one, sentence) for sentence, one in enumerate(found))

    def equals_its_replay(found: Hypothesis, sentence: int) -> bool:
        log_p, traces = replay(backbone, memories, found.ids, sentence, both(), "copy")
        alone = log_p.exp()[range(len(found.ids)), list(found.ids)]
        searched = torch.tensor(found.probabilities)
        q, again = (
            torch.cat([trace.layers["tm"].weights.view(1, -1) for trace in told])
            for told in (found.traces, traces)
        )
        return torch.allclose(searched, alone, atol=1e-5) and torch.allclose(q, again, atol=1e-5)

    assert is_replayed()
    for name in ("rows", "reordered"):
        own = getattr(PairsReady, name)
        monkeypatch.setattr(
            PairsReady, name, lambda state, index, own=own: stay_behind(own, state, index)
        )
    assert not is_replayed()  # what the test is there to see


def stay_behind(
    rows: Callable[[PairsReady, Tensor], PairsReady], state: PairsReady, index: Tensor
) -> PairsReady:
    """Rows whose coverage was not reordered with them."""
    moved = rows(state, index)
    if len(state.coverage) < len(index):
        return moved
    return replace(moved, coverage=state.coverage[: len(index)])


@pytest.mark.parametrize("cache", ["deep", "shallow"])
def test_effects_are_what_each_memory_adds_to_the_same_prefix_and_end_at_the_generator(
    backbone: Backbone, cache: str
) -> None:
    memories = learned(cache=CacheKind(fusion=cache, signs=True, follows=True, empty=True))  # type: ignore[arg-type]
    state = both()
    found = search(backbone, memories, state, "fusion")[0]
    assert len(found.ids) > 3
    deep = cache == "deep"  # a shallow one stands beside the generator, not in it
    cached = replace(state, pairs=None) if deep else Collated()
    settings: dict[str, tuple[Collated, str]] = {
        "p_plain": (Collated(), "off"),
        "p_cache": (cached, "off"),
        "p_gen": (replace(cached, pairs=state.pairs), "fusion"),
    }
    alone = {
        name: replay(backbone, memories, found.ids, 0, *given)[0].exp()
        for name, given in settings.items()
    }
    effects = []
    for t, (word, trace) in enumerate(zip(found.ids, found.traces, strict=True)):
        for name, p in alone.items():
            assert read_out(trace)[name] == pytest.approx(float(p[t, word]), abs=1e-5)
        p_plain, p_cache, p_gen = read_out(trace).values()
        effects.append((p_cache - p_plain, p_gen - p_cache))
    by_cache, by_fusion = (max(map(abs, each)) for each in zip(*effects, strict=True))
    assert by_fusion > 1e-3 and (by_cache > 1e-3) == deep


SMALL, FEW = 3, 10  # d and V of what is differentiated numerically


def in_double(state: Collated) -> Collated:
    """The same in float64, so that finite differences say something."""
    pairs, slots = state.pairs, state.histories.get("cache")
    assert pairs is not None
    pairs = replace(
        pairs,
        contexts=pairs.contexts.double(),
        hiddens=pairs.hiddens.double(),
        marks=pairs.marks.double(),
    )
    if slots is not None:
        slots = replace(slots, keys=slots.keys.double(), values=slots.values.double())
    return Collated(pairs, {"cache": slots})


class Loss(nn.Module):
    """A number that depends on the parameters of `part`."""

    def __init__(self, part: nn.Module, of: Callable[[], Tensor]) -> None:
        super().__init__()
        self.part, self.of = part, of

    def forward(self) -> Tensor:
        return self.of()


def check_gradients(loss: Loss) -> None:
    """That autograd's derivatives are those of finite differences, and that none is 0 throughout:
    of parameters of few numbers one by one (M, lambda, eta, mu, nu, kappa, rho, the gates' biases),
    then of all along a random direction."""
    chosen = dict(loss.named_parameters())
    for name, gradient in zip(
        chosen, torch.autograd.grad(loss(), list(chosen.values())), strict=True
    ):
        assert bool((gradient.abs() > 1e-9).any()), name
    few = {
        name: parameter
        for name, parameter in chosen.items()
        if parameter.numel() <= 2 * SMALL * SMALL
    }
    assert few
    for names, fast in ((list(few), False), (list(chosen), True)):

        def of(*values: Tensor, names: list[str] = names) -> Tensor:
            found: Tensor = functional_call(loss, dict(zip(names, values, strict=True)), ())
            return found

        given = tuple(chosen[name].detach().clone().requires_grad_() for name in names)
        assert torch.autograd.gradcheck(of, given, atol=1e-7, rtol=1e-4, fast_mode=fast)


TARGET = torch.tensor([[5, 6, 6, 2], [7, 5, 2, PAD]])


def forced_pairs(
    kind: TMKind, cache: CacheKind
) -> tuple[RNNsearch, MemoryLayers, Collated, ForcedBatch]:
    """Two sentences along references whose words stand in their pairs, with states at random."""
    base, memories = random_base(FEW, SMALL).double(), learned(kind, cache, SMALL).double()
    words = [
        [[5, 6, 5, 7], [6, 5, 6]],
        [[7, 5, 7, 6, 9]],
    ]  # those written stand several times in a pair
    pairs = [
        [replace(pair(len(ids), len(ids), SMALL, FEW), ids=torch.tensor(ids)) for ids in some]
        for some in words
    ]
    state = in_double(
        Collated(collate(pairs, [[1.0, 0.6], [0.7]]), {"cache": cached(2, SMALL, FEW)})
    )
    made = torch.Generator().manual_seed(8)
    contexts, hiddens = (torch.randn(2, 4, SMALL, generator=made).double() for _ in range(2))
    return base, memories, state, ForcedBatch(TARGET, contexts, hiddens)


VARIANTS = [
    TMKind(matching="full", pointer=False),  # whose gradient ends at the step before
    TMKind(coverage="gru", pointer=False),
    TMKind(coverage="plain", fusion_gate="scalar", pointer=False),
    TMKind(fusion_gate="scalar", gate_signs=False, preferences=False, words=False),
]
CACHES = [
    CacheKind(),
    CacheKind(gate="scalar"),
    CacheKind("shallow", matching="joint", signs=True, follows=True, empty=True),
]


@pytest.mark.parametrize("kind", VARIANTS, ids=lambda kind: f"{kind.matching}-{kind.coverage}")
@pytest.mark.parametrize("cache", CACHES, ids=lambda kind: f"{kind.fusion}-{kind.gate}")
def test_gradients_of_every_parameter_are_those_of_finite_differences(
    kind: TMKind, cache: CacheKind
) -> None:
    base, memories, state, batch = forced_pairs(kind, cache)

    def loss() -> Tensor:
        total = torch.zeros((), dtype=torch.float64)
        moved: Collated | LayerInputs = state
        for t in range(3):
            prev = TARGET[:, t - 1] if t else torch.full((2,), BOS)
            log_p, moved, _ = step(
                memories, base, prev, batch.hiddens[:, t], batch.contexts[:, t], moved, "both"
            )
            total = total - log_p.gather(1, TARGET[:, t, None]).sum()
        return total

    check_gradients(Loss(memories, loss))


def test_gradients_of_a_step_after_another_are_those_of_finite_differences() -> None:
    base, memories, state, batch = forced_pairs(TMKind(matching="full"), CacheKind())
    _, moved, _ = step(
        memories,
        base,
        torch.tensor([9, 9]),
        batch.hiddens[:, 0],
        batch.contexts[:, 0],
        replace(state, histories={}),
        "both",
    )
    coverage, last = pairs_in(moved).coverage.detach(), pairs_in(moved).last

    def loss() -> Tensor:
        ready = memories.ready(state, base, "both")
        pairs = replace(pairs_in(ready), coverage=coverage, last=last)
        hidden, context = batch.hiddens[:, 1], batch.contexts[:, 1]
        again = LayerInputs(ready.layers | {"tm": pairs})
        log_p, _, _ = step(memories, base, torch.tensor([5, 7]), hidden, context, again, "both")
        return -log_p.gather(1, torch.tensor([[6], [5]])).sum()

    check_gradients(Loss(memories, loss))


@pytest.mark.parametrize("kind", VARIANTS, ids=lambda kind: f"{kind.matching}-{kind.coverage}")
def test_gradients_that_training_uses_are_those_of_finite_differences(kind: TMKind) -> None:
    base, memories, state, batch = forced_pairs(kind, CacheKind())
    tm, given = memories.tm, state.pairs
    assert tm is not None and given is not None

    def loss() -> Tensor:
        found = tm_log_probs(tm, base, batch, given)
        return -(found["copy"].sum() + found["fusion"].sum())

    check_gradients(Loss(tm, loss))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cache", [CacheKind(), CacheKind(fusion="shallow")])
def test_some_rows_are_read_out_as_among_all_and_every_row_moves_on(
    backbone: Backbone, mode: str, cache: CacheKind
) -> None:
    memories = learned(cache=cache)
    with torch.inference_mode():
        encoded = backbone.encode(SRC, LENGTHS)
        prev = torch.full((N,), BOS)
        every = some = memories.ready(both(), backbone, mode)
        state = other = backbone.start(encoded)
        for rows in ([2, 5], [7, 0, 1], [], [3]):
            log_probs, state, _, every, _ = memories.step(backbone, prev, state, encoded, every)
            index = torch.tensor(rows, dtype=torch.long)
            read, other, _, some, _ = memories.step(
                backbone, prev, other, encoded, some, rows=index
            )
            assert torch.allclose(read, log_probs[index], atol=1e-5)
            assert read.shape == (len(rows), V)
            prev = log_probs.argmax(1)
