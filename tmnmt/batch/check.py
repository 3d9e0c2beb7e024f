"""Translations that were made elsewhere, checked: the same checks as for what a model wrote and for
what a person confirms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from tmnmt.checks import (
    CHECKS,
    FINDINGS,
    LAYOUT_CHECKS,
    Check,
    SubtitleLimits,
    checks,
)
from tmnmt.codes.record import Text
from tmnmt.errors import FormatError, UsageError
from tmnmt.files.as_memory import read_memories
from tmnmt.files.cues import CueFile
from tmnmt.files.opening import kind_of
from tmnmt.files.unit import TranslatableFile, Unit
from tmnmt.formats.report import MALFORMED, TOO_LONG, Report
from tmnmt.terms.check import term_checks
from tmnmt.terms.find import Finder
from tmnmt.terms.homonyms import in_domain, term_at
from tmnmt.terms.reading import read_terms

UNCHECKED = (MALFORMED, TOO_LONG)  # why a unit is no pair that is checked
NAMES = ("empty", *CHECKS, "terms", "forbidden", *LAYOUT_CHECKS)


class Finding(NamedTuple):
    """What a check found in one translation. `line`: where its segment begins in the file, from 1;
    0 where that is not known. `id`: its name there, or its number."""

    file: str
    line: int
    id: str
    src: str
    tgt: str
    check: Check


class _Pair(NamedTuple):
    line: int
    id: str
    src: Text
    tgt: Text
    languages: tuple[str, str]
    layout_checks: Sequence[Check] = ()


@dataclass
class Checker:
    """Checks the translations of files.

    src_lang, tgt_lang: the languages of files that do not say theirs.
    terms: a list of terms; None checks no terms.
    domain: what the texts are about, which chooses meanings of terms; "" where it is not known.
    names: the names of the checks.
    speed, width, lines: the most that subtitles may have, as in `SubtitleLimits`; 0: what is usual
    in their language.
    pairs: how many translations were checked so far.
    problems: what could not be checked so far, a line each: rows that are no pairs, and files
    without any translation."""

    src_lang: str = ""
    tgt_lang: str = ""
    terms: Path | None = None
    names: Sequence[str] = NAMES
    speed: float = 0
    width: int = 0
    lines: int = 0
    domain: str = ""
    pairs: int = 0
    problems: list[str] = field(default_factory=list)
    _finders: dict[tuple[str, str], Finder] = field(default_factory=dict, init=False)

    def findings(self, paths: Iterable[Path]) -> Iterator[Finding]:
        """What is found in the translations of the files, in their order. Segments without a
        translation, and those that are locked, are left out.

        paths: the files.

        Raises FormatError for a file that cannot be read, and UsageError for one whose languages
        are not known."""
        for path in paths:
            if not path.exists():
                raise FormatError(f"{path}: no such file")
            count = self.pairs
            for pair in self._pairs(path):
                self.pairs += 1
                for check in (*self._checks(pair), *pair.layout_checks):
                    if check.name in self.names:
                        full_texts = pair.src.full_text(), pair.tgt.full_text()
                        yield Finding(str(path), pair.line, pair.id, *full_texts, check)
            if self.pairs == count:
                self.problems.append(f"{path}: has no translation that can be checked")

    def _pairs(self, path: Path) -> Iterator[_Pair]:
        kind = kind_of(path) if path.is_file() else None
        if kind is not None:
            yield from self._of_units(kind(path))
            return
        languages = self._languages(path)
        reader = read_memories([path], *languages)
        for number, (line, segment) in enumerate(reader.located(), 1):
            source = Text(segment.src, segment.src_codes)
            target = Text(segment.tgt, segment.tgt_codes)
            yield _Pair(line, str(number), source, target, languages)
        self._note_problems(reader.report)

    def _note_problems(self, report: Report) -> None:
        """Notes what a file has besides pairs, with the first places of each kind."""
        for reason in UNCHECKED:
            examples = report.examples[reason]
            self.problems += map(str, examples)
            if (more := report.skipped[reason] - len(examples)) > 0:
                self.problems.append(f"{examples[-1].file}: {more:,} more: {reason}")

    def _of_units(self, file: TranslatableFile) -> Iterator[_Pair]:
        file.src_lang, file.tgt_lang = (
            file.src_lang or self.src_lang,
            file.tgt_lang or self.tgt_lang,
        )
        languages = file.src_lang, file.tgt_lang
        if isinstance(file, CueFile):
            file.limits = SubtitleLimits(self.speed, self.width, self.lines)
            yield from self._of_cues(file)
            return
        for number, unit in enumerate(_units(file)):
            if unit.target is not None and unit.state not in ("new", "locked"):
                results = file.layout_checks(unit, number)
                yield _Pair(unit.line, unit.id, unit.source, unit.target, languages, results)

    def _of_cues(self, file: CueFile[Any]) -> Iterator[_Pair]:
        """What a file of subtitles has is in the target language; its source is not known."""
        for number, unit in enumerate(_units(file)):
            if unit.state != "locked":
                results = file.layout_checks(unit, number)
                yield _Pair(unit.line, unit.id, Text(""), unit.source, ("", ""), results)

    def _languages(self, path: Path) -> tuple[str, str]:
        languages = self.src_lang, self.tgt_lang
        if not all(languages):
            raise UsageError(f"{path}: it does not say its languages; give --src-lang, --tgt-lang")
        return languages

    def _checks(self, pair: _Pair) -> list[Check]:
        names = [name for name in CHECKS if name in self.names]
        results = checks(pair.src, pair.tgt, names, pair.languages)
        if self.terms is not None and pair.tgt.plain.strip():
            src = pair.src.plain
            places = self._finder(self.terms, pair.languages).find(src)
            terms = [term_at(place, src, pair.languages[0]) for place in places]
            results += term_checks(terms, pair.tgt.plain)
        return [check for check in results if check.name in self.names]

    def _finder(self, path: Path, languages: tuple[str, str]) -> Finder:
        if languages not in self._finders:
            terms = read_terms(path, *languages)
            if self.domain:
                terms = in_domain(terms, self.domain, languages[0])
            self._finders[languages] = Finder(terms)
        return self._finders[languages]


def _units(file: TranslatableFile) -> Iterator[Unit]:
    return chain.from_iterable(document.units for document in file.documents())


def check_names(included: Sequence[str], excluded: Sequence[str]) -> tuple[str, ...]:
    """The names of the checks that are made.

    included: those that are asked for; none: all.
    excluded: those that are left out.

    Raises UsageError for a name that no check has."""
    for name in (*included, *excluded):
        if name not in NAMES:
            raise UsageError(f"check {name!r}; allowed: {', '.join(NAMES)}")
    return tuple(name for name in NAMES if name in (included or NAMES) and name not in excluded)


def summary(findings: Iterable[Finding]) -> str:
    """How many translations each check found something in, a line each."""
    counts = Counter(finding.check.name for finding in findings)
    return "\n".join(f"{counts[name]:>7,}  {FINDINGS[name]}" for name in NAMES if counts[name])
