"""Where a Ray cluster is, and whether one can get there: told before anything is loaded."""

from __future__ import annotations

import re
import socket
from importlib.util import find_spec
from typing import NamedTuple

from tmnmt.errors import ServerError, UsageError, short_repr

_FORM = re.compile(r"ray://(\[[0-9A-Fa-f:.]+\]|[^:/\[\]@\s]+):(\d{1,5})")
SECONDS_TO_CONNECT = 10.0
PACKAGES = ("ray", "grpc")  # the second is what Ray's clients need besides


class Address(NamedTuple):
    """Where the server of Ray's clients listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"ray://{self.host}:{self.port}"


def address_of(text: str) -> Address:
    """The address that a user names.

    text: "ray://HOST:PORT".

    Raises UsageError for what is none."""
    match = _FORM.fullmatch(text)
    if match is None or not 0 < int(match[2]) < 1 << 16:
        raise UsageError(
            f"--workers {short_repr(text)} is wrong; allowed: ray://HOST:PORT, as ray://head:10001"
        )
    return Address(match[1], int(match[2]))


def check_reachable(address: Address) -> None:
    """Raises UsageError where Ray is not installed here, and ServerError where nobody listens at an
    address; Ray itself would say so after half a minute.

    address: the address."""
    for package in PACKAGES:
        if find_spec(package) is None:
            raise UsageError(
                f"--workers need the package {package}, which is not installed: pip install "
                "'tmnmt[ray]'"
            )
    try:
        host = address.host.strip("[]")
        socket.create_connection((host, address.port), SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise ServerError(
            f"{address}: nobody answers: {error.strerror or error}; `ray start --head` makes a "
            "cluster, which listens for clients at port 10001"
        ) from error
