"""How many planted faults of a memory are found, and what else is named.

python eval/planted_faults.py python-docs.en-pt.tsv.gz --columns src=3,tgt=4,doc=1 --languages en pt
    [--other python-docs.en-es.tsv.gz --other-columns src=3,tgt=4] [--model FOLDER]
    [--pairs 2000] [--seed 1] [--output FILE.json]

Documents are drawn by the seed until there are so many pairs. Into these every kind of fault is
planted, each pair getting one at most:

untranslated   the target is the source
encoding       UTF-8 that was read as cp1252, or ? in place of letters that are not ASCII
language       the target is what --other has for the same source, in another language
shifted        in stretches of 3 to 10 neighbours every target is that of the one before
contradiction  two further copies of a pair, and one with another pair's target
unrelated      two pairs have exchanged their targets (found with --model alone)

A row has the pairs that were planted, those that were found as what they are, those that were found
as anything, and how many others were named as this kind, with faults planted and without."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tmnmt.eval.faults import KINDS, find_faults
from tmnmt.formats import parse_columns, read_memory
from tmnmt.models.folder import Model, load_model
from tmnmt.segments import Segment

SHARE = 40  # one pair in so many has each kind of fault
STRETCH = (3, 10)
FEWEST_WORDS = 4  # of a source in which a fault is planted


class Memory:
    """Segments in the order of a memory."""

    def __init__(self, languages: Sequence[str], segments: Sequence[Segment]) -> None:
        self.src_lang, self.tgt_lang = languages
        self._segments = [replace(segment, id=at) for at, segment in enumerate(segments, 1)]

    def __len__(self) -> int:
        return len(self._segments)

    def segments(self) -> Iterator[Segment]:
        return iter(self._segments)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("memory", type=Path)
    parser.add_argument("--columns")
    parser.add_argument("--languages", nargs=2, required=True)
    parser.add_argument("--other", type=Path)
    parser.add_argument("--other-columns")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    drawn = draw(_read(options.memory, options.columns), options.pairs, options.seed)
    other = _read(options.other, options.other_columns) if options.other is not None else []
    others = {segment.src: segment.tgt for segment in other}
    model = load_model(options.model) if options.model is not None else None
    figures = measure(drawn, options.languages, others, model, options.seed)
    for row in figures["kinds"]:
        print("\t".join(f"{name}: {value}" for name, value in row.items()))
    if options.output is not None:
        options.output.write_text(json.dumps(figures, ensure_ascii=False, indent=1) + "\n")


def _read(path: Path, columns: str | None) -> list[Segment]:
    chosen = parse_columns(columns) if columns is not None else None
    return [*read_memory(path, "en", "xx", columns=chosen)]


def draw(segments: Sequence[Segment], count: int, seed: int) -> list[Segment]:
    """Whole documents in their order, so many pairs."""
    documents: dict[str, list[Segment]] = {}
    for segment in segments:
        documents.setdefault(segment.document, []).append(segment)
    names = sorted(documents)
    random.Random(seed).shuffle(names)
    drawn: list[Segment] = []
    for name in names:
        drawn += documents[name]
        if len(drawn) >= count:
            break
    return drawn[:count]


def measure(
    segments: Sequence[Segment],
    languages: Sequence[str],
    others: dict[str, str],
    model: Model | None,
    seed: int,
) -> dict[str, Any]:
    damaged, planted = plant(segments, others, seed)
    named = _named(Memory(languages, damaged), model)
    clean = _named(Memory(languages, segments), model)
    faulty = {at for places in planted.values() for at in places}
    anything = {at for places in named.values() for at in places}
    rows = []
    for kind in KINDS:
        places = planted.get(kind, set())
        # its neighbour in a pair of contradictions, or at the edge of a stretch, is no false alarm
        false = named[kind] - faulty
        right = len(named[kind] & places)
        rows.append(
            {
                "kind": kind,
                "planted": len(places),
                "found": right,
                "found as anything": len(anything & places),
                "other faults named so": len(named[kind] & faulty) - right,
                "sound pairs named so": len(false),
                "named in the clean pairs": len(clean[kind]),
            }
        )
    return {"pairs": len(segments), "seed": seed, "languages": [*languages], "kinds": rows}


def _named(memory: Memory, model: Model | None) -> dict[str, set[int]]:
    faults = find_faults(memory, model)
    return {kind: {f.segment.id - 1 for f in faults if f.kind == kind} for kind in KINDS}


def plant(
    segments: Sequence[Segment], others: dict[str, str], seed: int
) -> tuple[list[Segment], dict[str, set[int]]]:
    """The damaged segments, and the places of each kind of fault."""
    chance = random.Random(seed)
    pairs = [*segments]
    count = max(1, len(pairs) // SHARE)
    planted: dict[str, set[int]] = {}
    planted["shifted"] = _shift(pairs, count, chance)
    free = [
        at
        for at, s in enumerate(pairs)
        if at not in planted["shifted"] and len(s.src.split()) >= FEWEST_WORDS and s.src != s.tgt
    ]
    chance.shuffle(free)

    def take(kind: str, fitting: Sequence[int]) -> list[int]:
        places = [*fitting[:count]]
        planted[kind] = set(places)
        for at in places:
            free.remove(at)
        return places

    for at in take("untranslated", free):
        pairs[at] = replace(pairs[at], tgt=pairs[at].src)
    for at in take("language", [at for at in free if _elsewhere(pairs[at], others)]):
        pairs[at] = replace(pairs[at], tgt=others[pairs[at].src])
    for number, at in enumerate(take("encoding", [at for at in free if _letters(pairs[at])])):
        pairs[at] = replace(pairs[at], tgt=_misread(pairs[at].tgt, number % 2 == 0))
    exchanged = take("unrelated", free)
    exchanged = exchanged[: len(exchanged) // 2 * 2]
    targets = [pairs[at].tgt for at in exchanged]
    for at, tgt in zip(exchanged, [*targets[1:], targets[0]], strict=True):
        pairs[at] = replace(pairs[at], tgt=tgt)
    planted["contradiction"] = _contradict(pairs, free, count)
    return pairs, planted


def _elsewhere(pair: Segment, others: dict[str, str]) -> bool:
    return others.get(pair.src, pair.tgt) != pair.tgt


def _letters(pair: Segment) -> bool:
    return not pair.tgt.isascii()


def _misread(text: str, as_other: bool) -> str:
    if as_other:
        return text.encode().decode("cp1252", "ignore")
    return "".join(sign if sign.isascii() else "?" for sign in text)


def _shift(pairs: list[Segment], count: int, chance: random.Random) -> set[int]:
    """About twice as many segments as of another kind, since these come in stretches."""
    shifted: set[int] = set()
    for _ in range(1000):
        if len(shifted) >= 2 * count:
            break
        size = chance.randint(*STRETCH)
        first = chance.randrange(1, max(2, len(pairs) - size))
        block = pairs[first - 1 : first + size]
        places = set(range(first - 1, first + size + 1))
        if len({s.document for s in block}) > 1 or places & shifted:
            continue
        if len({s.tgt for s in block}) < len(block):
            continue
        for at in range(first + size - 1, first - 1, -1):
            pairs[at] = replace(pairs[at], tgt=pairs[at - 1].tgt)
        shifted |= set(range(first, first + size))
    return shifted


def _contradict(pairs: list[Segment], free: Sequence[int], count: int) -> set[int]:
    """Behind the others: two copies, and one with the target of another pair."""
    wrong: set[int] = set()
    for at, other in zip(free[:count], free[count : 2 * count], strict=True):
        copy = replace(pairs[at], document=f"copy {at}")
        pairs += [copy, copy, replace(copy, tgt=pairs[other].tgt)]
        wrong.add(len(pairs) - 1)
    return wrong


if __name__ == "__main__":
    main()
