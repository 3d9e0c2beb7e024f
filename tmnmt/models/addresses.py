"""Bases that are named by an address in place of a folder, by how the address begins.

A folder is a `Path` everywhere, and a `Path` makes one slash of two. Therefore an address is read
with one slash or two behind its scheme."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tmnmt.registry import Registry

Opener = Callable[[str], Any]  # the `Model` of what stands behind the prefix and the colon
_CODE = "[A-Za-z]{2,3}(?:_[A-Za-z0-9]{2,8})?"
LANGUAGES = re.compile(rf"@(?P<src>{_CODE})-(?P<tgt>{_CODE})\Z")  # at the end of an address
ADDRESSES: Registry[Any] = Registry("address", {})


def opener_of(folder: Path | str) -> tuple[Opener, str] | None:
    """What opens a base behind an address, with what stands behind the prefix of the address; None
    for the name of a folder.

    folder: the address, or the name of a folder."""
    prefix, colon, place = str(folder).replace("\\", "/").partition(":")
    if not colon or prefix not in ADDRESSES:
        return None
    return ADDRESSES[prefix], place


def is_address(folder: Path | str) -> bool:
    """Whether a base is named by an address.

    folder: the address, or the name of a folder."""
    return opener_of(folder) is not None


def with_languages(folder: Path, src_lang: str | None, tgt_lang: str | None) -> Path:
    """An address that says its languages; a folder, and an address that says them already, stay.

    folder: the address, or the folder.
    src_lang: the code of the source language; None where nobody says it.
    tgt_lang: the code of the target language; None where nobody says it."""
    text = str(folder)
    if not (src_lang and tgt_lang and is_address(folder)) or LANGUAGES.search(text):
        return folder
    codes = (code.replace("-", "_") for code in (src_lang, tgt_lang))
    return Path(f"{text}@{'-'.join(codes)}")


def name_of(folder: Path) -> str:
    """What a model is called by whoever uses several: the name of its folder, or what stands behind
    the last sign that is no letter, digit, dot, dash or underscore in an address.

    folder: the address, or the folder."""
    if not is_address(folder):
        return folder.resolve().name
    name = str(folder).rpartition("#")[2].partition("@")[0]
    return "".join(sign if sign.isalnum() or sign in "._-" else "-" for sign in name)[:64]
