"""The JRC-Acquis texts of one language (Steinberger et al. 2006): jrc-<lang>.tgz, TEI documents,
never unpacked.

    en/1970/jrc21970A0720_01-en.xml:
        <TEI.2 id="jrc21970A0720_01-en" n="21970A0720(01)" lang="en"> ...
        <text><body><head n="1">..</head><div type="body"><p n="2">..</p> ...

The corpus writes its own escapes, %quot% %amp% %eacute%: they are resolved.
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
import zlib
from collections.abc import Iterator
from functools import partial
from html import unescape

from tmnmt.errors import FormatError
from tmnmt.formats.clean import clean_name, excerpt
from tmnmt.formats.elements import Malformed, elements, parsed
from tmnmt.formats.encoding import utf8, xml_encoding
from tmnmt.formats.stream import BLOCK, Allowance, Source, bare_name
from tmnmt.formats.tar import tar_files

_ATTRIBUTE = re.compile(rb"""\s([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_LONG_REFERENCE = re.compile(rb"&#\w{9,};?")  # no character, and too long a number for Python
_ESCAPE = re.compile(
    "%(quot|amp|gt|lt|apos|[A-Za-z](?:acute|grave|circ|uml|cedil|tilde|ring|caron|slash))%"
)


class Paragraphs:
    """The paragraphs of whole archives, by side and document, in a temporary file that ends with
    the process.

    Memory: one document and SQLite's cache; on disk about a third of the text (TMPDIR says
    where)."""

    def __init__(self) -> None:
        # a private file on disk that no kill leaves behind
        self._db = sqlite3.connect("", isolation_level=None)
        self._allowances: dict[int, Allowance] = {}
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute(
            "CREATE TABLE texts (side, document, paragraphs BLOB, PRIMARY KEY (side, document))"
        )

    def load(self, side: int, archive: Source) -> None:
        """Takes in every document of an archive.

        side: the side that the archive is of.
        archive: the archive.

        Raises FormatError where it is damaged, has no document, or has two with one id, and where
        the disk is full."""
        self._allowances[side] = archive.allowance
        self._db.execute("BEGIN")
        documents = 0
        for document, paragraphs in _documents(archive):
            packed = zlib.compress(json.dumps(paragraphs).encode(), 1)
            try:
                self._db.execute("INSERT INTO texts VALUES (?, ?, ?)", (side, document, packed))
            except sqlite3.IntegrityError as error:
                raise FormatError(
                    f"{archive.label}: two documents with one id: {document}"
                ) from error
            except sqlite3.Error as error:
                raise FormatError(
                    f"{archive.label}: its texts cannot be kept in a temporary file: {error}"
                ) from error
            documents += 1
        self._db.execute("COMMIT")
        if not documents:
            raise FormatError(
                f"{archive.label}: no document in it; expected {archive.stem} with YEAR/jrc*.xml"
            )

    def document_texts(self, side: int, document: str) -> dict[str, str] | None:
        """The texts of a document by paragraph number; None where it is not in the archive.

        side: the side that is read.
        document: the id of the document."""
        row = self._db.execute(
            "SELECT paragraphs FROM texts WHERE side = ? AND document = ?", (side, document)
        ).fetchone()
        if row is None:
            return None
        unpacked = zlib.decompress(row[0])
        self.take(side, len(unpacked))
        texts: dict[str, str] = json.loads(unpacked)
        return texts

    def take(self, side: int, size: int) -> None:
        """Counts what links give of an archive.

        side: the side that the archive is of.
        size: how many bytes they give.

        Raises FormatError where they point to the same again and again."""
        self._allowances[side].take(size)

    def close(self) -> None:
        self._db.close()


def attributes(tag: bytes) -> dict[str, str]:
    """The attributes of a start tag.

    tag: the start tag."""
    return {
        name.decode(): unescape(
            _LONG_REFERENCE.sub(b"", double or single).decode("utf-8", "replace")
        )
        for name, double, single in _ATTRIBUTE.findall(tag)
    }


def resolved(text: str) -> str:
    """A text with the corpus' own escapes resolved.

    text: the text."""
    return _ESCAPE.sub(lambda escape: unescape(f"&{escape[1]};"), text) if "%" in text else text


def _documents(archive: Source) -> Iterator[tuple[str, dict[str, str]]]:
    """Every document's CELEX number and its paragraphs."""
    with archive.stream() as stream:
        for path, data in tar_files(
            stream, archive.label, lambda path: bare_name(path).endswith(".xml")
        ):
            label, name = f"{archive.label}: {excerpt(path)}", bare_name(path)
            yield from _document(
                Source(label, name, partial(io.BytesIO, data), len(data), archive.allowance)
            )
        while stream.read(BLOCK):
            pass  # to the check sum at the end


def _document(source: Source) -> Iterator[tuple[str, dict[str, str]]]:
    """The one document of a file; none where the file is no TEI.2 with a number. A broken paragraph
    is left out."""
    document = ""
    paragraphs = dict[str, str]()
    with source.stream() as stream:
        encoding, mark_length = xml_encoding(stream.peek(1), source.label)
        content = utf8(stream, encoding, mark_length)
        for _, name, data, problem, _ in elements(content, (b"head", b"p"), (b"TEI.2",)):
            if name == b"TEI.2":
                document = clean_name(attributes(data).get("n", ""))
                continue
            try:
                element, _ = parsed(data) if not problem else (None, False)
            except Malformed:
                continue
            if element is not None and element.get("n") is not None:
                paragraphs[element.get("n", "")] = resolved("".join(map(str, element.itertext())))
    if document:
        yield document, paragraphs
