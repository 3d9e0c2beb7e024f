"""Which of a unit's languages is meant: fr finds FR-01, fr-CA and fr, the exact code first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from tmnmt.errors import UsageError
from tmnmt.formats.clean import excerpt
from tmnmt.formats.iso639 import check_language, short

NO_RANK = 99
_REMEMBERED = 10_000  # codes; a hostile file has another with every unit
# Languages that are written in several scripts: the usual one, and that of some regions (CLDR 46,
# likely subtags).
SCRIPTS: dict[str, tuple[str, dict[str, str]]] = {
    "az": ("latn", {"ir": "arab", "iq": "arab", "ru": "cyrl"}),
    "kk": ("cyrl", {"cn": "arab", "af": "arab", "ir": "arab", "mn": "arab"}),
    "ku": (
        "latn",
        {
            **dict.fromkeys(("iq", "ir", "lb"), "arab"),
            **dict.fromkeys(("am", "az", "ge", "tm"), "cyrl"),
        },
    ),
    "mn": ("cyrl", {"cn": "mong"}),
    "pa": ("guru", {"pk": "arab"}),
    "sr": ("cyrl", {"me": "latn", "ro": "latn", "tr": "latn"}),
    "tg": ("cyrl", {"pk": "arab"}),
    "uz": ("latn", {"af": "arab", "cn": "cyrl"}),
    "zh": (
        "hans",
        dict.fromkeys(
            (
                *("tw", "hk", "mo", "au", "bn", "gb", "gf", "id", "pa", "pf", "ph", "sr", "th"),
                *("us", "vn"),
            ),
            "hant",
        ),
    ),
}
NORWEGIAN = {("nb", "no"): 2, ("nn", "no"): 3, ("no", "nb"): 3, ("no", "nn"): 3}  # ranks
_CODE = re.compile(r"[A-Za-z]{1,8}([-_][A-Za-z0-9]{1,8})*")


def normal_code(code: str) -> str:
    """A code of a language in lower case with hyphens: "FR_ca" is "fr-ca".

    code: the code."""
    return code.strip().replace("_", "-").lower()


def locale_name(code: str, separator: str = "_") -> str:
    """A code as programs name their locales: "pt_BR" for "pt-br", "zh_Hans" for "zh-hans".

    code: the code in its normal form.
    separator: what stands between its parts; with "-" it is as BCP 47 writes it."""
    language, *subtags = code.split("-")
    cased = (part.upper() if len(part) == 2 else part.title() for part in subtags)
    return separator.join([language, *cased])


def is_code(code: str) -> bool:
    """Whether a text has the shape of BCP 47: letters, digits and hyphens.

    code: the text."""
    return _CODE.fullmatch(code) is not None


def check_pair(src_lang: str, tgt_lang: str) -> None:
    """Checks that two codes are of two languages, in the shape of BCP 47 and of a language of ISO
    639.

    src_lang: the code of the source language.
    tgt_lang: the code of the target language.

    Raises UsageError where they are not."""
    for code in (src_lang, tgt_lang):
        if not is_code(code):
            raise UsageError(
                f"{code!r} is no code of a language; write letters, digits and hyphens: en, pt-BR"
            )
        check_language(code)
    if normal_code(src_lang) == normal_code(tgt_lang):
        raise UsageError(f"{src_lang!r} and {tgt_lang!r} must be two languages")


class LanguageTag(NamedTuple):
    """What a code says (BCP 47), in lower case.

    language: the language, in two letters where there are such.
    script: the script; "" where nothing says which.
    qualifiers: what else qualifies the language, such as a region."""

    language: str
    script: str
    qualifiers: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Whether a text in any of the scripts of the language is meant."""
        return not self.script and self.language in SCRIPTS


@lru_cache(1 << 10)
def language_tag(code: str) -> LanguageTag:
    """What a code says. A region says the script, where the language has several (CLDR, likely
    subtags): zh-tw is in traditional characters.

    code: the code in its normal form."""
    language, *subtags = code.split("-")
    language = short(language)
    script = next((part for part in subtags if len(part) == 4 and part.isalpha()), "")
    is_extended = bool(subtags) and len(subtags[0]) == 3 and subtags[0].isalpha()  # zh-cmn
    qualifiers = tuple(part for part in subtags[is_extended:] if part != script)
    if not script and qualifiers and language in SCRIPTS:
        usual, by_region = SCRIPTS[language]
        script = by_region.get(qualifiers[0], usual)
    return LanguageTag(language, script, qualifiers)


def rank(code: str, requested: str, srclang: str = "") -> int | None:
    """How well a code serves a request, 0 best; None where it does not serve it. Codes of a
    language are equal, as eng and en, and iw and he.

    0 is the exact code; 1 a region of the requested language that is also the file's source
    language; 2 another region (fr-ca for fr), or Bokmål for Norwegian; 3 the language itself where
    a region is requested (fr for fr-ca), Norwegian for Bokmål or Nynorsk, or Nynorsk for Norwegian.
    fr-ca never serves fr-fr, nor a text in one script a request for another.

    code: the code that is there, in its normal form.
    requested: the code that is requested, in its normal form.
    srclang: the source language of the file, in its normal form; "" where it says none."""
    offer, request = language_tag(code), language_tag(requested)
    if offer.language != request.language:
        return NORWEGIAN.get((offer.language, request.language))
    if offer.script and request.script and offer.script != request.script:
        return None
    offered, required = offer.qualifiers, request.qualifiers
    if offered == required:
        return 0 if offer.script == request.script else 2 if offer.script else 3
    if offered[: len(required)] == required:
        return 1 if code == srclang else 2
    return 3 if required[: len(offered)] == offered else None


def is_same_language(first: str, second: str) -> bool:
    """Whether two codes are of one language, whatever the region. Norwegian and each of its forms
    count as one; two scripts of a language do not.

    first: one code.
    second: the other code."""
    tag, second_tag = language_tag(normal_code(first)), language_tag(normal_code(second))
    if tag.script and second_tag.script and tag.script != second_tag.script:
        return False
    languages = tag.language, second_tag.language
    return tag.language == second_tag.language or languages in NORWEGIAN


class PairRanks:
    """The ranks of codes as written for a source and a target language, remembered: a file has a
    handful of codes in millions of units. Raises UsageError where codes of two scripts serve a
    language that was asked for without a script."""

    def __init__(self, src_lang: str, tgt_lang: str) -> None:
        """src_lang: the code of the requested source language.
        tgt_lang: the code of the requested target language."""
        self.src, self.tgt = normal_code(src_lang), normal_code(tgt_lang)
        self._count = 0
        self._codes_by_script: dict[str, dict[str, str]] = {self.src: {}, self.tgt: {}}
        self._cache: dict[str, dict[str, tuple[int, int] | None]] = {}

    def cached_ranks(self, srclang: str) -> dict[str, tuple[int, int] | None]:
        """What `ranks` has found, by the codes.

        srclang: the source language of the file that it was found for."""
        return self._cache.setdefault(srclang, {})

    def ranks(self, code: str, srclang: str) -> tuple[int, int] | None:
        """The ranks of a code as source and as target, NO_RANK for none; None when it is neither.

        code: the code as the file writes it.
        srclang: the source language of the file; "" where it says none.

        Raises UsageError where codes of two scripts serve a language that was requested without a
        script."""
        ranks = [
            rank(normal_code(code), requested, normal_code(srclang))
            for requested in (self.src, self.tgt)
        ]
        for value, requested in zip(ranks, (self.src, self.tgt), strict=True):
            if value is not None:
                self._check_script(normal_code(code), requested)
        as_src, as_tgt = (NO_RANK if value is None else value for value in ranks)
        self._count += 1
        if self._count > _REMEMBERED:
            self._cache = {}
            self._count = 1
        pair = None if as_src == as_tgt == NO_RANK else (as_src, as_tgt)
        self.cached_ranks(srclang)[code] = pair
        return pair

    def _check_script(self, code: str, requested: str) -> None:
        if not language_tag(requested).is_open:
            return
        script = language_tag(code).script
        codes = self._codes_by_script[requested]
        codes.setdefault(script, code)
        first, *further = filter(None, codes)
        if further:
            raise UsageError(
                f"{requested} is written in two scripts here, as {codes[first]} and as "
                f"{codes[further[0]]}: write {requested}-{first.title()} or "
                f"{requested}-{further[0].title()} for the one that is meant"
            )


def listed(codes: Iterable[str], at_most: int = 40) -> str:
    """Codes for a message: "de, en-gb, fr", "de, en-gb and 20 more"; "none" when there is none.

    codes: the codes.
    at_most: how many are named."""
    names = sorted({excerpt(normal_code(code)) for code in codes})
    tail = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return (", ".join(names[:at_most]) or "none") + tail
