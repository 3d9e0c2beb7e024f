"""Writes the lists of dev and test documents under eval/splits/, by the sha256 of each document's
id.

    python eval/make_splits.py DATA_FOLDER

Run once; the lists are committed and every later experiment uses them.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

from tmnmt.training.data import split_of

CORPORA = {  # files, shares of dev and test
    "law": (["canadian-law/acts.tsv.gz", "canadian-law/regs.tsv.gz"], 0.003, 0.005),
    "jrc-acquis": (["jrc-acquis/jrc-acquis.en-fr-de-es.tsv.gz"], 0.06, 0.12),
}


def main(data: Path) -> None:
    for name, (files, dev, test) in CORPORA.items():
        documents: dict[str, int] = {}
        for file in files:
            with gzip.open(data / file, "rt", encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    document = line.partition("\t")[0]
                    documents[document] = documents.get(document, 0) + 1
        documents.pop("celex_doc", None)
        for kind in ("dev", "test"):
            chosen = sorted(d for d in documents if split_of(d, dev, test) == kind)
            out = Path(__file__).parent / "splits" / f"{name}.{kind}.txt"
            out.parent.mkdir(exist_ok=True)
            out.write_text("".join(f"{d}\n" for d in chosen), encoding="utf-8")
            print(
                f"{out.name}: {len(chosen)} documents, {sum(documents[d] for d in chosen):,} "
                "segments"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
