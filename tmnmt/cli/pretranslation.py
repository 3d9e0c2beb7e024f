"""`tmnmt translate` without a model: full matches of the memory, and others as drafts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from tmnmt.cli.files import Job
from tmnmt.cli.memory_languages import languages_of
from tmnmt.cli.written import Writing, Written
from tmnmt.config.options import DRAFTS
from tmnmt.counted import counted
from tmnmt.progress import Progress

if TYPE_CHECKING:
    from collections import Counter

    from tmnmt.batch.filling import Documents
    from tmnmt.batch.pretranslate import Pretranslator
    from tmnmt.cli.translate_arguments import TranslateArguments
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
    from tmnmt.engine.named_memories import named, open_memories
    from tmnmt.engine.retrieve import Retriever

    files = [job.file for job in todo]
    languages = languages_of(
        arguments.memory, (arguments.options.src_lang, arguments.options.tgt_lang), files
    )
    with Progress("indexing", "segments", lazy=True) as progress:
        indexes = open_memories(arguments.memories, *languages, progress.advance, arguments.options)
    retriever = Retriever(
        indexes,
        max(arguments.options.top_k, 1),
        arguments.options.threshold,
        short_threshold=0.0,  # shown, and read by nobody
        penalties=arguments.options,
        trust=[named(each).trust for each in arguments.memory],
    )
    untranslated = arguments.output.untranslated

    def pretranslator(marks_drafts: bool) -> Pretranslator:
        drafts = arguments.drafts(marks_drafts)
        return Pretranslator(retriever, untranslated, arguments.options.verbatim, drafts)

    written = Written(write)
    for job in todo:
        made = pretranslator(job.file.marks_drafts)
        _fill(made, job, written, lines_out)
        _tell(made.counts, arguments, f"{job.path}: ")
    if todo:
        return
    made = pretranslator(marks_drafts=False)
    for lines in _together(inputs):
        for translation in made.stream(lines):
            write(translation)
    print(_summary(made.counts, empty=untranslated == "empty"), file=sys.stderr)
    _tell(made.counts, arguments)


def _fill(made: Pretranslator, job: Job, written: Written, lines_out: bool) -> None:
    def translated(texts: Documents, finished: Callable[[], None]) -> Iterator[Translation]:
        for translation in made.stream(chain.from_iterable(texts)):
            finished()
            yield translation

    job.do(translated, written, lines_out)


def _tell(counts: Counter[str], arguments: TranslateArguments, where: str = "") -> None:
    """Tells how many matches are not in the output, and how they come into it."""
    count = counts["held"]
    if count and arguments.has_default_drafts:
        have, draft, them = (
            ("has a match", "a draft", "it") if count == 1 else ("have matches", "drafts", "them")
        )
        print(
            f"{where}{counted(count, 'segment')} {have} of {DRAFTS} to 99 % that nothing would "
            f"mark as {draft} here; --drafts {DRAFTS} puts {them} in",
            file=sys.stderr,
        )
    if counts["unplaced"]:
        have, their = (
            ("has a match", "its") if counts["unplaced"] == 1 else ("have matches", "their")
        )
        print(
            f"{where}{counted(counts['unplaced'], 'segment')} {have} that only a --model can put "
            f"in, since {their} tags stand otherwise",
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
    left = "left empty" if empty else f"left as {'it is' if untranslated == 1 else 'they are'}"
    total = exact + adapted + fuzzy + untranslated
    have = "has" if 1 in (exact, total) else "have"
    others = f", {adapted:,} one with other numbers, case, end mark or codes" if adapted else ""
    others += f", {fuzzy:,} one worth less than 100" if fuzzy else ""
    return (
        f"{exact:,} of {counted(total, 'segment')} {have} an exact match{others}; "
        f"{untranslated:,} {left}"
    )
