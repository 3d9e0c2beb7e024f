"""What the memory would have found for every training sentence if the sentence itself were not in
it.

Leave-one-out: the pair itself and every duplicate of its source are left out
(docs/contracts/training.md). Retrieved once and kept in a file; which of it a sentence is shown in
an epoch is drawn anew: irrelevant pairs, the sentence's own, pairs with noise, or no pair at
all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import NamedTuple

from tmnmt.config.options import Selection
from tmnmt.index.base import Index
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.index.pairs import OVERSAMPLED, distinct
from tmnmt.index.select import candidates, selected
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens, word_spans
from tmnmt.training.answer_cache import read_kept, write_kept

FORMAT = 2
QUERIES_A_SEARCH = 500
# of a target that gets noise: at 0.5 to 0.9 fuzzy, as many of a true pair's words are wrong
NOISY_WORDS = 0.2


class RetrievedPair(NamedTuple):
    """A retrieved pair and its fuzzy score in [0, 1]."""

    src: str
    tgt: str
    score: float


def retrieve(
    open_index: Callable[[], Index],
    segments: Sequence[Segment],
    k: int,
    threshold: float,
    path: Path,
    progress: Callable[[int], None] | None = None,
    selection: Selection = Selection(),
    strong: float = 0.0,
    whole_documents: bool = False,
) -> list[list[RetrievedPair]]:
    """For every segment at most `k` distinct pairs of fuzzy score >= `threshold`, leave-one-out, as
    `selection` chooses them: among those of a score >= `strong` where there is one, as decoding
    does, else among the weaker ones. With `whole_documents` every pair of the segment's own
    document is left out.

    Read from `path` where that holds the answer to the same questions; else searched for, in the
    index that `open_index` gives, and kept there."""
    header = {
        "format": FORMAT,
        "k": k,
        "threshold": threshold,
        "strong": strong,
        **asdict(selection),
    }
    header |= {"whole_documents": whole_documents, "queries": digest(segments)}
    saved = read_kept(
        path, header, len(segments), lambda pairs: [RetrievedPair(*pair) for pair in pairs]
    )
    if saved is not None:
        return saved
    index, results = open_index(), []
    for start in range(0, len(segments), QUERIES_A_SEARCH):
        block, count = (
            segments[start : start + QUERIES_A_SEARCH],
            candidates(selection, k) * OVERSAMPLED,
        )
        queries = [segment.src for segment in block]
        documents = [segment.document for segment in block] if whole_documents else None
        answers = index.search(
            queries, count, threshold, exclude_sources=True, exclude_documents=documents
        )
        for query, matches in zip(queries, answers, strict=True):
            best = distinct(matches)[: candidates(selection, k)]
            best = [match for match in best if match.score >= strong] or best
            results.append(_select_pairs(query, best, k, selection))
        if progress is not None:
            progress(len(queries))
    write_kept(path, header, results)
    return results


class PairAssignment(NamedTuple):
    """Which pairs each chosen sentence is shown."""

    sentences: list[int]
    pairs: list[list[RetrievedPair]]


def choose(
    pairs_of: Sequence[Sequence[RetrievedPair]],
    threshold: float,
    limit: int,
    share_weak: float,
    seed: int,
) -> list[int]:
    """At most `limit` sentences to train on, in their order: those with a pair of at least
    `threshold`, and for a share `share_weak` of the whole those that have only weaker ones or
    none."""
    random = Random(f"choose {seed}")
    strong = [i for i, pairs in enumerate(pairs_of) if pairs and pairs[0].score >= threshold]
    weak = [i for i, pairs in enumerate(pairs_of) if not pairs or pairs[0].score < threshold]
    strong = random.sample(strong, min(len(strong), round(limit * (1 - share_weak))))
    count = (
        round(len(strong) * share_weak / (1 - share_weak)) if strong else round(limit * share_weak)
    )
    return sorted(strong + random.sample(weak, min(len(weak), count)))


class Shares(NamedTuple):
    """What a sentence is shown in an epoch, as shares of all sentences; the others get what was
    retrieved."""

    threshold: float  # of what was retrieved, where a pair reaches it
    # k random pairs of the pool, so that the gate learns to close; also where nothing was retrieved
    irrelevant: float
    # OURS: the pair itself before what was retrieved, so that an exact match comes back word by
    # word
    exact: float
    # what was retrieved, some of its target's words replaced: the gates learn not to trust blindly
    noise: float = 0.0
    no_pair: float = 0.0  # nothing: the base, where it is trained too, stays good without a memory


def draw(
    segments: Sequence[Segment],
    pairs_of: Sequence[Sequence[RetrievedPair]],
    sentences: Sequence[int],
    pool: Sequence[Segment],
    k: int,
    shares: Shares,
    seed: str,
) -> PairAssignment:
    """The at most `k` pairs of every sentence for one epoch.

    Deterministic in the seed, so that an epoch can be made again after a resume."""
    random, draws = Random(seed), []
    for i in sentences:
        chance = random.random()
        pairs = [pair for pair in pairs_of[i] if pair.score >= shares.threshold] or pairs_of[i]
        if chance < shares.irrelevant or not pairs:
            draws.append(irrelevant(segments[i], pool, k, random))
        elif chance < shares.irrelevant + shares.exact:
            draws.append(with_itself(segments[i], pairs)[:k])
        elif chance < shares.irrelevant + shares.exact + shares.noise:
            draws.append([noisy(pair, pool, random) for pair in pairs[:k]])
        elif chance < shares.irrelevant + shares.exact + shares.noise + shares.no_pair:
            draws.append([])
        else:
            draws.append(list(pairs[:k]))
    return PairAssignment(list(sentences), draws)


def with_itself(segment: Segment, pairs: Sequence[RetrievedPair]) -> list[RetrievedPair]:
    """The pair itself, as in a memory that it is not left out of, then the others."""
    return [RetrievedPair(segment.src, segment.tgt, 1.0), *pairs]


def irrelevant(
    segment: Segment, pool: Sequence[Segment], k: int, random: Random
) -> list[RetrievedPair]:
    """k pairs of the pool at random, whatever the segment, with their scores."""
    tokens = match_tokens(segment.src)
    return [
        RetrievedPair(s.src, s.tgt, fuzzy_score(tokens, match_tokens(s.src)))
        for s in random.choices(pool, k=k)
    ]


def noisy(pair: RetrievedPair, pool: Sequence[Segment], random: Random) -> RetrievedPair:
    """The pair with a share NOISY_WORDS of its target's words, at least one, each replaced by a
    word of the target of a random pair of the pool: so frequent words come often, as they do where
    a pair is wrong."""
    spans, pieces, offset = word_spans(pair.tgt), [], 0
    for start, end in sorted(
        random.sample(spans, min(len(spans), max(1, round(NOISY_WORDS * len(spans)))))
    ):
        replacement = random.choice(pool).tgt
        a, b = random.choice(word_spans(replacement) or [(0, 0)])
        pieces += [pair.tgt[offset:start], replacement[a:b]]
        offset = end
    return pair._replace(tgt="".join([*pieces, pair.tgt[offset:]]))


def _select_pairs(
    query: str, best: Sequence[Match], k: int, selection: Selection
) -> list[RetrievedPair]:
    """The selected pairs with their fuzzy scores, which is what the gates read, whatever the pairs
    are ranked by."""
    fuzzy = {(match.segment.src, match.segment.tgt): round(match.score, 6) for match in best}
    pairs = [
        (match.segment.src, match.segment.tgt) for match in selected(selection, query, best, k)
    ]
    return [RetrievedPair(*pair, fuzzy[pair]) for pair in pairs]


def digest(segments: Iterable[Segment]) -> str:
    """16 hexadecimal digits of the pairs in their order."""
    hasher = hashlib.sha256()
    for segment in segments:
        hasher.update(f"{segment.src}\t{segment.tgt}\n".encode())
    return hasher.hexdigest()[:16]
