"""What is compiled of the memory layers gives what the layers calculate by torch, which they do
where gradients are asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from random_layers import PAIRS, SCORES, D, V, cached, learned, pair, random_base
from stepping import beams, step
from torch import Tensor

from tmnmt.layers.collated import collate
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.contract import Collated, StepState
from tmnmt.layers.mixing import mix_copy
from tmnmt.layers.view import Positions, first_of
from tmnmt.models.base import Columns
from tmnmt.trained_layers.cache import CacheKind, SessionCache, Slots
from tmnmt.trained_layers.reading import Energies, read_positions
from tmnmt.trained_layers.tm import TMKind
from tmnmt.vocab import FIRST

JOINT = CacheKind(fusion="shallow", matching="joint", rank=6, signs=True, follows=True, empty=True)
ROWS_OF_TWO = torch.tensor([0] * 5 + [1] * 8)
KINDS = {
    "as it ships": (TMKind(), JOINT),
    "as in the papers": (
        TMKind(
            matching="full",
            coverage="plain",
            fusion_gate="scalar",
            gate_signs=False,
            preferences=False,
            pointer=False,
            words=False,
        ),
        CacheKind(fusion="shallow", matching="learned"),
    ),
    "identity": (
        TMKind(matching="identity", coverage="off", pointer=False),
        CacheKind(fusion="shallow", signs=True, empty=True),
    ),
    "signs alone": (TMKind(), replace(JOINT, empty=False, follows=False)),
}


def walked(memories: MemoryLayers, memory: Collated, mode: str) -> list[Tensor]:
    """log p of six steps of three rows a sentence, which change places."""
    made = torch.Generator().manual_seed(7)
    backbone = random_base(V, D)
    ready = beams(memories.ready(memory, backbone, mode), 3, 3)
    rows, log_probs = torch.arange(3).repeat_interleave(3), []
    for _ in range(6):
        prev = torch.randint(4, V, (9,), generator=made)
        hidden, context = (torch.randn(9, D, generator=made) for _ in range(2))
        log_p, ready, _ = step(memories, backbone, prev, hidden, context, ready, mode)
        log_probs.append(log_p.detach())
        chosen = 3 * rows + torch.randint(3, (9,), generator=made)
        ready = ready.reordered(chosen)
    return log_probs


@pytest.mark.parametrize("mode", ["copy", "fusion", "both"])
@pytest.mark.parametrize("name", KINDS)
def test_compiled_layers_are_those_of_torch(name: str, mode: str) -> None:
    """The second sentence has no pairs, the second document nothing behind it."""
    memories = learned(*KINDS[name])
    pairs = collate([PAIRS, [], [pair(9, 8)]], [SCORES, [], [0.6]])
    memory = Collated(pairs=pairs, histories={"cache": cached(3)})
    with torch.inference_mode():
        compiled = walked(memories, memory, mode)
    with torch.enable_grad():
        by_torch = walked(memories, memory, mode)
    for one, other in zip(compiled, by_torch, strict=True):
        # what gets less than 1e-9 of the attention gets nothing
        torch.testing.assert_close(one.exp(), other.exp(), atol=2e-8, rtol=5e-5)


def test_words_mixed_in() -> None:
    rows, words, positions = 5, 300, 37
    log_gen = torch.randn(rows, words).mul(5).log_softmax(-1)
    q = torch.rand(rows, positions).pow(9)
    q[:, 5] = 0.0
    q /= q.sum(1, keepdim=True)
    ids = torch.randint(4, 30, (rows, positions))
    first = (ids[:, :, None] == ids[:, None]).long().argmax(-1)
    logit = torch.tensor([0.0, 30.0, -30.0, -torch.inf, 2.0])
    compiled = mix_copy(log_gen.clone(), q, ids, first, logit)
    by_torch = mix_copy(log_gen.clone().requires_grad_(), q, ids, first, logit).detach()
    assert torch.equal(compiled[3], log_gen[3])
    torch.testing.assert_close(compiled.exp(), by_torch.exp(), atol=1e-6, rtol=1e-5)
    likely = by_torch > -60
    torch.testing.assert_close(compiled[likely], by_torch[likely], atol=2e-5, rtol=1e-5)


def test_words_mixed_into_the_columns_of_a_shortlist_come_as_into_all_words() -> None:
    """A word without a column gives its share to nobody: that of padding, which never comes."""
    rows, vocabulary, positions = 4, 90, 13
    columns = Columns.build(torch.arange(5, 80, 3), vocabulary)
    kept = columns.words
    every = torch.full((rows, vocabulary), -torch.inf)
    every[:, kept] = torch.randn(rows, len(kept)).log_softmax(-1)
    q = torch.rand(rows, positions).softmax(-1)
    ids = kept[torch.randint(FIRST, len(kept), (rows, positions))]
    ids[0, :2] = 6  # which has no column
    first, logit = first_of(ids), torch.tensor([0.0, 2.0, -torch.inf, -1.0])
    mixed = mix_copy(every.clone(), q, ids, first, logit)
    narrow = mix_copy(every[:, kept].contiguous(), q, ids, first, logit, columns)
    torch.testing.assert_close(narrow[:, FIRST:], mixed[:, kept[FIRST:]])
    learning = every[:, kept].contiguous().requires_grad_()
    by_torch = mix_copy(learning, q, ids, first, logit, columns).detach()
    likely = by_torch[:, FIRST:] > -60
    torch.testing.assert_close(
        narrow[:, FIRST:][likely], by_torch[:, FIRST:][likely], atol=2e-5, rtol=1e-5
    )


@pytest.mark.parametrize("numbers", [16, 48, 64, 10, 33])
@pytest.mark.parametrize("positions", [1, 4, 37])
@pytest.mark.parametrize("beam", [1, 2, 3, 5, 8, 13])
def test_rows_of_a_sentence_read_together(beam: int, positions: int, numbers: int) -> None:
    """As one product a sentence; the second sentence has a row fewer, the third none."""
    sentence = torch.arange(2).repeat_interleave(beam)[: 2 * beam - 1]
    rows, read = len(sentence), 2 * numbers + 70
    before = torch.randint(3, (3, positions))
    pairs = Positions(
        keys=torch.randn(3, positions, numbers) / numbers**0.5,
        ids=before,
        previous_ids=before,
        mask=torch.rand(3, positions) > 0.1,
        first=before,
        values=torch.randn(3, positions, read),
        worth=None,
        sentence=sentence,
    )
    at = StepState(torch.randint(3, (rows,)), torch.randn(rows, 7), torch.randn(rows, 7))
    query = 2 * torch.randn(rows, numbers)
    with torch.inference_mode():
        made = read_positions(pairs, at, query, Energies(follows=0.5))
    energy = torch.einsum("rl,rpl->rp", query, pairs.keys[sentence])
    energy += 0.5 * (before[sentence] == at.prev[:, None])
    q = energy.masked_fill(~pairs.mask[sentence], -torch.inf).softmax(-1).nan_to_num()
    torch.testing.assert_close(made.q, q, atol=2e-6, rtol=2e-5)
    blended = torch.einsum("rp,rpd->rd", q, pairs.values[sentence])
    torch.testing.assert_close(made.blended, blended, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("rank", [16, 48, 10])
@pytest.mark.parametrize("empty", [True, False])
def test_slots_of_sizes_that_fill_vectors(empty: bool, rank: int) -> None:
    kind = replace(JOINT, rank=rank, empty=empty)
    cache = SessionCache(32, 48, 20, kind)
    for weight in cache.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    documents, rows, slots = 2, 13, 70
    ids = torch.randint(4, 20, (documents, slots))
    mask = torch.rand(documents, slots) > 0.2
    keys = torch.randn(documents, slots, rank)
    held = Slots(keys, torch.empty(documents, slots, 0), ids, ids.roll(1, 1), mask)
    with torch.no_grad():
        ready = replace(cache.laid_out(held, torch.nn.Embedding(20, 20)), sentence=ROWS_OF_TWO)
    at = StepState(torch.randint(4, 20, (rows,)), torch.randn(rows, 48), torch.randn(rows, 32))
    with torch.inference_mode():
        compiled = cache.recall(at.prev, at.hidden, at.context, ready)
    with torch.enable_grad():
        by_torch = cache.recall(at.prev, at.hidden, at.context, ready)
    for one, other in zip(compiled, by_torch, strict=True):
        torch.testing.assert_close(one, other.detach(), atol=2e-5, rtol=2e-4)
