"""What a memory layer is: a trained part of the decoder that reads something while it writes.

A step of the decoder goes through three hooks, and a layer overrides what it uses of them:

    inject   into the decoder's state before it moves: networks that are bound to the backbone
             (`models/injected.py`), since all that layers keep depends on the state
    fuse     into the hidden state, before the read-out: deep session cache, TM fusion
    mix      into the log probabilities: shallow session cache, TM copy, kNN

All layers match with the raw state and context; what one has fused, the next one blends into, but
does not match with. What a layer reads goes through stages, each a type: collated (`Collated`,
sentences side by side), ready (once a batch: all that no step changes, and what every row has read
so far), read (`Read`, at one step).

R: rows (sentences x beam)   N: sentences   P: positions of pairs, slots or neighbours
V: vocabulary   l, d: as in models/base
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

from torch import Tensor, nn

from tmnmt.config.options import Mode
from tmnmt.layers.collated import Pairs, Recent, Slots
from tmnmt.layers.mixing import mix_copy
from tmnmt.layers.neighbours import NeighbourQuery, Voters
from tmnmt.layers.reach import SentenceReach
from tmnmt.layers.traced import LayerTrace, TracedSource
from tmnmt.layers.words import Embed
from tmnmt.models.base import Columns


@dataclass(frozen=True)
class Collated:
    """All that the sentences of a batch read; None: nothing of that kind."""

    pairs: Pairs | None = None
    slots: Slots | None = None
    recent: Recent | None = None  # positions of confirmed segments
    neighbours: NeighbourQuery | None = None  # further positions beside the pairs
    voters: Voters | None = None  # neighbours whose words are mixed in
    # how every sentence reads the nearest positions, which are not read without it
    reaches: Sequence[SentenceReach] = ()

    @property
    def search(self) -> NeighbourQuery | None:
        """What is asked of the whole memory at every step."""
        return self.voters.search if self.voters is not None else self.neighbours


class StepState(NamedTuple):
    """Where a step stands, before any layer has changed it."""

    prev: Tensor  # (R,) int64 y_{t-1}
    hidden: Tensor  # (R, d) s_t
    context: Tensor  # (R, l) c_t
    columns: Columns | None = None  # of log p; None: a column for every word

    def rows(self, index: Tensor) -> StepState:
        """The rows `index` (R',) in that order."""
        prev, hidden, context = (part[index] for part in self[:3])
        return StepState(prev, hidden, context, self.columns)


class BeamState(Protocol):
    """What is ready for a batch: it follows the rows of the beam."""

    def rows(self, index: Tensor) -> Self:
        """The rows `index` (R',) in that order."""

    def reordered(self, index: Tensor) -> Self:
        """The same, of an `index` (R,) where every row takes the place of one of its own
        sentence."""


R = TypeVar("R", bound=BeamState)


class Words(NamedTuple):
    """Words that are mixed into the probabilities, by the weights with which they were read."""

    ids: Tensor  # (R, P)
    first: Tensor  # (R, P) where each word stands first
    logit: Tensor  # (R,) of the gate: lambda, zeta, or w


@dataclass(frozen=True)
class LayerOutput(Generic[R]):
    """What a layer read at a step."""

    ready: R  # for the next step
    weights: Tensor  # (R, P) P_m, q, or p_knn
    gate: Tensor | None = None  # (R, d) or (R, 1) of what was fused; None: nothing was
    words: Words | None = None  # what is to be mixed in; None: nothing
    # (R, k) where the last k of the weights stand: neighbours in the datastore, or the positions of
    # a pool, of which no other has a weight
    positions: Tensor | None = None

    def rows(self, index: Tensor) -> LayerOutput[R]:
        """The same of the rows `index` alone."""
        gate, words, positions = self.gate, self.words, self.positions
        return LayerOutput(
            self.ready.rows(index),
            self.weights[index],
            gate[index] if gate is not None else None,
            Words(*(part[index] for part in words)) if words is not None else None,
            positions[index] if positions is not None else None,
        )

    @property
    def openness(self) -> Tensor:
        """(R,) how far the gate of mixing is open, else that of fusing, as the mean over elements;
        0 of a layer that only reads."""
        if self.words is not None:
            return self.words.logit.sigmoid()
        if self.gate is not None:
            return self.gate.mean(-1)
        return self.weights.new_zeros(len(self.weights))


class MemoryLayer(nn.Module, ABC, Generic[R]):
    """One memory of the decoder. `is_learned`: whether it has parameters, so that a model has it
    only once it was trained. `kind`: a dataclass that says which variant of the layer a learned one
    is; it is stored beside the parameters. `modes`: those that a model can serve by having it."""

    is_learned: ClassVar[bool] = False
    kind: Any = None
    modes: tuple[Mode, ...] = ()

    @classmethod
    def of_kind(cls, sizes: tuple[int, int, int], kind: Mapping[str, Any]) -> Self:
        """A layer that was stored with such a kind, with numbers that say nothing yet; `sizes`: of
        a base's contexts, hidden states and words. Raises TypeError and ValueError for a kind that
        is not there."""
        return cls()

    def outputs(self, mode: Mode, has_cache: bool = True) -> Collection[str]:
        """What the layer does in this mode, in words that `ready` knows; nothing where it does not
        read. `has_cache`: whether there is a session cache."""
        return ("read",)

    def parameters_read(self, mode: Mode) -> Iterator[tuple[str, Tensor]]:
        """The parameters, by their names, that have a part in what it does in this mode."""
        yield from self.state_dict().items()

    def kind_read(self, mode: Mode) -> dict[str, Any]:
        """What of its kind has a part in what it does in this mode."""
        return {} if self.kind is None else asdict(self.kind)

    @classmethod
    def traced_sources(
        cls, name: str, trace: LayerTrace, collated: Collated, sentence: int, word: int
    ) -> list[TracedSource]:
        """What the layer, registered by this name, did at a step of a sentence of the batch, where
        this word was written: told apart by what it read, in the order in which that was mixed
        in."""
        return [TracedSource(name, name, "memory", trace)]

    @abstractmethod
    def ready(self, collated: Collated, embed: Embed, outputs: Collection[str]) -> R | None:
        """All that no step changes, once a batch; None where it has nothing to read, or does not
        know the `outputs` that are asked for."""

    @abstractmethod
    def fuse(self, step: StepState, hidden: Tensor, ready: R) -> tuple[Tensor, LayerOutput[R]]:
        """The layer reads, by the raw state; h' (R, d) is what becomes of h (R, d), `hidden`
        itself where nothing is blended in."""

    def mix(
        self, step: StepState, log_probs: Tensor, reading: LayerOutput[R]
    ) -> tuple[Tensor, LayerOutput[R]]:
        """log p' (R, V) of the layers' log p (R, V) before it: the words that were read are mixed
        in, where there are any. Without gradients it is written in place of log p. A layer that
        reads by what those before it say does so now, and gives all that it has read."""
        if reading.words is None:
            return log_probs, reading
        return mix_copy(log_probs, reading.weights, *reading.words, step.columns), reading
