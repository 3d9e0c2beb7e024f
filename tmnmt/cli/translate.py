"""`tmnmt translate`: text through a model with its memories."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO, cast

import typer

from tmnmt.cli.as_it_comes import Computing, translations
from tmnmt.cli.files import Job, jobs
from tmnmt.cli.work import Work
from tmnmt.cli.written import Writing, Written
from tmnmt.config.options import (
    Confirming,
    Decoding,
    Device,
    Language,
    Mode,
    Neighbours,
    Options,
    Output,
    Penalties,
    Remembering,
    Search,
    Selection,
    Threads,
    changed,
)
from tmnmt.counted import counted
from tmnmt.errors import UsageError
from tmnmt.progress import Progress

if TYPE_CHECKING:
    from io import BufferedReader

    from tmnmt.engine.filling import Documents
    from tmnmt.engine.translator import Translator
    from tmnmt.formats.text import DocumentLines
    from tmnmt.records import Where
    from tmnmt.segments import Translation


def translate(
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="INPUT",
            help="Lines, or XLIFF, PO, TMX, HTML, Markdown, JSON, properties; - or none: stdin.",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The model; none: exact matches of the memory alone."),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            "--memory",
            metavar="PLACE",
            help="Index, its Elasticsearch address, or file; may be repeated.",
        ),
    ] = None,
    tag: Annotated[
        str,
        typer.Option(
            help="The target language, as fra of >>fra<<: of a model with several, and no --memory."
        ),
    ] = "",
    running_text: Annotated[
        bool,
        typer.Option(
            "--running-text",
            help="Sentences are the segments: of paragraphs of text, of HTML, of Markdown.",
        ),
    ] = False,
    output: Output = Output(),
    confirming: Confirming = Confirming(),
    decoding: Decoding = Decoding(),
    search: Search = Search(),
    selection: Selection = Selection(),
    remembering: Remembering = Remembering(),
    neighbours: Neighbours = Neighbours(),
    worth: Penalties = Penalties(),
    src_lang: Language = None,
    tgt_lang: Language = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Translate text or files of translators.

    Text has one segment a line, and as many lines come out. An empty line, or a new file, starts a
    new document. XLIFF, PO and other files come out as they are, with targets in them.

    Lines are written at once to stdout, or whole at the end to --output; after Ctrl-C or an error
    what is finished is in OUTPUT.partial. Lines from a pipe are answered as they come. Without
    --threads one thread translates up to 32 segments, and all cores translate more."""
    shown, mode, write_to = output.shows_origins, decoding.mode, confirming.write_to
    # else typed lines are answered and that is all
    edits = not shown and model is not None and remembering.remember != "own" and not tag
    talks = not inputs and edits and sys.stdin.isatty() and sys.stdout.isatty()
    work = Work(
        replace(confirming, interactive=confirming.interactive or talks), inputs or [], shown
    )
    work.check(output.file, remembering.remember)
    if not work.options.confirms:
        _check_nothing_is_confirmed(confirming, remembering)
    if mode not in (None, "off") and not memory and not work.options.confirms:
        raise UsageError(f"--mode {mode} needs a --memory to read")
    if tag and (work.options.confirms or model is None):
        raise UsageError("--tag is of a --model, in a run where nothing is confirmed")
    if neighbours.neighbours and not memory:
        raise UsageError("--neighbours needs a --memory, and its keys: tmnmt keys")
    if model is None:
        groups = (decoding, remembering, neighbours, confirming, selection)
        _check_without_model(groups, output, memory)
    elif output.untranslated != "empty":
        raise UsageError("--untranslated is of a run without --model, which translates everything")
    todo = _files(inputs or [], output, work, tag, running_text)
    if todo:
        from tmnmt.cli.pretranslation import languages_of
        from tmnmt.models.folder import languages_in

        languages = (src_lang, tgt_lang)
        both = languages_in(model) if model else languages_of(memory or [], languages)
        for job in todo:
            job.read(*both)
    read = _read(memory, neighbours, confirming)
    _check_written(output, confirming, inputs or [], read, model, goes_on=bool(todo))
    texts = [] if todo else _checked(inputs or [Path("-")])
    lines_out = not todo or output.json or output.explain  # else the files themselves

    from tmnmt.formats.atomic import writing

    with (
        ExitStack() as stack
    ):  # the output first: that it cannot be written is told before the model is loaded
        to = (
            stack.enter_context(writing(output.file, keep_unfinished=True))
            if output.file is not None and lines_out
            else sys.stdout
        )
        quiet = output.file is None and sys.stdout.isatty()
        if model is None:
            from tmnmt.cli.pretranslation import pretranslate

            pretranslate(
                memory or [],
                (src_lang, tgt_lang),
                texts,
                todo,
                _writer(to, output) if lines_out else _unwritten,
                lines_out,
                output.untranslated,
                search,
                worth,
                decoding.verbatim,
            )
            return

        from tmnmt.engine.translator import Translator

        document = work.document(texts[0], model) if work.options.confirms else None
        page = (
            stack.enter_context(writing(output.explain_html, keep_unfinished=True))
            if output.explain_html is not None
            else None
        )
        computing = Computing(threads)
        stack.callback(computing.give_back)
        with Progress("indexing", "segments", lazy=True) as progress:
            translator = Translator.load(
                model,
                memory or (),
                write_to=write_to,
                search=search,
                selection=selection,
                remembering=remembering,
                neighbours=neighbours,
                decoding=decoding,
                worth=worth,
                src_lang=src_lang,
                tgt_lang=tgt_lang,
                device=device,
                threads=threads,
                progress=progress.advance,
            )
        _tell(translator, model, memory or [], mode)
        write = _writer(to, output) if lines_out else _unwritten
        if page is not None:
            write = stack.enter_context(_also_on_page(write, page, translator))
        written = Written(write)
        try:
            if todo:
                _fill(translator, todo, written, shown, computing, lines_out)
            elif document is not None:
                work.do(translator, document, written, output.file, write_to)
            elif not any(isinstance(text.source, Path) for text in texts) and sys.stdin.isatty():
                _talk(translator, texts[0], written, shown, tag)
            else:
                _run(translator, texts, written, shown, computing, quiet, tag)
        except KeyboardInterrupt as stop:
            if not written.lines and page is None and not work.options.interactive:
                stop.add_note("nothing was finished")
            elif output.file is None:
                stop.add_note("what was finished is in the output")
            raise
        finally:
            _warn(translator, texts)
            written.warn(translator.low, len(texts), len(todo))


def _tell(translator: Translator, model: Path, memory: list[str], mode: Mode | None) -> None:
    """What a user would not expect of this model."""
    if memory and mode is None and translator.settings.mode == "off":
        print(
            f"tmnmt: warning: {model} has no parameters to read a memory with; only exact "
            "matches are taken of it",
            file=sys.stderr,
        )


def _check_nothing_is_confirmed(confirming: Confirming, remembering: Remembering) -> None:
    """Raises UsageError for an option of what is confirmed."""
    is_set = {
        "--write-to": confirming.write_to is not None,
        "--confirm-to": remembering.confirm_to != "both",
        "--cache": bool(remembering.cache) and remembering.remember != "own",
    }
    for option, is_given in is_set.items():
        if is_given:
            raise UsageError(
                f"{option} is of what is confirmed, and nothing is in this run: --interactive, "
                "--confirmed, --session"
            )


def _check_without_model(
    groups: tuple[Options, ...], output: Output, memory: list[str] | None
) -> None:
    """Raises UsageError for an option that only a model serves."""
    options = [each for each in chain.from_iterable(map(changed, groups)) if each != "--verbatim"]
    options += ["--explain-html"] if output.explain_html is not None else []
    if options:
        raise UsageError(
            f"{options[0]} needs a --model; without one exact matches are taken, and nothing else "
            "is done"
        )
    if not memory:
        raise UsageError("there is nothing to translate with: give a --model, a --memory, or both")


def _read(memory: list[str] | None, neighbours: Neighbours, confirming: Confirming) -> list[str]:
    """The memories, and what else is read beside the inputs."""
    from tmnmt.engine.named_memories import named

    others = (neighbours.knn_adaptive, confirming.write_to)
    places = [str(named(each).place) for each in memory or []]
    return [*places, *(str(place) for place in others if place)]


def _check_written(
    output: Output,
    confirming: Confirming,
    inputs: list[Path],
    read: list[str],
    model: Path | None,
    goes_on: bool,
) -> None:
    """Raises UsageError where what is written would take the place of something else. `goes_on`:
    the input may be what an interrupted run left of this output."""
    from tmnmt.formats.atomic import partial_of

    page = output.explain_html
    if page is not None and output.file is not None and page.resolve() == output.file.resolve():
        raise UsageError(f"--explain-html and --output both name {page}")
    for name, path in (
        ("--output", output.file),
        ("--explain-html", page),
        ("--session", confirming.session),
    ):
        _spare(name, path, read, model)
        _spare_inputs(name, path, inputs)
    for name, path in (("--output", output.file), ("--explain-html", page)):
        if path is not None:  # where it is kept unfinished, which is removed when it is whole
            _spare(name, partial_of(path), read, model)
            if not goes_on:
                _spare_inputs(name, partial_of(path), inputs)


def _files(
    inputs: list[Path], output: Output, work: Work, tag: str, running_text: bool
) -> list[Job]:
    """Files that translators work on, if the inputs are such. Raises UsageError for options that
    are of lines of text."""
    if running_text and (not inputs or Path("-") in inputs):
        raise UsageError("--running-text is of files: name one")
    todo = jobs(inputs, output.file, output.overwrite, running_text)
    if todo and work.options.confirms:
        raise UsageError(
            f"--interactive, --confirmed and --session are of text, not of {inputs[0]}"
        )
    if todo and tag:
        raise UsageError(f"--tag is of text; {inputs[0]} has a language of its own")
    if todo and output.untranslated != "empty":
        raise UsageError("--untranslated is of text; what has no match stays as it is in a file")
    if not todo and output.overwrite != "nothing":
        raise UsageError("--overwrite is of files with targets, such as XLIFF")
    is_told = todo and (output.json or output.explain)
    if is_told and output.file is not None and output.file.is_dir():
        raise UsageError("--json and --explain are written to one file, not a folder")
    return todo


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
    computing: Computing,
    quiet: bool,
    tag: str,
) -> None:
    if quiet:  # the output itself shows how far it is
        for translation in translations(translator, inputs, explain, computing, tag):
            write(translation)
        return
    with Progress("translating", "segments", _lines(inputs)) as progress:
        for translation in translations(
            translator, inputs, explain, computing, tag, progress.advance
        ):
            write(translation)


def _fill(
    translator: Translator,
    todo: list[Job],
    written: Written,
    explain: bool,
    computing: Computing,
    lines_out: bool,
) -> None:
    """Fills files that translators work on."""

    def translated(texts: Documents, finished: Callable[[], None]) -> Iterator[Translation]:
        return translator.stream(texts, explain, finished=finished)

    computing.use_for(sum(job.wanted for job in todo))
    for job in todo:
        job.do(translated, written, lines_out)


def _unwritten(translation: Translation, where: Where | None = None) -> None:
    """Nothing is printed for it: it goes into a file."""


def _talk(
    translator: Translator,
    lines: DocumentLines,
    write: Callable[[Translation], None],
    explain: bool,
    tag: str,
) -> None:
    """Answers every line that is typed; an empty one starts a new document."""
    session = translator.session()
    for line in lines:
        write(
            translator.translate([line], explain, tag)[0]
            if tag
            else session.translate(line, explain)
        )
        if not line.strip():
            session = translator.session()


def _writer(to: TextIO, output: Output) -> Writing:
    """What a translation is given to, to be printed to `to` in the form that was asked for."""
    from tmnmt.cli.explained import explained
    from tmnmt.records import json_line
    from tmnmt.text import one_line

    if output.explain:
        return explained(to)

    def write(translation: Translation, where: Where | None = None) -> None:
        print(
            json_line(translation, where) if output.json else one_line(translation.tgt),
            file=to,
            flush=to is sys.stdout,
        )

    return write


@contextmanager
def _also_on_page(write: Writing, to: TextIO, translator: Translator) -> Iterator[Writing]:
    """`write` that writes to the page `to`, too; the page ends with the block where
    that ends well."""
    from tmnmt.cli.page import Page

    page = Page(to, translator)

    def both(translation: Translation, where: Where | None = None) -> None:
        write(translation, where)
        page.add(translation)

    yield both
    page.end()


def _warn(translator: Translator, inputs: list[DocumentLines]) -> None:
    from tmnmt.engine.translator import CONTROL

    is_told = any(text.control for text in inputs)  # at its end every input says so itself
    for what, count in translator.counts.items():
        if count and not (is_told and what == CONTROL):
            print(f"tmnmt: warning: {counted(count, 'segment')} {what}", file=sys.stderr)
    unknown = translator.unknown
    if unknown.characters:
        print(
            f"tmnmt: warning: {counted(unknown.characters, 'character')} in "
            f"{counted(unknown.segments, 'segment')} are not in this model's vocabulary: the words "
            "with them are copied from the source",
            file=sys.stderr,
        )
