"""A model of the server, with the queue of what it translates."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmnmt.serve.languages import Language, language
from tmnmt.serve.modelless import NoQueue

if TYPE_CHECKING:
    from tmnmt.serve.queue import Queue
    from tmnmt.translator import Translator


@dataclass(frozen=True)
class Model:
    """A model that is served, by the name of its folder; or a pair of languages of memories, which
    stands for one where none is served. `origin`: what it was loaded from; an equal origin would
    give the same again."""

    name: str
    queue: Queue
    origin: Hashable = None

    @property
    def translator(self) -> Translator:
        return self.queue.translator

    @property
    def translates(self) -> bool:
        """False: memories have this pair of languages, and no model."""
        return not isinstance(self.queue, NoQueue)

    @property
    def languages(self) -> tuple[Language, Language]:
        return language(self.translator.src_lang), language(self.translator.tgt_lang)
