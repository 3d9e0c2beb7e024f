"""Writes the lists under eval/splits/halves/, by which the training documents of law and JRC-Acquis
are halved: half A trains a base, half B trains the networks that are put beside it.

    python eval/halves.py DATA_FOLDER

A document is of half A where its point (`tmnmt.formats.splits.point_of`) is below 0.5. A list says
what the other half and the test documents are, since a configuration names what it leaves out. So
`load_corpora` drops, too, every source that stands in the other half: the base has seen no sentence
that a network learns from. The documents of dev and test (eval/splits/) are in neither half.

Run once; the lists are committed.
"""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from pathlib import Path

from make_splits import CORPORA

from tmnmt.formats.splits import point_of

SPLITS = Path(__file__).parent / "splits"
MIDDLE = 0.5
HALVED = "law", "jrc-acquis"


def main(data: Path) -> None:
    for name in HALVED:
        files, _, _ = CORPORA[name]
        documents = Counter[str]()
        for file in files:
            with gzip.open(data / file, "rt", encoding="utf-8", newline="\n") as lines:
                rows = (line.split("\t", 3) for line in lines)
                documents.update(row[0] for row in rows if name != "law" or row[2] == "Text")
        documents.pop("celex_doc", None)
        dev, test = (
            set((SPLITS / f"{name}.{kind}.txt").read_text(encoding="utf-8").split())
            for kind in ("dev", "test")
        )
        halves: dict[str, set[str]] = {"a": set(), "b": set()}
        for document in documents.keys() - dev - test:
            halves["a" if point_of(document) < MIDDLE else "b"].add(document)
        for half, other in (("a", "b"), ("b", "a")):
            out = SPLITS / "halves" / f"{name}.not-{half}.txt"
            out.parent.mkdir(exist_ok=True)
            ids = sorted(halves[other] | test)
            out.write_text("".join(f"{document}\n" for document in ids), encoding="utf-8")
            size = sum(documents[document] for document in halves[half])
            print(f"{name}, half {half}: {len(halves[half]):,} documents, {size:,} segments")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
