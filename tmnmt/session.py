"""A document that is translated sentence by sentence, for programs: what is translated, typed,
checked and confirmed in it. Its state is in `tmnmt.engine.document_state`."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tmnmt.checks import Check, OnChecks
from tmnmt.codes.record import Source, plain_of
from tmnmt.engine.confirmation import deleted_from
from tmnmt.engine.confirmed import record_of, source_of, text_of
from tmnmt.engine.document_state import DocumentState, confirm_all
from tmnmt.engine.pipeline import Pipeline
from tmnmt.engine.preparation import texts_of
from tmnmt.engine.session_file import SavedSession, save_session
from tmnmt.engine.streaming import Stream
from tmnmt.errors import UsageError
from tmnmt.formats.clean import clean
from tmnmt.index.base import WritableIndex
from tmnmt.interactive.cache import CompletionCache
from tmnmt.segments import Alternative, ConfirmedPair, Translation

if TYPE_CHECKING:
    from tmnmt.interactive.completion import CompletionState


class Host(Protocol):
    """What a session needs of a translator, for which the attributes of `Translator` of the same
    names stand."""

    pipeline: Pipeline
    writable: WritableIndex | None
    completions: CompletionCache


class Session(DocumentState):
    """One document that is translated sentence by sentence, with a session cache of its own.
    `Translator.session` opens one.

    What is confirmed goes where the translator's option `confirm_to` says: into the session cache,
    into the memory that `write_to` names, or both. Without such a memory, a confirmed pair lasts as
    long as the session, and no other session reads it. `done` has all that was confirmed or passed
    over, in order.

    Any thread may use a session. Calls are answered one after another, each as a whole. Where two
    threads share a session, what one of them confirms is read by the next sentence of the other."""

    def __init__(self, translator: Host) -> None:
        """translator: the translator."""
        super().__init__(translator.pipeline, translator.writable)
        self.translator = translator

    def translate(self, text: Source, explain: bool = False) -> Translation:
        """Translates the next segment of the document. Where the option `remember` is "own", the
        translation is in the session cache from then on.

        text: the segment, as plain text or as a `Text` with codes, which the translation keeps.
        explain: whether every token comes with its origin; this takes longer.

        Raises UsageError for what is no text."""
        source = source_of(text)
        remembers = self.pipeline.settings.remembers
        with self.pipeline.lock:
            histories = copy.deepcopy(self.histories) if remembers else {}
            self._previous = (plain_of(source), histories) if remembers else None
            passage = self.pipeline.passage()
            pieces = passage.open(source, self.neighbours, self.preceding)
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
        source, typed = source_of(text), text_of(prefix)
        with self.pipeline.lock:
            suggestion = self._completion(source).complete(typed)
        return suggestion if explain else replace(suggestion, tokens=(), words=(), confidence=None)

    def next_words(self, text: Source, prefix: str) -> str:
        """The words that come behind what was typed, as far as they are found at once. Where the
        translation that `complete` gave begins with what was typed, this is the rest of it.
        Otherwise it is a few words, which take about a quarter of the time of a whole translation.

        text: the segment that is translated.
        prefix: what was typed of its translation.

        Raises UsageError for what is no text."""
        source, typed = source_of(text), text_of(prefix)
        with self.pipeline.lock:
            return self._completion(source).next_words(typed)

    def alternatives(self, text: Source, prefix: str, count: int = 5) -> list[Alternative]:
        """The words that may stand behind what was typed, the likeliest first. Where what was typed
        ends within a word, these are words that begin so.

        text: the segment that is translated.
        prefix: what was typed of its translation.
        count: how many words are given at most.

        Raises UsageError for what is no text."""
        source, typed = source_of(text), text_of(prefix)
        with self.pipeline.lock:
            return self._completion(source).alternatives(typed, count)

    def _completion(self, source: Source) -> CompletionState:
        return self.translator.completions.state_of(self, source)

    def stream(self, texts: Iterable[Source], explain: bool = False) -> Iterator[Translation]:
        """Translates all segments that follow, while nothing is confirmed. Gives their translations
        in order.

        texts: the segments. A blank one is translated as "", and a new document begins behind it.
        That document has an empty cache, but what was confirmed is found there, too.
        explain: whether every token comes with its origin; this takes longer."""
        stream = Stream(self.pipeline, self.writable, first=self, explain=explain)
        return stream.translations([(texts_of(texts), repeat(None))])

    def check(self, src: Source, tgt: Source) -> list[Check]:
        """What the checks find in a translation that is to be confirmed, such as lost numbers and
        codes, words left as they are, and terms (`tmnmt.checks`). Nothing is learned.

        src: the source.
        tgt: its translation.

        Raises UsageError as `confirm` does."""
        return [*self.confirmation(src, tgt).checks]

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
        pair = self.confirmation(src, tgt)
        pair.check(on_checks)
        confirm_all([(self, pair)])
        return [*pair.checks]

    def pass_over(self, src: str) -> None:
        """Notes that a segment is finished without a translation. Nothing is learned.

        src: the source of the segment."""
        with self.pipeline.lock:
            self._note(ConfirmedPair(clean(text_of(src))[0] or " ", ""), in_index=False)

    def new_document(self) -> None:
        """Begins another document. The cache is empty from then on, and what was confirmed is still
        found."""
        with self.pipeline.lock:
            self._note(ConfirmedPair("", ""), in_index=False)
            self.histories, self._previous = self.pipeline.new_histories(), None

    def undo(self) -> ConfirmedPair:
        """Takes back what was confirmed or passed over last, and returns it. Afterwards neither the
        memory nor the cache knows of it. A pair stays in its memory where that memory is not
        written to now, or where somebody has changed the pair there; a logged warning says so.

        Raises UsageError where nothing was confirmed or passed over. Raises UsageError where the
        model's own words are remembered, because the cache cannot tell these from what was
        confirmed."""
        with self.pipeline.lock:
            if not self.done:
                raise UsageError(
                    "nothing was confirmed or passed over, so there is nothing to take back"
                )
            if self.pipeline.settings.remembers:
                raise UsageError(
                    "what is confirmed cannot be taken back where own words are remembered, too"
                )
            last = self.done[-1]
            if last.id > 0:
                deleted_from(self.writable, last)
            self._forget(last)
            self._learn_again()
            return last

    def save(self, path: str | Path) -> None:
        """Writes the session to a file: its cache, and all that was confirmed or passed over.
        `Translator.session(path)` goes on with it.

        path: the file, which is replaced where it is there.

        Raises DataError where the file cannot be written; then nothing is written."""
        with self.pipeline.lock:
            records = [record_of(entry) for entry in self.done]
            saved = SavedSession(self.histories, self._previous, records)
            save_session(Path(path), saved, self.pipeline.history_hash)
