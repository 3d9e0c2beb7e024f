"""What a request is refused with. It is said to the client: it holds no path and no text."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any


class Refused(Exception):
    """A request is refused. What the client reads of it holds no path and no text."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        retry_after: int = 0,
        details: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """status: the status of HTTP.
        code: a word for programs.
        message: what a person reads.
        retry_after: the seconds after which the request may go; 0 where it never may as it is.
        details: what the own interface tells beside it."""
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.retry_after, self.details = retry_after, details


def wrong(message: str) -> Refused:
    """A request that is not what it should be.

    message: what a person reads."""
    return Refused(400, "bad_request", message)


def unknown(message: str) -> Refused:
    """A thing that is not there, or not for this key.

    message: what a person reads."""
    return Refused(404, "not_found", message)
