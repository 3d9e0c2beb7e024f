"""Pairs of languages that memories have and no model: texts are looked up there, typed and
confirmed, and whoever asks for a translation is told that there is no model."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from tmnmt.codes.form import BY_FORM
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.compute_lock import ComputeLock
from tmnmt.engine.pipeline import Pipeline
from tmnmt.engine.run_statistics import Tally
from tmnmt.engine.settings import Settings, settled
from tmnmt.engine.writer import DocumentMemory, Draft, Writer
from tmnmt.interactive.cache import CompletionCache
from tmnmt.serve.http_error import Refused
from tmnmt.serve.queue import Job, Queue, Result
from tmnmt.translator import Translator

if TYPE_CHECKING:
    from tmnmt.engine.extension import Extensions
    from tmnmt.engine.links import Linkable
    from tmnmt.engine.piece import Piece
    from tmnmt.index.base import WritableIndex
    from tmnmt.segments import Translation
    from tmnmt.serve.memories import Memory


def no_model() -> Refused:
    """What a request for a translation is told."""
    return Refused(
        501, "no_model", "no model is served for these languages: only memories can be looked up"
    )


class _NoWriter(Writer[Draft]):
    """Writes nothing: there is no model. Raises Refused where something is to be written."""

    extensions: Extensions = MappingProxyType({})

    def drafts(
        self, pieces: Sequence[Piece], documents: Sequence[DocumentMemory], explain: bool = False
    ) -> Sequence[Draft]:
        raise no_model()

    def translation(self, piece: Piece, draft: Draft) -> Translation:
        raise no_model()

    def annotated(self, translation: Translation) -> Translation:
        return translation

    def link(self, segments: Sequence[Linkable]) -> None:
        raise no_model()

    def restricted(self, settings: Settings, extensions: Extensions) -> Self:
        return self


class _NoPipeline(Pipeline):
    """What a document needs of a pipeline through which nothing can pass."""

    def __init__(self, src_lang: str, tgt_lang: str) -> None:
        vars(self).update(
            settings=settled(TranslationOptions(), None, "off"),
            languages=(src_lang, tgt_lang),
            writer=_NoWriter(),
            copied=BY_FORM,
            tally=Tally(),
            lock=ComputeLock(),
        )


class MemoryPair(Translator):
    """What a session needs of a translator: languages, what is learnt from a confirmed pair, and
    the memory that it goes to. It translates nothing."""

    def __init__(self, src_lang: str, tgt_lang: str) -> None:
        """src_lang: the code of the source language.
        tgt_lang: the code of the target language."""
        self.pipeline = _NoPipeline(src_lang, tgt_lang)
        self.src_lang, self.tgt_lang = src_lang, tgt_lang
        self.settings, self.lock = self.pipeline.settings, self.pipeline.lock
        self.tally = self.pipeline.tally
        self.layers, self.writable = None, None
        self.completions = CompletionCache()
        self.model_hash = ""

    def writing_to(self, writable: WritableIndex | None) -> Self:
        """The same pair, whose confirmed pairs go to a memory.

        writable: the memory; None for none."""
        clone = copy.copy(self)
        clone.writable = writable
        return clone


class NoQueue(Queue):
    """The queue of such a pair. Raises Refused for all work."""

    translator: MemoryPair

    def __init__(self, translator: MemoryPair) -> None:
        """translator: the pair of languages."""
        self.translator = translator
        self.counts = Counter()

    def start(self) -> None:
        """There is no thread."""

    def stop(self) -> None:
        """There is no thread."""

    @property
    def waiting(self) -> int:
        return 0

    def submit(self, job: Job) -> Future[list[Translation]]:
        raise no_model()

    def call(
        self, work: Callable[[], Result], tenant: str = "", cost: float = 0.0
    ) -> Future[Result]:
        raise no_model()


def memory_pairs(memories: Iterable[Memory]) -> list[MemoryPair]:
    """One pair for each pair of languages that some memories have.

    memories: the memories."""
    pairs = dict.fromkeys((memory.index.src_lang, memory.index.tgt_lang) for memory in memories)
    return [MemoryPair(*pair) for pair in pairs]
