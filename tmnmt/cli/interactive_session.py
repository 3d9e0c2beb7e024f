"""A document that is translated in the light of what somebody has confirmed, in this
run or before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tmnmt.config.options import Confirming
from tmnmt.errors import UsageError

if TYPE_CHECKING:
    from tmnmt.formats.text import DocumentLines
    from tmnmt.segments import ConfirmedPair, Translation
    from tmnmt.session import Session
    from tmnmt.translator import Translator


@dataclass(frozen=True)
class Document:
    """What there is to translate, and the translations of its first lines, "" where
    there is none."""

    lines: list[str]
    finished: list[str]


@dataclass(frozen=True)
class Work:
    """A document that is worked on: how, the inputs, and whether origins are asked for."""

    options: Confirming
    inputs: Sequence[Path]
    explain: bool

    def check(self, output: Path | None, remember: str) -> None:
        """Raises UsageError for what does not go together, before anything is loaded."""
        if not self.options.confirms:
            return
        if (
            len(self.inputs) > 1
            or (not self.inputs and not self.options.interactive)
            or "-" in map(str, self.inputs)
        ):
            raise UsageError(
                "--interactive, --session and --confirmed are of one document: name one file"
            )
        if (
            self.options.session is not None
            and not self.options.interactive
            and not self.options.session.exists()
        ):
            raise UsageError(
                f"--session {self.options.session}: there is none; --interactive begins one"
            )
        if (
            self.options.session is not None
            and self.options.confirmed is not None
            and self.options.session.exists()
        ):
            raise UsageError(
                f"--session {self.options.session} is there, and --confirmed is of a document that "
                "begins"
            )
        if self.options.interactive:
            self._check_interactive(output, remember)

    def _check_interactive(self, output: Path | None, remember: str) -> None:
        from tmnmt.cli.interactive import check_terminal
        from tmnmt.formats.atomic import partial_of

        check_terminal()
        if self.explain:
            raise UsageError(
                "--interactive shows the matches; --explain, --explain-html and --json are "
                "without it"
            )
        if remember == "own":
            raise UsageError(
                "--interactive can take back what is confirmed, but not own words: leave out "
                "--remember own"
            )
        if not self.inputs:
            if self.options.confirmed is not None or self.options.session is not None:
                raise UsageError("--session and --confirmed are of a document: name a file")
        elif output is None:
            raise UsageError("--interactive needs --output: a file for what you confirm")
        elif output.exists() and self.options.session is None and self.options.confirmed is None:
            raise UsageError(f"{output} exists; to go on with it: --confirmed {output}")
        elif self.options.session is None and self.options.confirmed is None:
            _check_unfinished(partial_of(output))

    def document(self, text: DocumentLines, model: Path) -> Document:
        """What there is to translate, and what --confirmed has of it. Raises what `finished_lines`
        does, before the model is loaded and a memory to write to is made."""
        from tmnmt.cli.confirmed_prefix import finished_lines
        from tmnmt.models.folder import languages_in

        lines = list(text) if self.inputs else []
        if self.options.confirmed is None or (
            self.options.session is not None and self.options.session.exists()
        ):
            return Document(lines, [])
        return Document(lines, finished_lines(self.options.confirmed, lines, *languages_in(model)))

    def do(
        self,
        translator: Translator,
        document: Document,
        write: Callable[[Translation], None],
        output: Path | None,
        write_to: str | None,
    ) -> None:
        """Takes over what is finished; then the rest is translated, or the translator goes on with
        it."""
        lines = document.lines
        session = self._open_session(translator, document)
        print(_destination(translator, write_to), file=sys.stderr)
        if not self.options.interactive:
            _translate_rest(session, lines, write, self.explain)
            return
        from tmnmt.cli.interactive import Desk, typed
        from tmnmt.formats.atomic import partial_of

        desk = Desk(session, lines, self.options.session, None if self.inputs else typed)
        try:
            desk.work()
        except KeyboardInterrupt as stop:
            if session.done and output is not None:
                stop.add_note(
                    f"the same command goes on with {self._resume_option(partial_of(output))}"
                )
            raise
        finally:
            for entry in session.done if output is not None else ():
                write(_as_confirmed(entry))
        if len(session.done) < len(desk.lines) and self.inputs:
            option = self._resume_option(output)
            print(
                f"{len(session.done):,} of {len(lines):,} lines are finished; {option} goes on",
                file=sys.stderr,
            )

    def _resume_option(self, output: Path | None) -> str:
        """The option with which a document whose beginning is in `output` is gone on with."""
        return (
            f"--session {self.options.session}"
            if self.options.session is not None
            else f"--confirmed {output}"
        )

    def _open_session(self, translator: Translator, document: Document) -> Session:
        from tmnmt.cli.confirmed_prefix import check_document, confirm_all

        if self.options.session is not None and self.options.session.exists():
            session = translator.session(self.options.session)
            check_document(self.options.session, session.done, document.lines)
            return session
        session = translator.session()
        confirm_all(session, document.lines, document.finished)
        return session


def _check_unfinished(partial: Path) -> None:
    """Raises UsageError where an earlier sitting left something, which this one would remove."""
    if partial.exists():
        raise UsageError(f"{partial} exists; to go on with it: --confirmed {partial}")


def _translate_rest(
    session: Session, lines: Sequence[str], write: Callable[[Translation], None], explain: bool
) -> None:
    """What is finished as it is, and all else translated, what was passed over, too."""
    finished = list(session.done)
    for line, entry in zip(lines, finished, strict=False):
        write(
            _as_confirmed(entry)
            if entry.tgt or not line.strip()
            else session.translate(line, explain)
        )
    for translation in session.stream(lines[len(finished) :], explain):
        write(translation)


def _as_confirmed(entry: ConfirmedPair) -> Translation:
    from tmnmt.segments import Translation

    return Translation(entry.src, entry.tgt, 0.0, origin="confirmed" if entry.tgt else "")


def _destination(translator: Translator, write_to: str | None) -> str:
    """Where what is confirmed goes."""
    settings = translator.settings
    if not settings.memorises and not settings.caches:
        return "nothing is remembered of what is confirmed"
    if not settings.memorises:
        return "what is confirmed goes into the session cache alone"
    if write_to is None:
        return "what is confirmed lasts for this session; --write-to INDEX keeps it in a memory"
    return f"what is confirmed is written to {write_to}"
