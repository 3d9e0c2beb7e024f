"""The sentences that somebody works on: what completing one has found out is kept for its next
letter. Nothing of the decoder is imported before there is such a sentence."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from tmnmt.codes.record import Source

if TYPE_CHECKING:
    from tmnmt.engine.document_state import DocumentState
    from tmnmt.interactive.completion import CompletionState
    from tmnmt.interactive.prefix import Spellings
    from tmnmt.vocab import Vocabulary

CACHE_SIZE = 32  # sentences at work


class CompletionCache:
    """The states of the sentences that somebody works on, over all documents of a model. Those that
    were used last are kept."""

    def __init__(self) -> None:
        self._states: OrderedDict[tuple[DocumentState, Source], CompletionState] = OrderedDict()
        self._spellings: dict[bool, Spellings] = {}
        self._lock = threading.Lock()  # a session may end while another one's sentence is decoded

    def state_of(self, document: DocumentState, source: Source) -> CompletionState:
        """The state of a sentence, which reads what its document has confirmed.

        document: the document.
        source: the sentence."""
        key = document, source
        with self._lock:
            state = self._states.get(key)
        if state is None or state.is_stale():
            from tmnmt.interactive.completion import CompletionState

            state = CompletionState(document, source, self.spellings)
        with self._lock:
            self._states[key] = state
            self._states.move_to_end(key)
            while len(self._states) > CACHE_SIZE:
                self._states.popitem(last=False)
        return state

    def forget(self, document: DocumentState) -> None:
        """Drops the states of a document that ends.

        document: the document."""
        with self._lock:
            for key in [key for key in self._states if key[0] is document]:
                del self._states[key]

    def spellings(self, vocab: Vocabulary, capitals: bool) -> Spellings:
        """What the subwords of a vocabulary spell. It is made when it is first needed.

        vocab: the vocabulary.
        capitals: whether the subwords are written in capitals."""
        if capitals not in self._spellings:
            from tmnmt.interactive.prefix import Spellings

            self._spellings[capitals] = Spellings(vocab, capitals)
        return self._spellings[capitals]
