"""What a memory layer is that has learned parameters, which lie in memory.safetensors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Generic, Self

from torch import Tensor

from tmnmt.layers.contract import MemoryLayer, R


class LearnedLayer(MemoryLayer[R], Generic[R]):
    """A memory layer that a model has only once it was trained.

    kind: a dataclass that says which variant of the layer it is; it is stored beside the
    parameters.
    stored_alone: modules of the layer whose parameters stand in the file by their own names,
    without that of the layer."""

    kind: Any
    stored_alone: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abstractmethod
    def of_kind(cls, sizes: tuple[int, int, int], kind: Mapping[str, Any]) -> Self:
        """A layer that was stored, with numbers that say nothing yet.

        sizes: how many numbers a base's contexts, hidden states and words have.
        kind: the stored kind, by the names of its fields.

        Raises TypeError and ValueError for a kind that is not there."""

    def reads(self, mode: str, has_history: bool) -> bool:
        """Whether the layer does something in a mode.

        mode: the mode.
        has_history: whether documents have slots."""
        return True

    def parameters_read(self, mode: str) -> Iterator[tuple[str, Tensor]]:
        """The parameters, by their names, that have a part in what the layer does in a mode.

        mode: the mode."""
        yield from self.state_dict().items()

    def kind_read(self, mode: str) -> dict[str, Any]:
        """The fields of its kind that have a part in what the layer does in a mode, by their names.

        mode: the mode."""
        return asdict(self.kind)
