"""What compiled code would misread is refused, and addresses are taken in one module."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import tmnmt
from tmnmt.compiled import kernels
from tmnmt.engine.beam_search import continuations
from tmnmt.layers.mixing import mix_copy
from tmnmt.layers.view import first_of

PACKAGE = Path(tmnmt.__file__).parent


def test_one_module_takes_the_addresses_of_tensors() -> None:
    others = [
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != Path(kernels.__file__)
        and re.search(r"data_ptr|compiled import (?:.*\b)?steps\b", path.read_text("utf-8"))
    ]
    assert others == []


def test_words_that_are_not_int64_are_refused() -> None:
    with pytest.raises(ValueError, match=r"words: torch\.int32 \[2, 3\].*wanted: torch\.int64"):
        first_of(torch.zeros(2, 3, dtype=torch.int32))


def test_continuations_of_doubles_are_refused_or_made_by_torch() -> None:
    log_probs = torch.randn(4, 30).log_softmax(-1)
    with pytest.raises(ValueError, match=r"scores: torch\.float64"):
        continuations(torch.zeros(2, 2).double(), log_probs, 4)
    with pytest.raises(ValueError, match="log probabilities"):
        continuations(torch.zeros(3, 2), log_probs, 4)
    by_torch = continuations(torch.zeros(2, 2).double(), log_probs.double(), 4)
    by_code = continuations(torch.zeros(2, 2), log_probs, 4)
    assert torch.equal(by_torch.columns, by_code.columns)


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("q", lambda q, ids, first, logit: (q.double(), ids, first, logit)),
        ("words", lambda q, ids, first, logit: (q, ids.int(), first, logit)),
        ("first positions", lambda q, ids, first, logit: (q, ids, first[:2], logit)),
        ("the gate's logit", lambda q, ids, first, logit: (q, ids, first, logit[:1])),
    ],
)
def test_words_to_be_mixed_are_looked_at(what: str, change: object) -> None:
    assert callable(change)
    ids = torch.randint(0, 9, (3, 4))
    given = torch.rand(3, 4), ids, first_of(ids), torch.zeros(3)
    log_gen = torch.randn(3, 9).log_softmax(-1)
    with torch.no_grad(), pytest.raises(ValueError, match=f"^{what}: "):
        mix_copy(log_gen.clone(), *change(*given))


def test_an_array_is_refused_of_another_type_shape_or_layout() -> None:
    x = torch.zeros(3, 4)
    kernels.Array("x", x, torch.float32, 3, 4)
    for wrong in (x.double(), x[:2], x.t().contiguous().t(), x[:, ::2]):
        with pytest.raises(ValueError, match=r"^x: .* wanted: torch\.float32"):
            kernels.Array("x", wrong, torch.float32, 3, 4)


def test_positions_behind_the_room_are_refused() -> None:
    seen, origin = torch.zeros(4, 1, 2, 16), torch.zeros(4, 2, dtype=torch.int64)
    qkv = torch.randn(2, 24)
    kernels.look_back(qkv, seen, origin, 3, 0, 2)
    with pytest.raises(ValueError, match="no room for position 4 among 4"):
        kernels.look_back(qkv, seen, origin, 4, 0, 2)
