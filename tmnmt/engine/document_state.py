"""A document while it is translated sentence by sentence: what was confirmed in it, what the memory
layers keep of it, and what extensions have learnt in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmnmt.codes.record import Beside, Source
from tmnmt.engine.confirmation import Confirmation, confirmation, written_to
from tmnmt.engine.confirmed import Confirmed, confirmed_now, holds_pair, pair_of
from tmnmt.engine.session_file import load_session, saved_histories
from tmnmt.index.pairs import copies
from tmnmt.segments import ConfirmedPair
from tmnmt.text import normalise

if TYPE_CHECKING:
    from tmnmt.engine.piece import Preceding
    from tmnmt.engine.pipeline import Pipeline
    from tmnmt.index.base import WritableIndex
    from tmnmt.keys.pair_keys import PairKeys
    from tmnmt.layers.contract import Histories


class DocumentState:
    """What is known of a document. Its segments are translated through `pipeline`, and `writable`
    is the index that confirmed pairs are added to, or None where they only last as long as the
    document. `done` has all that was confirmed or passed over, in order. `version` is another
    number whenever something has changed that translations read.

    Whatever is confirmed, here or elsewhere, is learnt by `follow` or `learn`. Whoever calls a
    method holds the lock of the pipeline, except for `follow` and `learn_background`, which take
    it."""

    def __init__(self, pipeline: Pipeline, writable: WritableIndex | None = None) -> None:
        """pipeline: the pipeline through which its segments are translated.
        writable: the index that confirmed pairs are added to."""
        self.pipeline, self.writable = pipeline, writable
        self.histories = pipeline.new_histories()  # what the layers keep of the document
        self.confirmed = Confirmed()
        self.done: list[ConfirmedPair] = []
        # pairs of the document that were confirmed before this began
        self.background: list[tuple[str, str]] = []
        self.knowledge: dict[str, Any] = {}  # what extensions have learnt, by their names
        self.version = 0
        # where translations are remembered: the last text, and the histories as they were before
        # that text was translated
        self._previous: tuple[str, Histories] | None = None

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

    def last_pairs(self, count: int) -> list[tuple[str, str]]:
        """The pairs that were confirmed last since the document began, the latest one last.

        count: how many pairs are given at most."""
        begin = max((i for i, entry in enumerate(self.done, 1) if not entry.src), default=0)
        pairs = [] if begin else [*self.background]
        pairs += [(entry.src, entry.tgt) for entry in self.done[begin:] if entry.tgt]
        return pairs[-count:] if count else []

    def restore(self, path: Path) -> None:
        """Takes over what `Session.save` has written.

        path: the file.

        Raises DataError where the file is no session. Raises ModelError where it was saved with
        another model, another number of slots or another kind of cache."""
        pipeline = self.pipeline
        saved = load_session(path, pipeline.history_hash, self.histories, len(pipeline.vocab))
        self.histories, self._previous = saved.histories, saved.pending
        entries = [pair_of(record) for record in saved.segments]
        stored = self._stored_entries(entries)
        for entry in entries:
            self._note(entry, entry in stored)
        if saved_histories(self.histories).keys() != self.histories.keys():
            self._learn_again()

    def fork(self) -> DocumentState:
        """Another document, which reads what this one has confirmed and adds to it. The layers
        keep nothing of it yet."""
        document = DocumentState(self.pipeline, self.writable)
        document.confirmed = self.confirmed
        return document

    def learn_background(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Learns pairs of the document that were confirmed before this began, as far as the options
        let it learn: their words go into the cache. They are in no memory, and are not among what
        was confirmed here.

        pairs: sources with their translations; what counts most is last."""
        with self.pipeline.lock:
            if self.pipeline.settings.remember == "nothing" or not pairs:
                return
            self.background += pairs
            self._learn_again()

    def confirmation(self, src: Source, tgt: Source) -> Confirmation:
        """A pair as it is confirmed, with what the checks find in it. Nothing is learned.

        src: the source.
        tgt: its translation, as a person has approved it.

        Raises UsageError as `Session.confirm` does."""
        pipeline = self.pipeline
        return confirmation(src, tgt, *pipeline.languages, pipeline.extensions, pipeline.copied)

    def learn(self, pair: Confirmation, keys: PairKeys | None) -> None:
        """Learns a pair that is confirmed here; `confirm_all` calls this.

        pair: the pair.
        keys: the pair keys for the session cache; None where the cache does not learn."""
        entry = confirmed_now(pair.src, pair.tgt)
        entry = self._store(entry) if self.pipeline.settings.memorises else entry
        self._append(entry, entry.id > 0, keys)

    def follow(self, retained: int, new: Sequence[ConfirmedPair]) -> None:
        """Follows a document that is kept elsewhere, where others confirm and take back, too. From
        then on, the first entries of `done` stay, and the new ones come behind them.

        retained: how many entries of `done` stay.
        new: the entries that come behind these, in order."""
        with self.pipeline.lock:
            removed = self.done[retained:]
            for entry in reversed(removed):
                self._forget(entry)
            stored = self._stored_entries(new)
            pair_keys = self._keys(new) if not removed else [None] * len(new)
            for entry, keys in zip(new, pair_keys, strict=True):
                self._append(entry, entry in stored, keys)
            if removed:
                self._learn_again()

    def _store(self, entry: ConfirmedPair) -> ConfirmedPair:
        """Stores a pair in the memory that is written to, or else in that of the document. Returns
        the pair with the id that it has there."""
        entry = entry if self.writable is None else written_to(self.writable, entry)
        return entry if entry.id else replace(entry, id=self.confirmed.new_id())

    def _stored_entries(self, entries: Sequence[ConfirmedPair]) -> set[ConfirmedPair]:
        """The entries that the memory that is written to really holds, under their ids."""
        stored = [entry for entry in entries if entry.id > 0]
        if self.writable is None or not stored:
            return set()
        matches = copies(self.writable, [entry.src for entry in stored])
        return {
            entry
            for entry in stored
            if any(
                m.segment.id == entry.id and holds_pair(m.segment, entry)
                for m in matches[entry.src]
            )
        }

    def _append(self, entry: ConfirmedPair, in_index: bool, keys: PairKeys | None) -> None:
        """Learns a pair. Where its source was translated last, its words take the place of those
        that the model has written."""
        self._note(entry, in_index)
        if self._previous is not None and normalise(self._previous[0]) == normalise(entry.src):
            self.histories = self._previous[1]
            self._previous = None
        if keys is not None:
            earlier = self._previous[1:] if self._previous is not None else ()
            for histories in (self.histories, *earlier):
                self.pipeline.write_keys(histories, keys)

    def _note(self, entry: ConfirmedPair, in_index: bool) -> None:
        self.version += 1
        self.done.append(entry)
        self._inform(entry)
        if entry.id:
            self.confirmed.add(entry, in_index)

    def _forget(self, last: ConfirmedPair) -> None:
        """Takes back what was done last."""
        self.done.pop()
        if last.id:
            self.confirmed.remove(last)

    def _inform(self, entry: ConfirmedPair) -> None:
        """Lets the extensions learn from a finished segment. Where a document begins, they know
        nothing."""
        if not entry.src:
            self.knowledge = {}
        elif entry.tgt:
            self.knowledge = {
                name: extension.learn(self.knowledge.get(name), entry.src, entry.tgt)
                for name, extension in self.pipeline.extensions.items()
            }

    def _keys(self, entries: Sequence[ConfirmedPair]) -> list[PairKeys | None]:
        """What the session cache learns from each entry; None for nothing."""
        if not self.pipeline.settings.caches:
            return [None] * len(entries)
        pairs = [(entry.src, entry.tgt) for entry in entries if entry.tgt]
        keys = iter(self.pipeline.keys_to_remember(pairs, [self.histories]))
        return [next(keys) if entry.tgt else None for entry in entries]

    def _learn_again(self) -> None:
        """Makes the cache and what extensions know anew, from what was confirmed since the document
        began."""
        start = 0
        for position, entry in enumerate(self.done, 1):
            start = start if entry.src else position
        self.version += 1
        self.knowledge, self._previous = {}, None
        self.histories = self.pipeline.new_histories()
        background = [ConfirmedPair(*pair) for pair in self.background] if start == 0 else []
        entries = [*background, *self.done[start:]]
        for entry, keys in zip(entries, self._keys(entries), strict=True):
            self._inform(entry)
            if keys is not None:
                self.pipeline.write_keys(self.histories, keys)


def confirm_all(pairs: Sequence[tuple[DocumentState, Confirmation]]) -> None:
    """Has every document learn its pair, as `Session.confirm` does. All documents are of one
    pipeline. What their caches learn is computed together.

    pairs: the documents, each with its pair."""
    if not pairs:
        return
    pipeline = pairs[0][0].pipeline
    with pipeline.lock:
        keys: Sequence[PairKeys | None] = [None] * len(pairs)
        if pipeline.settings.caches:
            texts = [(pair.src.plain, pair.tgt.plain) for _, pair in pairs]
            keys = pipeline.keys_to_remember(texts, (document.histories for document, _ in pairs))
        for (document, pair), pair_keys in zip(pairs, keys, strict=True):
            document.learn(pair, pair_keys)
