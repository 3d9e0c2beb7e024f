"""EPUB and IDML, by Okapi's filters. Both are archives whose first part, `mimetype`, is not packed
and says what they are. Okapi packs all parts, so the archive is put together here as the old one
was."""

from __future__ import annotations

import re
import zipfile
from copy import copy
from pathlib import Path
from typing import BinaryIO
from xml.etree.ElementTree import ParseError, canonicalize

from tmnmt.errors import FormatError
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.office_archive import open_archive
from tmnmt.files.okapi_file import OkapiFile

MIMETYPE = "mimetype"
_ENCRYPTION = "META-INF/encryption.xml"
# fonts alone may be scrambled, as publishers' licences want it
_FONT_ALGORITHMS = (b"http://www.idpf.org/2008/embedding", b"http://ns.adobe.com/pdf/enc#RC")
_ALGORITHM = re.compile(rb"""\bAlgorithm\s*=\s*["']([^"']*)["']""")
_XML = "{http://www.w3.org/XML/1998/namespace}"
_LEFT_OUT = (f"{_XML}space", f"{_XML}lang", "lang")  # attributes that Okapi adds or sets
_LANGUAGE = re.compile(rb"(<dc:language\b[^<>]*>\s*)([\w-]+)(\s*</dc:language>)")


class PublicationFile(OkapiFile):
    """An archive that says what it is by its part `mimetype`."""

    mimetype: bytes

    @classmethod
    def _check(cls, path: Path) -> None:
        with open_archive(path, f"no file of {cls.title}, or a damaged one") as archive:
            names = archive.namelist()
            if MIMETYPE not in names or archive.read(MIMETYPE).strip() != cls.mimetype:
                raise FormatError(f"{path}: no {cls.title}: its {MIMETYPE} says otherwise")
            if _ENCRYPTION in names:
                algorithms = _ALGORITHM.findall(archive.read(_ENCRYPTION))
                if any(algorithm not in _FONT_ALGORITHMS for algorithm in algorithms):
                    raise FormatError(f"{path}: it is encrypted; take the protection off first")

    def _finish(self, merged: Path, destination: BinaryIO) -> None:
        with (
            zipfile.ZipFile(self._path) as old,
            zipfile.ZipFile(merged) as new,
            zipfile.ZipFile(destination, "w") as output,
        ):
            for part in old.infolist():
                content = b""
                if not part.is_dir():
                    name = part.filename
                    content = self._part(name, old.read(name), new.read(name))
                output.writestr(copy(part), content)

    def _part(self, name: str, old: bytes, new: bytes) -> bytes:
        """A part as it is written; `new`: as Okapi has it. What says the same in other bytes stays
        as it was."""
        if old == new:
            return old
        try:
            return old if _canonical(old) == _canonical(new) else new
        except (ParseError, UnicodeDecodeError):  # no XML, or with entities of HTML
            return new


class EpubFile(PublicationFile):
    """An electronic book, EPUB 2 or 3."""

    kind = "epub"
    title = FILE_KINDS["epub"].title
    mimetype = b"application/epub+zip"

    def _part(self, name: str, old: bytes, new: bytes) -> bytes:
        """The package says the language of the book."""
        part = super()._part(name, old, new)
        if not name.lower().endswith(".opf") or not self.tgt_lang:
            return part
        language = rb"\g<1>" + self.tgt_lang.encode() + rb"\g<3>"
        return _LANGUAGE.sub(language, part, count=1)


class IdmlFile(PublicationFile):
    """A document of InDesign, CS4 or later, as it is exported for exchange."""

    kind = "idml"
    title = FILE_KINDS["idml"].title
    mimetype = b"application/vnd.adobe.indesign-idml-package"


def _canonical(content: bytes) -> str:
    """What a part says as XML, whatever its bytes are."""
    return canonicalize(content.decode("utf-8"), strip_text=True, exclude_attrs=_LEFT_OUT)
