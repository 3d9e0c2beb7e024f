"""Products with weights in int8 give what NumPy gives of whole numbers, of sizes that are multiples
of a vector's numbers and of others, by every way in which a processor can multiply bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
import torch
from numba.extending import intrinsic

from tmnmt.compiled.integers import FOUR, HALVES, PANEL, TOGETHER, sums_of
from tmnmt.models.int8 import Int8Product, Int8Weight

SIZES = [(1, 1, 1), (1, 3, 5), (2, 30, 70), (3, 256, 64), (4, 64, 129), (7, 100, 128), (9, 48, 300)]


def matrices(rows: int, inputs: int, outputs: int, seed: int = 1) -> tuple[Any, Int8Weight, Any]:
    random = torch.Generator().manual_seed(seed)
    weight = Int8Weight(
        torch.randint(-127, 128, (outputs, inputs), dtype=torch.int8, generator=random),
        torch.rand(outputs, generator=random) / 100,
    )
    x = torch.randn(rows, inputs, generator=random) * torch.logspace(-3, 3, rows)[:, None]
    return x, weight, torch.randn(outputs, generator=random)


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SIZES)
@pytest.mark.parametrize("relu", [False, True])
def test_a_product_is_that_of_numbers_rounded_to_16_bits(
    rows: int, inputs: int, outputs: int, relu: bool
) -> None:
    x, weight, bias = matrices(rows, inputs, outputs)
    scales = x.double().abs().amax(1, keepdim=True) / (127 * 256)
    rounded = (x.double() / scales).round() * scales
    expected = rounded @ weight.exact().double().T + bias.double()
    expected = expected.relu() if relu else expected
    product = Int8Product.build(weight, bias, relu)(x)
    # a number half way between two may be rounded to either
    step = scales * weight.exact().abs().amax()
    assert ((product - expected).abs() <= 2 * step + 1e-5 * expected.abs() + 1e-6).all()


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SIZES)
@pytest.mark.parametrize("relu", [False, True])
def test_a_product_in_bytes_is_that_of_numbers_rounded_to_8_bits(
    rows: int, inputs: int, outputs: int, relu: bool
) -> None:
    x, weight, bias = matrices(rows, inputs, outputs)
    scales = x.double().abs().amax(1, keepdim=True) / 127
    rounded = (x.double() / scales).round() * scales
    expected = rounded @ weight.exact().double().T + bias.double()
    expected = expected.relu() if relu else expected
    in_bytes = replace(Int8Product.build(weight, bias, relu), in_bytes=True)
    product = in_bytes(x)
    # a number half way between two may be rounded to either
    step = scales * weight.exact().abs().amax()
    assert ((product - expected).abs() <= 2 * step + 1e-5 * expected.abs() + 1e-6).all()
    for row in range(rows):
        assert torch.equal(in_bytes(x[row : row + 1])[0], product[row])
    assert torch.equal(
        in_bytes(torch.zeros(2, inputs)), in_bytes(x.new_zeros(1, inputs)).expand(2, -1)
    )


def test_a_row_gives_the_same_whatever_stands_beside_it() -> None:
    x, weight, bias = matrices(23, 256, 200)
    product = Int8Product.build(weight, bias)
    together = product(x)
    for row in range(len(x)):
        assert torch.equal(product(x[row : row + 1])[0], together[row])
    assert torch.equal(product(x[5:].view(2, 9, 256)), together[5:].view(2, 9, 200))


def test_rows_of_zeros_and_no_rows_at_all() -> None:
    _, weight, bias = matrices(1, 30, 70)
    product = Int8Product.build(weight, bias)
    assert torch.equal(product(torch.zeros(2, 30)), bias.expand(2, 70))
    assert product(torch.zeros(2, 0, 30)).shape == (2, 0, 70)


def test_some_outputs_are_those_of_all() -> None:
    x, weight, bias = matrices(4, 64, 500)
    chosen = torch.tensor([3, 499, 0, 77])
    some = Int8Product.build(weight, bias, rows=chosen)(x)
    assert torch.equal(some, Int8Product.build(weight, bias)(x)[:, chosen])


@pytest.mark.parametrize("how", ["avx512vnni", "avx512bw", "plain"])
@pytest.mark.parametrize("rows", [1, HALVES, HALVES * TOGETHER])
def test_sums_are_exact_on_every_processor(how: str, rows: int) -> None:
    if how != "plain" and not llvm.get_host_cpu_features().get(how):
        pytest.skip(f"this processor has no {how}")
    fours, random = 9, np.random.default_rng(2)
    x = random.integers(0, 256, (rows, fours * FOUR), np.uint8)
    x[0], x[-1] = 255, 0
    weights = random.integers(-128, 128, (PANEL, fours * FOUR), np.int8)
    panel = weights.reshape(PANEL, fours, FOUR).transpose(1, 0, 2).copy().ravel()
    sums = random.integers(-1000, 1000, (rows, PANEL), np.int32)
    expected = sums + x.astype(np.int64) @ weights.astype(np.int64).T
    multiply: Any = intrinsic(sums_of(rows, how))

    @numba.njit
    def compiled(x: Any, panel: Any, sums: Any) -> None:
        multiply(x, 0, panel, 0, fours, sums, 0)

    flat = sums.ravel()
    compiled(x.ravel(), panel, flat)
    np.testing.assert_array_equal(flat.reshape(rows, PANEL), expected)


def test_what_compiled_code_would_misread_is_refused() -> None:
    _, weight, bias = matrices(1, 30, 70)
    for whole, scales in (
        (weight.whole.float(), weight.scales),
        (weight.whole[0], weight.scales),
        (weight.whole, weight.scales[1:]),
    ):
        with pytest.raises(ValueError, match="weights"):
            Int8Product.build(Int8Weight(whole, scales), bias)
    with pytest.raises(ValueError, match="outputs"):
        Int8Product.build(weight, bias, rows=torch.tensor([70]))
    with pytest.raises(ValueError, match="wanted"):
        Int8Product.build(weight, bias)(torch.zeros(2, 31))
