"""A backbone with a network beside it, which is read before every move of the decoder's state.

What is injected moves the state, and with it every key, slot and link that the decoder makes. So a
network is bound to its base once, when its model folder is opened, and whatever reads that backbone
reads the network."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from tmnmt.models.base import E, Inject, Injectable, S
from tmnmt.models.decoding import check_int8, for_decoding
from tmnmt.models.weights import fill, packed, unpacked, without_numbers
from tmnmt.registry import Registry

Embed = Callable[[Tensor], Tensor]
FORMAT = "1"  # of the file of a network
# what can be beside a base, by the names of the networks
NETWORKS: Registry[type[Injected]] = Registry("network", {})


class Sizes(NamedTuple):
    """The sizes of the backbone that a network is for.

    word: how many numbers the embedding of a word has.
    hidden: how many numbers a hidden state has, d.
    context: how many numbers a context has, l.
    annotation: how many numbers an encoder's state has.
    update: how many numbers the state's update takes in."""

    word: int
    hidden: int
    context: int
    annotation: int
    update: int

    @classmethod
    def build(cls, base: Injectable) -> Sizes:
        """The sizes of a backbone.

        base: the backbone."""
        return cls(
            base.word_size,
            base.hidden_size,
            base.context_size,
            base.annotation_size,
            base.update_size,
        )


class Network(nn.Module):
    """What can be beside a base.

    kind: a dataclass that says which network it is; its values are a `form` and sizes."""

    kind: Any


class Injected(Injectable[E, S]):
    """A base with a network beside it. All but what is injected is the base's.

    name: what the network is called, in messages, in the options that turn its reading on and off,
    and in the model folder (`NAME.safetensors`)."""

    name: ClassVar[str]

    def __init__(self, base: Injectable[Any, S], network: Network) -> None:
        """base: the base.
        network: the network beside it."""
        super().__init__()
        self.base, self.network = base, network
        self.word_size, self.hidden_size, self.context_size, *_ = Sizes.build(base)
        *_, self.annotation_size, self.update_size = Sizes.build(base)
        self.vocab_size, self.shares_encoded = base.vocab_size, base.shares_encoded
        self.encoder_reads, self.reach = base.encoder_reads, base.reach

    @classmethod
    @abstractmethod
    def untrained(cls, kind: Mapping[str, Any], base: Injectable[Any, S]) -> Self:
        """A base with a network that has not learned.

        kind: the kind of the network: its `form` and its sizes, by their names.
        base: the base.

        Raises ValueError and TypeError for a kind that is not there."""

    @abstractmethod
    def for_decoding(self, base: Injectable[Any, S]) -> Injected[E, S]:
        """The same network with another base. It follows no change of the parameters.

        base: the same base as it decodes."""

    @abstractmethod
    def of_base(self, encoded: E) -> Any:
        """What the base reads of an encoded batch.

        encoded: the batch, as `encode` gives it."""

    @abstractmethod
    def injecting(self, encoded: E) -> Inject | None:
        """What the network adds at every step of an encoded batch; None where that is nothing.

        encoded: the batch, as `encode` gives it."""

    def _together(self, encoded: E, extra: Inject | None) -> Inject | None:
        inject = self.injecting(encoded)
        if inject is None or extra is None:
            return inject or extra
        return lambda prev, state, context: (
            inject(prev, state, context) + extra(prev, state, context)
        )

    def annotations(self, encoded: E) -> Tensor:
        return self.base.annotations(self.of_base(encoded))

    def start(self, encoded: E) -> S:
        return self.base.start(self.of_base(encoded))

    def reordered(self, state: S, rows: Tensor) -> S:
        return self.base.reordered(state, rows)

    def step(
        self, prev: Tensor, state: S, encoded: E, inject: Inject | None = None
    ) -> tuple[S, Tensor, Tensor]:
        return self.base.step(prev, state, self.of_base(encoded), self._together(encoded, inject))

    def embed(self, ids: Tensor) -> Tensor:
        return self.base.embed(ids)

    def readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        return self.base.readout(prev, hidden, context)

    def forced(
        self, encoded: E, tgt: Tensor, inject: Inject | None = None
    ) -> tuple[Tensor, Tensor]:
        return self.base.forced(self.of_base(encoded), tgt, self._together(encoded, inject))

    def alphas(self, encoded: E, tgt: Tensor, inject: Inject | None = None) -> Tensor:
        return self.base.alphas(self.of_base(encoded), tgt, self._together(encoded, inject))


def packed_network(network: Network, base: str) -> bytes:
    """The file of a network.

    network: the network.
    base: the hash of the base that it has learned with."""
    tensors = {name: value.cpu().contiguous() for name, value in network.state_dict().items()}
    notes = {"format": FORMAT, "kind": json.dumps(asdict(network.kind)), "base": base}
    return packed(tensors, notes)


def with_stored_network(
    content: bytes, binding: type[Injected], base: Injectable, base_hash: str
) -> Injected:
    """A base with the network of a file, which is on the CPU.

    content: the content of the file.
    binding: the class that binds such a network to a base.
    base: the base.
    base_hash: its hash.

    Raises ValueError for another format or base, and what safetensors and torch raise for
    damage."""
    tensors, notes = unpacked(content)
    if notes.get("format") != FORMAT:
        raise ValueError(f"format {notes.get('format')!r}, this version reads {FORMAT}")
    if notes.get("base") != base_hash:
        raise ValueError(f"it has learned with the base {notes.get('base')}, this is {base_hash}")
    kind: dict[str, Any] = json.loads(notes["kind"])
    sizes = [size for name, size in kind.items() if name != "form"]
    if any(type(size) is not int or size < 1 for size in sizes):
        raise ValueError(f"sizes of its kind are no whole numbers above 0: {kind}")
    with without_numbers():
        network = binding.untrained(kind, base).network
    fill(network, tensors)
    return binding(base, network)


@for_decoding.register(Injected)
def _with_fast_base(backbone: Injected, dtype: torch.dtype | None = None) -> Injected:
    check_int8(dtype, has_products=False)
    base = for_decoding(backbone.base, dtype)
    if not isinstance(base, Injectable):
        raise TypeError(f"{type(base).__name__} takes nothing into its state")
    return backbone.for_decoding(base)
