"""Arrays for compiled code by their addresses: to take a dozen arrays apart at every call takes 10 microseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from tmnmt.index.kernels.compiling import compiled

Int64 = NDArray[np.int64]


def addresses(arrays: Iterable[NDArray[Any]]) -> Int64:
    """(arrays, 3): address, length, and items of a row. The caller keeps the arrays, which must be contiguous."""
    return np.array(
        [(array.ctypes.data, array.shape[0], array.shape[-1]) for array in arrays], np.int64
    )


def _pointer(_: Any, address: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.inttoptr(given[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), code


_pointer_to = cast(Callable[[int], Any], intrinsic(_pointer))
carray = cast(Any, numba).carray


@compiled
def array_at(table: Int64, i: int, kind: Any) -> Any:
    """The i-th array of `addresses`, which has items of the type `kind` in one dimension."""
    return carray(_pointer_to(table[i, 0]), (table[i, 1],), kind)


@compiled
def rows_at(table: Int64, i: int, kind: Any) -> Any:
    """The same in two dimensions."""
    return carray(_pointer_to(table[i, 0]), (table[i, 1], table[i, 2]), kind)
