"""What the memory layers learn from: sentences with the pairs found for them, and stretches of
documents."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tmnmt.errors import DataError
from tmnmt.index import MemoryIndex, build
from tmnmt.progress import Progress
from tmnmt.quantities import quantity
from tmnmt.segments import Segment
from tmnmt.training.cache import Stretch, stretches
from tmnmt.training.memory_config import MemoryConfig
from tmnmt.training.retrieve import RetrievedPair, choose, retrieve
from tmnmt.training.tm import PairedSentences, evenly
from tmnmt.vocab import Vocabulary

log = logging.getLogger(__name__)

# seven sentences of law in ten have a pair of 0.5: so many are searched for each wanted
SEARCHED_A_SENTENCE = 1.5
Documents = Sequence[Sequence[Segment]]


class MemoryData:
    """Documents to learn from and dev documents, less what is too long; the memory is all that is
    learned from.

    What was retrieved is kept in `folder`; the index is made there when it is first needed."""

    def __init__(
        self,
        documents: Documents,
        dev_documents: Documents,
        vocab: Vocabulary,
        folder: Path,
        config: MemoryConfig,
        languages: tuple[str, str],
    ) -> None:
        self.folder, self.config, self.languages = folder, config, languages
        self.train, self.dev = (
            fitting(segments, vocab, config.max_subwords) for segments in (documents, dev_documents)
        )
        self.memory = [segment for document in self.train for segment in document]

    def sentences(self) -> tuple[PairedSentences, PairedSentences]:
        """For the TM, to learn from and dev: sentences of everywhere. Raises DataError where none
        has a pair."""
        config = self.config
        searched = [
            self.memory[i]
            for i in evenly(len(self.memory), round(SEARCHED_A_SENTENCE * config.max_pairs))
        ]
        held_out = [segment for document in self.dev for segment in document]
        held_out = [held_out[i] for i in evenly(len(held_out), config.dev_segments)]
        weak = config.weak_threshold if config.share_weak else config.threshold
        train = self._retrieve("training", searched, weak)
        dev = self._retrieve("dev", held_out, config.threshold)
        return (
            self._paired("training", searched, train, config.max_pairs, config.share_weak),
            self._paired("dev", held_out, dev, len(held_out), 0),
        )

    def stretches(self, limit: int) -> tuple[list[Stretch], list[Stretch]]:
        """For the cache, to learn from and dev: about `limit` sentences, and dev_segments."""
        config = self.config
        train = stretches(self.train, config.stretch, limit, config.seed)
        held_out = stretches(self.dev, config.stretch, config.dev_segments, config.seed)
        if not train or not held_out:
            purpose = "to learn from" if not train else "held out"
            raise DataError(
                f"cache: no document of two or more segments {purpose}, and it learns from "
                "documents in order; "
                f"leave it out by --no-cache, or cache = false under [memory]"
            )
        return train, held_out

    def all_paired(self, name: str, segments: list[Segment]) -> PairedSentences:
        """All of these segments, each with the pairs from outside its document. `name`: of what is
        retrieved, where it is kept."""
        pairs = self._retrieve(name, segments, self.config.threshold, whole_documents=True)
        return self._sentences(segments, pairs, range(len(segments)))

    def close(self) -> None:
        """Closes the index, if it was needed."""
        if "index" in self.__dict__:
            self.index.close()

    @cached_property
    def index(self) -> MemoryIndex:
        """Of everything that is learned from."""
        path = self.folder / "index"
        with Progress("indexing the training pairs", "segments", len(self.memory)) as progress:
            build(path, self.memory, *self.languages, force=True, progress=progress.advance)
        return MemoryIndex.open(path)

    def _retrieve(
        self, name: str, segments: list[Segment], threshold: float, whole_documents: bool = False
    ) -> list[list[RetrievedPair]]:
        config, path = self.config, self.folder / f"retrieved-{name}.jsonl.gz"
        with Progress(f"retrieving for {name}", "sentences", len(segments)) as progress:
            return retrieve(
                lambda: self.index,
                segments,
                config.k,
                threshold,
                path,
                progress.advance,
                config.selection(),
                config.threshold,
                whole_documents,
            )

    def _paired(
        self,
        name: str,
        segments: list[Segment],
        pairs_of: list[list[RetrievedPair]],
        limit: int,
        share_weak: float,
    ) -> PairedSentences:
        threshold = self.config.threshold
        sentences = choose(pairs_of, threshold, limit, share_weak, self.config.seed)
        strong = sum(bool(pairs) and pairs[0].score >= threshold for pairs in pairs_of)
        share = f"{100 * strong / max(len(pairs_of), 1):.1f} %"
        log.info(
            "tm: %s of %s %s sentences have a pair of %.2f, %s are used",
            share,
            f"{len(pairs_of):,}",
            name,
            threshold,
            f"{len(sentences):,}",
        )
        if not any(pairs_of[i] for i in sentences):
            raise DataError(
                f"[memory]: none of {len(pairs_of):,} {name} sentences has a pair of {threshold} "
                "or more"
            )
        return self._sentences(segments, pairs_of, sentences)

    def _sentences(
        self, segments: list[Segment], pairs: list[list[RetrievedPair]], sentences: Sequence[int]
    ) -> PairedSentences:
        config = self.config
        return PairedSentences(
            segments,
            pairs,
            sentences,
            self.memory,
            config.k,
            config.shares(),
            config.max_subwords,
            config.seed,
        )


def fitting(documents: Documents, vocab: Vocabulary, max_subwords: int) -> list[list[Segment]]:
    """The segments that are short enough, by document, in order."""

    fitting = [
        [
            s
            for s in document
            if fits(s.src, vocab, max_subwords) and fits(s.tgt, vocab, max_subwords)
        ]
        for document in documents
    ]
    left_out = sum(map(len, documents)) - sum(map(len, fitting))
    count = quantity(sum(map(len, fitting)), "segment")
    log.info("memory: %s, %s over %d subwords left out", count, f"{left_out:,}", max_subwords)
    return [document for document in fitting if document]


def fits(text: str, vocab: Vocabulary, max_subwords: int) -> bool:
    """Whether a text is short enough with </s>. A subword has at least one byte, so most texts need
    not be encoded to be known as such."""
    return len(text.encode()) < max_subwords or len(vocab.encode(text)) < max_subwords
