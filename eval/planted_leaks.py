"""Whether `tmnmt evaluate prepare` finds every copy of a test segment, however it is written, and
`tmnmt evaluate run` every near leak.

    python eval/planted_leaks.py MEMORY... [--columns src=5,tgt=6,doc=1,idx=2] [--planted 1000]
    [--output FILE.json]

The memory is prepared; then once more, with the same split, after sources of its dev and test were
planted as documents to be trained on: as they are, with other white space, in both Unicode forms.
Every planted one must be counted as dropped, and none may stand in the training data (nor, for
research, in the memory): else it ends with 1. Then references of the test are planted in the
memory as the targets of other sources. Those of 8 words or more must be counted as near leaks, and
no others that were not there before."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

from tmnmt.eval.data.near_leaks import FEWEST_WORDS, long_targets, near_leaks
from tmnmt.eval.data.prepare import SAME_SOURCE, Settings, prepare
from tmnmt.formats import parse_columns, read_memories, read_memory, write_tsv
from tmnmt.segments import Segment
from tmnmt.text import normalise, words

PARTS = "train", "memory"
DISGUISES: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "white space": lambda text: "  " + text.replace(" ", "\u00a0  ") + " ",
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "composed": lambda text: unicodedata.normalize("NFC", text),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("memories", nargs="+", type=Path, metavar="MEMORY")
    parser.add_argument("--columns")
    parser.add_argument("--src-lang", default="en")
    parser.add_argument("--tgt-lang", default="fr")
    parser.add_argument("--planted", type=int, default=1000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    languages = options.src_lang, options.tgt_lang
    columns = parse_columns(options.columns) if options.columns else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tsv(
            folder / "all.tsv.gz",
            iter(read_memories(options.memories, *languages, columns=columns)),
        )
        result = [
            experiment(folder, languages, options.planted, regime)
            for regime in ("research", "translator")
        ]
        result.append(near(folder / "research-1", languages, options.planted))
    for one in result:
        print(json.dumps(one))
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    sys.exit(int(any(one["missed"] for one in result)))


def experiment(
    folder: Path, languages: tuple[str, str], count: int, regime: Literal["research", "translator"]
) -> dict[str, Any]:
    """Prepares without and with planted copies: how many were planted, dropped for it,
    and missed."""
    memory, more = folder / "all.tsv.gz", folder / "planted.tsv.gz"
    first, second = folder / f"{regime}-1", folder / f"{regime}-2"
    start = time.process_time()
    before, _ = prepare([memory], *languages, first, Settings(regime))
    seconds = time.process_time() - start
    held = [
        pair.src
        for kind in ("dev", "test")
        for pair in read_memory(first / f"{kind}.tsv.gz", *languages)
    ]
    chosen = random.Random(1).sample([src for src in held if normalise(src)], min(count, len(held)))
    write_tsv(more, planted(chosen))
    after, _ = prepare([memory, more], *languages, second, Settings(regime, splits=first))
    dropped = {
        part: after[part]["dropped"][SAME_SOURCE] - before[part]["dropped"][SAME_SOURCE]
        for part in PARTS
    }
    known = {normalise(src) for src in chosen}
    looked_at = PARTS if regime == "research" else PARTS[:1]
    found = {part: missed(second / f"{part}.tsv.gz", languages, known) for part in looked_at}
    short = sum(len(chosen) - dropped[part] for part in looked_at)
    return {
        "regime": regime,
        "pairs": before["read"]["kept"],
        "planted": len(chosen),
        "dropped": dropped,
        "missed": sum(found.values()) + abs(short),
        "prepared_in_cpu_seconds": round(seconds, 1),
    }


def near(prepared: Path, languages: tuple[str, str], count: int) -> dict[str, Any]:
    """References of the test planted in the memory: how many, and how many of these are missed, or
    counted without being there."""
    references = [pair.tgt for pair in read_memory(prepared / "test.tsv.gz", *languages)]
    memory = [pair.tgt for pair in read_memory(prepared / "memory.tsv.gz", *languages)]
    before = near_leaks([references], {"memory": long_targets(memory)}).segments
    chosen = random.Random(2).sample(references, min(count, len(references)))
    targets = [
        DISGUISES[disguise](text) for text, disguise in zip(chosen, cycle(DISGUISES), strict=False)
    ]
    after = near_leaks([references], {"memory": long_targets([*memory, *targets])}).segments
    known = {normalise(text) for text in chosen if words(text) >= FEWEST_WORDS}
    expected = {number for number, text in enumerate(references) if normalise(text) in known}
    return {
        "references": len(references),
        "near leaks before": len(before),
        "planted": len(chosen),
        "found": len(after),
        "missed": len({*before, *expected} ^ {*after}),
    }


def planted(sources: Sequence[str]) -> Iterator[Segment]:
    """A document of each disguise in turn, with translations that stand nowhere else."""
    for number, (src, disguise) in enumerate(zip(sources, cycle(DISGUISES), strict=False)):
        yield Segment(
            DISGUISES[disguise](src), f"traduction {number}", f"planted {disguise}", number
        )


def missed(path: Path, languages: tuple[str, str], known: set[str]) -> int:
    """How many pairs of a file have one of these sources."""
    return sum(normalise(pair.src) in known for pair in read_memory(path, *languages))


if __name__ == "__main__":
    main()
