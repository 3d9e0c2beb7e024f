"""`tmnmt translate` of files that translators work on: the same files come out, with targets."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tmnmt.config.options import Format, Overwrite, OwnTranslations
from tmnmt.errors import TmnmtError, UsageError
from tmnmt.quantities import quantity
from tmnmt.records import UnitLocation

if TYPE_CHECKING:
    from tmnmt.batch.filling import Documents, Finished
    from tmnmt.batch.own_translations import FileMemory
    from tmnmt.batch.repetitions import BestMatches, Repetitions
    from tmnmt.cli.output_report import Writing
    from tmnmt.files.unit import Filling, TranslatableFile
    from tmnmt.segments import Translation

    Translated = Callable[[Documents], Iterable[Translation]]  # of the texts of a file

UNITS_LISTED = 5  # units that warnings name
STATE_TITLES = {
    "translated": "translated before",
    "draft": "drafts",
    "locked": "locked",
    "new": "empty",
}


@dataclass
class Job:
    """A file, and where it goes with its targets; None: standard output."""

    file: TranslatableFile
    path: Path
    output: Path | None
    overwrite: Overwrite
    level: OwnTranslations = "off"
    units: int = 0
    open_units: int = 0  # of these, to be translated
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def read(self, src_lang: str, tgt_lang: str, memory: FileMemory) -> None:
        """Reads the file once, to count, and to add what is confirmed in it to a memory. One that
        says no languages takes these. Raises UsageError where it says others, FormatError where it
        cannot be read."""
        from tmnmt.batch.filling import agree_on_languages

        try:
            agree_on_languages(self.file, src_lang, tgt_lang)
        except UsageError as error:
            raise UsageError(f"{self.path}: {error}") from error
        self.units, self.open_units = memory.read(self.file, self.path)

    def begin(
        self,
        translated: Translated,
        best_matches: BestMatches | None = None,
        repetitions: Repetitions | None = None,
    ) -> Generator[Finished]:
        """The units of the file on their way, which `do` takes. `translated` is called at once;
        `best_matches`, `repetitions`: as `tmnmt.batch.filling.translate_file` has them."""
        from tmnmt.batch.filling import translate_file

        return translate_file(
            self.file, self.overwrite, translated, best_matches, self.level, repetitions
        )

    def do(self, finished: Generator[Finished], write: Writing, lines_out: bool) -> None:
        """Writes the file with its targets, and tells what became of its units. `finished`: what
        `begin` gave. `write` is given every translation, and of which it is; `lines_out`: nothing
        else is done with them, and no file is written.

        Stopped by Ctrl-C or an error, it writes the file with the targets that there are: to
        standard output, or beside `output`, as `writing` does."""
        fillings: list[Filling | None] = []
        try:
            with closing(finished):
                for outcome in finished:
                    if outcome.translation is not None:
                        write(*self._located(outcome.translation, outcome, len(fillings)))
                    self._count(outcome)
                    fillings.append(outcome.filling)
        except (KeyboardInterrupt, TmnmtError):
            if (
                any(filling is not None and filling.has_target for filling in fillings)
                and not lines_out
            ):
                with self._output() as stream:
                    self.file.write(stream, fillings + [None] * (self.units - len(fillings)))
                    raise  # so that it is kept as unfinished
            raise
        if not lines_out:
            with self._output() as stream:
                self.file.write(stream, fillings)
        self._tell()

    def _located(
        self, translation: Translation, outcome: Finished, number: int
    ) -> tuple[Translation, UnitLocation]:
        """The translation of a unit, with what is found in how it fits into the file, and where it
        stands."""
        unit, filling = outcome.unit, outcome.filling
        if filling is not None and filling.has_target:
            checks = self.file.layout_checks(unit, number, filling.target)
            translation = replace(translation, user_checks=(*translation.user_checks, *checks))
        place = unit.line, unit.id, unit.context
        return translation, UnitLocation(str(self.path), *place, outcome.is_repetition)

    @contextmanager
    def _output(self) -> Iterator[BinaryIO]:
        from tmnmt.formats.atomic import writing_bytes

        if self.output is not None:
            with writing_bytes(self.output, keep_unfinished=True) as stream:
                yield stream
        else:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()

    def _count(self, outcome: Finished) -> None:
        self.counts["filled" if outcome.is_filled else outcome.unit.state] += 1
        if outcome.is_filled and outcome.translation is not None:
            self.counts["fuzzy"] += outcome.translation.origin == "fuzzy"
            self.counts["repetitions"] += outcome.is_repetition
            self.counts[f"origin {outcome.translation.origin}"] += not outcome.is_repetition
        if problem := outcome.problem or outcome.unit.problem:
            self.problems.append(f"line {outcome.unit.line:,}: {problem}")

    def _tell(self) -> None:
        untouched = [
            f"{self.counts[state]:,} {description}"
            for state, description in STATE_TITLES.items()
            if self.counts[state]
        ]
        rest = f"; left as they are: {', '.join(untouched)}" if untouched else ""
        fuzzy = self.counts["fuzzy"]
        drafts = f", {fuzzy:,} of them by a match worth less than 100" if fuzzy else ""
        if repeated := self.counts["repetitions"]:
            drafts += f", {repeated:,} as {'repetition' if repeated == 1 else 'repetitions'}"
        print(
            f"{self.path}: {self.counts['filled']:,} of {quantity(self.units, 'segment')} "
            f"translated{drafts}{rest}",
            file=sys.stderr,
        )
        for problem in self.problems[:UNITS_LISTED]:
            print(f"tmnmt: warning: {self.path}, {problem}; it is left as it is", file=sys.stderr)
        if (remaining := len(self.problems) - UNITS_LISTED) > 0:
            print(f"tmnmt: warning: {self.path}: {remaining:,} more like these", file=sys.stderr)


def jobs(
    inputs: Sequence[Path],
    output: Path | None,
    overwrite: Overwrite,
    running_text: bool = False,
    format: Format | None = None,
    level: OwnTranslations = "off",
    front_matter: Sequence[str] = (),
) -> list[Job]:
    """What is to be done where the inputs are files with units; nothing where they are lines of
    text. `running_text`: sentences are the units of plain text, and of files that can be cut so.
    `format`: "text" makes every input plain text. `level`: which translations of a file are taken
    as confirmed. `front_matter`: the keys in the front matter of pages whose texts are translated.
    The folder of several outputs is made where there is none. Raises UsageError where they are
    both, or where the output cannot be what was named."""
    from tmnmt.files.opening import kind_of
    from tmnmt.files.paragraphs import ParagraphFile

    kinds = {path: kind_of(path, format) for path in inputs if path.is_file()}
    files = [path for path in inputs if kinds.get(path) is not None]
    if running_text and not files:
        for path in inputs:
            check_text(path, format)
        kinds = dict.fromkeys(inputs, ParagraphFile)
        files = [*inputs]
    if not files:
        return []
    if len(files) < len(inputs):
        raise UsageError(f"{files[0]} has segments of its own, another input is lines of text")
    is_folder = output is not None and (output.is_dir() or (len(files) > 1 and not output.exists()))
    folder = output if is_folder else None
    if len(files) > 1 and folder is None:
        raise UsageError("several files need a folder to be written to: --output FOLDER")
    names = [path.name for path in files]
    if len(set(names)) < len(names):
        raise UsageError("two files have the same name, and both are written to one folder")
    todo = list[Job]()
    for path in files:
        destination = folder / path.name if folder is not None else output
        if destination is not None and destination.exists() and destination.samefile(path):
            raise UsageError(f"--output {output} would be written over the input {path}")
        kind = kinds[path]
        if kind is not None:
            file = opened_as(kind, path, running_text, front_matter)
            todo.append(Job(file, path, destination, overwrite, level))
    if folder is not None:
        from tmnmt.durable import make_folder

        make_folder(folder)
    return todo


def opened_as(
    kind: type[TranslatableFile],
    path: Path,
    running_text: bool,
    front_matter: Sequence[str] = (),
) -> TranslatableFile:
    """The file, cut into sentences where `running_text` says so, with the texts of these keys of
    its front matter. Raises UsageError where it cannot be cut, or has no front matter."""
    from tmnmt.files.html import HtmlFile

    file = kind(path)
    if front_matter:
        if not isinstance(file, HtmlFile) or not file.has_front_matter:
            raise UsageError(f"--front-matter is of Markdown, MDX and HTML, and {path} is none")
        file.front_matter = front_matter
    if running_text and not kind.has_running_text:
        raise UsageError(f"--running-text is of text, HTML and Markdown; {path} has segments")
    file.sentences = running_text
    return file


def check_text(path: Path, format: Format | None) -> None:
    """Raises FormatError where the file is not plain text, as `format` has it."""
    from tmnmt.formats.stream import file_source
    from tmnmt.formats.text import CHECKS

    with file_source(path).stream(may_be_empty=True) as stream:
        CHECKS[format](stream, str(path))
