"""A step of a Transformer's or a student's decoder in one piece: all its layers, with products in
int8 (`integers.py`) and the small parts between them (`decoding.py`).

    R: rows    d: hidden size    f: the widest product's outputs    S: source length

The plan says what to do: a row of PLAN numbers for every part of a layer, in order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled import decoding
from tmnmt.compiled.addresses import array_of
from tmnmt.compiled.compiling import fast, part
from tmnmt.compiled.integers import multiply

SELF, CELL, SOURCE, FEED_FORWARD = range(4)  # kinds of a part
PRODUCT = 7  # numbers of a product: four addresses, inputs, outputs, whether negatives become 0
FIRST, LAST = 3, 3 + PRODUCT  # behind the kind and the norm's weight and bias
PLAN = 3 + 2 * PRODUCT  # numbers of a part; a last product without weights is none

_embed = part(decoding.embed)
_norm_of_sum = part(decoding.norm_of_sum)
_level_of_sum = part(decoding.level_of_sum)
_look_back = part(decoding.look_back)
_look_at_source = part(decoding.look_at_source)
_update_cell = part(decoding.update_cell)
_log_softmax = part(decoding.log_softmax)
Int64 = NDArray[np.int64]


@fast
def _multiplied(plan: Int64, offset: int, x_at: int, rows: int, room_at: int, out_at: int) -> None:
    """The product that stands in the plan at `offset`: (R, n) -> (R, m)."""
    inputs, outputs = plan[offset + 4], plan[offset + 5]
    multiply(
        array_of(x_at, rows * inputs, np.float32),
        rows,
        inputs,
        plan[offset],
        plan[offset + 1],
        plan[offset + 2],
        plan[offset + 3],
        outputs,
        plan[offset + 6],
        0,
        room_at,
        array_of(out_at, rows * outputs, np.float32),
    )


def decoder_step(
    plan_at: int,
    parts: int,
    prev_at: int,
    table_at: int,
    position_at: int,
    scale: float,
    epsilon: float,
    least_level: float,
    norms_first: int,
    state_at: int,
    origin_at: int,
    position: int,
    layers: int,
    seats: int,
    sources_at: int,
    lengths_at: int,
    of_sentence: int,
    of_head: int,
    of_position: int,
    sentences: int,
    longest: int,
    rows: int,
    heads: int,
    d: int,
    widest: int,
    room_at: int,
    context_at: int,
    level_at: int,
) -> int:
    """After the words prev (R,) at a position (d,): context (R, d), what the last part reads, and
    level (R, d), the sum behind it at a mean square of 1.

    state: cells (layers, R, d), which change, or what `look_back` has seen in `seats` rows, with
    its origin. sources (layers, 2): addresses of each layer's keys and values. longest: of the
    sources and of what was seen. room: 12 longest + 4 R (4 d + 2 f) bytes, then that of a product
    with f inputs."""
    plan = array_of(plan_at, parts * PLAN, np.int64)
    sources = array_of(sources_at, 2 * layers, np.int64)
    places_at = room_at
    energy_at = places_at + 8 * longest
    x_at = energy_at + 4 * longest
    read_at = x_at + 4 * rows * d
    added_at = read_at + 4 * rows * d
    inner_at = added_at + 4 * rows * d
    between_at = inner_at + 4 * rows * widest
    for_product_at = between_at + 4 * rows * widest
    _embed(prev_at, table_at, position_at, scale, rows, d, x_at)
    if not norms_first:
        read_at = x_at
    sum_at = 0
    for number in range(parts):
        row = number * PLAN
        layer = number // 3
        if norms_first:
            _norm_of_sum(x_at, sum_at, plan[row + 1], plan[row + 2], epsilon, rows, d, read_at)
        elif sum_at:
            previous_row = row - PLAN
            _norm_of_sum(
                x_at, sum_at, plan[previous_row + 1], plan[previous_row + 2], epsilon, rows, d, x_at
            )
        _multiplied(plan, row + FIRST, read_at, rows, for_product_at, inner_at)
        kind, result_at = plan[row], between_at
        if kind == SELF:
            _look_back(
                inner_at,
                state_at,
                origin_at,
                position,
                layer,
                layers,
                seats,
                rows,
                heads,
                d,
                energy_at,
                places_at,
                between_at,
            )
        elif kind == CELL:
            _update_cell(inner_at, state_at + 4 * layer * rows * d, rows, d, between_at)
        elif kind == SOURCE:
            _look_at_source(
                inner_at,
                sources[2 * layer],
                sources[2 * layer + 1],
                lengths_at,
                of_sentence,
                of_head,
                of_position,
                sentences,
                rows,
                heads,
                d,
                energy_at,
                places_at,
                between_at,
            )
        else:
            result_at = inner_at
        if plan[row + LAST]:
            _multiplied(plan, row + LAST, result_at, rows, for_product_at, added_at)
            sum_at = added_at
        else:
            sum_at = result_at
    context, last_inputs = (
        array_of(context_at, rows * d, np.float32),
        array_of(read_at, rows * d, np.float32),
    )
    for i in range(rows * d):
        context[i] = last_inputs[i]
    _level_of_sum(x_at, sum_at, least_level, rows, d, level_at)
    return 0


def read_out(
    rows: int,
    d: int,
    x_at: int,
    weight_at: int,
    bias_at: int,
    epsilon: float,
    weights_at: int,
    begins_at: int,
    scales_at: int,
    biases_at: int,
    outputs: int,
    room_at: int,
    out_at: int,
) -> int:
    """log p (R, m) of states x (R, d): their layer norm, the product, and the softmax of that.
    room: 4 R d bytes, then that of the product."""
    _norm_of_sum(x_at, 0, weight_at, bias_at, epsilon, rows, d, room_at)
    multiply(
        array_of(room_at, rows * d, np.float32),
        rows,
        d,
        weights_at,
        begins_at,
        scales_at,
        biases_at,
        outputs,
        0,
        0,
        room_at + 4 * rows * d,
        array_of(out_at, rows * outputs, np.float32),
    )
    _log_softmax(out_at, rows, outputs)
    return 0
