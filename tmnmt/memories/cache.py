"""The session cache: what the decoder did earlier in the same document (Tu et al. 2018, section 3).

read     P_m = softmax(c k)       m = sum P_m (v + E e(y))                               eq. 5
deep     lambda = sigmoid(U s + V c + W m + b)    s~ = (1 - lambda) s + lambda m         eq. 6, 8; or one lambda for s
shallow  p(y) = (1 - lambda) p_gen(y) + lambda sum of P_m over the slots of y            section 4.4, lambda a scalar
write    after a whole sentence, word by word: the slot of the same word is averaged with (c, s),
         else an empty slot is taken, else the least recently written one

E e(y) is OURS: a state precedes its word and does not know it, so the slot's word is added to what is read of it.
OURS, too: the variant of one lambda for all of s, in place of the vector of eq. 8; the sum over all slots of a word in
a shallow cache (with overwriting off there may be several), where the paper's formula has one slot; and that </s> is
not written, of which the paper says nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from tmnmt.memories.base import CacheState, Embed
from tmnmt.memories.view import first_of, view_of
from tmnmt.memories.words import with_words, word_map
from tmnmt.vocab import EOS, PAD

CacheFusion = Literal["deep", "shallow"]
CacheMatching = Literal["dot", "learned"]
Combining = Literal["interpolate", "add"]
CacheGate = Literal["elements", "scalar"]
GATE_START = -3.0  # sigmoid(-3) = 0.05
PROJECTED = (
    100  # slots at most that W is multiplied with ahead: about as many as a sentence has rows over all its steps
)


@dataclass(frozen=True)
class CacheKind:
    """Which of the variants a session cache is; the defaults are what is trained and ships."""

    fusion: CacheFusion = "deep"
    words: bool = True  # E e(y), deep only; False: states only, as in the paper
    matching: CacheMatching = "dot"  # or learned: c A k (footnote 2)
    combining: Combining = "interpolate"  # or add: s~ = s + lambda m, a gated auxiliary context (footnote 3); deep only
    gate: CacheGate = "elements"  # of the state as in the paper, or scalar (OURS): one for all of it; deep only


class SessionCache(nn.Module):
    """The parameters U, V, W, b of the gate, A and E; a document's slots are in `CacheContents`.

    The bias b is OURS: the gate begins almost closed, so that training starts from the plain model. A starts as the
    identity, E at zero."""

    def __init__(self, context_size: int, hidden_size: int, word_size: int, kind: CacheKind = CacheKind()) -> None:
        super().__init__()
        self.kind = kind
        deep = kind.fusion == "deep"
        outputs = hidden_size if deep and kind.gate == "elements" else 1
        self.U = nn.Linear(hidden_size, outputs)  # with the bias b
        nn.init.constant_(self.U.bias, GATE_START)
        self.V = nn.Linear(context_size, outputs, bias=False)
        self.W = nn.Linear(hidden_size, outputs, bias=False)
        self.A = nn.Parameter(torch.eye(context_size)) if kind.matching == "learned" else None
        self.word = word_map(word_size, hidden_size) if deep and kind.words else None

    def ready(self, state: CacheState, embed: Embed) -> CacheState:
        """The same with all that no step changes: the slots' words in what is blended of them, and, of few slots, W of
        each."""
        said = with_words(self.word, state.values, state.ids, embed)
        few = said.shape[1] <= PROJECTED or self.W.out_features == 1
        read = torch.cat([said, self.W(said)], -1) if few else said
        return replace(state, read=read, first=first_of(state.ids), view=None)

    def match(self, context: Tensor, state: CacheState) -> Tensor:
        """P_m (R, C) over the slots of the row's sentence (eq. 5); zero where the cache is empty."""
        view = view_of(state)
        query = view.pick(context if self.A is None else context @ self.A)
        scores = view.rows.dot(query, state.keys)
        if view.mask is not None:
            scores = scores.masked_fill(~view.mask, -torch.inf)
        return view.put(scores.softmax(-1))

    def blend(self, weights: Tensor, state: CacheState) -> tuple[Tensor, Tensor]:
        """m (R', d) and W m of P_m (R', C) of the rows with a filled cache."""
        assert state.read is not None
        d = self.U.in_features
        blended = view_of(state).rows.blend(weights, state.read)
        recalled = blended[:, :d]
        return recalled, blended[:, d:] if blended.shape[1] > d else self.W(recalled)  # W m = sum P_m (W v)

    def logits(self, hidden: Tensor, context: Tensor, projected: Tensor) -> Tensor:
        """U s + V c + W m + b of W m (R, d): (R, d), or all (R, 1) of a shallow cache or a scalar gate."""
        own: Tensor = self.U(hidden)
        return torch.addmm(own + projected, context, self.V.weight.t())

    def fuse(self, hidden: Tensor, context: Tensor, state: CacheState) -> tuple[Tensor, Tensor]:
        """Deep: s~ (R, d) of s (R, d) and c (R, l), and lambda (R, d) or (R, 1); s and 0 where it is empty (eq. 6, 8).

        `state` has been seen."""
        view = view_of(state)
        recalled, projected = self.blend(view.pick(self.match(context, state)), state)
        own = view.pick(hidden)
        gate = torch.sigmoid(self.logits(own, view.pick(context), projected))
        added = self.kind.combining == "add"
        fused = torch.addcmul(own, gate, recalled) if added else torch.lerp(own, recalled, gate)
        return view.put(fused, hidden), view.put(gate)

    def recall(self, hidden: Tensor, context: Tensor, state: CacheState) -> tuple[Tensor, Tensor]:
        """Shallow: P_m (R, C), and the logit of lambda (R,), which is -inf where the cache is empty.

        `state` has been seen."""
        view, weights = view_of(state), self.match(context, state)
        projected = self.blend(view.pick(weights), state)[1]
        logit = self.logits(view.pick(hidden), view.pick(context), projected)[:, 0]
        return weights, view.put(logit, -torch.inf)


class CacheContents:
    """The slots of one document, at most `size` (0: nothing is ever kept), in fp32.

    With `overwrite` off a repeated word takes a slot of its own (Tu et al., table 3)."""

    def __init__(
        self, size: int, context_size: int, hidden_size: int, overwrite: bool = True,
        device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        self.size, self.overwrite = size, overwrite
        self._keys = torch.zeros(size, context_size, device=device)
        self._values = torch.zeros(size, hidden_size, device=device)
        self._words: OrderedDict[int, int] = OrderedDict()  # slot -> subword id, least recently written first
        self._slots: dict[int, int] = {}  # subword id -> slot

    def __len__(self) -> int:
        """How many slots are filled: always the first ones."""
        return len(self._words)

    @property
    def keys(self) -> Tensor:
        """(len, l)"""
        return self._keys[: len(self)]

    @property
    def values(self) -> Tensor:
        """(len, d)"""
        return self._values[: len(self)]

    @property
    def ids(self) -> list[int]:
        """The subword of every filled slot."""
        return [self._words[slot] for slot in range(len(self))]

    @property
    def latest(self) -> list[int]:
        """The filled slots, the one written last first."""
        return list(reversed(self._words))

    def clear(self) -> None:
        """Forget everything: a new document starts."""
        self._words.clear()
        self._slots.clear()

    def record(self) -> dict[str, Any]:
        """All but keys and values, for JSON: size, and the word of every slot, least recently written first."""
        return {"size": self.size, "overwrite": self.overwrite, "words": list(self._words.items())}

    def refilled(self, record: dict[str, Any], keys: Tensor, values: Tensor, vocabulary: int) -> CacheContents:
        """A cache of these sizes and on this device with what another one's `record`, keys and values say.

        vocabulary: how many subwords there are. Raises ValueError for what no cache of these sizes can have said."""
        shape, device = (self._keys.shape[1], self._values.shape[1]), self._keys.device
        made = CacheContents(self.size, *shape, record["overwrite"], device)
        made._words = OrderedDict(record["words"])
        if any(type(number) is not int for number in (*made._words.keys(), *made._words.values())):
            raise ValueError("its slots are no whole numbers")
        if sorted(made._words) != list(range(len(record["words"]))) or len(made) > self.size:
            raise ValueError("its slots are not what was written")
        made._slots = {word: slot for slot, word in made._words.items()}
        if not all(0 <= word < vocabulary for word in made._slots):
            raise ValueError(f"a word that is not among the {vocabulary:,} of the vocabulary")
        if self.overwrite and len(made._slots) < len(made):
            raise ValueError("a word has two slots, with overwriting on")
        for name, wanted, given in (("keys", made._keys, keys), ("values", made._values, values)):
            if given.shape != (len(made), wanted.shape[1]) or not given.is_floating_point():
                raise ValueError(f"its {name} are {given.dtype} {tuple(given.shape)}, wanted {len(made)} slots of "
                                 f"{wanted.shape[1]} floating-point numbers")  # fmt: skip
            if not bool(given.isfinite().all()):
                raise ValueError(f"its {name} are not all finite")
            wanted[: len(made)] = given.to(device)
        return made

    def write(self, contexts: Tensor, hiddens: Tensor, ids: Tensor) -> None:
        """Remember a translated sentence: contexts (T, l), hiddens (T, d), ids (T,); padding and, OURS, </s> are
        left out.

        Equal to the loop of the paper to rounding, in two products: the slots are found first, then every slot is a
        weighted sum of what it held and of the sentence's positions, since averaging twice is 1/4, 1/4, 1/2."""
        if self.size == 0:
            return
        held: dict[int, float] = {}  # slot -> share of what it held before this sentence
        shares: dict[int, dict[int, float]] = {}  # slot -> position -> share
        for t, word in enumerate(ids.tolist()):
            if word in (EOS, PAD):
                continue
            slot, again = self._slot(word)
            if again:
                held[slot] = held.get(slot, 1.0) / 2
                shares[slot] = {u: share / 2 for u, share in shares.get(slot, {}).items()} | {t: 0.5}
            else:
                held[slot], shares[slot] = 0.0, {t: 1.0}
        if shares:
            self._blend(held, shares, contexts.detach(), hiddens.detach())

    def _slot(self, word: int) -> tuple[int, bool]:
        """The slot that `word` is written to, and whether it holds the same word already."""
        slot = self._slots.get(word) if self.overwrite else None
        again = slot is not None
        if slot is None and len(self._words) < self.size:
            slot = len(self._words)
        elif slot is None:
            slot, forgotten = self._words.popitem(last=False)
            if self._slots.get(forgotten) == slot:
                del self._slots[forgotten]
        self._words[slot], self._slots[word] = word, slot
        self._words.move_to_end(slot)
        return slot, again

    def _blend(
        self,
        held: dict[int, float],
        shares: dict[int, dict[int, float]],
        contexts: Tensor,
        hiddens: Tensor,
    ) -> None:
        weights = torch.zeros(len(shares), len(contexts))
        for row, of_slot in zip(weights, shares.values(), strict=True):
            row[list(of_slot)] = torch.tensor(list(of_slot.values()))
        device = self._keys.device
        slots = torch.tensor(list(shares), device=device)
        before = torch.tensor([held[slot] for slot in shares], device=device)[:, None]
        weights = weights.to(device)
        self._keys[slots] = before * self._keys[slots] + weights @ contexts.to(device).float()
        self._values[slots] = before * self._values[slots] + weights @ hiddens.to(device).float()


def collate_caches(
    contents: list[CacheContents],
    rows_per_sentence: int = 1,
    device: torch.device | str = "cpu",
) -> CacheState | None:
    """A snapshot of N documents' caches for the next sentence of each; None if all are empty.

    Rows are sentence by sentence, `rows_per_sentence` (the beam) of each."""
    if not any(len(cache) for cache in contents):
        return None
    lengths = torch.tensor([len(cache) for cache in contents], device=device)
    keys = pad_sequence([cache.keys for cache in contents], batch_first=True).to(device)
    values = pad_sequence([cache.values for cache in contents], batch_first=True).to(device)
    ids = pad_sequence([torch.tensor(cache.ids, dtype=torch.int64) for cache in contents], batch_first=True).to(device)
    return CacheState(
        keys=keys, values=values, ids=ids, mask=torch.arange(keys.shape[1], device=device) < lengths[:, None],
        sentence=torch.arange(len(contents), device=device).repeat_interleave(rows_per_sentence),
    )  # fmt: skip
