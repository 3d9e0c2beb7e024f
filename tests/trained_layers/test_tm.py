"""TM copy and fusion: numbers worked by hand, and the laws of a memory."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch
from stepping import beams, fused, mixed, pairs_in, step
from torch import Tensor

from tmnmt.errors import ModelError, UsageError
from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.collated import Pairs
from tmnmt.layers.collated import collate as collate_scored
from tmnmt.layers.combine import LayerInputs, MemoryLayers
from tmnmt.layers.contract import Collated
from tmnmt.layers.mixing import mix_copy
from tmnmt.layers.view import Rows, first_of
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.trained_layers.cache import SessionCache
from tmnmt.trained_layers.coverage import Coverage, CoverageKind
from tmnmt.trained_layers.tm import Matching, PairsReady, TMKind, TranslationMemory
from tmnmt.vocab import BOS

L = D = 16
V = 12
WORD = 8
MODES: tuple[str, ...] = ("copy", "fusion", "both")


@pytest.fixture
def backbone() -> RNNsearch:
    torch.manual_seed(0)
    return RNNsearch(V, embedding=WORD, hidden=D, attention=8, dropout=0.0).eval()


@pytest.fixture
def memories() -> MemoryLayers:
    torch.manual_seed(1)
    return MemoryLayers(learned(TMKind()), SessionCache(L, D, WORD))


def learned(kind: TMKind) -> TranslationMemory:
    """As after some training: what starts at zero is not zero any more."""
    tm = TranslationMemory(L, D, WORD, kind)
    with torch.no_grad():
        tm.log_eta.fill_(0.3)
        if tm.word is not None:
            tm.word.weight.normal_()
        if tm.coverage.weight is not None:
            tm.coverage.weight.fill_(0.7)
        if tm.preferences is not None:
            tm.preferences.copy_(torch.tensor([0.8, 0.5, 0.4]))
        if tm.pointer is not None:
            tm.pointer.fill_(0.6)
    return tm


def pair(length: int, seed: int = 0) -> PairKeys:
    made = torch.Generator().manual_seed(seed)
    return PairKeys(
        torch.randn(length, L, generator=made),
        torch.randn(length, D, generator=made),
        torch.randint(4, V, (length,), generator=made),
    )


def collate(pairs: list[list[PairKeys]]) -> Pairs | None:
    """The longer a pair, the better it is scored."""
    return collate_scored(pairs, [[len(keys.ids) / 10 for keys in some] for some in pairs])


def rows(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """prev (R,), hidden (R, d), context (R, l)"""
    made = torch.Generator().manual_seed(9)
    return (
        torch.randint(4, V, (count,), generator=made),
        torch.randn(count, D, generator=made),
        torch.randn(count, L, generator=made),
    )


def plain(backbone: RNNsearch, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
    return backbone.readout(prev, hidden, context).log_softmax(-1)


def set_gates(memories: MemoryLayers, logit: float) -> None:
    assert memories.tm is not None
    for gate in (memories.tm.copy, memories.tm.fusion):
        assert gate is not None
        torch.nn.init.zeros_(gate.out.weight)
        torch.nn.init.constant_(gate.out.bias, logit)


class TwoWords(RNNsearch):
    """Read-out by hand: the logits are the state itself, so V = d = 2."""

    def __init__(self) -> None:
        super().__init__(2, embedding=2, hidden=2, attention=2, dropout=0.0)

    def readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        return hidden.clone()  # given away: it may be written over


def three_words(kind: TMKind, score: float) -> tuple[TranslationMemory, Pairs]:
    # c M = (1, 0) * (2, 1) = (2, 0); keys (1, 0) word 1, (0, 1) word 0, (1, 1) word 1: E0 = 2, 0, 2
    # lambda = 1, eta = 2: E / eta = (1, 0, 1) - beta / 2
    tm = TranslationMemory(2, 2, 2, kind)
    assert tm.M is not None and tm.coverage.weight is not None
    with torch.no_grad():
        tm.M.copy_(torch.tensor([2.0, 1.0]))
        tm.coverage.weight.fill_(1.0)
        tm.log_eta.fill_(math.log(2))
    keys = PairKeys(
        torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
        torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]),
        torch.tensor([1, 0, 1]),
    )
    pairs = collate_scored([[keys]], [[score]])
    assert pairs is not None
    return tm, pairs


def read_so_far(
    memories: MemoryLayers, pairs: Pairs, coverage: list[float], mode: str = "both"
) -> LayerInputs:
    """The pairs, of which so much was read."""
    ready = memories.ready(Collated(pairs), TwoWords(), mode)
    kept = torch.tensor([coverage])[..., None]
    return LayerInputs({"tm": replace(pairs_in(ready), coverage=kept)})


Step = tuple[Tensor, Tensor, Tensor]  # prev, hidden, context


def by_hand() -> tuple[MemoryLayers, Pairs, Step]:
    """Gates of 3/4; the pairs are read after `READ`."""
    tm, pairs = three_words(TMKind(words=False), 0.3)
    with torch.no_grad():
        for trust in tm.trusts:
            trust.copy_(torch.tensor([0.0, 1e4]))  # any score above 0 is trusted
    memories = MemoryLayers(tm)
    set_gates(memories, math.log(3))  # zeta = 3/4
    at = torch.tensor([0]), torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0]])
    return memories, pairs, at


READ = [0.0, 0.0, 2.0]  # beta of the three positions


def test_copy_by_hand() -> None:
    memories, pairs, at = by_hand()
    log_probs, after, _ = step(
        memories, TwoWords(), *at, read_so_far(memories, pairs, READ, "copy"), "copy"
    )
    # E / eta = (1, 0, 0): q = (e, 1, 1) / (e + 2); p_copy = (1, e + 1) / (e + 2); p_gen = (1/2,
    # 1/2)
    e, total = math.e, math.e + 2
    expected = [0.75 / total + 0.125, 0.75 * (e + 1) / total + 0.125]
    torch.testing.assert_close(log_probs.exp(), torch.tensor([expected]))
    beta = [0.75 * e / total, 0.75 / total, 2 + 0.75 / total]
    torch.testing.assert_close(pairs_in(after).coverage, torch.tensor([beta])[..., None])


PAPER = TMKind(fusion_gate="scalar", gate_signs=False, preferences=False, words=False)


def papers_gates(kind: TMKind, score: float) -> tuple[MemoryLayers, Pairs, Step]:
    """As `by_hand` with s = (0, ln 2), and gates of which one unit is at work, for a pair of this
    score.

    The third position has been read: q = (e, 1, 1) / (e + 2), z~ = (1, 3 / (e + 2)), p_gen = (1/3,
    2/3)."""
    tm, pairs = three_words(kind, score)
    with torch.no_grad():
        for gate in (tm.copy, tm.fusion):
            assert gate is not None
            for parameter in (
                *gate.context.parameters(),
                *gate.hidden.parameters(),
                *gate.value.parameters(),
            ):
                parameter.zero_()
            gate.context.weight[0, 0], gate.hidden.weight[0, 1] = 0.5, 1.0
            gate.value.weight[0] = torch.tensor([0.25, 1.0])
            gate.out.weight.zero_()[:, 0] = 2.0
            gate.out.bias.fill_(-1.0)
            if gate.signs is not None:
                gate.signs.weight.zero_()
    at = torch.tensor([0]), torch.tensor([[0.0, math.log(2)]]), torch.tensor([[1.0, 0.0]])
    return MemoryLayers(tm), pairs, at


def papers_zeta() -> float:
    """sigmoid(2 tanh(c_1 / 2 + s_2 + z~_1 / 4 + z~_2) - 1) = sigmoid(2 tanh(0.5 + 0.6931 + 0.25 +
    0.6358) - 1)"""
    zeta = 1 / (1 + math.exp(1 - 2 * math.tanh(0.75 + math.log(2) + 3 / (math.e + 2))))
    assert zeta == pytest.approx(0.7187, abs=1e-4)
    return zeta


def test_the_papers_copy_gate_by_hand() -> None:
    memories, pairs, at = papers_gates(PAPER, 0.2)
    log_probs, _, trace = step(
        memories, TwoWords(), *at, read_so_far(memories, pairs, READ, "copy"), "copy", explain=True
    )
    zeta, total = papers_zeta(), math.e + 2
    assert mixed(trace, "tm").gate.item() == pytest.approx(zeta, abs=1e-6)
    expected = [zeta / total + (1 - zeta) / 3, zeta * (math.e + 1) / total + (1 - zeta) * 2 / 3]
    torch.testing.assert_close(log_probs.exp(), torch.tensor([expected]))


def test_the_papers_fusion_gate_by_hand() -> None:
    memories, pairs, at = papers_gates(PAPER, 0.2)
    log_probs, _, trace = step(
        memories,
        TwoWords(),
        *at,
        read_so_far(memories, pairs, READ, "fusion"),
        "fusion",
        explain=True,
    )
    zeta = papers_zeta()
    assert fused(trace, "tm").gate.item() == pytest.approx(zeta, abs=1e-6)
    h = torch.tensor(
        [[zeta, zeta * 3 / (math.e + 2) + (1 - zeta) * math.log(2)]]
    )  # zeta z~ + (1 - zeta) s
    torch.testing.assert_close(log_probs, h.log_softmax(-1))


@pytest.mark.parametrize("mode", MODES)
def test_the_score_of_a_pair_has_no_part_in_the_papers_form(mode: str) -> None:
    def at(kind: TMKind, score: float) -> Tensor:
        memories, pairs, at = papers_gates(kind, score)
        ready = read_so_far(memories, pairs, READ, mode)
        return step(memories, TwoWords(), *at, ready, mode)[0].detach()

    for score in (0.0, 0.5, 1.0):
        assert torch.equal(at(PAPER, score), at(PAPER, 0.2))
    ours = replace(PAPER, gate_signs=True)
    assert float((at(ours, 0.5) - at(ours, 0.2)).abs().max()) > 0.1


def test_the_file_says_which_gates_there_are_and_one_of_before_has_ours(
    tmp_path: Path, backbone: RNNsearch
) -> None:
    from safetensors import safe_open
    from safetensors.torch import save_file

    path = tmp_path / "memory.safetensors"
    MemoryLayers(learned(PAPER)).save(path)
    with safe_open(path, "pt") as file:
        assert not [name for name in file.keys() if "signs" in name or "trust" in name]
    loaded = MemoryLayers.load(path, backbone).tm
    assert loaded is not None and loaded.kind == PAPER

    written = MemoryLayers(learned(TMKind()))
    written.save(path)
    with safe_open(path, "pt") as file:
        tensors, told = {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata())
    kinds = json.loads(told["kinds"])
    assert kinds["tm"].pop("gate_signs") is True
    save_file(tensors, path, told | {"kinds": json.dumps(kinds)})
    read = MemoryLayers.load(path, backbone)
    assert read.tm is not None and read.tm.kind == TMKind()
    assert all(
        torch.equal(tensor, read.state_dict()[name])
        for name, tensor in written.state_dict().items()
    )


def prefer(tm: TranslationMemory, mu: float, nu: float, kappa: float) -> None:
    assert tm.preferences is not None
    with torch.no_grad():
        tm.preferences.copy_(torch.tensor([mu, nu, kappa]))


def scored(memories: MemoryLayers, pairs: Pairs, scores: list[float]) -> PairsReady:
    """The pairs with other fuzzy scores of their positions."""
    marks = torch.tensor([[[score, float(score == 1)] for score in scores]])
    return pairs_in(read_so_far(memories, replace(pairs, marks=marks), READ))


def test_better_pairs_are_read_first_by_hand() -> None:
    memories, pairs, (_, hidden, context) = by_hand()
    assert memories.tm is not None
    prefer(memories.tm, 4.0, 0.0, 0.0)
    read = memories.tm.read(
        torch.tensor([7]), hidden, context, scored(memories, pairs, [0.5, 0.9, 0.5])
    )
    # E / eta = (1, 0, 0) + 4 f / 2 = (2, 1.8, 1); sum q f is the gate's third sign
    weights = [math.exp(2), math.exp(1.8), math.exp(1)]
    q = torch.tensor([weights]) / sum(weights)
    torch.testing.assert_close(read.q, q)
    torch.testing.assert_close(read.signs[0, 2:], torch.tensor([0.5 + 0.4 * float(q[0, 1]), 0, 0]))


def test_an_exact_match_and_the_word_that_follows_are_read_first_by_hand() -> None:
    memories, pairs, (_, hidden, context) = by_hand()
    assert memories.tm is not None
    prefer(memories.tm, 0.0, 4.0, 2.0)
    # words 1, 0, 1 of one pair: before them stand <s>, 1 and 0
    assert pairs.previous_ids.tolist() == [[BOS, 1, 0]]
    read = memories.tm.read(
        torch.tensor([0]), hidden, context, scored(memories, pairs, [0.5, 1.0, 1.0])
    )
    # E / eta = (1, 0, 0) + (0, 4, 4) / 2 + (0, 0, 2) / 2 = (1, 2, 3)
    q = torch.tensor([1.0, 2.0, 3.0]).softmax(-1)
    torch.testing.assert_close(read.q[0], q)
    torch.testing.assert_close(read.signs[0, 3:], torch.stack([q[1] + q[2], q[2]]))


def test_after_a_word_that_stands_twice_copying_goes_on_after_the_one_just_read_by_hand() -> None:
    memories, pairs, (_, hidden, context) = by_hand()
    assert memories.tm is not None and memories.tm.pointer is not None
    prefer(memories.tm, 0.0, 0.0, 2.0)
    with torch.no_grad():
        memories.tm.pointer.fill_(4.0)
    pairs = replace(pairs, previous_ids=torch.tensor([[BOS, 0, 0]]))  # two stand after the word 0
    held = scored(memories, pairs, [0.5, 0.5, 0.5])
    for last, r in (
        ([0.0, 0.8, 0.1], [0.0, 1.0]),
        ([0.3, 0.0, 0.7], [1.0, 0.0]),
        ([0.6, 0.3, 0.1], [1.0, 0.5]),
    ):
        read = memories.tm.read(
            torch.tensor([0]), hidden, context, replace(held, last=torch.tensor([last]))
        )
        # q of the step before is the last word's place: r = g q(tau - 1), the greatest made 1
        # E / eta = (1, 0, 0) + (0, 2, 2) / 2 + 4 r / 2
        torch.testing.assert_close(
            read.q[0], torch.tensor([1.0, 1 + 2 * r[0], 1 + 2 * r[1]]).softmax(-1)
        )
    read = memories.tm.read(
        torch.tensor([7]), hidden, context, replace(held, last=torch.tensor([[0.2, 0.5, 0.3]]))
    )
    torch.testing.assert_close(
        read.q[0], torch.tensor([1.0, 0.0, 0.0]).softmax(-1)
    )  # nothing follows: r is 0


def test_a_step_keeps_what_it_read_for_the_next(
    backbone: RNNsearch, memories: MemoryLayers
) -> None:
    state = Collated(collate([[pair(6, 1), pair(4, 2)], [], [pair(5, 3)]]))
    _, after, trace = step(memories, backbone, *rows(3), state, "copy", explain=True)
    assert trace is not None
    q = trace.layers["tm"].weights
    assert torch.equal(pairs_in(after).last, q) and not pairs_in(after).last[1].any()
    swapped = after.rows(torch.tensor([2, 0, 0]))
    assert torch.equal(pairs_in(swapped).last, q[[2, 0, 0]])
    again = memories.ready(state, backbone, "copy")
    assert pairs_in(again).last.shape == (3, 0)  # a new sentence has read nothing


def test_memories_of_a_file_from_before_there_was_a_pointer_have_none(
    backbone: RNNsearch, tmp_path: Path
) -> None:
    from safetensors import safe_open
    from safetensors.torch import save_file

    path = tmp_path / "memory.safetensors"
    MemoryLayers(learned(TMKind(pointer=False))).save(path)
    with safe_open(path, "pt") as file:
        tensors, told = {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata())
    kinds = json.loads(told["kinds"])
    assert kinds["tm"].pop("pointer") is False and "tm.pointer" not in tensors
    save_file(tensors, path, told | {"kinds": json.dumps(kinds)})
    read = MemoryLayers.load(path, backbone).tm
    assert read is not None and read.pointer is None and not read.kind.pointer


def test_fusion_by_hand() -> None:
    memories, pairs, at = by_hand()
    log_probs, after, _ = step(
        memories, TwoWords(), *at, read_so_far(memories, pairs, READ, "fusion"), "fusion"
    )
    # z~ = (e (1, 0) + (0, 1) + (2, 2)) / (e + 2) = (e + 2, 3) / (e + 2); h = 3/4 z~ + 1/4 (0, 0)
    # are the logits
    h = torch.tensor([[0.75, 0.75 * 3 / (math.e + 2)]])
    torch.testing.assert_close(log_probs, h.log_softmax(-1))
    torch.testing.assert_close(pairs_in(after).coverage[0, 1, 0].item(), 0.75 / (math.e + 2))


def test_trust_multiplies_the_odds_of_the_gate_by_hand() -> None:
    memories, pairs, at = by_hand()
    assert memories.tm is not None and memories.tm.copy is not None
    assert memories.tm.copy.trust is not None
    with torch.no_grad():
        memories.tm.copy.trust.copy_(
            torch.tensor([0.3, 7.0])
        )  # the pair's score is 0.3: half of the odds 3, zeta 3/5
    log_probs, _, _ = step(
        memories, TwoWords(), *at, read_so_far(memories, pairs, READ, "copy"), "copy"
    )
    total = math.e + 2
    expected = [0.6 / total + 0.2, 0.6 * (math.e + 1) / total + 0.2]
    torch.testing.assert_close(log_probs.exp(), torch.tensor([expected]))


def test_fusion_blends_the_words_too_by_hand() -> None:
    memories, pairs, at = by_hand()
    assert memories.tm is not None
    memories.tm.word = torch.nn.Linear(2, 2, bias=False)
    base = TwoWords()
    with torch.no_grad():
        memories.tm.word.weight.copy_(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
        base.embedding.weight.copy_(torch.eye(2))
    ready = memories.ready(Collated(pairs), base, "fusion")
    ready = LayerInputs({"tm": replace(pairs_in(ready), coverage=torch.tensor([READ])[..., None])})
    log_probs, _, _ = step(memories, base, *at, ready, "fusion")
    # E e(y') = (0, 3), (2, 0), (0, 3) under q = (e, 1, 1) / (e + 2): (2, 3 e + 3) / (e + 2), added
    # to z~ of above
    total = math.e + 2
    h = torch.tensor([[0.75 * (1 + 2 / total), 0.75 * (3 + 3 * math.e + 3) / total]])
    torch.testing.assert_close(log_probs, h.log_softmax(-1))


def test_with_both_the_copy_gate_counts_as_use_and_the_read_out_is_fused() -> None:
    memories, pairs, at = by_hand()
    assert memories.tm is not None and memories.tm.fusion is not None
    torch.nn.init.constant_(memories.tm.fusion.out.bias, -math.log(3))  # 1/4, while copy keeps 3/4
    log_probs, after, trace = step(
        memories, TwoWords(), *at, read_so_far(memories, pairs, READ, "both"), "both", explain=True
    )
    p_gen = torch.tensor([[0.25, 0.25 * 3 / (math.e + 2)]]).softmax(-1)
    total = math.e + 2
    p_copy = torch.tensor([[1 / total, (math.e + 1) / total]])
    torch.testing.assert_close(log_probs.exp(), 0.75 * p_copy + 0.25 * p_gen)
    assert trace is not None
    torch.testing.assert_close(pairs_in(after).coverage[0, 1, 0].item(), 0.75 / total)
    torch.testing.assert_close(fused(trace, "tm").p, p_gen)


@pytest.mark.parametrize("mode", MODES)
def test_probabilities_sum_to_one(backbone: RNNsearch, memories: MemoryLayers, mode: str) -> None:
    pairs = Collated(pairs=collate([[pair(5), pair(3, 1)], [pair(4, 2)]]))
    state = beams(memories.ready(pairs, backbone, mode), 2, 2)
    prev, hidden, context = rows(4)
    log_probs, _, _ = step(memories, backbone, prev, hidden, context, state, mode)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(4))


@pytest.mark.parametrize("mode", MODES)
def test_a_closed_gate_is_the_plain_model_bit_for_bit(
    backbone: RNNsearch, memories: MemoryLayers, mode: str
) -> None:
    set_gates(memories, -torch.inf)
    prev, hidden, context = rows(2)
    state = Collated(pairs=collate([[pair(5)], [pair(4)]]))
    log_probs, after, _ = step(memories, backbone, prev, hidden, context, state, mode)
    assert torch.equal(log_probs, plain(backbone, prev, hidden, context))
    assert not pairs_in(after).coverage.any()


def test_an_open_copy_gate_only_copies(backbone: RNNsearch, memories: MemoryLayers) -> None:
    set_gates(memories, torch.inf)
    prev, hidden, context = rows(1)
    keys = pair(5)
    log_probs, _, trace = step(
        memories,
        backbone,
        prev,
        hidden,
        context,
        Collated(pairs=collate([[keys]])),
        "copy",
        explain=True,
    )
    torch.testing.assert_close(log_probs.exp(), mixed(trace, "tm").p)
    assert set(log_probs[0].isfinite().nonzero()[:, 0].tolist()) == set(keys.ids.tolist())


def test_an_open_fusion_gate_reads_out_the_memory_alone(
    backbone: RNNsearch, memories: MemoryLayers
) -> None:
    set_gates(memories, torch.inf)
    prev, hidden, context = rows(1)
    keys = pair(1)
    log_probs, _, _ = step(
        memories, backbone, prev, hidden, context, Collated(pairs=collate([[keys]])), "fusion"
    )
    assert memories.tm is not None and memories.tm.word is not None
    said = keys.hiddens + memories.tm.word(backbone.embed(keys.ids))
    torch.testing.assert_close(log_probs, plain(backbone, prev, said, context))


@pytest.mark.parametrize("mode", MODES)
def test_rows_without_pairs_are_the_plain_model_bit_for_bit(
    backbone: RNNsearch, memories: MemoryLayers, mode: str
) -> None:
    prev, hidden, context = rows(4)
    pairs = Collated(pairs=collate([[], [pair(4)]]))
    state = beams(memories.ready(pairs, backbone, mode), 2, 2)
    log_probs, after, _ = step(memories, backbone, prev, hidden, context, state, mode)
    expected = plain(backbone, prev, hidden, context)
    assert torch.equal(log_probs[:2], expected[:2])
    assert not torch.equal(log_probs[2:], expected[2:])
    assert not pairs_in(after).coverage[:2].any() and pairs_in(after).coverage[2:].any()


def test_no_pairs_at_all_is_no_state() -> None:
    assert collate([[], []]) is None


def test_mode_off_ignores_the_pairs(backbone: RNNsearch, memories: MemoryLayers) -> None:
    prev, hidden, context = rows(1)
    log_probs, _, _ = step(
        memories, backbone, prev, hidden, context, Collated(pairs=collate([[pair(4)]])), "off"
    )
    assert torch.equal(log_probs, plain(backbone, prev, hidden, context))


@pytest.mark.parametrize("mode", MODES)
def test_the_order_of_pairs_does_not_matter(
    backbone: RNNsearch, memories: MemoryLayers, mode: str
) -> None:
    prev, hidden, context = rows(1)
    one, other = pair(5), pair(3, 1)
    results = []
    for pairs in ([one, other], [other, one]):
        state: Collated | LayerInputs = Collated(pairs=collate([pairs]))
        for _ in range(3):
            log_probs, state, _ = step(memories, backbone, prev, hidden, context, state, mode)
        results.append(log_probs)
    torch.testing.assert_close(results[0], results[1])


@pytest.mark.parametrize("mode", MODES)
def test_a_row_does_not_see_its_neighbours(
    backbone: RNNsearch, memories: MemoryLayers, mode: str
) -> None:
    prev, hidden, context = rows(3)
    pairs = [[pair(5), pair(2, 3)], [], [pair(9, 1)]]
    together, after, _ = step(
        memories, backbone, prev, hidden, context, Collated(pairs=collate(pairs)), mode
    )
    for n in (0, 2):
        row = slice(n, n + 1)
        state = Collated(pairs=collate([pairs[n]]))
        alone, alone_after, _ = step(
            memories, backbone, prev[row], hidden[row], context[row], state, mode
        )
        torch.testing.assert_close(together[row], alone)
        assert alone_after.layers
        length = pairs_in(alone_after).coverage.shape[1]
        torch.testing.assert_close(
            pairs_in(after).coverage[row, :length], pairs_in(alone_after).coverage
        )


def test_reordered_rows_give_reordered_results(backbone: RNNsearch, memories: MemoryLayers) -> None:
    prev, hidden, context = rows(4)
    pairs = Collated(pairs=collate([[pair(5)], [pair(4, 1)]]))
    state = beams(memories.ready(pairs, backbone, "copy"), 2, 2)
    log_probs, after, _ = step(memories, backbone, prev, hidden, context, state, "copy")
    index = torch.tensor([3, 0, 3, 1, 2])
    moved, moved_after, _ = step(
        memories, backbone, prev[index], hidden[index], context[index], state.rows(index), "copy"
    )
    torch.testing.assert_close(moved, log_probs[index])
    torch.testing.assert_close(pairs_in(moved_after).coverage, pairs_in(after).coverage[index])


def test_sentences_that_nobody_reads_are_dropped_without_a_change(
    backbone: RNNsearch, memories: MemoryLayers
) -> None:
    prev, hidden, context = rows(4)
    pairs = Collated(pairs=collate([[pair(5)], [pair(4, 1)], [pair(3, 2)], [pair(6, 3)]]))
    state = memories.ready(pairs, backbone, "copy")
    log_probs, _, _ = step(memories, backbone, prev, hidden, context, state, "copy")
    index = torch.tensor([2])
    alone, after, _ = step(
        memories, backbone, prev[index], hidden[index], context[index], state.rows(index), "copy"
    )
    torch.testing.assert_close(alone, log_probs[index])
    assert len(pairs_in(after).positions.keys) == 1
    positions = pairs_in(state).positions
    assert positions.compact() is positions


def test_rows_of_a_sentence_read_its_keys() -> None:
    sentence = torch.tensor([2, 0, 2, 2, 0])
    queries, keys = torch.randn(5, 3), torch.randn(3, 4, 3)
    expected = torch.stack([keys[n] @ q for n, q in zip(sentence.tolist(), queries, strict=True)])
    torch.testing.assert_close(Rows.build(sentence, 3).dot(queries, keys), expected)
    weights = torch.randn(5, 4)
    blended = torch.stack([w @ keys[n] for n, w in zip(sentence.tolist(), weights, strict=True)])
    torch.testing.assert_close(Rows.build(sentence, 3).blend(weights, keys), blended)


def test_collate_numbers_pairs_and_positions() -> None:
    state = collate([[pair(2), pair(3, 1)], []])
    assert state is not None
    assert state.pair[0].tolist() == [0, 0, 1, 1, 1]
    assert state.position[0].tolist() == [0, 1, 0, 1, 2]
    assert state.mask.tolist() == [[True] * 5, [False] * 5]
    torch.testing.assert_close(
        state.marks[..., 0], torch.tensor([[0.2, 0.2, 0.3, 0.3, 0.3], [0.0] * 5])
    )


def test_mixing_equals_the_dense_mixture_with_its_gradient() -> None:
    made = torch.Generator().manual_seed(4)
    log_gen = (
        torch.randn(3, 6, generator=made, dtype=torch.float64).log_softmax(-1).requires_grad_()
    )
    q = torch.rand(3, 5, generator=made, dtype=torch.float64).softmax(-1).requires_grad_()
    logit = torch.tensor([0.3, -torch.inf, 1.0], dtype=torch.float64, requires_grad=True)
    ids = torch.tensor([[1, 1, 2, 1, 0], [0, 0, 0, 0, 0], [5, 4, 4, 5, 4]])
    zeta = torch.sigmoid(logit)[:, None]
    dense = zeta * torch.zeros_like(log_gen).scatter_add(1, ids, q) + (1 - zeta) * log_gen.exp()
    weights = torch.randn(3, 6, generator=made, dtype=torch.float64)
    expected = torch.autograd.grad((dense.log() * weights).sum(), (log_gen, q, logit))
    mixed = mix_copy(log_gen, q, ids, first_of(ids), logit)
    torch.testing.assert_close(mixed, dense.log())
    in_place = mix_copy(log_gen.detach().clone(), q.detach(), ids, first_of(ids), logit.detach())
    assert torch.equal(in_place, mixed)
    found = torch.autograd.grad((mixed * weights).sum(), (log_gen, q, logit))
    for gradient, wanted in zip(found, expected, strict=True):
        finite = wanted.isfinite()
        torch.testing.assert_close(gradient[finite], wanted[finite])


def test_gradients_stay_finite_beside_rows_without_pairs(
    backbone: RNNsearch, memories: MemoryLayers
) -> None:
    prev, hidden, context = rows(2)
    for mode in MODES:
        memories.zero_grad()
        state: Collated | LayerInputs = Collated(pairs=collate([[], [pair(4)]]))
        for _ in range(2):
            log_probs, state, _ = step(memories, backbone, prev, hidden, context, state, mode)
        log_probs[:, 5].sum().backward()
        gradients = [p.grad for p in memories.parameters() if p.grad is not None]
        assert gradients and all(g.isfinite().all() for g in gradients)


def test_an_explanation_sums_to_the_probability(
    backbone: RNNsearch, memories: MemoryLayers
) -> None:
    prev, hidden, context = rows(2)
    state = Collated(pairs=collate([[pair(4)], [pair(5, 1)]]))
    log_probs, _, trace = step(
        memories, backbone, prev, hidden, context, state, "both", explain=True
    )
    assert trace is not None
    copied, p_gen = mixed(trace, "tm"), fused(trace, "tm").p
    zeta = copied.gate[:, None]
    torch.testing.assert_close(log_probs.exp(), zeta * copied.p + (1 - zeta) * p_gen)
    torch.testing.assert_close(trace.plain, plain(backbone, prev, hidden, context).exp())
    assert not torch.equal(p_gen, trace.plain)


def test_a_matrix_for_m_starts_as_the_identity() -> None:
    context = torch.randn(2, L)
    for matching in get_args(Matching):
        tm = TranslationMemory(L, D, WORD, TMKind(matching=matching))
        torch.testing.assert_close(tm.query(context), context)
        assert (tm.M is None) == (matching == "identity")


@pytest.mark.parametrize(
    "parts", [(True, True, True), (True, False, False), (False, True, True), (None, None, True)]
)
def test_the_file_says_which_parts_there_are(
    tmp_path: Path, backbone: RNNsearch, parts: tuple[bool | None, bool | None, bool]
) -> None:
    copy, fusion, cache = parts
    tm = (
        TranslationMemory(L, D, WORD, TMKind(bool(copy), bool(fusion)))
        if copy is not None
        else None
    )
    memories = MemoryLayers(tm, SessionCache(L, D, WORD) if cache else None)
    memories.save(tmp_path / "memory.safetensors")
    loaded = MemoryLayers.load(tmp_path / "memory.safetensors", backbone)
    assert loaded.modes == memories.modes
    for name, tensor in memories.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name])
    assert loaded.state_dict().keys() == memories.state_dict().keys()


def test_names_in_the_file_say_what_they_belong_to(tmp_path: Path, memories: MemoryLayers) -> None:
    from safetensors import safe_open

    memories.save(tmp_path / "memory.safetensors", dtype=torch.float16)
    with safe_open(tmp_path / "memory.safetensors", "pt") as file:
        assert {name.split(".")[0] for name in file.keys()} == {"tm", "copy", "fusion", "cache"}


def test_the_digest_changes_with_what_a_mode_reads_and_with_nothing_else(
    memories: MemoryLayers,
) -> None:
    reading: list[tuple[str, bool]] = [
        ("off", False),
        ("off", True),
        ("copy", False),
        ("copy", True),
    ]
    reading += [("fusion", True), ("both", True)]
    readers = {
        "tm.M": "copy fusion both",
        "tm.word.weight": "fusion both",
        "tm.copy.trust": "copy both",
        "tm.fusion.trust": "fusion both",
        "cache.U.bias": "off copy fusion both",
        "cache.word.weight": "off copy fusion both",
    }
    for name, modes in readers.items():
        before = {mode: memories.digest(*mode) for mode in reading}
        memories.state_dict()[name].add_(1)
        changed = {mode for mode in reading if memories.digest(*mode) != before[mode]}
        some = {(mode, cache) for mode, cache in reading if mode in modes.split()}
        assert changed == ({one for one in some if one[1]} if name.startswith("cache.") else some)
    assert (
        MemoryLayers(memories.tm).digest("copy", True)
        == memories.digest("copy", False)
        != memories.digest("copy", True)
    )


def test_the_parameters_that_a_mode_reads_are_those_of_its_layers(memories: MemoryLayers) -> None:
    of = {"copy": 0, "fusion": 0, "word": 0, "tm": 0, "cache": 0}
    for name, value in memories.named_parameters():
        layer, part = name.split(".")[:2]
        of[part if layer == "tm" and part in of else layer] += value.numel()
    assert min(of.values()) > 0
    reads: dict[str, str] = {"off": "", "knn": "", "copy": "tm copy", "fusion": "tm fusion word"}
    for mode, layers in {**reads, "both": "tm copy fusion word"}.items():
        for cache in (False, True):
            expected = sum(of[name] for name in layers.split()) + of["cache"] * cache
            assert memories.parameters_read(mode, cache) == expected, (mode, cache)
    assert MemoryLayers().parameters_read("knn", True) == 0


def test_parameters_of_another_base_are_one_clear_error(
    tmp_path: Path, memories: MemoryLayers
) -> None:
    memories.save(tmp_path / "memory.safetensors")
    for sizes, said in (
        ({"embedding": WORD, "hidden": 20}, "d 20"),
        ({"embedding": 6, "hidden": D}, "words of 6"),
    ):
        with pytest.raises(ModelError, match=said) as error:
            MemoryLayers.load(tmp_path / "memory.safetensors", RNNsearch(V, attention=8, **sizes))
        assert "\n" not in str(error.value)


def test_a_file_that_is_none_is_an_error(tmp_path: Path, backbone: RNNsearch) -> None:
    (tmp_path / "memory.safetensors").write_bytes(b"no tensors")
    with pytest.raises(ModelError, match=r"memory\.safetensors"):
        MemoryLayers.load(tmp_path / "memory.safetensors", backbone)


def test_a_mode_without_parameters_is_a_usage_error(backbone: RNNsearch) -> None:
    memories = MemoryLayers(TranslationMemory(L, D, WORD, TMKind(copy=False)))
    prev, hidden, context = rows(1)
    with pytest.raises(UsageError, match="mode copy"):
        step(memories, backbone, prev, hidden, context, Collated(), "copy")


def test_coverage_by_hand() -> None:
    kept, used, q = torch.tensor([[[0.5], [0.0]]]), torch.tensor([0.25]), torch.tensor([[0.8, 0.2]])
    assert Coverage("off").update(kept[..., :0], used, q).shape == (1, 2, 0)
    assert Coverage("off").penalty(kept[..., :0]) == 0.0
    torch.testing.assert_close(
        Coverage("plain").update(kept, used, q), torch.tensor([[[1.3], [0.2]]])
    )
    gated = Coverage("gated")
    torch.testing.assert_close(gated.update(kept, used, q), torch.tensor([[[0.7], [0.05]]]))
    assert gated.weight is not None
    torch.nn.init.constant_(gated.weight, 2.0)
    torch.testing.assert_close(gated.penalty(kept), torch.tensor([[1.0, 0.0]]))


def test_a_gru_of_coverage_is_its_cell_at_every_position() -> None:
    torch.manual_seed(0)
    coverage = Coverage("gru")
    assert coverage.gru is not None and coverage.weight is not None
    torch.nn.init.normal_(coverage.weight)
    kept, used, q = torch.randn(3, 4, 10), torch.rand(3), torch.rand(3, 4)
    after = coverage.update(kept, used, q)
    expected = coverage.gru((used[2] * q[2, 1]).view(1, 1), kept[2, 1][None])
    torch.testing.assert_close(after[2, 1], expected[0])
    penalty = coverage.penalty(kept)
    assert isinstance(penalty, Tensor)
    torch.testing.assert_close(penalty[2, 1], kept[2, 1] @ coverage.weight)


@pytest.mark.parametrize("kind", get_args(CoverageKind))
def test_gradients_reach_every_parameter(backbone: RNNsearch, kind: CoverageKind) -> None:
    memories = MemoryLayers(learned(TMKind(coverage=kind, matching="full")))
    prev, hidden, context = rows(2)
    state: Collated | LayerInputs = Collated(pairs=collate([[pair(4)], [pair(5, 1), pair(3, 2)]]))
    assert memories.tm is not None
    for _ in range(3):  # what a recurrent coverage kept has an effect from the third step on
        log_probs, state, _ = step(memories, backbone, prev, hidden, context, state, "both")
    log_probs[:, 5].sum().backward()
    for name, parameter in memories.named_parameters():
        assert parameter.grad is not None and bool(parameter.grad.any()), name


@pytest.mark.parametrize(("length", "matched"), [(0.5, None), (20.0, 14.0)])
def test_a_layer_begins_at_the_scale_of_its_base(length: float, matched: float | None) -> None:
    """What is long is made shorter, and words that follow are preferred from the beginning."""
    torch.manual_seed(3)
    tm, contexts = TranslationMemory(L, D, WORD), length * torch.randn(100, L)
    tm.begin(contexts)
    assert tm.M is not None and tm.preferences is not None and tm.pointer is not None
    found = float((contexts * tm.M.detach() * contexts).sum(-1).mean())
    expected = float(contexts.square().sum(-1).mean()) if matched is None else matched
    assert found == pytest.approx(expected, rel=1e-4)
    assert min(*tm.preferences.tolist(), tm.pointer.item()) > 2
