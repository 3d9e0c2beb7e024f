"""What a feature may do on the way of a sentence, and where features enter it.

The pipeline calls every extension at these points, and knows nothing else of it:

    incomplete    behind the search: which translations of a batch lack something
    revise        these are written once more
    wordings      what a base that writes whole texts, and is not revised, is told of a piece
    annotate      more is said of the translation of a piece
    check         what is wrong in a finished translation, or in one that is confirmed
    questions     what a person has to decide in a finished translation
    learn         what a document takes from a pair that was confirmed in it

A feature that stands beside the way, such as completion, feeds the pipeline and needs none of
these. `EXTENSIONS` has the makers of all extensions, in the order in which they are called."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tmnmt.config.options import TranslationOptions
from tmnmt.registry import Registry
from tmnmt.text import nfc

if TYPE_CHECKING:
    from tmnmt.checks import Check
    from tmnmt.engine.beam_search import Hypothesis
    from tmnmt.engine.links import Array, Linker
    from tmnmt.engine.piece import Piece
    from tmnmt.filters.contract import Reading
    from tmnmt.layers.combine import LayerInputs, MemoryLayers
    from tmnmt.layers.contract import Collated
    from tmnmt.models.base import Backbone, Encoded
    from tmnmt.models.folder import Model
    from tmnmt.segments import Translation


@dataclass(frozen=True)
class SearchResults:
    """The translations of a batch as the search has found them, with what they were found by.

    pieces: the pieces of the batch.
    knowledge: for every piece, what the extension has learnt in its document; None for nothing.
    hypotheses: the translations.
    encoded: the encoded pieces.
    ready: what the memory layers read for them.
    backbone: the model that decodes.
    layers: its memory layers; None for the plain model.
    linker: what links the words of texts by this model.
    keep_states: whether a revised hypothesis has its contexts and hidden states.
    explain: whether it says what the layers did."""

    pieces: Sequence[Piece]
    knowledge: Sequence[Any]
    hypotheses: Sequence[Hypothesis]
    encoded: Encoded
    ready: LayerInputs
    backbone: Backbone
    layers: MemoryLayers | None
    linker: Linker
    keep_states: bool
    explain: bool

    def inputs(self, rows: Sequence[int]) -> tuple[Encoded, LayerInputs]:
        """The encoded pieces of some rows, and what the layers read for them.

        rows: the rows."""
        import torch

        index = torch.tensor(rows, device=self.encoded.mask.device)
        return self.encoded.rows(index), self.ready.rows(index)

    def links(self, rows: Sequence[int]) -> list[Array]:
        """How much of every target word comes from every source word, in the translations of some
        rows.

        rows: the rows."""
        encoded, _ = self.inputs(rows)
        texts = [nfc(self.pieces[row].model_text) for row in rows]
        return self.linker.hypothesis_links(encoded, texts, [self.hypotheses[row] for row in rows])


@dataclass(frozen=True)
class DecodedPiece:
    """A piece with the hypothesis that becomes its translation.

    piece: the piece.
    hypothesis: its best hypothesis; explained, where an explanation was asked for.
    collated: what the memory layers have read for its batch.
    row: the row of the piece in that.
    reading: the other way to read the piece, where that was read."""

    piece: Piece
    hypothesis: Hypothesis
    collated: Collated
    row: int
    reading: Reading | None = None


class Extension:
    """A feature on the way of a sentence. It does nothing where a subclass does not say more.

    `revises` says whether it has translations written once more. The search then notes what it
    looks at, and a heading is read in one way only."""

    revises: ClassVar[bool] = False

    def incomplete(
        self, pieces: Sequence[Piece], knowledge: Sequence[Any], hypotheses: Sequence[Hypothesis]
    ) -> Collection[int]:
        """The rows whose translations are to be revised.

        pieces: the pieces.
        knowledge: for every piece, what was learnt in its document; None for nothing.
        hypotheses: their translations."""
        return ()

    def revise(self, results: SearchResults) -> list[Hypothesis]:
        """The translations of all rows, some of them written once more.

        results: what the search has found."""
        return [*results.hypotheses]

    def annotate(self, translation: Translation, decoded: DecodedPiece | None) -> Translation:
        """The translation of a piece with more that is known of it.

        translation: the translation.
        decoded: what was decoded; None for a translation that is taken from a memory."""
        return translation

    def wordings(self, piece: Piece, knowledge: Any) -> Sequence[tuple[str, Sequence[str]]]:
        """What a base that writes whole texts is told of a piece: words of it, each with the words
        that its translation is to have for them.

        piece: the piece.
        knowledge: what was learnt in its document; None for nothing."""
        return ()

    def check(self, src: str, tgt: str) -> list[Check]:
        """What is wrong in a translation.

        src: the source.
        tgt: its translation."""
        return []

    def questions(self, src: str) -> list[Check]:
        """What a person has to decide in a translation before it is confirmed.

        src: the source."""
        return []

    def learn(self, knowledge: Any, src: str, tgt: str) -> Any:
        """What a document knows after a pair was confirmed in it.

        knowledge: what it has known before; None where nothing.
        src: the source.
        tgt: its translation."""
        return knowledge


Extensions = Mapping[str, Extension]  # by name, in the order in which they are called


class ExtensionMaker(Protocol):
    """A function that makes the extension of a model and of the options of a translation, or gives
    None where they need none. It raises ModelError for a file of the model that is wrong, and
    UsageError or FormatError for an option that is wrong."""

    def __call__(self, model: Model, options: TranslationOptions) -> Extension | None: ...


EXTENSIONS: Registry[ExtensionMaker] = Registry("extension", {})


def make_extensions(
    model: Model, options: TranslationOptions = TranslationOptions()
) -> dict[str, Extension]:
    """The extensions of a model.

    model: the model.
    options: the options of its translations.

    Raises the errors of an `ExtensionMaker`."""
    entries = ((name, make(model, options)) for name, make in EXTENSIONS.items())
    return {name: extension for name, extension in entries if extension is not None}


def check_all(extensions: Extensions, src: str, tgt: str) -> list[Check]:
    """What all extensions find wrong in a translation.

    extensions: the extensions.
    src: the source.
    tgt: its translation."""
    return [check for extension in extensions.values() for check in extension.check(src, tgt)]


def with_extensions(extensions: Extensions, additions: Extensions) -> dict[str, Extension]:
    """Several extensions, each at its place.

    extensions: the extensions.
    additions: those that stand beside them, or take the place of those of the same name."""
    merged = {**extensions, **additions}
    return {name: merged[name] for name in EXTENSIONS if name in merged}
