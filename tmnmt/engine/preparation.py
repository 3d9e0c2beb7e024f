"""From documents to pieces: what the model can translate at once."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from tmnmt.codes.capitals import within_sentence
from tmnmt.codes.form import Copied
from tmnmt.codes.record import Source, Text, beside, plain_of
from tmnmt.engine.coded import Coded
from tmnmt.engine.confirmed import source_of
from tmnmt.engine.lookup import Lookup
from tmnmt.engine.pieces import pieces
from tmnmt.engine.schedule import InOrder, Piece
from tmnmt.engine.tally import CONTROL, Tally
from tmnmt.errors import UsageError
from tmnmt.segments import Match
from tmnmt.vocab import Vocabulary

Pair = tuple[Source, Source]  # source, target
Read = tuple[tuple[int, ...], ...]  # subwords of the segments before one, the oldest first


class Preparation:
    """Cuts segments for one model and its memories. `copied`: what comes through. `lock` is held
    while the memories are asked. `previous`: of so many segments that stand before it in its
    document a segment's translation reads the source."""

    def __init__(
        self,
        vocab: Vocabulary,
        copied: Copied,
        longest: int,
        lookup: Lookup,
        lock: threading.RLock,
        tally: Tally,
        previous: int = 0,
    ) -> None:
        self.vocab, self.longest, self.lookup = vocab, longest, lookup
        self.lock, self.tally, self.previous = lock, tally, previous
        self._copied = copied

    def documents(
        self,
        documents: Iterable[tuple[Sequence[Source], Iterable[Pair | None]]],
        queue: InOrder,
        tag: str,
        at_once: int | None = None,
        before: Read = (),
    ) -> Iterator[list[Piece]]:
        """Every document as the pieces to be translated, the last of a segment with what is then
        confirmed; blank lines part documents. Announces all to `queue`. `at_once`: a longer
        document comes in lists of about so many pieces, each made when it is asked for. `before`:
        what stands before the first."""
        number = 0
        for texts, pairs in documents:
            confirmed = iter(pairs)
            for part in _split_at_blanks(texts_of(texts)):
                prepared = []
                for text, near in zip(part, beside(part), strict=True):
                    made = self.pieces(text, number, queue, tag, before)
                    pair = next(confirmed, None)
                    before = self.after(before, made)
                    made = [replace(piece, beside=near) for piece in made]
                    prepared += made[:-1] + [replace(piece, confirmed=pair) for piece in made[-1:]]
                    if at_once is not None and len(prepared) > at_once:
                        yield prepared[:-1]
                        prepared = prepared[-1:]  # the last of its document, perhaps
                number, before = number + 1, ()
                if prepared:
                    yield [*prepared[:-1], replace(prepared[-1], last=True)]

    def pieces(
        self, text: Source, document: int, queue: InOrder, tag: str = "", before: Read = ()
    ) -> list[Piece]:
        """A segment as what the model can translate: no control characters, no piece longer than it
        was trained on, unless a memory holds it as it is. `tag`: as in `Translator.stream`;
        `before`: as a piece has it."""
        given = source_of(text)
        whole = Coded(given, self._size, self._copied)
        with self.lock:
            if whole.in_capitals and self.lookup.knows_capitals(whole):
                whole.in_capitals = False
            cleaned, read = whole.source.plain, whole.read.strip()
            texts = pieces(read, self.vocab, self.longest) if read else []
            if len(texts) > 1 and (whole.messages is not None or self.lookup.holds(cleaned)):
                texts = [read]
            self.tally.changed[CONTROL] += whole.changed
        ids = [self.vocab.encode_source(piece_text) for piece_text in texts]
        if tag:
            ids = [self.vocab.tagged(one, tag) for one in ids]
        coded = None if isinstance(given, str) and whole.is_plain else whole
        within = () if tag else self._within(whole, texts)
        number = queue.announce(plain_of(given), len(texts), coded)
        of_whole = list[tuple[Match, ...]]()  # shared by all pieces
        return [
            Piece(
                text=own,
                ids=tuple(ids[part]),
                whole=cleaned,
                segment=number,
                document=document,
                part=part,
                of_whole=of_whole,
                coded=coded,
                masked=texts[part],
                within=within,
                before=before,
            )
            for part, own in enumerate(texts if coded is None else coded.pieces(texts))
        ]

    def _within(self, segment: Coded, texts: Sequence[str]) -> tuple[int, ...]:
        """The subwords of a heading without placeholders as it would stand within a sentence."""
        if len(texts) != 1 or any(code.covers for code in segment.source.codes):
            return ()
        read = within_sentence(texts[0], self._size)
        return () if read is None else tuple(self.vocab.encode_source(read))

    def read_before(self, text: str) -> tuple[int, ...]:
        """What the model reads of a segment that stands before the one it translates."""
        return tuple(self.vocab.encode_source(text)[: self.longest])

    def after(self, before: Read, made: Sequence[Piece]) -> Read:
        """What stands before the next segment, where these are the pieces of this one; one without
        any counts for nothing."""
        if not self.previous or not made:
            return before
        own = tuple(chain.from_iterable(piece.ids for piece in made))[: self.longest]
        return (*before, own)[-self.previous :]

    def _size(self, word: str) -> int:
        return len(self.vocab.encode_source(word))


def paired(
    documents: Iterable[Sequence[Source]], confirmed: Iterable[Sequence[Pair | None]]
) -> Iterator[tuple[Sequence[Source], Sequence[Pair | None]]]:
    """Every document with its pairs. Raises UsageError where there are not as many of them."""
    for number, (texts, pairs) in enumerate(zip_longest(documents, confirmed), 1):
        if texts is None or pairs is None or len(texts) != len(pairs):
            raise UsageError(f"confirmed: document {number} has not as many pairs as texts")
        yield texts, pairs


def texts_of(texts: object) -> list[Source]:
    """A document's texts. Raises UsageError where it is a text itself, or no list of
    texts at all."""
    if isinstance(texts, str | bytes | Text) or not isinstance(texts, Iterable):
        raise UsageError(f"a list of texts is wanted, not {type(texts).__name__}")
    return [source_of(text) for text in texts]


def _split_at_blanks(texts: Iterable[Source]) -> Iterator[list[Source]]:
    """The texts of each document in turn. A blank one ends a document, and is its last, but not one
    that may have codes: it is of a file, which says itself where documents end."""
    document = list[Source]()
    for text in texts:
        document.append(text)
        if isinstance(text, str) and not text.strip():
            yield document
            document = []
    if document:
        yield document
