"""Files that Okapi's filters read: out to XLIFF 1.2, which is translated, and back in.

    a.docx ─ Okapi ─► a.xlf ─ Xliff1 ─► units ... fillings ─ Xliff1 ─► filled.xlf ─ Okapi ─► a.docx

Sentences are segments, by Okapi's rules (SRX). What is no text stays as it is."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import BinaryIO
from weakref import finalize

from tmnmt.codes.record import Text
from tmnmt.errors import UsageError
from tmnmt.files import okapi
from tmnmt.files.unit import Document, Filling, TranslatableFile, Unit
from tmnmt.files.xliff1 import Xliff1

UNKNOWN = "und"  # a language, where only the texts are wanted


class OkapiFile(TranslatableFile):
    """A file of one of the kinds that Okapi reads. Its source language must be set before it is
    read. The `line` of a unit is its number."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.src_lang = self.tgt_lang = ""
        self._check(path)
        okapi.check(path)

    @staticmethod
    @abstractmethod
    def _check(path: Path) -> None:
        """Raises FormatError with the reason where the file is not to be read."""

    def documents(self) -> Iterator[Document]:
        """One for every part with texts, such as a chapter or the slides."""
        number = 0
        for document in self._extracted.documents():
            units = list[Unit]()
            for unit in document.units:
                number += 1
                units.append(replace(unit, line=number))
            if units:
                yield Document(f"{self._path.name} {document.name}", units)

    def write(self, destination: BinaryIO, fillings: Iterable[Filling | None]) -> None:
        filled, merged = self._folder / "filled.xlf", self._folder / "merged"
        with filled.open("wb") as stream:
            self._extracted.write(stream, fillings)
        arguments = str(filled), *self._languages, str(merged)
        okapi.run("merge", self._path, *arguments, temporary=self._folder)
        self._finish(merged, destination)

    def _finish(self, merged: Path, destination: BinaryIO) -> None:
        """Writes what Okapi has made."""
        with merged.open("rb") as result:
            shutil.copyfileobj(result, destination)

    def refused(self, unit: Unit, target: Text) -> str:
        return self._extracted.refused(unit, target)

    @property
    def _languages(self) -> tuple[str, str]:
        return self.src_lang, self.tgt_lang or UNKNOWN

    @cached_property
    def _folder(self) -> Path:
        """A temporary one, which goes with this object."""
        folder = mkdtemp(prefix="tmnmt-okapi-")
        finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    @cached_property
    def _extracted(self) -> Xliff1:
        if not self.src_lang:
            raise UsageError(f"{self._path}: its language is not known; name it: --src-lang")
        xliff = self._folder / "extracted.xlf"
        okapi.run("extract", self._path, str(xliff), *self._languages, temporary=self._folder)
        return Xliff1(xliff)
