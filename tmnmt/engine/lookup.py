"""What the memories have for pieces of text: the matches that the decoder reads, with their pair
keys, and the match that is taken as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tmnmt.engine.piece import NOTHING, Piece, Retrieved
from tmnmt.engine.pieces import fits
from tmnmt.engine.retrieve import Answer, Request, Retriever, queries_of
from tmnmt.engine.settings import Settings
from tmnmt.engine.source_segment import SourceSegment
from tmnmt.engine.tally import Tally
from tmnmt.engine.verbatim import has_codes
from tmnmt.index.base import best_of
from tmnmt.index.embedded.delta import Delta
from tmnmt.index.pairs import distinct
from tmnmt.keys.pair_keys import Pair, PairKeys, PairKeyStore
from tmnmt.layers.reach import STANDARD, Reaches
from tmnmt.segments import Match, Segment
from tmnmt.vocab import Vocabulary

SAME = 1.0  # score of a match that has the text's tokens
HALF = 0.5  # score of a match from which on a text ends where it does
AT_ONCE = 0.7  # a segment in pieces that has a match this good is translated whole (chosen on dev)


class Lookup:
    """Asks the memories of `retriever`. Not for several threads at once."""

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
        """longest, longest_whole: subwords of a piece, and of a segment that is translated whole
        for the sake of its match. reaches: how the positions of these memories are read."""
        self.retriever, self.keys, self.vocab = retriever, keys, vocab
        self.settings, self.longest_whole, self.tally = settings, longest_whole, tally
        self.reaches = reaches
        self.in_pieces = f"had more than {longest} subwords, translated in pieces"

    def with_matches(self, pieces: Sequence[Piece], confirmed: Sequence[Delta]) -> list[Piece]:
        """The pieces with what the memories have for them; those that have it already stay as they
        are. The keys of all pairs found are computed together. confirmed: for every piece what its
        session has confirmed, which is searched, too."""
        rows = [row for row, piece in enumerate(pieces) if piece.retrieved is None]
        results = list(pieces)
        if not rows:
            return results
        new, own = [pieces[row] for row in rows], [confirmed[row] for row in rows if confirmed]
        with self.tally.timed("search"):
            new = [*map(self._with_fragments, self._retrieved(new, own))]
            for piece in new:
                is_cut = piece.role != "part" and not piece.is_whole
                self.tally.changed[self.in_pieces] += is_cut and not piece.number
        for row, piece, keys in zip(rows, new, self._keys(new), strict=True):
            results[row] = _with(piece, keys=tuple(keys), reaches=self.reaches)
        return results

    def to_be_decoded(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Pieces that were looked up, to be decoded even where a match is taken as it stands."""
        free = [_with(piece, full_match=None) for piece in pieces]
        return [
            _with(piece, keys=tuple(keys))
            for piece, keys in zip(free, self._keys(free), strict=True)
        ]

    def holds(self, text: str) -> bool:
        """Whether a memory has a match of a whole segment that is taken as it stands."""
        least = self.settings.verbatim
        return bool(least) and self.retriever.exact([text], least=least)[0] is not None

    def knows_case(self, segment: SourceSegment) -> bool:
        """Whether the memories have more that is like a text in its own letters than in those in
        which they would be asked for it."""
        if not self.settings.retrieves:
            return False
        text = segment.source.plain
        answers = self.retriever.search([text, segment.query_text(text)])
        best, other = (max((match.score for match in matches), default=0.0) for matches in answers)
        return best > 0 and best >= other

    def _retrieved(self, pieces: Sequence[Piece], confirmed: Sequence[Delta]) -> list[Piece]:
        """The pieces with what the memories have for them: what they are like, else what their
        segment is like; and of whole segments the match that is taken as it stands. Where what the
        segment is like is good the first piece becomes the whole segment, as a piece would read of
        a pair what is not its own; the others are merged into it."""
        self._look_up_wholes(pieces, confirmed)
        results = [self._joined(piece) for piece in pieces]
        rows = [row for row, piece in enumerate(results) if piece.retrieved is None]
        answers = self._answers([results[row] for row in rows], _of(confirmed, rows))
        for row, (matches, exact) in zip(rows, answers, strict=True):
            piece = results[row]
            read = self._with_message_matches(piece, matches) or _similar(piece).matches
            if piece.is_whole and self.settings.verbatim:
                exact = exact or _same_message(piece)
            results[row] = replace(piece, retrieved=Retrieved(read, full_match=exact))
        return results

    def _answers(self, pieces: Sequence[Piece], confirmed: Sequence[Delta]) -> list[Answer]:
        """For every piece what the memories have for its text; all are asked together."""
        requests = [self._requests(piece) for piece in pieces]
        rows = [row for row, of_piece in enumerate(requests) for _ in of_piece]
        every = [request for of_piece in requests for request in of_piece]
        answers = iter(self.retriever.look_up(every, _of(confirmed, rows)))
        results = []
        for of_piece in requests:
            own = [next(answers) for _ in of_piece]
            matches = next((answer.matches for answer in own if answer.matches), ())
            results.append(Answer(matches, next((one.exact for one in own if one.exact), None)))
        return results

    def _requests(self, piece: Piece) -> list[Request]:
        """What the memories are asked for a piece. A text in capitals is looked up as a sentence
        for what it is like, and as it stands for the match that is taken."""
        least = self.settings.verbatim if piece.is_whole and self.settings.verbatim else None
        like = piece.segment.source.query_text(piece.text)
        texts = dict.fromkeys([like] if self.settings.retrieves else [])
        texts |= dict.fromkeys([piece.text] if least is not None else [])
        codes = piece.segment.source.codes if piece.is_whole else None
        neighbours = piece.segment.neighbours if piece.is_whole else ("", "")
        return [
            Request(
                query,
                similar=query.text == like and self.settings.retrieves,
                least=least if query.text == piece.text else None,
            )
            for query in queries_of([*texts], [codes] * len(texts), [neighbours] * len(texts))
        ]

    def _with_message_matches(self, piece: Piece, matches: tuple[Match, ...]) -> tuple[Match, ...]:
        """The matches of a piece with those of its whole segment's pairs that are as good."""
        others = piece.segment.message_matches
        least = self.retriever.least(piece.text) if others else 0.0
        good = [match for match in others if match.score >= least]
        every = distinct(best_of([*good, *matches], len(good) + len(matches)))
        return tuple(every[: self.retriever.top_k]) if good else matches

    def _look_up_wholes(self, pieces: Sequence[Piece], confirmed: Sequence[Delta]) -> None:
        """Looks up every segment in pieces, once."""
        parts = [
            row
            for row, piece in enumerate(pieces)
            if self.settings.retrieves and not piece.is_whole and not piece.segment.similar
        ]
        rows = [*{id(pieces[row].segment.similar): row for row in reversed(parts)}.values()]
        wholes = [replace(pieces[row], text=pieces[row].segment.text) for row in rows]
        answers = self._answers(wholes, _of(confirmed, rows))
        for whole, answer in zip(wholes, answers, strict=True):
            whole.segment.similar.append(answer)

    def _joined(self, piece: Piece) -> Piece:
        """The piece, or what becomes of it where its segment is translated whole."""
        similar = _similar(piece)
        is_good = max((match.score for match in similar.matches), default=0.0) >= AT_ONCE
        read = piece.segment.source.read
        if not is_good or not fits(read, self.vocab, self.longest_whole):
            return piece
        if piece.number:
            return replace(piece, retrieved=NOTHING, role="merged")
        return replace(
            piece,
            text=piece.segment.text,
            read=read,
            ids=tuple(self.vocab.encode_source(read)),
            retrieved=Retrieved(similar.matches, full_match=similar.exact),
        )

    def _with_fragments(self, piece: Piece) -> Piece:
        """A piece that is decoded and has no matches with pairs that share phrases with it."""
        count = self.settings.fragments if self.settings.mode == "nearest" else 0
        retrieved = piece.retrieved or NOTHING
        is_read = not (retrieved.matches or retrieved.full_match or piece.role == "merged")
        if not count or not is_read:
            return piece
        text = piece.segment.source.query_text(piece.text)
        fragments = self.retriever.fragments(text, count)
        return _with(piece, fragments=fragments)

    def _keys(self, pieces: Sequence[Piece]) -> list[list[PairKeys]]:
        with self.tally.timed("keys"):
            segments = dict[Pair, Segment]()
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
    """Of the keys of matches and then of fragments those that nearest positions are read of.

    Where one is the very text, nothing is read of other matches: where they go on otherwise, three
    of them would outvote it. Where a fragment ends, or a match that has less than half in common
    with the text, says nothing about where the text ends, so its </s> is not read."""
    has_same = any(match.score >= SAME for match in matches)

    def readable(match: Match, own: PairKeys) -> PairKeys:
        if has_same and match.score < SAME:
            return own.cut(0)
        return own if match.score >= HALF else without_end(own)

    of_matches = [readable(match, own) for match, own in zip(matches, keys, strict=False)]
    return of_matches + [without_end(own) for own in keys[len(matches) :]]


def without_end(keys: PairKeys) -> PairKeys:
    """The keys but that of </s>, which is the last."""
    return keys.cut(len(keys.ids) - 1)


def _with(piece: Piece, **changes: Any) -> Piece:
    """The piece with something else of what the memories have for it."""
    return replace(piece, retrieved=replace(piece.retrieved or NOTHING, **changes))


def _is_decoded(piece: Piece) -> bool:
    return (piece.retrieved or NOTHING).full_match is None


def _similar(piece: Piece) -> Answer:
    """What the memories have for the whole segment of a piece, where they were asked."""
    return next(iter(piece.segment.similar), Answer((), None))


def _of(confirmed: Sequence[Delta], rows: Sequence[int]) -> list[Delta]:
    """Those of some rows, where there are any."""
    return [confirmed[row] for row in rows] if confirmed else []


def _same_message(piece: Piece) -> Match | None:
    """The first of the pairs of a message whose source is the message."""
    matches = piece.segment.message_matches
    same = (match for match in matches if match.segment.src == piece.segment.text)
    codes = piece.segment.source.codes or ()
    return next((match for match in same if has_codes(match, codes)), None)


def _as_read(piece: Piece, match: Match) -> tuple[str, str]:
    """A pair as the model reads it beside the piece."""
    read = piece.segment.source.masked_pair(match.segment)
    return read.src, read.tgt
