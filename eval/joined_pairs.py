"""Two memories with the same sources as one of their targets: Portuguese and Spanish, by the
English that both were made of.

python eval/joined_pairs.py python-docs.en-pt.tsv.gz python-docs.en-es.tsv.gz --languages pt es
    --output pt-es.tsv.gz

Both files have the columns page, place, source and target. A source that stands in a page of both
gives one pair there."""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Iterator
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("memories", type=Path, nargs=2)
    parser.add_argument("--languages", nargs=2, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    first, second = options.memories
    others = {(page, src): tgt for page, _, src, tgt in _rows(second)}
    joined = [
        "\t".join([page, place, tgt, others[page, src]]) + "\n"
        for page, place, src, tgt in _rows(first)
        if (page, src) in others
    ]
    with gzip.open(options.output, "wt", encoding="utf-8", newline="") as file:
        file.writelines(["\t".join(["file", "idx", *options.languages]) + "\n", *joined])
    print(f"{len(joined):,} pairs")


def _rows(path: Path) -> Iterator[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        yield from (row for row in rows if row[1].isdecimal())


if __name__ == "__main__":
    main()
