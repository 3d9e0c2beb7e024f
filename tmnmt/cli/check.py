"""`tmnmt check`: what somebody should look at in translations that are there already."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer


def check(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="XLIFF, PO, TMX, TSV or another file of pairs."),
    ],
    terms: Annotated[
        Path | None,
        typer.Option("--terms", metavar="FILE", help="Terms that translations should have."),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            "--terms-domain", help="What the texts are about: it chooses meanings of terms."
        ),
    ] = None,
    included: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="CHECK", help="This check alone; may be repeated."),
    ] = None,
    excluded: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="CHECK", help="Not this check; may be repeated."),
    ] = None,
    report: Annotated[
        Literal["text", "json", "sarif", "junit"],
        typer.Option("--report", help="How findings are written: for people, or for programs."),
    ] = "text",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where; not given, stdout."),
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option(
            "--speed", min=1, metavar="N", help="Characters a second of subtitles, at most."
        ),
    ] = None,
    width: Annotated[
        int | None,
        typer.Option("--width", min=1, metavar="N", help="Characters of a line of subtitles."),
    ] = None,
    lines: Annotated[
        int | None,
        typer.Option("--lines", min=1, metavar="N", help="Lines of a cue of subtitles."),
    ] = None,
    src_lang: Annotated[
        str | None,
        typer.Option("--src-lang", metavar="CODE", help="Of files that do not say theirs."),
    ] = None,
    tgt_lang: Annotated[
        str | None,
        typer.Option("--tgt-lang", metavar="CODE", help="Of files that do not say theirs."),
    ] = None,
) -> None:
    """Check translations that were made elsewhere: numbers, codes, terms, ends and more.

    Segments without a translation and locked ones are left out. The exit code is 0 where nothing is
    found, and 1 where something is found, or where a file or a row of it cannot be read or a file
    has no translation. Checks: numbers, codes,
    placeholders, ends, length, untranslated, repeated, spaces, characters, unreadable,
    brackets, empty, terms, forbidden; of subtitles speed, width and lines."""
    from tmnmt.batch.check import Checker, check_names, summary
    from tmnmt.batch.check_reports import REPORTS
    from tmnmt.formats.atomic import writing
    from tmnmt.quantities import quantity

    names = check_names(included or (), excluded or ())
    limits = speed or 0, width or 0, lines or 0
    checker = Checker(src_lang or "", tgt_lang or "", terms, names, *limits, domain or "")
    findings = [*checker.findings(files)]
    content = REPORTS[report](findings, checker.pairs)
    if output is None:
        sys.stdout.write(content)
    else:
        with writing(output) as stream:
            stream.write(content)
    checked = f"{quantity(checker.pairs, 'translation')} checked"
    print(f"{checked}, {quantity(len(findings), 'finding')}", file=sys.stderr)
    if findings:
        print(summary(findings), file=sys.stderr)
    for problem in checker.problems:
        print(f"tmnmt: {problem}", file=sys.stderr)
    if findings or checker.problems:
        raise typer.Exit(1)
