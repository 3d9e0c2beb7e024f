"""The list of published models, as Mozilla keeps it: which pairs of languages there are, which
files a model has, their sizes and their sha256.

    {"baseUrl": "https://…", "models": {"en-pt": [{"sourceLanguage": "en", "targetLanguage": "pt",
     "architecture": "tiny", "releaseStatus": "Release", "files": {"model": {"path": "…",
     "uncompressedSize": 17140836, "uncompressedHash": "…"}, "lexicalShortlist": …, "vocab": …}}]}}

A file lies at baseUrl/path, gzipped; size and hash are of what comes out. In place of `vocab` a
model may have `srcVocab` and `trgVocab`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tmnmt.errors import DataError, UsageError, short_repr
from tmnmt.formats.languages import is_code
from tmnmt.index.base import primary

ADDRESS = (
    "https://storage.googleapis.com/moz-fx-translations-data--303e-prod-translations-data"
    "/db/models.json"
)
PIVOT_LANGUAGE = "en"  # to and from which models are published
LICENCE = "MPL-2.0"  # of what Mozilla publishes
SNAPSHOT = Path(__file__).with_name("published.tsv")
SNAPSHOT_DATE = "2025-12-15"
MOST_BYTES = 1 << 25  # of the list
MOST_FILE_BYTES = 1 << 31  # of one file of a model
# the best first; a smaller one is faster
ARCHITECTURES = ("base-memory", "base", "tiny")
REQUIRED, OPTIONAL = ("model",), ("lexicalShortlist",)
VOCABULARIES = (("vocab",), ("srcVocab", "trgVocab"))
RELEASED = "Release"  # how the status of a released model begins


@dataclass(frozen=True)
class PublishedFile:
    """`path`: behind the list's address; `size` and `sha256` are those of the unpacked file."""

    path: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """As the file is called, unpacked."""
        return PurePosixPath(self.path).name.removesuffix(".gz")


@dataclass(frozen=True)
class PublishedModel:
    """One model of the list."""

    src_lang: str
    tgt_lang: str
    architecture: str
    status: str
    files: tuple[PublishedFile, ...]

    @property
    def size(self) -> int:
        """Of its unpacked files, in bytes."""
        return sum(file.size for file in self.files)

    @property
    def is_released(self) -> bool:
        return self.status.startswith(RELEASED)


@dataclass(frozen=True)
class KnownModel:
    """A model that was published on SNAPSHOT_DATE: `size` of its weights in bytes; `bleu` and
    `comet` as Mozilla measured them on FLORES, None where it states none."""

    src_lang: str
    tgt_lang: str
    architecture: str
    size: int
    bleu: float | None
    comet: float | None

    def __str__(self) -> str:
        quality = (
            "" if self.bleu is None else f", {self.bleu:g} BLEU on FLORES as Mozilla states it"
        )
        return f"{self.architecture}, about {self.size / 1e6:.0f} MB, {LICENCE}{quality}"


def known_models(src_lang: str, tgt_lang: str) -> list[KnownModel]:
    """The models of a pair that this version of tmnmt knows without asking anybody, the best first;
    regions of the languages do not count. The list itself may have others by now.

    src_lang: the code of the source language.
    tgt_lang: the code of the target language."""
    rows = (line.split("\t") for line in SNAPSHOT.read_text(encoding="utf-8").splitlines()[1:])
    models = (
        KnownModel(src, tgt, architecture, int(size), *(float(x) if x else None for x in figures))
        for src, tgt, architecture, size, *figures in rows
    )
    pair = primary(src_lang), primary(tgt_lang)
    matches = [m for m in models if (primary(m.src_lang), primary(m.tgt_lang)) == pair]
    return sorted(matches, key=lambda model: _place(model.architecture))


@dataclass(frozen=True)
class Registry:
    """`base`: where the files lie, an address or a folder."""

    base: str
    models: tuple[PublishedModel, ...]

    def find(self, src_lang: str, tgt_lang: str) -> list[PublishedModel]:
        """The models of a pair of languages, released ones first, the best of them first. Where
        none has the requested region, these are the models of the same languages.

        src_lang: the code of the source language.
        tgt_lang: the code of the target language."""
        languages = src_lang, tgt_lang
        exact = [m for m in self.models if (m.src_lang, m.tgt_lang) == languages]
        pair = tuple(map(primary, languages))
        related = (m for m in self.models if (primary(m.src_lang), primary(m.tgt_lang)) == pair)
        return sorted(exact or related, key=_preference)

    def best(self, src_lang: str, tgt_lang: str, architecture: str = "") -> PublishedModel:
        """The released model that is best for a pair of languages.

        src_lang: the code of the source language.
        tgt_lang: the code of the target language.
        architecture: the architecture that it must have, such as "tiny"; "" takes any.

        Raises UsageError where there is none, and says which there are."""
        models = self.find(src_lang, tgt_lang)
        if not models:
            raise UsageError(f"no model from {src_lang} to {tgt_lang} is published; {self._hint()}")
        fitting = [m for m in models if m.is_released and architecture in ("", m.architecture)]
        if fitting:
            return fitting[0]
        available = ", ".join(f"{m.architecture} ({m.status})" for m in models)
        kind = f"released {architecture} model" if architecture else "released model"
        raise UsageError(f"{src_lang} to {tgt_lang} has no {kind}; published are: {available}")

    def _hint(self) -> str:
        pairs = sorted({f"{m.src_lang}-{m.tgt_lang}" for m in self.models if m.is_released})
        return f"released pairs: {', '.join(pairs)}" if pairs else "the list is empty"


def _preference(model: PublishedModel) -> tuple[bool, int]:
    return not model.is_released, _place(model.architecture)


def _place(architecture: str) -> int:
    is_listed = architecture in ARCHITECTURES
    return ARCHITECTURES.index(architecture) if is_listed else len(ARCHITECTURES)


def registry_of(content: bytes, source: str) -> Registry:
    """A list of published models.

    content: the content of the list.
    source: the address or the file that it was read from, for messages.

    Raises DataError where it is no such list."""
    try:
        table = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{source}: no JSON, so no list of models") from error
    base = table.get("baseUrl") if isinstance(table, dict) else None
    pairs = table.get("models") if isinstance(table, dict) else None
    if not isinstance(base, str) or not isinstance(pairs, dict):
        raise DataError(f"{source}: no list of models; it has no `baseUrl` and `models`")
    return Registry(base.rstrip("/"), tuple(_models(pairs, source)))


def _models(pairs: Mapping[str, Any], source: str) -> Iterator[PublishedModel]:
    for pair, entries in pairs.items():
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, dict):
                raise DataError(f"{source}: models of {short_repr(pair)} are no tables")
            files = entry.get("files")
            if not isinstance(files, dict):
                raise DataError(f"{source}: a model of {short_repr(pair)} has no `files`")
            keys = ("sourceLanguage", "targetLanguage", "architecture", "releaseStatus")
            src_lang, tgt_lang, architecture, status = (entry.get(key, "") for key in keys)
            if not all(isinstance(text, str) for text in (architecture, status)):
                raise DataError(f"{source}: a model of {short_repr(pair)} has no architecture")
            if not all(isinstance(code, str) and is_code(code) for code in (src_lang, tgt_lang)):
                raise DataError(f"{source}: a model of {short_repr(pair)} has no languages")
            unpacked = tuple(_files(files, f"{source}: {short_repr(pair)}"))
            yield PublishedModel(src_lang, tgt_lang, architecture, status, unpacked)


def _files(files: Mapping[str, Any], place: str) -> Iterator[PublishedFile]:
    vocabulary = next((names for names in VOCABULARIES if names[0] in files), VOCABULARIES[0])
    for name in (*REQUIRED, *vocabulary, *OPTIONAL):
        if name in files:
            yield _file(files[name], f"{place}: {name}")
        elif name not in OPTIONAL:
            raise DataError(f"{place}: has no `{name}`")


def _file(entry: Any, place: str) -> PublishedFile:
    keys = ("path", "uncompressedSize", "uncompressedHash")
    path, size, sha256 = map(entry.get, keys) if isinstance(entry, dict) else (None, None, None)
    if not isinstance(path, str) or not _is_safe(path):
        raise DataError(f"{place}: `path` is {short_repr(path)}, wanted: a path below `baseUrl`")
    if type(size) is not int or not 0 < size <= MOST_FILE_BYTES:
        raise DataError(
            f"{place}: `uncompressedSize` is {short_repr(size)}, wanted: a number of bytes"
        )
    if not isinstance(sha256, str) or len(sha256) != 64:
        raise DataError(f"{place}: `uncompressedHash` is {short_repr(sha256)}, wanted: a sha256")
    return PublishedFile(path, size, sha256.lower())


def _is_safe(path: str) -> bool:
    """Whether it leads nowhere but below its base."""
    parts = path.split("/")
    return (
        bool(path)
        and path.isprintable()
        and not path.startswith("/")
        and ".." not in parts
        and not any(sign in path for sign in "\\:?#")
    )
