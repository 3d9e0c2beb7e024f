"""Makes translations of hypotheses: the text of their subwords behind all filters, what else the
search found, and what extensions say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tmnmt.engine.beam_search import Hypothesis
from tmnmt.engine.decoder import Decoded
from tmnmt.engine.extension import DecodedPiece, Extensions
from tmnmt.engine.piece import Piece
from tmnmt.filters.unknown_words import lacking
from tmnmt.models.base import Backbone
from tmnmt.segments import Other, Translation
from tmnmt.vocab import EOS, PairVocabulary, Vocabulary


@dataclass(frozen=True)
class Postprocessor:
    """Makes translations of hypotheses.

    backbone: the base as it decodes.
    vocab: the vocabulary.
    extensions: the features on the way of a sentence.
    low_score: the log probability per subword, in nats, below which a translation counts as low.
    nbest: how many translations of a piece are kept."""

    backbone: Backbone
    vocab: Vocabulary
    extensions: Extensions
    low_score: float
    nbest: int

    def translation(self, piece: Piece, decoded: Decoded) -> Translation:
        """The translation of a piece, with the next best ones.

        piece: the piece.
        decoded: what was decoded for it."""
        best = self._trimmed(decoded.best, piece, decoded)
        text = self._text(piece, best.ids, decoded)
        if not piece.matches and piece.segment.source.refuses(text, piece.model_text):
            text, best = piece.model_text, replace(best, traces=())
        of_pair = isinstance(self.vocab, PairVocabulary)
        unknown = lacking(piece.text, self.vocab) if of_pair else 0
        low = decoded.best.per_subword < self.low_score
        alternatives = {
            text: Other(text, best.score, 0)
        }  # one may be spelled by other subwords, too
        for hypothesis in best.alternatives[: self.nbest - 1]:
            wording = self._text(piece, self._trimmed(hypothesis, piece, decoded).ids, decoded)
            alternatives.setdefault(
                wording, Other(wording, hypothesis.score, len(hypothesis.ids) + hypothesis.finished)
            )
        translation = Translation(
            piece.text,
            text,
            best.score,
            piece.matches,
            origin="model",
            low=low,
            unknown=unknown,
            others=tuple(alternatives.values())[1:],
        )
        collated, row, reading = decoded.collated, decoded.row, decoded.reading
        return self.annotated(translation, DecodedPiece(piece, best, collated, row, reading))

    def annotated(
        self, translation: Translation, decoded: DecodedPiece | None = None
    ) -> Translation:
        """A translation with what the extensions say of it.

        translation: the translation.
        decoded: what was decoded; None for a translation that is taken from a memory."""
        for extension in self.extensions.values():
            translation = extension.annotate(translation, decoded)
        return translation

    def _trimmed(self, hypothesis: Hypothesis, piece: Piece, decoded: Decoded) -> Hypothesis:
        """A hypothesis without subwords that no translation of the piece ends with."""
        trailing = piece.segment.source.trailing() if decoded.has_reading else ()
        count = len(hypothesis.ids)
        while count > 1 and self.vocab.decode([hypothesis.ids[count - 1]]).strip() in trailing:
            count -= 1
        if count == len(hypothesis.ids):
            return hypothesis
        return replace(
            hypothesis,
            ids=hypothesis.ids[:count],
            probabilities=hypothesis.probabilities[:count],
            traces=hypothesis.traces[:count],
            rows=hypothesis.rows[:count],
        )

    def _text(self, piece: Piece, ids: Sequence[int], decoded: Decoded) -> str:
        """What the subwords of a translation of a piece say."""

        def attention() -> Tensor:
            return self._attention(piece.ids, ids)

        subwords = [self.vocab.piece(number) for number in ids]
        restore = piece.segment.source.restore_piece
        return restore(
            self.vocab.decode(ids),
            piece.model_text,
            subwords,
            attention,
            decoded.reading,
            decoded.is_typed,
        )

    def _attention(self, source: Sequence[int], target: Sequence[int]) -> Tensor:
        """How much every subword of a target, and its end, looked at those of the source,
        (T + 1, S + 1)."""
        device = next(self.backbone.parameters()).device
        src = torch.tensor([[*source, EOS]], device=device)
        with torch.inference_mode():
            encoded = self.backbone.encode(src, torch.tensor([src.shape[1]], device=device))
            attention = self.backbone.alphas(encoded, torch.tensor([[*target, EOS]], device=device))
        return attention[0].cpu().float()
