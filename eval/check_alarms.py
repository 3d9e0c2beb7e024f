"""How often the checks find something in translations that people made: almost all of it is a false
alarm.

python eval/check_alarms.py FILE... --columns en=4,fr=5 [--pairs 500] [--seed 1] [--show]
    [--model FOLDER]

Files are tab-separated, .gz or not. Pairs with an empty side are left out. Told is how many of the
pairs drawn each check flags, and how many any of them does. With --model the same is told of what a
model writes for the same sources, without a memory: how often a check fires there, beside how often
it fires where a person has translated."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch

from tmnmt.checks import CHECKS, checks
from tmnmt.codes.record import Text
from tmnmt.config.options import TranslationOptions
from tmnmt.translator import Translator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--columns", required=True, help="of both languages, as en=4,fr=5")
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what is found")
    parser.add_argument("--model", type=Path, help="translates the sources, too")
    options = parser.parse_args()
    (src_lang, src), (tgt_lang, tgt) = (one.split("=") for one in options.columns.split(","))
    pairs = drawn(options.files, int(src), int(tgt), options.pairs, options.seed)
    print(json.dumps(found_in(pairs, (src_lang, tgt_lang), options.show)))
    if options.model:
        torch.set_num_threads(1)
        translator = Translator.load(options.model, options=TranslationOptions(verbatim=0))
        sources = [source for source, _ in pairs]
        written = [one.tgt for one in translator.translate(sources)]
        counts = found_in([*zip(sources, written, strict=True)], (src_lang, tgt_lang), options.show)
        print(json.dumps({"model": options.model.name, **counts}))


def found_in(
    pairs: Sequence[tuple[str, str]], languages: tuple[str, str], show: bool
) -> dict[str, float]:
    """How many of these translations each check flags, and how many any of them does."""
    counts, flagged = Counter[str](), 0
    for source, target in pairs:
        found = checks(Text(source), Text(target), CHECKS, languages)
        counts.update(check.name for check in found)
        flagged += bool(found)
        if found and show:
            print(f"{found}\n  {source}\n  {target}")
    share = round(100 * flagged / len(pairs), 2)
    return {"pairs": len(pairs), **counts, "any": flagged, "any %": share}


def drawn(files: list[Path], src: int, tgt: int, count: int, seed: int) -> list[tuple[str, str]]:
    """So many pairs of these columns."""
    csv.field_size_limit(10**9)
    pairs = list[tuple[str, str]]()
    for path in files:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", newline="") as lines:
            for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                if len(row) > max(src, tgt) and row[src].strip() and row[tgt].strip():
                    pairs.append((row[src], row[tgt]))
    return random.Random(seed).sample(pairs, count)


if __name__ == "__main__":
    main()
