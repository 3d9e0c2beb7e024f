"""What a hypothesis says: text of its subwords, with what the vocabulary lacks and the right
numbers; where its words come from, how sure they are, and what else the search came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tmnmt.codes.capitals import capitalised
from tmnmt.engine.beam_search import Hypothesis
from tmnmt.engine.confidence import Confidence
from tmnmt.engine.decoder import Decoded
from tmnmt.engine.piece import Piece
from tmnmt.engine.provenance import Neighbouring, tokens_of
from tmnmt.engine.terms import TermList
from tmnmt.engine.unknown import copied, lacking
from tmnmt.engine.wordless import is_wordless, kept
from tmnmt.formats.clean import clean, legible
from tmnmt.models.base import Backbone
from tmnmt.numbers import mended
from tmnmt.segments import Other, Translation
from tmnmt.vocab import UNK, PairVocabulary, Vocabulary

CLAUSE_ENDS = (":", ";", ",")


@dataclass(frozen=True)
class Postprocessor:
    """Hypotheses to translations. `low_score`: log probability, per subword. `terms`, `confidence`:
    None where nothing of that kind is there. `nbest`: translations of a piece that are kept."""

    backbone: Backbone
    vocab: Vocabulary
    terms: TermList | None
    confidence: Confidence | None
    low_score: float
    nbest: int

    def translation(self, piece: Piece, decoded: Decoded) -> Translation:
        """The translation of a piece, with the next best ones."""
        best, matches = self._shown(decoded.best, decoded), piece.matches
        near = Neighbouring(decoded.collated.asked, len(piece.pairs))
        tokens = (
            tokens_of(best, self.vocab, decoded.collated, decoded.row, near, piece)
            if best.traces
            else ()
        )
        if self.terms is not None:
            tokens = self.terms.marked(tokens, best.ids, piece.read)
        if decoded.within and tokens:
            tokens = (replace(tokens[0], text=_with_capital(tokens[0].text)), *tokens[1:])
        text = self._text(piece, best.ids, decoded.within)
        if not piece.matches and is_wordless(piece.read):
            text, written = kept(piece.read, text), text
            tokens = tokens if text == written else ()
        of_pair = isinstance(self.vocab, PairVocabulary)
        unknown = lacking(piece.text, self.vocab) if of_pair else 0
        low = decoded.best.per_subword < self.low_score
        if tokens:
            matches = piece.pairs
        matches += near.matches(decoded.row)
        others = {text: Other(text, best.score, 0)}  # one may be spelled by other subwords, too
        for one in best.others[: self.nbest - 1]:
            said = self._text(piece, self._shown(one, decoded).ids, decoded.within)
            others.setdefault(said, Other(said, one.score, len(one.ids) + one.finished))
        made = Translation(piece.text, text, best.score, matches, tokens, "model", low, unknown)
        return self.rated(replace(made, others=tuple(others.values())[1:]))

    def rated(self, translation: Translation) -> Translation:
        """An explained translation with its confidence, where the model can say."""
        return translation if self.confidence is None else self.confidence.rated(translation)

    def _shown(self, said: Hypothesis, decoded: Decoded) -> Hypothesis:
        """A hypothesis; of a heading without what only ends a clause."""
        count = len(said.ids)
        while decoded.heading and count > 1 and self._ends_clause(said.ids[count - 1]):
            count -= 1
        if count == len(said.ids):
            return said
        return replace(
            said,
            ids=said.ids[:count],
            probabilities=said.probabilities[:count],
            traces=said.traces[:count],
            rows=said.rows[:count],
        )

    def _ends_clause(self, word: int) -> bool:
        return self.vocab.decode([word]).strip() in CLAUSE_ENDS

    def _text(self, piece: Piece, ids: Sequence[int], within: bool = False) -> str:
        """What the subwords of a translation of a piece say. `within`: it was read as it would
        stand within a sentence."""
        text = self.vocab.decode(ids)
        if within:
            text = capitalised(text)
        if self._lacks(piece) and isinstance(self.vocab, PairVocabulary):
            text = copied(self.backbone, self.vocab, piece.read, piece.ids, ids, text)
        text = legible(clean(text)[0], piece.read).strip()  # single bytes could spell a line end
        coded = piece.segment.coded
        return coded.said(text, piece.read) if coded is not None else mended(piece.read, text)

    def _lacks(self, piece: Piece) -> bool:
        """Whether the vocabulary lacks characters of a piece."""
        return UNK in piece.ids and isinstance(self.vocab, PairVocabulary)


def _with_capital(token: str) -> str:
    """The subword that begins a text, with a capital."""
    rest = token.removeprefix("▁")
    return token[: len(token) - len(rest)] + capitalised(rest)
