"""Reference networks (Fu et al. 2019): what the whole training corpus says is read into the
decoder's state, from anchors found by local coordinate coding.

    monolingual  c^G = sum_j alpha_j v_j                                     eq. 14
                 alpha = softmax of v tanh(W s_{t-1} + U c_t + V v_j)        eq. 15
                 s_t = f(e(y_{t-1}), s_{t-1}, c_t, c^G)                      eq. 16
    bilingual    q = [e(y_{t-1}); s_{t-1}; c_t]                              eq. 17
                 f_s(q) = sum_j gamma_j(q) (W_j g(q) + b_j)                  eq. 18, 19
                 s_t = f(e(y_{t-1}), s_{t-1}, c_t, f_s(q))                   eq. 22

What is injected moves the state, and with it every key, slot and link that the decoder makes. So a
network is bound to its backbone (`Referring`), and whatever reads that reads the same.

OURS: what is fed to the state goes through weights that begin at zero, so that an untrained network
is the plain model, bit for bit; g is tanh of a linear map.

    R: rows    C: anchors    k: their size    a: hidden units of the scores    E: embedding size
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tmnmt.config.options import Form as Form  # which networks there are
from tmnmt.models.base import E, Inject, Injectable, S
from tmnmt.models.local_coding import LocalCoding
from tmnmt.models.weights import fill, packed, unpacked, without_numbers

Embed = Callable[[Tensor], Tensor]
FORMAT = "1"  # of reference.safetensors


@dataclass(frozen=True)
class ReferenceKind:
    """Which network it is; the papers' sizes are 100 anchors, and 30 of size 100."""

    form: Form
    anchors: int
    hidden: int  # units of the scores
    size: int = 100  # of an anchor; of a monolingual network it is that of the encoder's states


class Sizes(NamedTuple):
    """Of the backbone that a network is for."""

    word: int
    hidden: int
    context: int
    annotation: int
    update: int

    @classmethod
    def of(cls, base: Injectable) -> Sizes:
        return cls(
            base.word_size,
            base.hidden_size,
            base.context_size,
            base.annotation_size,
            base.update_size,
        )


class ReferenceNetwork(nn.Module, ABC):
    """What a reference network promises."""

    kind: ReferenceKind

    @abstractmethod
    def injector(self, embed: Embed, keep: Callable[[Tensor], object] = lambda _: None) -> Inject:
        """What the decoder calls at every step; all that no step changes is computed here. `keep`
        gets at every step what was read: alpha (R, C) of a monolingual network, f_s(q) (R, E) of a
        bilingual one."""


class Monolingual(ReferenceNetwork):
    """M-RefNet. The anchors are of the encoder's states, found before (`LocalCoding`), and do not
    learn."""

    def __init__(self, kind: ReferenceKind, sizes: Sizes) -> None:
        super().__init__()
        self.kind = kind
        self.register_buffer("anchors", torch.zeros(kind.anchors, sizes.annotation))
        self.of_state = nn.Linear(sizes.hidden, kind.hidden, bias=False)  # W
        self.of_context = nn.Linear(sizes.context, kind.hidden, bias=False)  # U
        self.of_anchor = nn.Linear(sizes.annotation, kind.hidden, bias=False)  # V
        self.vector = nn.Parameter(torch.empty(kind.hidden))
        nn.init.normal_(self.vector, std=kind.hidden**-0.5)
        self.into = nn.Linear(sizes.annotation, sizes.update, bias=False)
        nn.init.zeros_(self.into.weight)

    def injector(self, embed: Embed, keep: Callable[[Tensor], object] = lambda _: None) -> Inject:
        anchors: Tensor = self.get_buffer("anchors")
        keys, fed = self.of_anchor(anchors), self.into(anchors)  # (C, a), (C, update)

        def inject(prev: Tensor, state: Tensor, context: Tensor) -> Tensor:
            asked = self.of_state(state) + self.of_context(context)  # (R, a)
            alpha = (torch.tanh(asked[:, None] + keys) @ self.vector).softmax(-1)
            keep(alpha)
            added: Tensor = alpha @ fed
            return added

        return inject


class Bilingual(ReferenceNetwork):
    """B-RefNet."""

    def __init__(self, kind: ReferenceKind, sizes: Sizes) -> None:
        super().__init__()
        self.kind = kind
        own = sizes.word + sizes.hidden + sizes.context
        self.point = nn.Linear(own, kind.size)  # of g
        self.coding = LocalCoding(kind.anchors, kind.size, own, kind.hidden)
        self.weight = nn.Parameter(torch.empty(kind.anchors, kind.size, sizes.word))  # W_j
        self.bias = nn.Parameter(torch.empty(kind.anchors, sizes.word))  # b_j
        nn.init.normal_(self.weight, std=kind.size**-0.5 * sizes.word**-0.5)
        nn.init.zeros_(self.bias)
        self.into = nn.Linear(sizes.word, sizes.update, bias=False)
        nn.init.zeros_(self.into.weight)

    def injector(self, embed: Embed, keep: Callable[[Tensor], object] = lambda _: None) -> Inject:
        gammas, weight = self.coding.coding(), self.weight.flatten(0, 1)  # (C k, E)

        def inject(prev: Tensor, state: Tensor, context: Tensor) -> Tensor:
            q = torch.cat([embed(prev), state, context], -1)
            g = torch.tanh(self.point(q))  # (R, k)
            gamma = gammas(q, g)  # (R, C)
            word = (gamma[:, :, None] * g[:, None]).flatten(1) @ weight + gamma @ self.bias
            keep(word)
            fed: Tensor = self.into(word)
            return fed

        return inject


FORMS: dict[Form, Callable[[ReferenceKind, Sizes], ReferenceNetwork]] = {
    "monolingual": Monolingual,
    "bilingual": Bilingual,
}


def network_of(kind: ReferenceKind, base: Injectable) -> ReferenceNetwork:
    """An untrained network for a base. Raises ValueError for a form that is not there."""
    if kind.form not in FORMS:
        raise ValueError(f"form {kind.form!r} is none of {', '.join(FORMS)}")
    return FORMS[kind.form](kind, Sizes.of(base))


class Referring(Injectable[E, S]):
    """A backbone whose every state has read a reference network."""

    def __init__(self, base: Injectable[E, S], network: ReferenceNetwork) -> None:
        super().__init__()
        self.base, self.network = base, network
        self.word_size, self.hidden_size, self.context_size, *_ = Sizes.of(base)
        *_, self.annotation_size, self.update_size = Sizes.of(base)
        self.vocab_size, self.shares_encoded = base.vocab_size, base.shares_encoded
        self.encoder_reads = base.encoder_reads
        self._fixed: Inject | None = None

    def for_decoding(self, base: Injectable[E, S]) -> Referring[E, S]:
        """The same network with `base`, the same model as it decodes. It follows no change of the
        parameters."""
        same = Referring(base, self.network.eval())
        with torch.inference_mode():
            same._fixed = self.network.injector(base.embed)
        return same

    def _injecting(self, also: Inject | None) -> Inject:
        own = self._fixed or self.network.injector(self.base.embed)
        if also is None:
            return own
        return lambda prev, state, context: own(prev, state, context) + also(prev, state, context)

    def encode(self, src: Tensor, src_len: Tensor) -> E:
        return self.base.encode(src, src_len)

    def for_beam(self, encoded: E) -> E:
        return self.base.for_beam(encoded)

    def limited_to(self, words: Tensor) -> Referring[E, S]:
        same = Referring(self.base.limited_to(words), self.network)
        same._fixed = self._fixed  # it reads no output
        return same

    def annotations(self, encoded: E) -> Tensor:
        return self.base.annotations(encoded)

    def start(self, encoded: E) -> S:
        return self.base.start(encoded)

    def reordered(self, state: S, rows: Tensor) -> S:
        return self.base.reordered(state, rows)

    def step(
        self, prev: Tensor, state: S, encoded: E, inject: Inject | None = None
    ) -> tuple[S, Tensor, Tensor]:
        return self.base.step(prev, state, encoded, self._injecting(inject))

    def embed(self, ids: Tensor) -> Tensor:
        return self.base.embed(ids)

    def readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        return self.base.readout(prev, hidden, context)

    def forced(
        self, encoded: E, tgt: Tensor, inject: Inject | None = None
    ) -> tuple[Tensor, Tensor]:
        return self.base.forced(encoded, tgt, self._injecting(inject))

    def alphas(self, encoded: E, tgt: Tensor, inject: Inject | None = None) -> Tensor:
        return self.base.alphas(encoded, tgt, self._injecting(inject))


def packed_network(network: ReferenceNetwork, base: str) -> bytes:
    """reference.safetensors; `base`: the hash of the base that it has learned with."""
    tensors = {name: value.cpu().contiguous() for name, value in network.state_dict().items()}
    notes = {"format": FORMAT, "kind": json.dumps(asdict(network.kind)), "base": base}
    return packed(tensors, notes)


def unpacked_network(content: bytes, base: Injectable, base_hash: str) -> ReferenceNetwork:
    """The network of such a file, on the CPU. Raises ValueError for another format or base, and
    what safetensors and torch raise for damage."""
    tensors, notes = unpacked(content)
    if notes.get("format") != FORMAT:
        raise ValueError(f"format {notes.get('format')!r}, this version reads {FORMAT}")
    if notes.get("base") != base_hash:
        raise ValueError(f"it has learned with the base {notes.get('base')}, this is {base_hash}")
    kind: dict[str, Any] = json.loads(notes["kind"])
    if any(type(kind[name]) is not int or kind[name] < 1 for name in ("anchors", "hidden", "size")):
        raise ValueError(f"sizes of its kind are no whole numbers above 0: {kind}")
    with without_numbers():
        network = network_of(ReferenceKind(**kind), base)
    fill(network, tensors)
    return network
