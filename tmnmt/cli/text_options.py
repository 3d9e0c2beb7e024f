"""Options that are texts."""

from __future__ import annotations

from tmnmt.errors import UsageError


def readable(text: str | None) -> str | None:
    """A `callback` of typer: the text as given. Raises UsageError for bytes that are no text in the
    locale's encoding, which Python passes on as lone surrogates."""
    if text is not None and not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{text!r} is no UTF-8 text") from None
    return text
