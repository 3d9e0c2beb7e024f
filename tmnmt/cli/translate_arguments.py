"""The arguments of `tmnmt translate`, and what of them does not go together, which is told before
anything is loaded."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tmnmt.cli.files import Job, jobs
from tmnmt.cli.previous import check_previous, with_former
from tmnmt.config.option import changed
from tmnmt.config.options import (
    DRAFTS,
    Confirming,
    Decoding,
    Format,
    Neighbours,
    Output,
    SegmentFilter,
    Selection,
    SessionOptions,
    Terms,
    TranslationOptions,
)
from tmnmt.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import BufferedReader

    from tmnmt.batch.own_translations import FileMemory
    from tmnmt.files.unit import TranslatableFile
    from tmnmt.formats.text import DocumentLines


@dataclass(frozen=True)
class TranslateArguments:
    """The arguments of a run."""

    inputs: list[Path]
    model: Path | None
    memory: list[str]
    tag: str
    running_text: bool
    format: Format | None
    output: Output
    confirming: Confirming
    options: TranslationOptions
    watch: bool
    previous: tuple[Path, Path] | None = None  # a former version, and its translation
    workers: str | None = None  # the address of a cluster
    file_memory: list[FileMemory] = field(default_factory=list)  # of files that were read

    def check(self) -> None:
        """Raises UsageError for options that do not go together."""
        if not self.confirming.confirms:
            self._check_nothing_is_confirmed()
        if self.tag and (self.confirming.confirms or self.model is None):
            raise UsageError("--tag is of a --model, in a run where nothing is confirmed")
        if self.output.drafts is not None and self.options.verbatim != Decoding.verbatim:
            raise UsageError(
                "--drafts and --verbatim exclude each other: both say from what worth on a match "
                "is taken"
            )
        if self.options.nbest > 1 and not self.output.json:
            raise UsageError("--nbest is told by --json: give both")
        if self.workers is not None:
            self._check_workers(self.workers)
        self._check_memories()
        if self.options.neighbours and not self.memory:
            raise UsageError("--neighbours needs a --memory, and its keys: tmnmt keys")
        if self.model is None:
            self._check_without_model()
        elif self.output.untranslated != "empty":
            raise UsageError(
                "--untranslated is of a run without --model, which translates everything"
            )

    def check_pairs(self) -> None:
        """Raises UsageError where there are no pairs to read, neither in a memory nor in the files
        that were read."""
        mode = self.options.mode
        if self.memory or self.own_memory is not None or self.previous is not None:
            return
        if mode not in (None, "off") and not self.confirming.confirms:
            raise UsageError(f"--mode {mode} needs a --memory to read")
        if self.model is None:
            raise UsageError(
                "there is nothing to translate with: give a --model, a --memory, or both"
            )

    @property
    def own_memory(self) -> FileMemory | None:
        """What the files that were read have confirmed; None where that is nothing."""
        return next((memory for memory in self.file_memory if len(memory)), None)

    def _check_memories(self) -> None:
        from tmnmt.index.filter import filter_of

        of_memories = [*changed(self.options, SegmentFilter), *["--watch"] * self.watch]
        if of_memories and not self.memory:
            raise UsageError(f"{of_memories[0]} is of a --memory, and there is none")
        filter_of(self.options)
        if self.watch and self.memories == self.memory:
            raise UsageError("--watch is of memory files, and there is none")

    def _check_workers(self, workers: str) -> None:
        from tmnmt.batch.ray_address import address_of, check_reachable
        from tmnmt.models.addresses import is_address

        address = address_of(workers)
        if self.model is None or is_address(self.model):
            raise UsageError("--workers are of a --model that is a folder, which they open")
        if self.confirming.confirms:
            raise UsageError("--workers confirm nothing: leave out one or the other")
        if self.watch:
            raise UsageError("--watch and --workers exclude each other")
        if self.options.device not in (None, "auto", "cpu"):
            raise UsageError(f"--workers compute on processors, not on {self.options.device}")
        if self.output.file is None:
            raise UsageError(
                "--workers need an --output, beside which they keep what they have finished"
            )
        for path in self.inputs or [Path("-")]:
            if str(path) == "-" or is_pipe(path):
                raise UsageError("--workers are of files, which can be read again: name one")
        check_reachable(address)

    @property
    def min_worth(self) -> int:
        """What a match must be worth to be taken, whatever is marked as a draft then."""
        return self.output.drafts or self.options.verbatim

    def drafts(self, marks_drafts: bool) -> int:
        """What a match must be worth to become a draft where there is no model; 0: none does.
        `marks_drafts`: whether what is written can say that it is one."""
        if not self.has_default_drafts:
            return self.output.drafts or 0
        return DRAFTS if marks_drafts else 0

    @property
    def has_default_drafts(self) -> bool:
        """Whether nothing is said of what worth on a match is taken."""
        return self.output.drafts is None and self.options.verbatim == Decoding.verbatim

    @property
    def memories(self) -> list[str]:
        """The memories by the names under which they are opened."""
        from tmnmt.index.named_memories import to_be_watched

        return list(map(to_be_watched, self.memory)) if self.watch else self.memory

    def _check_nothing_is_confirmed(self) -> None:
        is_set = {
            "--write-to": self.confirming.write_to is not None,
            "--confirm-to": self.options.confirm_to != "both",
            "--cache": bool(self.options.cache) and self.options.remember != "own",
        }
        for option, is_given in is_set.items():
            if is_given:
                hint = ", or the model's own words: --remember own" if option == "--cache" else ""
                raise UsageError(
                    f"{option} is of what is confirmed, and nothing is in this run: "
                    f"--interactive, --confirmed, --session{hint}"
                )

    def _check_without_model(self) -> None:
        options = [
            *changed(self.options, Decoding, SessionOptions, Neighbours),
            *changed(self.confirming),
            *changed(self.options, Selection, Terms),
        ]
        of_a_model = [option for option in options if option != "--verbatim"]
        of_a_model += ["--explain-html"] if self.output.explain_html is not None else []
        if of_a_model:
            raise UsageError(
                f"{of_a_model[0]} needs a --model; without one matches are taken, and "
                "nothing else is done"
            )
        if not self.options.verbatim:
            raise UsageError("--no-verbatim needs a --model: without one only matches are taken")

    def files(self) -> list[Job]:
        """The inputs, if they are files that translators work on, read once. Raises UsageError for
        options that are of lines of text, FormatError where one cannot be read."""
        if self.running_text and (not self.inputs or Path("-") in self.inputs):
            raise UsageError("--running-text is of files: name one")
        todo = jobs(
            self.inputs,
            self.output.file,
            self.output.overwrite,
            self.running_text,
            self.format,
            self.output.own_translations,
            self.output.front_matter or (),
        )
        if not todo and self.output.front_matter:
            raise UsageError("--front-matter is of Markdown, MDX and HTML")
        if not todo and self.output.overwrite != "nothing":
            raise UsageError("--overwrite is of files with targets, such as XLIFF")
        if not todo and self.output.own_translations != Output.own_translations:
            raise UsageError("--own-translations is of files with targets, such as XLIFF")
        self._limit_subtitles(todo)
        if self.previous is not None:
            check_previous([(job.path, job.file) for job in todo], self.previous)
        if todo:
            self._check_of_files()
            self.read_files(todo)
        return todo

    def _limit_subtitles(self, todo: Sequence[Job]) -> None:
        """Says what subtitles may have at most. Raises UsageError where none are translated."""
        from tmnmt.checks import SubtitleLimits

        output = self.output
        limits = SubtitleLimits(output.speed or 0, output.width or 0, output.lines or 0)
        if not any(limits):
            return
        from tmnmt.files.cues import CueFile

        files = [job.file for job in todo if isinstance(job.file, CueFile)]
        if not files:
            raise UsageError("--speed, --width and --lines are of subtitles, and there are none")
        for file in files:
            file.limits = limits

    def read_files(self, todo: Sequence[Job]) -> None:
        """Reads files once, to count and to know what they have themselves. Raises UsageError where
        one is of other languages, FormatError where one cannot be read."""
        from tmnmt.batch.own_translations import FileMemory

        languages = self._languages([job.file for job in todo])
        memory = FileMemory(self.output.overwrite, self.output.own_translations)
        self.file_memory.append(memory)
        if self.previous is not None:
            [job] = todo
            job.file, pairs = with_former(job.file, job.path, languages, self.previous)
            memory.add(pairs)
        for job in todo:
            job.read(*languages, memory)

    def _check_of_files(self) -> None:
        first, output = self.inputs[0], self.output
        if self.confirming.confirms:
            raise UsageError(
                f"--interactive, --confirmed and --session are of text, not of {first}"
            )
        if self.tag:
            raise UsageError(f"--tag is of text; {first} has a language of its own")
        if output.untranslated != "empty":
            raise UsageError(
                "--untranslated is of text; what has no match stays as it is in a file"
            )
        if (output.json or output.explain) and output.file is not None and output.file.is_dir():
            raise UsageError("--json and --explain are written to one file, not a folder")

    def with_languages(self, todo: Sequence[Job]) -> TranslateArguments:
        """The same, where a base that is named by an address has the languages of what it reads."""
        from tmnmt.models.addresses import is_address, with_languages

        if self.model is None or not is_address(self.model):
            return self
        languages = self._languages([job.file for job in todo])
        return replace(self, model=with_languages(self.model, *languages))

    def _languages(self, files: Sequence[TranslatableFile]) -> tuple[str, str]:
        if self.model is not None:
            from tmnmt.models.folder import languages_in

            if all(languages := languages_in(self.model)):
                return languages
        from tmnmt.cli.memory_languages import languages_of

        return languages_of(self.memory, (self.options.src_lang, self.options.tgt_lang), files)

    def check_written(self, goes_on: bool) -> None:
        """Raises UsageError where what is written would take the place of something else.
        `goes_on`: the input may be what an interrupted run left of this output."""
        from tmnmt.formats.atomic import partial_of

        output_file, page = self.output.file, self.output.explain_html
        if page is not None and output_file is not None and page.resolve() == output_file.resolve():
            raise UsageError(f"--explain-html and --output both name {page}")
        sources = self._read()
        for name, path in (
            ("--output", output_file),
            ("--explain-html", page),
            ("--session", self.confirming.session),
        ):
            _spare(name, path, sources)
            _spare_inputs(name, path, self.inputs)
        for name, path in (("--output", output_file), ("--explain-html", page)):
            if path is not None:  # where it is kept unfinished, which is removed when it is whole
                _spare(name, partial_of(path), sources)
                if not goes_on:
                    _spare_inputs(name, partial_of(path), self.inputs)

    def _read(self) -> list[Path]:
        """What is read beside the inputs."""
        from tmnmt.index.named_memories import parse_memory

        candidates = (
            self.options.knn_adaptive,
            self.confirming.write_to,
            self.options.terms,
            self.model,
        )
        places = [Path(str(parse_memory(name).place)) for name in self.memory]
        return [*places, *(Path(place) for place in candidates if place)]

    def texts(self) -> list[DocumentLines]:
        """The inputs as lines of text; a file that is missing, empty or no text is told now, a pipe
        not touched."""
        from tmnmt.formats.stream import file_source
        from tmnmt.formats.text import CHECKS, read_document_lines

        sources = [
            path if str(path) != "-" else cast("BufferedReader", sys.stdin.buffer)
            for path in self.inputs or [Path("-")]
        ]
        check = CHECKS[self.format]
        for source in sources:
            if isinstance(source, Path) and not is_pipe(source):
                with file_source(source).stream(may_be_empty=True) as stream:
                    check(stream, str(source))
        return [read_document_lines(source, check=check) for source in sources]


def is_pipe(path: Path) -> bool:
    """Or a device: what can be read only once."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _spare(option: str, path: Path | None, sources: list[Path]) -> None:
    """Raises UsageError where `path` is something that is read, or a file of it."""
    for place in sources:
        if (
            path is not None
            and place.exists()
            and place.resolve() in (path.resolve(), *path.resolve().parents)
        ):
            raise UsageError(f"{option} {path} would be written over {place}")


def _spare_inputs(option: str, path: Path | None, inputs: list[Path]) -> None:
    """Raises UsageError where `path` is a file that is to be translated, also by way of a link."""
    if (
        path is None or not path.is_file()
    ):  # nothing there, or a device, which is written to as it is
        return
    for text in inputs:
        if str(text) != "-" and text.exists() and path.samefile(text):
            raise UsageError(f"{option} {path} would be written over the input {text}")
