"""What writes translations: the step "decode" of the pipeline, whatever the base is.

A writer gets pieces with what the memories have for them, and the documents that they belong to. It
gives a draft of each: a text, and how likely that is where the base says so. The beam search over
the states of a model is one writer (`tmnmt.engine.beam_writer`). A base that writes whole texts and
shows no states is another one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from tmnmt.registry import Registry

if TYPE_CHECKING:
    from tmnmt.engine.confirmed import Confirmed
    from tmnmt.engine.extension import Extensions
    from tmnmt.engine.links import Array, Linkable
    from tmnmt.engine.piece import Piece
    from tmnmt.engine.run_statistics import Tally
    from tmnmt.engine.settings import Settings
    from tmnmt.index.base import Index
    from tmnmt.keys.pair_keys import PairKeys, PairKeyStore
    from tmnmt.layers.combine import MemoryLayers
    from tmnmt.layers.contract import Histories
    from tmnmt.models.folder import Model
    from tmnmt.segments import Translation

BEAM_SEARCH = "beam search"  # the writer of a base that shows its states


class DocumentMemory(Protocol):
    """What is remembered of a document: what the memory layers keep of it, what was confirmed in
    it, and what every extension has learnt in it, by the name of the extension."""

    @property
    def histories(self) -> Histories: ...

    @property
    def confirmed(self) -> Confirmed: ...

    @property
    def knowledge(self) -> Mapping[str, Any]: ...

    def last_pairs(self, count: int) -> Sequence[tuple[str, str]]:
        """The pairs that were confirmed last since the document began, the latest one last.

        count: how many pairs are given at most."""


@dataclass(frozen=True)
class Draft:
    """What a writer has written for a piece.

    text: the text as the base has written it, before any filter takes something back.
    length: how long it is, with its end, in subwords, or in characters where the base shows none.
    Scores of several pieces are weighed by it."""

    text: str
    length: int

    def states(self) -> Iterable[PairKeys]:
        """What a document remembers of what was written, where it remembers the model's own words;
        what counts most comes last."""
        return ()

    def links(self, target: str) -> Array | None:
        """How much of every target word comes from every source word, (T, S), where that was
        written, too; None where it has to be found by `Writer.link`.

        target: what the filters have made of the text."""
        return None


D = TypeVar("D", bound=Draft)


class Writer(ABC, Generic[D]):
    """What writes translations of pieces.

    reads_around: whether it reads all other segments of a document, in a second pass.
    continues: whether it goes on from the beginning of a translation that somebody types.
    batches_together: whether as many pieces as possible are to be written together.
    reads_all_memories: whether it searches the keys of all memories, so that they cannot be
    narrowed to some.
    linked_together: how many segments `link` is given together, where so many wait.
    modes: the modes in which it can read a memory.
    layers: the memory layers that read for it; None where it has none.
    keys: the keys of pairs that these read."""

    reads_around: bool = False
    continues: ClassVar[bool] = False
    batches_together: bool = False
    reads_all_memories: bool = False
    linked_together: ClassVar[int] = 1
    modes: tuple[str, ...] = ("off",)
    layers: MemoryLayers | None = None
    keys: PairKeyStore

    @property
    @abstractmethod
    def extensions(self) -> Extensions:
        """The features on the way of a sentence, by name."""

    def with_neighbours(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
        """The pieces with what the memories have near to a first draft of them, where the writer
        reads that.

        pieces: pieces that were looked up."""
        return pieces

    @abstractmethod
    def drafts(
        self, pieces: Sequence[Piece], documents: Sequence[DocumentMemory], explain: bool = False
    ) -> Sequence[D]:
        """The draft of every piece.

        pieces: the pieces, with what the memories have for them.
        documents: what is remembered of the document of each.
        explain: whether it is asked where the words come from.

        Raises ServerError where what writes cannot be reached, or fails."""

    @abstractmethod
    def translation(self, piece: Piece, draft: D) -> Translation:
        """The translation of a piece, behind the filters. A writer that found something wrong in it
        says so in its checks.

        piece: the piece.
        draft: its draft."""

    @abstractmethod
    def annotated(self, translation: Translation) -> Translation:
        """A translation that is taken from a memory, with what the extensions say of it.

        translation: the translation."""

    @abstractmethod
    def link(self, segments: Sequence[Linkable]) -> None:
        """Gives segments with codes the links on which the places of these codes depend.

        segments: the segments."""

    @abstractmethod
    def restricted(self, settings: Settings, extensions: Extensions) -> Self:
        """The same writer with other settings and extensions.

        settings: how to translate.
        extensions: the features on the way of a sentence."""

    def first_pass(self, pieces: Sequence[Piece]) -> list[Piece]:
        """The pieces with what the writer reads of their document, where it `reads_around`.

        pieces: all pieces of one document."""
        return [*pieces]

    def new_histories(self, settings: Settings) -> Histories:
        """What the memory layers keep of a document that begins.

        settings: how it is translated."""
        return {}


class WriterMaker(Protocol):
    """A function that makes the writer of a model."""

    def __call__(
        self,
        model: Model,
        layers: MemoryLayers | None,
        indexes: Sequence[Index],
        settings: Settings,
        device: str,
        tally: Tally,
        extensions: Extensions,
    ) -> Writer[Any]:
        """model: the model.
        layers: its memory layers; None where it has none.
        indexes: the open indexes that are searched.
        settings: how to translate.
        device: what torch computes on.
        tally: what the counts are added to.
        extensions: the features on the way of a sentence.

        Raises UsageError for settings that the model cannot serve."""


WRITERS: Registry[WriterMaker] = Registry(
    "writer", {BEAM_SEARCH: "tmnmt.engine.beam_writer:make_beam_writer"}
)
