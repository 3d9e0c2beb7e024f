"""The session cache: what the decoder did earlier in the same document (Tu et al. 2018, section 3).

    read       P_m = softmax(match + kappa g)    m = sum P_m (v + E e(y))          eq. 5
    match      c k; or c A k (footnote 2); or OURS, of a shallow cache:
               (Q [c, s]) (K [k, v]), and m is of K [k, v]
    deep       lambda = sigmoid(U s + V c + W m + b), or one lambda for all of s
               s~ = (1 - lambda) s + lambda m                                      eq. 6, 8
    shallow    p(y) = (1 - lambda) p_gen(y) + lambda sum of P_m over the slots of y,
               lambda a scalar                                                     section 4.4
    empty      lambda sigmoid(b (sum P_m cos(k', k) - a)) for lambda,
               k' the key that a slot written now would get                        OURS
    write      after a whole sentence, word by word: an empty slot is taken, else
               the least recently written one; with overwriting the slot of the
               same word, where there is one, is averaged with (c, s)

E e(y) is OURS: a state precedes its word and does not know it, so the slot's word is added to what
is read of it. OURS, too: Q and K, by which states match beside contexts, and a slot is a few
numbers; one lambda for all of s, in place of the vector of eq. 8; the sum over all slots of a word
in a shallow cache (with overwriting off there may be several), where the paper's formula has one
slot; the signs that the gate of a shallow cache is shown; the empty slot beside the others, which
leaves the word to the model: without it P_m is 1 where there is a single slot, whether it matches
or not; the less like this position what is recalled, the more it takes; that P_m prefers, as far as
training finds it right, slots whose word came after the word that has just been written, too, when
it was written last (g); and that </s> is not written, of which the paper says nothing."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.linalg import vecdot
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

from tmnmt.compiled import kernels
from tmnmt.compiled.kernels import Array, Table, can_be_compiled
from tmnmt.config.options import ModelOptions
from tmnmt.errors import ModelError, short_repr
from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.contract import Collated, HistoryLayer, LayerOutput, StepState, Words
from tmnmt.layers.learned import LearnedLayer
from tmnmt.layers.traced import LayerTrace, TracedSource
from tmnmt.layers.view import Positions, first_of
from tmnmt.models.base import Backbone
from tmnmt.trained_layers.reading import FACTS
from tmnmt.trained_layers.words import Embed, with_words, word_map
from tmnmt.vocab import BOS, EOS, PAD

NAME = "cache"  # of the layer
CacheFusion = Literal["deep", "shallow"]
CacheMatching = Literal["dot", "learned", "joint"]
Combining = Literal["interpolate", "add"]
CacheGate = Literal["elements", "scalar"]
# the share of s v beside c k in the match that Q and K begin with: |s|^2 is more than three times
# |c|^2
STATES = 0.2
GATE_START = -3.0  # sigmoid(-3) = 0.05
# of kappa and of the signs' weights: both have to move by several units within few updates
STEEP = 10.0
# what the empty slot leaves is a half where the cosine is 0.65, and a 56th at 0.45, until training
# says otherwise
UNLIKE, DOUBT = 0.65, 20.0
MIN_LENGTH = 1e-12  # the length of a key that is nothing
SMALL = 1e-6  # keeps a division by the square of a vanishing state finite
# slots at most that W is multiplied with ahead: about as many as a sentence has rows over all its
# steps
PROJECTED = 100
MATCHED = 35.0  # how much a position matches itself where Q and K have learned on RNNsearch


@dataclass(frozen=True)
class CacheKind:
    """Which of the variants a session cache is; the defaults are Tu et al.'s, with words beside
    states."""

    fusion: CacheFusion = "deep"
    words: bool = True  # E e(y), deep only; False: states only, as in the paper
    # or learned: c A k (footnote 2); or joint (OURS), by Q and K; shallow only
    matching: CacheMatching = "dot"
    # or add: s~ = s + lambda m; footnote 3 has lambda m within the update; deep only
    combining: Combining = "interpolate"
    # of the state as in the paper, or scalar (OURS): one for all of it; deep only
    gate: CacheGate = "elements"
    follows: bool = False  # OURS: kappa g, so that words go on as they did
    signs: bool = False  # OURS: the gate is shown how well the slots match; shallow only
    rank: int = 64  # of Q and K: numbers a slot; joint only
    size: int = 25  # slots that it has learned with, and has where nothing else is said
    overwrite: bool = True  # likewise, whether a word that has a slot is averaged into it
    # OURS: an empty slot takes what is unlike this position, for the model; shallow only
    empty: bool = False


@dataclass(frozen=True)
class Slots:
    """A snapshot of every sentence's session cache; does not change while it is decoded. Keys and
    values are contexts and hidden states, or what the cache has learned to keep of them."""

    keys: Tensor  # (N, C, l); or, where the cache has K, (N, C, rank)
    values: Tensor  # (N, C, d); likewise (N, C, 0)
    ids: Tensor  # (N, C) int64: the word of every slot
    # (N, C) int64: the word before it where it was written last, <s> before the first
    previous_ids: Tensor
    mask: Tensor  # (N, C) bool


@dataclass(frozen=True)
class Filled(Positions):
    """Slots made ready."""

    # the weights by which a shallow cache asks them, for compiled code; None: there is none
    weight_table: Table | None
    own_size: int  # l + d

    @cached_property
    def room(self) -> Tensor:
        """What compiled code works in."""
        rows, (_, slots, size) = len(self.sentence), self.keys.shape
        of_row = 2 * slots + self.own_size + 2 * size
        return self.keys.new_empty(rows * of_row + FACTS)


class Matched(NamedTuple):
    """How the slots match, of the rows with a filled cache."""

    scores: Tensor  # (R', C) the match
    # (R', C) g: 1 where the slot's word came after y_{t-1}, else 0; None where nothing asks
    follows: Tensor | None
    weights: Tensor  # (R', C) P_m, the empty slot left out
    max_weight: Tensor  # (R',) the greatest of them
    level: Tensor  # (R',) log sum exp of the energies, match + kappa g

    def signs(self, context: Tensor, log_odds: Tensor | None) -> Tensor:
        """(R', 3 or 4) how far the slots are to be trusted at c (R', l): sum P_m match / |c|^2,
        which is 1 where c k is the match and the slot was written at c; log sum exp of the energies
        / |c|^2; max P_m; sum P_m g. Beside an empty slot, `log_odds`, the last two are of the P_m
        that leave it its share."""
        square = vecdot(context, context).clamp_min(SMALL)
        shares = [self.max_weight]
        if self.follows is not None:
            shares.append(vecdot(self.weights, self.follows))
        if log_odds is not None:
            slot_share = log_odds.sigmoid()
            shares = [slot_share * share for share in shares]
        return torch.stack(
            [vecdot(self.weights, self.scores) / square, self.level / square, *shares], -1
        )


class SessionCache(LearnedLayer[Filled], HistoryLayer[Filled, "CacheContents"]):
    """The parameters U, V, W, b of the gate, A, Q, K, E, a and b of the empty slot, kappa and the
    weights of the signs, as far as `kind` has them; a document's slots are in `CacheContents`.

    The bias b is OURS: the gate begins almost closed, so that training starts from the plain model.
    A starts as the identity, Q and K by `begin`, E, kappa and the signs at zero."""

    kind: CacheKind

    def __init__(
        self, context_size: int, hidden_size: int, word_size: int, kind: CacheKind = CacheKind()
    ) -> None:
        super().__init__()
        self.kind, self.slots = kind, kind.size
        deep = kind.fusion == "deep"
        joint, rank = kind.matching == "joint", min(kind.rank, context_size + hidden_size)
        outputs = hidden_size if deep and kind.gate == "elements" else 1
        self.U = nn.Linear(hidden_size, outputs)  # with the bias b
        nn.init.constant_(self.U.bias, GATE_START)
        self.V = nn.Linear(context_size, outputs, bias=False)
        self.W = nn.Linear(rank if joint else hidden_size, outputs, bias=False)
        self.A = nn.Parameter(torch.eye(context_size)) if kind.matching == "learned" else None
        self.Q = nn.Linear(context_size + hidden_size, rank, bias=False) if joint else None
        self.K = nn.Linear(context_size + hidden_size, rank, bias=False) if joint else None
        self.word = word_map(word_size, hidden_size) if deep and kind.words else None
        self.kappa = nn.Parameter(torch.zeros(())) if kind.follows else None
        self.signs = nn.Linear(3 + kind.follows, 1, bias=False) if kind.signs and not deep else None
        if self.signs is not None:
            nn.init.zeros_(self.signs.weight)
        self.empty = (
            nn.Parameter(torch.tensor([UNLIKE, DOUBT / STEEP])) if kind.empty and not deep else None
        )

    @classmethod
    def of_kind(cls, sizes: tuple[int, int, int], kind: Mapping[str, Any]) -> SessionCache:
        return cls(*sizes, CacheKind(**kind))

    def reads(self, mode: str, has_history: bool) -> bool:
        return has_history

    @classmethod
    def traced_sources(
        cls, name: str, trace: LayerTrace, collated: Collated, sentence: int, word: int
    ) -> list[TracedSource]:
        return [TracedSource("recall", "cache", "cache", trace, slots=collated.histories.get(NAME))]

    @torch.no_grad()
    def begin(self, contexts: Tensor, hiddens: Tensor) -> None:
        """Q and K for training to start from: both the projection on the `rank` greatest principal
        directions of positions (n, l) and (n, d), so that they match nearly by c k + STATES s v.
        They are made smaller where a position would match itself by more than MATCHED."""
        if self.Q is None or self.K is None:
            return
        weights = (
            torch.cat([torch.ones(contexts.shape[1]), torch.full((hiddens.shape[1],), STATES)])
            .sqrt()
            .double()
        )
        positions = torch.cat([contexts, hiddens], -1).cpu().double() * weights
        directions = torch.linalg.eigh(positions.t() @ positions).eigenvectors[
            :, -len(self.K.weight) :
        ]
        square = (positions @ directions).square().sum(1).mean()
        scale = (MATCHED / square).clamp(max=1).sqrt()
        for layer in (self.Q, self.K):
            layer.weight.copy_((scale * directions.t() * weights).to(layer.weight))

    @property
    def slot_sizes(self) -> tuple[int, int]:
        """Numbers of a slot's key and value, as `slots_of` gives them."""
        if self.K is not None:
            return len(self.K.weight), 0
        return self.V.in_features, self.U.in_features

    def slots_of(self, contexts: Tensor, hiddens: Tensor) -> tuple[Tensor, Tensor]:
        """What the cache keeps of c (T, l) and s (T, d): keys and values; with K nothing but K [c,
        s]."""
        if self.K is None:
            return contexts, hiddens
        return self.K(torch.cat([contexts, hiddens], -1)), hiddens[..., :0]

    @property
    def history_digest(self) -> str:
        """16 hexadecimal digits of K, which the slots depend on; nothing where they are contexts
        and states."""
        if self.K is None:
            return ""
        return hashlib.sha256(self.K.weight.detach().cpu().numpy().tobytes()).hexdigest()[:16]

    def new_history(
        self, options: ModelOptions, backbone: Backbone, device: torch.device | str
    ) -> CacheContents | None:
        if not options.cache:
            return None
        overwrite = options.cache_overwrite
        overwrite = self.kind.overwrite if overwrite is None else overwrite
        return CacheContents(options.cache, *self.slot_sizes, overwrite, device)

    def write(self, history: CacheContents, keys: PairKeys) -> None:
        history.write(*self.slots_of(keys.contexts, keys.hiddens), keys.ids)

    def collate(
        self, histories: Sequence[CacheContents | None], device: torch.device | str
    ) -> Slots | None:
        nothing = CacheContents(0, *self.slot_sizes, device=device)
        return collate_caches([history or nothing for history in histories], device)

    def ready(self, collated: Collated, backbone: Backbone, mode: str) -> Filled | None:
        slots = collated.histories.get(NAME)
        return self.laid_out(slots, backbone.embed) if slots is not None else None

    def laid_out(self, slots: Slots, embed: Embed) -> Filled:
        """The slots with all that no step changes, one row a sentence: what is blended of every
        slot. Slots may be as `slots_of` gives them, or, where K learns, contexts and hidden
        states."""
        if self.K is not None and slots.values.shape[-1]:
            keys, values = self.slots_of(slots.keys, slots.values)
            slots = replace(slots, keys=keys, values=values)
        shallow = self.kind.fusion == "shallow"
        is_in_fp32 = slots.keys.is_cpu and self.U.weight.dtype == torch.float32
        return Filled(
            keys=slots.keys,
            ids=slots.ids,
            previous_ids=slots.previous_ids,
            mask=slots.mask,
            first=first_of(slots.ids),
            values=self._shallow(slots) if shallow else self._deep(slots, embed),
            worth=None,
            sentence=torch.arange(len(slots.ids), device=slots.ids.device),
            weight_table=self._weight_table() if shallow and is_in_fp32 else None,
            own_size=self.V.in_features + self.U.in_features,
        )

    def _shallow(self, slots: Slots) -> Tensor:
        """W of every slot, and one over the length of its key: (N, C, 2)."""
        projected: Tensor = self.W(slots.keys if self.K is not None else slots.values)
        lengths = torch.linalg.vector_norm(slots.keys, dim=-1, keepdim=True)
        return torch.cat([projected, lengths.clamp_min(MIN_LENGTH).reciprocal()], -1)

    def _weight_table(self) -> Table:
        """This layer's weights, for compiled code."""
        signs = 0 if self.signs is None else self.signs.in_features
        layers = self.Q, self.K, self.kappa, self.V, self.U, self.U.bias, self.signs, self.empty
        weights = (x.weight if isinstance(x, nn.Linear) else x for x in layers)
        arrays = [None if x is None else Array.of("a cache's weights", x) for x in weights]
        return Table.of((self.V.in_features, self.U.in_features, signs), arrays)

    def _deep(self, slots: Slots, embed: Embed) -> Tensor:
        """v + E e(y) of every slot (N, C, d), and W of it behind it: (N, C, 2 d), or (N, C, d + 1)
        where the gate is one number. Of many slots without: W is multiplied with in the step."""
        values = with_words(self.word, slots.values, slots.ids, embed)
        is_projected = values.shape[1] <= PROJECTED or self.W.out_features == 1
        return torch.cat([values, self.W(values)], -1) if is_projected else values

    def fuse(
        self, step: StepState, hidden: Tensor, ready: Filled
    ) -> tuple[Tensor, LayerOutput[Filled]]:
        """Deep: s~ (R, d), where the cache is empty what came in, and lambda (R, d) or (R, 1), 0
        there (eq. 6, 8). Shallow: what is mixed in."""
        if self.kind.fusion == "shallow":
            weights, logit = self.recall(step.prev, step.hidden, step.context, ready)
            return hidden, LayerOutput(ready, weights, words=Words(*ready.words, logit))
        view = ready.view
        state, context = view.pick(step.hidden), view.pick(step.context)
        weights = self.matched(view.pick(step.prev), state, context, ready).weights
        recalled, projected = self.blend(weights, ready)
        gate = torch.sigmoid(self.logits(state, context, projected))
        base = state if hidden is step.hidden else view.pick(hidden)
        added = self.kind.combining == "add"
        fused = torch.addcmul(base, gate, recalled) if added else torch.lerp(base, recalled, gate)
        return view.put(fused, hidden), LayerOutput(ready, view.put(weights), gate=view.put(gate))

    def recall(
        self, prev: Tensor, hidden: Tensor, context: Tensor, ready: Filled
    ) -> tuple[Tensor, Tensor]:
        """Shallow: P_m (R, C), and the logit of lambda (R,), which is -inf where the cache is
        empty, of y_{t-1} (R,), s (R, d) and c (R, l)."""
        if ready.weight_table is not None and can_be_compiled(hidden):
            return self._recall_compiled(
                StepState(prev, hidden, context), ready, ready.weight_table
            )
        view = ready.view
        hidden, context = view.pick(hidden), view.pick(context)
        matched = self.matched(view.pick(prev), hidden, context, ready)
        projected = view.rows.blend(matched.weights, ready.values[..., :1])
        logit = self.logits(hidden, context, projected)
        log_odds = self.slot_log_odds(matched.weights, hidden, context, ready)
        if self.signs is not None:
            logit = logit + STEEP * self.signs(matched.signs(context, log_odds))
        logit = logit[:, 0] if log_odds is None else logit_of_product(logit[:, 0], log_odds)
        return view.put(matched.weights), view.put(logit, -torch.inf)

    def _recall_compiled(
        self, step: StepState, ready: Filled, weight_table: Table
    ) -> tuple[Tensor, Tensor]:
        """The same as `recall` by compiled code."""
        prev, hidden = step.prev.contiguous(), step.hidden.contiguous()
        context = step.context.contiguous()
        query = context if self.A is None else self.query(hidden, context).contiguous()
        slots = ready.keys.shape[1]
        return kernels.recall_slots(
            ready.table, weight_table, slots, prev, context, hidden, query, STEEP, ready.room
        )

    def query(self, hidden: Tensor, context: Tensor) -> Tensor:
        """What slots are matched with."""
        if self.Q is not None:
            matching: Tensor = self.Q(torch.cat([context, hidden], -1))
            return matching
        return context if self.A is None else context @ self.A

    def matched(self, prev: Tensor, hidden: Tensor, context: Tensor, ready: Positions) -> Matched:
        """How the slots match for y_{t-1} (R',), s (R', d) and c (R', l) of the rows with a filled
        cache."""
        view = ready.view
        follows = None
        scores = energy = self.scores(hidden, context, ready)
        if self.kappa is not None:
            follows = (view.previous_ids == prev[:, None]).to(scores.dtype)
            energy = torch.addcmul(scores, follows, STEEP * self.kappa)
        if view.mask is not None:
            energy = energy.masked_fill(~view.mask, -torch.inf)
        weights = energy.softmax(-1)
        max_weight = weights.amax(-1)
        return Matched(scores, follows, weights, max_weight, energy.amax(-1) - max_weight.log())

    def slot_log_odds(
        self, weights: Tensor, hidden: Tensor, context: Tensor, ready: Positions
    ) -> Tensor | None:
        """(R',) log odds that the slots are meant and not the empty one, by the cosine of what P_m
        (R', C) recalls of their keys at length 1 and the key that s (R', d) and c (R', l) would
        get; None: there is no empty slot."""
        if self.empty is None:
            return None
        threshold, steep = self.empty  # a and b
        shares = weights * ready.view.pick(ready.values[ready.sentence, :, 1])
        recalled = ready.view.rows.blend(shares, ready.keys)
        cosine = vecdot(recalled, normalize(self.slots_of(context, hidden)[0], dim=-1))
        log_odds: Tensor = STEEP * steep * (cosine - threshold)
        return log_odds

    def scores(self, hidden: Tensor, context: Tensor, ready: Positions) -> Tensor:
        """The match (R', C) of s (R', d) and c (R', l) with their slots (eq. 5)."""
        return ready.view.rows.dot(self.query(hidden, context), ready.keys)

    def blend(self, weights: Tensor, ready: Positions) -> tuple[Tensor, Tensor]:
        """Deep: m (R', d) and W m of P_m (R', C) of the rows with a filled cache."""
        d = self.U.in_features
        blended = ready.view.rows.blend(weights, ready.values)
        recalled = blended[:, :d]
        return recalled, blended[:, d:] if blended.shape[1] > d else self.W(
            recalled
        )  # W m = sum P_m (W v)

    def logits(self, hidden: Tensor, context: Tensor, projected: Tensor) -> Tensor:
        """U s + V c + W m + b of W m (R, d): (R, d), or all (R, 1) of a shallow cache or a scalar
        gate."""
        hidden_logits: Tensor = self.U(hidden)
        return torch.addmm(hidden_logits + projected, context, self.V.weight.t())


class CacheContents:
    """The slots of one document, at most `size` (0: nothing is ever kept), in fp32.

    Keys of size l and values of size d are contexts and hidden states, or what
    `SessionCache.slots_of` makes of them. With `overwrite` off a repeated word takes a slot of its
    own (Tu et al., table 3)."""

    needs_states = True

    def __init__(
        self,
        size: int,
        key_size: int,
        value_size: int,
        overwrite: bool = True,
        device: torch.device | str = "cpu",
    ) -> None:
        self.size, self.overwrite = size, overwrite
        self._keys = torch.zeros(size, key_size, dtype=torch.float32, device=device)
        self._values = torch.zeros(size, value_size, dtype=torch.float32, device=device)
        # slot -> subword id, least recently written first
        self._words: OrderedDict[int, int] = OrderedDict()
        self._slots: dict[int, int] = {}  # subword id -> slot
        # of every slot the subword, and that before it
        self._ids = torch.zeros(2, size, dtype=torch.int64, device=device)

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
    def ids(self) -> Tensor:
        """(len,) int64: the subword of every filled slot."""
        return self._ids[0, : len(self)]

    @property
    def previous_ids(self) -> Tensor:
        """(len,) int64: the subword before it, where it was written last; <s> before the first of a
        sentence."""
        return self._ids[1, : len(self)]

    @property
    def latest(self) -> list[int]:
        """The filled slots, the one written last first."""
        return list(reversed(self._words))

    def record(self) -> dict[str, Any]:
        """All but keys and values, for JSON: size, and every slot with its word and the one before
        it, least recently written first."""
        previous_ids = self.previous_ids.tolist()
        words = [(slot, word, previous_ids[slot]) for slot, word in self._words.items()]
        return {"size": self.size, "overwrite": self.overwrite, "words": words}

    def tensors(self) -> dict[str, Tensor]:
        """The filled slots' keys and values."""
        return {"keys": self.keys, "values": self.values}

    def restored(
        self, record: Mapping[str, Any], tensors: Mapping[str, Tensor], words: int
    ) -> CacheContents:
        """A cache of these sizes and on this device with what another one's `record` and `tensors`
        say.

        words: how many subwords there are. Raises ValueError for what no cache of these sizes can
        have said, and ModelError for one of another size or with another overwriting."""
        self._check_kind(record)
        shape, device = (self._keys.shape[1], self._values.shape[1]), self._keys.device
        contents = CacheContents(self.size, *shape, self.overwrite, device)
        contents._fill_words(record["words"], words)
        for name, target in (("keys", contents._keys), ("values", contents._values)):
            saved = tensors[name]
            if saved.shape != (len(contents), target.shape[1]) or not saved.is_floating_point():
                raise ValueError(
                    f"its {name} are {saved.dtype} {tuple(saved.shape)}, wanted {len(contents)} "
                    f"slots of {target.shape[1]} floating-point numbers"
                )
            target[: len(contents)] = saved.to(device)
            if not bool(target.isfinite().all()):
                raise ValueError(f"its {name} are not all finite")
        return contents

    def _check_kind(self, record: Mapping[str, Any]) -> None:
        size, overwrite = record["size"], record["overwrite"]
        if type(size) is not int or type(overwrite) is not bool:
            raise ValueError("its size is no whole number, or its overwriting not true or false")
        if size != self.size:
            raise ModelError(
                f"was saved with a cache of {short_repr(size)} slots, here it has {self.size}"
            )
        if overwrite != self.overwrite:
            states = "off", "on"
            raise ModelError(
                f"was saved with overwriting {states[overwrite]}, here it is "
                f"{states[self.overwrite]}"
            )

    def _fill_words(self, rows: Sequence[Sequence[int]], words: int) -> None:
        """Takes over the slots of a `record`, as `restored` does."""
        if any(type(number) is not int for row in rows for number in row):
            raise ValueError("its slots are no whole numbers")
        self._words = OrderedDict((slot, word) for slot, word, _ in rows)
        if sorted(self._words) != list(range(len(rows))) or len(self) > self.size:
            raise ValueError("its slots are not what was written")
        self._slots = {word: slot for slot, word in self._words.items()}
        for slot, *of_slot in rows:
            self._ids[:, slot] = torch.tensor(of_slot)
        if not bool(((self._ids >= 0) & (self._ids < words)).all()):
            raise ValueError(f"a word that is not among the {words:,} of the vocabulary")
        if self.overwrite and len(self._slots) < len(self):
            raise ValueError("a word has two slots, with overwriting on")

    def write(self, keys: Tensor, values: Tensor, ids: Tensor) -> None:
        """Remember a translated sentence: keys (T, l), values (T, d), ids (T,); padding and, OURS,
        </s> are left out.

        Equal to the loop of the paper, to rounding where words are averaged: the slots are found
        first, then all are written at once."""
        if self.size == 0:
            return
        writes: list[tuple[int, int, bool]] = []  # slot, position, and whether it is averaged in
        slot_words: dict[int, tuple[int, int]] = {}  # slot -> its word, and the one before it
        words = ids.tolist()
        for t, (previous, word) in enumerate(zip([BOS, *words], words, strict=False)):
            if word not in (EOS, PAD):
                slot, is_repeated = self._slot(word)
                writes.append((slot, t, is_repeated))
                slot_words[slot] = word, previous
        if not slot_words:
            return
        device = self._ids.device
        slot_indices = torch.tensor([*slot_words], device=device)
        self._ids.index_copy_(
            1, slot_indices, torch.tensor([*slot_words.values()], device=device).T
        )
        keys, values = (x.detach().to(device).float() for x in (keys, values))
        if any(is_repeated for *_, is_repeated in writes):
            self._average(writes, keys, values)
            return
        last = {slot: t for slot, t, _ in writes}
        positions = torch.tensor([last[slot] for slot in slot_words], device=device)
        self._keys.index_copy_(0, slot_indices, keys.index_select(0, positions))
        self._values.index_copy_(0, slot_indices, values.index_select(0, positions))

    def _slot(self, word: int) -> tuple[int, bool]:
        """The slot that `word` is written to, and whether it holds the same word already."""
        slot = self._slots.get(word) if self.overwrite else None
        is_repeated = slot is not None
        if slot is None and len(self._words) < self.size:
            slot = len(self._words)
        elif slot is None:
            slot, forgotten = self._words.popitem(last=False)
            if self._slots.get(forgotten) == slot:
                del self._slots[forgotten]
        self._words[slot], self._slots[word] = word, slot
        self._words.move_to_end(slot)
        return slot, is_repeated

    def _average(self, writes: list[tuple[int, int, bool]], keys: Tensor, values: Tensor) -> None:
        """Every slot becomes a weighted sum of what it held and of the sentence's positions, since
        averaging twice is 1/4, 1/4, 1/2."""
        old_shares: dict[int, float] = {}  # slot -> share of what it held before this sentence
        shares: dict[int, dict[int, float]] = {}  # slot -> position -> share
        for slot, t, is_repeated in writes:
            if is_repeated:
                old_shares[slot] = old_shares.get(slot, 1.0) / 2
                halves = {u: share / 2 for u, share in shares.get(slot, {}).items()}
                shares[slot] = halves | {t: 0.5}
            else:
                old_shares[slot] = 0.0
                shares[slot] = {t: 1.0}
        weights = torch.zeros(len(shares), len(keys), dtype=torch.float32)
        for row, of_slot in enumerate(shares.values()):
            weights[row, list(of_slot)] = weights.new_tensor([*of_slot.values()])
        device = self._keys.device
        slots, weights = torch.tensor([*shares], device=device), weights.to(device)
        old = weights.new_tensor([old_shares[slot] for slot in shares])[:, None]
        self._keys[slots] = old * self._keys[slots] + weights @ keys
        self._values[slots] = old * self._values[slots] + weights @ values


def logit_of_product(a: Tensor, b: Tensor) -> Tensor:
    """The logit of sigmoid(a) sigmoid(b), by 1 / (sigmoid(a) sigmoid(b)) = 1 + exp(-a) + exp(-b) +
    exp(-a - b)."""
    return -torch.logaddexp(torch.logaddexp(-a, -b), -(a + b))


def collate_caches(
    contents: list[CacheContents], device: torch.device | str = "cpu"
) -> Slots | None:
    """A snapshot of N documents' caches for the next sentence of each; None if all are empty."""
    if not any(len(cache) for cache in contents):
        return None
    lengths = torch.tensor([len(cache) for cache in contents], device=device)
    keys, values, ids, previous_ids = (
        _padded([getattr(cache, name) for cache in contents], device)
        for name in ("keys", "values", "ids", "previous_ids")
    )
    mask = torch.arange(keys.shape[1], device=device) < lengths[:, None]
    return Slots(keys=keys, values=values, ids=ids, previous_ids=previous_ids, mask=mask)


def _padded(rows: list[Tensor], device: torch.device | str) -> Tensor:
    """A copy of all rows, one beside the other."""
    if len(rows) == 1:
        return rows[0][None].clone().to(device)
    return pad_sequence(rows, batch_first=True).to(device)
