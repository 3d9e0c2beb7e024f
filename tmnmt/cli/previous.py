"""The option --previous: a new version of a file beside its former version and the translation of
that."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.config.options import Output
from tmnmt.errors import UsageError

if TYPE_CHECKING:
    from tmnmt.files.unit import TranslatableFile
    from tmnmt.segments import Segment

PREVIOUS = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        "--previous",
        metavar="OLD OLD_TRANSLATION",
        help="A former version of the file and its translation: what did not change stays.",
        rich_help_panel=Output.title,
    ),
]


def check_previous(
    files: Sequence[tuple[Path, TranslatableFile]], previous: tuple[Path, Path]
) -> None:
    """Raises UsageError where a former version cannot be one of these files.

    files: the files with their paths.
    previous: the former version, and its translation."""
    from tmnmt.files.opening import kind_of

    if len(files) != 1:
        raise UsageError("--previous is of one file, such as a page or a catalogue")
    [(path, file)] = files
    for former in previous:
        if kind_of(former) not in (type(file), None) or not former.is_file():
            raise UsageError(f"--previous {former}: is no {file.title}, as {path} is")


def with_former(
    file: TranslatableFile, path: Path, languages: tuple[str, str], previous: tuple[Path, Path]
) -> tuple[TranslatableFile, Sequence[Segment]]:
    """The file, in which what did not change stays, and the pairs of what did. A line on stderr
    says how much that is.

    file: the new version.
    path: where it is.
    languages: those that are wanted.
    previous: the former version, and its translation.

    Raises UsageError for a file of other languages and for a former version that is exchanged with
    its translation, FormatError where one cannot be read."""
    from tmnmt.batch.filling import agree_on_languages
    from tmnmt.batch.previous import FileWithFormer, compared, is_translation, open_versions

    kind, (source, translation) = type(file), previous
    agree_on_languages(file, *languages)
    new_file, new = open_versions(kind, path, languages)
    if kind.is_bilingual:
        _, of_translation = open_versions(kind, translation, languages)
        former = of_translation
    else:
        _, former = open_versions(kind, source, languages)
        _, of_translation = open_versions(kind, translation, languages[::-1])
        if is_translation(new, former, of_translation):
            raise UsageError(
                f"--previous {source} {translation}: {path} has the texts of {translation}; "
                "first comes the former version, then its translation"
            )
    comparison = compared(
        new, former, of_translation, lambda unit, target: not new_file.refused(unit, target)
    )
    print(f"{path}: {comparison}", file=sys.stderr)
    return FileWithFormer(new_file, comparison), comparison.segments(translation)
