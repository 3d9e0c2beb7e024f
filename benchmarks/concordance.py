"""Time of a concordance, in an embedded index and on a server, by kind of phrase.

    python benchmarks/concordance.py INDEX [--server elasticsearch+http://127.0.0.1:PORT/bench]

INDEX is an embedded index. With `--segments N` another one is built of its first N segments; where
it has fewer, of copies as well, in which a word in eight is another one of the text's own. With
`--server` the index at that address is replaced by one of the same segments, and its answers must
be those of the embedded index, or it ends here.

Phrases come from random places of both sides, by a seed. Each is asked for once before it is timed,
so the times are those of a process that has been asked before. For the embedded index they are the
processor's, since other programs may be at work; for a server they are the clock's. Beside them
stands a scan: every segment is looked at. It is timed on a part of the segments."""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from search_speed import conditions

from tmnmt.index import MemoryIndex, build
from tmnmt.index.base import WritableIndex
from tmnmt.index.concordance import Phrase, Side, occurrences
from tmnmt.index.elastic.address import parse_address
from tmnmt.index.elastic.build import build_elastic
from tmnmt.index.elastic.index import ElasticIndex
from tmnmt.segments import Segment
from tmnmt.text import match_tokens

FOUND = 20  # segments that are asked for
SCANNED = 5000  # segments of a scan, whose time is told for all
SIDES: tuple[Side, Side] = ("source", "target")
# what the commonest words of English and French law begin with: the most that can be asked for
LETTERS = ("a*", "d*", "t*", "o* t*", "d* l*", "the the", "of the", "de la", "a* b* c*")
KINDS = {
    "1 to 4 words side by side": lambda draw, words: words[: draw.randint(1, 4)],
    "the last of them with a star behind four letters": lambda draw, words: starred(
        words[: draw.randint(1, 4)], 4
    ),
    "the last with a star behind one letter": lambda draw, words: starred(
        words[: draw.randint(1, 3)], 1
    ),
    "each of 2 or 3 with a star behind two letters": lambda draw, words: [
        word[:2] + "*" for word in words[: draw.randint(2, 3)]
    ],
}


def main() -> None:
    options = arguments()
    with ExitStack() as stack:
        indexes: dict[str, WritableIndex] = {
            "embedded": stack.enter_context(MemoryIndex.open(options.index))
        }
        if options.segments:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            path, first = Path(folder) / "index", indexes["embedded"]
            build(path, so_many(first, options.segments), first.src_lang, first.tgt_lang)
            indexes["embedded"] = stack.enter_context(MemoryIndex.open(path))
        segments = list(indexes["embedded"].segments())
        asked = phrases(segments, options.phrases)
        some, count = segments[:SCANNED], len(segments)
        scans = [timed(lambda p=one[0]: occurrences(p, some, FOUND)) for one in asked.values()]
        if options.server:
            address, one = parse_address(options.server), indexes["embedded"]
            build_elastic(address, segments, one.src_lang, one.tgt_lang, force=True)
            indexes["server"] = stack.enter_context(ElasticIndex.open(address))
        result = {
            **conditions(),
            "segments": count,
            "scan_ms": statistics.mean(scans) * count / SCANNED,
            "kinds": {kind: measure(indexes, of_kind) for kind, of_kind in asked.items()},
        }
    show(result)
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--segments", type=int)
    parser.add_argument("--server")
    parser.add_argument("--phrases", type=int, default=100, help="of each kind")
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def so_many(index: WritableIndex, size: int) -> Iterator[Segment]:
    """The segments of an index, and copies of them until there are so many."""
    draw, there = random.Random(0), list(itertools.islice(index.segments(), size))
    yield from there
    for number in range(size - len(there)):
        one = there[number % len(there)]
        yield replace(
            one, src=mixed(draw, one.src), tgt=mixed(draw, one.tgt), src_codes=(), tgt_codes=()
        )


def mixed(draw: random.Random, text: str) -> str:
    words = text.split()
    return " ".join(draw.choice(words) if draw.random() < 1 / 8 else word for word in words)


def phrases(segments: Sequence[Segment], count: int) -> dict[str, list[Phrase]]:
    """Phrases of every kind from random places."""
    draw, made = random.Random(1), dict[str, list[Phrase]]()
    for kind, make in KINDS.items():
        made[kind] = []
        while len(made[kind]) < count:
            side = draw.choice(SIDES)
            one = draw.choice(segments)
            tokens = match_tokens(one.src if side == "source" else one.tgt)
            at = draw.randrange(max(1, len(tokens) - 4))
            if words := [word for word in tokens[at : at + 4] if word[:1].isalpha()]:
                made[kind].append(Phrase(" ".join(make(draw, words)), side))
    near = [one for one in made["1 to 4 words side by side"] if len(one.words) == 2]
    made["2 words within 3, 6 or 10"] = [
        replace(one, within=draw.choice((3, 6, 10))) for one in near
    ]
    common = [Phrase(text, side) for text in LETTERS for side in SIDES]
    made["single letters with a star, the commonest words"] = common
    made["the same within 5 or 30"] = [
        replace(one, within=within) for one in common for within in (5, 30)
    ]
    return made


def starred(words: Sequence[str], letters: int) -> list[str]:
    return [*words[:-1], words[-1][:letters] + "*"]


def timed(call, clock=time.process_time) -> float:  # type: ignore[no-untyped-def]
    """Milliseconds, of the processor if no other clock is given."""
    start = clock()
    call()
    return (clock() - start) * 1000


def measure(
    indexes: dict[str, WritableIndex], asked: Sequence[Phrase]
) -> dict[str, dict[str, float]]:
    """Of every index: milliseconds, of the processor; with a server, all that one waits for."""
    expected = [indexes["embedded"].concordance(phrase, FOUND) for phrase in asked]
    table = {}
    for name, index in indexes.items():
        times = []
        clock = time.perf_counter if name == "server" else time.process_time
        for phrase, answer in zip(asked, expected, strict=True):
            if index.concordance(phrase, FOUND) != answer:
                sys.exit(f"{name}: another answer to {phrase}")
            times.append(timed(lambda i=index, p=phrase: i.concordance(p, FOUND), clock))
        times.sort()
        table[name] = {
            "phrases": len(times),
            "median": statistics.median(times),
            "mean": statistics.mean(times),
            "p95": times[int(0.95 * (len(times) - 1))],
            "most": times[-1],
        }
    return table


def show(result: dict[str, object]) -> None:
    print(f"{result['segments']:,} segments; a scan of all takes {result['scan_ms']:,.0f} ms\n")
    print("| | | phrases | median | mean | 95 % | most |\n|---|---|---|---|---|---|---|")
    for kind, of_indexes in result["kinds"].items():  # type: ignore[attr-defined]
        for name, of in of_indexes.items():
            times = " | ".join(f"{of[key]:.1f}" for key in ("median", "mean", "p95", "most"))
            print(f"| {kind} | {name} | {of['phrases']} | {times} |")


if __name__ == "__main__":
    main()
