"""The second pass of `tmnmt train`: the memories' parameters on a finished base, which does not change any more."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from tmnmt.counted import counted
from tmnmt.errors import DataError, UsageError
from tmnmt.index import MemoryIndex, build
from tmnmt.index.select import Method, Selection, Similarity
from tmnmt.memories.cache import CacheFusion, CacheKind, CacheMatching, Combining, SessionCache
from tmnmt.memories.combine import Memories
from tmnmt.memories.coverage import CoverageKind
from tmnmt.memories.tm import FusionGate, Matching, TMKind, TranslationMemory
from tmnmt.models.base import Backbone
from tmnmt.progress import Progress
from tmnmt.segments import Segment
from tmnmt.training.bounds import AboveZero, AtLeastTwo, AtLeastZero, Count, Seed, Share, ShareBelowOne
from tmnmt.training.cache import CachePart, stretches
from tmnmt.training.parts import Part, PartTrainer
from tmnmt.training.retrieve import Found, Shares, choose, retrieve
from tmnmt.training.tm import PairedSentences, TMPart, evenly
from tmnmt.vocab import Vocabulary

log = logging.getLogger(__name__)

SEARCHED_A_SENTENCE = 1.5  # seven sentences of law in ten have a pair of 0.5: so many are searched for each wanted


@dataclass(frozen=True)
class MemoryConfig:
    """The table [memory]."""

    copy: bool = True
    fusion: bool = True
    cache: bool = True
    matching: Matching = "diagonal"  # M: identity, diagonal or full
    coverage: CoverageKind = "gated"  # off, plain, gated (only what was used counts) or gru
    fusion_gate: FusionGate = "elements"  # one for every element of the state, or scalar as in the paper
    preferences: bool = True  # better pairs, exact matches and words that follow are preferred; false: as in the paper
    words: bool = True  # fusion and cache blend words with the states that led to them; false: states only (papers)
    cache_fusion: CacheFusion = "deep"  # or shallow: words of the cache are mixed in (Tu et al., section 4.4)
    cache_matching: CacheMatching = "dot"  # or learned (footnote 2)
    cache_combining: Combining = "interpolate"  # or add: a gated auxiliary context (footnote 3)
    k: Count = 4  # pairs a sentence, as in decoding
    select: Method = "topk"  # which of the pairs found, as in decoding: topk, greedy, walk or contrastive
    similarity: Similarity = "fuzzy"  # what ranks them: fuzzy, or bleu over the 100 best by fuzzy score
    alpha: AtLeastZero | None = None  # of contrastive: how much likeness to the pairs taken counts against; 0.5
    threshold: Share = 0.5  # fuzzy score of a pair that decoding would use
    weak_threshold: Share = 0.3  # sentences without such a pair are shown pairs down to this score, to learn doubt
    share_weak: ShareBelowOne = 0.3  # of the sentences: so that pairs of little use, or of none, do no harm
    share_irrelevant: ShareBelowOne = (
        0.2  # of the sentences, anew in every epoch, get random pairs: the gate learns to close
    )
    share_exact: ShareBelowOne = (
        0.1  # of the sentences, anew in every epoch, get their own pair too: exact matches come back
    )
    share_noise: ShareBelowOne = 0.0  # of the sentences get pairs with wrong words in their targets
    max_pairs: Count = 20_000  # sentences the TM is trained on: some 0.7 M subwords for 0.5 M parameters
    tm_epochs: Count = 2  # the best on dev is kept
    cache_size: Count = 25  # slots, as in the paper's experiments and in decoding
    cache_pairs: Count = 20_000  # sentences the cache is trained on
    cache_epochs: Count = 2  # the paper has 5 on a much smaller corpus of documents
    stretch: AtLeastTwo = 40  # longest part of a document with one cache: keeps documents side by side of one length
    documents_together: Count = 32
    batch_tokens: Count = 2000  # padded target or source tokens of one update of the TM
    max_subwords: Count = 100  # of a sentence on either side; longer ones are not trained on
    dev_segments: Count = 600  # of all dev documents, for the TM; as many in stretches for the cache
    learning_rate: AboveZero = 1e-3  # of the TM
    cache_learning_rate: AboveZero = (
        5e-4  # of the session cache: it learns the training documents by heart all too soon
    )
    validate_every: Count = 200  # updates
    checkpoint_every: Count = 50  # updates
    seed: Seed = 1

    def selection(self) -> Selection:
        """Which of the pairs found are taken. Raises UsageError where alpha does not go with `select`."""
        return Selection(self.select, self.similarity, self.alpha)

    def shares(self) -> Shares:
        """What a sentence is shown in an epoch."""
        return Shares(self.threshold, self.share_irrelevant, self.share_exact, self.share_noise)


class Trained(NamedTuple):
    """`reached`: for every part the dev loss of the plain model and with the part, in nats a subword."""

    memories: Memories
    reached: dict[str, tuple[float, float]]


def train_memories(
    backbone: Backbone, vocab: Vocabulary, documents: Sequence[Sequence[Segment]],
    dev_documents: Sequence[Sequence[Segment]], folder: Path, config: MemoryConfig, resume: bool = False,
    languages: tuple[str, str] = ("en", "fr"),
) -> Trained:  # fmt: skip
    """Trains what `config` asks for and writes memory.safetensors to `folder`, with checkpoints and log beside it.

    documents: those the base was trained on, in order; dev sources must not stand among them. `backbone` is put into
    evaluation mode and no longer asks for gradients. Raises UsageError where a run is there and `resume` is not given,
    DataError where there is nothing to learn from."""
    check(config)
    folder.mkdir(parents=True, exist_ok=True)
    backbone.eval().requires_grad_(False)
    sizes = backbone.context_size, backbone.hidden_size, backbone.word_size
    torch.manual_seed(config.seed)
    tm = TranslationMemory(*sizes, _tm_kind(config)) if config.copy or config.fusion else None
    cache = SessionCache(*sizes, _cache_kind(config)) if config.cache else None
    Memories(tm, cache).to(next(backbone.parameters()).device)
    train, dev = _fitting(documents, vocab, config), _fitting(dev_documents, vocab, config)
    reached: dict[str, tuple[float, float]] = {}
    if tm is not None:
        part = _tm_part(tm, backbone, vocab, train, dev, folder, config, languages)
        reached |= _train(part, folder, config, resume)
        _report_attention(tm)
    if cache is not None:
        reached |= _train(_cache_part(cache, backbone, vocab, train, dev, config), folder, config, resume)
    memories = Memories(tm, cache).eval()
    memories.save(folder / "memory.safetensors")
    return Trained(memories, reached)


def check(config: MemoryConfig) -> None:
    """Raises UsageError for values that do not go together."""
    try:
        config.selection()
    except UsageError as error:
        raise UsageError(f"[memory] {error}") from error
    if not (config.copy or config.fusion or config.cache):
        raise UsageError("[memory]: copy, fusion and cache are all false; nothing is to be trained")
    if sum(config.shares()[1:]) > 1:
        raise UsageError("[memory] share_irrelevant, share_exact and share_noise are more than 1 together")


def _tm_kind(config: MemoryConfig) -> TMKind:
    return TMKind(**{name: getattr(config, name) for name in TMKind.__dataclass_fields__})


def _cache_kind(config: MemoryConfig) -> CacheKind:
    return CacheKind(config.cache_fusion, config.words, config.cache_matching, config.cache_combining)


def _train(part: Part, folder: Path, config: MemoryConfig, resume: bool) -> dict[str, tuple[float, float]]:
    epochs = config.tm_epochs if isinstance(part, TMPart) else config.cache_epochs
    rate = config.learning_rate if isinstance(part, TMPart) else config.cache_learning_rate
    trainer = PartTrainer(part, folder, epochs, rate, config.validate_every, config.checkpoint_every)
    if trainer.path("last").exists():
        if not resume:
            raise UsageError(f"{folder}: holds trained memories already; go on with --resume, or name another folder")
        trainer.restore()
        log.info("%s: going on at update %d", part.name, trainer.standing.update)
    trainer.run()
    losses = trainer.standing.at_best
    return {name: (losses["plain"], losses[name]) for name in ("copy", "fusion", "cache") if name in losses}


def _report_attention(tm: TranslationMemory) -> None:
    """With M and lambda free, eta is redundant: only the quotients say something."""
    with torch.no_grad():
        eta = tm.log_eta.exp()
        preferences = tm.preferences if tm.preferences is not None else (None, None, None)
        weights = zip(("mean M", "lambda", "mu", "nu", "kappa"), (tm.M, tm.coverage.weight, *preferences), strict=True)
        shown = [f"{name} / eta {float(x.mean() / eta):.3f}" for name, x in weights if x is not None]
        log.info("tm: %s", ", ".join(shown))


def _fitting(documents: Sequence[Sequence[Segment]], vocab: Vocabulary, config: MemoryConfig) -> list[list[Segment]]:
    """The segments that are short enough, by document, in order."""
    most = config.max_subwords

    def fits(text: str) -> bool:
        # a subword has at least one byte, so most texts need not be encoded to be known as short enough
        return len(text.encode()) < most or len(vocab.encode(text)) < most

    fitting = [[s for s in document if fits(s.src) and fits(s.tgt)] for document in documents]
    left_out = sum(map(len, documents)) - sum(map(len, fitting))
    kept = counted(sum(map(len, fitting)), "segment")
    log.info("memory: %s, %s over %d subwords left out", kept, f"{left_out:,}", most)
    return [document for document in fitting if document]


def _tm_part(
    tm: TranslationMemory, backbone: Backbone, vocab: Vocabulary, train: list[list[Segment]], dev: list[list[Segment]],
    folder: Path, config: MemoryConfig, languages: tuple[str, str],
) -> TMPart:  # fmt: skip
    memory = [segment for document in train for segment in document]
    opened: list[MemoryIndex] = []

    def open_index() -> MemoryIndex:
        if not opened:
            opened.append(_index(memory, folder / "index", languages))
        return opened[0]

    def paired(name: str, segments: list[Segment], most: int, share_weak: float) -> PairedSentences:
        path, lowest = folder / f"retrieved-{name}.jsonl.gz", config.weak_threshold if share_weak else config.threshold
        with Progress(f"retrieving for {name}", "sentences", len(segments)) as progress:
            found: list[list[Found]] = retrieve(
                open_index, segments, config.k, lowest, path, progress.advance, config.selection(), config.threshold
            )
        chosen = choose(found, config.threshold, most, share_weak, config.seed)
        _count(name, found, chosen, config)
        return PairedSentences(
            segments, found, chosen, memory, config.k, config.shares(), config.max_subwords, config.seed
        )

    searched = [memory[i] for i in evenly(len(memory), round(SEARCHED_A_SENTENCE * config.max_pairs))]
    held_out = [segment for document in dev for segment in document]
    held_out = [held_out[i] for i in evenly(len(held_out), config.dev_segments)]
    pairs = paired("training", searched, config.max_pairs, config.share_weak), paired("dev", held_out, len(held_out), 0)
    for index in opened:
        index.close()
    return TMPart(tm, backbone, vocab, *pairs, config.batch_tokens)


def _count(name: str, found: list[list[Found]], chosen: list[int], config: MemoryConfig) -> None:
    strong = sum(bool(pairs) and pairs[0].score >= config.threshold for pairs in found)
    share = f"{100 * strong / max(len(found), 1):.1f} %"
    log.info("tm: %s of %s %s sentences have a pair of %.2f, %s are used", share, f"{len(found):,}", name,
             config.threshold, f"{len(chosen):,}")  # fmt: skip
    if not any(found[i] for i in chosen):
        raise DataError(f"[memory]: none of {len(found):,} {name} sentences has a pair of {config.threshold} or more")


def _index(memory: list[Segment], path: Path, languages: tuple[str, str]) -> MemoryIndex:
    with Progress("indexing the training pairs", "segments", len(memory)) as progress:
        build(path, memory, *languages, force=True, progress=progress.advance)
    return MemoryIndex.open(path)


def _cache_part(
    cache: SessionCache, backbone: Backbone, vocab: Vocabulary, train: list[list[Segment]], dev: list[list[Segment]],
    config: MemoryConfig,
) -> CachePart:  # fmt: skip
    chosen = stretches(train, config.stretch, config.cache_pairs, config.seed)
    held_out = stretches(dev, config.stretch, config.dev_segments, config.seed)
    if not chosen or not held_out:
        raise DataError("[memory] cache: no document of two or more segments to train on, or none in dev")
    return CachePart(
        cache, backbone, vocab, chosen, held_out, config.cache_size, config.documents_together, config.seed
    )
