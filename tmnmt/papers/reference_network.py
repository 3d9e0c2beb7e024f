"""Reference networks (Fu et al. 2019): what the whole training corpus says is read into the
decoder's state, from anchors found by local coordinate coding.

    monolingual  c^G = sum_j alpha_j v_j                                     eq. 14
                 alpha = softmax of v tanh(W s_{t-1} + U c_t + V v_j)        eq. 15
                 s_t = f(e(y_{t-1}), s_{t-1}, c_t, c^G)                      eq. 16
    bilingual    q = [e(y_{t-1}); s_{t-1}; c_t]                              eq. 17
                 f_s(q) = sum_j gamma_j(q) (W_j g(q) + b_j)                  eq. 18, 19
                 s_t = f(e(y_{t-1}), s_{t-1}, c_t, f_s(q))                   eq. 22

OURS: what is fed to the state goes through weights that begin at zero, so that an untrained network
is the plain model, bit for bit; g is tanh of a linear map.

    R: rows    C: anchors    k: their size    a: hidden units of the scores    E: embedding size
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from tmnmt.config.options import Form as Form  # which networks there are
from tmnmt.models.base import E, Inject, Injectable, S
from tmnmt.models.injected import Embed, Injected, Network, Sizes
from tmnmt.papers.local_coding import LocalCoding
from tmnmt.papers.reading import Keep, Step, ignore


@dataclass(frozen=True)
class ReferenceKind:
    """Which network it is; the papers' sizes are 100 anchors, and 30 of size 100."""

    form: Form
    anchors: int
    hidden: int  # units of the scores
    size: int = 100  # of an anchor; of a monolingual network it is that of the encoder's states


class ReferenceNetwork(Network, ABC):
    """What a reference network promises."""

    kind: ReferenceKind

    @abstractmethod
    def injector(self, embed: Embed, keep: Keep = ignore) -> Inject:
        """What the decoder calls at every step; all that no step changes is computed here. `keep`
        gets at every step the weights of the anchors (R, C), and of a network that expects the next
        word f_s(q) (R, E)."""


class Regression(ReferenceNetwork):
    """A network that expects the next word.

    weight: what eq. 23 keeps small."""

    weight: Tensor


class Monolingual(ReferenceNetwork):
    """M-RefNet. The anchors are of the encoder's states, found before (`LocalCoding`), and do not
    learn."""

    def __init__(self, kind: ReferenceKind, sizes: Sizes) -> None:
        super().__init__()
        self.kind = kind
        self.anchors = nn.Parameter(
            torch.zeros(kind.anchors, sizes.annotation), requires_grad=False
        )
        self.of_state = nn.Linear(sizes.hidden, kind.hidden, bias=False)  # W
        self.of_context = nn.Linear(sizes.context, kind.hidden, bias=False)  # U
        self.of_anchor = nn.Linear(sizes.annotation, kind.hidden, bias=False)  # V
        self.vector = nn.Parameter(torch.empty(kind.hidden))
        nn.init.normal_(self.vector, std=kind.hidden**-0.5)
        self.into = nn.Linear(sizes.annotation, sizes.update, bias=False)
        nn.init.zeros_(self.into.weight)

    def injector(self, embed: Embed, keep: Keep = ignore) -> Inject:
        keys, updates = self.of_anchor(self.anchors), self.into(self.anchors)  # (C, a), (C, update)

        def inject(prev: Tensor, state: Tensor, context: Tensor) -> Tensor:
            query = self.of_state(state) + self.of_context(context)  # (R, a)
            alpha = (torch.tanh(query[:, None] + keys) @ self.vector).softmax(-1)
            keep(Step(weights=alpha))
            added: Tensor = alpha @ updates
            return added

        return inject


class Bilingual(Regression):
    """B-RefNet."""

    def __init__(self, kind: ReferenceKind, sizes: Sizes) -> None:
        super().__init__()
        self.kind = kind
        input_size = sizes.word + sizes.hidden + sizes.context
        self.point = nn.Linear(input_size, kind.size)  # of g
        self.coding = LocalCoding(kind.anchors, kind.size, input_size, kind.hidden)
        self.weight = nn.Parameter(torch.empty(kind.anchors, kind.size, sizes.word))  # W_j
        self.bias = nn.Parameter(torch.empty(kind.anchors, sizes.word))  # b_j
        nn.init.normal_(self.weight, std=kind.size**-0.5 * sizes.word**-0.5)
        nn.init.zeros_(self.bias)
        self.into = nn.Linear(sizes.word, sizes.update, bias=False)
        nn.init.zeros_(self.into.weight)

    def injector(self, embed: Embed, keep: Keep = ignore) -> Inject:
        gammas, weight = self.coding.coding(), self.weight.flatten(0, 1)  # (C k, E)

        def inject(prev: Tensor, state: Tensor, context: Tensor) -> Tensor:
            q = torch.cat([embed(prev), state, context], -1)
            g = torch.tanh(self.point(q))  # (R, k)
            gamma = gammas(q, g)  # (R, C)
            word = (gamma[:, :, None] * g[:, None]).flatten(1) @ weight + gamma @ self.bias
            keep(Step(gamma, word))
            update: Tensor = self.into(word)
            return update

        return inject


class WithoutAnchors(Regression):
    """The control of B-RefNet: what is expected is regressed from q by a hidden layer, which gives
    it as many parameters as the local codes have, to a hidden unit:

    f(q) = W tanh(H q + h) + b"""

    def __init__(self, kind: ReferenceKind, sizes: Sizes) -> None:
        super().__init__()
        self.kind = kind
        with torch.device("meta"):
            wanted = _numbers(Bilingual(replace(kind, form="bilingual"), sizes))
        input_size = sizes.word + sizes.hidden + sizes.context
        rest = sizes.word + sizes.word * sizes.update  # b, and what leads into the state
        units = max((wanted - rest) // (input_size + 1 + sizes.word), 1)
        self.point = nn.Linear(input_size, units)
        self.weight = nn.Parameter(torch.empty(units, sizes.word))
        self.bias = nn.Parameter(torch.zeros(sizes.word))
        nn.init.normal_(self.weight, std=units**-0.5 * sizes.word**-0.5)
        self.into = nn.Linear(sizes.word, sizes.update, bias=False)
        nn.init.zeros_(self.into.weight)

    def injector(self, embed: Embed, keep: Keep = ignore) -> Inject:
        def inject(prev: Tensor, state: Tensor, context: Tensor) -> Tensor:
            q = torch.cat([embed(prev), state, context], -1)
            word = torch.tanh(self.point(q)) @ self.weight + self.bias
            keep(Step(word=word))
            update: Tensor = self.into(word)
            return update

        return inject


def _numbers(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


FORMS: dict[Form, Callable[[ReferenceKind, Sizes], ReferenceNetwork]] = {
    "monolingual": Monolingual,
    "bilingual": Bilingual,
    "regression": WithoutAnchors,
}


def network_of(kind: ReferenceKind, base: Injectable) -> ReferenceNetwork:
    """An untrained network for a base. Raises ValueError for a form that is not there."""
    if kind.form not in FORMS:
        raise ValueError(f"form {kind.form!r} is none of {', '.join(FORMS)}")
    return FORMS[kind.form](kind, Sizes.build(base))


class Referring(Injected[E, S]):
    """A backbone whose every state has read a reference network."""

    name = "reference"
    network: ReferenceNetwork
    _fixed: Inject | None = None

    @classmethod
    def untrained(cls, kind: Mapping[str, Any], base: Injectable[E, S]) -> Self:
        return cls(base, network_of(ReferenceKind(**kind), base))

    def for_decoding(self, base: Injectable[E, S]) -> Referring[E, S]:
        clone = Referring(base, self.network.eval())
        with torch.inference_mode():
            clone._fixed = self.network.injector(base.embed)
        return clone

    def of_base(self, encoded: E) -> E:
        return encoded

    def injecting(self, encoded: E) -> Inject:
        return self._fixed or self.network.injector(self.base.embed)

    def encode(self, src: Tensor, src_len: Tensor) -> E:
        encoded: E = self.base.encode(src, src_len)
        return encoded

    def for_beam(self, encoded: E) -> E:
        result: E = self.base.for_beam(encoded)
        return result

    def limited_to(self, words: Tensor) -> Referring[E, S]:
        clone = Referring(self.base.limited_to(words), self.network)
        clone._fixed = self._fixed  # it reads no output
        return clone
