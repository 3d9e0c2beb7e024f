"""Weights as bytes: equal weights are equal bytes, and a module is built for them without being
initialised first.

The bytes are a safetensors file: eight bytes that say how long the header is, the header in JSON,
the numbers. A matrix of int8 has its scales, one an output, beside it as `NAME.scales`."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tmnmt.models.int8 import Int8Weight

M = TypeVar("M", bound=nn.Module)
SCALES = ".scales"  # behind the name of a matrix of int8
_SIZE_BYTES = 8  # of the header's length; the header is filled up to a multiple of it
_NOTES = "__metadata__"


def packed(tensors: Mapping[str, Tensor], notes: Mapping[str, str] | None = None) -> bytes:
    """A safetensors file. Its notes stand in order, because safetensors itself writes them in any.

    tensors: the tensors, by their names.
    notes: texts by their names, which are stored with them."""
    content = save(dict(tensors), dict(notes) if notes else None)
    if not notes:
        return content
    header, numbers = _header(content)
    ordered = {_NOTES: dict(sorted(notes.items()))} | {
        name: entry for name, entry in header.items() if name != _NOTES
    }
    header_bytes = json.dumps(ordered, ensure_ascii=False, separators=(",", ":")).encode()
    header_bytes += b" " * (-len(header_bytes) % _SIZE_BYTES)
    return len(header_bytes).to_bytes(_SIZE_BYTES, "little") + header_bytes + numbers


def unpacked(content: bytes) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors in fp32, in memory of their own, and the notes.

    content: the content of a safetensors file.

    Raises SafetensorError for what is no such file."""
    tensors = {name: tensor.to(torch.float32, copy=True) for name, tensor in load(content).items()}
    return tensors, _header(content)[0].get(_NOTES, {})


def packed_int8(weights: Mapping[str, Int8Weight]) -> dict[str, Tensor]:
    """Matrices of int8 as the tensors of a file.

    weights: the matrices, by their names."""
    whole = {name: weight.whole for name, weight in weights.items()}
    return whole | {name + SCALES: weight.scales for name, weight in weights.items()}


def unpacked_int8(content: bytes) -> tuple[dict[str, Tensor], dict[str, Int8Weight]]:
    """The tensors in fp32, in memory of their own, and those of them that are stored in int8, as
    they are stored.

    content: the content of a safetensors file.

    Raises SafetensorError for what is no such file. Raises ValueError for a matrix of int8 without
    its scales."""
    stored = load(content)
    int8 = {}
    for name in [name for name, tensor in stored.items() if tensor.dtype == torch.int8]:
        whole, scales = stored.pop(name), stored.pop(name + SCALES, torch.empty(0))
        if whole.dim() != 2 or scales.shape != whole.shape[:1]:
            raise ValueError(f"tensor {name} of int8 has no scale for each of its outputs")
        if not (scales.isfinite().all() and (scales >= 0).all()):
            raise ValueError(f"tensor {name}{SCALES} holds numbers that are no scales")
        int8[name] = Int8Weight(whole.clone(), scales.to(torch.float32, copy=True))
    tensors = {name: tensor.to(torch.float32, copy=True) for name, tensor in stored.items()}
    return tensors | {name: weight.exact() for name, weight in int8.items()}, int8


@contextmanager
def without_numbers() -> Iterator[None]:
    """Modules that are made within have sizes and no memory, whatever sizes are asked for, and
    nothing is drawn for them; `fill` gives them memory and numbers."""
    with torch.device("meta"), _NothingDrawn():
        yield


class _NothingDrawn(TorchFunctionMode):
    """`normal_` and `uniform_`, by which all of torch.nn is initialised, do nothing, and `eye` is
    as empty as the rest: for tensors without memory torch would load its compiler first, which
    takes seconds."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in ("normal_", "uniform_"):
            return args[0] if args else kwargs["tensor"]
        if func is torch.eye:
            return torch.empty(args[0], args[0])
        return func(*args, **kwargs)


def fill(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """Gives a module that was made `without_numbers` its weights.

    module: the module.
    weights: its weights, by their names.

    Raises ValueError naming a tensor that is missing, unknown, of another size or not finite."""
    expected = module.state_dict()
    for name in sorted(expected.keys() ^ weights.keys()):
        raise ValueError(f"tensor {name} is {'missing' if name in expected else 'unknown'}")
    for name, tensor in sorted(weights.items()):
        if tensor.shape != expected[name].shape:
            raise ValueError(
                f"tensor {name} is of size {list(tensor.shape)}, "
                f"wanted: {list(expected[name].shape)}"
            )
        if not tensor.isfinite().all():
            raise ValueError(f"tensor {name} holds numbers that are not finite")
    module.load_state_dict(weights, assign=True)


def reduced_copy(module: M, absent: Iterable[str]) -> M:
    """A copy of a module that shares all parameters but some, which it does not have: they are None
    there, so that their memory is free once the module is gone.

    module: the module.
    absent: the names of these parameters, as `named_parameters` has them."""
    result = copy.deepcopy(module, {id(x): x for x in module.state_dict(keep_vars=True).values()})
    for name in absent:
        owner, _, parameter = name.rpartition(".")
        result.get_submodule(owner).register_parameter(parameter, None)
    return result


def _header(content: bytes) -> tuple[dict[str, dict[str, str]], bytes]:
    end = _SIZE_BYTES + int.from_bytes(content[:_SIZE_BYTES], "little")
    header: dict[str, dict[str, str]] = json.loads(content[_SIZE_BYTES:end])
    return header, content[end:]
