"""Bodies of requests: how many bytes of them the server holds, how long one may take, and where a
large one is read, so that no body holds up the answers to others."""

from __future__ import annotations

import asyncio
import marshal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from tmnmt.serve import json_reader
from tmnmt.serve.http_error import Refused, wrong

SMALL = 200_000  # bytes of a body that is read at once: it takes a few milliseconds
MOST_VALUES = 250_000  # of JSON: a document of 50,000 segments has some 50,000
SECONDS = 30.0  # that a body may take to come
SECONDS_OF_FILE = 600.0
SECONDS_OF_JSON = 30.0  # that a process may read a body
READERS = 2  # bodies that are read beside the loop at a time
Result = TypeVar("Result")


class Room:
    """The bytes of bodies that the server holds at a time, over all requests. For one thread."""

    def __init__(self, size: int, shares: int = 1) -> None:
        """size: how many bytes of bodies the server holds at a time.
        shares: into how many parts they are divided, one of which a tenant may have."""
        self.size, self.share = size, size // shares
        self._bytes = Counter[str]()

    @property
    def byte_count(self) -> int:
        return self._bytes.total()

    def check(self, tenant: str, count: int) -> None:
        """Checks that more bytes have room now.

        tenant: the tenant that they are of.
        count: how many bytes there are.

        Raises Refused where they have none."""
        if self._bytes[tenant] + count > self.share or self.byte_count + count > self.size:
            raise Refused(
                429, "busy", "the server holds as many bytes of requests as it may; try again", 2
            )

    def take(self, tenant: str, count: int) -> None:
        """Takes room for bytes.

        tenant: the tenant that they are of.
        count: how many bytes there are.

        Raises Refused where they have none."""
        self.check(tenant, count)
        self._bytes[tenant] += count

    def free(self, tenant: str, count: int) -> None:
        """Gives room back.

        tenant: the tenant that had it.
        count: how many bytes it was for."""
        self._bytes[tenant] -= count
        if not self._bytes[tenant]:
            del self._bytes[tenant]


class Lease:
    """The room of one request; it is free again at the end of the block."""

    def __init__(self, room: Room) -> None:
        """room: the room of all requests."""
        self._room, self._tenant, self._count = room, "", 0

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._room.free(self._tenant, self._count)

    def assign(self, tenant: str) -> None:
        """Gives the room of the request to a tenant.

        tenant: the tenant that has it from now on.

        Raises Refused where the tenant has no more."""
        self._room.free(self._tenant, self._count)
        count, self._count, self._tenant = self._count, 0, tenant
        self.take(count)

    def check(self, count: int) -> None:
        """Checks that more bytes have room now.

        count: how many bytes there are.

        Raises Refused where they have none."""
        self._room.check(self._tenant, count)

    def take(self, count: int) -> None:
        """Takes room for bytes.

        count: how many bytes there are.

        Raises Refused where they have none."""
        self._room.take(self._tenant, count)
        self._count += count


async def read_body(request: Request, limit: int, seconds: float, lease: Lease) -> bytes:
    """The body of a request. What the client still sends after an error is thrown away by its
    connection.

    request: the request.
    limit: how many bytes the body may have.
    seconds: how long it may take.
    lease: the room of the request.

    Raises Refused for a body that is larger, has no room, or takes longer."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit():
        _check_size(int(declared), limit)
        lease.check(int(declared))
    parts, size = list[bytes](), 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                _check_size(size, limit)
                lease.take(len(part))
                parts.append(part)
    except TimeoutError as error:
        raise Refused(408, "too_slow", f"the body did not come within {seconds:g} s") from error
    except ClientDisconnect as error:
        raise Refused(400, "bad_request", "the body did not come to its end") from error
    return b"".join(parts)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise Refused(413, "too_large", "the body may have {limit} bytes", values={"limit": limit})


class Readers:
    """Reads large bodies beside the loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(READERS, "body")

    async def do(self, body: bytes, work: Callable[[bytes], Result]) -> Result:
        """What is made of a body: at once where it is small, else in a thread.

        body: the body.
        work: makes it."""
        if len(body) <= SMALL:
            return work(body)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, body)

    def stop(self) -> None:
        self._threads.shutdown()


def json_of(body: bytes) -> Any:
    """The value of a body of JSON, a large one from a process of its own.

    body: the body.

    Raises Refused for what is no JSON, or has too many values."""
    if len(body) <= SMALL:
        kind, value = json_reader.answer(body, MOST_VALUES)
    else:
        kind, value = _from_process(body)
    if kind == "many":
        raise Refused(413, "too_large", f"a body of JSON may have {MOST_VALUES:,} values")
    if kind == "wrong":
        raise wrong("the body is no JSON")
    return value


def _from_process(body: bytes) -> tuple[str, Any]:
    command = [sys.executable, "-I", "-S", json_reader.__file__, str(MOST_VALUES)]
    try:
        process = subprocess.run(
            command, input=body, stdout=subprocess.PIPE, timeout=SECONDS_OF_JSON, check=True
        )
    except subprocess.TimeoutExpired as error:
        raise Refused(413, "too_large", "the body of JSON takes too long to read") from error
    except (OSError, subprocess.CalledProcessError) as error:
        raise Refused(503, "busy", "the body cannot be read now; try again", 5) from error
    kind, value = marshal.loads(process.stdout)
    return kind, value
