"""Which documents are dev and test: by the sha256 of their ids, or by lists that are kept. Where a
memory has too few documents, stretches of neighbouring segments take their place."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tmnmt.errors import DataError, UsageError
from tmnmt.quantities import quantity

KINDS = ("dev", "test")
# How full a fresh dev or test set is when no more documents are tried, and what none may exceed; of
# the size asked for.
FULL, UPPER = 0.95, 1.05

# Consecutive segments of a document that stay together where documents are too few to be kept out
# whole, at most; of the segments that are kept out, at most the other share.
STRETCH, STRETCH_SHARE = 40, 4

_STRETCH_NAME = re.compile(r"(?P<document>.*) (?P<first>\d{1,18})-(?P<last>\d{1,18})", re.DOTALL)
_OPUS = re.compile(r"(?:.*/)?(jrc[0-9A-Z]\d{4}[^\s/]*)-[a-z]{2}")
_CELEX = re.compile(r"[0-9A-Z]\d{4}[A-Z]{1,2}\d{1,4}[^\s]*")


@dataclass(frozen=True, slots=True)
class Split:
    """The documents of dev and of test; every other one is for training.

    dev: the documents of dev.
    test: the documents of test.
    absent: ids of lists that name no document.
    stretch: 0, or how many segments a stretch has where dev and test name `stretches` and no whole
    documents."""

    dev: frozenset[str]
    test: frozenset[str]
    absent: tuple[str, ...] = ()
    stretch: int = 0

    def kind(self, document: str) -> str:
        """Which part a document is in: "dev", "test" or "train".

        document: the name of the document."""
        return "test" if document in self.test else "dev" if document in self.dev else "train"


def point_of(document: str) -> float:
    """Where a document stands from 0 to 1, by the sha256 of its id: evenly spread, and the same
    wherever it is computed.

    document: the id of the document."""
    return int.from_bytes(hashlib.sha256(document.encode()).digest()[:8], "big") / 2**64


def stretches(document: str, size: int, length: int = STRETCH) -> Iterator[tuple[str, int, int]]:
    """A document cut into consecutive segments: for every stretch its name, its first segment,
    counted from 0, and the one behind its last. The name says the document and both places, counted
    from 1: "my.tmx 41-80".

    document: the name of the document.
    size: how many segments it has.
    length: how many segments a stretch has."""
    for first in range(0, size, length):
        last = min(first + length, size)
        yield f"{document} {first + 1}-{last}", first, last


def stretch_length(names: Iterable[str], documents: Collection[str]) -> int:
    """How many segments the `stretches` of some documents have that are among some names; 0 where
    none is.

    names: the names.
    documents: the names of the documents."""
    matches = (_STRETCH_NAME.fullmatch(name) for name in names)
    return max(
        (
            int(match["last"]) - int(match["first"]) + 1
            for match in matches
            if match is not None and match["document"] in documents
        ),
        default=0,
    )


def fresh_split(sizes: Mapping[str, int], segments: int) -> Split:
    """A new split into dev, test and training.

    Test takes documents from the lowest point upwards, dev from the highest downwards, passing over
    those that would make it too large. So what is added may push a document out of test or dev into
    training, but none from the one into the other. Where no document is small enough, as in a
    memory that names none, `stretches` of documents are taken in the same way.

    sizes: the number of segments of every document.
    segments: how many segments dev and test have each, about.

    Raises UsageError where there is too little to take so much from."""
    total = sum(sizes.values())
    if 4 * segments > total:
        hint = (
            f"--segments may be at most {total // 4:,}"
            if total >= 4
            else "there must be four at least"
        )
        raise UsageError(
            f"{quantity(total, 'segment')}: too few to keep out {segments:,} each for dev and "
            f"test; {hint}"
        )
    dev, test = _kept_out(sizes, segments)
    if dev and test:
        return Split(dev, test)
    length = max(1, min(STRETCH, segments // STRETCH_SHARE))
    parts = {
        name: last - first
        for document, size in sizes.items()
        for name, first, last in stretches(document, size, length)
    }
    return Split(*_kept_out(parts, segments), stretch=length)


def _kept_out(sizes: Mapping[str, int], segments: int) -> tuple[frozenset[str], frozenset[str]]:
    """Dev and test; either is empty where no document is small enough."""
    order = sorted(sizes, key=lambda document: (point_of(split_id(document)), document))
    test = _filled(order, sizes, segments)
    rest = [document for document in reversed(order) if document not in test]
    return _filled(rest, sizes, segments), test


def _filled(order: Iterable[str], sizes: Mapping[str, int], segments: int) -> frozenset[str]:
    selection = set()
    size = 0
    for document in order:
        if size >= FULL * segments:
            break
        if size + sizes[document] <= UPPER * segments:
            selection.add(document)
            size += sizes[document]
    return frozenset(selection)


def listed_split(folder: Path, sizes: Mapping[str, int]) -> Split:
    """The split that lists say: files *dev.txt and *test.txt, one id a line; of the JRC-Acquis,
    CELEX numbers or names of documents (jrc21970A0720_01). They may name `stretches` of documents.
    What they do not name is for training.

    folder: the folder of the lists.
    sizes: the number of segments of every document.

    Raises DataError where there are no such files, for an id that is in both, and where they name
    no document."""
    names = {kind: _listed(folder, kind) for kind in KINDS}
    if common := sorted(names["dev"] & names["test"]):
        raise DataError(f"{folder}: {common[0]!r} is in a list of dev and in one of test")
    by_kind: dict[str, set[str]] = {kind: set() for kind in KINDS}
    length = stretch_length(names["dev"] | names["test"], sizes)
    cut = (stretches(document, size, length) for document, size in sizes.items() if length)
    documents = [*sizes, *(name for parts in cut for name, _, _ in parts)]
    for document in documents:
        for kind in KINDS:
            by_kind[kind] |= {document} if names[kind] & {document, split_id(document)} else set()
    for kind in KINDS:
        if not by_kind[kind]:
            ids = quantity(len(names[kind]), "id")
            raise DataError(f"{folder}: none of the {ids} of {kind} is a document of this memory")
    known_ids = {
        name
        for kind in KINDS
        for document in by_kind[kind]
        for name in (document, split_id(document))
    }
    absent = tuple(sorted((names["dev"] | names["test"]) - known_ids))
    return Split(frozenset(by_kind["dev"]), frozenset(by_kind["test"]), absent, length)


def list_files(folder: Path) -> list[Path]:
    """The lists of dev and test documents in a folder.

    folder: the folder."""
    return [path for kind in KINDS for path in sorted(folder.glob(f"*{kind}.txt"))]


def _listed(folder: Path, kind: str) -> set[str]:
    files = [path for path in list_files(folder) if path.name.endswith(f"{kind}.txt")]
    if not files:
        raise DataError(
            f"{folder}: no list of {kind} documents; expected files named {kind}.txt or "
            f"NAME.{kind}.txt"
        )
    try:
        return {
            line
            for file in files
            for line in file.read_text(encoding="utf-8-sig").split("\n")
            if line
        }
    except UnicodeDecodeError as error:
        raise DataError(f"{folder}: a list of {kind} documents is not UTF-8") from error


def split_id(document: str) -> str:
    """The id that counts in a split: the document's own, but for the JRC-Acquis always the name
    that it has there (jrc21970A0720_01), so that all editions are split alike.

    document: the name of the document; of the JRC-Acquis also the CELEX number (21970A0720(01)) or
    the file of OPUS (1970/jrc21970A0720_01-en)."""
    if opus := _OPUS.fullmatch(document):
        return opus[1]
    if not _CELEX.fullmatch(document):
        return document
    return "jrc" + document.replace("(", "_").replace(")", "").replace("/", "#")
