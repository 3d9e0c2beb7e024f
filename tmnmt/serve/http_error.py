"""What a request is refused with. It is said to the client: it holds no path and no text."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any


class Refused(Exception):
    """`status`: of HTTP. `code`: a word for programs. `message`: for people. `retry_after`: seconds
    after which it may go; 0: never as it is. `details`: what its own interface tells beside it."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        retry_after: int = 0,
        details: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.retry_after, self.details = retry_after, details


def wrong(message: str) -> Refused:
    """A request that is not what it should be."""
    return Refused(400, "bad_request", message)


def unknown(message: str) -> Refused:
    """What is not there, or not for this key."""
    return Refused(404, "not_found", message)
