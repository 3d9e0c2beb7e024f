"""All kinds of faults of a memory, each by one function in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from tmnmt.checks import copied_source
from tmnmt.eval.faults.encoding import lost_letters, misread
from tmnmt.eval.faults.identify import is_prose, other_language
from tmnmt.eval.faults.shifted import Fitness, shifted
from tmnmt.progress import Progress
from tmnmt.segments import Segment
from tmnmt.text import match_tokens

if TYPE_CHECKING:
    from tmnmt.models.folder import Model

KINDS = {
    "untranslated": "the target is the source",
    "encoding": "a side was read in a wrong encoding, or has lost letters",
    "language": "a side is in another language",
    "shifted": "the target is that of a neighbour",
    "contradiction": "the source has another target, which more segments have",
    "unrelated": "the model finds the target no likelier with its source than with another",
}
PASSES = 3  # times that every segment is looked at; once more with a model
MAX_MODEL_SEGMENTS = (
    1000  # segments at most that a model is asked of, where numbers are wanted alone
)


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with one segment: its kind, and what a person can see of it."""

    segment: Segment
    kind: str
    detail: str


class Memory(Protocol):
    """What is looked through: its languages, and its segments as often as they are asked for."""

    src_lang: str
    tgt_lang: str

    def __len__(self) -> int: ...

    def segments(self) -> Iterable[Segment]: ...


def find_faults(
    memory: Memory, model: Model | None = None, advance: Callable[[int], None] = lambda n: None
) -> list[Fault]:
    """The faults of a memory in the order of its segments; a segment may have several, those of the
    kind "unrelated" where there is a model. `advance` is told of segments that were looked at."""
    faults = [
        *_of_each(memory, advance),
        *_contradictions(memory, advance),
        *_shifted(memory, advance),
        *(find_unrelated(memory, model, advance=advance) if model is not None else ()),
    ]
    kinds = list(KINDS)
    return sorted(faults, key=lambda fault: (fault.segment.id, kinds.index(fault.kind)))


def _of_each(memory: Memory, advance: Callable[[int], None]) -> Iterator[Fault]:
    for segment in memory.segments():
        src, tgt = segment.src, segment.tgt
        if copied_source(src, tgt) and is_prose(src, memory.src_lang):
            yield Fault(segment, "untranslated", "")
        else:
            yield from _languages(segment, memory)
        if word := misread(tgt) or misread(src) or lost_letters(src, tgt):
            yield Fault(segment, "encoding", word)
        advance(1)


def _languages(segment: Segment, memory: Memory) -> Iterator[Fault]:
    """What is in one other language on both sides is a quotation or a name."""
    src = other_language(segment.src, memory.src_lang)
    tgt = other_language(segment.tgt, memory.tgt_lang)
    if src != tgt:
        sides = (("target", tgt), ("source", src))
        yield Fault(
            segment, "language", ", ".join(f"{side}: {lang}" for side, lang in sides if lang)
        )


def _shifted(memory: Memory, advance: Callable[[int], None]) -> Iterator[Fault]:
    fitness = Fitness(memory.segments(), len(memory))
    for segment, tgt in shifted(memory.segments(), fitness, advance):
        yield Fault(segment, "shifted", tgt)


def find_unrelated(
    memory: Memory,
    model: Model,
    limit: int | None = None,
    advance: Callable[[int], None] = lambda n: None,
) -> Iterator[Fault]:
    """Faults of the kind "unrelated" among so many segments, evenly spread; None: among all."""
    from tmnmt.eval.faults.by_model import unrelated

    step = spread(len(memory), limit)
    segments = islice(memory.segments(), 0, None, step)
    for segment, gain in unrelated(segments, model, advance):
        yield Fault(segment, "unrelated", f"{gain:.2f} nats a subword")


def faults_in_numbers(memory: Memory, model: Model | None = None) -> dict[str, Any]:
    """`counts` of every kind of fault that a memory has, and `asked`, of how many of its segments
    the model was asked: with a model some are, evenly spread. Shows how far it is."""
    checked = (
        len(range(0, len(memory), spread(len(memory), MAX_MODEL_SEGMENTS)))
        if model is not None
        else 0
    )
    with Progress("looking for faults", "segments", PASSES * len(memory) + checked) as progress:
        faults = find_faults(memory, None, progress.advance)
        if model is not None:
            faults += find_unrelated(memory, model, MAX_MODEL_SEGMENTS, progress.advance)
    counts = Counter(fault.kind for fault in faults)
    return {"counts": {kind: counts[kind] for kind in KINDS if counts[kind]}, "asked": checked}


def spread(total: int, limit: int | None) -> int:
    """One of so many segments is looked at, where that shall be `limit` at most."""
    return 1 if limit is None else max(1, -(-total // limit))


def _contradictions(memory: Memory, advance: Callable[[int], None]) -> Iterator[Fault]:
    """Segments whose source has another target more often. What differs in case or punctuation
    alone is the same."""
    targets: dict[int, Counter[int]] = {}
    for segment in memory.segments():
        counts = targets.setdefault(hash(_form(segment.src, str)), Counter())
        counts[hash(_form(segment.tgt, str.casefold))] += 1
    doubtful = {src: counts.most_common(1)[0] for src, counts in targets.items() if len(counts) > 1}
    for segment in memory.segments():
        src, tgt = hash(_form(segment.src, str)), hash(_form(segment.tgt, str.casefold))
        best = doubtful.get(src)
        if best is not None and targets[src][tgt] < best[1]:
            yield Fault(segment, "contradiction", f"{best[1]} of {targets[src].total()} differ")
        advance(1)


def _form(text: str, case: Callable[[str], str]) -> str:
    words = [token for token in match_tokens(case(text)) if any(map(str.isalnum, token))]
    return " ".join(words) or text
