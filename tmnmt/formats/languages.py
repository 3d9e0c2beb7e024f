"""Which of a unit's languages is meant: fr finds FR-01, fr-CA and fr, the exact code first."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tmnmt.errors import UsageError
from tmnmt.formats.clean import excerpt
from tmnmt.formats.iso639 import check_language

NO_RANK = 99
_REMEMBERED = 10_000  # codes; a hostile file has another with every unit
_CODE = re.compile(r"[A-Za-z]{1,8}([-_][A-Za-z0-9]{1,8})*")


def normal_code(code: str) -> str:
    """A language code in lower case with hyphens: "FR_ca" is "fr-ca"."""
    return code.strip().replace("_", "-").lower()


def is_code(code: str) -> bool:
    """Whether `code` has the shape of BCP 47: letters, digits and hyphens."""
    return _CODE.fullmatch(code) is not None


def check_pair(src_lang: str, tgt_lang: str) -> None:
    """Raises UsageError where these are not the codes of two languages, in the shape of BCP 47 and
    of a language of ISO 639."""
    for code in (src_lang, tgt_lang):
        if not is_code(code):
            raise UsageError(
                f"{code!r} is no code of a language; write letters, digits and hyphens: en, pt-BR"
            )
        check_language(code)
    if normal_code(src_lang) == normal_code(tgt_lang):
        raise UsageError(f"{src_lang!r} and {tgt_lang!r} must be two languages")


def rank(code: str, requested: str, srclang: str = "") -> int | None:
    """How well `code` serves a request for `requested`, 0 best; None: not at all. All three in
    their normal form.

    0 the exact code; 1 a region of the language asked for that is also the file's source language;
    2 another region (fr-ca for fr); 3 the language itself where a region was asked for (fr for
    fr-ca). fr-ca never serves fr-fr."""
    if code == requested:
        return 0
    if code.startswith(requested + "-"):
        return 1 if code == srclang else 2
    return 3 if requested.startswith(code + "-") else None


class PairRanks:
    """The ranks of codes as written for a source and a target language, remembered: a file has a
    handful of codes in millions of units."""

    def __init__(self, src_lang: str, tgt_lang: str) -> None:
        self.src, self.tgt = normal_code(src_lang), normal_code(tgt_lang)
        self._count = 0
        self._cache: dict[str, dict[str, tuple[int, int] | None]] = {}

    def cached_ranks(self, srclang: str) -> dict[str, tuple[int, int] | None]:
        """What `ranks` found before for this source language of the file."""
        return self._cache.setdefault(srclang, {})

    def ranks(self, code: str, srclang: str) -> tuple[int, int] | None:
        """The ranks of `code` as source and as target, NO_RANK for none; None when it
        is neither."""
        ranks = [
            rank(normal_code(code), requested, normal_code(srclang))
            for requested in (self.src, self.tgt)
        ]
        as_src, as_tgt = (NO_RANK if value is None else value for value in ranks)
        self._count += 1
        if self._count > _REMEMBERED:
            self._cache = {}
            self._count = 1
        pair = None if as_src == as_tgt == NO_RANK else (as_src, as_tgt)
        self.cached_ranks(srclang)[code] = pair
        return pair


def listed(codes: Iterable[str], at_most: int = 40) -> str:
    """Codes for a message: "de, en-gb, fr", "de, en-gb and 20 more"; "none" when there is none."""
    names = sorted({excerpt(normal_code(code)) for code in codes})
    tail = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return (", ".join(names[:at_most]) or "none") + tail
