"""Which files of a folder are the JRC-Acquis of two languages: its alignments, a TMX or a pair of
plain files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tmnmt.errors import DataError, UsageError
from tmnmt.formats.languages import normal_code

LANGUAGES = (
    "bg",
    "cs",
    "da",
    "de",
    "el",
    "en",
    "es",
    "et",
    "fi",
    "fr",
    "hu",
    "it",
    "lt",
    "lv",
    "mt",
    "nl",
    "pl",
    "pt",
    "ro",
    "sk",
    "sl",
    "sv",
)

_PACKINGS = ("", ".gz")


def find_edition(folder: Path, src_lang: str, tgt_lang: str) -> Path:
    """The edition to be read, alignments before all others: they alone name the documents.

    UsageError: a language that the JRC-Acquis does not have. DataError: none is there; the message
    names what is looked for."""
    for code in (src_lang, tgt_lang):
        if normal_code(code) not in LANGUAGES:
            raise UsageError(f"the JRC-Acquis has no {code!r}; it has {', '.join(LANGUAGES)}")
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    names = list(_names(normal_code(src_lang), normal_code(tgt_lang)))
    for name in names:
        if any(folder.joinpath(part).is_file() for part in _parts(name, src_lang, tgt_lang)):
            return folder / name
    choices = ", ".join(name for name in names if not name.endswith(_PACKINGS[1]))
    raise DataError(
        f"{folder}: no JRC-Acquis {src_lang}-{tgt_lang} in it; none of these is there, nor "
        f"packed: {choices}"
    )


def _names(src: str, tgt: str) -> Iterator[str]:
    """File names by preference; the last two are the PREFIX of a pair of plain files."""
    pairs = (f"{src}-{tgt}", f"{tgt}-{src}")
    for stem in (
        "jrc-{}_withText.xml",
        "jrc-{}.xml",
        "jrc-{}.tmx",
        "JRC-Acquis.{}.tmx",
        "{}.tmx",
        "{}.txt.zip",
    ):
        yield from (stem.format(pair) + packing for pair in pairs for packing in _PACKINGS)
    yield from (f"JRC-Acquis.{pair}" for pair in pairs)


def _parts(name: str, src: str, tgt: str) -> list[str]:
    """The files that this name stands for."""
    if not name.startswith("JRC-Acquis.") or name.endswith((".tmx", ".tmx.gz")):
        return [name]
    return [f"{name}.{lang}{packing}" for lang in (src, tgt) for packing in _PACKINGS]
