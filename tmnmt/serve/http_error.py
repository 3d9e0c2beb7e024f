"""What a request is refused with. It is said to the client: it holds no path and no text.

A message with values names their places, as in "a text may have {limit} characters", so that a page
can say it in another language: it is the key of its translation (`static/phrases.fr.json`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tmnmt.errors import filled


class Refused(Exception):
    """A request is refused. What the client reads of it holds no path and no text."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        retry_after: int = 0,
        details: Mapping[str, Any] = MappingProxyType({}),
        values: Mapping[str, str | int] = MappingProxyType({}),
    ) -> None:
        """status: the status of HTTP.
        code: a word for programs.
        message: what a person reads, with the places of values.
        retry_after: the seconds after which the request may go; 0 where it never may as it is.
        details: what the own interface tells beside it.
        values: what stands in those places."""
        self.template, self.values = message, values
        self.message = filled(message, values)
        super().__init__(self.message)
        self.status, self.code = status, code
        self.retry_after, self.details = retry_after, details


def wrong(message: str, **values: str | int) -> Refused:
    """A request that is not what it should be.

    message: what a person reads, with the places of values.
    values: what stands in those places."""
    return Refused(400, "bad_request", message, values=values)


def unknown(message: str) -> Refused:
    """A thing that is not there, or not for this key.

    message: what a person reads."""
    return Refused(404, "not_found", message)
