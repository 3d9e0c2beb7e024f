"""Which files a folder of a Marian model has: weights, a vocabulary for each side, a shortlist.

    decoder.yml                 an archive of OPUS-MT names them
    config.intgemm8bitalpha.yml  a folder of translateLocally names them
    model.enpt.intgemm.alphas.bin, vocab.enpt.spm or srcvocab.enpt.spm and trgvocab.enpt.spm,
    lex.50.50.enpt.s2t.bin       a folder of Mozilla: their names say what they are

Any of them may be gzipped, but for a .npz. Nothing is read here but the tables of the first two."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tmnmt.errors import ModelError, UsageError
from tmnmt.models.folder import read_regular, reason_of

MOST_TABLE_BYTES = 1 << 26  # of JSON, YAML and sentencepiece files
ARCHIVE_TABLE = "decoder.yml"
NAMING_TABLES = (ARCHIVE_TABLE, "config*.yml", "*.decoder.yml")
WEIGHTS = ("model*.bin", "model*.bin.gz", "model*.npz")
BOTH_SIDES = ("vocab.*spm", "vocab.*spm.gz")
SOURCE_SIDE = ("srcvocab.*spm", "srcvocab.*spm.gz")
TARGET_SIDE = ("trgvocab.*spm", "trgvocab.*spm.gz")
SHORTLIST = ("lex*.s2t.bin", "lex*.s2t.bin.gz")
PAIR = re.compile(r"\.([a-z]{2})([a-z]{2})\.")  # of a name, as in model.enpt.intgemm.alphas.bin


@dataclass(frozen=True)
class MarianFiles:
    """vocabularies: of the source and of the target, the same file where they share one."""

    weights: Path
    vocabularies: tuple[Path, Path]
    shortlist: Path | None = None

    @property
    def languages(self) -> tuple[str, str] | None:
        """As the weights' name says them; None where it says none."""
        pair = PAIR.search(self.weights.name)
        return (pair[1], pair[2]) if pair is not None else None


def languages_of(folder: Path) -> tuple[str, str]:
    """The codes of the languages that the names of a folder's files say.

    folder: the folder.

    Raises UsageError where they say none."""
    files = files_of(folder) if folder.is_dir() else None
    if files is None or files.languages is None:
        raise UsageError(
            f"{folder}: the names of its files say no languages; write --src-lang and --tgt-lang"
        )
    return files.languages


def files_of(folder: Path) -> MarianFiles | None:
    """The files of a Marian model; None where the folder has none of them.

    folder: the folder.

    Raises ModelError where some are missing, or there are several of a kind."""
    table = _single_file(folder, NAMING_TABLES)
    if table is not None:
        return _table_files(folder, table)
    weights = _single_file(folder, WEIGHTS)
    if weights is None:
        return None
    shared = _single_file(folder, BOTH_SIDES)
    sides = [shared or _single_file(folder, side) for side in (SOURCE_SIDE, TARGET_SIDE)]
    if sides[0] is None or sides[1] is None:
        raise ModelError(
            f"{folder}: has {weights.name} and no vocabulary; wanted: vocab.*.spm, or "
            "srcvocab.*.spm and trgvocab.*.spm"
        )
    return MarianFiles(weights, (sides[0], sides[1]), _single_file(folder, SHORTLIST))


def _table_files(folder: Path, table: Path) -> MarianFiles:
    settings = yaml_of(table)
    weights = folder / Path(_listed(table, settings, "models")[0]).name
    vocabularies = [folder / Path(name).name for name in _listed(table, settings, "vocabs")]
    shortlist = settings.get("shortlist")
    shortlist_name = shortlist[0] if isinstance(shortlist, list) and shortlist else None
    path = folder / Path(shortlist_name).name if isinstance(shortlist_name, str) else None
    return MarianFiles(
        _resolve(weights),
        (_resolve(vocabularies[0]), _resolve(vocabularies[-1])),
        path if path is not None and path.exists() else None,
    )


def _resolve(path: Path) -> Path:
    """The file, or the same gzipped; where there is neither, reading it says so."""
    packed = path.with_name(path.name + ".gz")
    return packed if packed.exists() and not path.exists() else path


def _single_file(folder: Path, patterns: Sequence[str]) -> Path | None:
    """The one file of the folder that is called so. Raises ModelError where there are several."""
    paths = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    if len(paths) > 1:
        names = " and ".join(path.name for path in paths[:2])
        raise ModelError(f"{folder}: has {names}; keep the files of one model in the folder")
    return paths[0] if paths else None


def yaml_of(path: Path) -> dict[str, Any]:
    """A table in YAML, read without objects.

    path: the file.

    Raises ModelError where it is none."""
    try:
        text = read_regular(path, MOST_TABLE_BYTES, "no such table is").decode()
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error
    return yaml_table(path, text)


def yaml_table(path: Path, text: str) -> dict[str, Any]:
    """A table in YAML, read without objects.

    path: the file that the text stands in, for messages.
    text: the text.

    Raises ModelError where it is none."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        table = yaml.load(text, loader)  # safe: without objects
    except (yaml.YAMLError, RecursionError) as error:
        raise ModelError(f"{path}: no YAML: {reason_of(error)}") from error
    if not isinstance(table, dict):
        raise ModelError(f"{path}: no table in YAML")
    return table


def _listed(path: Path, table: Mapping[str, Any], key: str) -> list[str]:
    values = table.get(key)
    if not isinstance(values, list) or not values or not all(isinstance(x, str) for x in values):
        raise ModelError(f"{path}: `{key}` names no files")
    return values
