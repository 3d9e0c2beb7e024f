"""What the memories have for pieces of text: the matches that the decoder reads, with their pair
keys, and the match that is taken as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tmnmt.codes.record import Beside, Code
from tmnmt.engine.coded import Coded
from tmnmt.engine.pieces import fits
from tmnmt.engine.retrieve import Retriever
from tmnmt.engine.schedule import Piece
from tmnmt.engine.settings import Settings
from tmnmt.engine.tally import Tally
from tmnmt.engine.verbatim import has_codes
from tmnmt.index.base import best_of
from tmnmt.index.embedded.delta import Delta
from tmnmt.index.pairs import distinct
from tmnmt.keys.pair_keys import PairKeys, PairKeyStore
from tmnmt.layers.reach import STANDARD, Reaches
from tmnmt.segments import Match
from tmnmt.vocab import Vocabulary

SAME = 1.0  # score of a match that has the text's tokens
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

    def of(self, pieces: Sequence[Piece], confirmed: Sequence[Delta]) -> list[Piece]:
        """The pieces with their matches and the keys of these; those that have them already stay as
        they are. The keys of all pairs found are computed together. confirmed: for every piece what
        its session has confirmed, which is searched, too."""
        rows = [row for row, piece in enumerate(pieces) if piece.matches is None]
        done = list(pieces)
        if not rows:
            return done
        asked, own = [pieces[row] for row in rows], [confirmed[row] for row in rows if confirmed]
        with self.tally.timed("search"):
            with_matches = self._with_exact(self._with_matches(asked, own), own)
            with_matches = [*map(self._with_fragments, with_matches)]
            for piece in with_matches:
                cut = piece.text != piece.whole and not piece.again
                self.tally.changed[self.in_pieces] += cut and not piece.part
        for row, piece, keys in zip(rows, with_matches, self._keys(with_matches), strict=True):
            reaches = self.reaches.for_fragments if piece.fragments else self.reaches
            done[row] = replace(piece, keys=tuple(keys), reaches=reaches)
        return done

    def to_be_decoded(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Pieces that were looked up, to be decoded even where a match is taken as it stands."""
        free = [replace(piece, exact=None) for piece in pieces]
        return [
            replace(piece, keys=tuple(keys))
            for piece, keys in zip(free, self._keys(free), strict=True)
        ]

    def holds(self, text: str) -> bool:
        """Whether a memory has a match of a whole segment that is taken as it stands."""
        least = self.settings.verbatim
        return bool(least) and self.retriever.exact([text], least=least)[0] is not None

    def knows_capitals(self, segment: Coded) -> bool:
        """Whether the memories have more that is like a text in capitals than like the sentence."""
        if not self.settings.retrieves:
            return False
        text = segment.source.plain
        answers = self.retriever.search([text, segment.asked(text)])
        best, other = (max((match.score for match in matches), default=0.0) for matches in answers)
        return best > 0 and best >= other

    def _with_matches(self, pieces: Sequence[Piece], confirmed: Sequence[Delta]) -> list[Piece]:
        """The pieces with what the decoder reads of the memories: what they are like, else what
        their segment is like. Where its match is good the first piece becomes the whole segment, as
        a piece would read of a pair what is not its own; the others are silent."""
        if not self.settings.retrieves:
            return [replace(piece, matches=()) for piece in pieces]
        self._ask_of_wholes(pieces, confirmed)
        done = [self._joined(piece) for piece in pieces]
        rows = [row for row, piece in enumerate(done) if piece.matches is None]
        own = self.retriever.search(
            [_asked_of(done[row], done[row].text) for row in rows],
            [confirmed[row] for row in rows] if confirmed else [],
            [_codes_of_whole(done[row]) for row in rows],
            [_place_of_whole(done[row]) for row in rows],
        )
        for row, matches in zip(rows, own, strict=True):
            piece = done[row]
            read = self._with_offered(piece, matches) or next(iter(piece.of_whole), ())
            done[row] = replace(piece, matches=read)
        return done

    def _with_offered(self, piece: Piece, matches: tuple[Match, ...]) -> tuple[Match, ...]:
        """The matches of a piece with those of its whole segment's pairs that are as good."""
        least = self.retriever.least(piece.text) if piece.offered else 0.0
        good = [match for match in piece.offered if match.score >= least]
        every = distinct(best_of([*good, *matches], len(good) + len(matches)))
        return tuple(every[: self.retriever.top_k]) if good else matches

    def _ask_of_wholes(self, pieces: Sequence[Piece], confirmed: Sequence[Delta]) -> None:
        """Looks up every segment in pieces, once."""
        parts = [
            row
            for row, piece in enumerate(pieces)
            if piece.text != piece.whole and not piece.of_whole
        ]
        first = {id(pieces[row].of_whole): row for row in reversed(parts)}
        again = [confirmed[row] for row in first.values()] if confirmed else []
        texts = [_asked_of(pieces[row], pieces[row].whole) for row in first.values()]
        codes = [codes_of(pieces[row]) for row in first.values()]
        beside = [pieces[row].beside for row in first.values()]
        wholes = self.retriever.search(texts, again, codes, beside)
        for row, matches in zip(first.values(), wholes, strict=True):
            pieces[row].of_whole.append(matches)

    def _joined(self, piece: Piece) -> Piece:
        """The piece, or what becomes of it where its segment is translated whole."""
        of_whole = next(iter(piece.of_whole), ())
        good = max((match.score for match in of_whole), default=0.0) >= AT_ONCE
        read = piece.whole if piece.coded is None else piece.coded.read
        if not good or not fits(read, self.vocab, self.longest_whole):
            return piece
        if piece.part:
            return replace(piece, matches=(), silent=True)
        return replace(
            piece,
            text=piece.whole,
            masked=read,
            ids=tuple(self.vocab.encode_source(read)),
            matches=of_whole,
        )

    def _with_exact(self, pieces: Sequence[Piece], confirmed: Sequence[Delta]) -> list[Piece]:
        """The pieces; those that are whole segments with the match that is taken as it stands."""
        done = list(pieces)
        if not self.settings.verbatim:
            return done
        whole = [row for row, piece in enumerate(pieces) if piece.text == piece.whole]
        exact = self.retriever.exact(
            [pieces[row].text for row in whole],
            [codes_of(pieces[row]) for row in whole],
            beside=[pieces[row].beside for row in whole],
            confirmed=[confirmed[row] for row in whole] if confirmed else [],
            least=self.settings.verbatim,
        )
        for row, match in zip(whole, exact, strict=True):
            done[row] = replace(pieces[row], exact=match or _same(pieces[row]))
        return done

    def _with_fragments(self, piece: Piece) -> Piece:
        """A piece that is decoded and has no matches with pairs that share phrases with it."""
        count = self.settings.fragments if self.settings.mode == "nearest" else 0
        if not count or piece.matches or piece.exact is not None or piece.silent:
            return piece
        asked = _asked_of(piece, piece.text)
        return replace(piece, fragments=self.retriever.fragments(asked, count))

    def _keys(self, pieces: Sequence[Piece]) -> list[list[PairKeys]]:
        with self.tally.timed("keys"):
            keys = self.keys.keys_of(
                [_as_read(piece, match) for match in piece.pairs if piece.exact is None]
                for piece in pieces
            )
        if self.settings.mode != "nearest":
            return keys
        return [
            copyable(piece.matches or (), of_pairs) if of_pairs else of_pairs
            for piece, of_pairs in zip(pieces, keys, strict=True)
        ]


def copyable(matches: Sequence[Match], keys: Sequence[PairKeys]) -> list[PairKeys]:
    """Of the keys of matches and then of fragments those that nearest positions are read of.

    Where one is the very text, nothing is read of other matches: where they go on otherwise, three
    of them would outvote it. Where a fragment ends says nothing about where the text ends, so its
    </s> is not read."""
    has_same = any(match.score >= SAME for match in matches)
    of_matches = [
        own if match.score >= SAME or not has_same else _cut(own, 0)
        for match, own in zip(matches, keys, strict=False)
    ]
    return of_matches + [_cut(own, len(own.ids) - 1) for own in keys[len(matches) :]]


def _cut(keys: PairKeys, length: int) -> PairKeys:
    return PairKeys(keys.contexts[:length], keys.hiddens[:length], keys.ids[:length])


def _same(piece: Piece) -> Match | None:
    """The first of the pairs that a message is offered whose source is the message."""
    same = (match for match in piece.offered if match.segment.src == piece.whole)
    codes = codes_of(piece) or ()
    return next((match for match in same if has_codes(match, codes)), None)


def codes_of(piece: Piece) -> Sequence[Code] | None:
    """The codes of a segment; None of a text that has none by what it is."""
    return piece.coded.source.codes if piece.coded is not None else None


def _codes_of_whole(piece: Piece) -> Sequence[Code] | None:
    """The codes of a piece that is a whole segment; None of a part of one."""
    return codes_of(piece) if piece.text == piece.whole else None


def _place_of_whole(piece: Piece) -> Beside:
    """The texts beside a piece that is a whole segment; none of a part of one."""
    return piece.beside if piece.text == piece.whole else ("", "")


def _as_read(piece: Piece, match: Match) -> tuple[str, str]:
    """A pair as the model reads it beside the piece."""
    if piece.coded is None:
        return match.segment.src, match.segment.tgt
    read = piece.coded.beside(match.segment)
    return read.src, read.tgt


def _asked_of(piece: Piece, text: str) -> str:
    """The text of a segment as the memories are asked for what is like it."""
    return text if piece.coded is None else piece.coded.asked(text)
