"""Finds what the memories have for pieces of text: the matches that the decoder reads, with their
pair keys, and the match that is taken as it stands."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tmnmt.engine.full_match import has_codes
from tmnmt.engine.piece import NO_MATCHES, Piece, Retrieved
from tmnmt.engine.pieces import fits
from tmnmt.engine.retrieve import Answer, Request, Retriever, queries_of
from tmnmt.index.base import best_of
from tmnmt.index.pairs import distinct
from tmnmt.layers.reach import STANDARD, Reaches
from tmnmt.segments import Match, Segment, search_total

if TYPE_CHECKING:
    from tmnmt.engine.run_statistics import Tally
    from tmnmt.engine.settings import Settings
    from tmnmt.engine.source_segment import SourceSegment
    from tmnmt.index.embedded.delta import Delta
    from tmnmt.keys.pair_keys import Pair, PairKeys, PairKeyStore
    from tmnmt.vocab import Vocabulary

SAME_TOKENS = 1.0  # score of a match that has the text's tokens
HALF = 0.5  # score of a match from which on a text ends where it does
AT_ONCE = 0.7  # a segment in pieces that has a match this good is translated whole (chosen on dev)


class Lookup:
    """Asks the memories of a retriever. Only one thread may use it at a time."""

    def __init__(
        self,
        retriever: Retriever,
        keys: PairKeyStore,
        vocab: Vocabulary,
        settings: Settings,
        longest: int,
        longest_whole: int,
        tally: Tally,
        reaches: Reaches = STANDARD,
    ) -> None:
        """retriever: what searches the memories.
        keys: the store of pair keys.
        vocab: the vocabulary of the model.
        settings: how to translate.
        longest: how many subwords a piece has at most.
        longest_whole: how many subwords a segment has at most that is translated whole because of
        its match.
        tally: what the counts and times are added to.
        reaches: how far the positions of these memories are read."""
        self.retriever, self.keys, self.vocab = retriever, keys, vocab
        self.settings, self.longest_whole, self.tally = settings, longest_whole, tally
        self.reaches = reaches
        self.in_pieces = f"had more than {longest} subwords, translated in pieces"

    def with_memories(self, retriever: Retriever, settings: Settings, reaches: Reaches) -> Lookup:
        """The same, with other memories.

        retriever: what searches them.
        settings: how to translate.
        reaches: how far the positions of these memories are read."""
        lookup = copy.copy(self)
        lookup.retriever, lookup.settings, lookup.reaches = retriever, settings, reaches
        return lookup

    def with_matches(self, pieces: Sequence[Piece], confirmed: Sequence[Delta]) -> list[Piece]:
        """The pieces with what the memories have for them. Pieces that have it already stay as they
        are. The keys of all pairs that are found are computed together.

        pieces: the pieces.
        confirmed: for every piece, what its session has confirmed, which is searched, too; or
        nothing."""
        rows = [row for row, piece in enumerate(pieces) if piece.retrieved is None]
        results = list(pieces)
        if not rows:
            return results
        new, deltas = [pieces[row] for row in rows], [confirmed[row] for row in rows if confirmed]
        with self.tally.timed("search"):
            new = [*map(self._with_fragments, self._retrieved(new, deltas))]
            for piece in new:
                is_cut = piece.role != "part" and not piece.is_whole
                self.tally.changed[self.in_pieces] += is_cut and not piece.number
        for row, piece, keys in zip(rows, new, self._keys(new), strict=True):
            results[row] = _updated(piece, keys=tuple(keys), reaches=self.reaches)
        return results

    def to_be_decoded(self, pieces: Sequence[Piece]) -> list[Piece]:
        """The pieces without the match that would be taken as it stands, so that they are decoded.

        pieces: pieces that were looked up."""
        free = [_updated(piece, full_match=None) for piece in pieces]
        return [
            _updated(piece, keys=tuple(keys))
            for piece, keys in zip(free, self._keys(free), strict=True)
        ]

    def holds(self, text: str) -> bool:
        """Whether a memory has a match of a whole segment that is taken as it stands.

        text: the text of the segment."""
        min_worth = self.settings.verbatim
        return bool(min_worth) and self.retriever.exact([text], min_worth=min_worth)[0] is not None

    def knows_case(self, segment: SourceSegment) -> bool:
        """Whether the memories have more that is like a text in its own letters than in the letters
        in which they would be asked for it.

        segment: the segment."""
        if not self.settings.retrieves:
            return False
        text = segment.source.plain
        answers = self.retriever.search([text, segment.query_text(text)])
        best, recased = (
            max((match.score for match in matches), default=0.0) for matches in answers
        )
        return best > 0 and best >= recased

    def _retrieved(self, pieces: Sequence[Piece], confirmed: Sequence[Delta]) -> list[Piece]:
        """The pieces with what the memories have for them: the pairs that are like a piece, or
        otherwise those that are like its segment; and for whole segments the match that is taken as
        it stands. Where a match of the whole segment is good, the first piece becomes the whole
        segment, because a piece would read parts of the pair that do not belong to it. The other
        pieces are merged into it."""
        self._look_up_wholes(pieces, confirmed)
        results = [self._merged(piece) for piece in pieces]
        rows = [row for row, piece in enumerate(results) if piece.retrieved is None]
        answers = self._answers([results[row] for row in rows], _select_rows(confirmed, rows))
        for row, answer in zip(rows, answers, strict=True):
            piece, exact = results[row], answer.exact
            similar = _similar(piece)
            piece_matches = self._with_message_matches(piece, answer.matches) or similar.matches
            if piece.is_whole and self.settings.verbatim:
                exact = exact or _same_message(piece)
            work = search_total([answer.work, None if piece.number else similar.work])
            retrieved = Retrieved(piece_matches, full_match=exact, work=work)
            results[row] = replace(piece, retrieved=retrieved)
        return results

    def _answers(self, pieces: Sequence[Piece], confirmed: Sequence[Delta]) -> list[Answer]:
        """What the memories have for the text of every piece. All are asked together."""
        requests = [self._requests(piece) for piece in pieces]
        rows = [row for row, of_piece in enumerate(requests) for _ in of_piece]
        batch = [request for of_piece in requests for request in of_piece]
        answers = iter(self.retriever.look_up(batch, _select_rows(confirmed, rows)))
        results = []
        for of_piece in requests:
            piece_answers = [next(answers) for _ in of_piece]
            matches = next((answer.matches for answer in piece_answers if answer.matches), ())
            results.append(
                Answer(
                    matches,
                    next((answer.exact for answer in piece_answers if answer.exact), None),
                    search_total(answer.work for answer in piece_answers),
                )
            )
        return results

    def _requests(self, piece: Piece) -> list[Request]:
        """What the memories are asked for a piece. A text in capitals is looked up as a sentence
        for what it is like, and as it stands for the match that is taken."""
        min_worth = self.settings.verbatim if piece.is_whole and self.settings.verbatim else None
        query_text = piece.segment.source.query_text(piece.text)
        texts = dict.fromkeys([query_text] if self.settings.retrieves else [])
        texts |= dict.fromkeys([piece.text] if min_worth is not None else [])
        codes = piece.segment.source.codes if piece.is_whole else None
        neighbours = piece.segment.neighbours if piece.is_whole else ("", "")
        return [
            Request(
                query,
                similar=query.text == query_text and self.settings.retrieves,
                min_worth=min_worth if query.text == piece.text else None,
            )
            for query in queries_of([*texts], [codes] * len(texts), [neighbours] * len(texts))
        ]

    def _with_message_matches(self, piece: Piece, matches: tuple[Match, ...]) -> tuple[Match, ...]:
        """The matches of a piece with those of its whole segment's pairs that are as good."""
        message_matches = piece.segment.message_matches
        min_score = self.retriever.min_score(piece.text) if message_matches else 0.0
        good = [match for match in message_matches if match.score >= min_score]
        ranked = distinct(best_of([*good, *matches], len(good) + len(matches)))
        return tuple(ranked[: self.retriever.top_k]) if good else matches

    def _look_up_wholes(self, pieces: Sequence[Piece], confirmed: Sequence[Delta]) -> None:
        """Looks up every segment in pieces, once."""
        parts = [
            row
            for row, piece in enumerate(pieces)
            if self.settings.retrieves and not piece.is_whole and not piece.segment.similar
        ]
        rows = [*{id(pieces[row].segment.similar): row for row in reversed(parts)}.values()]
        wholes = [replace(pieces[row], text=pieces[row].segment.text) for row in rows]
        answers = self._answers(wholes, _select_rows(confirmed, rows))
        for whole, answer in zip(wholes, answers, strict=True):
            whole.segment.similar.append(answer)

    def _merged(self, piece: Piece) -> Piece:
        """The piece, or what becomes of it where its segment is translated whole."""
        similar = _similar(piece)
        is_good = max((match.score for match in similar.matches), default=0.0) >= AT_ONCE
        model_text = piece.segment.source.read
        if not is_good or not fits(model_text, self.vocab, self.longest_whole):
            return piece
        if piece.number:
            return replace(piece, retrieved=NO_MATCHES, role="merged")
        return replace(
            piece,
            text=piece.segment.text,
            model_text=model_text,
            ids=tuple(self.vocab.encode_source(model_text)),
            retrieved=Retrieved(similar.matches, full_match=similar.exact, work=similar.work),
        )

    def _with_fragments(self, piece: Piece) -> Piece:
        """A piece with pairs that share phrases with it, where the piece is decoded and has no
        matches."""
        count = self.settings.fragments if self.settings.mode == "nearest" else 0
        if not count or not piece.is_unlike:
            return piece
        text = piece.segment.source.query_text(piece.text)
        fragments = self.retriever.fragments(text, count)
        return _updated(piece, fragments=fragments)

    def _keys(self, pieces: Sequence[Piece]) -> list[list[PairKeys]]:
        with self.tally.timed("keys"):
            segments: dict[Pair, Segment] = {}
            pairs_of = []
            for piece in pieces:
                matches = piece.pairs if _is_decoded(piece) else ()
                pairs_of.append([_as_read(piece, match) for match in matches])
                segments |= zip(pairs_of[-1], (match.segment for match in matches), strict=True)
            keys = self.keys.keys_of(pairs_of, segments, self.retriever.indexes)
        if self.settings.mode != "nearest":
            return keys
        return [
            copyable(piece.matches, of_pairs) if of_pairs else of_pairs
            for piece, of_pairs in zip(pieces, keys, strict=True)
        ]


def copyable(matches: Sequence[Match], keys: Sequence[PairKeys]) -> list[PairKeys]:
    """The keys that nearest positions are read from.

    Where a match has the very same text, nothing is read from other matches, because three that go
    on otherwise would outvote it. The end of a fragment, or of a match that has less than half in
    common with the text, says nothing about where the text ends. So its </s> is not read.

    matches: the matches.
    keys: the keys of the matches, and then those of the fragments."""
    has_same = any(match.score >= SAME_TOKENS for match in matches)

    def readable(match: Match, pair_keys: PairKeys) -> PairKeys:
        if has_same and match.score < SAME_TOKENS:
            return pair_keys.cut(0)
        return pair_keys if match.score >= HALF else without_end(pair_keys)

    of_matches = [
        readable(match, pair_keys) for match, pair_keys in zip(matches, keys, strict=False)
    ]
    return of_matches + [without_end(pair_keys) for pair_keys in keys[len(matches) :]]


def without_end(keys: PairKeys) -> PairKeys:
    """The keys except that of </s>, which is the last.

    keys: the keys of a pair."""
    return keys.cut(len(keys.ids) - 1)


def _updated(piece: Piece, **changes: Any) -> Piece:
    """The piece with something else of what the memories have for it."""
    return replace(piece, retrieved=replace(piece.retrieved or NO_MATCHES, **changes))


def _is_decoded(piece: Piece) -> bool:
    return (piece.retrieved or NO_MATCHES).full_match is None


def _similar(piece: Piece) -> Answer:
    """What the memories have for the whole segment of a piece, where they were asked."""
    return next(iter(piece.segment.similar), Answer((), None))


def _select_rows(confirmed: Sequence[Delta], rows: Sequence[int]) -> list[Delta]:
    """What sessions have confirmed for some of the rows, where anything was confirmed."""
    return [confirmed[row] for row in rows] if confirmed else []


def _same_message(piece: Piece) -> Match | None:
    """The first of the pairs of a message whose source is the message."""
    matches = piece.segment.message_matches
    candidates = (match for match in matches if match.segment.src == piece.segment.text)
    codes = piece.segment.source.codes or ()
    return next((match for match in candidates if has_codes(match, codes)), None)


def _as_read(piece: Piece, match: Match) -> tuple[str, str]:
    """A pair as the model reads it beside the piece."""
    masked = piece.segment.source.masked_pair(match.segment)
    return masked.src, masked.tgt
