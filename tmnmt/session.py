"""A document that is translated sentence by sentence, and what is learned from every confirmed
translation."""

from __future__ import annotations

import copy
import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from tmnmt.checks import Check, OnChecks
from tmnmt.codes.record import Beside, Source, Text, plain_of
from tmnmt.engine.compute_lock import ComputeLock
from tmnmt.engine.confirmation import Confirmation
from tmnmt.engine.confirmed import Confirmed, ConfirmedPair, confirmed_now, source_of, text_of
from tmnmt.engine.extension import Extensions
from tmnmt.engine.full_match import agreeing, commonest
from tmnmt.engine.history import History
from tmnmt.engine.piece import OpenSegment, Piece, Preceding
from tmnmt.engine.pipeline import Pipeline
from tmnmt.engine.session_file import SavedSession, load_session, save_session, saved_histories
from tmnmt.engine.settings import Settings
from tmnmt.errors import UsageError
from tmnmt.formats.clean import clean
from tmnmt.index.back_ends import same_place
from tmnmt.index.base import UnknownIdError, WritableIndex
from tmnmt.index.pairs import copies
from tmnmt.interactive.completion import CompletionCache
from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.contract import Histories
from tmnmt.segments import Alternative, Translation
from tmnmt.text import normalise
from tmnmt.vocab import Vocabulary

MOST_STRETCHES = 32  # whose sessions a stream holds: more than a batch is of

log = logging.getLogger(__name__)


class Host(Protocol):
    """What a session needs of a translator, for which the attributes and methods of `Translator`
    of the same names stand."""

    pipeline: Pipeline
    settings: Settings
    vocab: Vocabulary
    writable: WritableIndex | None
    cache_hash: str  # names all that what layers keep of a document depends on
    completions: CompletionCache
    lock: ComputeLock

    @property
    def extensions(self) -> Extensions: ...

    def new_histories(self) -> Histories: ...

    def stream_on(
        self, session: Session, texts: Iterable[Source], explain: bool = False
    ) -> Iterator[Translation]: ...

    def confirmation(self, src: Source, tgt: Source) -> Confirmation: ...

    def confirm(self, pairs: Sequence[tuple[Session, Confirmation]]) -> None: ...


class Session:
    """One document that is translated sentence by sentence, with a session cache of its own.
    `Translator.session` opens one.

    What is confirmed goes where the translator's option `confirm_to` says: into the session cache,
    into the memory that `write_to` names, or both. Without such a memory, a confirmed pair lasts as
    long as the session, and no other session reads it. `done` has all that was confirmed or passed
    over, in order.

    Any thread may use a session. Calls are answered one after another, each as a whole. Where two
    threads share a session, what one of them confirms is read by the next sentence of the other."""

    def __init__(self, translator: Host) -> None:
        self.translator = translator
        self.histories = translator.new_histories()  # what the layers keep of the document
        self.confirmed = Confirmed()
        self.done: list[ConfirmedPair] = []
        # pairs of the document that were confirmed before the session began
        self.background: list[tuple[str, str]] = []
        # what extensions have learnt in this document, by their names
        self.knowledge: dict[str, Any] = {}
        # where translations are remembered: the last text, and the histories as they were before
        # that text was translated
        self._previous: tuple[str, Histories] | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline through which its segments are translated."""
        return self.translator.pipeline

    @property
    def preceding(self) -> Preceding:
        """The subwords of the segments that were confirmed or passed over last, the oldest first:
        as many segments as the model reads."""
        preparation = self.pipeline.preparation
        texts = list[str]()
        for entry in reversed(self.done if preparation.previous else []):
            if not entry.src or len(texts) == preparation.previous:
                break
            texts.append(entry.src)
        return preparation.preceding_ids(reversed(texts))

    @property
    def neighbours(self) -> Beside:
        """The sources before and after the next segment. The one after it is not known, and is
        ""."""
        return self.done[-1].src if self.done else "", ""

    def save(self, path: str | Path) -> None:
        """Writes the session to a file: its cache, and all that was confirmed or passed over.
        `Translator.session(path)` goes on with it.

        path: the file, which is replaced where it is there.

        Raises DataError where the file cannot be written; then nothing is written."""
        with self.translator.lock:
            records = [entry.record() for entry in self.done]
            saved = SavedSession(self.histories, self._previous, records)
            save_session(Path(path), saved, self.translator.cache_hash)

    def restore(self, path: Path) -> None:
        """Takes over what `save` has written.

        path: the file of the session.

        Raises DataError where the file is no session. Raises ModelError where it was saved with
        another model, another number of slots or another kind of cache."""
        translator = self.translator
        saved = load_session(path, translator.cache_hash, self.histories, len(translator.vocab))
        self.histories, self._previous = saved.histories, saved.pending
        entries = [ConfirmedPair.load(record) for record in saved.segments]
        in_index = self._stored_entries(entries)
        for entry in entries:
            self._note(entry, entry in in_index)
        if saved_histories(self.histories).keys() != self.histories.keys():
            self._fill_again()

    def beside(self) -> Session:
        """Opens a session of another document. It reads what this session has confirmed and adds
        to it. Its cache is empty."""
        session = Session(self.translator)
        session.confirmed = self.confirmed
        return session

    def learn_background(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Learns pairs of the document that were confirmed before the session began, as far as the
        options let it learn: their words go into the cache. They are in no memory, and are not
        among what was confirmed here.

        pairs: sources with their translations; what counts most is last."""
        with self.translator.lock:
            if self.translator.settings.remember == "nothing" or not pairs:
                return
            self.background += pairs
            self.forget_work()
            self._fill_again()

    def translate(self, text: Source, explain: bool = False) -> Translation:
        """Translates the next segment of the document. Where the option `remember` is "own", the
        translation is in the session cache from then on.

        text: the segment, as plain text or as a `Text` with codes, which the translation keeps.
        explain: whether every token comes with its origin; this takes longer.

        Raises UsageError for what is no text."""
        text = source_of(text)
        remembers = self.translator.settings.remembers
        with self.translator.lock:
            self._previous = (plain_of(text), copy.deepcopy(self.histories)) if remembers else None
            passage = self.pipeline.passage()
            pieces = passage.open(text, self.neighbours, self.preceding)
            for batch in [[piece] for piece in pieces] if remembers else [pieces]:
                passage.translate(batch, [self] * len(batch), explain)
            (translation,) = passage.finish()
            return translation

    def complete(self, text: Source, prefix: str, explain: bool = False) -> Translation:
        """The best translation of the document's next segment that begins with what a person has
        typed, character for character. Where nothing was typed, it is what `translate` gives.
        Nothing is learned.

        The session keeps the state of the sentence that somebody works on. So the next call for the
        same sentence is fast, and it costs nothing where what is typed agrees with what was
        suggested. Behind something typed the beam is small.

        text: the segment that is translated.
        prefix: what was typed of its translation. Its last word may be half a word.
        explain: whether every token comes with its origin; the origin of those typed is "typed".

        Raises UsageError for what is no text."""
        source = source_of(text)
        with self.translator.lock:
            suggestion = self.translator.completions.state_of(self, source).complete(
                text_of(prefix)
            )
        return suggestion if explain else replace(suggestion, tokens=(), words=(), confidence=None)

    def next_words(self, text: Source, prefix: str) -> str:
        """The words that come behind what was typed, as far as they are found at once. Where the
        translation that `complete` gave begins with what was typed, this is the rest of it.
        Otherwise it is a few words, which take about a quarter of the time of a whole translation.

        text: the segment that is translated.
        prefix: what was typed of its translation.

        Raises UsageError for what is no text."""
        source = source_of(text)
        with self.translator.lock:
            return self.translator.completions.state_of(self, source).next_words(text_of(prefix))

    def alternatives(self, text: Source, prefix: str, count: int = 5) -> list[Alternative]:
        """The words that may stand behind what was typed, the likeliest first. Where what was typed
        ends within a word, these are words that begin so.

        text: the segment that is translated.
        prefix: what was typed of its translation.
        count: how many words are given at most.

        Raises UsageError for what is no text."""
        source = source_of(text)
        with self.translator.lock:
            state = self.translator.completions.state_of(self, source)
            return state.alternatives(text_of(prefix), count)

    def forget_work(self) -> None:
        """Drops the state of the sentence that somebody works on. It is called where what that
        sentence has read is no longer true, and where the session ends."""
        self.translator.completions.forget(self)

    def stream(self, texts: Iterable[Source], explain: bool = False) -> Iterator[Translation]:
        """Translates all segments that follow, while nothing is confirmed. Gives their translations
        in order.

        texts: the segments. A blank one is translated as "", and a new document begins behind it.
        That document has an empty cache, but what was confirmed is found there, too.
        explain: whether every token comes with its origin; this takes longer."""
        return self.translator.stream_on(self, texts, explain)

    def check(self, src: Source, tgt: Source) -> list[Check]:
        """What the checks find in a translation that is to be confirmed, such as lost numbers and
        codes, words left as they are, and terms (`tmnmt.checks`). Nothing is learned.

        src: the source.
        tgt: its translation.

        Raises UsageError as `confirm` does."""
        return [*self.translator.confirmation(src, tgt).checks]

    def confirm(self, src: Source, tgt: Source, on_checks: OnChecks = "tell") -> list[Check]:
        """Learns a translation, with its codes. Returns what the checks find in it, as `check`
        does.

        The very next sentence can retrieve the pair, and takes it as it stands where its source is
        the same. The session cache holds the words of the translation. Where `src` is what was
        translated last, they take the place of the words that the model has written. The options
        `remember` and `confirm_to` say how much of this is done.

        src: the source.
        tgt: its translation, as a person has approved it.
        on_checks: "tell" learns the pair whatever the checks find; with "refuse", a pair in which
        they find something is not learned.

        Raises ChecksError where the pair is refused. Raises UsageError for a side without anything
        visible or of more than 1,000 tokens. Raises LockedError where another process writes to the
        memory. After an error nothing is learned."""
        pair = self.translator.confirmation(src, tgt)
        pair.check(on_checks)
        self.translator.confirm([(self, pair)])
        return [*pair.checks]

    def pass_over(self, src: str) -> None:
        """Notes that a segment is finished without a translation. Nothing is learned.

        src: the source of the segment."""
        with self.translator.lock:
            self.done.append(ConfirmedPair(clean(text_of(src))[0] or " ", ""))
            self.forget_work()

    def new_document(self) -> None:
        """Begins another document. The cache is empty from then on, and what was confirmed is still
        found."""
        with self.translator.lock:
            self._note(ConfirmedPair("", ""), in_index=False)
            self.histories = self.translator.new_histories()
            self._previous = None
            self.forget_work()

    def undo(self) -> ConfirmedPair:
        """Takes back what was confirmed or passed over last, and returns it. Afterwards neither the
        memory nor the cache knows of it. A pair stays in its memory where that memory is not
        written to now, or where somebody has changed the pair there; a logged warning says so.

        Raises UsageError where nothing was confirmed or passed over. Raises UsageError where the
        model's own words are remembered, because the cache cannot tell these from what was
        confirmed."""
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
        """Follows a session that is kept elsewhere, where others confirm and take back, too. From
        then on, the first entries of `done` stay, and the new ones come behind them.

        kept_count: how many entries of `done` stay.
        new: the entries that come behind these, in order."""
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
        """Learns a pair that was checked; `Translator.confirm` calls this.

        src: the source.
        tgt: its translation.
        keys: the pair keys of both, for the session cache; None where the cache does not learn."""
        self.forget_work()
        entry = confirmed_now(src, tgt)
        entry = self._store(entry) if self.translator.settings.memorises else entry
        self._note(entry, entry.id > 0)
        if self._previous is not None and normalise(self._previous[0]) == normalise(src.plain):
            self.histories = self._previous[1]
            self._previous = None
        if keys is not None:
            earlier = self._previous[1:] if self._previous is not None else ()
            for histories in (self.histories, *earlier):
                self.pipeline.write_keys(histories, keys)

    def _store(self, entry: ConfirmedPair) -> ConfirmedPair:
        """Stores a pair in the memory that is written to, or else in that of the session. Returns
        the pair with the id that it has there."""
        writable = self.translator.writable
        entry = entry if writable is None else written_to(writable, entry)
        return entry if entry.id else replace(entry, id=self.confirmed.new_id())

    def _stored_entries(self, entries: Sequence[ConfirmedPair]) -> set[ConfirmedPair]:
        """The entries that the memory that is written to really holds, under their ids."""
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
        self._learn(entry)
        if entry.id:
            self.confirmed.add(entry, in_index)

    def _learn(self, entry: ConfirmedPair) -> None:
        """Lets the extensions learn from a finished segment. Where a document begins, they know
        nothing."""
        if not entry.src:
            self.knowledge = {}
        elif entry.tgt:
            self.knowledge = {
                name: extension.learn(self.knowledge.get(name), entry.src, entry.tgt)
                for name, extension in self.translator.extensions.items()
            }

    def _fill_again(self) -> None:
        """Makes the cache and what extensions know anew, from what was confirmed since the document
        began."""
        translator = self.translator
        start = 0
        for position, entry in enumerate(self.done, 1):
            start = start if entry.src else position
        self.knowledge = {}
        background = [ConfirmedPair(*pair) for pair in self.background] if start == 0 else []
        entries = [*background, *self.done[start:]]
        for entry in entries:
            self._learn(entry)
        self.histories = translator.new_histories()
        self._previous = None
        if translator.settings.caches:
            self._remember([(entry.src, entry.tgt) for entry in entries if entry.tgt])

    def _remember(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Writes the words of these pairs to the cache."""
        for keys in self.pipeline.keys_to_remember(pairs, [self.histories]):
            self.pipeline.write_keys(self.histories, keys)


def written_to(writable: WritableIndex, entry: ConfirmedPair) -> ConfirmedPair:
    """Writes a pair to a memory. Returns the pair with the id under which it is there from then on.

    Where the memory gives this translation of the text already, nothing is added, and the id is the
    negative of the id of that segment. Where the memory would give another translation, the pair is
    added, so that it is the newest of the most frequent.

    writable: the index of the memory.
    entry: the pair."""
    alike = copies(writable, [entry.src])[entry.src]
    match = commonest(agreeing(alike, entry.src_codes or None))
    if match is not None and entry.is_given_by(match.segment):
        return replace(entry, id=-match.segment.id, memory=writable.place)
    return replace(entry, id=writable.add([entry.segment])[0], memory=writable.place)


def deleted_from(writable: WritableIndex | None, entry: ConfirmedPair) -> None:
    """Takes a pair out of the memory that it was written to. Where that memory is not written to
    now, or holds another pair by this id, nothing is deleted, and a logged warning says so.

    writable: the index that is written to now; None where there is none.
    entry: the pair."""
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
    """The sessions of the documents of a stream, each for as long as it is needed. Where a document
    has confirmed pairs, and nothing is learned of what is translated, every stretch of it has a
    session that has learned the pairs near by."""

    def __init__(self, translator: Host, is_separate: bool, first: Session | None) -> None:
        """translator: the translator whose stream it is.
        is_separate: whether every document needs a session of its own.
        first: the session of the first document, whose pairs the other documents find; None where
        the first document has a new session."""
        self.translator, self.is_separate, self.first = translator, is_separate, first
        self._open: dict[int, Session] = {} if first is None else {0: first}
        self._idle = self._new()  # for all documents that need none of their own
        # by document and stretch, those that were used last at the end
        self._of_stretches = OrderedDict[tuple[int, int], Session]()

    def get_session(self, piece: Piece) -> Session:
        """The session of the document that a piece belongs to, or of its stretch of the
        document."""
        segment = piece.segment
        if segment.document not in self._open:
            if not self.is_separate:
                return self._idle if segment.history is None else self._of_stretch(segment)
            self._open[segment.document] = self._new(segment.history)
        return self._open[segment.document]

    def _of_stretch(self, segment: OpenSegment) -> Session:
        if segment.history is None:
            return self._idle
        stretch = segment.history.stretch_of(segment.place)
        key = segment.document, stretch
        if key not in self._of_stretches:
            self._of_stretches[key] = self._new(segment.history, stretch)
        self._of_stretches.move_to_end(key)
        if len(self._of_stretches) > MOST_STRETCHES:
            self._of_stretches.popitem(last=False)
        return self._of_stretches[key]

    def leave(self, piece: Piece) -> None:
        """Forgets the session of a document, if this is the last piece of the document."""
        if piece.segment.ends_document and self.is_separate:
            self._open.pop(piece.segment.document, None)

    def _new(self, history: History | None = None, stretch: int = 0) -> Session:
        session = Session(self.translator) if self.first is None else self.first.beside()
        if history is not None:
            session.learn_background([(src, tgt) for src, tgt, _ in history.nearest(stretch)])
        return session
