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
from tmnmt.segments import Match, SearchWork, Segment
from tmnmt.text import match_tokens

_SECONDS = "%Y-%m-%dT%H:%M:%SZ"
MAX_TOKENS = 65_535  # a hundred pages: nobody aligns such a segment
SKELETONS_A_QUERY = 16  # "Article 0" stands in a memory of laws ten thousand times
COPIES = 64  # of a source are looked for at first
WIDER = 4  # times as many again, where copies took the places


def accept_always(_number: int) -> bool:
    """Accepts every segment.

    _number: the id of a segment."""
    return True


class UnknownIdError(DataError):
    """No segment of the memory has this id."""


class IndexQuery(NamedTuple):
    """A text, and what an index is to look up for it.

    text: the text.
    similar: how many of the most similar segments are wanted.
    threshold: the smallest fuzzy score of these, from 0 to 1.
    same_source: whether every segment is wanted whose source has the same match tokens.
    same_skeleton: how many segments of the same skeleton are wanted.
    without_document: the document whose segments are left out of the similar ones; "" leaves out
    none."""

    text: str
    similar: int = 0
    threshold: float = 0.5
    same_source: bool = False
    same_skeleton: int = 0
    without_document: str = ""


class IndexAnswer(NamedTuple):
    """What an index has for a query; nothing where the query does not want it. All is best first,
    in the order of `Index.search`.

    similar: the most similar segments, as `Index.search` gives them.
    same_source: all segments whose source has the same match tokens.
    same_skeleton: segments of the same skeleton. Where there are more than are wanted, those of as
    many match tokens come first, then the newest; of equal sources a few are looked at. A text
    without words or numbers has none, and an index that keeps no skeletons has none for any
    text.
    work: what was compared with the text; None where the index does not count it."""

    similar: list[Match]
    same_source: list[Match]
    same_skeleton: list[Match]
    work: SearchWork | None = None


class Index(Protocol):
    """A memory that can be searched, wherever it lives. A class has `search` or `look_up` and
    inherits the other, and the rest, from here."""

    src_lang: str
    tgt_lang: str

    @property
    def folder(self) -> Path | None:
        """The folder on this machine for what is kept beside the index, as keys and calibrations.
        It is that of the index itself, or one for an index on a server, which may not be there yet.
        None where there is none."""
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
        """For every query its segments of at least this fuzzy score, best first. Ties go by the
        newest (greatest `changed`), then by the smallest id. With threshold 0 every segment with
        tokens qualifies; a text without tokens matches nothing.

        queries: the texts that are looked for.
        k: how many segments are given for a query at most, from 1.
        threshold: the smallest fuzzy score, from 0 to 1.
        exclude_sources: whether every segment is left out whose source equals the query in match
        tokens (leave-one-out).
        exclude_documents: for every query the document whose segments are left out, "" for none.
        None leaves out none for any query.

        Raises UsageError for what cannot be searched."""
        check_search(queries, k, threshold, exclude_documents)
        documents = exclude_documents or [""] * len(queries)
        lookups = [
            IndexQuery(text, k, threshold, without_document=document)
            for text, document in zip(queries, documents, strict=True)
        ]
        return [answer.similar for answer in self.look_up(lookups, exclude_sources)]

    def look_up(
        self, queries: Sequence[IndexQuery], exclude_sources: bool = False
    ) -> list[IndexAnswer]:
        """For every query all that it wants, of one moment. This way looks it up by one search
        after another, and finds no skeletons; an index that can does it in one pass over all
        queries.

        queries: the texts, each with what is looked up for it.
        exclude_sources: whether every segment is left out of the similar ones whose source equals
        the query in match tokens.

        Raises UsageError for what cannot be looked up."""
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

    @property
    def place(self) -> str:
        """Where the index lies, whatever the present folder is: a path from the root, or an
        address; "" where it lies nowhere."""
        return ""

    def covering(
        self, text: str, k: int, accepts: Callable[[int], bool] = accept_always
    ) -> list[Match]:
        """The segments that together cover most of the rare phrases of a text, in the order in
        which they are taken, each with its fuzzy score. An index that does not keep where words
        stand has none.

        text: the text.
        k: how many segments are given at most.
        accepts: says of a segment's id whether the segment may be taken."""
        return []


class WritableIndex(Index, Protocol):
    """A built index: it keeps additions for good, and is searched in more ways."""

    def restricted_to(self, conditions: Filter) -> Self:
        """The same index, of which searches find only some segments: the best of these, exactly.
        Everything else it does as before, and to close one closes both.

        conditions: which segments are found."""
        ...

    def concordance(self, phrase: Phrase, k: int = 20) -> list[Occurrence]:
        """The newest segments that have a phrase (greatest `changed`, then smallest id), each with
        its places. They are exactly those in which `Phrase.places` finds any.

        phrase: the phrase, and in which of the two texts it is looked for.
        k: how many segments are given at most."""
        ...

    def get(self, ids: Iterable[int]) -> list[Segment]:
        """The segments with these ids, in the order of the ids.

        ids: the ids.

        Raises UnknownIdError where a segment is not there."""
        ...

    def add(self, segments: Sequence[Segment]) -> list[int]:
        """Adds segments and returns their ids. On return they are durable, and the next search by
        anyone finds them.

        segments: the segments. Without `changed` (or `created`) they get the present time. Their
        texts stay as they are, line ends too, because the readers of `tmnmt.formats` clean them.

        Raises DataError for a source that is too long."""
        ...

    def edit(self, ids: Iterable[int], change: Callable[[Segment], Segment]) -> list[Segment]:
        """Replaces segments, as durably and visibly as an addition, and returns the new ones.

        ids: the ids of the segments.
        change: gives the new segment for the old one.

        Raises UnknownIdError where a segment is not there. Raises DataError for a source that is
        too long."""
        ...

    def segments(self) -> Iterator[Segment]:
        """All segments that searches can find, in the order of their ids."""
        ...

    def delete(self, ids: Iterable[int]) -> None:
        """Deletes segments, as durably and visibly as an addition.

        ids: the ids of the segments.

        Raises UnknownIdError where a segment is not there."""
        ...


class BuiltIndex(WritableIndex, Protocol):
    """An index that a back end has built (`tmnmt.index.back_ends`). It is closed where a `with`
    ends."""

    changes_since: str  # since when `changes` counts, in words

    def check_writable(self) -> None:
        """Checks that this process may write to the index.

        Raises UsageError where it may not."""
        ...

    def find(self, ids: Iterable[int]) -> dict[int, Segment]:
        """Those of these segments that are there, by their ids.

        ids: the ids that are looked for."""
        ...

    def segments(self, conditions: Filter = NO_FILTER) -> Iterator[Segment]:
        """All segments that searches can find and that some conditions let pass, in the order of
        their ids.

        conditions: the conditions."""
        ...

    def delete_chosen(self, choose: Callable[[Iterator[Segment]], Iterable[int]]) -> list[int]:
        """Deletes segments and returns their ids. Nobody else changes the index meanwhile.

        choose: gives the ids of those that are deleted, for all segments in the order of their
        ids."""
        ...

    def changes(self) -> tuple[int, int, int]:
        """How many segments were added, corrected and deleted, since the time that `changes_since`
        names."""
        ...

    def compact(self, progress: Callable[[int], None] | None = None) -> object:
        """Merges all changes into the index.

        progress: is called after every part with the number of its segments; None tells nobody."""
        ...

    def verify(self) -> int:
        """Reads everything, and returns how many segments there are.

        Raises MemoryIndexError at the first part that is not as it was written."""
        ...

    def generation(self) -> int:
        """How many times the index was made."""
        ...

    def size(self) -> int:
        """How many bytes the index takes on disk."""
        ...

    def close(self) -> None:
        """Closes the index. Nothing may be asked of it afterwards."""

    def __len__(self) -> int: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...


class FolderIndex(BuiltIndex, Protocol):
    """A built index with a folder for what is kept beside it."""

    @property
    def folder(self) -> Path:
        """That folder on this machine."""

    @property
    def last_id(self) -> int:
        """The greatest id that a segment ever had."""
        ...


def has_folder(index: Index) -> TypeGuard[FolderIndex]:
    """Whether files can be kept beside an index.

    index: the index."""
    return index.folder is not None


def grouped_by_search(
    queries: Iterable[IndexQuery],
) -> dict[tuple[int, float], list[IndexQuery]]:
    """The distinct queries that want similar segments, by how many they want and of which score at
    least.

    queries: the queries."""
    groups = defaultdict[tuple[int, float], list[IndexQuery]](list)
    for query in dict.fromkeys(queries):
        if query.similar:
            groups[query.similar, query.threshold].append(query)
    return groups


def same_source_by_search(index: Index, texts: Sequence[str]) -> dict[str, list[Match]]:
    """For every text all segments of an index whose source has its match tokens. They are found by
    searches for ever more matches of score 1.

    index: the index.
    texts: the texts."""
    matches = widened(index, texts, COPIES, 1.0, lambda alike: False)
    return {text: [match for match in alike if match.edits == 0] for text, alike in matches.items()}


def widened(
    index: Index,
    texts: Sequence[str],
    k: int,
    threshold: float,
    enough: Callable[[list[Match]], bool],
) -> dict[str, list[Match]]:
    """The matches of every text, of which there are as many as are needed: where the first search
    does not give enough, further ones look for four times as many each, until there are enough, or
    no more.

    index: the index that is searched.
    texts: the texts.
    k: how many matches the first search gives for a text at most.
    threshold: the smallest fuzzy score, from 0 to 1.
    enough: says of the matches of a text whether they are enough."""
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
    """Checks that queries can be looked up.

    queries: the queries.

    Raises UsageError for a number below 0, or a threshold that is not from 0 to 1."""
    for query in queries:
        if query.similar < 0 or query.same_skeleton < 0:
            raise UsageError(f"{query}: how many are looked for must be 0 or more")
        check_search([], max(1, query.similar), query.threshold, None)


def check_search(
    queries: Sequence[str], k: int, threshold: float, documents: Sequence[str] | None
) -> None:
    """Checks that a search can be done.

    queries: the texts that are looked for.
    k: how many segments are wanted for a text, from 1.
    threshold: the smallest fuzzy score, from 0 to 1.
    documents: the document that is left out for every text; None leaves out none.

    Raises UsageError for a number out of its bounds, or another number of documents than of
    texts."""
    if k < 1:
        raise UsageError(f"k is {k}; it must be at least 1")
    if not 0 <= threshold <= 1:
        raise UsageError(f"the threshold is {threshold}; it must be in [0, 1]")
    if documents is not None and len(documents) != len(queries):
        raise UsageError(
            f"queries: {len(queries)}, documents to leave out: {len(documents)}; give one for each"
        )


def dated(segments: Iterable[Segment]) -> list[Segment]:
    """New segments, with the present time where they have none.

    segments: the segments.

    Raises DataError for a source that is too long."""
    now = present()
    new = [
        replace(s, created=s.created or now, changed=s.changed or s.created or now)
        for s in segments
    ]
    check_sources(new)
    return new


def corrected(old: Segment, new: Segment) -> Segment:
    """A segment as it takes the place of another one. The id stays. `changed` is the present time
    unless it was given, but it is always later than before, so that anyone can tell which of two
    versions is newer. Codes that belong to a text before it was corrected go.

    old: the segment that is there.
    new: the segment that takes its place, with any id."""
    changed = new.changed if new.changed != old.changed else present()
    if new.src != old.src and new.src_codes == old.src_codes:
        new = replace(new, src_codes=())
    if new.tgt != old.tgt and new.tgt_codes == old.tgt_codes:
        new = replace(new, tgt_codes=())
    return replace(
        new, id=old.id, changed=changed if changed > old.changed else _second_later(old.changed)
    )


def check_sources(segments: Iterable[Segment]) -> None:
    """Checks the length of sources.

    segments: the segments.

    Raises DataError for a source of more than MAX_TOKENS match tokens."""
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
    """The best matches, in the order in which every index answers: by score, then the newest, then
    the smallest id.

    matches: the matches, in any order.
    k: how many are given at most."""
    ordered = sorted(matches, key=lambda match: match.segment.id)
    ordered.sort(key=lambda match: match.segment.changed, reverse=True)
    ordered.sort(key=lambda match: match.score, reverse=True)
    return ordered[:k]


def check_languages(
    location: str, languages: tuple[str, str], src_lang: str | None, tgt_lang: str | None
) -> None:
    """Checks that an index has the languages that somebody asks for. Regions do not count
    (`is_same_language`).

    location: what messages call the index.
    languages: the source and the target language of the index.
    src_lang: the source language that is asked for; None or "" takes any.
    tgt_lang: the target language that is asked for; None or "" takes any.

    Raises MemoryIndexError for other languages."""
    for requested, have in zip((src_lang, tgt_lang), languages, strict=True):
        if requested and not is_same_language(requested, have):
            pairs = f"{languages[0]} to {languages[1]}, not {src_lang or '?'} to {tgt_lang or '?'}"
            raise MemoryIndexError(f"{location}: this index is from {pairs}")


def primary(language: str) -> str:
    """The language of a code without its region, in two letters where there are such: "fr" of
    "fr-CA" and of "fra".

    language: the code."""
    return short(language.lower().replace("_", "-").split("-")[0])
