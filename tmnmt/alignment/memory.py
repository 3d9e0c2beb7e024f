"""Aligned documents, and the segments of a memory that they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tmnmt.alignment.align import AlignedPair, Alignment, align
from tmnmt.alignment.documents import read_sentences
from tmnmt.segments import Segment

PROBABILITY = "x-alignment-probability"  # the property of a segment that says it
ORIGIN = "alignment"
# languages without spaces between sentences
NO_SPACES = frozenset({"zh", "ja", "th", "lo", "km", "my"})


@dataclass(frozen=True)
class AlignedDocument:
    """A document and its translation.

    name: what segments call it: the path of the source file.
    languages: of the source, and of the target.
    sources: the source sentences.
    targets: the target sentences.
    alignment: which of them belong together."""

    name: str
    languages: tuple[str, str]
    sources: Sequence[str]
    targets: Sequence[str]
    alignment: Alignment

    def texts(self, pair: AlignedPair) -> tuple[str, str]:
        """The two texts of a pair."""
        first, second = map(_separator, self.languages)
        return (
            first.join(self.sources[number] for number in pair.sources),
            second.join(self.targets[number] for number in pair.targets),
        )

    def record(self) -> dict[str, Any]:
        """The same for JSON, with numbers of sentences from 0."""
        return {
            "document": self.name,
            "sources": len(self.sources),
            "targets": len(self.targets),
            "pairs": [
                {
                    "sources": pair.sources,
                    "targets": pair.targets,
                    "probability": round(pair.probability, 4),
                    "doubtful": pair.is_doubtful,
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
    translate: Callable[[Sequence[str]], list[str]] | None = None,
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
    translations = translate(sources) if translate is not None else None
    alignment = align(sources, targets, translations)
    return AlignedDocument(source.as_posix(), languages, sources, targets, alignment)


def segments_of(document: AlignedDocument, min_probability: float = 0.0) -> Iterator[Segment]:
    """The segments that a document gives, in its order.

    document: the aligned document.
    min_probability: of the pairs that become segments, at least."""
    for position, pair in enumerate(document.alignment.pairs):
        if pair.probability < min_probability:
            continue
        source, target = document.texts(pair)
        properties = ((PROBABILITY, f"{pair.probability:.4f}"),)
        yield Segment(source, target, document.name, position, origin=ORIGIN, properties=properties)


def _separator(language: str) -> str:
    """What stands between two sentences of a language."""
    return "" if language.split("-")[0].lower() in NO_SPACES else " "
