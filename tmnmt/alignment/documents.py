"""Documents to be aligned: the sentences of files of any kind, and which files of two folders
belong together."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

from tmnmt.errors import DataError, UsageError
from tmnmt.files.opening import kind_of
from tmnmt.files.paragraphs import ParagraphFile
from tmnmt.files.sentences import has_rules, sentences
from tmnmt.files.tmx import TmxFile
from tmnmt.files.unit import TranslatableFile
from tmnmt.formats.clean import clean
from tmnmt.formats.languages import is_same_language, normal_code

log = logging.getLogger(__name__)


def read_sentences(path: Path, language: str) -> list[str]:
    """The sentences of a file in order, without codes: of any kind that can be translated, else of
    plain text. A unit of a file is cut into sentences where there are rules for its language.

    path: the file.
    language: the language that it is in.

    Of a file with two languages it is the side that is in `language`.

    Raises FormatError where it cannot be read, UsageError for a memory, or where neither of its
    languages is `language`."""
    kind = kind_of(path) or ParagraphFile
    if issubclass(kind, TmxFile):
        raise UsageError(f"{path}: is a memory already, whose segments are aligned")
    file = kind(path)
    is_target = _is_target(file, path, language)
    if not file.is_bilingual:
        file.src_lang = language
    is_cut = has_rules(language)
    file.sentences = is_cut and file.has_running_text
    texts = list[str]()
    for document in file.documents():
        for unit in document.units:
            side = unit.target if is_target else unit.source
            plain = clean(side.plain)[0] if side is not None else ""
            parts = sentences(plain, language) if is_cut and not file.sentences else [plain]
            texts += (part for part in map(str.strip, parts) if part)
    return texts


def _is_target(file: TranslatableFile, path: Path, language: str) -> bool:
    """Whether the targets of a file are in a language, and not its sources."""
    if not file.is_bilingual or is_same_language(file.src_lang or language, language):
        return False
    if file.tgt_lang and is_same_language(file.tgt_lang, language):
        return True
    raise UsageError(
        f"{path}: is from {file.src_lang} to {file.tgt_lang or 'no language'}; {language} was "
        "asked for"
    )


def pairs_of_folders(
    first: Path, second: Path, languages: tuple[str, str]
) -> list[tuple[Path, Path]]:
    """The files of two folders that have the same names, but for what says their languages, as in
    contract.en.docx and contract_fr.docx.

    first: the folder of the source documents.
    second: the folder of the target documents.
    languages: of the sources, and of the targets.

    Raises DataError where no name is in both, UsageError where two files of a folder have one."""
    files, target_files = _by_name(first, languages[0]), _by_name(second, languages[1])
    names = [name for name in files if name in target_files]
    if not names:
        raise DataError(
            f"{first} and {second}: no file of one has the name of a file of the other, but for "
            f"{languages[0]} and {languages[1]} in it"
        )
    for path in [files[name] for name in files.keys() - target_files.keys()] + [
        target_files[name] for name in target_files.keys() - files.keys()
    ]:
        log.warning("%s: no file of the other folder has its name; it is left out", path)
    return [(files[name], target_files[name]) for name in names]


def _by_name(folder: Path, language: str) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for path in _files(folder):
        name = _without_language(path.relative_to(folder).as_posix(), language)
        if name in files:
            raise UsageError(f"{path} and {files[name]} are both called {name}: rename one")
        files[name] = path
    return files


def _files(folder: Path) -> Iterator[Path]:
    return (
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.parts)
    )


def _without_language(name: str, language: str) -> str:
    """A name without the code of a language that stands between marks."""
    codes = {normal_code(language), normal_code(language).partition("-")[0]}
    code = "|".join(
        re.escape(variant).replace("\\-", "[-_]") for variant in sorted(codes, reverse=True)
    )
    pattern = rf"[-_.](?:{code})(?![^\W_])|(?<![^\W_])(?:{code})(?:[-_.]|(?=/))"
    return re.sub(pattern, "", name, flags=re.IGNORECASE)
