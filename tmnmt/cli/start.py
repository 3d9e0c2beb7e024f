"""`tmnmt start`: from the files of a memory to the first translation."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tmnmt.cli.options import folder, interruption_note, use_threads
from tmnmt.config.options import Threads
from tmnmt.errors import UsageError
from tmnmt.quantities import quantity

if TYPE_CHECKING:
    from tmnmt.eval.start import Place, StartRecord

SAMPLE = 200  # segments that are kept out, where nothing is said
GOES_ON = "the same command goes on where this one stopped"


def start(
    memories: Annotated[
        list[Path],
        typer.Argument(
            metavar="MEMORY",
            help="TMX, TSV, JRC-Acquis alignment, XLIFF, PO, also packed; or the PREFIX of two "
            "plain files.",
        ),
    ],
    src_lang: Annotated[str, typer.Option(help="Language translated from, such as en.")],
    tgt_lang: Annotated[str, typer.Option(help="Language translated into, such as es.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder to make, or to go on with.", callback=folder),
    ],
    base: Annotated[
        Path | None,
        typer.Option(help="Model folder, or a folder as import-model takes it."),
    ] = None,
    get: Annotated[
        bool, typer.Option("--get", help="Fetch a published model, as get-model does.")
    ] = False,
    registry: Annotated[
        str, typer.Option(help="With --get: address or file of the list of models.")
    ] = "",
    architecture: Annotated[
        str, typer.Option(help="With --get: base-memory, base or tiny, which is faster.")
    ] = "",
    via: Annotated[
        str,
        typer.Option(
            help="With --get: two models, into this language and from it, for a pair that has none."
        ),
    ] = "",
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Train a base of its own for so long, where no published model has the languages.",
        ),
    ] = None,
    sample: Annotated[
        int, typer.Option(min=10, max=10_000, help="Segments that are kept out and translated.")
    ] = SAMPLE,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of a TSV, counted from 1: src=5,tgt=6,doc=1; else by its header."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
    threads: Threads = None,
) -> None:
    """Begin with a memory of your own: index it, try it on a sample of itself, and say what to type
    next.

    A sample of whole documents is kept out of the memory (of stretches of neighbouring segments,
    where it has too few documents). A base model translates the sample alone, with the rest of the
    memory, and with what is confirmed as it goes; all of that is measured. Then all of the memory
    is indexed. Nothing is fetched without --get, nothing trained without --minutes. Without a model
    you are told which one is published. Every step is also a command of its own, and a step that is
    done is not done again."""
    if base is not None and get:
        raise UsageError("--base and --get exclude each other: the one names a model that is there")
    if minutes is not None and (base is not None or get):
        raise UsageError("--minutes trains a base; it excludes --base and --get")
    if (registry or architecture or via) and not get:
        raise UsageError("--registry, --architecture and --via go with --get")
    with interruption_note(GOES_ON):
        findings = _start(
            memories,
            (src_lang, tgt_lang),
            output,
            base,
            get,
            (registry, architecture, via),
            minutes,
            sample,
            columns,
            threads,
        )
    if as_json:
        print(json.dumps(findings, ensure_ascii=False, indent=1))
    else:
        print("\n".join(_report(findings)))


def _start(
    memories: list[Path],
    languages: tuple[str, str],
    output: Path,
    base: Path | None,
    get: bool,
    published: tuple[str, str, str],
    minutes: float | None,
    sample: int,
    columns: str | None,
    threads: int | None,
) -> dict[str, Any]:
    """All steps; what they found."""
    from tmnmt.cli.get_model import obtain
    from tmnmt.formats import parse_columns
    from tmnmt.formats.languages import check_pair
    from tmnmt.index.back_ends import prepare_search

    check_pair(*languages)
    column_map = parse_columns(columns) if columns is not None else None
    if base is not None:
        _check_base(base)
    prepare_search()

    from tmnmt.allocator import keep_freed
    from tmnmt.eval import start as steps

    place = steps.Place(output)
    record = steps.begun_with(memories, *languages, columns or "", sample)
    place.begin(record)
    if get and not place.base.exists():
        registry, architecture, pivot = published
        obtain(registry, *languages, architecture, place.base, pivot)
    model = steps.base_folder(place, base, languages)
    manifest, report = steps.keep_sample(place, memories, languages, sample, column_map)
    if report is not None:
        print(report, file=sys.stderr)
    if minutes is not None and model is None:
        from tmnmt.eval.first_base import train_first_base

        model = train_first_base(place.folder, place.split, languages, minutes, threads)
    use_threads(threads)
    keep_freed()
    calibration = steps.calibrate_base(place, model) if model is not None else None
    measured = steps.measure(place, model, languages)
    steps.index_all(place, memories, languages, column_map, calibration)
    return {
        "place": str(output),
        "sample": steps.sample_of(manifest),
        "calibration": calibration.record() if calibration is not None else None,
        "faults": steps.faults_of(place, model),
        "figures": steps.figures(measured),
        "examples": steps.examples(place),
        "verdict": steps.verdict(measured),
        "model": str(model) if model is not None else None,
        "published": [] if model is not None else _published(languages),
        "next": _next(place, model, languages, _command_words(record, output)),
    }


def _check_base(base: Path) -> None:
    """Raises UsageError or ModelError for what is no model, as far as that is seen at once."""
    from tmnmt.models.addresses import is_address
    from tmnmt.models.foreign import check_parts, check_path, is_model_folder

    if is_address(base):
        return
    if not base.exists():
        raise UsageError(f"{base}: there is no such folder")
    if not is_model_folder(base):
        check_path(base)
        check_parts(base)


def _published(languages: tuple[str, str]) -> list[str]:
    """The models of these languages that are known, in words."""
    from tmnmt.model_import.published import SNAPSHOT_DATE, known_models

    published = {languages: known_models(*languages)}
    if not published[languages] and (pairs := _by_english(languages)):
        published = {pair: known_models(*pair) for pair in pairs}
    if not any(published.values()):
        return [
            f"Of {' to '.join(languages)} no published model is known to this version (list of "
            f"{SNAPSHOT_DATE}); tmnmt get-model --list asks what there is now"
        ]
    return [
        f"{' to '.join(pair)}: {model}" for pair, models in published.items() for model in models
    ]


def _by_english(languages: tuple[str, str]) -> list[tuple[str, str]]:
    """The two pairs that lead from one language to the other by English, where models of both are
    known."""
    from tmnmt.model_import.published import PIVOT_LANGUAGE, known_models

    pairs = [(languages[0], PIVOT_LANGUAGE), (PIVOT_LANGUAGE, languages[1])]
    return pairs if all(known_models(*pair) for pair in pairs) else []


def _next(
    place: Place, model: Path | None, languages: tuple[str, str], words: Sequence[str]
) -> list[str]:
    """The commands to type now; `words`: the words of this one."""
    from tmnmt.model_import.published import PIVOT_LANGUAGE, known_models

    index = str(place.index)
    if model is not None:
        files = ["document.txt", "--output", f"document.{languages[1]}.txt"]
        return [_command("translate", "--model", str(model), "--memory", index, *files)]
    if known_models(*languages):
        return [_command(*words, "--get")]
    if _by_english(languages):
        return [_command(*words, "--get", "--via", PIVOT_LANGUAGE)]
    return [_command(*words, "--base", "FOLDER"), _command("search", "--index", index, "TEXT")]


def _command_words(record: StartRecord, output: Path) -> list[str]:
    """The words of a command that goes on with this start."""
    languages = ["--src-lang", record.src_lang, "--tgt-lang", record.tgt_lang]
    columns = ["--columns", record.columns] if record.columns else []
    sample = ["--sample", str(record.sample)] if record.sample != SAMPLE else []
    files = [name for name, _ in record.files]
    return ["start", *files, *languages, *columns, *sample, "-o", str(output)]


def _command(*words: str) -> str:
    return shlex.join(["tmnmt", *words])


def _report(findings: Mapping[str, Any]) -> Iterator[str]:
    sample = findings["sample"]
    kind = "stretch of neighbours" if sample["stretch"] else "document"
    yield (
        f"sample: {quantity(sample['segments'], 'segment')} of "
        f"{_plural(sample['documents'], kind)}, kept out of the memory; "
        f"{quantity(sample['same_source_dropped'], 'segment')} with a source of the sample dropped "
        f"from the rest, which has {sample['rest']:,}"
    )
    yield ""
    yield f"{'':12} {'BLEU':>6} {'chrF2++':>8}   of {quantity(sample['segments'], 'segment')}"
    for name, scores in findings["figures"].items():
        yield f"{name:12} {scores['BLEU']:6.1f} {scores['chrF2++']:8.1f}"
    for example in findings["examples"]:
        yield ""
        for name, text in example.items():
            if name != "match":
                yield f"  {name:12} {text}"
    yield ""
    yield from findings["verdict"]
    if findings["published"]:
        yield ""
        yield "There is no model yet, so nothing was translated. Published ones:"
        yield from (f"  {line}" for line in findings["published"])
    yield ""
    place = findings["place"]
    if findings["faults"]["counts"]:
        yield from _faults(findings)
    yield f"index of all of the memory: {place}/index; report: {place}/measured/report.html"
    yield "next:"
    yield from (f"  {command}" for command in findings["next"])


def _faults(findings: Mapping[str, Any]) -> Iterator[str]:
    """What is to be looked at in the memory, and the command that lists it."""
    from tmnmt.cli.evaluate_prepare import said_of_faults

    faults = findings["faults"]
    command = ["memory", "clean", "--index", f"{findings['place']}/index"]
    model = ["--model", findings["model"]] if "unrelated" in faults["counts"] else []
    yield f"to look at: {said_of_faults(faults)}: {_command(*command, *model)}"


def _plural(count: int, noun: str) -> str:
    head, _, rest = noun.partition(" ")
    plural = {"stretch": "stretches", "document": "documents"}[head]
    return f"{count:,} {head if count == 1 else plural}{' ' + rest if rest else ''}"
