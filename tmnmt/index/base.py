"""What every kind of index promises, and must do alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Protocol, Self, TypeGuard

from tmnmt.errors import DataError, MemoryIndexError, UsageError
from tmnmt.formats.iso639 import short
from tmnmt.formats.languages import is_same_language
from tmnmt.index.concordance import Occurrence, Phrase
from tmnmt.index.filter import NO_FILTER, Filter
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens

_SECONDS = "%Y-%m-%dT%H:%M:%SZ"
MAX_TOKENS = 65_535  # a hundred pages: nobody aligns such a segment
SKELETONS_A_QUERY = 16  # "Article 0" stands in a memory of laws ten thousand times
COPIES = 64  # of a source are looked for at first
WIDER = 4  # times as many again, where copies took the places


def accept_always(_number: int) -> bool:
    """Every id is accepted."""
    return True


class UnknownIdError(DataError):
    """No segment of the memory has this id."""


class IndexQuery(NamedTuple):
    """A text, and what an index is to look up for it."""

    text: str
    similar: int = 0  # the most similar segments: so many, of a fuzzy score of at least
    threshold: float = 0.5
    same_source: bool = False  # every segment whose source has the same match tokens
    same_skeleton: int = 0  # segments of the same skeleton: so many
    without_document: str = ""  # the document whose segments are not similar; "": none


class IndexAnswer(NamedTuple):
    """What an index has for a query; nothing where the query does not want it. All is best first,
    in the order of `Index.search`."""

    similar: list[Match]  # as `Index.search` gives them
    same_source: list[Match]  # all of them
    # Where there are more than are wanted, those of as many match tokens come first, then the
    # newest; of equal sources a few are looked at. A text without words or numbers has none, and
    # an index that keeps no skeletons has none for any text.
    same_skeleton: list[Match]


class Index(Protocol):
    """A memory that can be searched, wherever it lives. A class has `search` or `look_up` and
    inherits the other, and the rest, from here."""

    src_lang: str
    tgt_lang: str

    @property
    def folder(self) -> Path | None:
        """The folder that it lies in, where files can be kept beside it, as keys and calibrations
        are; None where it lies in none."""
        return None

    def search(
        self,
        queries: Sequence[str],
        k: int = 4,
        threshold: float = 0.5,
        *,
        exclude_sources: bool = False,
        exclude_documents: Sequence[str] | None = None,
    ) -> list[list[Match]]:
        """For every query its at most `k` segments of fuzzy score >= `threshold`, best first, ties
        by newest (greatest `changed`), then by smallest id. With threshold 0 every segment with
        tokens qualifies; a text without tokens matches nothing.

        exclude_sources: leave out every segment whose source equals the query in match tokens
        (leave-one-out).
        exclude_documents: for every query the document whose segments are left out, "" for none.

        Raises UsageError for what cannot be searched."""
        check_search(queries, k, threshold, exclude_documents)
        documents = exclude_documents or [""] * len(queries)
        wanted = [
            IndexQuery(text, k, threshold, without_document=document)
            for text, document in zip(queries, documents, strict=True)
        ]
        return [answer.similar for answer in self.look_up(wanted, exclude_sources)]

    def look_up(
        self, queries: Sequence[IndexQuery], exclude_sources: bool = False
    ) -> list[IndexAnswer]:
        """For every query all that it wants, of one moment. Here by one search after another, and
        without skeletons; an index that can does it in one pass over all queries. Raises UsageError
        for what cannot be looked up."""
        similar: dict[IndexQuery, list[Match]] = {}
        for (k, threshold), alike in grouped_by_search(queries).items():
            texts, documents = zip(*((q.text, q.without_document) for q in alike), strict=True)
            matches = self.search(
                texts, k, threshold, exclude_sources=exclude_sources, exclude_documents=documents
            )
            similar |= zip(alike, matches, strict=True)
        sources = same_source_by_search(
            self, [query.text for query in queries if query.same_source]
        )
        return [
            IndexAnswer(
                list(similar.get(query, ())),
                list(sources[query.text]) if query.same_source else [],
                [],
            )
            for query in queries
        ]

    def covering(
        self, text: str, k: int, accepts: Callable[[int], bool] = accept_always
    ) -> list[Match]:
        """At most `k` segments whose ids are accepted, and which together cover most of the rare
        phrases of a text, in the order in which they are taken; each with its fuzzy score. An index
        that does not keep where words stand has none."""
        return []


class WritableIndex(Index, Protocol):
    """A built index: it keeps additions for good, and is searched in more ways."""

    @property
    def place(self) -> str:
        """Where it lies, whatever the present folder: a path from the root, or an address."""
        ...

    def restricted_to(self, conditions: Filter) -> Self:
        """The same index, of which searches find only the segments that are meant: the best of
        these, exactly. Everything else it does is as before, and to close one closes both."""
        ...

    def concordance(self, phrase: Phrase, k: int = 20) -> list[Occurrence]:
        """The `k` newest segments that have the phrase (greatest `changed`, then smallest id), each
        with its places: exactly those in which `Phrase.places` finds any."""
        ...

    def get(self, ids: Iterable[int]) -> list[Segment]:
        """The segments with these ids, in their order. Raises UnknownIdError where
        there is none."""
        ...

    def add(self, segments: Sequence[Segment]) -> list[int]:
        """Adds segments; their ids. On return they are durable, and the next search by anyone finds
        them. Without `changed` (or `created`) they get the present time. Texts stay as they are
        given, line ends too: it is the readers of `tmnmt.formats` that clean them."""
        ...

    def edit(self, ids: Iterable[int], change: Callable[[Segment], Segment]) -> list[Segment]:
        """Puts `change(segment)` in the place of every segment with one of these ids, as durable
        and visible as an addition; the new segments. Raises UnknownIdError."""
        ...

    def segments(self) -> Iterator[Segment]:
        """All segments that are meant, in order of id."""
        ...

    def delete(self, ids: Iterable[int]) -> None:
        """Deletes the segments with these ids, as durable and visible as an addition. Raises
        UnknownIdError."""
        ...


class BuiltIndex(WritableIndex, Protocol):
    """An index that a back end has built (`tmnmt.index.back_ends`). It is closed where a `with`
    ends."""

    changes_since: str  # since when `changes` counts, in words

    def check_writable(self) -> None:
        """Raises UsageError where this process may not write to it."""
        ...

    def find(self, ids: Iterable[int]) -> dict[int, Segment]:
        """Those of these segments that are there, by their ids."""
        ...

    def segments(self, conditions: Filter = NO_FILTER) -> Iterator[Segment]:
        """All segments that are meant and that these conditions let pass, in order of id."""
        ...

    def delete_chosen(self, choose: Callable[[Iterator[Segment]], Iterable[int]]) -> list[int]:
        """Deletes those that `choose` says of all segments, and gives their ids. Nobody else
        changes the index meanwhile."""
        ...

    def changes(self) -> tuple[int, int, int]:
        """How many were added, corrected and deleted."""
        ...

    def compact(self, progress: Callable[[int], None] | None = None) -> object:
        """Merges all changes into the index."""
        ...

    def verify(self) -> int:
        """Reads everything; how many segments there are. Raises MemoryIndexError at the first that
        is not as it was written."""
        ...

    def generation(self) -> int:
        """How many times the index was made."""
        ...

    def size(self) -> int:
        """Bytes on disk."""
        ...

    def close(self) -> None: ...

    def __len__(self) -> int: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...


class FolderIndex(BuiltIndex, Protocol):
    """A built index that lies in a folder."""

    @property
    def folder(self) -> Path: ...

    @property
    def last_id(self) -> int:
        """The greatest id that a segment ever had."""
        ...


def is_in_folder(index: Index) -> TypeGuard[FolderIndex]:
    """Whether files can be kept beside an index."""
    return index.folder is not None


def grouped_by_search(
    queries: Iterable[IndexQuery],
) -> dict[tuple[int, float], list[IndexQuery]]:
    """The distinct queries that want similar segments, by how many and of what score."""
    groups = defaultdict[tuple[int, float], list[IndexQuery]](list)
    for query in dict.fromkeys(queries):
        if query.similar:
            groups[query.similar, query.threshold].append(query)
    return groups


def same_source_by_search(index: Index, texts: Sequence[str]) -> dict[str, list[Match]]:
    """For every text all segments of an index whose source has its match tokens, by searches for
    ever more matches of score 1."""
    matches = widened(index, texts, COPIES, 1.0, lambda alike: False)
    return {text: [match for match in alike if match.edits == 0] for text, alike in matches.items()}


def widened(
    index: Index,
    texts: Sequence[str],
    k: int,
    threshold: float,
    enough: Callable[[list[Match]], bool],
) -> dict[str, list[Match]]:
    """The matches of every text: `k`, and where those are not `enough`, ever more, until they are,
    or are all."""
    matches: dict[str, list[Match]] = {}
    remaining = list(dict.fromkeys(texts))
    while remaining:
        matches.update(zip(remaining, index.search(remaining, k, threshold), strict=True))
        remaining = [
            text for text in remaining if len(matches[text]) == k and not enough(matches[text])
        ]
        k *= WIDER
    return matches


def check_queries(queries: Iterable[IndexQuery]) -> None:
    """Raises UsageError where something is to be looked up that cannot be."""
    for query in queries:
        if query.similar < 0 or query.same_skeleton < 0:
            raise UsageError(f"{query}: how many are looked for must be 0 or more")
        check_search([], max(1, query.similar), query.threshold, None)


def check_search(
    queries: Sequence[str], k: int, threshold: float, documents: Sequence[str] | None
) -> None:
    """Raises UsageError where a search is asked for what cannot be."""
    if k < 1:
        raise UsageError(f"k is {k}; it must be at least 1")
    if not 0 <= threshold <= 1:
        raise UsageError(f"the threshold is {threshold}; it must be in [0, 1]")
    if documents is not None and len(documents) != len(queries):
        raise UsageError(
            f"queries: {len(queries)}, documents to leave out: {len(documents)}; give one for each"
        )


def dated(segments: Iterable[Segment]) -> list[Segment]:
    """New segments with the present time where they have none. Raises DataError for a source that
    is too long."""
    now = present()
    new = [
        replace(s, created=s.created or now, changed=s.changed or s.created or now)
        for s in segments
    ]
    check_sources(new)
    return new


def corrected(old: Segment, new: Segment) -> Segment:
    """`new` in the place of `old`: its id stays, and `changed` is the present time unless it was
    given; but always later than before, so that of two versions anyone can tell which came after
    the other. Codes that were of a text before it was corrected go."""
    changed = new.changed if new.changed != old.changed else present()
    if new.src != old.src and new.src_codes == old.src_codes:
        new = replace(new, src_codes=())
    if new.tgt != old.tgt and new.tgt_codes == old.tgt_codes:
        new = replace(new, tgt_codes=())
    return replace(
        new, id=old.id, changed=changed if changed > old.changed else _second_later(old.changed)
    )


def check_sources(segments: Iterable[Segment]) -> None:
    """Raises DataError for a source of more than MAX_TOKENS."""
    for segment in segments:
        if len(match_tokens(segment.src)) > MAX_TOKENS:
            raise DataError(f"{segment.src[:40]!r}...: more than {MAX_TOKENS:,} match tokens")


def present() -> str:
    """The present time as segments carry it."""
    return datetime.now(UTC).strftime(_SECONDS)


def _second_later(changed: str) -> str:
    """A second later."""
    try:
        later = (datetime.fromisoformat(changed) + timedelta(seconds=1)).strftime(_SECONDS)
    except (ValueError, OverflowError):  # no time at all, or the last there is
        later = ""
    return later if later > changed else changed + "~"  # where it is written in another way


def best_of(matches: Iterable[Match], k: int) -> list[Match]:
    """The at most `k` best, in the order every index answers in: score, newest, smallest id."""
    ordered = sorted(matches, key=lambda match: match.segment.id)
    ordered.sort(key=lambda match: match.segment.changed, reverse=True)
    ordered.sort(key=lambda match: match.score, reverse=True)
    return ordered[:k]


def check_languages(
    location: str, languages: tuple[str, str], src_lang: str | None, tgt_lang: str | None
) -> None:
    """Raises MemoryIndexError where an index of these `languages` is asked for others; regions do
    not count (`is_same_language`)."""
    for requested, have in zip((src_lang, tgt_lang), languages, strict=True):
        if requested and not is_same_language(requested, have):
            pairs = f"{languages[0]} to {languages[1]}, not {src_lang or '?'} to {tgt_lang or '?'}"
            raise MemoryIndexError(f"{location}: this index is from {pairs}")


def primary(language: str) -> str:
    """The language of a code without its region, in two letters where there are such: "fr" of
    "fr-CA" and of "fra"."""
    return short(language.lower().replace("_", "-").split("-")[0])
