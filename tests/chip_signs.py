"""What stands for tags in the field of the page (`tmnmt/serve/static/chips.js`)."""

from __future__ import annotations

FIRST = 0x1FB00


def signs(text: str, *tags: str) -> str:
    """A text with signs in place of its tags.

    text: the text.
    tags: the different tags of its segment, in the order of its source."""
    for at, tag in enumerate(tags):
        text = text.replace(tag, chr(FIRST + at))
    return text
