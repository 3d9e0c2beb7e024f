"""A query of an embedded index, with what is made of its text once for all parts of the index."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tmnmt.index.base import COPIES, IndexQuery
from tmnmt.index.skeleton import bones, skeleton_hash
from tmnmt.text import match_tokens, written_for_tokens


@dataclass(frozen=True)
class PreparedQuery:
    """A query, with what is made of its text once.

    query: the query."""

    query: IndexQuery

    @cached_property
    def tokens(self) -> list[str]:
        """The match tokens of the text."""
        return match_tokens(self.query.text)

    @cached_property
    def encoded(self) -> tuple[bytes, bool]:
        """The text as compiled code reads it: ASCII as it is, of other text the match tokens, one a
        line; and whether. Raises UnicodeEncodeError where it is no Unicode."""
        text = self.query.text
        return written_for_tokens(text, None if text.isascii() else self.tokens)

    @cached_property
    def skeleton(self) -> tuple[str, ...]:
        """The skeleton of the text; nothing where no segments of it are wanted."""
        return bones(self.tokens) if self.query.same_skeleton else ()

    @cached_property
    def skeleton_hash(self) -> int:
        return skeleton_hash(self.skeleton)

    @property
    def is_searched(self) -> bool:
        """Whether it wants similar segments, or those of the same source, which are similar,
        too."""
        return bool(self.query.similar) or self.query.same_source

    @property
    def limits(self) -> tuple[int, float]:
        """How many segments a search for both looks for at first, and from what score."""
        return (self.query.similar, self.query.threshold) if self.query.similar else (COPIES, 1.0)
