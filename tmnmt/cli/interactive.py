"""The translator at work: on a terminal every segment with its matches and its translation, to be
edited and confirmed.

Lines are edited by the standard library's readline, which has them prefilled."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tmnmt.cli.explanation import ORIGIN_TITLES
from tmnmt.errors import LockedError, ServerError, UsageError
from tmnmt.formats.clean import clean
from tmnmt.visible import visible

if TYPE_CHECKING:
    from tmnmt.segments import Match, Translation
    from tmnmt.session import Session

BACKWARD, END = "<", ":q"  # alone on a line
KEYS = (
    "Enter confirms the line, an empty line passes over the segment, Page Up (or < alone) goes "
    "back, "
    "Ctrl-D (or :q alone) ends. Ctrl-U empties the line."
)
BOUND = (
    r'"\e[5~": "\C-a\C-k<\C-m"',
    r'"\C-d": "\C-a\C-k:q\C-m"',
)  # Page Up and Ctrl-D, whatever is on the line
CHECKS = {
    "numbers": "it lacks these numbers of the source, or writes them otherwise:",
    "codes": "it has other codes than the source:",
    "placeholders": "it has other placeholders than the source:",
    "ends": "it ends otherwise than the source:",
    "length": "it is much longer or shorter than the source:",
    "untranslated": "it has words of the source untranslated:",
    "repeated": "it repeats words:",
    "spaces": "it has blanks where the source has none:",
    "characters": "it has invisible or private characters that the source does not have:",
    "unreadable": "it has bytes that are no character:",
    "brackets": "it has a bracket or quotation mark without its other half:",
    "replay": "it is the translation of a match, whose source has other words:",
    "words": "it has words that nothing knows:",
    "terms": "it lacks a term that it should have:",
    "forbidden": "it has a forbidden term:",
    "meaning": "which meaning does the term have?",
}
ASK, TYPED = "> ", "source: "


class Ended(Exception):
    """The translator ends the sitting."""


class Desk:
    """Goes through `lines` with a session, which is saved after every step where `save` names a
    file.

    read_line: asked for another line where they are at their end; None: there is none."""

    def __init__(
        self,
        session: Session,
        lines: Sequence[str],
        save: Path | None,
        read_line: Callable[[], str | None] | None = None,
    ) -> None:
        from tmnmt.cli.matches import has_colour, legend
        from tmnmt.cli.streams import console

        check_terminal()
        self.session = session
        self.lines = list(lines)
        self.save = save
        self.read_line = read_line
        self.console = console(sys.stdout)
        # by line: what was confirmed there before it was gone back to
        self._drafts: dict[int, str] = {}
        self._print(KEYS)
        self.console.print(legend(has_colour(self.console)))

    def work(self) -> None:
        """To the last line, or until the translator ends it."""
        try:
            while self._next_line():
                line = self.lines[len(self.session.done)]
                if line.strip():
                    self._segment(line)
                else:
                    self.session.new_document()
        except Ended:
            self._restore()
        except KeyboardInterrupt:
            self._restore()
            raise

    def _next_line(self) -> bool:
        if len(self.session.done) == len(self.lines) and self.read_line is not None:
            line = self.read_line()
            if line is not None:
                self.lines.append(line)
        return len(self.session.done) < len(self.lines)

    def _segment(self, line: str) -> None:
        index = len(self.session.done)
        translation = self.session.translate(line)
        self._show(translation, index)
        draft = self._drafts.get(index, "") or clean(translation.tgt)[0]
        checked = ""  # what the checks were told of last
        while True:
            answer = edited(ASK, draft)
            if key := _trailing_key(draft, answer):
                self._print(
                    f"{key} stands behind the draft; to have it alone: Ctrl-U empties the line"
                )
                continue
            if not self._agrees(line, answer, checked):
                checked = draft = answer
                continue
            try:
                self._take(line, answer)
            except (UsageError, LockedError, ServerError) as error:
                self._print(f"{error}")
                draft = draft if answer == BACKWARD else answer
            else:
                break
        if len(self.session.done) > index:
            self._drafts.pop(index, None)
        if self.save is not None:
            self.session.save(self.save)

    def _agrees(self, line: str, answer: str, checked: str) -> bool:
        """Whether the answer may be taken: no check finds anything in it, or it was told of and is
        confirmed once more. What the checks find is shown."""
        if answer == checked or answer in (BACKWARD, END) or not answer.strip():
            return True
        try:
            checks = self.session.check(line, answer)
        except UsageError:
            return True  # confirming says what is wrong
        for check in checks:
            self._print(f"check {check.name}: {CHECKS[check.name]} {check.what}", "yellow")
        if checks:
            self._print("Enter once more confirms it all the same")
        return not checks

    def _take(self, line: str, answer: str) -> None:
        if answer == END:
            raise Ended
        if answer == BACKWARD:
            self._go_back()
        elif answer.strip():
            self.session.confirm(line, answer)
        else:
            self.session.pass_over(line)

    def _go_back(self) -> None:
        """To the segment before, which is as if it had never been confirmed."""
        last = self.session.undo()
        while not last.src and self.session.done:  # a blank line
            last = self.session.undo()
        self._drafts[len(self.session.done)] = last.tgt

    def _restore(self) -> None:
        """Confirms again what was gone back over and has not been confirmed otherwise since."""
        count = len(self.session.done)
        while (index := len(self.session.done)) <= max(self._drafts, default=-1):
            line = self.lines[index]
            if not line.strip():
                self.session.new_document()
            elif index not in self._drafts:
                break
            elif target := self._drafts.pop(index):
                self.session.confirm(line, target)
            else:
                self.session.pass_over(line)
        if self.save is not None and len(self.session.done) > count:
            self.session.save(self.save)

    def _show(self, translation: Translation, index: int) -> None:
        place = (
            f"{index + 1}" if self.read_line is not None else f"{index + 1} of {len(self.lines)}"
        )
        self._print("")
        self._print(f"{place}  {clean(translation.src)[0]}", "bold")
        for match in translation.matches:
            self._show_match(translation.src, match)
        if translation.origin in ORIGIN_TITLES:
            self._print(f"  {ORIGIN_TITLES[translation.origin]}", "green")

    def _show_match(self, text: str, match: Match) -> None:
        from rich.text import Text

        from tmnmt.cli.matches import diff, has_colour, per_cent

        source = diff(clean(text)[0], clean(match.segment.src)[0], has_colour(self.console))
        location = clean(match.segment.document)[0] or (
            "confirmed in this session" if match.segment.id < 0 else ""
        )
        location = f"  ({location})" if location else ""
        self.console.print(
            Text(f"  {match.score:.2f}{per_cent(match)}  ") + source + Text(location, style="dim")
        )
        self.console.print(Text(f"        {clean(match.segment.tgt)[0]}", style="green"))

    def _print(self, text: str, style: str = "") -> None:
        from rich.text import Text

        self.console.print(Text(text, style=style))


def _trailing_key(draft: str, answer: str) -> str:
    """The key that stands behind the draft where the answer is nothing else; "" where it is."""
    text, offered = answer.strip(), draft.strip()
    keys = (key for key in (BACKWARD, END) if text.removesuffix(key).strip() == offered != text)
    return next(keys, "") if offered else ""


def check_terminal() -> None:
    """Raises UsageError where there is nobody to ask, or no readline to ask with."""
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise UsageError("--interactive needs a terminal, to read from and to write to")
    try:
        import readline
    except ImportError as error:
        raise UsageError("--interactive needs a Python that was built with readline") from error
    readline.set_auto_history(False)
    for key in BOUND:
        readline.parse_and_bind(key)


def edited(prompt: str, text: str) -> str:
    """The line that `text` was made into; END where the terminal is at its end. No control
    character of either reaches the terminal; bytes that are no text become U+FFFD, as in files."""
    import readline

    readline.set_startup_hook(lambda: readline.insert_text(visible(text)))
    sys.stdout.flush()
    try:
        return input(visible(prompt)).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except EOFError:
        return END
    finally:
        readline.set_startup_hook()


def typed() -> str | None:
    """A line of a document that is typed; None at its end."""
    line = edited(TYPED, "")
    return None if line == END else line
