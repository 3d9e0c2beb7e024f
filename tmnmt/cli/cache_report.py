"""`tmnmt cache-report`: what a session cache is worth on documents with references, and what it
reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli.options import MODEL, folder, interruption_note, readable, use_threads
from tmnmt.config.options import Beam, Decoding, LengthPenalty, Threads
from tmnmt.errors import DataError, UsageError

if TYPE_CHECKING:
    from tmnmt.segments import Segment

SIZES = [0, 25, 50, 100, 200, 500, 1000]  # Tu et al. 2018, table 2


def cache_report(
    model: MODEL,
    test: Annotated[
        list[Path],
        typer.Option(
            "--test", help="Translated documents, in order: TSV, TMX, ...; may be repeated."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder of the report; made when missing.", callback=folder
        ),
    ],
    size: Annotated[
        list[int], typer.Option("--size", min=0, max=100_000, help="Slots; may be repeated.")
    ] = SIZES,
    at: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000,
            help="Slots at which overwriting is switched over and the rest told; as many as the "
            "model learned with.",
        ),
    ] = None,
    best: Annotated[
        int,
        typer.Option(min=1, help="Write so many hypotheses, too, in a run of its own; 1: no run."),
    ] = 1,
    segment: Annotated[
        int | None,
        typer.Option(min=1, help="Of the matching matrix, from 1; that with the widest open gate."),
    ] = None,
    beam: Beam = Decoding.beam,
    length_penalty: LengthPenalty = Decoding.length_penalty,
    json: Annotated[
        bool, typer.Option("--json", help="Print report.json instead of the table of scores.")
    ] = False,
    threads: Threads = None,
) -> None:
    """Analyse a session cache as Tu et al. 2018 do: scores by size, with and without overwriting;
    speed; which slots are read, by their age and in one segment; how far the gate opens, by class
    of word.

    Translates each test set once for every setting, without translation memory, and prints scores
    with the sign test against no cache. The folder gets report.json, tables (TSV) and plots (SVG).
    OUTPUT/runs keeps translations: what was interrupted goes on when started again."""
    from dataclasses import replace
    from json import dumps

    from tmnmt.engine.loading import load_layers, load_on
    from tmnmt.engine.settings import Settings, check
    from tmnmt.eval.cache.files import SCORES, score_lines, write_report
    from tmnmt.eval.cache.report import Analysis, Arm, arms_of, sizes_of

    use_threads(threads)
    loaded = load_on(model, "cpu")
    layers = load_layers(loaded, "cpu")
    if layers is None or layers.cache is None:
        raise UsageError(f"{model}: this model has no parameters for a session cache")
    at, overwrite = at or layers.cache.kind.size, layers.cache.kind.overwrite
    settings = Settings(beam=beam, length_penalty=length_penalty, remember="own")
    check(replace(settings, cache=at, cache_best=best), layers, loaded)
    sets = _read(test, loaded.config["src_lang"], loaded.config["tgt_lang"])
    runs = output / "runs"
    analyses = [
        Analysis(loaded, layers, name, segments, settings, runs) for name, segments in sets.items()
    ]
    if segment is not None:
        for analysis in analyses:
            analysis.preceding(segment)
    runs.mkdir(parents=True, exist_ok=True)
    with interruption_note(f"start again to go on: {runs} has what is done"):
        tests = [
            analysis.results(arms_of(size, at, best, overwrite), Arm(at, overwrite), segment)
            for analysis in analyses
        ]
    metadata = {
        "model": loaded.hash,
        "parameters": sizes_of(loaded, layers),
        "beam": beam,
        "length_penalty": length_penalty,
    }
    report = write_report(output, metadata, tests)
    if json:
        print(dumps(report, ensure_ascii=False))
        return
    for line in [SCORES, *score_lines(tests)]:
        print("\t".join(line))


def _read(paths: list[Path], src_lang: str, tgt_lang: str) -> dict[str, list[Segment]]:
    """The segments of every file, under its name up to the first full stop."""
    from tmnmt.formats import read_memory

    tests: dict[str, list[Segment]] = {}
    for path in paths:
        name = path.name.split(".")[0]
        readable(name)
        if name in tests:
            raise UsageError(
                f"{path}: another test set is called {name} already; files must differ in their "
                "names"
            )
        tests[name] = list(read_memory(path, src_lang, tgt_lang))
        if not tests[name]:
            raise DataError(f"{path}: no segment to translate")
    return tests
