"""Aligned documents, and the segments of a memory that they give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tmnmt.alignment.align import Alignment, Link, align
from tmnmt.alignment.documents import read_sentences
from tmnmt.errors import DataError
from tmnmt.segments import Segment

PROBABILITY = "x-alignment-probability"  # the property of a segment that says it
ORIGIN = "alignment"
ACCEPTED_ORIGIN = "reviewed alignment"  # of what a person has accepted: no points are taken off
# languages without spaces between sentences
NO_SPACES = frozenset({"zh", "ja", "th", "lo", "km", "my"})


@dataclass(frozen=True)
class AlignedDocument:
    """A document and its translation.

    languages: of the source, and of the target.
    sources: the source sentences.
    targets: the target sentences.
    alignment: which of them belong together."""

    languages: tuple[str, str]
    sources: Sequence[str]
    targets: Sequence[str]
    alignment: Alignment

    def texts(self, link: Link) -> tuple[str, str]:
        """The source and the target of a link.

        link: the link."""
        first, second = map(_separator, self.languages)
        return (
            first.join(self.sources[number] for number in link.sources),
            second.join(self.targets[number] for number in link.targets),
        )

    def mended(self, start: int, count: int, links: Sequence[Link]) -> AlignedDocument:
        """The same with other links for the same sentences.

        start: where the first of the links stands that go.
        count: how many go.
        links: what comes in their place.

        Raises DataError where these do not have every sentence of those that go, each once."""
        all_links = self.alignment.links
        former = all_links[start : start + count]
        if start < 0 or len(former) != count or _sentences(former) != _sentences(links):
            raise DataError(
                "the new links do not have the sentences of those whose place they take"
            )
        mended_links = [*all_links[:start], *links, *all_links[start + count :]]
        return replace(self, alignment=Alignment(mended_links))

    def record(self) -> dict[str, Any]:
        """The same for JSON, with numbers of sentences from 0."""
        return {
            "sources": len(self.sources),
            "targets": len(self.targets),
            "pairs": [
                {
                    "sources": pair.sources,
                    "targets": pair.targets,
                    "probability": round(pair.probability, 4),
                    "doubtful": pair.is_doubtful,
                    "decision": pair.decision,
                }
                for pair in self.alignment.pairs
            ],
            "lone_sources": self.alignment.lone_sources,
            "lone_targets": self.alignment.lone_targets,
        }


def aligned_document(
    source: Path,
    target: Path,
    languages: tuple[str, str],
    translate: Callable[[Sequence[str]], Iterable[str]] | None = None,
) -> AlignedDocument:
    """Aligns a document with its translation.

    source: the file of the document.
    target: the file of its translation.
    languages: of both.
    translate: what a model makes of sentences; None where there is none.

    Raises FormatError where a file cannot be read, DataError where one is too long."""
    sources, targets = (
        read_sentences(path, language)
        for path, language in zip((source, target), languages, strict=True)
    )
    translations = [*translate(sources)] if translate is not None else None
    alignment = align(sources, targets, translations)
    return AlignedDocument(languages, sources, targets, alignment)


def segments_of(
    document: AlignedDocument, name: str, min_probability: float = 0.0
) -> Iterator[Segment]:
    """The segments that a document gives, in its order, without what a person has dropped.

    document: the aligned document.
    name: what its segments call it.
    min_probability: of the pairs that become segments, at least; one that a person has accepted
    has 1."""
    for position, pair in enumerate(document.alignment.pairs):
        is_accepted = pair.decision == "accepted"
        probability = 1.0 if is_accepted else pair.probability
        if pair.decision == "dropped" or probability < min_probability:
            continue
        source, target = document.texts(pair)
        origin = ACCEPTED_ORIGIN if is_accepted else ORIGIN
        properties = ((PROBABILITY, f"{probability:.4f}"),)
        yield Segment(source, target, name, position, origin=origin, properties=properties)


def _sentences(links: Iterable[Link]) -> tuple[list[int], list[int]]:
    """The numbers of all sentences of some links, in order."""
    links = [*links]
    return (
        sorted(number for link in links for number in link.sources),
        sorted(number for link in links for number in link.targets),
    )


def _separator(language: str) -> str:
    """What stands between two sentences of a language."""
    return "" if language.split("-")[0].lower() in NO_SPACES else " "
