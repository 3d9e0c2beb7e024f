"""Training data: documents in order, the split by document, what is left out and why, and
token-bucketed batches."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tmnmt.errors import DataError
from tmnmt.files.as_memory import read_memories
from tmnmt.formats import parse_columns
from tmnmt.formats.splits import fresh_split, point_of, stretch_length, stretches
from tmnmt.quantities import quantity
from tmnmt.segments import Segment
from tmnmt.text import normalise
from tmnmt.training.config import CorpusConfig, DataConfig
from tmnmt.vocab import EOS, Vocabulary

log = logging.getLogger(__name__)

SHARE_OF_DEV = 8  # dev is no more than one part in so many of what there is
Document = list[Segment]
Ids = npt.NDArray[np.int32]


def split_of(document: str, dev: float, test: float) -> str:
    """ "test", "dev" or "train" by the sha256 of the document's id: stable when documents are
    added.

    `dev` and `test` are the shares, in [0, 1]."""
    point = point_of(document)
    return "test" if point < test else "dev" if point < test + dev else "train"


@dataclass
class Corpora:
    """All documents, by split; `counts` says how many segments each step kept or dropped."""

    train: list[Document] = field(default_factory=list)
    dev: list[Document] = field(default_factory=list)
    test: list[Document] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def load_corpora(config: DataConfig) -> Corpora:
    """Reads every corpus, splits it by its lists, and drops from training every source that stands
    in dev or test. Where no list of dev is given, documents are kept out for it, or stretches of
    documents where these are too few."""
    corpora = Corpora()
    for corpus in config.corpus:
        dev, test = _ids(corpus.dev), _ids(corpus.test)
        absent = dev | test
        for whole in _documents(corpus, config):
            for name, document in _as_listed(whole, dev | test):
                absent.discard(name)
                kind = "test" if name in test else "dev" if name in dev else "train"
                getattr(corpora, kind).append(document)
                corpora.counts[f"{corpus.name}: {kind}"] += len(document)
        if absent:
            ids = quantity(len(absent), "id")
            log.warning(
                "corpus %s: %s of dev or test without a document, first %r",
                corpus.name,
                ids,
                min(absent),
            )
    if not any(corpus.dev for corpus in config.corpus):
        _keep_out(corpora, config.dev_segments)
    kept_out = {normalise(s.src) for document in corpora.dev + corpora.test for s in document}
    train = []
    for document in corpora.train:
        rest = [s for s in document if normalise(s.src) not in kept_out]
        corpora.counts["dropped from training: source stands in dev or test"] += len(
            document
        ) - len(rest)
        if rest:
            train.append(rest)
    corpora.train = train
    return corpora


def _keep_out(corpora: Corpora, segments: int) -> None:
    """Moves about so many segments from training to dev, an eighth of all at most; none where there
    are fewer than eight."""
    sizes = Counter[str]()
    for document in corpora.train:
        sizes[document[0].document] += len(document)
    count = min(segments, sizes.total() // SHARE_OF_DEV)
    if not count:
        return
    names = fresh_split(sizes, count).dev
    train, corpora.train = corpora.train, []
    for whole in train:
        for name, document in _as_listed(whole, names):
            (corpora.dev if name in names else corpora.train).append(document)
    size = sum(map(len, corpora.dev))
    corpora.counts["kept out for dev, since no list of it is given"] = size
    log.info("no list of dev is given: %s are kept out for it", quantity(size, "segment"))


def _ids(path: str) -> set[str]:
    """The ids of a list, one a line; a byte order mark is none of the first."""
    try:
        return set(Path(path).read_text(encoding="utf-8-sig").split("\n")) - {""} if path else set()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error


def _as_listed(document: Document, names: Set[str]) -> Iterator[tuple[str, Document]]:
    """The document with its name; its stretches with theirs where `names` has any of them."""
    document_name = document[0].document
    length = stretch_length(names, {document_name})
    if not length:
        yield document_name, document
        return
    for name, first, last in stretches(document_name, len(document), length):
        yield name, document[first:last]


def _documents(corpus: CorpusConfig, config: DataConfig) -> Iterator[Document]:
    """Consecutive segments with the same document id, in order. The readers' reports go
    to the log."""
    columns = parse_columns(corpus.columns) if corpus.columns else None
    name, _, value = corpus.where.partition("=")
    for path in corpus.files:
        reader = read_memories([Path(path)], config.src_lang, config.tgt_lang, columns=columns)
        selection = (s for s in reader if not name or str(getattr(s, name)) == value)
        for _, segments in groupby(selection, key=lambda s: s.document):
            yield list(segments)
        log.info("%s", reader.report)


@dataclass(frozen=True)
class Pairs:
    """Encoded pairs, each side an int32 array with </s>."""

    src: list[Ids]
    tgt: list[Ids]

    def __len__(self) -> int:
        return len(self.src)

    def take(self, index: Iterable[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Padded src (B, S), lengths (B,), tgt (B, T)."""
        rows = list(index)
        src, tgt = [self.src[i] for i in rows], [self.tgt[i] for i in rows]
        return pad(src), torch.tensor([len(s) for s in src]), pad(tgt)


def pad(ids: list[Ids]) -> Tensor:
    """(B, longest, rounded up to a multiple of 4) int64, padded with 0."""
    lengths = np.array([len(row) for row in ids])
    matrix = np.zeros((len(ids), -(-lengths.max() // 4) * 4), dtype=np.int64)
    matrix[np.arange(matrix.shape[1]) < lengths[:, None]] = np.concatenate(ids)
    return torch.from_numpy(matrix)


def encode_pairs(
    segments: Iterable[Segment], vocab: Vocabulary, config: DataConfig | None, counts: Counter[str]
) -> Pairs:
    """Subwords of every pair; with a config each pair once, and those too long or of odd ratio left
    out, counted."""
    pairs, seen_pairs = Pairs([], []), set()
    for segment in segments:
        if config is not None:
            if (segment.src, segment.tgt) in seen_pairs:
                counts["dropped from training: the same pair again"] += 1
                continue
            seen_pairs.add((segment.src, segment.tgt))
        src, tgt = vocab.encode_source(segment.src), vocab.encode(segment.tgt)
        if config is not None:
            longer, shorter = max(len(src), len(tgt)), min(len(src), len(tgt))
            if longer > config.max_subwords:
                counts[f"dropped from training: over {config.max_subwords} subwords"] += 1
                continue
            if not shorter or (longer > 10 and longer > config.max_ratio * shorter):
                counts[f"dropped from training: length ratio over {config.max_ratio}"] += 1
                continue
        pairs.src.append(np.array([*src, EOS], dtype=np.int32))
        pairs.tgt.append(np.array([*tgt, EOS], dtype=np.int32))
    return pairs


ROWS = 8


def token_batches(pairs: Pairs, batch_tokens: int, seed: int) -> list[list[int]]:
    """Batches of similar lengths whose padded longer side has at most `batch_tokens` tokens, in
    random order.

    Deterministic in the seed: an epoch's order can be made again after a resume. Rows come in
    eights and lengths in fours, because the CPU's matrix products are compiled once a shape: with
    every shape another, a third of the time goes into compiling."""
    random = np.random.default_rng(seed)
    src = np.array([len(s) for s in pairs.src])
    tgt = np.array([len(t) for t in pairs.tgt])
    order = np.lexsort((src + random.random(len(src)), tgt + 2 * random.random(len(tgt))))
    longest = -(-np.maximum(src, tgt)[order] // 4) * 4
    batches, start = [], 0
    while start < len(order):
        rows = ROWS
        while (
            start + rows < len(order)
            and longest[start : start + rows + ROWS].max() * (rows + ROWS) <= batch_tokens
        ):
            rows += ROWS
        batches.append(order[start : start + rows].tolist())
        start += rows
    return [batches[i] for i in random.permutation(len(batches))]
