"""How many segments of a text are full matches of a memory, as they stand or with the right numbers
put in, and how many of those translations are the reference.

    python eval/full_matches.py FILE --memory MEMORY [--src-lang en --tgt-lang fr]

FILE is a memory file whose targets are the references. Each pair of it counts once. Two targets are
the same where their match tokens are: many others are as good, as of "Repealed", whose French goes
by a word that the source does not have."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tmnmt.engine.retrieve import Retriever
from tmnmt.errors import TmnmtError
from tmnmt.formats import read_memory
from tmnmt.index.base import Index
from tmnmt.index.opening import open_memory
from tmnmt.segments import Segment
from tmnmt.text import normalise

TOGETHER = 256


def main() -> int:
    """Prints the counts; 1 when a file is missing or wrong."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("file", type=Path, metavar="FILE")
    options.add_argument("--memory", required=True, metavar="MEMORY")
    options.add_argument("--src-lang", default="en")
    options.add_argument("--tgt-lang", default="fr")
    chosen = options.parse_args()
    try:
        segments = list(read_memory(chosen.file, chosen.src_lang, chosen.tgt_lang))
        index = open_memory(chosen.memory, chosen.src_lang, chosen.tgt_lang)
        counts = counted(segments, index)
    except TmnmtError as error:
        print(f"full_matches: {error}", file=sys.stderr)
        return 1
    print(f"{counts['pairs']:,} pairs")
    for kind in ("as it stands", "with other numbers"):
        print(f"{kind}: {counts[kind]:,}, of which {counts[kind, 'right']:,} as the reference")
    return 0


def counted(segments: list[Segment], index: Index) -> Counter[object]:
    """Pairs, and those of each kind, alone and as ("kind", "right")."""
    counts = Counter[object]()
    retriever = Retriever([index], 4, 0.5)
    distinct = list({(segment.src, segment.tgt): segment for segment in segments}.values())
    for at in range(0, len(distinct), TOGETHER):
        some = distinct[at : at + TOGETHER]
        found = retriever.exact([segment.src for segment in some])
        for segment, match in zip(some, found, strict=True):
            counts["pairs"] += 1
            if match is None:
                continue
            same = normalise(segment.src) == normalise(match.segment.src)
            kind = "as it stands" if same else "with other numbers"
            counts[kind] += 1
            counts[kind, "right"] += normalise(match.tgt) == normalise(segment.tgt)
    return counts


if __name__ == "__main__":
    raise SystemExit(main())
