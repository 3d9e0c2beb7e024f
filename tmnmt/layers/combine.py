"""All memories around one step: deep cache, TM fusion, read-out, shallow cache, TM copy, coverage,
in this order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tmnmt.config.options import Mode as Mode  # what a decoder can do
from tmnmt.durable import write
from tmnmt.errors import ModelError, UsageError, shown
from tmnmt.layers.base import CacheState, MemoryState, TMState, Trace
from tmnmt.layers.cache import CacheKind, SessionCache
from tmnmt.layers.coverage import Coverage
from tmnmt.layers.neighbours import beside
from tmnmt.layers.tm import TMKind, TranslationMemory, mix_copy
from tmnmt.layers.view import first_of, seen, view_of
from tmnmt.layers.words import with_words
from tmnmt.models.base import Backbone
from tmnmt.models.folder import (
    CONFIG_FILE,
    UNREADABLE,
    config_beside,
    most_bytes,
    read_checked,
    read_regular,
    reason_of,
    stamp,
)
from tmnmt.models.weights import fill, packed, unpacked, without_numbers

FORMAT = "6"  # of memory.safetensors
READ = ("5", FORMAT)  # 5: a session cache has no empty slot
READS_TM = ("copy", "fusion", "both")
BEFORE = {
    "pointer": False
}  # what a file says nothing of that was written before there was such a thing


@dataclass(frozen=True)
class Consulted:
    """What one step got out of the translation memory, before the read-out."""

    q: Tensor  # (R, P)
    state: TMState
    hidden: Tensor  # (R, d) h: fused, or what came in
    fusion_gate: Tensor | None  # (R, d) or (R, 1)
    copy_logit: Tensor | None  # (R,)

    def moved(self, coverage: Coverage) -> TMState:
        """The state after this step; what was used is, with copy and fusion together, what was
        copied."""
        if self.copy_logit is not None:
            used = torch.sigmoid(self.copy_logit)
        else:
            assert self.fusion_gate is not None
            used = self.fusion_gate.mean(-1)
        return replace(
            self.state, coverage=coverage.after(self.state.coverage, used, self.q), last=self.q
        )


class Recalled(NamedTuple):
    """Words that are mixed into the probabilities: of a shallow cache's slots, of the TM's
    positions, of neighbours."""

    weights: Tensor  # (R, C) P_m, q, or p_knn
    ids: Tensor  # (R, C) the words
    first: Tensor  # (R, C) where each word stands first
    logit: Tensor  # (R,) of lambda, zeta, or w

    @classmethod
    def of(cls, state: TMState | CacheState, weights: Tensor, logit: Tensor) -> Recalled:
        """Of the positions or slots of a state that has been seen."""
        view = view_of(state)
        return cls(weights, view.ids, view.first, logit)


class Memories(nn.Module):
    """The parameters of every memory a model has: `tm` (copy, fusion or both gates) and `cache`;
    None: not trained."""

    def __init__(
        self, tm: TranslationMemory | None = None, cache: SessionCache | None = None
    ) -> None:
        super().__init__()
        self.tm, self.cache = tm, cache

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes this model can serve."""
        copy = self.tm is not None and self.tm.copy is not None
        fusion = self.tm is not None and self.tm.fusion is not None
        modes: dict[Mode, bool] = {
            "copy": copy,
            "fusion": fusion,
            "both": copy and fusion,
            "knn": True,
            "off": True,
        }
        return tuple(mode for mode, served in modes.items() if served)

    def ready(self, state: MemoryState, backbone: Backbone) -> MemoryState:
        """The same state with all that no step changes computed ahead."""
        tm, cache = state.tm, state.cache
        if self.cache is not None and cache is not None and cache.read is None:
            cache = self.cache.ready(cache, backbone.embed)
        if self.tm is not None and tm is not None and tm.read is None:
            tm = self.tm.ready(tm, backbone.embed)
        return replace(state, tm=tm, cache=cache)

    def seen(self, state: MemoryState, backbone: Backbone) -> MemoryState:
        """The same state made ready, with a view of every memory that there are parameters for."""
        if _is_seen(state.tm) and _is_seen(state.cache):
            return state
        state = self.ready(state, backbone)
        return replace(
            state,
            tm=seen(state.tm) if self.tm is not None and state.tm is not None else state.tm,
            cache=seen(state.cache) if state.cache is not None else None,
        )

    def step(
        self,
        backbone: Backbone,
        prev: Tensor,
        hidden: Tensor,
        context: Tensor,
        state: MemoryState,
        mode: Mode,
        explain: bool = False,
    ) -> tuple[Tensor, MemoryState, Trace | None]:
        """log p(y_t) (R, V) after y_{t-1} (R,), s_t (R, d), c_t (R, l), the state moved on, a trace
        if asked; in fp32, or fp64 where the read-out is.

        Rows with an empty cache and rows without pairs are the plain model's, bit for bit. Raises
        UsageError for a mode or a cache whose parameters are not there."""
        self._check(mode, state)
        state = self.seen(state, backbone)

        def log_p(h: Tensor) -> Tensor:
            logits = backbone.readout(prev, h, context)
            return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(
                -1
            )  # (R, V)

        cached, cache_gate, consulted, recalled, trace = hidden, None, None, None, None
        copied: Recalled | None = None
        found: Tensor | None = None
        if self.cache is not None and state.cache is not None:
            if self.cache.kind.fusion == "deep":
                cached, cache_gate = self.cache.fuse(prev, hidden, context, state.cache)
            else:
                recalled = Recalled.of(
                    state.cache, *self.cache.recall(prev, hidden, context, state.cache)
                )
        if mode == "knn" and state.neighbours is not None:
            votes = state.neighbours.asked.vote(hidden, context)
            copied = Recalled(votes.weights, votes.ids, first_of(votes.ids), votes.logit)
            found = votes.positions
        elif self.tm is not None and state.reads_pairs and mode in READS_TM:
            pairs, found = _with_neighbours(self.tm, backbone, context, state, mode)
            consulted = consult(self.tm, prev, hidden, cached, context, pairs, mode)
            state = _moved(state, consulted.moved(self.tm.coverage), found)
            if consulted.copy_logit is not None:
                copied = Recalled.of(pairs, consulted.q, consulted.copy_logit)
        fused = consulted.hidden if consulted is not None else cached
        log_gen = log_p(fused)
        if explain:
            trace = _trace(
                log_p,
                (hidden, cached, fused),
                log_gen,
                cache_gate,
                recalled,
                consulted,
                copied,
                found,
            )
            if self.cache is not None and state.cache is not None:
                trace = replace(trace, slots=self.cache.match(prev, hidden, context, state.cache))
        log_probs = log_gen
        if recalled is not None:
            log_probs = mix_copy(log_probs, *recalled)
        if copied is not None:
            log_probs = mix_copy(log_probs, *copied)
        return log_probs, state, trace

    def digest(self, mode: Mode, cache: bool) -> str:
        """16 hexadecimal digits of what a decoder in this mode, with a session cache or without,
        reads of these parameters, and of its kinds: where they stay, translations do."""
        unread = {"copy": ("fusion.", "word."), "fusion": ("copy.",)}.get(mode, ())
        made = hashlib.sha256()
        for module, left_out in (
            (self.tm if mode in READS_TM else None, unread),
            (self.cache if cache else None, ()),
        ):
            for name, value in module.state_dict().items() if module is not None else ():
                if not name.startswith(left_out):
                    made.update(name.encode() + value.cpu().numpy().tobytes())
        tm = self.tm and {
            name: value
            for name, value in asdict(self.tm.kind).items()
            if name not in ("copy", "fusion")
        }
        kinds = (
            tm if mode in READS_TM else None,
            asdict(self.cache.kind) if cache and self.cache else None,
        )
        made.update(json.dumps(kinds).encode())
        return made.hexdigest()[:16]

    def _check(self, mode: Mode, state: MemoryState) -> None:
        if mode not in self.modes:
            raise UsageError(
                f"this model has no parameters for mode {mode}; it serves {', '.join(self.modes)}"
            )
        if state.cache is not None and self.cache is None:
            raise UsageError("this model has no parameters for a session cache; use --cache 0")

    def save(self, path: Path, dtype: torch.dtype = torch.float32) -> None:
        """Writes memory.safetensors, whole or not at all: `tm.*`, `copy.*`, `fusion.*`, `cache.*`;
        where it lies in a model folder, its checksum too."""
        tensors = {
            _stored_name(k): v.detach().to(dtype).cpu().contiguous()
            for k, v in self.state_dict().items()
        }
        kinds = {
            "tm": self.tm and asdict(self.tm.kind),
            "cache": self.cache and asdict(self.cache.kind),
        }
        write(path, packed(tensors, {"format": FORMAT, "kinds": json.dumps(kinds)}))
        if path.with_name(CONFIG_FILE).exists():
            stamp(path.parent)

    @classmethod
    def load(cls, path: Path, base: Backbone, device: torch.device | str = "cpu") -> Memories:
        """The memories in memory.safetensors, in fp32 and evaluation mode; which there are is read
        from the file.

        Raises ModelError when it cannot be read, is of another format, damaged, or made for a base
        of other sizes."""
        config = config_beside(path)
        limit = 2 * most_bytes(base), "no memories of this base are"
        content = (
            read_checked(path, config, *limit) if config is not None else read_regular(path, *limit)
        )
        try:
            tensors, told = unpacked(content)
            if "format" not in told or "kinds" not in told:
                raise ModelError(
                    f"{path}: no memory file of tmnmt (which says its format, and what memories "
                    "it holds)"
                )
            if told["format"] not in READ:
                raise ValueError(
                    f"format {shown(told['format'])}, this version reads {' and '.join(READ)}"
                )
            with without_numbers():
                memories = cls._of(json.loads(told["kinds"]), base)
            fill(memories, {_module_name(name): tensor for name, tensor in tensors.items()})
        except UNREADABLE as error:
            reason = reason_of(error)
            sizes = f"l {base.context_size}, d {base.hidden_size}, words of {base.word_size}"
            raise ModelError(
                f"{path}: no memory parameters for this base ({sizes}): {reason}"
            ) from error
        return memories.to(device).eval()

    @classmethod
    def _of(cls, kinds: dict[str, Any], base: Backbone) -> Memories:
        sizes = base.context_size, base.hidden_size, base.word_size
        tm, cache = kinds["tm"], kinds["cache"]
        return cls(
            TranslationMemory(*sizes, TMKind(**(BEFORE | tm))) if tm is not None else None,
            SessionCache(*sizes, CacheKind(**cache)) if cache is not None else None,
        )


def _is_seen(state: TMState | CacheState | None) -> bool:
    return state is None or state.view is not None


def _stored_name(name: str) -> str:
    """copy.* and fusion.* stand beside tm.* in the file, though the gates belong to the translation
    memory."""
    return name.removeprefix("tm.") if name.startswith(("tm.copy.", "tm.fusion.")) else name


def _module_name(name: str) -> str:
    return "tm." + name if name.startswith(("copy.", "fusion.")) else name


def consult(
    tm: TranslationMemory,
    prev: Tensor,
    hidden: Tensor,
    cached: Tensor,
    context: Tensor,
    state: TMState,
    mode: Mode,
) -> Consulted:
    """TM fusion (docs/design.md), before the read-out: reading and gates see s and c, fusion
    changes `cached` (s~)."""
    view, fused, gate, logit = view_of(state), cached, None, None
    hidden, context = view.pick(hidden), view.pick(context)
    read = tm.read(view.pick(prev), hidden, context, state)
    if mode in ("fusion", "both"):
        assert state.said is not None
        opened = tm.fusion_gate(hidden, context, read)
        blended = torch.lerp(view.pick(cached), view.rows.blend(read.q, state.said), opened)
        fused, gate = view.put(blended, cached), view.put(opened)
    if mode in ("copy", "both"):
        logit = view.put(tm.copy_logit(hidden, context, read), -torch.inf)
    return Consulted(view.put(read.q), state, fused, gate, logit)


def _with_neighbours(
    tm: TranslationMemory, backbone: Backbone, context: Tensor, state: MemoryState, mode: Mode
) -> tuple[TMState, Tensor | None]:
    """What this step reads of the translation memory, seen, and where its neighbours (R, k) stand,
    if it has any."""
    near = state.neighbours
    if near is None:
        assert state.tm is not None
        return state.tm, None
    positions, found = near.asked.find(tm.query(context), near.sentence)
    found = replace(found, coverage=near.covered(positions))
    if tm.fusion is not None and mode != "copy":
        found = replace(found, said=with_words(tm.word, found.values, found.ids, backbone.embed))
    return seen(tm.ready_once(beside(state.tm, found))), positions


def _moved(state: MemoryState, tm: TMState, found: Tensor | None) -> MemoryState:
    """The state after a step that left the coverage of `tm`: that of the pairs, and of what was
    `found` beside them."""
    if found is None or state.neighbours is None:
        return replace(state, tm=tm)
    pairs = tm.coverage.shape[1] - found.shape[1]
    last = tm.last[:, :pairs] if tm.last is not None else None
    kept = (
        replace(state.tm, coverage=tm.coverage[:, :pairs], last=last)
        if state.tm is not None
        else None
    )
    return replace(state, tm=kept, neighbours=state.neighbours.moved(found, tm.coverage[:, pairs:]))


def _trace(
    log_p: Callable[[Tensor], Tensor],
    states: tuple[Tensor, Tensor, Tensor],
    log_gen: Tensor,
    cache_gate: Tensor | None,
    recalled: Recalled | None,
    consulted: Consulted | None,
    copied: Recalled | None,
    found: Tensor | None,
) -> Trace:
    """Mixture parts, weights, and the read-outs along plain -> + cache -> + fusion of one step."""
    hidden, cached, fused = states
    p_gen = log_gen.exp()
    p_cache = p_gen if fused is cached else log_p(cached).exp()
    p_plain = p_cache if cached is hidden else log_p(hidden).exp()
    q = logit = fusion_gate = p_copy = p_recall = None
    if recalled is not None:
        p_recall = torch.zeros_like(p_gen).scatter_add(1, recalled.ids, recalled.weights)
    if consulted is not None:
        q, fusion_gate = consulted.q, consulted.fusion_gate
    if copied is not None:
        q, logit = copied.weights, copied.logit
        p_copy = torch.zeros_like(p_gen).scatter_add(1, copied.ids, q)
    return Trace(
        q=q,
        copy_gate=torch.sigmoid(logit) if logit is not None else None,
        fusion_gate=fusion_gate.mean(-1) if fusion_gate is not None else None,
        cache_gate=cache_gate.mean(-1) if cache_gate is not None else None,
        recall_gate=torch.sigmoid(recalled.logit) if recalled is not None else None,
        p_copy=p_copy,
        p_recall=p_recall,
        p_plain=p_plain,
        p_cache=p_cache,
        p_gen=p_gen,
        found=found,
    )
