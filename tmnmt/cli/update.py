"""`tmnmt update`: files of translators filled where they lie, and a summary of what was done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli.files import Job, opened_as
from tmnmt.cli.line_streaming import Computing
from tmnmt.cli.options import MEMORIES, MODEL_OR_NONE
from tmnmt.cli.output_report import OutputReport
from tmnmt.cli.translate import fill_files, load_translator, unwritten
from tmnmt.cli.translate_arguments import TranslateArguments
from tmnmt.config.options import Confirming, Output, OwnPairs, TranslationOptions
from tmnmt.errors import UsageError
from tmnmt.file_kinds import titles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHANGED = 3  # the exit code where segments were, or would be, translated
# the columns of the summary, by what a job counts
COLUMNS = {
    "full matches": "origin memory",
    "adapted": "origin adapted",
    "fuzzy": "origin fuzzy",
    "machine": "origin model",
    "repetitions": "repetitions",
    "still empty": "new",
}


def update(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help=f"{titles(only_bilingual=True)}; filled where it lies."
        ),
    ],
    model: MODEL_OR_NONE = None,
    memory: MEMORIES = None,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; say what is to be translated.")
    ] = False,
    own_translations: OwnPairs = Output.own_translations,
    options: TranslationOptions = TranslationOptions(),
) -> None:
    """Translate what is new in files, where they lie, and print a summary in Markdown.

    What has a translation stays as it is, to the byte, and is known to the rest. The exit code is 0
    where nothing was to be translated, and 3 where something was."""
    output = Output(own_translations=own_translations)
    arguments = TranslateArguments(
        inputs=files,
        model=model,
        memory=memory or [],
        tag="",
        running_text=False,
        format=None,
        output=output,
        confirming=Confirming(),
        options=options,
        watch=False,
    )
    arguments.check()
    jobs = [_job(path, output) for path in files]
    arguments.read_files(jobs)
    new = [job for job in jobs if job.open_units]
    if new and not check:
        arguments.check_pairs()
        _fill(arguments, new)
    for line in _checked(new) if check else _summary(new):
        print(line)
    if new:
        raise typer.Exit(CHANGED)


def _job(path: Path, output: Output) -> Job:
    """A file that is filled where it lies. Raises UsageError for one that holds one language."""
    from tmnmt.files.opening import open_translatable

    kind = type(open_translatable(path))
    if not kind.is_bilingual:
        raise UsageError(
            f"{path}: holds one language, so it would be written over; allowed are "
            f"{titles(only_bilingual=True)}, or tmnmt translate --output"
        )
    file = opened_as(kind, path, running_text=False)
    return Job(file, path, path, output.overwrite, output.own_translations)


def _fill(arguments: TranslateArguments, todo: list[Job]) -> None:
    if arguments.model is None:
        from tmnmt.cli.pretranslation import pretranslate

        pretranslate(arguments, [], todo, unwritten, lines_out=False)
        return
    computing = Computing(arguments.options.threads)
    try:
        translator = load_translator(arguments, arguments.model)
        writer = OutputReport(unwritten)
        fill_files(translator, arguments, todo, writer, computing, lines_out=False)
        writer.warn(translator.tally, 0, len(todo))
    finally:
        computing.give_back()


def _checked(jobs: Sequence[Job]) -> Iterator[str]:
    """A table of what is to be translated."""
    yield from _table(
        ["segments", "to be translated"],
        [(job.path, [job.units, job.open_units]) for job in jobs],
        "Every segment has a translation.",
    )


def _summary(jobs: Sequence[Job]) -> Iterator[str]:
    """A table of what was translated, and how."""
    yield from _table(
        ["new", *COLUMNS],
        [
            (job.path, [job.open_units, *(job.counts[name] for name in COLUMNS.values())])
            for job in jobs
        ],
        "Nothing was to be translated.",
    )


def _table(header: list[str], rows: list[tuple[Path, list[int]]], empty: str) -> Iterator[str]:
    """A table of Markdown with a row for each file, and with their sums where they are several."""
    if not rows:
        yield empty
        return
    yield f"| file | {' | '.join(header)} |"
    yield f"|{' --- |' + ' ---: |' * len(header)}"
    lines = [(str(path).replace("|", "\\|"), counts) for path, counts in rows]
    if len(lines) > 1:
        sums = [sum(column) for column in zip(*(counts for _, counts in lines), strict=True)]
        lines.append((f"**{len(lines)} files**", sums))
    for name, counts in lines:
        yield f"| {name} | {' | '.join(f'{count:,}' for count in counts)} |"
