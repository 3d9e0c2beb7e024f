"""The writer of a base that shows its states: memory layers beside it, and a beam search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from tmnmt.engine.decoder import Decoded, Decoder
from tmnmt.engine.extension import Extensions
from tmnmt.engine.links import LINKED_AT_ONCE, Linkable, Linker
from tmnmt.engine.piece import Piece
from tmnmt.engine.postprocess import Postprocessor
from tmnmt.engine.run_statistics import Tally
from tmnmt.engine.settings import Settings, shortlist_of, whole_memory_of
from tmnmt.engine.writer import DocumentMemory, Draft, Writer
from tmnmt.index.base import Index, has_folder
from tmnmt.keys.compute import header_of, precomputed
from tmnmt.keys.layout import DIRECTIONS, PAIRS
from tmnmt.keys.pair_keys import PairKeys, PairKeyStore
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.contract import Histories
from tmnmt.models.base import Backbone
from tmnmt.models.folder import Model
from tmnmt.models.shortlist import Shortlist
from tmnmt.segments import Translation

DOUBTFUL = 0.5  # times the low score: below it, a heading is read in two ways; chosen on dev


@dataclass(frozen=True)
class BeamDraft(Draft):
    """What the beam search has written for a piece.

    decoded: the hypotheses, and what they were found by.
    remembered: how many hypotheses a document remembers."""

    decoded: Decoded
    remembered: int

    def states(self) -> Iterator[PairKeys]:
        """The best of several hypotheses is written last, so that it counts most (OURS: the paper
        does not say)."""
        best = self.decoded.best
        for hypothesis in (*reversed(best.alternatives[: self.remembered - 1]), best):
            if hypothesis.contexts is not None and hypothesis.hiddens is not None:
                ids = torch.tensor(hypothesis.ids)
                yield PairKeys(hypothesis.contexts, hypothesis.hiddens, ids)


@dataclass(frozen=True)
class BeamWriter(Writer[BeamDraft]):
    """A base with its memory layers, and the search for the best translation.

    decoder: makes hypotheses of pieces.
    postprocessor: makes translations of hypotheses.
    keys: the keys of pairs."""

    decoder: Decoder
    postprocessor: Postprocessor
    keys: PairKeyStore
    continues: ClassVar[bool] = True
    linked_together: ClassVar[int] = LINKED_AT_ONCE

    @property
    def backbone(self) -> Backbone:
        """The base as it decodes."""
        return self.decoder.backbone

    @property
    def layers(self) -> MemoryLayers | None:  # type: ignore[override]
        """Its memory layers; None where it has none."""
        return self.decoder.layers

    @property
    def modes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The modes that its memory layers serve."""
        return self.layers.modes if self.layers is not None else ("off",)

    @property
    def extensions(self) -> Extensions:
        return self.decoder.extensions

    @property
    def reads_around(self) -> bool:  # type: ignore[override]
        """Whether the base reads all other segments of a document."""
        return self.backbone.reads_around

    @property
    def batches_together(self) -> bool:  # type: ignore[override]
        """Revising takes as long for ten pieces as for many."""
        return bool(self.decoder.revisers)

    @property
    def reads_all_memories(self) -> bool:  # type: ignore[override]
        """Whether the keys of all memories are searched."""
        return self.decoder.whole_memory is not None

    def with_neighbours(self, pieces: Sequence[Piece]) -> list[Piece]:
        return self.decoder.with_neighbours(pieces)

    def drafts(
        self, pieces: Sequence[Piece], documents: Sequence[DocumentMemory], explain: bool = False
    ) -> list[BeamDraft]:
        remembered, vocab = self.decoder.settings.cache_best, self.decoder.vocab
        return [
            BeamDraft(
                vocab.decode(decoded.best.ids),
                len(decoded.best.ids) + decoded.best.finished,
                decoded,
                remembered,
            )
            for decoded in self.decoder.decoded(pieces, documents, explain)
        ]

    def translation(self, piece: Piece, draft: BeamDraft) -> Translation:
        return self.postprocessor.translation(piece, draft.decoded)

    def annotated(self, translation: Translation) -> Translation:
        return self.postprocessor.annotated(translation)

    def link(self, segments: Sequence[Linkable]) -> None:
        self.decoder.linker.link(segments)

    def first_pass(self, pieces: Sequence[Piece]) -> list[Piece]:
        return self.decoder.first_pass(pieces)

    def new_histories(self, settings: Settings) -> Histories:
        if self.layers is None:
            return {}
        return self.layers.new_histories(settings, self.backbone, self.decoder.device)

    def restricted(self, settings: Settings, extensions: Extensions) -> BeamWriter:
        postprocessor = replace(self.postprocessor, extensions=extensions, nbest=settings.nbest)
        decoder = replace(self.decoder, settings=settings, extensions=extensions)
        return replace(self, decoder=decoder, postprocessor=postprocessor)


def make_beam_writer(
    model: Model,
    layers: MemoryLayers | None,
    indexes: Sequence[Index],
    settings: Settings,
    device: str,
    tally: Tally,
    extensions: Extensions,
) -> BeamWriter:
    """The writer of a model that shows its states."""
    if settings.mode != "off":
        layers = layers or MemoryLayers()
    backbone, vocab = model.decoding, model.vocab
    low_score = model.config.get("low_score", -math.inf)
    shortlist = shortlist_of(settings, model)
    return BeamWriter(
        Decoder(
            backbone=backbone,
            layers=layers,
            settings=settings,
            device=device,
            tally=tally,
            linker=Linker(backbone, vocab, device),
            vocab=vocab,
            src_lang=model.config["src_lang"],
            shortlist=shortlist,
            extensions=extensions,
            whole_memory=whole_memory_of(settings, model, indexes, device),
            doubtful=DOUBTFUL * low_score,
        ),
        Postprocessor(
            backbone=backbone,
            vocab=vocab,
            extensions=extensions,
            low_score=low_score,
            nbest=settings.nbest,
        ),
        _pair_keys(model, indexes, settings, device, shortlist),
    )


def _pair_keys(
    model: Model,
    indexes: Sequence[Index],
    settings: Settings,
    device: str,
    shortlist: Shortlist | None,
) -> PairKeyStore:
    """The store of pair keys. It reads them where `tmnmt keys` has computed them, and computes the
    others at need. `shortlist`: that which the decoder reads."""
    reads_directions = settings.mode == "nearest"
    if reads_directions and settings.shortlist is not None:
        shortlist = Shortlist.by_default(model)
    header = header_of(model, DIRECTIONS if reads_directions else PAIRS)
    files = [
        keys
        for index in indexes
        if has_folder(index) and (keys := precomputed(index.folder, header))
    ]
    return PairKeyStore(
        model.decoding,
        model.vocab,
        header.max_subwords,
        device=device,
        precomputed=files,
        directions=reads_directions,
        model=header,
        forcing=model.forcing if reads_directions else None,
        shortlist=shortlist if reads_directions else None,
    )
