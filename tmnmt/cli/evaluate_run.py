"""`tmnmt evaluate run`, `score`: from a recipe or from plain files to a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tmnmt.cli.options import folder, interruption_note, readable, use_threads
from tmnmt.config.options import Threads
from tmnmt.errors import UsageError

if TYPE_CHECKING:
    from tmnmt.eval.measures.learned_measure import LearnedMeasure
    from tmnmt.eval.measures.measure import Output, TestSet
    from tmnmt.eval.run import Run
    from tmnmt.index.base import BuiltIndex

OUT = Annotated[
    Path,
    typer.Option(
        "--out",
        help="Folder for report.html, report.md, report.json and segments.jsonl.",
        callback=folder,
    ),
]

MEASURE = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        metavar="NAME=COMMAND",
        help="A learned measure: a command that reads lines of JSON with src, mt and ref, and "
        "writes a number a line; may be repeated.",
    ),
]
SCORES = Annotated[
    list[str] | None,
    typer.Option(
        "--scores",
        metavar="NAME=FILE",
        help="A learned measure: lines of JSON with src, mt, ref and score; may be repeated.",
    ),
]


def run(
    out: OUT,
    recipe: Annotated[
        Path | None,
        typer.Argument(help="TOML that names test sets, models, memories and systems."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Without a recipe: the model folder that is measured.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="Without a recipe: the memory, an index, its address or a memory file."),
    ] = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(
            help="Without a recipe: memory file whose targets are the references; may be repeated."
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns of --test in TSV without a header, as src=5,tgt=6,doc=1."),
    ] = None,
    allow_leaks: Annotated[
        bool,
        typer.Option("--allow-leaks", help="Warn where --memory has references, and measure."),
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this system and the baseline; may be repeated.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="System the others are compared with, in place of the recipe's."),
    ] = None,
    measure: MEASURE = None,
    scores: SCORES = None,
    threads: Threads = None,
) -> None:
    """Translate with every system of a recipe and measure them. Without a recipe, give --model,
    --test and mostly --memory: the model alone, the memory alone, both, and both beside a person
    who confirms. Translations are kept in OUT: a run that was stopped goes on where it was, and a
    changed setting translates again only what it touches."""
    options = {
        "--model": model,
        "--memory": memory,
        "--test": test,
        "--columns": columns,
        "--allow-leaks": allow_leaks,
    }
    excluded = [name for name, value in options.items() if value]
    if recipe is not None and excluded:
        raise UsageError(f"{excluded[0]} and a recipe exclude each other: the recipe says it")
    if recipe is None and (model is None or not test):
        raise UsageError("give a recipe, or --model and --test, and --memory where there is one")
    measures = _measures(measure or [], scores or [])
    if recipe is not None:
        _run_recipe(recipe, out, only or [], baseline, measures, threads)
    elif model is not None and test:
        subject = _Standard(model, memory, test, columns or "", allow_leaks)
        _run_standard(subject, out, only or [], baseline, measures, threads)
    tell(out)


def _run_recipe(
    recipe: Path,
    folder: Path,
    systems: list[str],
    baseline: str | None,
    measures: list[LearnedMeasure],
    threads: int | None,
) -> None:
    import hashlib

    from tmnmt.eval.recipe import load_recipe, with_measures

    # what is wrong in it is told before torch is imported
    loaded = with_measures(load_recipe(recipe, systems, baseline), measures)

    from tmnmt.eval.run import Run

    _prepare(threads)
    try:
        _go(Run(loaded, folder), hashlib.sha256(recipe.read_bytes()).hexdigest())
    except UsageError as error:
        raise UsageError(f"{recipe}: {error}") from error


class _Standard(NamedTuple):
    """What is measured where there is no recipe."""

    model: Path
    memory: str | None
    test: list[Path]
    columns: str
    allow_leaks: bool


def _run_standard(
    subject: _Standard,
    folder: Path,
    systems: list[str],
    baseline: str | None,
    measures: list[LearnedMeasure],
    threads: int | None,
) -> None:
    from tmnmt.index.back_ends import local_path

    memory = local_path(subject.memory) if subject.memory else None
    _check_there([subject.model, *subject.test, *([memory] if memory is not None else [])])

    from tmnmt.engine.loading import languages_of, load_layers
    from tmnmt.engine.settings import served_modes
    from tmnmt.eval.recipe import narrowed, with_measures
    from tmnmt.eval.run import Run
    from tmnmt.eval.standard_recipe import standard_recipe
    from tmnmt.models.folder import load_model

    _prepare(threads)
    loaded = load_model(subject.model)
    layers = load_layers(loaded, "cpu")
    recipe = standard_recipe(
        subject.model,
        subject.memory,
        subject.test,
        languages_of(loaded, None, None),
        served_modes(layers, loaded),
        layers is not None and layers.cache is not None,
        subject.columns,
        subject.allow_leaks,
    )
    recipe = with_measures(narrowed(recipe, systems, baseline), measures)
    _go(
        Run(recipe, folder, models={recipe.name: (loaded, layers)}, allowing="give --allow-leaks"),
        None,
    )


def _prepare(threads: int | None) -> None:
    from tmnmt.allocator import keep_freed

    use_threads(threads)
    keep_freed()


def _go(run: Run, recipe_sha256: str | None) -> None:
    from tmnmt.eval.translated import GOES_ON

    with interruption_note(GOES_ON):
        run(recipe_sha256)


def score(
    ref: Annotated[
        list[Path], typer.Option("--ref", help="References, one segment a line; may be repeated.")
    ],
    hyp: Annotated[
        list[str],
        typer.Option("--hyp", metavar="NAME=FILE", help="A system's output; may be repeated."),
    ],
    out: OUT,
    sources: Annotated[
        Path | None, typer.Option(help="File of the sources: for consistency, and for --memory.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="Index or memory file the segments are banded by.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="System the others are compared with; the first.")
    ] = None,
    allow_leaks: Annotated[
        bool,
        typer.Option("--allow-leaks", help="Warn where --memory has references, and measure."),
    ] = False,
    src_lang: Annotated[str | None, typer.Option(help="Language of the sources.")] = None,
    tgt_lang: Annotated[
        str | None,
        typer.Option(
            help="Language of the references; zh, ja and ko have tokenisers of their own."
        ),
    ] = None,
    measure: MEASURE = None,
    scores: SCORES = None,
) -> None:
    """Measure outputs that lie in plain files: one segment a line, as many lines as the references.
    A line that is blank in all files parts documents."""
    from tmnmt.eval.score import output_warnings, read_output, read_test

    files = _parse_names("--hyp", hyp, "FILE")
    measures = _measures(measure or [], scores or [])
    if memory is not None and sources is None:
        raise UsageError("--memory needs --sources: they are what is looked up")
    if allow_leaks and memory is None:
        raise UsageError("--allow-leaks needs --memory: it is what references may stand in")
    if baseline is not None and baseline not in files:
        raise UsageError(
            f"--baseline {baseline}: no --hyp has this name; there are: {', '.join(files)}"
        )
    _check_there(
        [
            *ref,
            *map(Path, files.values()),
            *([sources] if sources is not None else []),
        ]
    )
    test, numbers, lines = read_test(ref[0].name, (src_lang or "", tgt_lang or ""), ref, sources)
    outputs = [
        read_output(name, Path(path), lines, numbers, ref[0]) for name, path in files.items()
    ]
    test = _looked_up(test, memory, allow_leaks, output_warnings(outputs))
    _measure(test, outputs, baseline or outputs[0].name, out, measures)


def _parse_names(option: str, words: list[str], kind: str) -> dict[str, str]:
    """What stands behind every name. kind: what that is, as the help says it."""
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"{option} {word}: write NAME={kind}")
        readable(name)
        if name in values:
            raise UsageError(f"{option} {word}: there is another of the name {name}")
        values[name] = value
    return values


def _measures(commands: list[str], files: list[str]) -> list[LearnedMeasure]:
    """The learned measures that are named, each checked."""
    from tmnmt.eval.measures.learned_measure import LearnedMeasure, check_all

    by_command = _parse_names("--measure", commands, "COMMAND")
    by_file = _parse_names("--scores", files, "FILE")
    _check_there([*map(Path, by_file.values())])
    measures = [
        *(LearnedMeasure(name, command=command) for name, command in by_command.items()),
        *(LearnedMeasure(name, scores=file) for name, file in by_file.items()),
    ]
    check_all(measures)
    return measures


def _check_there(paths: list[Path]) -> None:
    from tmnmt.errors import DataError
    from tmnmt.models.addresses import is_address

    absent = [str(path) for path in paths if not path.exists() and not is_address(path)]
    if absent:
        raise DataError(f"no such file: {', '.join(absent)}")


def _looked_up(
    test: TestSet, memory: str | None, allow_leaks: bool, warnings: list[str]
) -> TestSet:
    """The test set with its best matches and the pairs of the memory. DataError where the memory
    has its references and may not."""
    from dataclasses import replace

    from tmnmt.eval.data.memory import Memory, leak_warnings
    from tmnmt.eval.data.near_leaks import near_leaks
    from tmnmt.eval.score import best_matches
    from tmnmt.progress import Progress

    if memory is None:
        return replace(test, warnings=warnings)
    with _open(memory, test.src_lang, test.tgt_lang) as index:
        with Progress("reading the memory", "segments", len(index), lazy=True) as progress:
            content = Memory(index, progress)
        warnings = [
            *leak_warnings(test, memory, content, allow_leaks, "give --allow-leaks"),
            *warnings,
        ]
        return replace(
            test,
            src_lang=test.src_lang or index.src_lang,
            tgt_lang=test.tgt_lang or index.tgt_lang,
            best=best_matches(index, test.sources),
            pairs=content.pairs,
            warnings=warnings,
            leaks=near_leaks(test.references, {f"memory {memory}": content.targets}),
        )


def _open(memory: str, src_lang: str, tgt_lang: str) -> BuiltIndex:
    """The memory; an index knows its languages, of a memory file they have to be given."""
    from tmnmt.index.back_ends import is_index, open_index
    from tmnmt.index.opening import open_memory
    from tmnmt.progress import Progress

    if is_index(memory):
        return open_index(memory, src_lang or None, tgt_lang or None)
    if not src_lang or not tgt_lang:
        raise UsageError(
            f"--memory {memory}: give --src-lang and --tgt-lang, which say what is read of a "
            "memory file"
        )
    with Progress("indexing", "segments", lazy=True) as progress:
        return open_memory(memory, src_lang, tgt_lang, progress.advance)


def _measure(
    test: TestSet,
    outputs: list[Output],
    baseline: str,
    folder: Path,
    measures: list[LearnedMeasure],
) -> None:
    import time
    from dataclasses import replace

    from tmnmt.eval.measures.effort import WEIGHTS
    from tmnmt.eval.measures.learned import score_all
    from tmnmt.eval.measures.measure import Measured
    from tmnmt.eval.measures.metrics import metrics
    from tmnmt.eval.report.write import write_report
    from tmnmt.progress import Progress

    start = time.monotonic()
    lines = [output.lines for output in outputs]
    scored, absent = score_all(measures, test.sources, test.references, lines, folder)
    test = replace(test, warnings=[*test.warnings, *absent])
    with Progress("measuring", "segments", len(test) * len(metrics(test.tgt_lang))) as progress:
        measured = Measured(
            test, outputs, baseline, WEIGHTS, lambda n, _: progress.advance(n), scored
        )
    write_report(folder, test.name, "", [measured], start, None)
    tell(folder)


def tell(run: Path) -> None:
    """Writes the page of a run that is measured, and prints its table."""
    from tmnmt.eval.report.html import write_report
    from tmnmt.eval.report.write import TABLE

    page = write_report(run)
    print((run / TABLE).read_text(encoding="utf-8"), end="")
    print(f"written: {page}", file=sys.stderr)
