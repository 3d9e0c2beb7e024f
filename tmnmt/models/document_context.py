"""Context networks: the previous source sentences of the document are read into the decoder's
state. They are systems that Tu et al. 2018 and Fu et al. 2019 compare with.

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

OURS: where a document has no sentence before, nothing is injected, and where it has fewer than
three, D is of these. What is fed to the state goes through weights that begin at zero, so that an
untrained network is the plain model, bit for bit. The encoders are GRUs that read the base's
embeddings: the parameters that Tu et al. report for their versions, 20.0 M and 18.8 M on top of
84.2 M, are too few for others. A sentence ends with </s>, as the base's sources do.

    B: sentences    R: rows, K consecutive ones a sentence    S: longest previous sentence
    k: size of the encoders    a: hidden units of the attention
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from tmnmt.config.options import ContextForm as ContextForm  # which networks there are
from tmnmt.models.base import Before, Encoded, Inject, Injectable, S
from tmnmt.models.injected import Embed, Injected, Network, Sizes
from tmnmt.vocab import EOS

Read = tuple[Tensor, ...]  # of previous sentences: (B, ...) each


@dataclass(frozen=True)
class ContextKind:
    """Which network it is."""

    form: ContextForm
    size: int  # of the encoders; each direction of `attended` has half of it
    hidden: int  # units of the attention


class ContextNetwork(Network, ABC):
    """What a context network promises."""

    kind: ContextKind
    sentences: int  # previous ones that it reads at most

    def read(self, embed: Embed, before: Sequence[Before]) -> Read | None:
        """What the decoder reads of the previous sentences of every row: what is injected for a row
        without any is 0. None where no row has any."""
        kept = [row[-self.sentences :] for row in before]
        return self._read(embed, kept) if any(kept) else None

    @abstractmethod
    def _read(self, embed: Embed, before: Sequence[Before]) -> Read: ...

    @abstractmethod
    def injector(self, embed: Embed, read: Read) -> Inject:
        """What the decoder calls at every step, with K consecutive rows for each that was read."""


class Attended(ContextNetwork):
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

    def _read(self, embed: Embed, before: Sequence[Before]) -> Read:
        """States (B, S, k), keys (B, S, a), and which positions are looked at (B, S); the first is
        where there is no sentence, its state 0."""
        there = [row for row, sentences in enumerate(before) if sentences]
        words, lengths = _embedded(embed, [before[row][0] for row in there], self.vector.device)
        packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        annotations, _ = pad_packed_sequence(self.encoder(packed)[0], batch_first=True)
        states, rows = _rows(annotations, there, len(before))
        real = torch.ones(len(before), dtype=torch.long, device=states.device)
        real = real.index_copy(0, rows, lengths.to(states.device))
        mask = torch.arange(states.shape[1], device=states.device) < real[:, None]
        return states, self.of_state(states), mask

    def injector(self, embed: Embed, read: Read) -> Inject:
        states, keys, mask = read

        def inject(prev: Tensor, state: Tensor, context: Tensor) -> Tensor:
            asked = self.asks(torch.cat([embed(prev), state, context], -1))
            asked = asked.unflatten(0, (len(states), -1))[:, :, None]  # (B, K, 1, a)
            energy = torch.tanh(asked + keys[:, None]) @ self.vector  # (B, K, S)
            alpha = energy.masked_fill(~mask[:, None], -torch.inf).softmax(-1)
            fed: Tensor = self.into((alpha @ states).flatten(0, 1))
            return fed

        return inject


class Hierarchical(ContextNetwork):
    """CS-NMT."""

    sentences = 3

    def __init__(self, kind: ContextKind, sizes: Sizes) -> None:
        super().__init__()
        self.kind = kind
        self.sentence = nn.GRU(sizes.word, kind.size, batch_first=True)
        self.document = nn.GRU(kind.size, kind.size, batch_first=True)
        own = sizes.word + sizes.hidden + sizes.context
        self.gate = nn.Linear(own, kind.size) if kind.form == "gated" else None
        self.into = nn.Linear(kind.size, sizes.update, bias=False)
        nn.init.zeros_(self.into.weight)

    def _read(self, embed: Embed, before: Sequence[Before]) -> Read:
        """D (B, k); 0 where there is no sentence."""
        there = [row for row, sentences in enumerate(before) if sentences]
        counts = [len(before[row]) for row in there]
        sentences = [*chain.from_iterable(before)]
        device = self.into.weight.device
        ends = _last(self.sentence, *_embedded(embed, sentences, device))
        of_rows = pad_sequence([*torch.split(ends, counts)], batch_first=True)
        return _rows(_last(self.document, of_rows, torch.tensor(counts)), there, len(before))[:1]

    def injector(self, embed: Embed, read: Read) -> Inject:
        (document,), gate = read, self.gate
        if gate is None:
            fed = self.into(document)
            return lambda prev, state, context: _for_beam(fed, len(prev))

        def inject(prev: Tensor, state: Tensor, context: Tensor) -> Tensor:
            opened = torch.sigmoid(gate(torch.cat([embed(prev), state, context], -1)))
            gated: Tensor = self.into(opened * _for_beam(document, len(prev)))
            return gated

        return inject


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


def _rows(read: Tensor, there: Sequence[int], count: int) -> tuple[Tensor, Tensor]:
    """`count` rows of which those that are there have been found, the others 0; and where."""
    rows = torch.tensor(there, device=read.device)
    return read.new_zeros(count, *read.shape[1:]).index_copy(0, rows, read), rows


def _for_beam(read: Tensor, rows: int) -> Tensor:
    """(B, .) for R rows, K consecutive ones each."""
    return read[:, None].expand(-1, rows // len(read), -1).flatten(0, 1)


FORMS: dict[ContextForm, Callable[[ContextKind, Sizes], ContextNetwork]] = {
    "attended": Attended,
    "auxiliary": Hierarchical,
    "gated": Hierarchical,
}


def context_network_of(kind: ContextKind, base: Injectable) -> ContextNetwork:
    """An untrained network for a base. Raises ValueError for a form that is not there."""
    if kind.form not in FORMS:
        raise ValueError(f"form {kind.form!r} is none of {', '.join(FORMS)}")
    return FORMS[kind.form](kind, Sizes.of(base))


@dataclass(frozen=True)
class InPlace:
    """An encoded batch, and what was read of the sentences before it."""

    own: Encoded
    read: Read | None = None  # None: of none

    @property
    def mask(self) -> Tensor:
        return self.own.mask

    def rows(self, index: Tensor) -> InPlace:
        read = self.read
        if read is not None:
            read = tuple(part.index_select(0, index) for part in read)
        return InPlace(self.own.rows(index), read)

    def cut(self, length: int) -> InPlace:
        return replace(self, own=self.own.cut(length))


class InDocument(Injected[InPlace, S]):
    """A backbone whose every state has read the sentences before its own. `encode` alone gives
    sentences that have none before them: these it translates as the base does."""

    network: ContextNetwork

    def __init__(self, base: Injectable[Any, S], network: ContextNetwork) -> None:
        super().__init__(base, network)
        self.previous = network.sentences

    def for_decoding(self, base: Injectable[Any, S]) -> InDocument[S]:
        return InDocument(base, self.network.eval())

    def encode(self, src: Tensor, src_len: Tensor) -> InPlace:
        return InPlace(self.base.encode(src, src_len))

    def in_document(self, encoded: InPlace, before: Sequence[Before]) -> InPlace:
        return replace(encoded, read=self.network.read(self.base.embed, before))

    def for_beam(self, encoded: InPlace) -> InPlace:
        return replace(encoded, own=self.base.for_beam(encoded.own))

    def of_base(self, encoded: InPlace) -> Encoded:
        return encoded.own

    def injecting(self, encoded: InPlace) -> Inject | None:
        if encoded.read is None:
            return None
        return self.network.injector(self.base.embed, encoded.read)

    def limited_to(self, words: Tensor) -> InDocument[S]:
        return InDocument(self.base.limited_to(words), self.network)
