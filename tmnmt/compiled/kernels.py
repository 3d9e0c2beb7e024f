"""Compiled code as functions of tensors: the one place that looks at the type, shape, layout and
device of what compiled code reads, and that takes addresses. What a tensor would be misread as is a
ValueError here.

torch is the default for every operation; where `can_be_compiled` says so, these do the same, and
tests hold the one to the other.

    R: rows (sentences x beam)    N: sentences    P: positions of a sentence    V: words
    d: numbers of a state    l: numbers of a context    K: positions that are read

Weights are looked at once, when an `Array` or a `Table` is made of them, which keeps them. What a
step reads is looked at at every call, and what a function makes itself is not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tmnmt.compiled import steps

FOUR, PANEL = 4, 64  # as `integers.py` has them, which imports numba
NEAREST, BLOCKS, OF_BLOCK = 8, 2, 10  # as `nearest.py` has them
LANES, ROWS = 16, 4  # as `vectors.py` and `attention.py` have them
FACTS = 5  # of a row that has read positions
_FP32, _INT64, _INT8, _UINT8, _BOOL = (
    torch.float32,
    torch.int64,
    torch.int8,
    torch.uint8,
    torch.bool,
)
_SUMS = 4 * 6 * PANEL  # bytes of the sums of the rows that are multiplied together


def can_be_compiled(x: Tensor) -> bool:
    """Whether compiled code can do what is done with x: in fp32 on a CPU, without gradients."""
    return x.is_cpu and x.dtype == _FP32 and not torch.is_grad_enabled()


def _at(what: str, x: Tensor, dtype: torch.dtype, shape: tuple[int, ...]) -> int:
    """The address of x. Raises ValueError for a tensor of another type, shape, layout or device."""
    if x.dtype is not dtype or x.shape != shape or not x.is_contiguous() or not x.is_cpu:
        allowed = f"{dtype} {[*shape]}, contiguous, on the CPU"
        shown = f"{x.dtype} {[*x.shape]} of strides {[*x.stride()]} on {x.device}"
        raise ValueError(f"{what}: {shown}; wanted: {allowed}")
    return x.data_ptr()


class Array:
    """A tensor that is looked at once. It is kept, and so is its address."""

    def __init__(self, what: str, x: Tensor, dtype: torch.dtype, *shape: int) -> None:
        """Raises ValueError for a tensor of another type, shape, layout or device."""
        self.tensor = x.detach()
        self.address = _at(what, self.tensor, dtype, shape)

    @classmethod
    def of(cls, what: str, x: Tensor, dtype: torch.dtype = _FP32) -> Array:
        """Of any shape; laid out anew where it is not contiguous."""
        x = x.contiguous()
        return cls(what, x, dtype, *x.shape)

    def behind(self, items: int) -> int:
        """The address of what stands behind so many numbers."""
        return self.address + items * self.tensor.element_size()


class Table(NamedTuple):
    """Sizes and addresses, in the order in which compiled code reads them."""

    numbers: Tensor  # int64
    kept: tuple[object, ...]  # what stands at the addresses

    @classmethod
    def of(cls, sizes: Iterable[int], arrays: Iterable[Array | None]) -> Table:
        """0 is the address of None."""
        kept = tuple(arrays)
        addresses = [0 if x is None else x.address for x in kept]
        return cls(torch.tensor([*sizes, *addresses], dtype=_INT64), kept)

    @property
    def address(self) -> int:
        return self.numbers.data_ptr()


# what models say


def log_softmax_(logits: Tensor) -> None:
    """Over logits (R, V), in their place."""
    rows, words = logits.shape
    steps.log_softmax(_at("logits", logits, _FP32, (rows, words)), rows, words)


def best_words(scores: Tensor, log_probs: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """The `width` best extensions of each sentence: scores (n, b), log_probs (n b, V) -> scores,
    rows and words, (n, width) each."""
    (n, beam), words = scores.shape, log_probs.shape[-1]
    best = torch.empty(n, width)
    rows, ids = torch.empty(n, width, dtype=_INT64), torch.empty(n, width, dtype=_INT64)
    steps.best_words(
        _at("scores", scores, _FP32, (n, beam)),
        _at("log probabilities", log_probs, _FP32, (n * beam, words)),
        n,
        beam,
        words,
        width,
        best.data_ptr(),
        rows.data_ptr(),
        ids.data_ptr(),
    )
    return best, rows, ids


def mix_words_(
    log_gen: Tensor,
    q: Tensor,
    ids: Tensor,
    first: Tensor,
    logit: Tensor,
    columns: Array | None = None,
) -> None:
    """As `layers.mixing.mix_copy`: q, ids and first (R, P) and logit (R,) into log p (R, V).
    columns: of every word its column; None: it is its number."""
    (rows, words), length = log_gen.shape, q.shape[-1]
    room = torch.empty(4, -(-length // 16) * 16)
    steps.mix_words(
        rows,
        words,
        length,
        _at("log probabilities", log_gen, _FP32, (rows, words)),
        _at("q", q.contiguous(), _FP32, (rows, length)),
        _at("words", ids.contiguous(), _INT64, (rows, length)),
        _at("first positions", first.contiguous(), _INT64, (rows, length)),
        _at("the gate's logit", logit.contiguous(), _FP32, (rows,)),
        0 if columns is None else columns.address,
        room.data_ptr(),
    )


def narrow_shares(log_probs: Tensor, logits: Tensor, sure: float, full: float) -> Tensor:
    """As `layers.nearest.narrowed`, of log p (R, V) and the shares' logits (R,)."""
    rows, words = log_probs.shape
    narrowed = torch.empty(rows)
    steps.narrow_shares(
        rows,
        words,
        _at("log probabilities", log_probs, _FP32, (rows, words)),
        _at("logits", logits, _FP32, (rows,)),
        sure,
        full,
        narrowed.data_ptr(),
    )
    return narrowed


def first_positions(ids: Tensor) -> Tensor:
    """(N, P) int64: the first position of the row (N, P) that holds the same word."""
    rows, positions = ids.shape
    room = torch.empty(2 << positions.bit_length(), dtype=_INT64)
    first = torch.empty(rows, positions, dtype=_INT64)
    given = _at("words", ids, _INT64, (rows, positions)), room.numel(), room.data_ptr()
    steps.first_positions(rows, positions, *given, first.data_ptr())
    return first


# products in int8


def room_of_product(rows: int, inputs: int) -> int:
    """Bytes of the room that a product of so many rows wants."""
    return _SUMS + 4 * rows + 2 * rows * (inputs + FOUR)


class Int8Panels:
    """A matrix of whole numbers as compiled code multiplies it, with the scale and bias of every
    output."""

    def __init__(self, whole: Tensor, rows: Tensor, scales: Tensor, bias: Tensor) -> None:
        """whole (all, n) int8, of which the outputs are rows (m,); scales and bias (all,). Raises
        ValueError for other types and shapes, and for rows that are not there."""
        every, self.inputs = whole.shape
        (self.outputs,) = rows.shape
        weights = _at("weights", whole, _INT8, (every, self.inputs))
        chosen = _at("outputs", rows, _INT64, (self.outputs,))
        if self.outputs and not 0 <= int(rows.min()) <= int(rows.max()) < every:
            raise ValueError(f"outputs that the {every:,} rows of weights have not")
        size = -(-self.outputs // PANEL) * PANEL
        panels = torch.empty(size * (-(-self.inputs // FOUR) * FOUR), dtype=_INT8)
        begins = torch.empty(size, dtype=torch.int32)
        addresses = panels.data_ptr(), begins.data_ptr()
        steps.pack_panels(weights, chosen, self.outputs, self.inputs, *addresses)
        both = [
            Array(what, x[rows].contiguous(), _FP32, self.outputs)
            for what, x in (("scales", scales), ("bias", bias))
        ]
        self._kept = panels, begins, *both
        self.addresses = *addresses, *(x.address for x in both)

    def product(self, x: Tensor, relu: bool, in_bytes: bool) -> Tensor:
        """x (..., n) in fp32 -> (..., m)."""
        rows = x.numel() // self.inputs
        result = torch.empty(*x.shape[:-1], self.outputs)
        room = torch.empty(room_of_product(rows, self.inputs), dtype=_UINT8)
        steps.product_int8(
            _at("inputs", x, _FP32, (*x.shape[:-1], self.inputs)),
            rows,
            self.inputs,
            *self.addresses,
            self.outputs,
            relu,
            room.data_ptr(),
            result.data_ptr(),
            in_bytes,
        )
        return result


# a decoder's step


class NormWeights:
    """The weights of a layer norm (d,), looked at once."""

    def __init__(self, weight: Tensor, bias: Tensor, least: float) -> None:
        (size,) = weight.shape
        self.weight = Array("a norm's weight", weight, _FP32, size)
        self.bias = Array("a norm's bias", bias, _FP32, size)
        self.least = least

    @classmethod
    def of(cls, norm: nn.LayerNorm) -> NormWeights:
        return cls(norm.weight, norm.bias, norm.eps)

    def __call__(self, x: Tensor, added: Tensor | None, out: Tensor) -> Tensor:
        """x (R, d) += added (R, d); their layer norm, in `out`, which may be x."""
        rows, d = x.shape
        steps.norm_of_sum(
            _at("a sum", x, _FP32, (rows, d)),
            0 if added is None else _at("what is added", added, _FP32, (rows, d)),
            self.weight.address,
            self.bias.address,
            self.least,
            rows,
            d,
            _at("a norm", out, _FP32, (rows, d)),
        )
        return out

    def normed(self, x: Tensor) -> Tensor:
        """The layer norm of x (R, d)."""
        return self(x, None, torch.empty_like(x))


def level_of_sum_(x: Tensor, added: Tensor, least: float) -> Tensor:
    """x (R, d) += added (R, d); the sum at a mean square of 1 (R, d)."""
    rows, d = x.shape
    level = torch.empty(rows, d)
    addresses = _at("a sum", x, _FP32, (rows, d)), _at("what is added", added, _FP32, (rows, d))
    steps.level_of_sum(*addresses, least, rows, d, level.data_ptr())
    return level


def embed(prev: Tensor, table: Array, position: Tensor, scale: float) -> Tensor:
    """Scaled embeddings of words (R,) of a table (V, d), plus a position (d,): (R, d). The words
    are not compared with the table's size."""
    rows, d = prev.shape[0], table.tensor.shape[1]
    result = torch.empty(rows, d)
    addresses = (
        _at("words", prev, _INT64, (rows,)),
        table.address,
        _at("position", position, _FP32, (d,)),
    )
    steps.embed(*addresses, scale, rows, d, result.data_ptr())
    return result


def look_back(
    qkv: Tensor, seen: Tensor, origin: Tensor, length: int, layer: int, heads: int
) -> Tensor:
    """Self-attention of one position: (R, 3 d) -> (R, d). seen (capacity, layers, room, 2 d), to
    which this position is added behind `length` others, and origin (capacity, R) of these."""
    (capacity, layers, room, two), rows = seen.shape, qkv.shape[0]
    d = two // 2
    _check_room(length, capacity)
    result, energy, places = _attention_room(rows, d, length + 1)
    steps.look_back(
        _at("queries, keys and values", qkv, _FP32, (rows, 3 * d)),
        _at("what was seen", seen, _FP32, (capacity, layers, room, two)),
        _at("its origin", origin, _INT64, (capacity, rows)),
        length,
        layer,
        layers,
        room,
        rows,
        heads,
        d,
        energy.data_ptr(),
        places.data_ptr(),
        result.data_ptr(),
    )
    return result


def update_cell_(candidate_gate: Tensor, cell: Tensor) -> Tensor:
    """The cell (R, d) after one more word, in its place, by candidate and gate (R, 2 d): its
    positive part (R, d)."""
    rows, d = cell.shape
    result = torch.empty(rows, d)
    addresses = _at("candidate and gate", candidate_gate, _FP32, (rows, 2 * d))
    steps.update_cell(addresses, _at("cells", cell, _FP32, (rows, d)), rows, d, result.data_ptr())
    return result


class Sources:
    """What the cross-attention of every layer reads, looked at once: keys and values, each (B, H,
    S, k), in fp32 and laid out alike with their numbers side by side; lengths (B,) int64."""

    def __init__(self, keys: Sequence[Tensor], values: Sequence[Tensor], lengths: Tensor) -> None:
        """Raises ValueError where they are not laid out alike in the CPU's memory."""
        self.shape, self.strides = keys[0].shape, keys[0].stride()
        for each in (*keys, *values):
            alike = each.stride() == self.strides and each.shape == self.shape
            if not alike or self.strides[-1] != 1 or not each.is_cpu or each.dtype is not _FP32:
                raise ValueError("keys and values are not laid out alike in fp32 on the CPU")
        both = [[k.data_ptr(), v.data_ptr()] for k, v in zip(keys, values, strict=True)]
        self.addresses = torch.tensor(both)
        self.lengths = Array("lengths", lengths, _INT64, self.shape[0])
        self.kept = *keys, *values

    def look_at(self, q: Tensor, layer: int, heads: int) -> Tensor:
        """Attention over the source: (R, d) -> (R, d); the rows of a sentence stand side by
        side."""
        (rows, d), (sentences, _, length, _) = q.shape, self.shape
        self.check_rows(rows)
        result, energy, places = _attention_room(rows, d, length)
        keys, values = self.addresses[layer].tolist()
        steps.look_at_source(
            _at("queries", q, _FP32, (rows, d)),
            keys,
            values,
            self.lengths.address,
            *self.strides[:3],
            sentences,
            rows,
            heads,
            d,
            energy.data_ptr(),
            places.data_ptr(),
            result.data_ptr(),
        )
        return result

    def check_rows(self, rows: int) -> None:
        """Raises ValueError where the rows cannot be as many for every sentence."""
        sentences = self.shape[0]
        if sentences and rows % sentences:
            raise ValueError(f"{rows} rows for {sentences} sentences")


class Spans(NamedTuple):
    """Where the positions of sentences stand that lie one after another."""

    starts: Tensor  # (B + 1,) int64: a sentence has those from its start to the next
    lengths: Tensor  # (B,) int64: how many of these are real
    longest: int

    @classmethod
    def of_rows(cls, sentences: int, positions: int, lengths: Tensor | None = None) -> Spans:
        """Of sentences that have so many positions each, padded."""
        starts = torch.arange(0, (sentences + 1) * positions, max(positions, 1))[: sentences + 1]
        if lengths is None:
            lengths = torch.full((sentences,), positions)
        return cls(starts, lengths, positions)

    @classmethod
    def of_lengths(cls, lengths: Tensor, longest: int) -> Spans:
        """Of sentences that have nothing but real positions."""
        starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        return cls(starts, lengths, longest)


def attend_within(qkv: Tensor, spans: Spans, heads: int, causal: bool = False) -> Tensor:
    """Self-attention of all positions (M, 3 d), queries, keys and values, each among those of its
    sentence: (M, d). causal: each sees itself and those before it alone."""
    rows, width = qkv.shape
    d = width // 3
    queries = _at("queries, keys and values", qkv, _FP32, (rows, 3 * d))
    addresses = (
        queries + 4 * d,
        queries + 8 * d,
        _at("lengths", spans.lengths, _INT64, spans.lengths.shape),
    )
    strides = 0, d // heads, 3 * d
    return _attended(
        (queries, 3 * d), rows, d, heads, spans, spans.longest, addresses, strides, causal
    )


def attend_to_source(q: Tensor, spans: Spans, source: Sources, layer: int, heads: int) -> Tensor:
    """Attention of all positions (M, d) to the source of their sentence: (M, d)."""
    rows, d = q.shape
    if source.shape[0] != len(spans.lengths):
        raise ValueError(f"{len(spans.lengths)} targets of {source.shape[0]} sources")
    keys, values = source.addresses[layer].tolist()
    queries = _at("queries", q, _FP32, (rows, d)), d
    addresses = keys, values, source.lengths.address
    longest = source.shape[2]
    return _attended(queries, rows, d, heads, spans, longest, addresses, source.strides[:3], False)


def _attended(
    queries: tuple[int, int],
    rows: int,
    d: int,
    heads: int,
    spans: Spans,
    longest: int,
    addresses: tuple[int, int, int],
    strides: Sequence[int],
    causal: bool,
) -> Tensor:
    """queries: their address, and numbers between two. addresses: of keys, values and lengths.
    strides: of sentences, heads and positions."""
    sentences = spans.lengths.shape[0]
    starts = _at("starts", spans.starts, _INT64, (sentences + 1,))
    if rows != int(spans.starts[-1]):
        raise ValueError(f"{rows} positions; wanted: {int(spans.starts[-1])}")
    room = torch.empty((2 * d // heads + ROWS) * (-(-longest // LANES) * LANES))
    result = torch.empty(rows, d)
    steps.attend(
        sentences,
        heads,
        d,
        *queries,
        starts,
        *addresses,
        *strides,
        causal,
        room.data_ptr(),
        result.data_ptr(),
    )
    return result


def run_cells_(candidate_gate: Tensor) -> Tensor:
    """A student's cell along known words, of candidates and gates (B, T, 2 d), which are
    overwritten: its positive parts (B, T, d)."""
    sentences, positions, width = candidate_gate.shape
    result = torch.empty(sentences, positions, width // 2)
    addresses = _at("candidate and gate", candidate_gate, _FP32, (sentences, positions, width))
    steps.run_cells(addresses, sentences, positions, width // 2, result.data_ptr())
    return result


class StepPlan:
    """A whole step of a decoder whose products are in int8, looked at once."""

    def __init__(
        self,
        parts: Sequence[tuple[int, NormWeights, Int8Panels, bool, Int8Panels | None]],
        embedding: Array,
        scale: float,
        heads: int,
        norms_first: bool,
    ) -> None:
        """parts: of every part its kind, its norm, its first product, of which only what is
        positive stays or all, and its last one."""
        plan = list[int]()
        for kind, norm, first, relu, last in parts:
            plan += kind, norm.weight.address, norm.bias.address
            plan += *first.addresses, first.inputs, first.outputs, relu
            plan += (*last.addresses, last.inputs, last.outputs, 0) if last is not None else [0] * 7
        self._kept = parts
        self._plan = torch.tensor(plan)
        self._embedding, self._scale, self._heads = embedding, scale, heads
        self._norms_first, self._least = norms_first, parts[0][1].least
        self._widest = max(first.outputs for _, _, first, _, _ in parts)
        self._layers = len(parts) // 3
        self._at = self._plan.data_ptr(), len(parts)

    def step(
        self,
        prev: Tensor,
        position: Tensor,
        moving: Tensor,
        origin: Tensor | None,
        length: int,
        source: Sources,
        least_level: float,
    ) -> tuple[Tensor, Tensor]:
        """After the words prev (R,) at a position (d,): what the last part reads (R, d), and the
        sum behind it (R, d) at a mean square of 1.

        moving: cells (layers, R, d), which change, where origin is None; else what `look_back` has
        seen of `length` positions, to which this one is added, with its origin (capacity, R)."""
        rows, d, layers = prev.shape[0], self._embedding.tensor.shape[1], self._layers
        source.check_rows(rows)
        seats = origin_at = 0
        if origin is None:
            state_at = _at("cells", moving, _FP32, (layers, rows, d))
        else:
            capacity, seats = moving.shape[0], moving.shape[2]
            _check_room(length, capacity)
            state_at = _at("what was seen", moving, _FP32, (capacity, layers, seats, 2 * d))
            origin_at = _at("its origin", origin, _INT64, (capacity, rows))
        sentences, _, sources, _ = source.shape
        longest, widest = max(sources, length + 1), self._widest
        size = 12 * longest + 4 * rows * (4 * d + 2 * widest) + room_of_product(rows, widest)
        room = torch.empty(size, dtype=_UINT8)
        read, level = torch.empty(rows, d), torch.empty(rows, d)
        steps.decoder_step(
            *self._at,
            _at("words", prev, _INT64, (rows,)),
            self._embedding.address,
            _at("position", position, _FP32, (d,)),
            self._scale,
            self._least,
            least_level,
            self._norms_first,
            state_at,
            origin_at,
            length,
            layers,
            seats,
            source.addresses.data_ptr(),
            source.lengths.address,
            *source.strides[:3],
            sentences,
            longest,
            rows,
            self._heads,
            d,
            widest,
            room.data_ptr(),
            read.data_ptr(),
            level.data_ptr(),
        )
        return read, level


def read_out(norm: NormWeights, output: Int8Panels, hidden: Tensor) -> Tensor:
    """log p (R, m) of states (R, d): their norm, the product of the read-out, and its softmax, in
    one call."""
    rows, d = hidden.shape
    if d != output.inputs:
        raise ValueError(f"states of {d} numbers; wanted: {output.inputs}")
    result = torch.empty(rows, output.outputs)
    room = torch.empty(4 * rows * d + room_of_product(rows, d), dtype=_UINT8)
    steps.read_out(
        rows,
        d,
        _at("states", hidden, _FP32, (rows, norm.weight.tensor.shape[0])),
        norm.weight.address,
        norm.bias.address,
        norm.least,
        *output.addresses,
        output.outputs,
        room.data_ptr(),
        result.data_ptr(),
    )
    return result


def _check_room(length: int, capacity: int) -> None:
    if not 0 <= length < capacity:
        raise ValueError(f"no room for position {length} among {capacity}")


def _attention_room(rows: int, d: int, positions: int) -> tuple[Tensor, Tensor, Tensor]:
    """(R, d) for what is read; for energies and places of the positions that are looked at."""
    return torch.empty(rows, d), torch.empty(positions), torch.empty(positions, dtype=_INT64)


# what memory layers read


def read_positions(
    table: Table,
    sizes: tuple[int, int],
    query: Tensor,
    prev: Tensor,
    last: Tensor | None,
    coverage: Tensor | None,
    hidden: Tensor,
    context: Tensor,
    state_size: int,
    energies: tuple[float, float, float, float],
) -> tuple[Tensor, Tensor, Tensor]:
    """As `trained_layers.reading.read_positions`, of positions as its table has them: q (R, P),
    what is blended (R, D) and facts (R, FACTS). sizes: P and D."""
    (rows, asked), (length, numbers) = query.shape, sizes
    table_at = _at("a table", table.numbers, _INT64, (len(table.numbers),))
    if asked != int(table.numbers[1]):
        raise ValueError(f"queries of {asked} numbers; wanted: {int(table.numbers[1])}")
    q, blended = torch.empty(rows, length), torch.empty(rows, numbers)
    facts, room = torch.empty(rows, FACTS), torch.empty(rows + 3, length)
    former = 0 if last is None else last.shape[1]
    steps.read_positions(
        rows,
        table_at,
        state_size,
        context.shape[-1],
        _at("queries", query, _FP32, (rows, asked)),
        _at("words", prev, _INT64, (rows,)),
        0 if last is None else _at("what was read last", last, _FP32, (rows, former)),
        former,
        0 if coverage is None else _at("coverage", coverage, _FP32, (rows, length, 1)),
        _at("states", hidden, _FP32, (rows, hidden.shape[-1])),
        _at("contexts", context, _FP32, (rows, context.shape[-1])),
        *energies,
        room.data_ptr(),
        q.data_ptr(),
        blended.data_ptr(),
        facts.data_ptr(),
    )
    return q, blended, facts


def blend_positions(sentence: Tensor, q: Tensor, values: Tensor) -> Tensor:
    """The sums (R, d) of the sentences' values (N, P, d) by q (R, P); sentence (R,)."""
    (rows, length), (sentences, _, size) = q.shape, values.shape
    blended, room = torch.empty(rows, size), torch.empty(length, dtype=_INT64)
    steps.blend_positions(
        rows,
        length,
        size,
        _at("rows", sentence, _INT64, (rows,)),
        _at("q", q, _FP32, (rows, length)),
        _at("values", values, _FP32, (sentences, length, size)),
        room.data_ptr(),
        blended.data_ptr(),
    )
    return blended


def cover(coverage: Tensor, logits: Tensor, q: Tensor) -> Tensor:
    """coverage (R, P, 1) + sigmoid(logits (R,)) q (R, P)"""
    rows, length = q.shape
    covered = torch.empty(rows, length, 1)
    steps.cover(
        rows,
        length,
        _at("logits", logits, _FP32, (rows,)),
        _at("q", q, _FP32, (rows, length)),
        _at("coverage", coverage, _FP32, (rows, length, 1)),
        covered.data_ptr(),
    )
    return covered


def copy_logits(
    before: Tensor,
    blended: Tensor,
    facts: Tensor,
    state_size: int,
    signs: Tensor | None,
    out: Tensor,
    bias: float,
    trust: tuple[float, float] | None,
) -> Tensor:
    """The copy gate's logits (R,) as `trained_layers.tm` says, of before (R, w), what was blended
    (R, D) and its facts (R, FACTS), by the gate's weights: signs (w, FACTS), out (1, w)."""
    (rows, width), numbers = before.shape, blended.shape[-1]
    logits = torch.empty(rows)
    doubt, steep = trust or (0.0, 0.0)
    steps.copy_logits(
        rows,
        width,
        numbers,
        state_size,
        _at("a gate's sums", before, _FP32, (rows, width)),
        _at("what was blended", blended, _FP32, (rows, numbers)),
        _at("facts", facts, _FP32, (rows, FACTS)),
        0 if signs is None else _at("a gate's signs", signs, _FP32, tuple(signs.shape)),
        _at("a gate's weights", out, _FP32, (1, width)),
        bias,
        trust is not None,
        doubt,
        steep,
        logits.data_ptr(),
    )
    return logits


def recall_slots(
    slots: Table,
    asked: Table,
    count: int,
    prev: Tensor,
    context: Tensor,
    hidden: Tensor,
    query: Tensor,
    steep: float,
    room: Tensor,
) -> tuple[Tensor, Tensor]:
    """P_m (R, C) and the logit of lambda (R,) of a shallow session cache of `count` slots, as
    `trained_layers.cache` says."""
    rows = prev.shape[0]
    q, logits = torch.empty(rows, count), torch.empty(rows)
    steps.recall_slots(
        rows,
        slots.address,
        asked.address,
        _at("words", prev, _INT64, (rows,)),
        _at("contexts", context, _FP32, (rows, context.shape[-1])),
        _at("states", hidden, _FP32, (rows, hidden.shape[-1])),
        _at("queries", query, _FP32, (rows, query.shape[-1])),
        steep,
        _at("room", room, _FP32, (room.numel(),)),
        q.data_ptr(),
        logits.data_ptr(),
    )
    return q, logits


# directions in four bits, and the positions nearest to a state


def encode_directions(states: Tensor, signs: Tensor, bounds: Tensor) -> Tensor:
    """codes (n, d / 2) uint8 of states (n, d); signs (d,), bounds (15,) between levels."""
    count, size = states.shape
    codes, room = torch.empty(count, size // 2, dtype=_UINT8), torch.empty(size)
    steps.encode_directions(
        count,
        size,
        _at("states", states, _FP32, (count, size)),
        _at("signs", signs, _FP32, (size,)),
        _at("bounds", bounds, _FP32, (15,)),
        room.data_ptr(),
        codes.data_ptr(),
    )
    return codes


class NearestArena:
    """Room for so many positions in panels: arrays of their weights, what their sums begin with,
    scales, words and places, one behind another."""

    def __init__(self, size: int, room: int) -> None:
        """size: d, even. room: positions, rounded up to whole panels."""
        self.size, self.room = size, -(-room // PANEL) * PANEL
        self.widths = -(-size // FOUR) * FOUR, 4, 4, 8, 8
        self._bytes = torch.empty(self.room * sum(self.widths), dtype=_UINT8)
        addresses, address = list[int](), self._bytes.data_ptr()
        for width in self.widths:
            addresses.append(address)
            address += self.room * width
        self._addresses = addresses

    def add(
        self, begin: int, codes: Tensor, ids: Tensor, mask: Tensor, levels: Tensor, unit: float
    ) -> None:
        """Codes (n, d / 2 + 1) and their words (n,) behind the first `begin` positions; mask (n,):
        those that are positions."""
        (count,) = ids.shape
        if not 0 <= begin <= begin + count <= self.room:
            raise ValueError(f"{count} positions behind {begin}; there is room for {self.room}")
        steps.pack_nearest(
            count,
            self.size,
            _at("codes", codes, _UINT8, (count, self.size // 2 + 1)),
            _at("mask", mask, _BOOL, (count,)),
            _at("words", ids, _INT64, (count,)),
            _at("levels", levels, _INT8, (16,)),
            unit,
            begin,
            *self._addresses,
        )

    def take_over(self, other: NearestArena, begin: int, end: int) -> None:
        """The positions of another one from `begin`, where a panel begins, to `end`."""
        count = -(-(end - begin) // PANEL) * PANEL
        to = there = 0
        for width in self.widths:
            rows = other._bytes[there + begin * width : there + (begin + count) * width]
            self._bytes[to : to + count * width] = rows
            to, there = to + self.room * width, there + other.room * width

    def block(
        self, first: int, end: int, has_places: bool, numbers: Tensor, base: int
    ) -> tuple[int, ...]:
        """The positions from `first` to `end` as a row of a table of blocks: numbers (P, 4) of
        every place, or of all places alike; base: where the first place stands among all of a
        sentence. What was passed must be kept as long as the table."""
        if numbers.dtype is not _FP32 or numbers.shape[1:] != (4,) or numbers.stride(1) != 1:
            raise ValueError(f"numbers: {numbers.dtype} {[*numbers.shape]}; wanted: fp32 [P, 4]")
        begin = first // PANEL * PANEL
        *starts, places = [
            address + begin * width
            for address, width in zip(self._addresses, self.widths, strict=True)
        ]
        addresses = numbers.data_ptr(), numbers.stride(0)
        return *starts, places if has_places else 0, *addresses, first - begin, end - first, base


class NearestRead(NamedTuple):
    """What rows have read of the nearest positions; q is 0 of those that are fewer than K."""

    q: Tensor  # (R, K)
    words: Tensor  # (R, K) int64
    first: Tensor  # (R, K) int64: the first of them that holds the same word
    places: Tensor  # (R, K) int64: where they stand among the P
    logit: Tensor  # (R,) of the share; -inf: nothing is near


class NearestTable:
    """The blocks of N sentences, looked at once: as `NearestArena.block` gives them, BLOCKS at most
    of a sentence."""

    def __init__(
        self, rows: Sequence[Sequence[Sequence[int]]], positions: int, most: int, signs: Tensor
    ) -> None:
        """positions: P of all blocks. most: positions that are multiplied of a sentence. signs
        (d,)."""
        (self.size,) = signs.shape
        self.positions, self.most = positions, most
        self._signs = Array("signs", signs, _FP32, self.size)
        self._bias = torch.zeros(most)
        nothing = (0,) * OF_BLOCK
        table = [
            [block or nothing for block in (*row, *[nothing] * (BLOCKS - len(row)))] for row in rows
        ]
        self._blocks = torch.tensor(table, dtype=_INT64)
        self._at = (
            self._blocks.data_ptr(),
            self.size,
            positions,
            most,
            self._signs.address,
            self._bias.data_ptr(),
        )

    def read(self, hidden: Tensor, sentence: Tensor, coverage: Tensor) -> NearestRead:
        """By states (R, d) of rows of the sentences (R,); what was read is added to coverage (R,
        P), or (R, 0) where nothing is penalised. Nothing is doubted. Raises ValueError for other
        types and sizes."""
        rows = hidden.shape[0]
        result, room = self._rooms(rows)
        steps.read_nearest(
            rows,
            *self._at,
            *self._queries(hidden, sentence, coverage, rows),
            room.data_ptr(),
            *(x.data_ptr() for x in result),
            0,
            0,
            0,
        )
        return result

    def mix_(
        self,
        log_probs: Tensor,
        hidden: Tensor,
        sentence: Tensor,
        coverage: Tensor,
        columns: Array | None,
        sure: float,
        full: float,
    ) -> NearestRead:
        """The same with doubt, mixed into log p (R, V) by shares that are narrowed by `sure` and at
        most `full`. columns: as of `mix_words_`."""
        rows, words = log_probs.shape
        result, room = self._rooms(rows)
        steps.mix_nearest(
            rows,
            *self._at,
            *self._queries(hidden, sentence, coverage, rows),
            room.data_ptr(),
            *(x.data_ptr() for x in result),
            words,
            _at("log probabilities", log_probs, _FP32, (rows, words)),
            0 if columns is None else columns.address,
            sure,
            full,
        )
        return result

    def _queries(
        self, hidden: Tensor, sentence: Tensor, coverage: Tensor, rows: int
    ) -> tuple[int, int, int]:
        state_at = _at("states", hidden, _FP32, (rows, self.size))
        is_covered = coverage.shape[-1] > 0
        shape = rows, self.positions if is_covered else 0
        covered_at = _at("coverage", coverage, _FP32, shape)
        return state_at, _at("rows", sentence, _INT64, (rows,)), covered_at if is_covered else 0

    def _rooms(self, rows: int) -> tuple[NearestRead, Tensor]:
        shape = rows, NEAREST
        size = 4 * rows * (self.size + self.most) + 16 * NEAREST + room_of_product(rows, self.size)
        words, first, places = (torch.empty(shape, dtype=_INT64) for _ in range(3))
        q, logits = torch.empty(shape), torch.empty(rows)
        return NearestRead(q, words, first, places, logits), torch.empty(size, dtype=_UINT8)


def version_of(weights: Iterable[Tensor]) -> tuple[object, ...]:
    """What changes where one of these tensors is another one, or was written to."""
    return tuple((weight.data_ptr(), weight._version) for weight in weights)
