"""Aligned documents, kept in a folder by what they were made of: a command that was interrupted
goes on where it was, and what a person has mended stays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tmnmt.alignment.align import Alignment, Link
from tmnmt.alignment.memory import AlignedDocument, segments_of
from tmnmt.durable import make_folder, write
from tmnmt.errors import DataError
from tmnmt.formats import write_memory

VERSION = 1  # of the files, and of how documents are aligned: of another one nothing is read
_DIGITS = 32  # of a name


def name_of(source: Path, target: Path, languages: tuple[str, str], model: str) -> str:
    """The name of two documents by their content.

    source: the file of the document.
    target: the file of its translation.
    languages: of both.
    model: which model translates for the comparison; "" where none does.

    Raises OSError where a file cannot be read."""
    digest = hashlib.sha256(repr((VERSION, languages, model)).encode())
    for path in (source, target):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
        digest.update(path.suffix.encode())
    return digest.hexdigest()[:_DIGITS]


class AlignmentFolder:
    """A folder with a file for each aligned document; it is made with the first one."""

    def __init__(self, path: Path) -> None:
        """path: the folder, which is made with its first file."""
        self.path = path

    def load(self, name: str) -> AlignedDocument | None:
        """A document; None where the folder has none of this name.

        name: the name of the document.

        Raises DataError where the file is not what was written."""
        path = self._path_of(name)
        if not path.exists():
            return None
        try:
            return _document_of(json.loads(path.read_bytes()))
        except (ValueError, TypeError, LookupError) as error:
            raise DataError(
                f"{path}: is damaged; without it the documents are aligned again"
            ) from error

    def save(self, name: str, document: AlignedDocument) -> None:
        """Keeps a document. It is on disk on return.

        name: the name of the document.
        document: the document, which takes the place of one of this name."""
        make_folder(self.path)
        record = {
            "languages": document.languages,
            "sources": document.sources,
            "targets": document.targets,
            "links": [
                (link.sources, link.targets, link.probability, link.decision)
                for link in document.alignment.links
            ],
        }
        write(self._path_of(name), json.dumps(record, ensure_ascii=False).encode())

    def _path_of(self, name: str) -> Path:
        return self.path / f"{name}.json"


def _document_of(record: Mapping[str, Any]) -> AlignedDocument:
    links = [
        Link(tuple(sources), tuple(targets), probability, decision)
        for sources, targets, probability, decision in record["links"]
    ]
    source_language, target_language = record["languages"]
    languages = source_language, target_language
    return AlignedDocument(languages, record["sources"], record["targets"], Alignment(links))


@dataclass
class AlignedMemory:
    """Aligned documents that become one memory file.

    path: of the memory.
    languages: of all documents.
    folder: where the documents are kept.
    min_probability: of the pairs that come into the memory, at least.
    documents: by their names in the folder.
    entries: every pair of files in order: what the document is called, and its name in the folder.
    Those of the same content have the same."""

    path: Path
    languages: tuple[str, str]
    folder: AlignmentFolder
    min_probability: float = 0.0
    documents: dict[str, AlignedDocument] = field(default_factory=dict)
    entries: list[tuple[str, str]] = field(default_factory=list)

    def load(self, name: str) -> AlignedDocument | None:
        """A document that was aligned before; None where there is none of this name.

        name: the name of the document in the folder.

        Raises DataError where the file is not what was written."""
        document = self.documents.get(name) or self.folder.load(name)
        if document is not None:
            self.documents[name] = document
        return document

    def put(self, name: str, document: AlignedDocument) -> None:
        """Adds a document and keeps it.

        name: the name of the document in the folder.
        document: the document, which takes the place of one of this name."""
        self.folder.save(name, document)
        self.documents[name] = document

    def write(self) -> int:
        """Writes the memory, and says how many segments it has. Raises FormatError where it cannot
        be written."""
        segments = (
            segment
            for title, name in self.entries
            for segment in segments_of(self.documents[name], title, self.min_probability)
        )
        return write_memory(self.path, segments, *self.languages).segments
