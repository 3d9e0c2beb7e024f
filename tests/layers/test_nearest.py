"""The nearest positions, held to a plain loop; a step that is near nothing is the plain model's."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from random_layers import random_base
from torch import Tensor

from tmnmt.compiled.kernels import NEAREST, narrow_shares
from tmnmt.keys.nibbles import directions, encode, rotate
from tmnmt.keys.pair import codes_of
from tmnmt.layers.collated import Pairs, Recent
from tmnmt.layers.contract import Collated, StepState
from tmnmt.layers.nearest import (
    FULL,
    MOST_POSITIONS,
    SURE,
    NearestPositions,
    PoolReady,
    SessionPositions,
    collate_recent,
    narrowed,
)
from tmnmt.layers.reach import STANDARD, Reach, SentenceReach
from tmnmt.models.base import Columns
from tmnmt.vocab import FIRST

BASE = random_base(4, 2)

D, V = 48, 11  # numbers of a state, words
PAIRS, SESSION = Reach(0.9, 0.3), Reach(0.5, 0.2)
REACHES = SentenceReach((PAIRS,), SESSION)


def states(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(seed))


def pairs_of(hiddens: Tensor, ids: list[list[int]], mask: Tensor) -> Pairs:
    words = torch.tensor(ids)
    nothing = torch.zeros_like(words)
    marks = torch.zeros(*words.shape, 2)
    return Pairs(hiddens, hiddens, words, nothing, mask, nothing, nothing, marks)


def recent_of(keys: Tensor, ids: list[list[int]]) -> Recent:
    unknown = torch.zeros(keys.shape[:2]).flatten()
    codes = codes_of(keys.flatten(0, 1), unknown).unflatten(0, keys.shape[:2])
    return Recent(codes, torch.tensor(ids), torch.ones(keys.shape[:2], dtype=torch.bool))


def plain_read(
    state: list[float],
    positions: list[tuple[list[float], int, Reach, float]],
    best: float = 1 / V,
) -> dict[int, float]:
    """Share times weight of every word, by the formulas. positions: key, word, reach, coverage.
    best: what the model gives its likeliest word."""

    def kept(key: list[float]) -> list[float]:
        direction: list[float] = directions(encode(torch.tensor([key])))[0].tolist()
        return direction

    own = rotate(torch.tensor(state)).tolist()
    distances = [
        max(0.0, 2 - 2 * sum(a * b for a, b in zip(own, kept(key), strict=True)))
        + reach.penalty * covered
        for key, _, reach, covered in positions
    ]
    scaled = [d / reach.tau for d, (_, _, reach, _) in zip(distances, positions, strict=True)]
    chosen = sorted(range(len(positions)), key=scaled.__getitem__)[:NEAREST]
    powers = [math.exp(-distances[i] / positions[i][2].temperature) for i in chosen]
    share = max(0.0, 1 - min(scaled) / (1 - SURE * best))
    copied: dict[int, float] = {}
    for i, power in zip(chosen, powers, strict=True):
        word = positions[i][1]
        copied[word] = copied.get(word, 0.0) + share * power / sum(powers)
    return copied


def reading_of(layer: NearestPositions, at: StepState, ready: Any) -> Any:
    """What a step has read, where the model finds all words equally likely."""
    _, read = layer.fuse(at, at.hidden, ready)
    return layer.mix(at, torch.full((len(at.hidden), V), -math.log(V)), read)[1]


def step(
    layer: NearestPositions,
    collated: Collated,
    state: Tensor,
    ready: Any = None,
    model: Tensor | None = None,
) -> Any:
    """log p (R, V) after a step from log p of a model, None: a uniform one; and what is ready for
    the next."""
    ready = ready or layer.ready(collated, BASE, "nearest")
    at = StepState(torch.zeros(len(state), dtype=torch.int64), state, state)
    log_p = torch.full((len(state), V), -math.log(V)) if model is None else model.clone()
    hidden, read = layer.fuse(at, state, ready)
    assert hidden is state
    mixed, read = layer.mix(at, log_p, read)
    return mixed, read.ready


@torch.no_grad()
@pytest.mark.parametrize("beam", [1, 3])
def test_words_come_as_a_plain_loop_has_them(beam: int) -> None:
    layer = NearestPositions()
    hiddens, keys = states(2, 9), states(2, 5, seed=2)
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[1, 6:] = False
    ids = [[1, 2, 3, 2, 4, 5, 6, 7, 1], [8, 9, 8, 9, 8, 9, 0, 0, 0]]
    recent_ids = [[3, 3, 5, 2, 9], [1, 9, 8, 8, 2]]
    collated = Collated(
        pairs=pairs_of(hiddens, ids, mask),
        histories={"nearest": recent_of(keys, recent_ids)},
        reaches=[REACHES, REACHES],
    )
    ready = layer.ready(collated, BASE, "nearest")
    assert ready is not None
    rows = torch.arange(2).repeat_interleave(beam)
    noise = states(2 * beam, seed=3)
    state = hiddens[rows, 2] + 0.4 * noise
    log_p, _ = step(layer, collated, state, ready.rows(rows))
    shares = []
    for row, sentence in enumerate(rows.tolist()):
        positions = [
            (hiddens[sentence, p].tolist(), ids[sentence][p], PAIRS, 0.0)
            for p in range(9)
            if mask[sentence, p]
        ] + [(keys[sentence, p].tolist(), recent_ids[sentence][p], SESSION, 0.0) for p in range(5)]
        copied = plain_read(state[row].tolist(), positions)
        share = sum(copied.values())
        shares.append(share)
        for word in range(V):
            expected = (1 - share) / V + copied.get(word, 0.0)
            assert math.exp(log_p[row, word]) == pytest.approx(expected, abs=1e-4)
    assert max(shares) > 0.3  # something was copied


@torch.no_grad()
def test_a_step_that_is_near_nothing_is_the_plain_models_bit_for_bit() -> None:
    layer = NearestPositions()
    key = states(1, 1)
    pairs = pairs_of(key, [[4]], torch.ones(1, 1, dtype=torch.bool))
    collated = Collated(pairs=pairs, reaches=[REACHES])
    log_p, _ = step(layer, collated, -key[:, 0])
    assert torch.equal(log_p, torch.full((1, V), -math.log(V)))
    near, _ = step(layer, collated, key[:, 0])
    assert near[0, 4].exp() > 0.95


@torch.no_grad()
def test_a_row_without_positions_is_the_plain_models_beside_others() -> None:
    layer = NearestPositions()
    keys = states(2, 3)
    mask = torch.tensor([[True, True, True], [False, False, False]])
    pairs = pairs_of(keys, [[4, 5, 6], [0, 0, 0]], mask)
    collated = Collated(pairs=pairs, reaches=[REACHES, REACHES])
    log_p, _ = step(layer, collated, keys[:, 0])
    assert torch.equal(log_p[1], torch.full((V,), -math.log(V)))
    assert log_p[0, 4].exp() > 0.9
    assert layer.ready(Collated(), BASE, "nearest") is None
    assert layer.ready(collated, BASE, "copy") is None


@torch.no_grad()
def test_every_sentence_is_read_by_its_own_numbers() -> None:
    """Two users' sentences may be decoded together, each with memories of its own."""
    layer, keys = NearestPositions(), states(2, 4)
    mask, ids = torch.ones(2, 4, dtype=torch.bool), [[4, 5, 6, 7], [4, 5, 6, 7]]
    near, far = SentenceReach((Reach(0.2, 0.1),), SESSION), REACHES
    state = keys[:, 1] + 0.3 * states(2, seed=3)
    together, _ = step(layer, Collated(pairs_of(keys, ids, mask), reaches=[near, far]), state)
    for row, reaches in enumerate((near, far)):
        own = pairs_of(keys[row : row + 1], ids[:1], mask[:1])
        alone, _ = step(layer, Collated(own, reaches=[reaches]), state[row : row + 1])
        torch.testing.assert_close(together[row], alone[0])
    assert not torch.allclose(together[0], together[1])


@torch.no_grad()
def test_every_pair_is_read_as_far_as_it_is_like_the_text() -> None:
    layer, keys = NearestPositions(), states(1, 4)
    pairs = pairs_of(keys, [[4, 5, 6, 7]], torch.ones(1, 4, dtype=torch.bool))
    pairs = replace(pairs, pair=torch.tensor([[0, 0, 1, 1]]))
    reach = STANDARD.of_sentence([1.0, 0.25])
    assert reach.pairs[0] == STANDARD.pairs
    assert reach.pairs[1].numbers == tuple(number / 4 for number in STANDARD.pairs.numbers)
    collated = Collated(pairs, reaches=[reach])
    for position, of in enumerate((0, 0, 1, 1)):
        state = keys[:, position] + 0.6 * states(1, seed=5)
        log_p, _ = step(layer, collated, state)
        positions = [(keys[0, p].tolist(), 4 + p, reach.pairs[p // 2], 0.0) for p in range(4)]
        copied = plain_read(state[0].tolist(), positions)
        share = sum(copied.values())
        expected = (1 - share) / V + copied[4 + position]
        assert log_p[0, 4 + position].exp().item() == pytest.approx(expected, abs=1e-4)
        assert share > 0.3 if of == 0 else share == 0
    assert STANDARD.of_sentence([], fragments=2).pairs == (STANDARD.fragments,) * 2


@torch.no_grad()
def test_a_model_that_is_sure_is_outvoted_by_near_positions_alone() -> None:
    """Near and far positions of one word, and a model that is sure of another, and one that is
    not."""
    layer, keys = NearestPositions(), states(1, 1)
    pairs = pairs_of(keys, [[4]], torch.ones(1, 1, dtype=torch.bool))
    collated = Collated(pairs, reaches=[REACHES])
    near, far = keys[:, 0], keys[:, 0] + 0.9 * states(1, seed=5)
    sure = torch.full((1, V), 0.02).scatter(1, torch.tensor([[8]]), 0.8).log()
    for state in near, far:
        for model in (sure, torch.full((1, V), 1 / V).log()):
            log_p, _ = step(layer, collated, state, model=model)
            best, own = model.amax().exp().item(), model[0, 4].exp().item()
            position = keys[0, 0].tolist(), 4, PAIRS, 0.0
            copied = plain_read(state[0].tolist(), [position], best).get(4, 0.0)
            expected = (1 - copied) * own + copied
            assert log_p[0, 4].exp().item() == pytest.approx(expected, abs=1e-4)
    assert step(layer, collated, near, model=sure)[0].argmax() == 4
    assert torch.equal(step(layer, collated, far, model=sure)[0], sure)
    assert step(layer, collated, far)[0].argmax() == 4


@torch.no_grad()
@pytest.mark.parametrize("compiled", [True, False])
def test_a_word_that_the_model_finds_less_likely_now_is_further_away(compiled: bool) -> None:
    """Two positions, equally near: one word is as likely as it was there, the other is not."""
    layer, doubtful = NearestPositions(), Reach(0.9, 0.1, doubt=0.4)
    key = states(1, 1)
    codes = codes_of(key.expand(1, 2, D)[0], torch.tensor([0.5, 0.9]))[None]
    pairs = pairs_of(key.expand(1, 2, D), [[4, 5]], torch.ones(1, 2, dtype=torch.bool))
    collated = Collated(replace(pairs, codes=codes), reaches=[SentenceReach((doubtful,), SESSION)])
    ready = layer.ready(collated, BASE, "nearest", compiled)
    model = torch.full((1, V), 0.0125).scatter(1, torch.tensor([[4, 5]]), 0.0)
    model[0, 4:6] = torch.tensor([0.5, 0.4])
    log_p, _ = step(layer, collated, key[0], ready, model.log())
    own, kept = rotate(key[0, 0]), directions(codes[0, :1, :-1])[0]
    near = max(0.0, 2 - 2 * (own @ kept).item())
    far = near + 0.4 * (0.9 - 0.4)
    powers = [math.exp(-distance / 0.1) for distance in (near, far)]
    share = 1 - near / 0.9 / (1 - SURE * 0.5)
    for word, power, model_own in zip((4, 5), powers, (0.5, 0.4), strict=True):
        expected = (1 - share) * model_own + share * power / sum(powers)
        assert log_p[0, word].exp().item() == pytest.approx(expected, abs=2e-3)
    assert powers[1] < powers[0] / 5


@torch.no_grad()
def test_what_was_copied_counts_against_copying_it_again() -> None:
    penalised = Reach(0.9, 0.3, penalty=0.5)
    layer = NearestPositions()
    keys = states(1, 2)
    pairs = pairs_of(keys, [[4, 5]], torch.ones(1, 2, dtype=torch.bool))
    collated = Collated(pairs=pairs, reaches=[SentenceReach((penalised,), SESSION)])
    first, ready = step(layer, collated, keys[:, 0])
    again, _ = step(layer, collated, keys[:, 0], ready)
    covered = ready.coverage[0].tolist()
    expected = plain_read(
        keys[0, 0].tolist(),
        [(keys[0, p].tolist(), 4 + p, penalised, covered[p]) for p in range(2)],
    )
    share = sum(expected.values())
    assert again[0, 4] < first[0, 4]
    assert again[0, 4].exp().item() == pytest.approx((1 - share) / V + expected[4], abs=1e-4)
    moved = ready.reordered(torch.tensor([0]))
    assert torch.equal(moved.coverage, ready.coverage)


def both_ways(collated: Collated, rows: Tensor) -> tuple[PoolReady, PoolReady]:
    """What is ready for compiled code, and for torch."""
    layer = NearestPositions()
    ways = [layer.ready(collated, BASE, "nearest", way) for way in (True, False)]
    by_code, by_torch = (ready.rows(rows) for ready in ways if ready is not None)
    assert by_code.packed is not None and by_torch.packed is None
    return by_code, by_torch


@torch.no_grad()
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [48, 7])
def test_compiled_code_reads_what_torch_reads(seed: int, size: int) -> None:
    """Ragged pairs and sessions, rows in any order, penalties, and sentences without positions."""
    drawn = torch.Generator().manual_seed(seed)
    sentences, pairs, session = 4, 150, 9
    hiddens = torch.randn(sentences, pairs, size, generator=drawn)
    mask = torch.arange(pairs) < torch.tensor([150, 3, 0, 70])[:, None]
    recent_mask = torch.arange(session) < torch.tensor([0, 9, 0, 4])[:, None]
    ids = torch.randint(1, 6, (sentences, pairs), generator=drawn)
    certain = torch.rand(sentences * (session + pairs), generator=drawn)
    keys = codes_of(
        torch.randn(sentences * session, size, generator=drawn), certain[: sentences * session]
    )
    recent = Recent(keys.view(sentences, session, -1), ids[:, :session], recent_mask)
    penalty = 0.4 if seed % 2 else 0.0
    doubt = 0.3 if seed > 2 else 0.0
    own = (Reach(1.2, 0.3, penalty, doubt), Reach(0.9, 0.4, penalty, doubt))
    reaches = [SentenceReach(own, Reach(0.8, 0.2, penalty, doubt / 2))] * sentences
    layer = NearestPositions()
    codes = codes_of(hiddens.flatten(0, 1), certain[sentences * session :])
    codes = codes.view(sentences, pairs, -1)
    of_two = replace(pairs_of(hiddens, ids.tolist(), mask), pair=ids % 2, codes=codes)
    collated = Collated(of_two, histories={"nearest": recent}, reaches=reaches)
    rows = torch.tensor([0, 0, 0, 1, 1, 2, 3, 3, 0])
    by_code, by_torch = both_ways(collated, rows)
    shares = list[float]()
    for step_number in range(3):
        state = hiddens[rows, step_number] + 0.5 * torch.randn(len(rows), size, generator=drawn)
        at = StepState(rows, state, state)
        read, other = (reading_of(layer, at, way) for way in (by_code, by_torch))
        assert read.words is not None and other.words is not None
        torch.testing.assert_close(read.openness, other.openness, atol=2e-4, rtol=0)
        dense = [
            torch.zeros(len(rows), 6).scatter_add_(1, one.words.ids, one.weights)
            for one in (read, other)
            if one.words is not None
        ]
        torch.testing.assert_close(*dense, atol=5e-4, rtol=0)
        torch.testing.assert_close(read.ready.coverage, other.ready.coverage, atol=1e-3, rtol=0)
        shares += read.openness.tolist()
        order = torch.tensor([1, 1, 0, 4, 3, 5, 7, 6, 8])
        by_code, by_torch = (one.ready.reordered(order) for one in (read, other))
    assert max(shares) > 0.2 and min(shares) == 0.0


@torch.no_grad()
@pytest.mark.parametrize("has_columns", [False, True])
def test_one_call_reads_narrows_and_mixes_as_torch_does(has_columns: bool) -> None:
    layer, drawn = NearestPositions(), torch.Generator().manual_seed(4)
    hiddens = states(2, 30, seed=5)
    ids = torch.randint(FIRST, V, (2, 30), generator=drawn)
    mask = torch.ones(2, 30, dtype=torch.bool)
    own = (Reach(1.2, 0.3, doubt=0.3), Reach(0.9, 0.4, doubt=0.1))
    codes = codes_of(hiddens.flatten(0, 1), torch.rand(60, generator=drawn)).view(2, 30, -1)
    pairs = replace(pairs_of(hiddens, ids.tolist(), mask), pair=ids % 2, codes=codes)
    collated = Collated(pairs, reaches=[SentenceReach(own, Reach(0.8, 0.2))] * 2)
    rows = torch.tensor([0, 0, 1, 1, 1])
    columns = Columns.build(torch.arange(FIRST, V), V) if has_columns else None
    state = hiddens[rows, :5].diagonal().T + 0.3 * torch.randn(5, D, generator=drawn)
    step = StepState(rows, state, state, columns)
    model = (torch.randn(5, V, generator=drawn) * 3).log_softmax(-1)
    by_code, by_torch = (
        layer.mix(step, model.clone(), layer.fuse(step, state, way)[1])
        for way in both_ways(collated, rows)
    )
    assert (by_code[0] - model).abs().max() > 0.1
    likely = by_torch[0] > -60
    torch.testing.assert_close(by_code[0][likely], by_torch[0][likely], atol=2e-3, rtol=1e-3)
    torch.testing.assert_close(by_code[1].openness, by_torch[1].openness, atol=2e-4, rtol=0)


@torch.no_grad()
def test_what_compiled_code_would_misread_is_refused() -> None:
    layer, keys = NearestPositions(), states(2, 3)
    mask = torch.ones(2, 3, dtype=torch.bool)
    pairs = pairs_of(keys, [[4, 5, 6], [4, 5, 6]], mask)
    collated = Collated(pairs, reaches=[REACHES, REACHES])
    ready = layer.ready(collated, BASE, "nearest")
    assert ready is not None and ready.packed is not None
    packed = ready.packed
    sentence, coverage = torch.arange(2), torch.zeros(2, 0)
    for wrong in (
        (keys[:, 0].double(), sentence, coverage),
        (keys[:1, 0], sentence, coverage),
        (keys[:, 0, :20], sentence, coverage),
        (keys[:, 0], sentence.int(), coverage),
        (keys[:, 0], sentence, torch.zeros(2, 2)),
    ):
        with pytest.raises(ValueError, match="wanted"):
            packed.read(*wrong)
    log_probs = torch.zeros(2, V)
    for misread in (
        (log_probs.double(), keys[:, 0], sentence, coverage),
        (log_probs, keys[:1, 0], sentence, coverage),
        (log_probs, keys[:, 0], sentence[:1], coverage),
        (log_probs, keys[:, 0], sentence, torch.zeros(2, 2)),
        (log_probs.T.contiguous().T, keys[:, 0], sentence, coverage),
    ):
        with pytest.raises(ValueError, match="wanted"):
            packed.mix_(*misread, None, SURE, FULL)


@torch.no_grad()
@pytest.mark.parametrize("penalty", [0.0, 0.4])
def test_a_session_that_grows_is_read_as_torch_reads_it(
    monkeypatch: pytest.MonkeyPatch, penalty: float
) -> None:
    """Its panels are packed once; what was collated before stays what it was."""
    monkeypatch.setattr("tmnmt.layers.nearest.MOST_POSITIONS", 700)
    layer, drawn = NearestPositions(), torch.Generator().manual_seed(2)
    document, reach = SessionPositions(D), Reach(1.0, 0.2, penalty)
    pairs = pairs_of(states(1, 5, seed=9), [[1, 2, 3, 4, 5]], torch.ones(1, 5, dtype=torch.bool))
    rows, former = torch.zeros(3, dtype=torch.int64), None
    for size in (3, 61, 200, 400, 30, 1, 300, 90, 700, 5):
        keys = torch.randn(size, D, generator=drawn)
        document.write(keys, torch.randint(0, V, (size,), generator=drawn))
        recent = collate_recent([document])
        collated = Collated(
            pairs, histories={"nearest": recent}, reaches=[SentenceReach((PAIRS,), reach)]
        )
        by_code, by_torch = both_ways(collated, rows)
        state = keys[[0, size // 2, size - 1]] + 0.4 * states(3, seed=size)
        at = StepState(rows, state, state)
        if former is not None:  # it was read before by the same states
            former_ready, former_at, former_words = former
            again = reading_of(layer, former_at, former_ready)
            assert again.words is not None and torch.equal(again.words.ids, former_words)
        read, other = (reading_of(layer, at, way) for way in (by_code, by_torch))
        assert read.words is not None and other.words is not None
        torch.testing.assert_close(read.openness, other.openness, atol=2e-4, rtol=0)
        assert read.positions is not None and other.positions is not None
        assert torch.equal(read.positions[:, 0], other.positions[:, 0])
        assert torch.equal(read.words.ids[:, 0], other.words.ids[:, 0])
        former = by_code, at, read.words.ids


@torch.no_grad()
@pytest.mark.parametrize("words", [5, 16, 8001])
def test_compiled_code_narrows_shares_as_torch_does(words: int) -> None:
    spread = torch.tensor([0.0, 1.0, 6.0, 40.0]).repeat(5)[:, None]
    log_probs = (spread * torch.randn(20, words)).log_softmax(-1)
    logits = torch.cat([torch.tensor([-torch.inf, 13.8, -9.0, 0.0]), torch.randn(16) * 4])
    narrow = narrow_shares(log_probs, logits, SURE, FULL)
    expected = narrowed(logits, log_probs.amax(-1))
    assert torch.equal(narrow.isinf(), expected.isinf()) and narrow.isinf().any()
    torch.testing.assert_close(narrow.sigmoid(), expected.sigmoid(), atol=1e-5, rtol=0)


def test_a_session_keeps_its_newest_positions() -> None:
    positions = SessionPositions(D)
    for start in range(0, 12_000, 1000):
        positions.write(states(1000, seed=start), torch.arange(start, start + 1000))
    assert len(positions) == MOST_POSITIONS
    assert positions.ids.tolist() == list(range(12_000 - MOST_POSITIONS, 12_000))
    other = SessionPositions(D)
    assert collate_recent([other, None]) is None
    other.write(states(2), torch.tensor([7, 8]))
    recent = collate_recent([None, other])
    assert recent is not None
    assert recent.mask.tolist() == [[False, False], [True, True]]
    assert recent.ids[1].tolist() == [7, 8]
    assert torch.equal(recent.codes[1, :, :-1], encode(states(2)))
    assert not recent.codes[1, :, -1].any()  # nobody knows how likely the words were
