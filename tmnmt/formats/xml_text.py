"""Text as XML 1.0 can hold it."""

from __future__ import annotations

import re

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # in any way


def escaped(text: str) -> str:
    """A text as it stands between tags, without what XML cannot hold.

    text: the text."""
    # "\r" would be read as "\n" if it stood there as it is.
    text = _ILLEGAL.sub("", text).replace("&", "&amp;").replace("<", "&lt;")
    return text.replace(">", "&gt;").replace("\r", "&#13;")


def escaped_attribute(text: str) -> str:
    """A text as it stands between quotation marks, without what XML cannot hold.

    text: the text."""
    return escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
