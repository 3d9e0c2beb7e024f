"""`tmnmt translate` without a model: full matches of the memory, and others as drafts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from tmnmt.cli.files import Job
from tmnmt.cli.memory_languages import languages_of
from tmnmt.cli.output_report import OutputReport, Writing
from tmnmt.config.options import DRAFTS
from tmnmt.progress import Progress
from tmnmt.quantities import quantity

if TYPE_CHECKING:
    from collections import Counter

    from tmnmt.batch.filling import Documents
    from tmnmt.batch.pretranslate import Pretranslator
    from tmnmt.batch.repetitions import Repetitions
    from tmnmt.cli.translate_arguments import TranslateArguments
    from tmnmt.engine.retrieve import Retriever
    from tmnmt.formats.text import DocumentLines
    from tmnmt.segments import Translation


def pretranslate(
    arguments: TranslateArguments,
    inputs: Sequence[DocumentLines],
    todo: Sequence[Job],
    write: Writing,
    lines_out: bool,
) -> None:
    """Writes what the memories hold, and tells how much that was. `todo`, `lines_out`: files in
    place of inputs, as `Job.do` says."""
    from tmnmt.batch.pretranslate import Pretranslator
    from tmnmt.engine.retrieve import Retriever
    from tmnmt.index.match_value import PRECEDING
    from tmnmt.index.named_memories import open_memories, parse_memory

    files = [job.file for job in todo]
    languages = languages_of(
        arguments.memory, (arguments.options.src_lang, arguments.options.tgt_lang), files
    )
    with Progress("indexing", "segments", lazy=True) as progress:
        indexes = open_memories(arguments.memories, *languages, progress.advance, arguments.options)
    trust = [parse_memory(name).trust for name in arguments.memory]
    if (own_memory := arguments.own_memory) is not None:
        indexes, trust = [own_memory.index, *indexes], [PRECEDING, *trust]
    retriever = Retriever(
        indexes,
        max(arguments.options.top_k, 1),
        arguments.options.threshold,
        short_threshold=0.0,  # shown, and read by nobody
        penalties=arguments.options,
        trust=trust,
    )
    untranslated = arguments.output.untranslated

    def pretranslator(marks_drafts: bool) -> Pretranslator:
        drafts = arguments.drafts(marks_drafts)
        return Pretranslator(retriever, untranslated, arguments.options.verbatim, drafts)

    writer = OutputReport(write)
    repetitions = _repetitions(arguments, retriever)
    for job in todo:
        translator = pretranslator(job.file.marks_drafts)
        _fill(translator, job, writer, lines_out, repetitions)
        _tell(translator.counts, arguments, f"{job.path}: ")
    if todo:
        return
    translator = pretranslator(marks_drafts=False)
    for lines in _together(inputs):
        for translation in translator.stream(lines):
            write(translation)
    print(_summary(translator.counts, empty=untranslated == "empty"), file=sys.stderr)
    _tell(translator.counts, arguments)


def _repetitions(arguments: TranslateArguments, retriever: Retriever) -> Repetitions | None:
    """What marks repetitions in files; their translations are those of the memory."""
    from tmnmt.batch.pretranslate import best_matches
    from tmnmt.batch.repetitions import Repetitions

    if not arguments.file_memory:
        return None
    repeated = arguments.file_memory[0].repeated
    return Repetitions(repeated, partial(best_matches, retriever), copies=False)


def _fill(
    translator: Pretranslator,
    job: Job,
    writer: OutputReport,
    lines_out: bool,
    repetitions: Repetitions | None,
) -> None:
    def translated(texts: Documents) -> Iterator[Translation]:
        with Progress("translating", "segments", job.open_units) as progress:
            for translation in translator.stream(chain.from_iterable(texts)):
                progress.advance()
                yield translation

    job.do(job.begin(translated, repetitions=repetitions), writer, lines_out)


def _tell(counts: Counter[str], arguments: TranslateArguments, prefix: str = "") -> None:
    """Tells how many matches are not in the output, and how they come into it."""
    count = counts["held"]
    if count and arguments.has_default_drafts:
        have, draft, pronoun = (
            ("has a match", "a draft", "it") if count == 1 else ("have matches", "drafts", "them")
        )
        print(
            f"{prefix}{quantity(count, 'segment')} {have} of {DRAFTS} to 99 % that nothing would "
            f"mark as {draft} here; --drafts {DRAFTS} puts {pronoun} in",
            file=sys.stderr,
        )
    if counts["unplaced"]:
        have, possessive = (
            ("has a match", "its") if counts["unplaced"] == 1 else ("have matches", "their")
        )
        print(
            f"{prefix}{quantity(counts['unplaced'], 'segment')} {have} that only a --model can put "
            f"in, since {possessive} tags stand otherwise",
            file=sys.stderr,
        )


def _together(inputs: Sequence[DocumentLines]) -> Iterator[Iterable[str]]:
    """The lines of all inputs: files whole; of a pipe what has come, before more is waited for."""
    from tmnmt.batch.pretranslate import TOGETHER

    for text in inputs:
        if text.trickles:
            yield from text.as_they_come(TOGETHER)
        else:
            yield text


def _summary(counts: Counter[str], empty: bool) -> str:
    """How many segments have an exact match, and what became of the others."""
    exact, adapted, fuzzy, untranslated = (
        counts[origin] for origin in ("memory", "adapted", "fuzzy", "")
    )
    state = "left empty" if empty else f"left as {'it is' if untranslated == 1 else 'they are'}"
    total = exact + adapted + fuzzy + untranslated
    have = "has" if 1 in (exact, total) else "have"
    extras = f", {adapted:,} one with other numbers, case, end mark or codes" if adapted else ""
    extras += f", {fuzzy:,} one worth less than 100" if fuzzy else ""
    return (
        f"{exact:,} of {quantity(total, 'segment')} {have} an exact match{extras}; "
        f"{untranslated:,} {state}"
    )
