"""Arguments of ICU that choose among messages: each message is translated as a text of its own."""

from __future__ import annotations

from collections.abc import Sequence

from tmnmt.codes.messages import Messages, messages
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Source, Text
from tmnmt.filters.contract import Filter, Split, Undo


class ICUMessages(Filter):
    """Parts the messages of ICU, which are translated one by one."""

    is_for_people = True

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        parts = messages(source) if isinstance(source, Text) else None
        return source, None if parts is None else SplitMessages(parts)


class SplitMessages(Split):
    """The messages of one text, and their frames."""

    def __init__(self, parts: Messages) -> None:
        """parts: the messages, and their frames."""
        self.messages = parts
        self.texts = parts.texts

    def pairs(self, src: Text, tgt: Text) -> list[tuple[Text, Text] | None]:
        """The messages with the same keys."""
        sides = [messages(with_placeholders(side)) for side in (src, tgt)]
        src_messages, theirs = [{} if side is None else side.by_key() for side in sides]
        return [
            (src_messages[keys], theirs[keys]) if keys in src_messages and keys in theirs else None
            for keys in self.messages.keys
        ]

    def join(self, targets: Sequence[Text]) -> Text:
        return self.messages.join(targets)
