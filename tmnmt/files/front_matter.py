"""Front matter: what a page says of itself before its text, in YAML between lines of three hyphens,
as static site generators read it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tmnmt.errors import FormatError
from tmnmt.files.whole import BOM, Wrong
from tmnmt.files.yaml_syntax import Scalar, scalars

# YAML, or TOML between lines of three plus signs
FRONT_MATTER = re.compile(
    r"(?:---[ \t\r]*\n(?P<yaml>.*?\n)??(?:---|\.\.\.)|\+\+\+[ \t\r]*\n(?:.*?\n)??\+\+\+)"
    r"[ \t\r]*(?:\n|\Z)",
    re.DOTALL,
)


def front_matter_end(text: str) -> int:
    """Where the front matter of a page ends; where its text begins, if it has none.

    text: the page."""
    start = len(BOM) if text.startswith(BOM) else 0
    front = FRONT_MATTER.match(text, start)
    return front.end() if front else start


def front_matter_texts(text: str, keys: Collection[str], wrong: Wrong) -> Iterator[Scalar]:
    """The texts of the front matter that some keys have, in order. A list has the key of what it
    is the value of.

    text: the page.
    keys: the keys, those inside others with dots between them, as seo.title.
    wrong: makes the error of a place of the page and of what is wrong there: no YAML."""
    front = FRONT_MATTER.match(text, len(BOM) if text.startswith(BOM) else 0)
    if not keys or front is None or not front["yaml"]:
        return
    offset = front.start("yaml")

    def wrong_there(place: int, problem: str) -> FormatError:
        return wrong(place + offset, problem)

    for scalar, is_key in scalars(front["yaml"], wrong_there):
        name = ".".join(part for part in scalar.path if not part.isdigit())
        has_words = any(map(str.isalnum, scalar.value))
        if not is_key and scalar.is_text and has_words and name in keys:
            yield scalar._replace(
                start=scalar.start + offset,
                end=scalar.end + offset,
                key_start=scalar.key_start + offset,
            )
