"""Files of a translator as the page has them: their segments, and the same bytes with targets.

Nothing of a file stays on the server: whoever reads its segments sends it again to be filled. It
lies in a folder of its own while it is read, under a name that the server has made."""

from __future__ import annotations

import base64
import binascii
import io
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tmnmt.batch.counterparts import equals
from tmnmt.batch.filling import agree_on_languages
from tmnmt.codes.record import Text
from tmnmt.config.options import Format
from tmnmt.errors import FormatError, Reason, UsageError
from tmnmt.files.opening import kind_of
from tmnmt.files.paragraphs import ParagraphFile, is_running
from tmnmt.files.sentences import has_rules
from tmnmt.files.unit import Comment, Filling, TranslatableFile, Unit
from tmnmt.files.whole import BOM, decoded
from tmnmt.formats.dates import iso_utc
from tmnmt.formats.encoding import byte_order_mark
from tmnmt.formats.text import AS_TEXT, CHECKS
from tmnmt.formats.tmx_writer import write_tmx
from tmnmt.quantities import quantity
from tmnmt.segments import Segment
from tmnmt.serve.fields import DOCUMENT
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.markup import markup
from tmnmt.serve.tagged import Tags

_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,16}")
_NO_SEGMENT = Reason(
    "the file is read otherwise than when it was opened, and has no such segment any more"
)
_PACKED = (b"\x1f\x8b", b"\xfd7zXZ\x00")


@dataclass(frozen=True)
class Upload:
    """A file as it came.

    name: its name, which says of which kind it may be, and nothing else.
    content: its bytes as base64.
    source: the source language of the model.
    target: the target language of the model.
    running: whether text is cut into sentences; None cuts running text and no list with a segment a
    line.
    format: "text" makes it plain text, whatever it is called; None tells the kind by its name."""

    name: str
    content: str
    source: str
    target: str
    running: bool | None = None
    format: Format | None = None


@dataclass(frozen=True)
class NewTarget:
    """What a file gets of a segment.

    text: the target, as XML with short tags; "" leaves it as it is.
    origin: where it is from (`tmnmt.files.states`).
    comments: comments that the file does not have yet."""

    text: str
    origin: str
    comments: Sequence[Comment] = ()


class Document(ABC):
    """A file that can be filled.

    kind: the name of its kind.
    sentences: whether its text is cut into sentences.
    takes_comments: whether it has a place for comments."""

    kind: str
    sentences: bool = False
    takes_comments: bool = False

    @abstractmethod
    def units(self) -> list[tuple[str, Unit]]:
        """Every unit, with the name of its document."""

    def refused(self, unit: Unit, target: Text) -> str:
        """Why a unit cannot have a target, in words; "" where it can.

        unit: the unit.
        target: the target."""
        return ""

    @abstractmethod
    def filled(self, fillings: Sequence[Filling | None]) -> bytes:
        """The file with other targets.

        fillings: one for every unit, none of which is refused; None leaves a unit as it is."""


def segments(upload: Upload) -> dict[str, Any]:
    """{"kind", "sentences", "segments": [{"source", "target", "state", "confirmation", "document",
    "id", "context", "plural", "notes", "problem", "markup",
    "max_length"}]}: texts as XML with short tags (`tmnmt.serve.tagged`), and what each tag is in
    the file.

    upload: the file.

    Raises Refused for what is no such file, or is of other languages."""
    file = units_of(upload)
    records = [unit_record(*entry) for entry in file.units]
    return {"kind": file.kind, "sentences": file.sentences, "segments": records}


@dataclass(frozen=True)
class Units:
    """What is read of a file.

    kind: the name of its kind.
    sentences: whether its text is cut into sentences.
    units: every unit, with the name of its document."""

    kind: str
    sentences: bool
    units: list[tuple[str, Unit]]


def units_of(upload: Upload) -> Units:
    """The units of a file.

    upload: the file.

    Raises Refused for what is no such file, or is of other languages."""
    with _open_document(upload) as document:
        units = document.units()
        if len(units) > DOCUMENT:
            raise Refused(
                413, "too_large", "a document may have {limit} segments", values={"limit": DOCUMENT}
            )
        return Units(document.kind, document.sentences, units)


def filled(upload: Upload, targets: Sequence[str]) -> bytes:
    """A file with other targets.

    upload: the file.
    targets: one for every segment, as XML with short tags; "" leaves it as it is.

    Raises Refused as `filled_with` does."""
    return filled_with(upload, [NewTarget(target, "confirmed") for target in targets])


def filled_with(
    upload: Upload,
    targets: Sequence[NewTarget],
    leaves_refused: bool = False,
    keys: Sequence[str] | None = None,
) -> bytes:
    """A file with other targets, and what it says of each; with comments where it has a place for
    them.

    upload: the file.
    targets: one for every segment.
    leaves_refused: whether a segment whose target cannot be there stays as it is.
    keys: what each segment was when the file was read before, as `key_of` gives it. Where another
    version of a reader finds other segments, each target goes to the segment with its key. None
    says that the segments are those of now.

    Raises Refused for targets that cannot be there; its details name all of them: {"refused":
    [{"segment", "reason"}]}, where the first segment is number 1."""
    with _open_document(upload) as document:
        entries = document.units()
        if keys is not None:
            numbers = equals([_key(*entry) for entry in entries], keys)
        elif len(entries) == len(targets):
            numbers = [*range(len(entries))]
        else:
            count = quantity(len(entries), "segment")
            raise wrong(f"targets must be one for each of {count}, empty where it stays as it is")
        fillings, refused = list[Filling | None](), list[dict[str, Any]]()
        for number, (_, unit) in zip(numbers, entries, strict=True):
            target = targets[number] if number is not None else NewTarget("", "")
            try:
                text = _target(document, unit, target.text)
            except Refused as refusal:
                refused.append({"segment": (number or 0) + 1, "reason": refusal.message})
                if refusal.values:
                    placed = {"template": refusal.template, "values": dict(refusal.values)}
                    refused[-1] |= placed
                text = None
            comments = tuple(target.comments) if document.takes_comments else ()
            fillings.append(
                Filling(text or Text(""), target.origin if text is not None else "", (), comments)
                if text is not None or comments
                else None
            )
        present = set(numbers)
        refused += [
            {"segment": number + 1, "reason": _NO_SEGMENT}
            for number, target in enumerate(targets)
            if target.text.strip() and number not in present
        ]
        if refused and not leaves_refused:
            raise _refusal(refused)
        return document.filled(fillings)


def key_of(document: str, id: str, context: str, source: str) -> str:
    """By what a segment of a file is found again when another version reads the file.

    document: the name of its document.
    id: its name in the file.
    context: what tells it from another one of the same source.
    source: its source with short tags."""
    return "\0".join((document, id, context, source))


def _key(name: str, unit: Unit) -> str:
    return key_of(name, unit.id, unit.context, Tags(unit.source, unit.target).source)


def tmx(segments: Sequence[Segment], src_lang: str, tgt_lang: str) -> bytes:
    """A memory as TMX, which has times to the second.

    segments: its segments.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language."""
    dated = [
        replace(s, created=iso_utc(s.created) or "", changed=iso_utc(s.changed) or "")
        for s in segments
    ]
    with tempfile.TemporaryDirectory(prefix="tmnmt-") as folder:
        path = Path(folder) / "memory.tmx"
        write_tmx(path, dated, src_lang, tgt_lang)
        return path.read_bytes()


def unit_record(name: str, unit: Unit) -> dict[str, Any]:
    """A unit as the page has it.

    name: the name of its document.
    unit: the unit."""
    tags = Tags(unit.source, unit.target)
    return {
        "source": tags.source,
        "target": tags.target(unit.target) if unit.target is not None else None,
        "state": unit.state,
        "confirmation": unit.confirmation,
        "document": name,
        "id": unit.id,
        "context": unit.context,
        "plural": unit.plural,
        "notes": list(unit.all_notes),
        "problem": unit.problem,
        "markup": tags.markup,
        "max_length": unit.max_length,
    }


def _target(document: Document, unit: Unit, target: str) -> Text | None:
    """Raises Refused where it cannot be in the file."""
    if not target.strip():
        return None
    text = Tags(unit.source, unit.target).read(target)
    if reason := document.refused(unit, text):
        if isinstance(reason, Reason):
            raise wrong(reason.template, **reason.values)
        raise wrong(reason)
    return text


def _refusal(refused: list[dict[str, Any]]) -> Refused:
    first, remaining = refused[0], len(refused) - 1
    suffix = (
        f"; {quantity(remaining, 'other segment')} cannot be filled either" if remaining else ""
    )
    why = f"segment {first['segment']:,}: {first['reason']}{suffix}"
    return Refused(400, "bad_request", why, details={"refused": refused})


@contextmanager
def _open_document(upload: Upload) -> Iterator[Document]:
    data = _bytes(upload.content)
    suffix = _suffix(upload)
    with tempfile.TemporaryDirectory(prefix="tmnmt-") as folder:
        path = Path(folder) / f"document{suffix if _SUFFIX.fullmatch(suffix) else ''}"
        path.write_bytes(data)
        try:
            yield _document(path, data, upload)
        except (FormatError, UsageError) as error:
            values = {
                name: _public_message(value, path) if isinstance(value, str) else value
                for name, value in error.values.items()
            }
            raise wrong(_public_message(error.template, path), **values) from error


def _suffix(upload: Upload) -> str:
    return Path(upload.name.replace("\\", "/")).suffix


def _public_message(message: str, path: Path) -> str:
    """A message about the file without the server's name of it, and without the command line."""
    message = message.replace(str(path), "the document").replace(path.name, "the document")
    return message.replace(AS_TEXT, '"format": "text"')


def _bytes(content: str) -> bytes:
    try:
        data = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise wrong("content must be the bytes of the file as base64") from error
    if data.startswith(_PACKED):
        raise wrong("the document is packed; unpack it first")
    return data


def _document(path: Path, data: bytes, upload: Upload) -> Document:
    kind = kind_of(path, upload.format)
    if kind is None:
        name = f"{path.stem}{_suffix(upload)}"
        CHECKS[upload.format](io.BufferedReader(io.BytesIO(data)), name)
        lines = _Lines(path, data) if not upload.running else None
        if lines is not None and (
            upload.running is False or not is_running(lines.text, upload.source)
        ):
            return lines
    file = (kind or ParagraphFile)(path)
    agree_on_languages(file, upload.source, upload.target)
    running = has_rules(file.src_lang) if upload.running is None else upload.running
    file.sentences = file.sentences or (running and file.has_running_text)
    return _Units(file)


class _Units(Document):
    """A file of `tmnmt.files`."""

    def __init__(self, file: TranslatableFile) -> None:
        self._file, self.kind, self.sentences = file, file.kind, file.sentences
        self.takes_comments = file.takes_comments

    def units(self) -> list[tuple[str, Unit]]:
        return [
            (document.name, unit) for document in self._file.documents() for unit in document.units
        ]

    def filled(self, fillings: Sequence[Filling | None]) -> bytes:
        buffer = io.BytesIO()
        self._file.write(buffer, fillings)
        return buffer.getvalue()

    def refused(self, unit: Unit, target: Text) -> str:
        if unit.state == "locked":
            return unit.problem or "it is locked"
        return self._file.refused(unit, target)


class _Lines(Document):
    """Plain text, a segment a line. Raises FormatError where it cannot be decoded."""

    kind = "text"

    def __init__(self, path: Path, data: bytes) -> None:
        self._encoding = byte_order_mark(data)[0]
        text = decoded(data, self._encoding, path)
        self._mark = BOM if text.startswith(BOM) else ""
        self.text = text.removeprefix(BOM)
        self._text = markup(self.text, "text")

    def units(self) -> list[tuple[str, Unit]]:
        return [("", Unit(Text(str(source)))) for source in self._text.sources]

    def filled(self, fillings: Sequence[Filling | None]) -> bytes:
        pairs = zip(fillings, self._text.sources, strict=True)
        texts = [Text(str(source)) if fill is None else fill.target for fill, source in pairs]
        return (self._mark + self._text.filled(texts)).encode(self._encoding)
