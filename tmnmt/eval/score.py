"""Measures outputs that lie in plain files, whoever made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tmnmt.errors import DataError
from tmnmt.eval.measures.measure import Output, TestSet
from tmnmt.formats.text import check_content, read_document_lines
from tmnmt.index.base import Index
from tmnmt.quantities import quantity
from tmnmt.segments import Match

SEARCHED = 512  # segments looked up at a time
TOKENISED = 100  # lines from which on sacrebleu warns


def lines_of(path: Path) -> list[str]:
    """The lines of a file of one segment a line, blank ones as "". Raises FormatError."""
    return [line.strip() for line in read_document_lines(path, check=check_content)]


def same_length(path: Path, lines: Sequence[str], count: int, reference: object) -> None:
    """Raises DataError where a file has not as many lines as another has."""
    if len(lines) != count:
        raise DataError(
            f"{path}: {quantity(len(lines), 'line')}, but {reference} has {count:,}: they must "
            "be as many"
        )


def read_test(
    name: str, languages: tuple[str, str], references: Sequence[Path], src: Path | None = None
) -> tuple[TestSet, list[int], int]:
    """The test set in plain files, the numbers of its lines in them, from 0, and how many lines
    they have. A line that is blank everywhere parts documents and is no segment. Raises DataError
    where files are not in step."""
    files = [*references, *([src] if src is not None else [])]
    texts = [lines_of(path) for path in files]
    for path, lines in zip(files, texts, strict=True):
        same_length(path, lines, len(texts[0]), files[0])
    numbers: list[int] = []
    documents: list[str] = []
    part = 1
    for number, line in enumerate(zip(*texts, strict=True)):
        if all(line):
            numbers.append(number)
            documents.append(f"{files[0].name} {part}")
        elif any(line):
            blank, full = (
                files[[bool(text) for text in line].index(is_full)] for is_full in (False, True)
            )
            raise DataError(f"{blank}, line {number + 1}: blank, but it is not in {full}")
        elif documents:
            part = int(documents[-1].rpartition(" ")[2]) + 1
    if not numbers:
        raise DataError(f"{files[0]}: no segment: every line is blank")
    segments = [[lines[number] for number in numbers] for lines in texts]
    sources = segments.pop() if src is not None else []
    return TestSet(name, *languages, sources, segments, documents), numbers, len(texts[0])


def read_output(
    name: str,
    path: Path,
    lines: int,
    numbers: Sequence[int],
    reference: Path,
    settings: Mapping[str, str] | None = None,
) -> Output:
    """A system's output in a file of as many lines as `reference`, of which only lines `numbers`
    are segments."""
    output_lines = lines_of(path)
    same_length(path, output_lines, lines, reference)
    segments = set(numbers)
    for number, line in enumerate(output_lines):
        if line and number not in segments:
            raise DataError(
                f"{path}, line {number + 1}: not blank, but the reference is: are the lines in "
                "step?"
            )
    return Output(
        name, [output_lines[number] for number in numbers], settings or {"hypothesis": str(path)}
    )


def output_warnings(outputs: Sequence[Output]) -> list[str]:
    """A warning for every system that left segments untranslated, or whose output looks
    tokenised."""
    blank = {output.name: sum(not line for line in output.lines) for output in outputs}
    warnings = [
        f"{name}: {quantity(n, 'segment')} without a translation" for name, n in blank.items() if n
    ]
    return warnings + tokenised_outputs(outputs)


def tokenised_outputs(outputs: Sequence[Output]) -> list[str]:
    """sacrebleu's warning (`sacrebleu.metrics.base`): so many lines end in " ." that they seem to
    be tokenised."""
    ends = {output.name: sum(line.endswith(" .") for line in output.lines) for output in outputs}
    return [
        f"{name}: {quantity(n, 'line')} end in a tokenised period (' .'): sacrebleu warns that "
        "text which was not "
        "detokenised may hurt the score"
        for name, n in ends.items()
        if n >= TOKENISED
    ]


def best_matches(index: Index, sources: Sequence[str]) -> list[Match | None]:
    """The best match of every source at any score, None where the memory is empty or the source has
    no word."""
    best: list[Match | None] = []
    for start in range(0, len(sources), SEARCHED):
        matches = index.search(sources[start : start + SEARCHED], 1, 0.0)
        best += [hits[0] if hits else None for hits in matches]
    return best
