"""Context networks: other sentences of the document are read into the decoder's state. They are
systems that Tu et al. 2018 and Fu et al. 2019 compare with, and one that is often named with these.

LC-NMT (Jean, Lauly, Firat, Cho 2017), `attended`: another bidirectional encoder reads the previous
source sentence (its states h_i), and an attention of its own is asked by the word, the state and
the context that the decoder has:

    alpha_ti = softmax over i of v tanh(W [e(y_{t-1}); s_{t-1}; c_t] + U h_i)
    s_t = f(e(y_{t-1}), s_{t-1}, c_t, sum_i alpha_ti h_i)

CS-NMT (Wang, Tu, Way, Liu 2017), `auxiliary` and `gated`: one recurrent network over each of the
K = 3 previous source sentences x_k, another over their last states S_k; D is its last state:

    h_{k,n} = f(h_{k,n-1}, e(x_{k,n})),  S_k = h_{k,N}
    h_k = f(h_{k-1}, S_k),               D = h_K
    auxiliary: s_t = f(e(y_{t-1}), s_{t-1}, c_t, D)
    gated:     s_t = f(e(y_{t-1}), s_{t-1}, c_t, z_t * D)
               z_t = sigmoid(U s_{t-1} + W e(y_{t-1}) + C c_t)

The same paper's other use of D, as the first state of encoder and decoder, is not built.

DC-NMT (Maruf, Haffari 2018), `around`, memory to context: two memories of all other sentences j of
the document, which was translated once before. x_j stands for a source, s_j is the decoder's last
state along its translation; the sentence itself, t, asks:

    H_j = biGRU over x_1 ... x_n
    c^src = sum_{j != t} softmax_j(H_j . P x_t) H_j
    c^trg = sum_{j != t} softmax_j(s_j . (s_t + U x_t)) s_j
    s_{t,i} = f(e(y_{i-1}), s_{t,i-1}, c_{t,i}, c^src, c^trg)

Nothing in c depends on the word. Memory to output, which adds both to the logits instead, is not
built: the read-out knows no document. OURS: x is the mean of the base's encoder states, where the
authors' program has another network's in H and the encoder's last states in what asks, without P;
here P is there, as sizes differ. A bias of all s_j alike changes nothing and is left out.

OURS: where a document has nothing to be read, nothing is injected, and where it has fewer than
three sentences before, D is of these. What is fed to the state goes through weights that begin at
zero, so that an untrained network is the plain model, bit for bit. The encoders of the sentences
before are GRUs that read the base's embeddings: the parameters that Tu et al. report for their
versions, 20.0 M and 18.8 M on top of 84.2 M, are too few for others. A sentence ends with </s>, as
the base's sources do.

    B: sentences    R: rows, K consecutive ones a sentence    S: longest previous sentence
    k: size of the encoders    a: hidden units of the attention    N: longest document
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from tmnmt.config.options import ContextForm as ContextForm  # which networks there are
from tmnmt.models.base import (
    Encoded,
    Inject,
    Injectable,
    Place,
    PrecedingSentences,
    S,
    SurroundingText,
    Surveyed,
)
from tmnmt.models.injected import Embed, Injected, Network, Sizes
from tmnmt.papers.reading import Keep, Step, ignore
from tmnmt.vocab import EOS, PAD

Read = tuple[Tensor, ...]  # of a document: (B, ...) each
SURVEYED_AT_ONCE = 64  # sentences


@dataclass(frozen=True)
class ContextKind:
    """Which network it is."""

    form: ContextForm
    size: int  # of the encoders; each of two directions has half of it
    hidden: int  # units of the attention


class ContextNetwork(Network, ABC):
    """What a context network promises."""

    kind: ContextKind
    sentences: int = 0  # previous ones that it reads at most
    reads_document: bool = False  # whether it reads all others

    @abstractmethod
    def has_text(self, place: Place) -> bool:
        """Whether there is anything to read at a place."""

    @abstractmethod
    def read(self, embed: Embed, places: Sequence[Place]) -> Read | None:
        """What the decoder reads of the document of every row: what is injected for a row without
        anything is 0. None where no row has anything."""

    @abstractmethod
    def injector(self, embed: Embed, memory: Read, keep: Keep = ignore) -> Inject:
        """What the decoder calls at every step, with K consecutive rows for each that was read.
        `keep` gets at every step the weights of the words that are read (R, S), of a network that
        attends to words."""


class Previous(ContextNetwork):
    """A network that reads the sentences before."""

    def has_text(self, place: Place) -> bool:
        return bool(place)

    def read(self, embed: Embed, places: Sequence[Place]) -> Read | None:
        recent = [row[-self.sentences :] for row in cast("Sequence[PrecedingSentences]", places)]
        return self._read(embed, recent) if any(recent) else None

    @abstractmethod
    def _read(self, embed: Embed, previous: Sequence[PrecedingSentences]) -> Read: ...


class Attended(Previous):
    """LC-NMT."""

    sentences = 1

    def __init__(self, kind: ContextKind, sizes: Sizes) -> None:
        super().__init__()
        self.kind = kind
        half = max(kind.size // 2, 1)
        self.encoder = nn.GRU(sizes.word, half, batch_first=True, bidirectional=True)
        self.asks = nn.Linear(sizes.word + sizes.hidden + sizes.context, kind.hidden)  # W
        self.of_state = nn.Linear(2 * half, kind.hidden, bias=False)  # U
        self.vector = nn.Parameter(torch.empty(kind.hidden))
        nn.init.normal_(self.vector, std=kind.hidden**-0.5)
        self.into = nn.Linear(2 * half, sizes.update, bias=False)
        nn.init.zeros_(self.into.weight)

    def _read(self, embed: Embed, previous: Sequence[PrecedingSentences]) -> Read:
        """States (B, S, k), keys (B, S, a), and which positions are looked at (B, S); the first is
        where there is no sentence, its state 0."""
        filled_rows = [row for row, sentences in enumerate(previous) if sentences]
        words, lengths = _embedded(
            embed, [previous[row][0] for row in filled_rows], self.vector.device
        )
        packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        annotations, _ = pad_packed_sequence(self.encoder(packed)[0], batch_first=True)
        states, rows = _rows(annotations, filled_rows, len(previous))
        real = torch.ones(len(previous), dtype=torch.long, device=states.device)
        real = real.index_copy(0, rows, lengths.to(states.device))
        mask = torch.arange(states.shape[1], device=states.device) < real[:, None]
        return states, self.of_state(states), mask

    def injector(self, embed: Embed, memory: Read, keep: Keep = ignore) -> Inject:
        states, keys, mask = memory

        def inject(prev: Tensor, state: Tensor, context: Tensor) -> Tensor:
            query = self.asks(torch.cat([embed(prev), state, context], -1))
            query = query.unflatten(0, (len(states), -1))[:, :, None]  # (B, K, 1, a)
            energy = torch.tanh(query + keys[:, None]) @ self.vector  # (B, K, S)
            alpha = energy.masked_fill(~mask[:, None], -torch.inf).softmax(-1)
            keep(Step(weights=alpha.flatten(0, 1)))
            update: Tensor = self.into((alpha @ states).flatten(0, 1))
            return update

        return inject


class Hierarchical(Previous):
    """CS-NMT."""

    sentences = 3

    def __init__(self, kind: ContextKind, sizes: Sizes) -> None:
        super().__init__()
        self.kind = kind
        self.sentence = nn.GRU(sizes.word, kind.size, batch_first=True)
        self.document = nn.GRU(kind.size, kind.size, batch_first=True)
        input_size = sizes.word + sizes.hidden + sizes.context
        self.gate = nn.Linear(input_size, kind.size) if kind.form == "gated" else None
        self.into = nn.Linear(kind.size, sizes.update, bias=False)
        nn.init.zeros_(self.into.weight)

    def _read(self, embed: Embed, previous: Sequence[PrecedingSentences]) -> Read:
        """D (B, k); 0 where there is no sentence."""
        filled_rows = [row for row, sentences in enumerate(previous) if sentences]
        counts = [len(previous[row]) for row in filled_rows]
        sentences = [*chain.from_iterable(previous)]
        device = self.into.weight.device
        ends = _last(self.sentence, *_embedded(embed, sentences, device))
        of_rows = pad_sequence([*torch.split(ends, counts)], batch_first=True)
        return _rows(
            _last(self.document, of_rows, torch.tensor(counts)), filled_rows, len(previous)
        )[:1]

    def injector(self, embed: Embed, memory: Read, keep: Keep = ignore) -> Inject:
        (document,), gate = memory, self.gate
        if gate is None:
            update = self.into(document)
            return lambda prev, state, context: _for_beam(update, len(prev))

        def inject(prev: Tensor, state: Tensor, context: Tensor) -> Tensor:
            openness = torch.sigmoid(gate(torch.cat([embed(prev), state, context], -1)))
            gated: Tensor = self.into(openness * _for_beam(document, len(prev)))
            return gated

        return inject


class Remembered(ContextNetwork):
    """DC-NMT."""

    reads_document = True

    def __init__(self, kind: ContextKind, sizes: Sizes) -> None:
        super().__init__()
        self.kind = kind
        half = max(kind.size // 2, 1)
        self.document = nn.GRU(sizes.annotation, half, batch_first=True, bidirectional=True)
        self.asks = nn.Linear(sizes.annotation, 2 * half, bias=False)  # P
        self.of_source = nn.Linear(sizes.annotation, sizes.hidden, bias=False)  # U
        self.into = nn.Linear(2 * half + sizes.hidden, sizes.update, bias=False)
        nn.init.zeros_(self.into.weight)

    def has_text(self, place: Place) -> bool:
        return isinstance(place, SurroundingText) and len(place.document.sources) > 1

    def read(self, embed: Embed, places: Sequence[Place]) -> Read | None:
        """What is injected at every step (B, update_size)."""
        row_places = {
            row: place
            for row, place in enumerate(cast("Sequence[SurroundingText]", places))
            if self.has_text(place)
        }
        if not row_places:
            return None
        update = self.into(self._recall_memories([*row_places.values()]))
        return _rows(update, [*row_places], len(places))[:1]

    def _recall_memories(self, places: Sequence[SurroundingText]) -> Tensor:
        """[c^src; c^trg] (B, k + d) of rows whose documents have other sentences."""
        documents = [*dict.fromkeys(place.document for place in places)]  # each is read once
        document_index = torch.tensor([documents.index(place.document) for place in places])
        sentence_index = torch.tensor([place.sentence for place in places])
        lengths = torch.tensor([len(document.sources) for document in documents])
        sources, targets = (
            pad_sequence([getattr(document, side) for document in documents], batch_first=True)
            for side in ("sources", "targets")
        )
        document_index, sentence_index = (
            document_index.to(sources.device),
            sentence_index.to(sources.device),
        )
        packed = pack_padded_sequence(sources, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.document(packed)[0], batch_first=True)
        number = torch.arange(states.shape[1], device=states.device)
        mask = (number < lengths.to(states.device)[document_index, None]) & (
            number != sentence_index[:, None]
        )  # (B, N)
        source, target = (
            sources[document_index, sentence_index],
            targets[document_index, sentence_index],
        )
        queries = self.asks(source), target + self.of_source(source)
        return torch.cat(
            [
                _recalled(query, memory[document_index], mask)
                for query, memory in zip(queries, (states, targets), strict=True)
            ],
            -1,
        )

    def injector(self, embed: Embed, memory: Read, keep: Keep = ignore) -> Inject:
        (update,) = memory
        return lambda prev, state, context: _for_beam(update, len(prev))


def _recalled(query: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
    """What is read of a memory (B, N, k) by queries (B, k): a sum (B, k) weighted by products."""
    energy = (memory @ query[..., None])[..., 0].masked_fill(~mask, -torch.inf)
    return (energy.softmax(-1)[:, None] @ memory)[:, 0]


def _embedded(
    embed: Embed, sentences: Sequence[Sequence[int]], device: torch.device
) -> tuple[Tensor, Tensor]:
    """The words of sentences (n, S, e) with </s>, and their lengths (n,), on the CPU."""
    rows = [torch.tensor([*ids, EOS]) for ids in sentences]
    words = embed(pad_sequence(rows, batch_first=True).to(device))
    return words, torch.tensor([len(row) for row in rows])


def _last(network: nn.GRU, x: Tensor, lengths: Tensor) -> Tensor:
    """The last states (n, k) along x (n, S, .)."""
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    last: Tensor = network(packed)[1][-1]
    return last


def _rows(values: Tensor, filled_rows: Sequence[int], count: int) -> tuple[Tensor, Tensor]:
    """`count` rows of which those that are there have been found, the others 0; and where."""
    rows = torch.tensor(filled_rows, device=values.device)
    return values.new_zeros(count, *values.shape[1:]).index_copy(0, rows, values), rows


def _for_beam(values: Tensor, rows: int) -> Tensor:
    """(B, .) for R rows, K consecutive ones each."""
    return values[:, None].expand(-1, rows // len(values), -1).flatten(0, 1)


FORMS: dict[ContextForm, Callable[[ContextKind, Sizes], ContextNetwork]] = {
    "attended": Attended,
    "auxiliary": Hierarchical,
    "gated": Hierarchical,
    "around": Remembered,
}


def context_network_of(kind: ContextKind, base: Injectable) -> ContextNetwork:
    """An untrained network for a base. Raises ValueError for a form that is not there."""
    if kind.form not in FORMS:
        raise ValueError(f"form {kind.form!r} is none of {', '.join(FORMS)}")
    return FORMS[kind.form](kind, Sizes.build(base))


@torch.no_grad()
def surveyed(
    base: Injectable, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], device: torch.device
) -> Surveyed:
    """What a document's memories are made of: every sentence and its translation, as subwords
    without </s>."""
    sources = torch.empty(len(pairs), base.annotation_size, device=device)
    targets = torch.empty(len(pairs), base.hidden_size, device=device)
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][1]))
    for start in range(0, len(order), SURVEYED_AT_ONCE):
        batch = order[start : start + SURVEYED_AT_ONCE]
        (src, src_len), (tgt, tgt_len) = (
            _padded([pairs[i][side] for i in batch], device) for side in (0, 1)
        )
        encoded = base.encode(src, src_len)
        sources[batch] = base.annotations(encoded).sum(1) / src_len[:, None]
        _, hiddens = base.forced(encoded, tgt)
        targets[batch] = hiddens[torch.arange(len(batch), device=device), tgt_len - 1]
    return Surveyed(sources, targets)


def _padded(sentences: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Sentences (n, S) with </s>, and their lengths (n,)."""
    rows = [torch.tensor([*ids, EOS]) for ids in sentences]
    lengths = torch.tensor([len(row) for row in rows], device=device)
    return pad_sequence(rows, batch_first=True, padding_value=PAD).to(device), lengths


@dataclass(frozen=True)
class InPlace:
    """An encoded batch, and what was read of its documents."""

    base: Encoded
    memory: Read | None = None  # None: of none

    @property
    def mask(self) -> Tensor:
        return self.base.mask

    def rows(self, index: Tensor) -> InPlace:
        memory = self.memory
        if memory is not None:
            memory = tuple(part.index_select(0, index) for part in memory)
        return InPlace(self.base.rows(index), memory)

    def cut(self, length: int) -> InPlace:
        return replace(self, base=self.base.cut(length))

    def concat(self, batches: Sequence[InPlace]) -> InPlace:
        return InPlace(self.base.concat([batch.base for batch in batches]))


class InDocument(Injected[InPlace, S]):
    """A backbone whose every state has read other sentences of its document. `encode` alone gives
    sentences that have none: these it translates as the base does."""

    name = "context"
    network: ContextNetwork

    @classmethod
    def untrained(cls, kind: Mapping[str, Any], base: Injectable[Any, S]) -> Self:
        return cls(base, context_network_of(ContextKind(**kind), base))

    def __init__(self, base: Injectable[Any, S], network: ContextNetwork) -> None:
        super().__init__(base, network)
        self.previous, self.reads_around = network.sentences, network.reads_document

    def for_decoding(self, base: Injectable[Any, S]) -> InDocument[S]:
        return InDocument(base, self.network.eval())

    def encode(self, src: Tensor, src_len: Tensor) -> InPlace:
        return InPlace(self.base.encode(src, src_len))

    def survey(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Surveyed:
        return surveyed(self.base, pairs, next(self.parameters()).device)

    def in_document(self, encoded: InPlace, places: Sequence[Place]) -> InPlace:
        return replace(encoded, memory=self.network.read(self.base.embed, places))

    def for_beam(self, encoded: InPlace) -> InPlace:
        return replace(encoded, base=self.base.for_beam(encoded.base))

    def of_base(self, encoded: InPlace) -> Encoded:
        return encoded.base

    def injecting(self, encoded: InPlace) -> Inject | None:
        if encoded.memory is None:
            return None
        return self.network.injector(self.base.embed, encoded.memory)

    def limited_to(self, words: Tensor) -> InDocument[S]:
        return InDocument(self.base.limited_to(words), self.network)
