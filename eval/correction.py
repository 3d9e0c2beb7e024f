"""Which cache brings a corrected word back: the change of its log probability in a later sentence
of the document.

    python eval/correction.py [--model DIR] [--test TSV] [--events N] [--gate LAMBDA]

A corrected word is a subword of a sentence's reference that begins a word of three letters or more,
that is none of the 100 most frequent words, and in whose place the model, given the reference so
far, would have written another. The sentence is confirmed, so that the cache holds it and nothing
else; the word's log probability is then taken at its first place in the next sentence that has it,
at most ten later, given that reference so far. It is compared with the plain model, and with the
same cache less the slots of the word itself: what other slots do is no memory of the word.

A deep cache holds s_t, or in its place the state h_t that TM fusion makes while the confirmed pair
is its memory, each with the slot's word (E e(y)) and without; all are read with the gate of the
model, if that has a deep cache. A shallow cache holds the words: read as the model has learned it,
if it has a shallow one, and by the dot product with the gate fixed at LAMBDA."""

from __future__ import annotations

import argparse
import copy
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tmnmt.engine.loading import load_layers
from tmnmt.errors import DataError, TmnmtError
from tmnmt.eval.cache.watch import frequent_words
from tmnmt.formats import read_memory
from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.collated import collate
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.contract import Collated
from tmnmt.models.base import Backbone, shift
from tmnmt.models.folder import Model, load_model
from tmnmt.progress import Progress
from tmnmt.segments import Segment
from tmnmt.trained_layers.cache import CacheContents, CacheKind, SessionCache, collate_caches
from tmnmt.trained_layers.tm import TranslationMemory
from tmnmt.training.teacher_forcing import force_references
from tmnmt.vocab import BOS

ROOT = Path(__file__).resolve().parent.parent
AHEAD = 10  # sentences between a correction and where the word comes again, at most
LETTERS = 3  # of a word that can be corrected, at least
LONGEST = 80  # subwords of a sentence, on either side
SLOTS = 200  # room for all of a sentence


@dataclass(frozen=True)
class Forced:
    """A reference as the plain model goes along it: T subwords with </s>."""

    ids: Tensor  # (T,)
    contexts: Tensor  # (T, l)
    hiddens: Tensor  # (T, d)
    preferred: list[int]  # what the model would have written
    log_p: list[float]  # of the reference's words


@dataclass(frozen=True)
class Event:
    """A word that was corrected in one sentence and comes again at position `at` of another."""

    word: int
    confirmed: Forced
    later: Forced
    at: int


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--test", type=Path, default=ROOT / "memories" / "held-out" / "law.test.en-fr.tsv.gz"
    )
    options.add_argument("--model", type=Path, default=ROOT / "models" / "law.en-fr")
    options.add_argument("--events", type=int, default=200, help="corrections, at most")
    options.add_argument("--gate", type=float, default=0.05, help="of the shallow cache, in (0, 1)")
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = options.parse_args()
    if not 0 < chosen.gate < 1 or chosen.events < 1:
        options.error("--gate is to be in (0, 1), --events 1 or more")
    torch.set_num_threads(chosen.threads)
    try:
        table(chosen)
    except TmnmtError as error:
        print(f"correction: {error}", file=sys.stderr)
        return 1
    return 0


def table(options: argparse.Namespace) -> None:
    model = load_model(options.model)
    shipped = load_layers(model, "cpu")
    if shipped is None or shipped.cache is None or shipped.tm is None or shipped.tm.fusion is None:
        raise DataError(f"{options.model}: a model with TM fusion and a session cache is wanted")
    languages = model.config["src_lang"], model.config["tgt_lang"]
    with Progress("corrections", "events", options.events) as progress, torch.inference_mode():
        found = []
        for event in islice(
            events(model, list(read_memory(options.test, *languages))), options.events
        ):
            found.append(event)
            progress.advance()
    if not found:
        raise DataError(f"{options.test}: no corrected word comes again")
    plain = torch.tensor([event.later.log_p[event.at] for event in found])
    print(
        f"{len(found):,} corrected words of {options.test.name}; model {model.hash}; log p of "
        "the plain model "
        f"{plain.mean():.3f} nats on average\n"
    )
    print(
        "| the cache holds | change, nats | raised | change due to the word's own slot, nats |\n"
        "|---|---|---|---|"
    )
    fixed = (f"words, shallow at {options.gate}", shallow(model, options.gate), None)
    for name, memories, tm in [*kinds(shipped), fixed]:
        with_it, without = (
            log_probs(model, memories, found, tm, left_out) for left_out in (False, True)
        )
        raised = float((with_it > plain).float().mean())
        print(f"| {name} | {told(with_it - plain)} | {raised:.0%} | {told(with_it - without)} |")


def kinds(learned: MemoryLayers) -> list[tuple[str, MemoryLayers, TranslationMemory | None]]:
    """What the model's cache may hold: its name, the memories that read it, and the TM that fuses
    the states."""
    assert learned.cache is not None
    if learned.cache.kind.fusion == "shallow":
        return [("words, shallow as learned", learned, None)]
    bare = without_words(learned)
    return [
        ("s_t", bare, None),
        ("s_t + E e(y)", learned, None),
        ("fused h_t", bare, learned.tm),
        ("fused h_t + E e(y)", learned, learned.tm),
    ]


def without_words(memories: MemoryLayers) -> MemoryLayers:
    """The same with states only in the cache, as in the paper; the gate was learned with words."""
    assert memories.cache is not None
    bare = copy.deepcopy(memories.cache)
    bare.kind, bare.word = replace(bare.kind, words=False), None
    return MemoryLayers(memories.tm, bare)


def shallow(model: Model, gate: float) -> MemoryLayers:
    """A shallow cache whose lambda is `gate` whatever is read."""
    base = model.backbone
    cache = SessionCache(base.context_size, base.hidden_size, base.word_size, CacheKind("shallow"))
    for layer in (cache.U, cache.V, cache.W):
        torch.nn.init.zeros_(layer.weight)
    torch.nn.init.constant_(cache.U.bias, math.log(gate / (1 - gate)))
    return MemoryLayers(None, cache)


def events(model: Model, segments: Sequence[Segment]) -> Iterator[Event]:
    """Every corrected word of every document that comes again, in order; each once a sentence."""
    vocab, frequent = model.vocab, frequent_words(s.tgt for s in segments)
    for _, group in groupby(segments, key=lambda s: s.document):
        document = [
            s for s in group if max(len(vocab.encode(s.src)), len(vocab.encode(s.tgt))) < LONGEST
        ]
        forced: list[Forced] = []
        for segment in document:
            forced.append(force(model, segment))
            for confirmed in forced[-AHEAD - 1 : -1]:
                for word in corrected(confirmed):
                    at = (forced[-1].ids == word).nonzero()
                    fresh = not any((f.ids == word).any() for f in between(forced, confirmed))
                    if len(at) and fresh and telling(vocab.piece(word), frequent):
                        yield Event(word, confirmed, forced[-1], int(at[0]))


def between(forced: Sequence[Forced], confirmed: Forced) -> Sequence[Forced]:
    """The sentences after `confirmed` and before the last."""
    start = next(i for i in range(len(forced)) if forced[i] is confirmed)
    return forced[start + 1 : -1]


def corrected(forced: Forced) -> list[int]:
    """The words that the model would have written otherwise."""
    pairs = zip(forced.ids.tolist(), forced.preferred, strict=True)
    return sorted({word for word, preferred in pairs if word != preferred})


def telling(subword: str, frequent: frozenset[str]) -> bool:
    word = subword.removeprefix("▁")
    return (
        subword != word and word.isalpha() and len(word) >= LETTERS and word.lower() not in frequent
    )


def force(model: Model, segment: Segment) -> Forced:
    batch = force_references(model.backbone, model.vocab, [segment], "cpu")
    logits = model.backbone.readout(
        shift(batch.tgt, BOS)[0], batch.hiddens[0], batch.contexts[0]
    ).float()
    log_p = logits.log_softmax(-1).gather(1, batch.tgt[0][:, None])[:, 0]
    return Forced(
        batch.tgt[0],
        batch.contexts[0],
        batch.hiddens[0],
        logits.argmax(-1).tolist(),
        log_p.tolist(),
    )


def log_probs(
    model: Model,
    memories: MemoryLayers,
    found: Sequence[Event],
    tm: TranslationMemory | None,
    left_out: bool,
) -> Tensor:
    """log p (n,) of every event's word with its sentence in the cache; `tm`: with states that it
    has fused;
    `left_out`: without the word's own slots."""
    result = []
    with torch.inference_mode():
        for event in found:
            one, later = event.confirmed, event.later
            values = one.hiddens if tm is None else fused(model, tm, one)
            sizes = one.contexts.shape[1], one.hiddens.shape[1]
            contents = CacheContents(
                SLOTS, *sizes, memories.cache is None or memories.cache.kind.overwrite
            )
            contents.write(one.contexts, values, one.ids)
            cache = collate_caches([contents])
            if left_out and cache is not None:
                cache = replace(cache, mask=cache.mask & (cache.ids != event.word))
            row = slice(event.at, event.at + 1)
            prev = shift(later.ids[None], BOS)[0, row]
            ready = memories.ready(Collated(histories={"cache": cache}), model.backbone, "off")
            known = standing(model.backbone, later.hiddens[row], later.contexts[row])
            log_p = memories.step(known, prev, None, None, ready).log_probs
            result.append(float(log_p[0, event.word]))
    return torch.tensor(result)


def fused(model: Model, tm: TranslationMemory, one: Forced) -> Tensor:
    """h_t (T, d) along a confirmed target while its pair is the memory: what TM fusion
    reads out."""
    pairs = collate([[PairKeys(one.contexts, one.hiddens, one.ids)]], [[1.0]])
    assert tm.fusion is not None and pairs is not None
    prev = shift(one.ids[None], BOS)
    q, logits = tm.unroll(tm.fusion, prev, one.hiddens[None], one.contexts[None], pairs)
    gate, said = logits.sigmoid(), tm.fusion_values(pairs, model.backbone.embed)
    return ((1 - gate) * one.hiddens + gate * torch.bmm(q, said))[0]


def standing(backbone: Backbone, hidden: Tensor, context: Tensor) -> Backbone:
    """The backbone, whose step comes to this state, which is known."""
    known = copy.copy(backbone)

    def step(*given: Any) -> tuple[None, Tensor, Tensor]:
        return None, context, hidden

    known.step = step  # type: ignore[assignment]
    return known


def told(changes: Tensor) -> str:
    """The mean with its standard error."""
    return f"{changes.mean():+.3f} ± {changes.std() / math.sqrt(len(changes)):.3f}"


if __name__ == "__main__":
    sys.exit(main())
