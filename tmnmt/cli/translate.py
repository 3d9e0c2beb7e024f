"""`tmnmt translate`: text through a model with its memories."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO, cast

import typer

from tmnmt.cli.as_it_comes import Threads, translations
from tmnmt.cli.model_options import DEVICE, THREADS
from tmnmt.cli.output_options import file_or_stdout, no_stdout
from tmnmt.cli.selection_options import ALPHA, SELECT, SIMILARITY
from tmnmt.cli.session_options import (
    CACHE,
    CACHE_BEST,
    CACHE_OVERWRITE,
    CONFIRM_TO,
    CONFIRMED,
    INTERACTIVE,
    REMEMBER,
    SESSION,
    WRITE_TO,
)
from tmnmt.cli.work import Work, check_used
from tmnmt.counted import counted
from tmnmt.errors import UsageError
from tmnmt.progress import Progress

if TYPE_CHECKING:
    from io import BufferedReader

    from tmnmt.engine.translator import Translator
    from tmnmt.formats.text import DocumentLines
    from tmnmt.segments import Translation


class PrecisionName(StrEnum):
    """Of the products with weights."""

    fp32 = "fp32"
    bf16 = "bf16"


class ModeName(StrEnum):
    """How the decoder uses the memory."""

    copy = "copy"
    fusion = "fusion"
    both = "both"
    knn = "knn"
    off = "off"


def translate(
    model: Annotated[
        Path | None,
        typer.Option(help="Model folder; none: exact matches of the memory alone are taken."),
    ] = None,
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[INPUT]...", help="Text, one segment a line; none or -: stdin."),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            "--memory",
            help="Built index, its Elasticsearch address, or memory file; several: the best of "
            "all.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Written whole, at the end; none or -: stdout.",
            callback=file_or_stdout,
        ),
    ] = None,
    mode: Annotated[
        ModeName | None,
        typer.Option(
            help="How the memory is used: copy when one is given, else off; knn: by neighbours "
            "alone."
        ),
    ] = None,
    interactive: INTERACTIVE = False,
    session: SESSION = None,
    confirmed: CONFIRMED = None,
    remember: REMEMBER = "confirmed",
    confirm_to: CONFIRM_TO = "both",
    write_to: WRITE_TO = None,
    cache: CACHE = None,
    cache_overwrite: CACHE_OVERWRITE = None,
    cache_best: CACHE_BEST = 1,
    top_k: Annotated[
        int,
        typer.Option(min=0, help="Pairs retrieved for a segment; 0: neighbours alone are read."),
    ] = 4,
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="Smallest fuzzy score of a pair.")
    ] = 0.5,
    select: SELECT = "topk",
    similarity: SIMILARITY = "fuzzy",
    alpha: ALPHA = None,
    verbatim: Annotated[
        bool,
        typer.Option(
            "--verbatim/--no-verbatim",
            help="A segment that a memory holds gets its translation there as it stands / is "
            "translated, too.",
        ),
    ] = True,
    untranslated: Annotated[
        Literal["empty", "source"],
        typer.Option(help="Without --model: what has no exact match is left empty, or as it is."),
    ] = "empty",
    neighbours: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Words of the whole memory, by the keys of tmnmt keys, read at every word; 16 "
            "with knn, else 0.",
        ),
    ] = None,
    knn_weight: Annotated[
        float, typer.Option(min=0, max=1, help="Of the neighbours' words with --mode knn, below 1.")
    ] = 0.02,
    knn_temperature: Annotated[
        float,
        typer.Option(min=0, help="Of the neighbours' squared distances with --mode knn, above 0."),
    ] = 20.0,
    knn_adaptive: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What tmnmt adapt-knn made: weighs the neighbours anew at every word.",
        ),
    ] = None,
    beam: Annotated[int, typer.Option(min=1, help="Hypotheses kept at every step.")] = 5,
    batch: Annotated[
        int, typer.Option(min=1, help="Segments (with a cache: documents) decoded side by side.")
    ] = 32,
    length_penalty: Annotated[
        float, typer.Option(min=0, help="Score = log probability / length to this power.")
    ] = 1.0,
    precision: Annotated[
        PrecisionName,
        typer.Option(
            help="Of products; bf16 is faster on CPUs that have it, and not quite the same."
        ),
    ] = PrecisionName.fp32,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show where every word comes from.")
    ] = False,
    explain_html: Annotated[
        Path | None,
        typer.Option(
            "--explain-html",
            metavar="FILE",
            help="Write a page that shows where every word comes from.",
            callback=no_stdout,
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="One line of JSON a segment, origins of tokens too.")
    ] = False,
    device: DEVICE = None,
    threads: THREADS = None,
    src_lang: Annotated[
        str | None, typer.Option(help="Language in memory files; the model's.")
    ] = None,
    tgt_lang: Annotated[
        str | None, typer.Option(help="Language in memory files; the model's.")
    ] = None,
) -> None:
    """Translate text, one segment a line, as many lines out as in. An empty line, or a new file,
    starts a new document.

    What is finished is written at once to stdout, or whole at the end to --output (after Ctrl-C or
    an error what there is to OUTPUT.partial); so is the page of --explain-html, which comes beside
    whatever else is written. On a terminal, with --interactive or without INPUT, every translation
    can be edited and is then confirmed.

    Lines from a pipe are answered as they come: together, before more are waited for. Without
    --threads one thread translates up to 32 lines, and all cores translate more."""
    if explain and json:
        raise UsageError("--explain and --json exclude each other")
    shown = explain or json or explain_html is not None
    edits = (
        not shown and model is not None and remember != "own"
    )  # else typed lines are answered and that is all
    talks = not inputs and edits and sys.stdin.isatty() and sys.stdout.isatty()
    work = Work(interactive or talks, session, confirmed, inputs or [], shown)
    work.check(output, remember)
    if not work.confirms:
        given = {
            "--write-to": write_to is not None,
            "--confirm-to": confirm_to != "both",
            "--cache": bool(cache) and remember != "own",
        }
        check_used(
            given,
            "is of what is confirmed, and nothing is in this run: --interactive, --confirmed, "
            "--session",
        )
    if mode not in (None, ModeName.off) and not memory and not work.confirms:
        raise UsageError(f"--mode {mode} needs a --memory to read")
    if neighbours and not memory:
        raise UsageError("--neighbours needs a --memory, and its keys: tmnmt keys")
    if model is None:
        given = {
            "--mode": mode is not None,
            "--no-verbatim": not verbatim,
            "--explain-html": explain_html is not None,
            "--remember": remember != "confirmed",
            "--neighbours": bool(neighbours),
            "--interactive": interactive,
            "--session": session is not None,
            "--confirmed": confirmed is not None,
            "--select": select != "topk",
            "--knn-adaptive": knn_adaptive is not None,
            "--similarity": similarity != "fuzzy",
        }
        check_used(
            given, "needs a --model; without one exact matches are taken, and nothing else is done"
        )
        if not memory:
            raise UsageError(
                "there is nothing to translate with: give a --model, a --memory, or both"
            )
    elif untranslated != "empty":
        raise UsageError("--untranslated is of a run without --model, which translates everything")
    if explain_html is not None:
        _check_page(explain_html, output)
    read = [
        *(memory or []),
        *([str(knn_adaptive)] if knn_adaptive else []),
        *([write_to] if write_to else []),
    ]
    for name, path in (
        ("--output", output),
        ("--explain-html", explain_html),
        ("--session", session),
    ):
        _spare(name, path, read, model)
        _spare_inputs(name, path, inputs or [])
    texts = _checked(inputs or [Path("-")])

    from tmnmt.formats.atomic import writing

    with (
        ExitStack() as stack
    ):  # the output first: that it cannot be written is told before the model is loaded
        to = (
            stack.enter_context(writing(output, keep_unfinished=True))
            if output is not None
            else sys.stdout
        )
        quiet = output is None and sys.stdout.isatty()
        if model is None:
            from tmnmt.cli.pretranslation import pretranslate

            pretranslate(
                memory or [],
                (src_lang, tgt_lang),
                texts,
                _writer(to, explain, json),
                untranslated,
                top_k,
                threshold,
            )
            return

        from tmnmt.engine.translator import Translator

        document = work.document(texts[0], model) if work.confirms else None
        page = (
            stack.enter_context(writing(explain_html, keep_unfinished=True))
            if explain_html is not None
            else None
        )
        computing = Threads(threads)
        stack.callback(computing.give_back)
        with Progress("indexing", "segments", lazy=True) as progress:
            translator = Translator.load(
                model,
                memory or (),
                mode.value if mode is not None else None,
                cache,
                top_k=top_k,
                threshold=threshold,
                beam=beam,
                batch=batch,
                length_penalty=length_penalty,
                precision=precision.value,
                device=device,
                threads=threads,
                src_lang=src_lang,
                tgt_lang=tgt_lang,
                progress=progress.advance,
                select=select,
                similarity=similarity,
                alpha=alpha,
                verbatim=verbatim,
                overwrite=cache_overwrite,
                cache_best=cache_best,
                neighbours=neighbours,
                knn_weight=knn_weight,
                knn_temperature=knn_temperature,
                knn_adaptive=knn_adaptive,
                remember=remember,
                confirm_to=confirm_to,
                write_to=write_to,
            )
        _tell(translator, model, memory or [], mode)
        write = _writer(to, explain, json)
        if page is not None:
            write = stack.enter_context(_also_on_page(write, page, translator))
        try:
            if document is not None:
                work.do(translator, document, write, output, write_to)
            elif not any(isinstance(text.source, Path) for text in texts) and sys.stdin.isatty():
                _talk(translator, texts[0], write, shown)
            else:
                _run(translator, texts, write, shown, computing, quiet)
        except KeyboardInterrupt as stop:
            if output is None:
                stop.add_note("what was finished is in the output")
            raise
        finally:
            _warn(translator, texts)


def _tell(translator: Translator, model: Path, memory: list[str], mode: ModeName | None) -> None:
    """What a user would not expect of this model."""
    if memory and mode is None and translator.settings.mode == "off":
        print(
            f"tmnmt: warning: {model} has no parameters to read a memory with; only exact "
            "matches are taken of it",
            file=sys.stderr,
        )


def _check_page(page: Path, output: Path | None) -> None:
    """Raises UsageError where the page would take the place of what else is written."""
    if output is not None and page.resolve() == output.resolve():
        raise UsageError(f"--explain-html and --output both name {page}")


def _spare(option: str, path: Path | None, memories: list[str], model: Path | None) -> None:
    """Raises UsageError where `path` is a memory, the model, a file of one, or what
    else is read."""
    for read in [*map(Path, memories), *([model] if model is not None else [])]:
        if (
            path is not None
            and read.exists()
            and read.resolve() in (path.resolve(), *path.resolve().parents)
        ):
            raise UsageError(f"{option} {path} would be written over {read}")


def _spare_inputs(option: str, path: Path | None, inputs: list[Path]) -> None:
    """Raises UsageError where `path` is a file that is to be translated, also by way of a link."""
    if (
        path is None or not path.is_file()
    ):  # nothing there, or a device, which is written to as it is
        return
    for text in inputs:
        if str(text) != "-" and text.exists() and path.samefile(text):
            raise UsageError(f"{option} {path} would be written over the input {text}")


def _checked(inputs: list[Path]) -> list[DocumentLines]:
    """What is to be read; a file that is missing, empty or no text is told before the model is
    loaded, a pipe not touched."""
    from tmnmt.formats.stream import file_source
    from tmnmt.formats.text import check_plain, read_document_lines

    sources = [
        path if str(path) != "-" else cast("BufferedReader", sys.stdin.buffer) for path in inputs
    ]
    for source in sources:
        if isinstance(source, Path) and not _is_pipe(source):
            with file_source(source).stream() as stream:
                check_plain(stream, str(source))
    return [read_document_lines(source) for source in sources]


def _is_pipe(path: Path) -> bool:
    """Or a device: what can be read only once."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _lines(inputs: list[DocumentLines]) -> int | None:
    """How many segments there are to translate; None when some come from stdin or a pipe."""
    from tmnmt.formats.encoding import lines
    from tmnmt.formats.stream import file_source

    total = 0
    for text in inputs:
        if not isinstance(text.source, Path) or _is_pipe(text.source):
            return None
        with file_source(text.source).stream() as stream:
            total += sum(1 for _ in lines(stream))
    return total


def _run(
    translator: Translator,
    inputs: list[DocumentLines],
    write: Callable[[Translation], None],
    explain: bool,
    threads: Threads,
    quiet: bool,
) -> None:
    translated = translations(translator, inputs, explain, threads)
    if quiet:  # the output itself shows how far it is
        for translation in translated:
            write(translation)
        return
    with Progress("translating", "segments", _lines(inputs)) as progress:
        for translation in translated:
            write(translation)
            progress.advance()


def _talk(
    translator: Translator,
    lines: DocumentLines,
    write: Callable[[Translation], None],
    explain: bool,
) -> None:
    """Answers every line that is typed; an empty one starts a new document."""
    session = translator.session()
    for line in lines:
        write(session.translate(line, explain))
        if not line.strip():
            session = translator.session()


def _writer(to: TextIO, explain: bool, json: bool) -> Callable[[Translation], None]:
    """What a translation is given to, to be printed to `to` in the form that was asked for."""
    from tmnmt.cli.explained import explained
    from tmnmt.records import json_line
    from tmnmt.text import one_line

    if explain:
        return explained(to)

    def write(translation: Translation) -> None:
        print(
            json_line(translation) if json else one_line(translation.tgt),
            file=to,
            flush=to is sys.stdout,
        )

    return write


@contextmanager
def _also_on_page(
    write: Callable[[Translation], None], to: TextIO, translator: Translator
) -> Iterator[Callable[[Translation], None]]:
    """`write` that writes to the page `to`, too; the page ends with the block where
    that ends well."""
    from tmnmt.cli.page import Page

    page = Page(to, translator)

    def both(translation: Translation) -> None:
        write(translation)
        page.add(translation)

    yield both
    page.end()


def _warn(translator: Translator, inputs: list[DocumentLines]) -> None:
    from tmnmt.engine.translator import CONTROL

    told = any(text.control for text in inputs)  # at its end every input says so itself
    for what, count in translator.counts.items():
        if count and not (told and what == CONTROL):
            print(f"tmnmt: warning: {counted(count, 'segment')} {what}", file=sys.stderr)
    if translator.low.segments:
        print(
            f"tmnmt: warning: {translator.low.segments:,} of "
            f"{counted(translator.low.of, 'segment')} scored lower than "
            "99 % of this model's dev text: unlike what it knows, so the translation may be "
            "nonsense",
            file=sys.stderr,
        )
