"""What was written of a run, and which of its lines somebody should look at."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tmnmt.checks import FINDINGS
from tmnmt.quantities import quantity
from tmnmt.records import UnitLocation, checks_of

if TYPE_CHECKING:
    from tmnmt.engine.run_statistics import Tally
    from tmnmt.segments import Translation

LINES_LISTED = 5  # lines that a warning names


class Writing(Protocol):
    """What a translation is given to. `where`: the segment of a file that it is of; None: the
    translations are lines themselves, one after another."""

    def __call__(self, translation: Translation, location: UnitLocation | None = None) -> None: ...


@dataclass
class Lines:
    """How many lines there are of a kind, and the first of them, of each file; from 1."""

    count: int = 0
    first: dict[str, list[int]] = field(default_factory=dict)

    def add(self, line: int, file: str) -> None:
        self.count += 1
        if self.count <= LINES_LISTED:
            self.first.setdefault(file, []).append(line)

    def summary(self, with_names: bool) -> str:
        """`with_names`: of the files."""
        of_files = [
            f"{file} " * with_names + f"line{'s' * (len(lines) > 1)} " + ", ".join(numbers)
            for file, lines in self.first.items()
            for numbers in [[f"{line:,}" for line in lines]]
        ]
        return "; ".join(of_files) + ", ..." * (self.count > LINES_LISTED)


class OutputReport:
    """Passes every translation on to `write`, and notes its line."""

    def __init__(self, write: Writing) -> None:
        self._write = write
        self.lines = 0
        self.low = Lines()
        self.lacking = Lines()
        self.checked = {name: Lines() for name in FINDINGS if name != "numbers"}

    def __call__(self, translation: Translation, location: UnitLocation | None = None) -> None:
        from tmnmt.numbers import missing_numbers

        self._write(translation, location)
        self.lines += 1
        if location is not None and location.repetition:
            return  # of texts that come again, the first is told
        place = (
            (location.line, Path(location.file).name) if location is not None else (self.lines, "")
        )
        if translation.low:
            self.low.add(*place)
        if translation.origin == "model" and missing_numbers(translation.src, translation.tgt):
            self.lacking.add(*place)
        for check in checks_of(translation):
            if check.name in self.checked:  # numbers are told by themselves
                self.checked[check.name].add(*place)

    def warn(self, tally: Tally, inputs: int, files: int = 0) -> None:
        """Tells which lines to look at; `tally` counts also what was shown and not written."""
        suffix = ", counted through all inputs" if inputs > 1 else ""
        if tally.low:
            location = (
                f": {self.low.summary(files > 1)}{suffix}" if self.low.count == tally.low else ""
            )
            print(
                f"tmnmt: warning: {tally.low:,} of {quantity(tally.total, 'segment')} scored lower "
                "than 99 % of this model's dev text: unlike what it knows, so the translation may "
                f"be nonsense{location}",
                file=sys.stderr,
            )
        if self.lacking.count:
            lack, write = ("lacks", "writes") if self.lacking.count == 1 else ("lack", "write")
            location = self.lacking.summary(files > 1)
            print(
                f"tmnmt: warning: {quantity(self.lacking.count, 'translation')} {lack} a number of "
                f"the source, or {write} it otherwise; check {location}{suffix}",
                file=sys.stderr,
            )
        for name, lines in self.checked.items():
            if lines.count:
                print(
                    f"tmnmt: warning: translations that {FINDINGS[name]}: {lines.count:,}; check "
                    f"{lines.summary(files > 1)}{suffix}",
                    file=sys.stderr,
                )
