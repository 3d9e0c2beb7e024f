"""`tmnmt translate`: text through a model with its memories."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from tmnmt.cli.files import Job
from tmnmt.cli.interactive_session import Work
from tmnmt.cli.line_streaming import Computing, translations
from tmnmt.cli.options import MEMORIES, MODEL_OR_NONE
from tmnmt.cli.output_report import OutputReport, Writing
from tmnmt.cli.previous import PREVIOUS
from tmnmt.cli.translate_arguments import TranslateArguments, is_pipe
from tmnmt.config.options import (
    LANGUAGES,
    Confirming,
    FileFormat,
    Output,
    SegmentFilter,
    TranslationOptions,
)
from tmnmt.progress import Progress
from tmnmt.quantities import quantity

if TYPE_CHECKING:
    from tmnmt.batch.filling import Documents
    from tmnmt.batch.workers import WorkerPool
    from tmnmt.formats.encoding import LineForm
    from tmnmt.formats.text import DocumentLines
    from tmnmt.records import UnitLocation
    from tmnmt.segments import Translation
    from tmnmt.translator import Translator


def translate(
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="INPUT",
            help="Lines, or a file that `tmnmt analyse --help` names; - or none: stdin.",
        ),
    ] = None,
    model: MODEL_OR_NONE = None,
    memory: MEMORIES = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Memory files that another program rewrites are read again before the next "
            "segment.",
            rich_help_panel=SegmentFilter.title,
        ),
    ] = False,
    tag: Annotated[
        str,
        typer.Option(
            help="The target language, as fra of >>fra<<; without --memory.",
            rich_help_panel=LANGUAGES,
        ),
    ] = "",
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Translate documents by the workers of a Ray cluster: ray://HOST:PORT; --threads "
            "are those of each. The same command goes on where it was stopped.",
            rich_help_panel=LANGUAGES,
        ),
    ] = None,
    previous: PREVIOUS = None,
    running_text: Annotated[
        bool,
        typer.Option(
            "--running-text",
            help="Sentences are the segments: of text, of HTML, of Markdown.",
        ),
    ] = False,
    format: FileFormat = None,
    output: Output = Output(),
    confirming: Confirming = Confirming(),
    options: TranslationOptions = TranslationOptions(),
) -> None:
    """Translate text or files of translators.

    Text has one segment a line, and as many lines come out. An empty line, or a new file, starts a
    new document. XLIFF, PO and other files come out as they are, with targets in them.

    Lines are written at once to stdout, or whole at the end to --output; after Ctrl-C or an error
    what is finished is in OUTPUT.partial. Lines from a pipe are answered as they come. Without
    --threads one thread translates up to 32 segments, and all cores translate more."""
    arguments = TranslateArguments(
        inputs=inputs or [],
        model=model,
        memory=memory or [],
        tag=tag,
        running_text=running_text,
        format=format,
        output=output,
        confirming=confirming,
        options=options,
        watch=watch,
        previous=previous,
        workers=workers,
    )
    _translate(arguments)


def _translate(arguments: TranslateArguments) -> None:
    """Checks all that is asked for, opens what is written to, and has it translated."""
    output = arguments.output
    work = _work(arguments)
    work.check(output.file, arguments.options.remember)
    arguments = replace(arguments, confirming=work.options)
    arguments.check()
    todo = arguments.files()
    arguments = arguments.with_languages(todo)
    arguments.check_pairs()
    arguments.check_written(goes_on=bool(todo))
    texts = [] if todo else arguments.texts()
    lines_out = not todo or output.json or output.explain  # else the files themselves

    from tmnmt.formats.atomic import writing
    from tmnmt.formats.encoding import LineForm

    # the output first: that it cannot be written is told before the model is loaded
    with ExitStack() as stack:
        at_workers = None
        if arguments.workers is not None and output.file is not None:
            from tmnmt.cli.workers import finished_tasks, worker_pool

            finished = stack.enter_context(finished_tasks(output.file))
            at_workers = partial(worker_pool, cluster=arguments.workers, finished=finished)
        stream = sys.stdout
        if output.file is not None and lines_out:
            stream = stack.enter_context(writing(output.file, keep_unfinished=True))
        form = texts[0].form if len(texts) == 1 and output.file is not None else LineForm()
        write = _writer(stream, output, form) if lines_out else unwritten
        if arguments.model is None:
            from tmnmt.cli.pretranslation import pretranslate

            pretranslate(arguments, texts, todo, write, lines_out)
            return
        document = work.document(texts[0], arguments.model) if work.options.confirms else None
        page = None
        if output.explain_html is not None:
            page = stack.enter_context(writing(output.explain_html, keep_unfinished=True))
        computing = Computing(arguments.options.threads)
        stack.callback(computing.give_back)
        translator = load_translator(arguments, arguments.model)
        if page is not None:
            write = stack.enter_context(_also_on_page(write, page, translator))
        writer = OutputReport(write)
        try:
            pool = None
            if at_workers is not None:
                total = sum(job.open_units for job in todo) if todo else _lines(texts)
                pool = stack.enter_context(at_workers(translator, arguments, total=total))
            if todo:
                fill_files(translator, arguments, todo, writer, computing, lines_out, pool)
            elif document is not None:
                work.do(translator, document, writer, output.file, arguments.confirming.write_to)
            else:
                _run(translator, texts, writer, arguments, computing, pool)
        except KeyboardInterrupt as stop:
            is_followed = page is not None or work.options.interactive or arguments.workers
            if not writer.lines and not is_followed:
                stop.add_note("nothing was finished")
            elif output.file is None:
                stop.add_note("what was finished is in the output")
            raise
        finally:
            _warn(translator, texts)
            writer.warn(translator.tally, len(texts), len(todo))


def _work(arguments: TranslateArguments) -> Work:
    """How the document is worked on: typed lines are a dialogue where nothing else is asked for."""
    explain, confirming = arguments.output.shows_origins, arguments.confirming
    edits = not explain and arguments.model is not None and arguments.options.remember != "own"
    talks = (
        not arguments.inputs and not arguments.tag and sys.stdin.isatty() and sys.stdout.isatty()
    )
    confirming = replace(confirming, interactive=confirming.interactive or (edits and talks))
    return Work(confirming, arguments.inputs, explain)


def load_translator(arguments: TranslateArguments, model: Path) -> Translator:
    """The model with the memories of the arguments."""
    from tmnmt.allocator import keep_freed
    from tmnmt.compiled.steps import prepare_decoding
    from tmnmt.index.back_ends import prepare_search

    keep_freed()
    prepare_decoding()
    prepare_search(arguments.memory)  # beside the import of torch
    from tmnmt.translator import Translator

    with Progress("indexing", "segments", lazy=True) as progress:
        translator = Translator.load(
            model,
            arguments.memories,
            replace(arguments.options, verbatim=arguments.min_worth),
            write_to=arguments.confirming.write_to,
            progress=progress.advance,
        )
    if arguments.memory and arguments.options.mode is None and translator.settings.mode == "off":
        print(
            f"tmnmt: warning: {model} has no parameters to read a memory with; only exact "
            "matches are taken of it",
            file=sys.stderr,
        )
    return translator


def _lines(inputs: list[DocumentLines]) -> int | None:
    """How many segments there are to translate; None when some come from stdin or a pipe."""
    from tmnmt.formats.encoding import lines
    from tmnmt.formats.stream import file_source

    total = 0
    for text in inputs:
        if not isinstance(text.source, Path) or is_pipe(text.source):
            return None
        with file_source(text.source).stream(may_be_empty=True) as stream:
            total += sum(1 for _ in lines(stream))
    return total


def _run(
    translator: Translator,
    inputs: list[DocumentLines],
    write: Callable[[Translation], None],
    arguments: TranslateArguments,
    computing: Computing,
    pool: WorkerPool | None,
) -> None:
    explain, tag = arguments.output.shows_origins, arguments.tag
    if pool is not None:
        from tmnmt.batch.task import Way
        from tmnmt.formats.text import documents

        lines = chain.from_iterable(map(documents, inputs))
        for translation in pool.translations(lines, Way(tag=tag, explain=explain)):
            write(translation)
        return
    if not any(isinstance(text.source, Path) for text in inputs) and sys.stdin.isatty():
        _talk(translator, inputs[0], write, explain, tag)
        return
    if arguments.output.file is None and sys.stdout.isatty():  # which shows how far it is
        for translation in translations(translator, inputs, explain, computing, tag):
            write(translation)
        return
    with Progress("translating", "segments", _lines(inputs)) as progress:
        for translation in translations(
            translator, inputs, explain, computing, tag, progress.advance
        ):
            write(translation)


def fill_files(
    translator: Translator,
    arguments: TranslateArguments,
    todo: list[Job],
    writer: OutputReport,
    computing: Computing,
    lines_out: bool,
    pool: WorkerPool | None = None,
) -> None:
    """Fills files that translators work on, which were read, in the light of what they have
    themselves; by workers where there is a pool of them."""
    from tmnmt.batch.pretranslate import best_matches
    from tmnmt.batch.repetitions import Repetitions
    from tmnmt.batch.task import Way
    from tmnmt.translator import in_region, with_memory

    if (own_memory := arguments.own_memory) is not None:
        translator = with_memory(translator, own_memory.index)
    explain = arguments.output.shows_origins

    def by_workers(pool: WorkerPool, job: Job, texts: Documents) -> Iterator[Translation]:
        return pool.translations(texts, Way(job.file.tgt_lang, explain=explain))

    def in_this_process(job: Job, texts: Documents) -> Iterator[Translation]:
        regional = in_region(translator, job.file.tgt_lang)
        with Progress("translating", "segments", job.open_units) as progress:
            yield from regional.stream(texts, explain, finished=progress.advance)

    def translated_by_workers(
        pool: WorkerPool, job: Job, texts: Documents
    ) -> Iterator[Translation]:
        return pool.translations(texts, Way(job.file.tgt_lang, explain=explain))

    look_up = partial(best_matches, translator.pipeline.lookup.retriever)
    repetitions = Repetitions(arguments.file_memory[0].repeated, look_up, copies=True)
    computing.use_for(sum(job.open_units for job in todo))
    translated = in_this_process if pool is None else partial(by_workers, pool)
    best = None if lines_out else look_up
    jobs = [(job, job.begin(partial(translated, job), best, repetitions)) for job in todo]
    for job, finished in jobs:
        job.do(finished, writer, lines_out)


def unwritten(translation: Translation, location: UnitLocation | None = None) -> None:
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


def _writer(stream: TextIO, output: Output, form: LineForm) -> Writing:
    """What a translation is given to, to be printed to `stream` as the output asks for. form: of
    lines that have the translations alone."""
    from tmnmt.cli.explanation import explained
    from tmnmt.records import json_line
    from tmnmt.text import one_line

    if output.explain:
        return explained(stream)

    mark = form.mark

    def write(translation: Translation, location: UnitLocation | None = None) -> None:
        nonlocal mark
        if output.json:
            print(json_line(translation, location), file=stream, flush=stream is sys.stdout)
        else:
            line = mark + one_line(translation.tgt)
            print(line, end=form.end, file=stream, flush=stream is sys.stdout)
        mark = ""

    return write


@contextmanager
def _also_on_page(write: Writing, stream: TextIO, translator: Translator) -> Iterator[Writing]:
    """`write` that writes to the page `stream`, too; the page ends with the block where
    that ends well."""
    from tmnmt.cli.page import Page

    page = Page(stream, translator)

    def tee(translation: Translation, location: UnitLocation | None = None) -> None:
        write(translation, location)
        page.add(translation)

    yield tee
    page.end()


def _warn(translator: Translator, inputs: list[DocumentLines]) -> None:
    from tmnmt.engine.run_statistics import CONTROL

    is_reported = any(text.control for text in inputs)  # at its end every input says so itself
    for change, count in translator.tally.changed.items():
        if count and not (is_reported and change == CONTROL):
            print(f"tmnmt: warning: {quantity(count, 'segment')} {change}", file=sys.stderr)
    tally = translator.tally
    if tally.unknown:
        print(
            f"tmnmt: warning: {quantity(tally.unknown, 'character')} in "
            f"{quantity(tally.with_unknown, 'segment')} are not in this model's vocabulary: the "
            "words with them are copied from the source",
            file=sys.stderr,
        )
