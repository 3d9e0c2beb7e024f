"""The array at an address, for compiled code: an address is all that it is told of an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array


def _array(_: Any, address: Any, size: Any, kind: Any) -> Any:
    """The array of `size` items of the type `kind` that begins at `address`, in one dimension."""
    array_type = types.Array(kind.dtype, 1, "C")

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(array_type)(context, builder)
        bytes_an_item = context.get_constant(
            types.intp, context.get_abi_sizeof(context.get_data_type(array_type.dtype))
        )
        cast(Any, populate_array)(
            array,
            data=builder.inttoptr(arguments[0], array.data.type),
            shape=(arguments[1],),
            strides=(bytes_an_item,),
            itemsize=bytes_an_item,
            meminfo=None,
        )
        return array._getvalue()

    return array_type(types.int64, types.int64, kind), code


array_of = cast(Callable[[int, int, Any], Any], intrinsic(_array))
