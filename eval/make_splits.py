"""Writes the lists of dev and test documents under eval/splits/, by the sha256 of each document's
id: for law and JRC-Acquis by its first eight bytes (`tmnmt.formats.splits.point_of`), for the pages
of Python's documentation by its remainder of 100, as these were parted when they were first used.

    python eval/make_splits.py DATA_FOLDER

Run once; the lists are committed and every later experiment uses them.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
from pathlib import Path

from tmnmt.training.data import split_of

CORPORA = {  # files, shares of dev and test
    "law": (["canadian-law/acts.tsv.gz", "canadian-law/regs.tsv.gz"], 0.003, 0.005),
    "jrc-acquis": (["jrc-acquis/jrc-acquis.en-fr-de-es.tsv.gz"], 0.06, 0.12),
    "python-docs": (["software-docs/python-docs.en-pt.tsv.gz"], 0.22, 0.10),
}
HEADERS = ("celex_doc", "file")


def main(data: Path) -> None:
    for name, (files, dev, test) in CORPORA.items():
        documents: dict[str, int] = {}
        for file in files:
            with gzip.open(data / file, "rt", encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    document = line.partition("\t")[0]
                    documents[document] = documents.get(document, 0) + 1
        for header in HEADERS:
            documents.pop(header, None)
        part_of = part_of_page if name == "python-docs" else split_of
        for kind in ("dev", "test"):
            chosen = sorted(d for d in documents if part_of(d, dev, test) == kind)
            out = Path(__file__).parent / "splits" / f"{name}.{kind}.txt"
            out.parent.mkdir(exist_ok=True)
            out.write_text("".join(f"{d}\n" for d in chosen), encoding="utf-8")
            print(
                f"{out.name}: {len(chosen)} documents, {sum(documents[d] for d in chosen):,} "
                "segments"
            )


def part_of_page(page: str, dev: float, test: float) -> str:
    """ "test", "dev" or "train" by the remainder of the page's sha256."""
    point = int.from_bytes(hashlib.sha256(page.encode()).digest(), "big") % 100 / 100
    return "test" if point < test else "dev" if point < test + dev else "train"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
