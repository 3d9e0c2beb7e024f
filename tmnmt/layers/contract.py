"""What a memory layer is: a part of the decoder that reads something while it writes.

A step of the decoder goes through two hooks, and a layer overrides what it uses of them:

    fuse     into the hidden state, before the read-out
    mix      into the log probabilities, after it

All layers read by the raw state and context; what one has fused, the next one blends into, but does
not read by. What is injected into the decoder's state before it moves belongs to the base
(`models/injected.py`), since all that layers keep depends on the state. What a layer reads goes
through stages, each a type: collated (`Collated`, sentences side by side), ready (once a batch: all
that no step changes, and what every row has read so far), and the output of one step.

A layer that keeps something of a document is a `HistoryLayer`; one that has learned parameters is a
`LearnedLayer` (`learned.py`).

R: rows (sentences x beam)   N: sentences   P: positions of pairs, slots or neighbours
V: vocabulary   l, d: as in models/base
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from tmnmt.config.options import ModelOptions
from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.collated import Pairs
from tmnmt.layers.mixing import mix_copy
from tmnmt.layers.reach import SentenceReach
from tmnmt.layers.traced import LayerTrace, TracedSource
from tmnmt.models.base import Backbone, Columns
from tmnmt.segments import Match


class MemorySearch(Protocol):
    """What is asked of the whole memory at every step, for the sentences of a batch."""

    def ids(self, positions: Tensor) -> Tensor:
        """The subwords at positions of the memory, PAD for a position of -1.

        positions: (k,) int64, the positions."""

    def place(self, position: int) -> tuple[int, int]:
        """The number of the pair that has a position, and which of the pair's subwords it is.

        position: the position in the whole memory."""

    def match(self, sentence: int, pair: int) -> Match:
        """A pair of the memory as a match of a sentence of the batch.

        sentence: the number of the sentence in the batch.
        pair: the number of the pair, as `place` gives it."""

    def counts(self, sentence: int) -> tuple[int, int]:
        """How many times neighbours were looked for, for a sentence of the batch, and how many were
        found.

        sentence: the number of the sentence in the batch."""


class NearDraft(NamedTuple):
    """Positions of the whole memory that are near to the states of a sentence's draft.

    keys: their codes and words, as if they were one pair.
    positions: (T,) int64, where each of them stands in the whole memory.
    search: what was asked, for all sentences that were asked together.
    sentence: the number of the sentence among these."""

    keys: PairKeys
    positions: Tensor
    search: MemorySearch
    sentence: int


@dataclass(frozen=True)
class Collated:
    """All that the sentences of a batch read; None where there is nothing of that kind.

    pairs: the retrieved pairs.
    histories: what layers keep of the sentences' documents, side by side, by the names of the
    layers.
    reaches: how every sentence reads the nearest positions, which are not read without it.
    search: finds something in the whole memory at every step."""

    pairs: Pairs | None = None
    histories: Mapping[str, Any] = field(default_factory=dict)
    reaches: Sequence[SentenceReach] = ()
    search: MemorySearch | None = None


class StepState(NamedTuple):
    """Where a step stands, before any layer has changed it.

    prev: (R,) int64, the words y_{t-1}.
    hidden: (R, d), the hidden states s_t.
    context: (R, l), the contexts c_t.
    columns: the columns of log p; None where every word has a column."""

    prev: Tensor
    hidden: Tensor
    context: Tensor
    columns: Columns | None = None

    def rows(self, index: Tensor) -> StepState:
        """These rows, in their order.

        index: (R',) int64, the numbers of the rows."""
        prev, hidden, context = (part[index] for part in self[:3])
        return StepState(prev, hidden, context, self.columns)


class BeamState(Protocol):
    """What is ready for a batch: it follows the rows of the beam."""

    def rows(self, index: Tensor) -> Self:
        """These rows, in their order.

        index: (R',) int64, the numbers of the rows."""

    def reordered(self, index: Tensor) -> Self:
        """The same rows in another order, in which every row takes the place of one of its own
        sentence.

        index: (R,) int64, the number of the row that comes to each place."""


R = TypeVar("R", bound=BeamState)


class Words(NamedTuple):
    """Words that are mixed into the probabilities, by the weights with which they were read.

    ids: (R, P) int64, the words.
    first: (R, P) int64, where each word stands first.
    logit: (R,), the logit of the gate: lambda, zeta, or w."""

    ids: Tensor
    first: Tensor
    logit: Tensor


@dataclass(frozen=True)
class LayerOutput(Generic[R]):
    """What a layer read at a step.

    ready: what the next step reads.
    weights: (R, P), the weights P_m, q, or p_knn.
    gate: (R, d) or (R, 1), the gate of what was fused; None where nothing was.
    words: what is to be mixed in; None for nothing.
    positions: (R, k), where the last k of the weights stand: positions of the whole memory, or
    those of a pool, of which no other has a weight."""

    ready: R
    weights: Tensor
    gate: Tensor | None = None
    words: Words | None = None
    positions: Tensor | None = None

    def rows(self, index: Tensor) -> LayerOutput[R]:
        """What was read in these rows alone.

        index: (R',) int64, the numbers of the rows."""
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
        """How far the gate of mixing is open, (R,), or that of fusing where nothing is mixed in, as
        the mean over its elements; 0 for a layer that only reads."""
        if self.words is not None:
            return self.words.logit.sigmoid()
        if self.gate is not None:
            return self.gate.mean(-1)
        return self.weights.new_zeros(len(self.weights))


class MemoryLayer(nn.Module, ABC, Generic[R]):
    """One memory of the decoder.

    modes: the modes that a model can serve by having the layer."""

    modes: tuple[str, ...] = ()

    @classmethod
    def traced_sources(
        cls, name: str, trace: LayerTrace, collated: Collated, sentence: int, word: int
    ) -> list[TracedSource]:
        """What the layer did at a step where a word was written: one entry for each source that it
        read, in the order in which they were mixed in.

        name: the name under which the layer is registered.
        trace: what the layer did at the step.
        collated: what the sentences of the batch read.
        sentence: the number of the sentence in the batch.
        word: the subword that was written."""
        return [TracedSource(name, name, "memory", trace)]

    @abstractmethod
    def ready(self, collated: Collated, backbone: Backbone, mode: str) -> R | None:
        """All that no step changes, once a batch. None where the layer reads nothing in this mode,
        or has nothing to read.

        collated: what the sentences of the batch read.
        backbone: the base that decodes.
        mode: the mode of the translation."""

    @abstractmethod
    def fuse(self, step: StepState, hidden: Tensor, ready: R) -> tuple[Tensor, LayerOutput[R]]:
        """Reads by the plain state of the step. Returns the hidden states h' (R, d) after blending,
        and what was read. Where nothing is blended in, h' is `hidden` itself.

        step: the plain state of the step.
        hidden: (R, d), the hidden states after the layers before this one.
        ready: what the layer has made ready."""

    def mix(
        self, step: StepState, log_probs: Tensor, reading: LayerOutput[R]
    ) -> tuple[Tensor, LayerOutput[R]]:
        """Mixes the words that were read into the probabilities. Returns the new log p' (R, V), and
        all that was read. A layer that reads by what the layers before it say does so now. Without
        gradients log p' is written in place of log p.

        step: the plain state of the step.
        log_probs: (R, V), the log p that the layers before this one give.
        reading: what `fuse` has read."""
        if reading.words is None:
            return log_probs, reading
        return mix_copy(log_probs, reading.weights, *reading.words, step.columns), reading


class LayerHistory(Protocol):
    """What a layer keeps of one document, from what was confirmed in it."""

    @property
    def needs_states(self) -> bool:
        """Whether the history is written by contexts and hidden states; otherwise directions are
        enough."""

    def __len__(self) -> int: ...


@runtime_checkable
class SavedHistory(LayerHistory, Protocol):
    """A history that the file of a session holds. Any other is filled again from the confirmed
    pairs."""

    def record(self) -> dict[str, Any]:
        """All of the history but its tensors, for JSON."""

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of the history, by their names."""

    def restored(
        self, record: Mapping[str, Any], tensors: Mapping[str, Tensor], words: int
    ) -> Self:
        """A history of the same sizes with what was saved of another one.

        record: what `record` gave.
        tensors: what `tensors` gave.
        words: how many subwords there are in the vocabulary.

        Raises ValueError for what no history can have given. Raises ModelError for a history of
        other sizes."""


H = TypeVar("H", bound=LayerHistory)
Histories = dict[str, Any]  # of one document, by the names of the layers


class HistoryLayer(MemoryLayer[R], Generic[R, H]):
    """A layer that keeps something of every document.

    slots: how many entries a history has where nothing else is said; 0 for as many as come."""

    slots: int = 0

    @property
    def history_digest(self) -> str:
        """Names the parameters that a history depends on; "" where it depends on the base alone."""
        return ""

    @abstractmethod
    def new_history(
        self, options: ModelOptions, backbone: Backbone, device: torch.device | str
    ) -> H | None:
        """An empty history of a document; None where the options want none.

        options: the options of the model.
        backbone: the base that decodes.
        device: where the history lies."""

    @abstractmethod
    def write(self, history: H, keys: PairKeys) -> None:
        """Adds the keys of a translated sentence to a history.

        history: the history of the sentence's document.
        keys: the keys of the sentence."""

    @abstractmethod
    def collate(self, histories: Sequence[H | None], device: torch.device | str) -> Any:
        """What the documents of a batch have, side by side, as `ready` finds it in `Collated`. It
        has the subwords as `ids`. None where all documents have nothing.

        histories: the history of every sentence's document; None where it has none.
        device: where the result lies."""
