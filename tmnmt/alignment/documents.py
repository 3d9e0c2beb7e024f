"""Documents to be aligned: the sentences of files of any kind, and which files of two folders
belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tmnmt.errors import DataError, UsageError
from tmnmt.files.opening import kind_of
from tmnmt.files.paragraphs import ParagraphFile
from tmnmt.files.sentences import has_rules, sentences
from tmnmt.formats.clean import clean
from tmnmt.formats.languages import normal_code


def read_sentences(path: Path, language: str) -> list[str]:
    """The sentences of a file in order, without codes: of any kind that can be translated, else of
    plain text. A unit of a file is cut into sentences where there are rules for its language.

    path: the file.
    language: the language that it is in.

    Raises FormatError where it cannot be read."""
    file = (kind_of(path) or ParagraphFile)(path)
    file.src_lang = language
    is_cut = has_rules(language)
    file.sentences = is_cut and file.has_running_text
    texts = list[str]()
    for document in file.documents():
        for unit in document.units:
            plain = clean(unit.source.plain)[0]
            parts = sentences(plain, language) if is_cut and not file.sentences else [plain]
            texts += (part for part in map(str.strip, parts) if part)
    return texts


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
