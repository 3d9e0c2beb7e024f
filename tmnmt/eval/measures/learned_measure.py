"""What names a learned measure in a recipe, and what measures are there anyway."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from tmnmt.config.bounds import Name
from tmnmt.errors import UsageError

LOWER_CASED = "BLEU, lower-cased"  # as Tu et al. 2018 report it
TOKENISED = "BLEU, tokenised"  # as Gu et al. 2018 report it: multi-bleu, over our match tokens
COUNTED_MEASURES = ("BLEU", "chrF2++", "TER", LOWER_CASED, TOKENISED)


@dataclass(frozen=True)
class LearnedMeasure:
    """A measure by the scores of others: those of a command, or those in a file. The command is run
    without a shell."""

    name: Name
    command: str = ""
    scores: str = ""

    def check(self) -> None:
        """Raises UsageError where there is not exactly one of command and file, or the command is
        none."""
        location = f"measure {self.name!r}"
        if bool(self.command) == bool(self.scores):
            raise UsageError(f"{location}: give either a command, or a file of scores")
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise UsageError(f"{location}: {self.command!r}: {error}") from error
        if self.command and not words:
            raise UsageError(f"{location}: the command is empty")


def check_all(measures: Sequence[LearnedMeasure]) -> None:
    """Raises UsageError for a measure that cannot be read, or one that has the name of another or
    of what is measured anyway."""
    names = {*COUNTED_MEASURES}
    for measure in measures:
        measure.check()
        if measure.name in names:
            raise UsageError(f"measure {measure.name!r}: there is another of this name")
        names.add(measure.name)
