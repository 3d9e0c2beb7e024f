"""How a backbone decodes: the same model in evaluation mode, in the form whose steps take the least
time. A kind that has such a form registers the function that makes it, beside its class."""

from __future__ import annotations

from functools import singledispatch

import torch

from tmnmt.errors import UsageError
from tmnmt.models.base import Backbone


@singledispatch
def for_decoding(backbone: Backbone, dtype: torch.dtype | None = None) -> Backbone:
    """The backbone as it decodes. It follows no change of the parameters.

    backbone: the backbone.
    dtype: in which its products are computed; None takes the parameters' own.

    Raises UsageError for int8 where there are no such products: of another kind than a Transformer
    or a student, or on a GPU."""
    check_int8(dtype, has_products=False)
    return backbone.eval()


def check_int8(dtype: torch.dtype | None, has_products: bool) -> None:
    """Raises UsageError for int8 where there are no such products.

    dtype: in which products are computed.
    has_products: whether there are products in int8."""
    if dtype == torch.int8 and not has_products:
        raise UsageError("precision int8 is for a Transformer or a student, on a CPU")
