"""Files of a published model, fetched: the one place of tmnmt that asks the network for anything,
and only for `tmnmt get-model`.

A file that was begun goes on where it stopped. Nothing is followed to another host, and nothing
larger than it is said to be is kept."""

from __future__ import annotations

import hashlib
import http.client
import shutil
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urlsplit

from tmnmt.errors import DataError, UsageError
from tmnmt.model_import.published import MOST_BYTES, PublishedFile, Registry, registry_of

TIMEOUT = 30.0  # seconds that an answer, or more of it, is waited for
TRIES, PAUSE = 4, 1.0  # of one file; seconds before the second, twice as long before each other
CHUNK = 1 << 16
MOST_OVERHEAD = 1 << 16  # bytes that packing may add
LOOPBACK = ("127.0.0.1", "localhost", "::1")
Advance = Callable[[int], None]


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows a redirection within a host alone."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        origin, target = urlsplit(req.full_url), urlsplit(newurl)
        if (origin.scheme, origin.netloc) != (target.scheme, target.netloc):
            raise DataError(
                f"{req.full_url}: leads to another host, {target.netloc}, which is not asked"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def read_registry(source: str) -> Registry:
    """The list of models at an address or in a file. Where it says no address of its own for the
    files but a folder, they are looked for beside it.

    source: the address or the file.

    Raises DataError where it cannot be read. Raises UsageError for an address that is not asked."""
    if not _is_address(source):
        path = Path(source)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"{source}: cannot be read: {error.strerror}") from error
        registry = registry_of(content, source)
        if _is_address(registry.base):
            _check_address(registry.base)
            return registry
        return Registry(str(path.parent / registry.base), registry.models)
    _check_address(source)
    try:
        with _answer(source, 0) as answer:
            content = answer.read(MOST_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        raise DataError(f"{source}: the list of models cannot be had: {_reason(error)}") from error
    if len(content) > MOST_BYTES:
        raise DataError(f"{source}: larger than {MOST_BYTES:,} bytes; no list of models is")
    registry = registry_of(content, source)
    if not _is_address(registry.base) or _host(registry.base) != _host(source):
        raise DataError(
            f"{source}: its files are to come from {registry.base}, another host than the list's"
        )
    return registry


def fetch(registry: Registry, file: PublishedFile, folder: Path, advance: Advance) -> Path:
    """Fetches a file, and returns the path of the unpacked file, which has the right size and
    sha256.

    registry: the list that has it.
    file: the file.
    folder: the folder where it is put.
    advance: is called with the number of packed bytes that have come.

    Raises DataError where it cannot be had, or is another file."""
    path = folder / file.name
    if path.exists() and _sha256(path) == file.sha256:
        return path
    packed = folder / f"{file.name}.part"
    place = f"{registry.base}/{file.path}"
    if _is_address(registry.base):
        _fetch_packed(f"{registry.base}/{quote(file.path)}", packed, file.size, advance)
    else:
        _copy_packed(Path(place), packed, advance)
    try:
        _unpack(packed, path, file, place)
    finally:
        packed.unlink()
    return path


def _copy_packed(source: Path, packed: Path, advance: Advance) -> None:
    try:
        shutil.copyfile(source, packed)
    except OSError as error:
        raise DataError(f"{source}: cannot be read: {error.strerror}") from error
    advance(packed.stat().st_size)


def _fetch_packed(address: str, packed: Path, size: int, advance: Advance) -> None:
    """Goes on behind what is there; a broken connection is tried again."""
    advance(packed.stat().st_size if packed.exists() else 0)
    for attempt in range(TRIES):
        try:
            _fetch_rest(address, packed, size + MOST_OVERHEAD, advance)
            return
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                raise DataError(f"{address}: {error.code} {error.reason}") from error
            if attempt + 1 == TRIES:
                raise DataError(
                    f"{address}: {_reason(error)}; the same command goes on where it stopped"
                ) from error
            time.sleep(PAUSE * 2**attempt)


def _fetch_rest(address: str, packed: Path, limit: int, advance: Advance) -> None:
    byte_count = packed.stat().st_size if packed.exists() else 0
    try:
        with _answer(address, byte_count) as body, packed.open("ab") as output:
            if byte_count and body.status != 206:  # the server sends all of it again
                output.truncate(0)
                advance(-byte_count)
                byte_count = 0
            missing = body.length
            while chunk := body.read(CHUNK):
                output.write(chunk)
                byte_count += len(chunk)
                missing = missing - len(chunk) if missing is not None else None
                advance(len(chunk))
                if byte_count > limit:
                    output.truncate(0)
                    raise DataError(f"{address}: larger than the list of models says")
            if missing:
                raise ConnectionError("the connection broke")
    except urllib.error.HTTPError as error:
        if error.code != 416 or not byte_count:  # where nothing is missing, it is whole
            raise


def _unpack(packed: Path, path: Path, file: PublishedFile, place: str) -> None:
    """From gzip, whole or not at all."""
    new, digest, size = path.with_name(f"{path.name}.new"), hashlib.sha256(), 0
    try:
        with packed.open("rb") as source, new.open("wb") as output:
            for chunk in _unpacked(source):
                size += len(chunk)
                if size > file.size:
                    break
                digest.update(chunk)
                output.write(chunk)
        if size != file.size or digest.hexdigest() != file.sha256:
            raise DataError(
                f"{place}: not the file that the list of models names (its size or sha256 is "
                "another); the same command fetches it again"
            )
        new.replace(path)
    except zlib.error as error:
        raise DataError(f"{place}: no gzip file; the same command fetches it again") from error
    finally:
        new.unlink(missing_ok=True)


def _unpacked(source: IO[bytes]) -> Iterator[bytes]:
    """A bounded piece after the other."""
    unpacker = zlib.decompressobj(wbits=31)
    while chunk := source.read(CHUNK):
        while chunk:
            yield unpacker.decompress(chunk, CHUNK)
            chunk = unpacker.unconsumed_tail
    yield unpacker.flush()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_address(source: str) -> bool:
    return "://" in source


def _host(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme, parts.netloc


def _check_address(address: str) -> None:
    """https, or http on this machine alone."""
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise UsageError(
            f"{address}: not asked; wanted: an address of https, one of http on this machine, or "
            "a file"
        )


@contextmanager
def _answer(address: str, start: int) -> Iterator[http.client.HTTPResponse]:
    """The body behind the first `start` bytes. A proxy of the environment is used. Raises what
    urllib raises."""
    headers = {"User-Agent": "tmnmt", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    opener = urllib.request.build_opener(_SameHost)
    with opener.open(urllib.request.Request(address, headers=headers), timeout=TIMEOUT) as answer:
        yield answer


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return " ".join(str(reason).split()) or type(error).__name__
