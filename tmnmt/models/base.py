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
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self

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
        """These rows, in their order.

        index: (R,) int64, the numbers of the rows."""

    def cut(self, length: int) -> Self:
        """The beginning of every source.

        length: how many positions stay."""

    def concat(self, batches: Sequence[Self]) -> Self:
        """These rows, then those of other batches. All of them are as `encode` gives them.

        batches: the other batches."""


# (y_{t-1} (B,), s_{t-1} (B, d), c_t (B, l)) -> what is added to the state's update (B, update_size)
Inject = Callable[[Tensor, Tensor, Tensor], Tensor]

# the subwords of the source sentences before one, the oldest first
PrecedingSentences = Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class Surveyed:
    """A document that was translated once, n sentences of it.

    sources: (n, annotation_size), the means of the encoder's states.
    targets: (n, d), the decoder's last states."""

    sources: Tensor
    targets: Tensor

    @property
    def tensors(self) -> tuple[Tensor, Tensor]:
        """The means of the encoder's states, and the decoder's last states."""
        return self.sources, self.targets


@dataclass(frozen=True)
class SurroundingText:
    """All of a document but one sentence, which is translated.

    document: the document.
    sentence: the number of the sentence in it."""

    document: Surveyed
    sentence: int

    def in_place_of(self, target: SurroundingText) -> SurroundingText:
        """This sentence at the place of another one: all around it is the other one's document.

        target: the other sentence, with its document."""
        document = Surveyed(*(tensor.clone() for tensor in target.document.tensors))
        for target_rows, source_rows in zip(document.tensors, self.document.tensors, strict=True):
            target_rows[target.sentence] = source_rows[self.sentence]
        return SurroundingText(document, target.sentence)


Place = PrecedingSentences | SurroundingText | None  # what a row is read with; None: nothing


@dataclass(frozen=True, eq=False)
class Columns:
    """The words that a limited read-out compares, a column for each. The special words come first,
    so that their columns are their numbers.

    words: (n,) int64, the words, ascending.
    of_word: (V,) int64, the column of every word; that of PAD for a word that has none."""

    words: Tensor
    of_word: Tensor

    @classmethod
    def build(cls, words: Tensor, vocabulary: int) -> Columns:
        """The columns of some words.

        words: (n,) int64, the words, ascending.
        vocabulary: how many words there are in all."""
        special = torch.arange(FIRST, device=words.device)
        words = torch.cat([special, words[words >= FIRST]])
        of_word = torch.full((vocabulary,), PAD, device=words.device)
        of_word[words] = torch.arange(len(words), device=words.device)
        return cls(words, of_word)

    @cached_property
    def table(self) -> Array:
        """The columns of all words, for compiled code."""
        return Array("columns", self.of_word, torch.int64, len(self.of_word))


E = TypeVar("E", default=Any)  # what `encode` gives
S = TypeVar("S", default=Any)  # a decoder's state


class StepRecord(NamedTuple):
    """What a recurrent backbone gives of a step beside what it returns.

    state: (R, d), the states s_t, from which it goes on.
    attention: (R, S), the attention."""

    state: Tensor
    attention: Tensor


def noted_along(notes: Sequence[StepRecord], rows: Sequence[int], length: int) -> StepRecord | None:
    """What the steps of one target have noted: the states (T, d), and the attention (T, S). None
    where nothing was noted.

    notes: what every step has noted, (R, d) and (R, S) each.
    rows: the row of the target in every step.
    length: how many subwords the source has; the attention has no more positions."""
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
    number of times, in any order. What follows from it never changes.

    hidden_size: how many numbers a hidden state has, d.
    context_size: how many numbers a context has, l.
    vocab_size: how many words there are, V.
    word_size: how many numbers the embedding of a word has.
    shares_encoded: whether `step` takes one encoded row for the consecutive rows of a sentence's
    beam.
    reach: how many times the length that it was trained on it can follow a good match: with
    positions that were never seen, a Transformer ends too soon.
    previous: how many source sentences before its own, in its document, it reads at most.
    reads_around: whether it reads all other sentences of its document, in a second pass.
    writer: the name of what writes its translations, as `tmnmt.engine.writer.WRITERS` has it.
    modes: the modes that it serves by itself; none where memory layers read for it."""

    writer: ClassVar[str] = "beam search"
    modes: ClassVar[tuple[str, ...]] = ()
    hidden_size: int
    context_size: int
    vocab_size: int
    word_size: int
    shares_encoded: bool = False
    reach: int = 1
    previous: int = 0
    reads_around: bool = False

    @abstractmethod
    def encode(self, src: Tensor, src_len: Tensor) -> E:
        """What every step reads of the sources.

        src: (B, S) int64, the subwords of the sources, padded with 0.
        src_len: (B,) int64, how many of them each source has."""

    def in_document(self, encoded: E, places: Sequence[Place]) -> E:
        """The same sources with what each is read with of its document. A model that reads nothing
        else gives them as they are.

        encoded: the sources, as `encode` gives them.
        places: for every row the sentences before it, as subwords without </s>, or all around it;
        None where it is read by itself."""
        return encoded

    def for_beam(self, encoded: E) -> E:
        """The same sources with what pays only where several rows read each of them. By default
        they stay as they are.

        encoded: the sources."""
        return encoded

    def limited_to(self, words: Tensor) -> Self:
        """The same model, whose read-out compares only some words. It then has a column for each of
        them (`columns`), or -inf for all others. It is for a backbone as it decodes
        (`decoding.for_decoding`).

        words: (n,) int64, the words, ascending.

        Raises NotImplementedError where the model cannot be limited."""
        raise NotImplementedError

    @property
    def columns(self) -> Columns | None:
        """The words that the columns of the read-out stand for; None where every word has the
        column of its number."""
        return None

    @abstractmethod
    def start(self, encoded: E) -> S:
        """The state before the first word.

        encoded: the sources."""

    @abstractmethod
    def reordered(self, state: S, rows: Tensor) -> S:
        """Some rows of a state in their order, for the beam, and to let finished sentences leave.

        state: the state.
        rows: (R,) int64, the numbers of the rows."""

    @abstractmethod
    def step(self, prev: Tensor, state: S, encoded: E) -> tuple[S, Tensor, Tensor]:
        """Goes on by one target position, and returns the state behind it, its context (B, l) and
        its hidden state (B, d).

        prev: (B,) int64, the words y_{t-1}, BOS at first.
        state: the state before the position.
        encoded: the sources. Where the model `shares_encoded`, they have one row for all rows of a
        sentence's beam."""

    @abstractmethod
    def embed(self, ids: Tensor) -> Tensor:
        """The embeddings of target words, (..., word_size).

        ids: (...) int64, the words."""

    @abstractmethod
    def readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        """The logits of the next word, (B, V) or (B, T, V), or with a column for each of `columns`.
        The caller may write over them.

        prev: (B,) or (B, T) int64, the words y_{t-1}.
        hidden: (B, d) or (B, T, d), the hidden states.
        context: (B, l) or (B, T, l), the contexts."""

    def log_readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        """The log probabilities of the next word, (B, V) or with a column for each of `columns`, in
        fp32, or in fp64 where the logits are.

        prev: (B,) int64, the words y_{t-1}.
        hidden: (B, d), the hidden states.
        context: (B, l), the contexts."""
        logits = self.readout(prev, hidden, context)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        if logits.requires_grad or not logits.is_cpu or logits.dtype != torch.float32:
            return logits.log_softmax(-1)
        logits = logits.contiguous()
        log_softmax_(logits)
        return logits

    @abstractmethod
    def forced(self, encoded: E, tgt: Tensor) -> tuple[Tensor, Tensor]:
        """The contexts (B, T, l) and hidden states (B, T, d) of a known target (teacher forcing).
        Position t holds the c_t and s_t that precede y_t.

        encoded: the sources.
        tgt: (B, T) int64, the targets with </s>, without <s>, padded with 0."""

    @abstractmethod
    def alphas(self, encoded: E, tgt: Tensor) -> Tensor:
        """The attention of `forced`, (B, T, S): how much each word of a known target looks at each
        subword of the source. Every row sums to 1.

        encoded: the sources.
        tgt: (B, T) int64, the targets, as in `forced`."""

    def survey(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Surveyed:
        """What a model that `reads_around` keeps of a document.

        pairs: the sentences of the document, each with its first translation, as subwords without
        </s>."""
        raise NotImplementedError

    def noting(self) -> tuple[Self, list[StepRecord]]:
        """The same model, and a list to which each of its steps adds what it notes. Nothing is ever
        added by a model whose state is more than a row of numbers, or that has nothing to note."""
        return self, []


class Injectable(Backbone[E, S]):
    """A recurrent backbone: between attention and state update something may be added (`Inject`).
    Law: the same `inject` in `step`, repeated over a target, and in `forced` gives the same.

    update_size: how many numbers the state's update takes in.
    annotation_size: how many numbers an encoder's state has.
    encoder_reads: how the names of the parameters begin that the encoder reads."""

    update_size: int
    annotation_size: int
    encoder_reads: tuple[str, ...]

    @abstractmethod
    def annotations(self, encoded: E) -> Tensor:
        """The encoder's states h (B, S, annotation_size), 0 behind the end of a source.

        encoded: the sources."""

    @abstractmethod
    def step(
        self, prev: Tensor, state: S, encoded: E, inject: Inject | None = None
    ) -> tuple[S, Tensor, Tensor]:
        """The step of every backbone, in which something may be added.

        inject: what is added to the state's update, asked for once; None adds nothing."""

    @abstractmethod
    def forced(
        self, encoded: E, tgt: Tensor, inject: Inject | None = None
    ) -> tuple[Tensor, Tensor]:
        """The known target of every backbone, along which something may be added.

        inject: what is added to the state's update. It is asked for at every position, in order,
        each time for all rows; None adds nothing."""

    @abstractmethod
    def alphas(self, encoded: E, tgt: Tensor, inject: Inject | None = None) -> Tensor:
        """The attention of every backbone, along a target to which something may be added.

        inject: what is added, as in `forced`."""


@dataclass(frozen=True)
class BaseConfig:
    """The table [model] of a training configuration: the sizes of one kind of base.

    kind: the name of the kind.
    dropout: the share of numbers that training leaves out, from 0 to 1."""

    kind: str = ""
    dropout: ShareBelowOne = 0.1

    def check(self) -> None:
        """Checks that the sizes go together.

        Raises UsageError where they do not."""


class Trainable(Backbone[E, S]):
    """A backbone with weights of its own.

    config: the sizes of its kind; None where `tmnmt train` does not make this kind.
    dtype: the type of the products while it is trained; None takes the parameters' own."""

    config: type[BaseConfig] | None = None
    dtype: torch.dtype | None = None

    @abstractmethod
    def loss(self, src: Tensor, src_len: Tensor, tgt: Tensor, smoothing: float = 0.0) -> Tensor:
        """The summed cross-entropy of targets, in nats.

        src: (B, S) int64, the sources, padded with 0.
        src_len: (B,) int64, how many subwords each source has.
        tgt: (B, T) int64, the targets with </s>, padded with 0.
        smoothing: the share of every word's mass that is spread evenly over the vocabulary, from 0
        to 1."""


def stacked(parts: Sequence[Tensor], dim: int = 1) -> Tensor:
    """The rows of several tensors, one tensor after the other; 0 where one is shorter than the
    longest.

    parts: the tensors (R, ...), which differ in their rows, and along one more dimension.
    dim: that dimension."""
    longest = max(part.shape[dim] for part in parts)
    padding = [0, 0] * (parts[0].dim() - 1 - dim)
    return torch.cat([pad(part, (*padding, 0, longest - part.shape[dim])) for part in parts])


def shift(tgt: Tensor, bos: int) -> Tensor:
    """The word y_{t-1} of every position, (B, T); BOS stands first.

    tgt: (B, T) int64, the words y_t.
    bos: the number of BOS."""
    return torch.cat([torch.full_like(tgt[:, :1], bos), tgt[:, :-1]], dim=1)
