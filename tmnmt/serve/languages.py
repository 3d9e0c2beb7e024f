"""Codes of languages as tools write them: en, eng, en-US, en_US.UTF-8, EN, deu, ger, oci_aran."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tmnmt.formats.iso639 import NAMES, short
from tmnmt.serve.http_error import Refused

_CODE = re.compile(r"[A-Za-z]{1,8}(?:[-_][A-Za-z0-9]{1,8}){0,4}")
_LOCALE_SUFFIX = re.compile(r"[.@].{0,20}")  # of a POSIX locale: its character set, its variant
_SCRIPT, _REGION = re.compile("[a-z]{4}"), re.compile(r"[a-z]{2}|\d{3}")


@dataclass(frozen=True)
class Language:
    """A code in its parts: the language in two letters where there are such; script and region in
    the case of BCP 47, "" where the code has none. Variants do not count."""

    language: str
    script: str = ""
    region: str = ""

    @property
    def code(self) -> str:
        """As BCP 47 writes it: pt-BR, zh-Hant."""
        return "-".join(part for part in (self.language, self.script, self.region) if part)

    @property
    def name(self) -> str:
        """In English, with its code where that says more; the code where no name is known."""
        name = NAMES.get(self.language, self.language)
        return name if self.code == self.language else f"{name} ({self.code})"


def language(code: str) -> Language:
    """The language of a code.

    code: the code.

    Raises Refused for what is no code."""
    bare = _LOCALE_SUFFIX.sub("", code.strip(), count=1) if len(code) <= 64 else ""
    if not _CODE.fullmatch(bare):
        raise Refused(400, "wrong_language", "a language is a code such as en, eng or en-GB")
    first, *rest = re.split("[-_]", bare.lower())
    script = next((part for part in rest if _SCRIPT.fullmatch(part)), "")
    region = next((part for part in rest if _REGION.fullmatch(part)), "")
    return Language(short(first), script.title(), region.upper())


Served = TypeVar("Served")


def distance(requested: Language, served: Language) -> int | None:
    """How far a language is from what is requested: 0 the same, 1 without a region where one is
    requested, 2 another region. None for another language, or another script.

    requested: the requested language.
    served: the language that is served."""
    if requested.language != served.language:
        return None
    if requested.script and served.script and requested.script != served.script:
        return None
    if requested.region == served.region:
        return 0
    return 2 if served.region else 1


def nearest(
    requested: tuple[Language, Language], served: Iterable[tuple[tuple[Language, Language], Served]]
) -> Sequence[Served]:
    """What serves a pair of languages, nearest first, else in the order that there is.

    requested: the pair of languages.
    served: everything that is served, each with its pair of languages."""
    pairs = []
    for pair, candidate in served:
        far = [distance(*languages) for languages in zip(requested, pair, strict=True)]
        if None not in far:
            pairs.append((sum(part or 0 for part in far), candidate))
    return [candidate for _, candidate in sorted(pairs, key=lambda entry: entry[0])]
