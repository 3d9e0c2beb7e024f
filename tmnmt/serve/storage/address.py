"""Where a Redis is, as one text: `redis://USER:PASSWORD@HOST:PORT/NUMBER`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tmnmt.config.tables import REDIS_PASSWORD
from tmnmt.errors import UsageError

PORT = 6379
USER, PASSWORD, CA = "TMNMT_REDIS_USER", REDIS_PASSWORD, "TMNMT_REDIS_CA"
FORMS = (
    "redis://[USER:PASSWORD@]HOST[:PORT][/NUMBER], the same with rediss:// for TLS, or "
    "unix://[USER:PASSWORD@]/PATH[?db=NUMBER]"
)
_SCHEMES = ("redis", "rediss", "unix")


@dataclass(frozen=True)
class RedisAddress:
    """The address of a Redis. As a text it has no secrets.

    scheme: the scheme: "redis", "rediss" or "unix".
    host: the name of the host; "" for a socket.
    port: the port there.
    path: the path of the socket; "" where the Redis is at `host` and `port`.
    number: the number of the database.
    user: the name of the user; None where there is none.
    password: the password; None where there is none.
    ca: the file of those whom TLS believes; None where they are those of the system."""

    scheme: str
    host: str = ""
    port: int = PORT
    path: str = ""
    number: int = 0
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: Path | None = None

    def __str__(self) -> str:
        if self.path:
            return f"{self.scheme}://{self.path}?db={self.number}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}/{self.number}"


def is_address(text: str) -> bool:
    """Whether a server is meant, well or badly written; everything else is a path.

    text: what a user names."""
    return "://" in text


def parse_address(text: str, environment: Mapping[str, str] = os.environ) -> RedisAddress:
    """The parts of an address. No error tells what stands in the address behind its scheme, because
    that may be a password.

    text: the address.
    environment: the variables of the environment, which may have the user and the password where
    the address has none.

    Raises UsageError where the address is not of the form."""
    scheme = text.partition("://")[0]
    if scheme not in _SCHEMES:
        raise UsageError(f"sessions are kept in a file, or at {FORMS}")
    wrong = UsageError(
        f"--sessions {scheme}://...: this address is not of the form {FORMS}; of a user and a "
        "password, signs such as / @ : # are written as %2F %40 %3A %23"
    )
    try:
        parts = urlsplit(text)
        port = parts.port or PORT
        query = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise wrong from None  # its own words may have a piece of a password
    number = ",".join(query.pop("db", [_number(parts.path, scheme)]))
    is_socket = scheme == "unix"
    place = parts.path if is_socket else parts.hostname
    if not place or query or parts.fragment or not re.fullmatch(r"[0-9]{1,9}", number):
        raise wrong
    if is_socket and (parts.hostname or not place.startswith("/")):
        raise wrong
    user, password = _secrets(parts.username, parts.password, environment)
    location = {"path": unquote(place)} if is_socket else {"host": place}
    return RedisAddress(
        scheme,
        port=port,
        number=int(number),
        user=user,
        password=password,
        ca=_ca(environment),
        **location,
    )


def _number(path: str, scheme: str) -> str:
    """Of the database, as the path of an address has it."""
    return "0" if scheme == "unix" else path.removeprefix("/") or "0"


def _secrets(
    user: str | None, password: str | None, environment: Mapping[str, str]
) -> tuple[str | None, str | None]:
    if password:
        return unquote(user or "") or None, unquote(password)
    return unquote(user or "") or environment.get(USER) or None, environment.get(PASSWORD) or None


def _ca(environment: Mapping[str, str]) -> Path | None:
    ca_file = environment.get(CA)
    if ca_file and not Path(ca_file).is_file():
        raise UsageError(f"{CA}: {ca_file}: no such file")
    return Path(ca_file) if ca_file else None
