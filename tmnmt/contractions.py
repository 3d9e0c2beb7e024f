"""English contractions spelt out. A model that learned from text without them, such as law, reads
"isn't" as "is", an unknown word and "t", and says the opposite.

    The Minister isn't required to pay.     the source
    The Minister is not required to pay.    what such a model reads"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from tmnmt.languages import data_for

_NEGATION = re.compile(r"▁?(?:is|does|did|was)n(?:['’]|$)|.*n['’]t$", re.IGNORECASE)


@cache
def _contracted() -> re.Pattern[str]:
    verbs = "|".join(data_for("en").contractions["negated"].split())
    return re.compile(
        rf"""\b(?: (?P<verb>{verbs}) n['’]t
              | (?P<who> I(?=['’](?:m|ve|ll)\b) | (?:you|we|they)(?=['’](?:re|ve|ll)\b)
                | (?:he|she|it|that|there)(?=['’](?:ll|s)\b) )
                ['’] (?P<end>m|re|ve|ll|s) (?P<been>(?=\ been\b))? )\b""",
        re.IGNORECASE | re.VERBOSE,
    )


def knows_contractions(pieces: Iterable[str]) -> bool:
    """Whether a vocabulary has learned from text with contractions: they are frequent there, so a
    subword has the letters before the apostrophe, or more.

    pieces: the subwords of the vocabulary."""
    return any(_NEGATION.match(piece) for piece in pieces)


def spelt_out(text: str) -> str:
    """A text with "is not" for "isn't", and "they have" for "they've". What may be either of two
    stays, such as "they'd".

    text: the text."""
    return _contracted().sub(_spelt_out, text) if "'" in text or "’" in text else text


def _spelt_out(contracted: re.Match[str]) -> str:
    words = data_for("en").contractions
    if (verb := contracted["verb"]) is not None:
        first, second = _as_is(verb, words["irregular"].get(verb.lower(), verb)), "not"
        separator = "" if first.lower() == "can" else " "
    else:
        has_been = contracted["been"] is not None and contracted["end"] in "sS"
        full = "has" if has_been else words["endings"][contracted["end"].lower()]
        first, second = contracted["who"], full
        separator = " "
    return first + separator + (second.upper() if first.isupper() and first != "I" else second)


def _as_is(word: str, replacement: str) -> str:
    """`replacement` with the case of `word`."""
    if word.isupper():
        return replacement.upper()
    return replacement.capitalize() if word.istitle() else replacement
