"""Turns the published TVsub (Wang et al., AAAI 2018; zh-en) into what this project reads.

    python eval/tvsub.py DATA_FOLDER OUT

DATA_FOLDER/tvsub holds the published files. OUT gets train, dev and test as TSV of document,
segment number, source and first reference (for training), and dev and test as plain files, one
segment a line, with every reference (for `tmnmt evaluate`). Only `<DOC docid=...>` and `<seg
id=...>` are read: the files are SGML with bare attributes, no XML.

The published texts are as the Moses tokeniser left them, with &apos; and other entities on both
sides. They become characters here: to a metric "&apos;" is three tokens, which any output with an
apostrophe gets right."""

from __future__ import annotations

import argparse
import gzip
import lzma
import re
import sys
from pathlib import Path

DOC = re.compile(r'<DOC docid="([^"]+)" sysid="([^"]+)">')
SEGMENT = re.compile(r"<seg id=\d+>(.*)</seg>")
# What Moses' escape-special-chars.perl writes, and no other entity: the texts have none
ENTITIES = {
    "&apos;": "'",
    "&quot;": '"',
    "&lt;": "<",
    "&gt;": ">",
    "&amp;": "&",
    "&#91;": "[",
    "&#93;": "]",
    "&#124;": "|",
}
ENTITY = re.compile("|".join(map(re.escape, ENTITIES)))


def unescaped(text: str) -> str:
    """With characters for entities, read once: "&amp;lt;" was "&lt;"."""
    return ENTITY.sub(lambda found: ENTITIES[found[0]], text)


def references(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Of each set of references, document id and text of every segment in order."""
    sets: dict[str, list[tuple[str, str]]] = {}
    document, name = "", ""
    for line in path.read_text(encoding="utf-8").split("\n"):
        if found := DOC.search(line):
            document, name = found.groups()
        elif found := SEGMENT.search(line):
            sets.setdefault(name, []).append((document, unescaped(found[1].strip())))
    return sets


def main(data: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    print(
        f"train: {write_train(data / 'tvsub' / 'train.tok.tsv.xz', out / 'train.tsv.gz'):,} "
        "segments"
    )
    for kind in ("dev", "test"):
        text = (data / "tvsub" / f"{kind}_src").read_text(encoding="utf-8")
        sources = [unescaped(line) for line in text.removesuffix("\n").split("\n")]
        sets = list(references(data / "tvsub" / f"{kind}_trg.sgm").values())
        if {len(one) for one in sets} != {len(sources)}:
            sys.exit(
                f"{kind}: {len(sources)} sources, references of {[len(one) for one in sets]} "
                "segments"
            )
        documents = [f"{kind}.{document}" for document, _ in sets[0]]
        rows = zip(documents, sources, (text for _, text in sets[0]), strict=True)
        table = [
            f"{document}\t{number}\t{src}\t{tgt}"
            for number, (document, src, tgt) in enumerate(rows)
        ]
        write(out / f"{kind}.tsv", table)
        write(out / f"{kind}.zh", split_documents(sources, documents))
        for number, one in enumerate(sets):
            write(
                out / f"{kind}.en.{number}", split_documents([text for _, text in one], documents)
            )
        print(
            f"{kind}: {len(sources):,} segments, {len(set(documents))} documents, references: "
            f"{len(sets)}"
        )


def write_train(published: Path, out: Path) -> int:
    """The training pairs with characters for entities, as a TSV; how many there are. The same input
    gives the same bytes."""
    count = 0
    with (
        lzma.open(published, "rt", encoding="utf-8", newline="\n") as lines,
        out.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
    ):
        for line in lines:
            packed.write(unescaped(line).encode())
            count += 1
    return count


def split_documents(lines: list[str], documents: list[str]) -> list[str]:
    """The lines with a blank one between documents."""
    out: list[str] = []
    for number, line in enumerate(lines):
        if number and documents[number] != documents[number - 1]:
            out.append("")
        out.append(line)
    return out


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("data", type=Path)
    asked.add_argument("out", type=Path)
    try:
        main(**vars(asked.parse_args()))
    except OSError as error:
        raise SystemExit(f"tvsub: {error}") from error
