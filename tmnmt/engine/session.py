"""A document that is translated sentence by sentence, and what is learnt from every confirmed
translation."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from tmnmt.checks import Check, OnChecks
from tmnmt.codes.record import Beside, Source, Text, plain_of
from tmnmt.engine.completion import CompletionCache
from tmnmt.engine.compute_lock import ComputeLock
from tmnmt.engine.confirmation import Confirmation
from tmnmt.engine.confirmed import Confirmed, ConfirmedPair, confirmed_now, source_of, text_of
from tmnmt.engine.full_match import agreeing, commonest
from tmnmt.engine.piece import Piece, Preceding
from tmnmt.engine.pipeline import Pipeline
from tmnmt.engine.settings import Settings
from tmnmt.engine.terms import TermList
from tmnmt.errors import UsageError
from tmnmt.formats.clean import clean
from tmnmt.index.back_ends import same_place
from tmnmt.index.base import UnknownIdError, WritableIndex
from tmnmt.index.pairs import copies
from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.cache import CacheContents
from tmnmt.layers.cache_file import Saved, load_caches, save_caches
from tmnmt.segments import Alternative, Translation
from tmnmt.terms.term import Term
from tmnmt.text import normalise
from tmnmt.vocab import Vocabulary

log = logging.getLogger(__name__)


class Host(Protocol):
    """What a session needs of a translator."""

    pipeline: Pipeline
    settings: Settings
    vocab: Vocabulary
    writable: WritableIndex | None
    cache_hash: str  # of all that a slot of a session cache depends on
    completions: CompletionCache
    lock: ComputeLock

    @property
    def terms(self) -> TermList | None: ...

    def new_cache(self, slots: int | None = None) -> CacheContents: ...

    def stream_on(
        self, session: Session, texts: Iterable[Source], explain: bool = False
    ) -> Iterator[Translation]: ...

    def confirmation(self, src: Source, tgt: Source) -> Confirmation: ...

    def confirm(self, pairs: Sequence[tuple[Session, Confirmation]]) -> None: ...


class Session:
    """One document, sentence by sentence, with a session cache of its own.

    What is confirmed goes where the translator's `confirm_to` says: into the cache, and into the
    memory that was named by `write_to`, for good; without one it lasts as long as the session, and
    no other session reads it. `done` is all that was confirmed or passed over, in order. Any thread
    may use it: calls come one after another, each whole. Where two threads share a session, what
    one confirms the other's next sentence reads."""

    def __init__(self, translator: Host) -> None:
        self.translator = translator
        self.cache = translator.new_cache()
        self.confirmed = Confirmed()
        self.done: list[ConfirmedPair] = []
        # of terms with several targets, those that were confirmed last in this document
        self.term_choices: dict[Term, str] = {}
        # where translations are written: the last text, and the cache without what was written of
        # it
        self._previous: tuple[str, CacheContents] | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The way of its sentences."""
        return self.translator.pipeline

    @property
    def preceding(self) -> Preceding:
        """Subwords of what the document has confirmed or passed over last, as many segments as the
        model reads, the oldest first."""
        preparation = self.pipeline.preparation
        texts = list[str]()
        for entry in reversed(self.done if preparation.previous else []):
            if not entry.src or len(texts) == preparation.previous:
                break
            texts.append(entry.src)
        return preparation.preceding_ids(reversed(texts))

    @property
    def neighbours(self) -> Beside:
        """The texts beside the next segment: of the one behind it nothing is known."""
        return self.done[-1].src if self.done else "", ""

    def save(self, path: str | Path) -> None:
        """Writes the session to a file, for `Translator.session(path)`: its cache, and all that is
        done.

        Raises DataError where the file cannot be written; then nothing is."""
        with self.translator.lock:
            records = [entry.record() for entry in self.done]
            save_caches(
                Path(path), Saved(self.cache, self._previous, records), self.translator.cache_hash
            )

    def restore(self, path: Path) -> None:
        """Takes over what `save` wrote. Raises DataError where the file is no session, ModelError
        where another model, K or kind of cache made it."""
        saved = load_caches(
            path, self.translator.cache_hash, self.cache, len(self.translator.vocab)
        )
        has_positions = self.cache.positions is not None
        self.cache, self._previous = saved.cache, saved.pending
        entries = [ConfirmedPair.load(record) for record in saved.segments]
        in_index = self._stored_entries(entries)
        for entry in entries:
            self._note(entry, entry in in_index)
        if has_positions:
            self._fill_again()  # positions are not in the file

    def beside(self) -> Session:
        """A session of another document that reads, and adds to, what this one has confirmed; its
        cache is empty."""
        session = Session(self.translator)
        session.confirmed = self.confirmed
        return session

    def translate(self, text: Source, explain: bool = False) -> Translation:
        """The translation of the document's next segment, with its codes; with `remember` "own" it
        is in the cache then."""
        text = source_of(text)
        remembers = self.translator.settings.remembers
        with self.translator.lock:
            self._previous = (plain_of(text), copy.deepcopy(self.cache)) if remembers else None
            passage = self.pipeline.passage()
            pieces = passage.open(text, self.neighbours, self.preceding)
            for batch in [[piece] for piece in pieces] if remembers else [pieces]:
                passage.translate(batch, [self] * len(batch), explain)
            (translation,) = passage.finish()
            return translation

    def complete(self, text: Source, prefix: str, explain: bool = False) -> Translation:
        """The best translation of the document's next segment that begins with what was typed of
        it, character for character, the last word of which may be half a word. Where nothing was
        typed it is what `translate` gives. Nothing is learnt.

        A sentence at work is kept: the next call for it is fast, and costs nothing where what is
        typed agrees with what was suggested. `explain`: with the origin of every token, "typed" of
        those that were. The beam is small behind something typed. Raises UsageError for what is no
        text."""
        source = source_of(text)
        with self.translator.lock:
            suggestion = self.translator.completions.state_of(self, source).complete(
                text_of(prefix)
            )
        return suggestion if explain else replace(suggestion, tokens=(), words=(), confidence=None)

    def next_words(self, text: Source, prefix: str) -> str:
        """What comes behind that, as far as it is found at once: the rest of what `complete` gave,
        where that begins so, else a few words, in a quarter of the time of all."""
        source = source_of(text)
        with self.translator.lock:
            return self.translator.completions.state_of(self, source).next_words(text_of(prefix))

    def alternatives(self, text: Source, prefix: str, count: int = 5) -> list[Alternative]:
        """The words that may stand behind what was typed, the likeliest first, at most `count`;
        where that ends within a word, those that begin so. Raises UsageError for what is no
        text."""
        source = source_of(text)
        with self.translator.lock:
            state = self.translator.completions.state_of(self, source)
            return state.alternatives(text_of(prefix), count)

    def forget_work(self) -> None:
        """What the sentence at work has read is not so any more, or the session ends."""
        self.translator.completions.forget(self)

    def stream(self, texts: Iterable[Source], explain: bool = False) -> Iterator[Translation]:
        """The translations of all segments that follow, in order, nothing being confirmed in
        between. A blank text is translated as "" and starts a new document, with an empty cache;
        what was confirmed is found there, too."""
        return self.translator.stream_on(self, texts, explain)

    def check(self, src: Source, tgt: Source) -> list[Check]:
        """What the checks find in a translation that is to be confirmed: lost numbers and codes,
        words left as they are, terms, and so on (`tmnmt.checks`). Nothing is learnt. Raises
        UsageError as `confirm` does."""
        return [*self.translator.confirmation(src, tgt).checks]

    def confirm(self, src: Source, tgt: Source, on_checks: OnChecks = "tell") -> list[Check]:
        """Learns a translation, with its codes: the very next sentence can retrieve the pair, takes
        it as it stands where it is the same, and the session cache holds it, in place of the
        translator's own words where `src` is what was translated last. How much of that, `remember`
        and `confirm_to` say. Gives what the checks find in it, as `check` does; with `on_checks`
        "refuse" it is not learnt where they find something.

        Raises ChecksError where it is refused so, UsageError for a side without anything visible or
        of more than 1,000 tokens, LockedError where another process writes to the memory; then
        nothing is learnt."""
        pair = self.translator.confirmation(src, tgt)
        pair.check(on_checks)
        self.translator.confirm([(self, pair)])
        return [*pair.checks]

    def pass_over(self, src: str) -> None:
        """Notes that a segment is finished without a translation; nothing is learnt."""
        with self.translator.lock:
            self.done.append(ConfirmedPair(clean(text_of(src))[0] or " ", ""))
            self.forget_work()

    def new_document(self) -> None:
        """From now on another document is translated: the cache is empty; what was confirmed is
        still found."""
        with self.translator.lock:
            self._note(ConfirmedPair("", ""), in_index=False)
            self.cache = self.translator.new_cache()
            self._previous = None
            self.forget_work()

    def undo(self) -> ConfirmedPair:
        """Takes back what was done last, and gives it: neither the memory nor the cache knows of it
        any more. A pair of a memory that is not written to now, or that somebody has changed there,
        stays in it; a logged warning says so.

        Raises UsageError where nothing was done, and where the model's own words are remembered,
        which could not be told apart."""
        translator = self.translator
        with translator.lock:
            self.forget_work()
            if not self.done:
                raise UsageError(
                    "nothing was confirmed or passed over, so there is nothing to take back"
                )
            if translator.settings.remembers:
                raise UsageError(
                    "what is confirmed cannot be taken back where own words are remembered, too"
                )
            last = self.done[-1]
            if last.id > 0:
                deleted_from(translator.writable, last)
            self.done.pop()
            if last.id:
                self.confirmed.remove(last)
            self._fill_again()
            return last

    def follow(self, kept_count: int, new: Sequence[ConfirmedPair]) -> None:
        """From now on the first `kept_count` of what was done are done, and then `new`: for a
        session that is written down elsewhere, where others confirm and take back, too."""
        translator = self.translator
        with translator.lock:
            self.forget_work()
            removed = self.done[kept_count:]
            for entry in reversed(removed):
                self.done.pop()
                if entry.id:
                    self.confirmed.remove(entry)
            in_index = self._stored_entries(new)
            for entry in new:
                self._note(entry, entry in in_index)
            if removed:
                self._fill_again()
            elif translator.settings.caches:
                self._remember([(entry.src, entry.tgt) for entry in new if entry.tgt])

    def learn(self, src: Text, tgt: Text, keys: PairKeys | None) -> None:
        """What `confirm` does once the pair is found fit, and its keys, where the cache wants them,
        are there."""
        self.forget_work()
        entry = confirmed_now(src, tgt)
        entry = self._store(entry) if self.translator.settings.memorises else entry
        self._note(entry, entry.id > 0)
        if self._previous is not None and normalise(self._previous[0]) == normalise(src.plain):
            self.cache = self._previous[1]
            self._previous = None
        if keys is not None:
            for cache in (self.cache, *(self._previous[1:] if self._previous is not None else ())):
                self.pipeline.write_keys(cache, keys)

    def _store(self, entry: ConfirmedPair) -> ConfirmedPair:
        """The pair as it is kept: in the memory that is written to, else in the session's own."""
        writable = self.translator.writable
        entry = entry if writable is None else written_to(writable, entry)
        return entry if entry.id else replace(entry, id=self.confirmed.new_id())

    def _stored_entries(self, entries: Sequence[ConfirmedPair]) -> set[ConfirmedPair]:
        """Those that the memory written to now really holds, under their ids."""
        stored, writable = [entry for entry in entries if entry.id > 0], self.translator.writable
        if writable is None or not stored:
            return set()
        matches = copies(writable, [entry.src for entry in stored])
        return {
            entry
            for entry in stored
            if any(m.segment.id == entry.id and entry.is_in(m.segment) for m in matches[entry.src])
        }

    def _note(self, entry: ConfirmedPair, in_index: bool) -> None:
        self.done.append(entry)
        self._choose(entry)
        if entry.id:
            self.confirmed.add(entry, in_index)

    def _choose(self, entry: ConfirmedPair) -> None:
        """Takes over how a segment that is done says its terms; none is known where a document
        begins."""
        if not entry.src:
            self.term_choices = {}
        elif entry.tgt and self.translator.terms is not None:
            choices = self.translator.terms.choices(entry.src, entry.tgt)
            self.term_choices = {**self.term_choices, **choices}

    def _fill_again(self) -> None:
        """The cache, and what terms are said by, from what was confirmed since the document
        began."""
        translator = self.translator
        start = 0
        for position, entry in enumerate(self.done, 1):
            start = start if entry.src else position
        self.term_choices = {}
        for entry in self.done[start:]:
            self._choose(entry)
        self.cache = translator.new_cache()
        self._previous = None
        if translator.settings.caches:
            self._remember([(entry.src, entry.tgt) for entry in self.done[start:] if entry.tgt])

    def _remember(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Writes the words of these pairs to the cache."""
        for keys in self.pipeline.keys_to_remember(pairs):
            self.pipeline.write_keys(self.cache, keys)


def written_to(writable: WritableIndex, entry: ConfirmedPair) -> ConfirmedPair:
    """The pair with the id under which it is in the memory from now on. Where the memory gives this
    translation of the text anyway it is not added, and the id is the negative of that segment's;
    where another one is the newest of the most frequent it is, so that it wins."""
    alike = copies(writable, [entry.src])[entry.src]
    match = commonest(agreeing(alike, entry.src_codes or None))
    if match is not None and entry.is_given_by(match.segment):
        return replace(entry, id=-match.segment.id, memory=writable.place)
    return replace(entry, id=writable.add([entry.segment])[0], memory=writable.place)


def deleted_from(writable: WritableIndex | None, entry: ConfirmedPair) -> None:
    """Takes a pair out of the memory it was written to, where that is written to now and still
    holds it; a logged warning says where it does not."""
    if writable is None or not same_place(writable.place, entry.memory):
        log.warning(
            "%r is taken back here and stays in %s, which is not written to now",
            entry.src[:40],
            entry.memory,
        )
        return
    with suppress(UnknownIdError):  # somebody else has deleted it
        if entry.is_in(writable.get([entry.id])[0]):
            writable.delete([entry.id])
        else:
            log.warning(
                "segment %d stays in %s: it was changed there meanwhile", entry.id, entry.memory
            )


class Sessions:
    """The session of every document of a stream, for as long as it is needed."""

    def __init__(self, translator: Host, is_separate: bool, first: Session | None) -> None:
        """is_separate: every document needs one of its own. first: of the first document, whose
        pairs the others find."""
        self.translator, self.is_separate, self.first = translator, is_separate, first
        self._open: dict[int, Session] = {} if first is None else {0: first}
        self._idle = self._new()  # of all that need none

    def get_session(self, piece: Piece) -> Session:
        document = piece.segment.document
        if document not in self._open:
            if not self.is_separate:
                return self._idle
            self._open[document] = self._new()
        return self._open[document]

    def leave(self, piece: Piece) -> None:
        """Forgets a document of which nothing follows, where they go in order."""
        if piece.segment.ends_document and self.is_separate:
            self._open.pop(piece.segment.document, None)

    def _new(self) -> Session:
        return Session(self.translator) if self.first is None else self.first.beside()
