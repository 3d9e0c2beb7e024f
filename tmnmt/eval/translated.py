"""A system's translations of a test set, kept in a file that a run which was stopped
goes on with."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tmnmt.durable import append, make_folder
from tmnmt.errors import DataError
from tmnmt.progress import Progress
from tmnmt.records import match_record, token_record
from tmnmt.segments import Translation
from tmnmt.source_hash import source_hash
from tmnmt.text import words
from tmnmt.translator import Translator

FORMAT = 3
UNIT = 64  # segments noted at a time where there is no session cache
GOES_ON = "the same command goes on where this one stopped"
CLEAR_PEAK = "5"  # written to clear_refs: the peak begins anew (proc(5))


def digest(*described: object) -> str:
    """16 hexadecimal digits that name all that translations depend on: the code that makes them,
    and what is described."""
    text = json.dumps([FORMAT, source_hash(), *described], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def units(sources: Sequence[str], documents: Sequence[str], whole: bool) -> list[list[str]]:
    """What is translated and noted at once: `whole` documents where something is remembered, or
    what stands before a segment is read, else any UNIT segments."""
    if not whole:
        return [list(sources[start : start + UNIT]) for start in range(0, len(sources), UNIT)]
    numbered = groupby(range(len(sources)), key=lambda i: documents[i])
    return [[sources[i] for i in numbers] for _, numbers in numbered]


class TranslationCache:
    """The file: one line of JSON a unit, {"seconds", "peak_bytes", "segments": [{"tgt", "score",
    "matches", "tokens"}]}. A line that a kill has torn is taken off."""

    def __init__(self, path: Path, units: Sequence[Sequence[str]]) -> None:
        self.path, self.units = path, units
        self.finished = self._whole_lines()

    def _whole_lines(self) -> int:
        if not self.path.exists():
            return 0
        finished = size = 0
        with self.path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                finished, size = finished + 1, size + len(line)
        if size < self.path.stat().st_size:
            with self.path.open("r+b") as file:
                file.truncate(size)
        return finished

    @property
    def missing(self) -> int:
        """Segments that are not translated yet."""
        return sum(map(len, self.units[self.finished :]))

    def fill(
        self,
        translator: Translator,
        explain: bool,
        progress: Progress,
        confirmed: Sequence[Sequence[tuple[str, str] | None]] | None = None,
    ) -> None:
        """Translates what is missing; every unit is on disk as soon as it and those before it are
        finished.

        confirmed: for every unit what `Translator.stream` confirms."""
        self._append("")  # what cannot be written is said before anything is translated
        forget_peak()
        remaining = self.units[self.finished :]
        stream = translator.stream(
            remaining, explain, confirmed[self.finished :] if confirmed is not None else None
        )
        previous = sum(translator.tally.seconds.values())
        for unit in remaining:
            translations = []
            for _ in unit:
                translations.append(next(stream))
                progress.advance()
            current = sum(translator.tally.seconds.values())
            self._append(_line(translations, current - previous))
            previous, self.finished = current, self.finished + 1

    def _append(self, line: str) -> None:
        try:
            make_folder(self.path.parent)
            append(self.path, line.encode())
        except OSError as error:
            why = DataError(f"{self.path}: cannot be written: {error.strerror or error}")
            why.add_note(GOES_ON)
            raise why from error

    def _lines(self) -> Iterator[dict[str, Any]]:
        with self.path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise DataError(
                        f"{self.path}, line {number}: damaged; delete the file to do it again"
                    ) from error

    def records(self) -> Iterator[dict[str, Any]]:
        """What is known of every segment, in order."""
        for line in self._lines():
            yield from line["segments"]

    def cost(self) -> dict[str, float | int | None]:
        """{"seconds" of retrieval and decoding, "words_per_second" of the sources,
        "peak_bytes"}."""
        seconds = 0.0
        peaks = []
        for line in self._lines():
            seconds += line["seconds"]
            peaks.append(line["peak_bytes"] or 0)
        total = sum(words(text) for unit in self.units for text in unit)
        return {
            "seconds": round(seconds, 2),
            "words_per_second": round(total / max(seconds, 1e-9), 1),
            "peak_bytes": max(peaks, default=0) or None,
        }


def _line(translations: Sequence[Translation], seconds: float) -> str:
    segments = [
        {
            "tgt": translation.tgt,
            "score": translation.score if math.isfinite(translation.score) else None,
            "matches": [match_record(match) for match in translation.matches],
            "tokens": [token_record(token) for token in translation.tokens],
        }
        for translation in translations
    ]
    line = {"seconds": round(seconds, 4), "peak_bytes": peak(), "segments": segments}
    return json.dumps(line, ensure_ascii=False) + "\n"


def forget_peak() -> None:
    """Lets `peak` begin anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text(CLEAR_PEAK)
    except OSError:
        return


def peak() -> int | None:
    """The most memory this process has had since `forget_peak`, in bytes; None where the system
    does not say."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    kilobytes = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(kilobytes[0]) * 1024 if kilobytes else None
