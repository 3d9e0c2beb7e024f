"""Asks a base behind an address, by OpenAI's chat completions.

Only the named machine is asked: redirects are not followed, and no proxy of the environment is
used. A request that the server puts off, or that breaks down, is tried again for as long as the
segment may take. An answer has a largest size and must come within that time, however slowly it
drips."""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import ssl
import stat
import threading
import time
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urlsplit

from tmnmt.errors import ServerError, UsageError, short_repr
from tmnmt.hosted.address import Address

CERTIFICATES = "SSL_CERT_FILE"  # the variable in which OpenSSL looks for certificates to trust
KEY_VARIABLE = "TMNMT_API_KEY"
LARGEST = 4_000_000  # bytes of an answer
LARGEST_KEY = 4096  # bytes of a file with a key
TRIES = 6
PUT_OFF = (408, 425, 429, 500, 502, 503, 504)  # statuses after which the same is asked again
FIRST_WAIT = 0.5  # seconds before the first repetition; before each further one twice as many
CHUNK = 1 << 16
HUNG_UP = (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)
Message = Mapping[str, str]  # its role, and its content
Exchanged = tuple[int, http.client.HTTPMessage, bytes]  # status, headers and content of an answer


class _TemporaryError(Exception):
    """The request may go well when it is made again. `wait`: seconds that the server asks for."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True)
class Reply:
    """What a base has answered.

    text: the answer.
    is_cut: whether the base ended because the answer would have been too long."""

    text: str
    is_cut: bool = False


@dataclass
class Connection:
    """A base behind an address. Any thread may ask.

    address: where it is asked.
    key: what the server wants to see; "" where it wants nothing. It is never logged.
    seconds: how long one text may take, with all repetitions.
    stopping: ends all waiting once it is set.
    counts: how many requests were made ("requests"), and how many of these were repetitions
    ("retries")."""

    address: Address
    key: str = field(default="", repr=False)
    seconds: float = 120.0
    stopping: threading.Event = field(default_factory=threading.Event)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._certificates = ssl.create_default_context() if self.address.is_encrypted else None
        self._idle = list[http.client.HTTPConnection]()  # that may be used again
        weakref.finalize(self, _close_all, self._idle)
        self._active = set[http.client.HTTPConnection]()  # that wait for an answer

    def abort(self) -> None:
        """Ends all that waits for an answer. What is asked later is asked as before."""
        with self._lock:
            active, self._active = self._active, set()
            stopping, self.stopping = self.stopping, threading.Event()
        stopping.set()
        for connection in active:
            _shut(connection)

    def deadline(self) -> float:
        """The time on `time.monotonic` until which a text that begins now may take."""
        return time.monotonic() + self.seconds

    def ask(self, messages: Sequence[Message], most_tokens: int, deadline: float) -> Reply:
        """The answer to a chat.

        messages: the chat.
        most_tokens: how long the answer may be.
        deadline: until when it has to be there, as `deadline` gives it.

        Raises ServerError where there is none by then, or none ever."""
        body = json.dumps(
            {
                "model": self.address.name,
                "messages": [dict(message) for message in messages],
                "temperature": 0,
                "max_tokens": most_tokens,
                "stream": False,
            }
        ).encode()
        stopping = self.stopping
        for number in range(TRIES):
            self.count("requests")
            try:
                return self._answer(body, deadline)
            except _TemporaryError as error:
                if stopping.is_set():
                    raise ServerError(f"{self.address}: interrupted") from None
                wait = FIRST_WAIT * 2**number * random.uniform(0.75, 1.25)
                wait = max(wait, error.wait or 0.0)
                is_late = time.monotonic() + wait >= deadline
                if number + 1 == TRIES or is_late or stopping.wait(wait):
                    raise ServerError(f"{self.address}: {error}") from None
                self.count("retries")
        raise AssertionError("the last try has returned or raised")

    def count(self, name: str) -> None:
        """Counts something.

        name: what is counted."""
        with self._lock:
            self.counts[name] += 1

    def _answer(self, body: bytes, deadline: float) -> Reply:
        """The answer to one request. Raises _TemporaryError where it may go well the next time."""
        try:
            status, headers, content = self._exchanged(body, deadline)
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, ssl.SSLCertVerificationError):
                raise ServerError(
                    f"{self.address}: its certificate is not trusted: {error.verify_message} "
                    f"({CERTIFICATES} names a file with those that are)"
                ) from None
            is_late = isinstance(error, TimeoutError)
            reason = "no answer in time" if is_late else f"cannot be asked ({_reason_of(error)})"
            raise _TemporaryError(reason) from None
        if status in PUT_OFF:
            raise _TemporaryError(f"answers {status}", _wait_of(headers.get("Retry-After")))
        if status != 200:
            raise ServerError(f"{self.address}: {self._refusal(status, content)}")
        return _reply_of(content)

    def _exchanged(self, body: bytes, deadline: float) -> Exchanged:
        """Status, headers and content of an answer. Raises OSError and HTTPException where
        something breaks down, and TimeoutError where it takes too long."""
        with self._lock:
            used_before = self._idle.pop() if self._idle else None
        if used_before is not None:
            with suppress(*HUNG_UP):  # while nobody used it
                return self._exchanged_by(used_before, body, deadline)
        return self._exchanged_by(self._new(), body, deadline)

    def _exchanged_by(
        self, connection: http.client.HTTPConnection, body: bytes, deadline: float
    ) -> Exchanged:
        with self._lock:
            self._active.add(connection)
        # a timeout of the socket begins anew with every byte
        timer = threading.Timer(_remaining(deadline), _shut, [connection])
        timer.daemon = True
        timer.start()
        try:
            exchanged, is_open = self._read(connection, body, deadline)
        except BaseException as error:
            connection.close()
            if isinstance(error, OSError | http.client.HTTPException):
                _remaining(deadline)
            raise
        finally:
            timer.cancel()
            with self._lock:
                self._active.discard(connection)
        with self._lock:
            if is_open:
                self._idle.append(connection)
        return exchanged

    def _read(
        self, connection: http.client.HTTPConnection, body: bytes, deadline: float
    ) -> tuple[Exchanged, bool]:
        """The same, and whether the connection may be used again."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        self._set_timeout(connection, deadline)
        path = f"{urlsplit(self.address.url).path}/chat/completions"
        connection.request("POST", path, body, headers)
        self._set_timeout(connection, deadline)
        response = connection.getresponse()
        content = bytearray()
        while chunk := response.read1(CHUNK):
            content += chunk
            if len(content) > LARGEST:
                raise ServerError(f"{self.address}: its answer has more than {LARGEST:,} bytes")
            self._set_timeout(connection, deadline)
        _remaining(deadline)  # a connection that is shut then ends as if it were whole
        if response.length:
            raise http.client.IncompleteRead(bytes(content), response.length)
        response.close()
        if response.will_close:
            connection.close()
        return (response.status, response.headers, bytes(content)), not response.will_close

    def _new(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.address.url)
        if not self.address.is_encrypted:
            return http.client.HTTPConnection(parts.hostname or "", parts.port)
        return http.client.HTTPSConnection(
            parts.hostname or "", parts.port, context=self._certificates
        )

    def _set_timeout(self, connection: http.client.HTTPConnection, deadline: float) -> None:
        remaining = _remaining(deadline)
        connection.timeout = remaining
        if connection.sock is not None:
            connection.sock.settimeout(remaining)

    def _refusal(self, status: int, content: bytes) -> str:
        """What a status says, with the server's own words where they are short and legible."""
        if 300 <= status < 400:
            return f"answers {status}, and sends to another address; only the named one is asked"
        try:
            error = json.loads(content)["error"]
            reason = str(error["message"] if isinstance(error, dict) else error)
        except (ValueError, LookupError, TypeError, RecursionError):
            reason = ""
        if self.key and self.key in reason:
            reason = ""
        hint = f" (a key is read from --key-file or {KEY_VARIABLE})" if status in (401, 403) else ""
        return f"answers {status}{f': {short_repr(reason)}' if reason else ''}{hint}"


def read_key(path: Path | None, environment: Mapping[str, str]) -> str:
    """The key of an address: the first line of a file, or else what the environment says; "" where
    there is none.

    path: the file; None reads no file.
    environment: the variables of the environment.

    Raises UsageError for a file that cannot be read, that others may read, or that has no key."""
    if path is None:
        key = environment.get(KEY_VARIABLE, "").strip()
        place = KEY_VARIABLE
    else:
        place = str(path)
        try:
            with path.open("rb") as file:
                mode = path.stat().st_mode
                content = file.read(LARGEST_KEY)
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
        if _others_read(mode):
            raise UsageError(f"{path}: others can read this key; chmod 600 {path}")
        key = content.decode("utf-8", "replace").partition("\n")[0].strip()
        if not key:
            raise UsageError(f"{path}: there is no key in its first line")
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{place}: a key has only printable signs of ASCII")
    return key


def _others_read(mode: int) -> bool:
    return os.name == "posix" and bool(mode & (stat.S_IRGRP | stat.S_IROTH))


def _close_all(connections: Sequence[http.client.HTTPConnection]) -> None:
    for connection in connections:
        connection.close()


def _shut(connection: http.client.HTTPConnection) -> None:
    """Ends what waits for a connection."""
    with suppress(OSError):
        if connection.sock is not None:
            connection.sock.shutdown(socket.SHUT_RDWR)


def _reason_of(error: Exception) -> str:
    """What broke down, and why where TLS says it, such as "wrong version number"."""
    reason = error.reason if isinstance(error, ssl.SSLError) and error.reason else ""
    return type(error).__name__ + (f": {reason.replace('_', ' ').lower()}" if reason else "")


def _remaining(deadline: float) -> float:
    """The seconds until a deadline. Raises TimeoutError where there are none."""
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    return remaining


def _wait_of(header: str | None) -> float | None:
    """The seconds that an answer asks to wait, by its header Retry-After; None where it asks for
    nothing."""
    text = (header or "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return float(text[:6])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _reply_of(content: bytes) -> Reply:
    """The answer in the content of a response. Raises _TemporaryError for what is none."""
    try:
        choice = json.loads(content)["choices"][0]
        text, reason = choice["message"]["content"], choice.get("finish_reason")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise _TemporaryError("its answer is no chat completion") from None
    if text is None:
        text = ""
    if not isinstance(text, str):
        raise _TemporaryError("its answer is no chat completion")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _TemporaryError("its answer has halves of characters") from None
    return Reply(text, reason == "length")
