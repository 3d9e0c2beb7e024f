"""The backbone contract: whatever exposes a context and a state at every step can carry every
memory.

    d: hidden size    l: context size    V: vocabulary size    B: rows (sentences x beam)
    S: source length    T: target length
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from typing_extensions import TypeVar

from tmnmt.compiled.kernels import Array, log_softmax_
from tmnmt.config.bounds import ShareBelowOne
from tmnmt.vocab import FIRST, PAD


class Encoded(Protocol):
    """An encoded batch of sources: whatever a step reads of them, computed once a sentence."""

    @property
    def mask(self) -> Tensor:
        """(B, S) bool, True on real positions."""

    def rows(self, index: Tensor) -> Self:
        """The rows `index` (R,), in that order."""

    def cut(self, length: int) -> Self:
        """The first `length` positions of every source."""

    def concat(self, batches: Sequence[Self]) -> Self:
        """These rows, then those of `batches`, all of them as `encode` gives them."""


# (y_{t-1} (B,), s_{t-1} (B, d), c_t (B, l)) -> what is added to the state's update (B, update_size)
Inject = Callable[[Tensor, Tensor, Tensor], Tensor]

Before = Sequence[Sequence[int]]  # subwords of the source sentences before one, the oldest first


@dataclass(frozen=True, eq=False)
class Surveyed:
    """A document that was translated once, n sentences of it."""

    sources: Tensor  # (n, annotation_size) means of the encoder's states
    targets: Tensor  # (n, d) the decoder's last states

    @property
    def tensors(self) -> tuple[Tensor, Tensor]:
        return self.sources, self.targets


@dataclass(frozen=True)
class SurroundingText:
    """All of a document but `sentence`, which is translated."""

    document: Surveyed
    sentence: int

    def in_place_of(self, target: SurroundingText) -> SurroundingText:
        """This sentence where `target` stands: all around it is that document's."""
        document = Surveyed(*(tensor.clone() for tensor in target.document.tensors))
        for target_rows, source_rows in zip(document.tensors, self.document.tensors, strict=True):
            target_rows[target.sentence] = source_rows[self.sentence]
        return SurroundingText(document, target.sentence)


Place = Before | SurroundingText | None  # what a row is read with; None: nothing


@dataclass(frozen=True, eq=False)
class Columns:
    """The words that a limited read-out compares, a column for each. The special words come first,
    so that their columns are their numbers."""

    words: Tensor  # (n,) int64, ascending
    of_word: Tensor  # (V,) int64: the column of a word; that of PAD for a word that has none

    @classmethod
    def build(cls, words: Tensor, vocabulary: int) -> Columns:
        """Columns of these words (n,), ascending, of so many."""
        special = torch.arange(FIRST, device=words.device)
        words = torch.cat([special, words[words >= FIRST]])
        of_word = torch.full((vocabulary,), PAD, device=words.device)
        of_word[words] = torch.arange(len(words), device=words.device)
        return cls(words, of_word)

    @cached_property
    def table(self) -> Array:
        """`of_word` for compiled code."""
        return Array("columns", self.of_word, torch.int64, len(self.of_word))


E = TypeVar("E", default=Any)  # what `encode` gives
S = TypeVar("S", default=Any)  # a decoder's state


class StepRecord(NamedTuple):
    """What a recurrent backbone gives of a step beside what it returns."""

    state: Tensor  # (R, d) s_t, from which it goes on
    attention: Tensor  # (R, S)


def noted_along(notes: Sequence[StepRecord], rows: Sequence[int], length: int) -> StepRecord | None:
    """What was noted of one row of every step, (T, d) and (T, S), of a source of so many subwords;
    None where nothing was."""
    if not notes or not rows:
        return None
    note_rows = [*zip(notes, rows, strict=False)]
    states = torch.stack([note.state[row] for note, row in note_rows])
    return StepRecord(
        states, torch.stack([note.attention[row, :length] for note, row in note_rows])
    )


class Backbone(nn.Module, ABC, Generic[E, S]):
    """A translation model that carries memory layers. Law: `step` repeated over a target equals
    `forced`, to 1e-5.

    A state is a value: neither `step` nor `reordered` uses it up, and it may be gone on from any
    number of times, in any order. What follows from it never changes."""

    hidden_size: int  # d
    context_size: int  # l
    vocab_size: int  # V
    word_size: int  # of a word's embedding
    # `step` takes one encoded row for the consecutive rows of a sentence's beam
    shares_encoded: bool = False
    # times the length it was trained on that it can follow a good match: with positions that were
    # never seen, a Transformer ends too soon
    reach: int = 1
    previous: int = 0  # source sentences before its own, in its document, that it reads at most
    reads_around: bool = False  # all other sentences of its document, in a second pass

    @abstractmethod
    def encode(self, src: Tensor, src_len: Tensor) -> E:
        """src: (B, S) int64, padded with 0; src_len: (B,)."""

    def in_document(self, encoded: E, places: Sequence[Place]) -> E:
        """The same with what every row is read with of its document: the sentences before it,
        without </s>, or all around it; by default as it is."""
        return encoded

    def for_beam(self, encoded: E) -> E:
        """The same with what pays only where several rows read every sentence: by
        default as it is."""
        return encoded

    def limited_to(self, words: Tensor) -> Self:
        """The same, whose read-out compares only `words` (n,), ascending: by its columns then, or
        with -inf for all others. It is for a backbone as it decodes (`decoding.for_decoding`).
        Raises NotImplementedError where it cannot."""
        raise NotImplementedError

    @property
    def columns(self) -> Columns | None:
        """The words that the columns of the read-out stand for; None: column and word have one
        number."""
        return None

    @abstractmethod
    def start(self, encoded: E) -> S:
        """The state before the first word."""

    @abstractmethod
    def reordered(self, state: S, rows: Tensor) -> S:
        """The rows (R,) of a state, in that order: for the beam, and to let finished sentences
        leave."""

    @abstractmethod
    def step(self, prev: Tensor, state: S, encoded: E) -> tuple[S, Tensor, Tensor]:
        """One target position: prev (B,) ids of y_{t-1} (BOS at first) -> state, context (B, l),
        hidden (B, d)."""

    @abstractmethod
    def embed(self, ids: Tensor) -> Tensor:
        """The embeddings of target words: (...) int64 -> (..., word_size)."""

    @abstractmethod
    def readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        """Logits (B, V), or a column for each of `columns`; also takes (B, T), (B, T, d), (B, T, l)
        and gives (B, T, V). They are given away: who asked may write over them."""

    def log_readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        """log p of the same (B,), (B, d) and (B, l), in fp32, or fp64 where the logits are."""
        logits = self.readout(prev, hidden, context)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        if logits.requires_grad or not logits.is_cpu or logits.dtype != torch.float32:
            return logits.log_softmax(-1)
        logits = logits.contiguous()
        log_softmax_(logits)
        return logits

    @abstractmethod
    def forced(self, encoded: E, tgt: Tensor) -> tuple[Tensor, Tensor]:
        """Teacher forcing: tgt (B, T) with </s>, without <s>, padded with 0 -> contexts (B, T, l),
        hiddens (B, T, d).

        Position t holds the c_t and s_t that precede y_t."""

    @abstractmethod
    def alphas(self, encoded: E, tgt: Tensor) -> Tensor:
        """What `forced` looks at for every word: tgt (B, T) -> (B, T, S). Every row sums to 1."""

    def survey(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Surveyed:
        """What a model that `reads_around` keeps of a document: its sentences are given, each with
        its first translation, as subwords without </s>."""
        raise NotImplementedError

    def noting(self) -> tuple[Self, list[StepRecord]]:
        """The same, and a list that every step of it adds to; nothing is ever added by one whose
        state is more than a row of numbers, or that has none to give."""
        return self, []


class Injectable(Backbone[E, S]):
    """A recurrent backbone: between attention and state update something may be added (`Inject`).
    Law: the same `inject` in `step`, repeated over a target, and in `forced` gives the same."""

    update_size: int  # what the state's update takes in
    annotation_size: int  # of the encoder's states
    encoder_reads: tuple[str, ...]  # how the names of the parameters begin that the encoder reads

    @abstractmethod
    def annotations(self, encoded: E) -> Tensor:
        """The encoder's states h (B, S, annotation_size), 0 behind a source."""

    @abstractmethod
    def step(
        self, prev: Tensor, state: S, encoded: E, inject: Inject | None = None
    ) -> tuple[S, Tensor, Tensor]:
        """As every backbone's; `inject` is asked once."""

    @abstractmethod
    def forced(
        self, encoded: E, tgt: Tensor, inject: Inject | None = None
    ) -> tuple[Tensor, Tensor]:
        """As every backbone's; `inject` is asked at every position, in order, each time for all
        rows."""

    @abstractmethod
    def alphas(self, encoded: E, tgt: Tensor, inject: Inject | None = None) -> Tensor:
        """As every backbone's."""


@dataclass(frozen=True)
class BaseConfig:
    """The table [model] of a training configuration: the sizes of one kind of base."""

    kind: str = ""
    dropout: ShareBelowOne = 0.1

    def check(self) -> None:
        """Raises UsageError for sizes that do not go together."""


class Trainable(Backbone[E, S]):
    """A backbone with weights of its own. `config`: the sizes of its kind; None: `tmnmt train` does
    not make this kind. `dtype`: of the products while it is trained; None: the parameters' own."""

    config: type[BaseConfig] | None = None
    dtype: torch.dtype | None = None

    @abstractmethod
    def loss(self, src: Tensor, src_len: Tensor, tgt: Tensor, smoothing: float = 0.0) -> Tensor:
        """Summed cross-entropy in nats of tgt (B, T) with </s>, padded with 0; a share `smoothing`
        of every word's mass is spread evenly over the vocabulary."""


def stacked(parts: Sequence[Tensor], dim: int = 1) -> Tensor:
    """Rows (R, ...) of several tensors one after the other; 0 where one is shorter along `dim`."""
    longest = max(part.shape[dim] for part in parts)
    padding = [0, 0] * (parts[0].dim() - 1 - dim)
    return torch.cat([pad(part, (*padding, 0, longest - part.shape[dim])) for part in parts])


def shift(tgt: Tensor, bos: int) -> Tensor:
    """y_{t-1} of every position: (B, T) -> (B, T), starting with BOS."""
    return torch.cat([torch.full_like(tgt[:, :1], bos), tgt[:, :-1]], dim=1)
