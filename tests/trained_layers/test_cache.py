"""The session cache: written as the paper's loop says, read as worked by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from stepping import beams, fused, mixed, step
from torch import Tensor

from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.contract import Collated, StepState
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.trained_layers.cache import (
    CacheContents,
    CacheKind,
    Combining,
    Filled,
    SessionCache,
    Slots,
    collate_caches,
)
from tmnmt.vocab import BOS, EOS

L, D = 3, 2


class PaperCache:
    """Tu et al. 2018, section 3.2, word by word; without overwriting as in table 3; and the word
    before."""

    def __init__(self, size: int, overwrite: bool) -> None:
        self.size, self.overwrite = size, overwrite
        self.slots: list[
            tuple[int, Tensor, Tensor, int, int]
        ] = []  # word, key, value, time of the last write, before
        self.time = 0

    def write(self, context: Tensor, hidden: Tensor, word: int, before: int) -> None:
        if word == EOS or self.size == 0:
            return
        self.time += 1
        held = [i for i, slot in enumerate(self.slots) if slot[0] == word and self.overwrite]
        if held:
            _, key, value, _, _ = self.slots[held[0]]
            self.slots[held[0]] = (
                word,
                (key + context) / 2,
                (value + hidden) / 2,
                self.time,
                before,
            )
        elif len(self.slots) < self.size:
            self.slots.append((word, context, hidden, self.time, before))
        else:
            oldest = min(range(self.size), key=lambda i: self.slots[i][3])
            self.slots[oldest] = (word, context, hidden, self.time, before)


words = st.lists(
    st.lists(st.integers(2, 9), max_size=12), max_size=5
)  # 2 is </s>; few words: many repeats


@settings(max_examples=150)
@given(sentences=words, size=st.integers(0, 7), overwrite=st.booleans())
def test_the_vectorised_write_equals_the_loop_of_the_paper(
    sentences: list[list[int]], size: int, overwrite: bool
) -> None:
    made = torch.Generator().manual_seed(0)
    fast, slow = CacheContents(size, L, D, overwrite), PaperCache(size, overwrite)
    for ids in sentences:
        contexts = torch.randn(len(ids), L, generator=made)
        hiddens = torch.randn(len(ids), D, generator=made)
        fast.write(contexts, hiddens, torch.tensor(ids, dtype=torch.int64))
        for context, hidden, before, word in zip(contexts, hiddens, [BOS, *ids], ids, strict=False):
            slow.write(context, hidden, word, before)
        assert fast.ids.tolist() == [
            slot[0] for slot in slow.slots
        ] and fast.previous_ids.tolist() == [slot[-1] for slot in slow.slots]
        for i, (_, key, value, _, _) in enumerate(slow.slots):
            torch.testing.assert_close(fast.keys[i], key, atol=1e-6, rtol=1e-5)
            torch.testing.assert_close(fast.values[i], value, atol=1e-6, rtol=1e-5)


def write(cache: CacheContents, *ids: int) -> None:
    steps = torch.tensor(ids, dtype=torch.float32)[:, None]
    cache.write(steps.expand(-1, L), steps.expand(-1, D), torch.tensor(ids))


@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16])
def test_what_is_kept_does_not_depend_on_the_default_type_of_torch(default: torch.dtype) -> None:
    def kept() -> CacheContents:
        cache = CacheContents(4, L, D)
        write(cache, 5, 6, 5, 7)
        write(cache, 6, 8, 9)
        return cache.restored(cache.record(), cache.tensors(), 10)

    expected, usual = kept(), torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        found, slots = kept(), collate_caches([kept()])
    finally:
        torch.set_default_dtype(usual)
    assert slots is not None and slots.keys.dtype == slots.values.dtype == torch.float32
    for name in ("keys", "values", "ids"):
        assert torch.equal(getattr(found, name), getattr(expected, name))


def test_without_overwriting_a_repeated_word_takes_its_own_slot() -> None:
    cache = CacheContents(3, L, D, overwrite=False)
    write(cache, 5, 6, 5, 7)
    assert cache.ids.tolist() == [7, 6, 5]


def test_a_word_written_again_is_not_the_oldest() -> None:
    cache = CacheContents(2, L, D)
    write(cache, 5, 6, 5, 7)
    assert cache.ids.tolist() == [5, 7]


def test_the_end_of_a_sentence_is_never_written() -> None:
    cache = CacheContents(4, L, D)
    write(cache, 5, EOS)
    assert cache.ids.tolist() == [5]


def test_a_snapshot_does_not_change_when_the_cache_does() -> None:
    cache = CacheContents(2, L, D)
    write(cache, 5)
    state = collate_caches([cache])
    write(cache, 6, 7)
    assert state is not None and state.keys.tolist() == [[[5.0] * L]]


def some_word(context: Tensor) -> Tensor:
    """Some word that was just written, for every row."""
    return torch.full((len(context),), 9)


def by_hand() -> tuple[SessionCache, CacheContents]:
    cache = SessionCache(2, 2, 2, CacheKind(words=False))
    for layer in (cache.U, cache.V, cache.W):
        torch.nn.init.zeros_(layer.weight)
    with torch.no_grad():  # lambda = sigmoid(s_1 + c_1 + m_1, log 3)
        cache.U.bias.copy_(torch.tensor([0.0, math.log(3)]))
        cache.U.weight[0, 0] = cache.V.weight[0, 0] = cache.W.weight[0, 0] = 1.0
    contents = CacheContents(5, 2, 2)
    keys, values = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[2.0, 0.0], [0.0, 4.0]])
    contents.write(keys, values, torch.tensor([5, 6]))
    return cache, contents


def test_read_by_hand() -> None:
    cache, contents = by_hand()
    state = collate_caches([contents])
    assert state is not None
    hidden, context = torch.tensor([[0.5, 1.0]]), torch.tensor([[math.log(3), 0.0]])
    # scores (log 3, 0): P_m = (3/4, 1/4); m = (3/2, 1); lambda = (sigmoid(1/2 + log 3 + 3/2), 3/4)
    torch.testing.assert_close(
        weights(cache, hidden, context, ready(cache, state)),
        torch.tensor([[0.75, 0.25]]),
    )
    gate = 1 / (1 + math.exp(-2) / 3)
    blended, found = deep(cache, hidden, context, ready(cache, state))
    torch.testing.assert_close(found, torch.tensor([[gate, 0.75]]))
    torch.testing.assert_close(blended, torch.tensor([[(1 - gate) * 0.5 + gate * 1.5, 1.0]]))


def test_one_gate_for_the_whole_state_by_hand() -> None:
    cache = SessionCache(2, 2, 2, CacheKind(words=False, gate="scalar"))
    with torch.no_grad():
        cache.U.bias.fill_(math.log(3))
        cache.U.weight.copy_(torch.tensor([[1.0, 0.0]]))
        cache.V.weight.fill_(0.0)
        cache.W.weight.copy_(torch.tensor([[0.0, 2.0]]))
    state = collate_caches([by_hand()[1]])
    hidden, context = torch.tensor([[0.5, 1.0]]), torch.tensor([[math.log(3), 0.0]])
    # m = (3/2, 1) as above; lambda = sigmoid(1/2 + 2 + log 3) for both elements
    gate = 1 / (1 + math.exp(-2.5) / 3)
    blended, found = deep(cache, hidden, context, ready(cache, state))
    torch.testing.assert_close(found, torch.tensor([[gate]]))
    torch.testing.assert_close(blended, torch.tensor([[(1 - gate) * 0.5 + gate * 1.5, 1.0]]))


def ready(cache: SessionCache, slots: Slots | None, rows: int = 1) -> Filled:
    """Words are embedded as (word, 1); so many rows of every sentence."""
    assert slots is not None
    made = cache.laid_out(slots, lambda ids: torch.stack([ids.float(), torch.ones_like(ids)], -1))
    return made.rows(torch.arange(len(slots.ids)).repeat_interleave(rows)) if rows > 1 else made


def deep(
    cache: SessionCache, hidden: Tensor, context: Tensor, slots: Filled
) -> tuple[Tensor, Tensor]:
    """s~ and lambda, after some word."""
    blended, read = cache.fuse(StepState(some_word(context), hidden, context), hidden, slots)
    assert read.gate is not None
    return blended, read.gate


def weights(cache: SessionCache, hidden: Tensor, context: Tensor, slots: Filled) -> Tensor:
    """P_m, after some word."""
    return cache.fuse(StepState(some_word(context), hidden, context), hidden, slots)[1].weights


def test_a_gated_auxiliary_context_is_added_by_hand() -> None:
    plain, contents = by_hand()
    cache = SessionCache(2, 2, 2, CacheKind(words=False, combining="add"))
    cache.load_state_dict(plain.state_dict())
    hidden, context = torch.tensor([[0.5, 1.0]]), torch.tensor([[math.log(3), 0.0]])
    blended, gate = deep(cache, hidden, context, ready(cache, collate_caches([contents])))
    torch.testing.assert_close(blended, hidden + gate * torch.tensor([[1.5, 1.0]]))


def test_a_learned_matching_starts_as_the_dot_product_and_is_learned() -> None:
    _, contents = by_hand()
    cache = SessionCache(2, 2, 2, CacheKind(matching="learned"))
    assert cache.A is not None
    state, context = ready(cache, collate_caches([contents])), torch.tensor([[math.log(3), 0.0]])
    torch.testing.assert_close(
        weights(cache, torch.zeros(1, 2), context, state),
        torch.tensor([[0.75, 0.25]]),
    )
    with torch.no_grad():
        cache.A.copy_(
            torch.tensor([[0.0, 1.0], [0.0, 0.0]])
        )  # the first element asks for the second
    torch.testing.assert_close(
        weights(cache, torch.zeros(1, 2), context, state),
        torch.tensor([[0.25, 0.75]]),
    )


def test_a_shallow_cache_by_hand(backbone: RNNsearch) -> None:
    _, contents = by_hand()
    cache = SessionCache(2, 2, 4, CacheKind("shallow"))
    for layer in (cache.U, cache.V, cache.W):
        torch.nn.init.zeros_(layer.weight)
    torch.nn.init.constant_(cache.U.bias, math.log(3))  # lambda = 3/4
    state = Collated(histories={"cache": collate_caches([contents, CacheContents(5, 2, 2)])})
    prev = torch.tensor([4, 4])
    hidden = torch.randn(2, 2)
    context = torch.tensor([[math.log(3), 0.0]] * 2)
    log_probs, _, trace = step(
        MemoryLayers(None, cache), backbone, prev, hidden, context, state, "off", explain=True
    )
    plain = backbone.readout(prev, hidden, context).log_softmax(-1)
    # P_m = (3/4, 1/4) of the words 5 and 6
    expected = plain[:1].exp() / 4
    expected[0, 5] += 9 / 16
    expected[0, 6] += 3 / 16
    torch.testing.assert_close(log_probs[:1].exp(), expected)
    assert torch.equal(log_probs[1:], plain[1:])  # an empty cache: the plain model, bit for bit
    recalled = mixed(trace, "cache")
    torch.testing.assert_close(recalled.gate, torch.tensor([0.75, 0.0]))
    torch.testing.assert_close(recalled.p[0, [5, 6]], torch.tensor([0.75, 0.25]))


def test_states_match_beside_contexts_by_hand() -> None:
    _, contents = by_hand()  # keys (1, 0) and (0, 1), values (2, 0) and (0, 4)
    cache = SessionCache(2, 2, 2, CacheKind("shallow", matching="joint", rank=1))
    assert cache.Q is not None and cache.K is not None
    with torch.no_grad():
        cache.Q.weight.copy_(
            torch.tensor([[1.0, 0.0, 0.0, 2.0]])
        )  # of (log 3, 0, 0, h): log 3 + 2 h
        cache.K.weight.copy_(torch.tensor([[1.0, 0.0, 0.0, 0.5]]))  # of the slots: 1 and 2
    state, context = ready(cache, collate_caches([contents])), torch.tensor([[math.log(3), 0.0]])
    for state_of_two, odds in ((0.0, 3), (math.log(3), 27)):
        found = weights(cache, torch.tensor([[0.0, state_of_two]]), context, state)
        torch.testing.assert_close(found, torch.tensor([[1.0, odds]]) / (1 + odds))
    torch.testing.assert_close(state.values[0, :, :1], cache.W(torch.tensor([[1.0], [2.0]])))


def test_a_joint_cache_begins_as_the_product_of_contexts_and_of_some_of_states() -> None:
    torch.manual_seed(0)
    contexts = torch.randn(200, 2) @ torch.randn(2, 6)
    hiddens = torch.randn(200, 1) @ torch.randn(1, 5)
    cache = SessionCache(
        6, 5, 2, CacheKind("shallow", matching="joint", rank=3)
    )  # the positions have three dimensions
    cache.begin(contexts, hiddens)
    assert cache.Q is not None
    keys, values = cache.slots_of(contexts, hiddens)
    assert keys.shape == (200, 3) and values.shape == (200, 0) and cache.slot_sizes == (3, 0)
    queries = cache.Q(torch.cat([contexts, hiddens], -1))
    torch.testing.assert_close(
        queries @ keys.T, contexts @ contexts.T + 0.2 * hiddens @ hiddens.T, atol=1e-3, rtol=1e-4
    )


@pytest.mark.parametrize(("length", "matched"), [(0.5, None), (30.0, 35.0)])
def test_positions_that_are_long_are_made_shorter_in_a_cache_that_begins(
    length: float, matched: float | None
) -> None:
    torch.manual_seed(0)
    contexts, hiddens = length * torch.randn(50, 6), torch.randn(50, 5)
    cache = SessionCache(6, 5, 2, CacheKind("shallow", matching="joint", rank=11))
    cache.begin(contexts, hiddens)
    keys, _ = cache.slots_of(contexts, hiddens)
    found = float(keys.detach().square().sum(1).mean())
    expected = float(contexts.square().sum(1).mean() + 0.2 * hiddens.square().sum(1).mean())
    assert found == pytest.approx(expected if matched is None else matched, rel=1e-4)


def test_slots_of_a_few_numbers_are_read_as_contexts_and_states_are() -> None:
    torch.manual_seed(1)
    cache = SessionCache(
        4,
        3,
        2,
        CacheKind("shallow", matching="joint", signs=True, follows=True, rank=2, empty=True),
    )
    assert cache.signs is not None
    torch.nn.init.normal_(cache.signs.weight)
    whole, few = CacheContents(5, 4, 3), CacheContents(5, *cache.slot_sizes)
    for _ in range(3):  # words that come again are averaged
        contexts, hiddens, ids = torch.randn(4, 4), torch.randn(4, 3), torch.randint(4, 9, (4,))
        whole.write(contexts, hiddens, ids)
        few.write(*cache.slots_of(contexts, hiddens), ids)
    prev, hidden, context = torch.tensor([5, 6]), torch.randn(2, 3), torch.randn(2, 4)
    found = [
        cache.recall(prev, hidden, context, ready(cache, collate_caches([one]), 2))
        for one in (whole, few)
    ]
    for raw, mapped in zip(*found, strict=True):
        torch.testing.assert_close(mapped, raw)


def test_words_that_follow_are_preferred_by_hand() -> None:
    _, contents = by_hand()  # 5 after <s>, 6 after 5
    assert contents.previous_ids.tolist() == [BOS, 5]
    cache = SessionCache(2, 2, 2, CacheKind("shallow", signs=True, follows=True))
    assert cache.kappa is not None and cache.signs is not None
    state = ready(cache, collate_caches([contents, contents]))
    context = torch.tensor([[math.log(3), 0.0]] * 2)
    with torch.no_grad():
        cache.kappa.fill_(math.log(9) / 10)
        cache.signs.weight.copy_(torch.tensor([[0.0, 0.0, 0.0, 0.2]]))
    # scores (log 3, 0), after 5 (log 3, log 9)
    weights, logit = cache.recall(torch.tensor([9, 5]), torch.zeros(2, 2), context, state)
    torch.testing.assert_close(weights, torch.tensor([[0.75, 0.25], [0.25, 0.75]]))
    values = torch.stack([torch.tensor([1.5, 1.0]), torch.tensor([0.5, 3.0])])  # m
    expected = cache.logits(torch.zeros(2, 2), context, cache.W(values))[
        :, 0
    ] + 10 * 0.2 * torch.tensor([0.0, 0.75])
    torch.testing.assert_close(logit, expected)


def test_what_the_empty_slot_takes_is_the_models_by_hand(backbone: RNNsearch) -> None:
    _, contents = by_hand()  # keys (1, 0) and (0, 1) of the words 5 and 6
    cache = SessionCache(2, 2, 4, CacheKind("shallow", empty=True))
    assert cache.empty is not None
    for layer in (cache.U, cache.V, cache.W):
        torch.nn.init.zeros_(layer.weight)
    torch.nn.init.constant_(
        cache.U.bias, math.log(3)
    )  # lambda = 3/4 of what is not the empty slot's
    with torch.no_grad():
        cache.empty.copy_(torch.tensor([0.5, 0.2]))
    prev, hidden, context = torch.tensor([4]), torch.randn(1, 2), torch.tensor([[math.log(3), 0.0]])
    state = Collated(histories={"cache": collate_caches([contents])})
    log_probs, _, trace = step(
        MemoryLayers(None, cache), backbone, prev, hidden, context, state, "off", explain=True
    )
    # P_m = (3/4, 1/4), so the mean cosine is 3/4, and the log odds against the empty slot 10 * 0.2
    # * (3/4 - 1/2) = 1/2
    gate = 0.75 / (1 + math.exp(-0.5))
    expected = (1 - gate) * backbone.readout(prev, hidden, context).softmax(-1)
    expected[0, 5] += 0.75 * gate
    expected[0, 6] += 0.25 * gate
    torch.testing.assert_close(log_probs.exp(), expected)
    recalled = mixed(trace, "cache")
    torch.testing.assert_close(recalled.gate, torch.tensor([gate]))
    torch.testing.assert_close(recalled.p[0, [5, 6]], torch.tensor([0.75, 0.25]))


def test_a_single_slot_that_is_unlike_the_position_is_left_to_the_model() -> None:
    torch.manual_seed(0)
    cache = SessionCache(
        4, 4, 2, CacheKind("shallow", matching="joint", rank=3, signs=True, empty=True)
    )
    without = SessionCache(4, 4, 2, CacheKind("shallow", matching="joint", rank=3, signs=True))
    without.load_state_dict(
        {name: value for name, value in cache.state_dict().items() if name != "empty"}
    )
    contents = CacheContents(5, 4, 4)
    key = torch.randn(1, 4)
    contents.write(key, key, torch.tensor([5]))
    contexts = torch.cat([key, -key])  # where it was written, and the very opposite
    state = collate_caches([contents])
    weights, gates = cache.recall(some_word(contexts), contexts, contexts, ready(cache, state, 2))
    _, open_gates = without.recall(
        some_word(contexts), contexts, contexts, ready(without, state, 2)
    )
    assert weights.tolist() == [[1.0], [1.0]]
    assert gates[0] > open_gates[0] - 0.01 and gates[1] < open_gates[1] - 20


def test_the_signs_of_a_shallow_cache_by_hand() -> None:
    _, contents = by_hand()
    one = CacheContents(5, 2, 2)  # with the second slot alone, so that there is something to mask
    one.write(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 4.0]]), torch.tensor([6]))
    contexts = torch.tensor([[math.log(3), 0.0], [0.0, 2.0], [0.0, 2.0]])
    hiddens = torch.randn(3, 2)
    cache = SessionCache(2, 2, 2, CacheKind("shallow", signs=True))
    assert cache.signs is not None
    state = ready(cache, collate_caches([contents, contents, one]))
    closed = cache.recall(some_word(contexts), hiddens, contexts, state)[1]
    with torch.no_grad():
        cache.signs.weight.copy_(torch.tensor([[0.1, 0.2, 0.3]]))
    # scores (log 3, 0), (0, 2) and 2 alone; P_m = (3/4, 1/4), (1 - p, p) and 1
    p, square = 1 / (1 + math.exp(-2)), math.log(3) ** 2
    shown = torch.tensor(
        [
            [0.75 / math.log(3), math.log(4) / square, 0.75],
            [2 * p / 4, math.log(1 + math.exp(2)) / 4, p],
            [2 / 4, 2 / 4, 1.0],
        ]
    )
    moved = 10 * shown @ torch.tensor([0.1, 0.2, 0.3])
    torch.testing.assert_close(
        cache.recall(some_word(contexts), hiddens, contexts, state)[1] - closed, moved
    )


def test_the_words_of_the_slots_are_read_with_their_states_by_hand() -> None:
    _, contents = by_hand()
    cache = SessionCache(2, 2, 2)
    assert cache.word is not None
    state, plain = collate_caches([contents]), SessionCache(2, 2, 2, CacheKind(words=False))
    assert torch.equal(said(cache, state), said(plain, state))  # E starts at zero
    with torch.no_grad():
        cache.word.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 10.0]]))
    # slots (2, 0) of word 5 and (0, 4) of word 6
    assert said(cache, state).tolist() == [[[7.0, 10.0], [6.0, 14.0]]]
    read = ready(cache, state).values
    torch.testing.assert_close(read[..., 2:], cache.W(read[..., :2]))


def said(cache: SessionCache, state: Slots | None) -> Tensor:
    """What is blended of two slots of states of size 2."""
    read = ready(cache, state).values
    return read[..., :2]


@pytest.mark.parametrize("combining", ["interpolate", "add"])
def test_many_slots_are_read_as_few_are(
    monkeypatch: pytest.MonkeyPatch, combining: Combining
) -> None:
    torch.manual_seed(1)
    cache = SessionCache(4, 3, 2, CacheKind(combining=combining))
    contents = [CacheContents(9, 4, 3), CacheContents(9, 4, 3)]
    assert cache.word is not None
    torch.nn.init.normal_(cache.word.weight)
    contents[0].write(torch.randn(9, 4), torch.randn(9, 3), torch.arange(4, 13))
    contents[1].write(torch.randn(2, 4), torch.randn(2, 3), torch.arange(4, 6))
    hidden, context, state = torch.randn(6, 3), torch.randn(6, 4), collate_caches(contents)
    found = []
    for most in (9, 8):
        monkeypatch.setattr("tmnmt.trained_layers.cache.PROJECTED", most)
        filled = ready(cache, state, 3)
        assert filled.values.shape[2] == (6 if most == 9 else 3)
        found.append(deep(cache, hidden, context, filled))
    for few, many in zip(*found, strict=True):
        torch.testing.assert_close(many, few)


@pytest.fixture
def backbone() -> RNNsearch:
    torch.manual_seed(0)
    return RNNsearch(12, embedding=4, hidden=2, attention=4, dropout=0.0).eval()


def test_rows_with_an_empty_cache_are_the_plain_model_bit_for_bit(backbone: RNNsearch) -> None:
    cache, contents = by_hand()
    memories = MemoryLayers(None, cache)
    collated = Collated(histories={"cache": collate_caches([CacheContents(5, 2, 2), contents])})
    state = beams(memories.ready(collated, backbone, "off"), 2, 2)
    prev, hidden, context = torch.tensor([4, 5, 6, 7]), torch.randn(4, 2), torch.randn(4, 2)
    log_probs, _, trace = step(
        MemoryLayers(None, cache), backbone, prev, hidden, context, state, "off", explain=True
    )
    plain = backbone.readout(prev, hidden, context).log_softmax(-1)
    assert torch.equal(log_probs[:2], plain[:2])
    assert not torch.equal(log_probs[2:], plain[2:])
    part = fused(trace, "cache")
    assert part.gate[:2].tolist() == [0.0, 0.0] and bool((part.gate[2:] > 0).all())
    assert trace is not None
    torch.testing.assert_close(trace.plain, plain.exp())
    torch.testing.assert_close(part.p, log_probs.exp())


def test_gradients_stay_finite_beside_an_empty_cache(backbone: RNNsearch) -> None:
    cache, contents = by_hand()
    state = Collated(histories={"cache": collate_caches([CacheContents(5, 2, 2), contents])})
    prev, hidden, context = torch.tensor([4, 5]), torch.randn(2, 2), torch.randn(2, 2)
    log_probs, _, _ = step(MemoryLayers(None, cache), backbone, prev, hidden, context, state, "off")
    log_probs[:, 5].sum().backward()
    for layer in (cache.U, cache.V, cache.W):
        assert (
            layer.weight.grad is not None
            and layer.weight.grad.isfinite().all()
            and layer.weight.grad.any()
        )


def test_a_document_does_not_see_its_neighbours() -> None:
    cache, contents = by_hand()
    other = CacheContents(5, 2, 2)
    other.write(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([7]))
    together = ready(cache, collate_caches([contents, other]))
    alone = ready(cache, collate_caches([contents]))
    hidden, context = torch.randn(2, 2), torch.randn(2, 2)
    torch.testing.assert_close(
        deep(cache, hidden, context, together)[0][:1],
        deep(cache, hidden[:1], context[:1], alone)[0],
    )
