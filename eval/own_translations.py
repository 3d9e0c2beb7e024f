"""What the translations that a file has already are worth for the rest of it.

    python eval/own_translations.py DATA --work FOLDER [--model models/law.en-fr] [--seed 1]

Documents are drawn by the seed: test documents of law, or those of another split (--split), or the
pages of a table (DATA is a .tsv.gz with page, place, source and target, --languages en pt). Of each
the first segments become an XLIFF file in which every second unit is approved. The other units are
translated three times, all files in one command, with no other memory: without the file's own
translations, with the same pairs given as a TMX by --memory, and with the file's own translations.
BLEU is of these other units, of all documents together; of "new" units, whose source is not among
the approved ones, it is given besides."""

from __future__ import annotations

import argparse
import csv
import gzip
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import sacrebleu

from tmnmt.cli import run
from tmnmt.files.opening import open_translatable
from tmnmt.formats.tmx_writer import write_tmx
from tmnmt.formats.xml_text import escaped
from tmnmt.segments import Segment
from tmnmt.text import normalise

SPLITS = Path(__file__).parent / "splits"
SPLIT = SPLITS / "law.test.txt"
FILES = ("acts.tsv.gz", "regs.tsv.gz")


class Row(NamedTuple):
    """A segment of a document; every second one is approved."""

    document: str
    src: str
    tgt: str
    is_approved: bool


def documents(data: Path, ids: set[str], most: int) -> dict[str, list[Row]]:
    """The first segments of these documents of law."""
    tables = (table(data / "canadian-law" / name) for name in FILES)
    rows = (row for rows in tables for row in rows if row[0] in ids)
    return first_rows(((row[0], row[-2], row[-1]) for row in rows), most)


def table(path: Path) -> Iterator[list[str]]:
    """The rows of a table without quotes."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def first_rows(segments: Iterable[tuple[str, str, str]], most: int) -> dict[str, list[Row]]:
    """The first segments of each document, by its name."""
    rows = dict[str, list[Row]]()
    for document, src, tgt in segments:
        of_document = rows.setdefault(document, [])
        if src.strip() and tgt.strip() and len(of_document) < most:
            of_document.append(Row(document, src, tgt, len(of_document) % 2 == 0))
    return rows


def write_xliff(path: Path, rows: Sequence[Row], languages: Sequence[str]) -> None:
    """The document as XLIFF; only approved units have a target."""
    units = ""
    for number, row in enumerate(rows):
        approved, target = "", ""
        if row.is_approved:
            approved = ' approved="yes"'
            target = f'<target state="final">{escaped(row.tgt)}</target>'
        source = f"<source>{escaped(row.src)}</source>"
        units += f'<trans-unit id="{number}"{approved}>{source}{target}</trans-unit>\n'
    path.write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" '
        'xmlns="urn:oasis:names:tc:xliff:document:1.2">\n<file original="a" datatype="plaintext" '
        f'source-language="{languages[0]}" target-language="{languages[1]}"><body>\n{units}</body>'
        "</file></xliff>\n",
        encoding="utf-8",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", default="models/law.en-fr")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--split", default="law.test")
    parser.add_argument("--languages", nargs=2, default=["en", "fr"])
    parser.add_argument("--documents", type=int, default=6)
    parser.add_argument("--segments", type=int, default=120, help="of a document, at most")
    parser.add_argument("--least", type=int, default=40, help="segments of a document")
    parser.add_argument("--options", default="", help="further options of tmnmt translate")
    arguments = parser.parse_args()

    if arguments.data.is_dir():
        ids = set((SPLITS / f"{arguments.split}.txt").read_text(encoding="utf-8").split())
        all_documents = documents(arguments.data, ids, arguments.segments)
    else:
        pages = (row for row in table(arguments.data) if row[1].isdecimal())
        all_documents = first_rows(((row[0], row[2], row[3]) for row in pages), arguments.segments)
    names = sorted(name for name, rows in all_documents.items() if len(rows) >= arguments.least)
    chosen = sorted(random.Random(arguments.seed).sample(names, arguments.documents))
    arguments.work.mkdir(parents=True, exist_ok=True)
    paths, rows = list[str](), list[Row]()
    for number, name in enumerate(chosen):
        path = arguments.work / f"{number}.xlf"
        write_xliff(path, all_documents[name], arguments.languages)
        paths.append(str(path))
        rows += all_documents[name]
    tmx = arguments.work / "approved.tmx"
    approved = [Segment(row.src, row.tgt, row.document) for row in rows if row.is_approved]
    write_tmx(tmx, approved, *arguments.languages)
    open_rows = [row for row in rows if not row.is_approved]
    sources = {normalise(segment.src) for segment in approved}
    new = [number for number, row in enumerate(open_rows) if normalise(row.src) not in sources]
    print(f"documents {', '.join(chosen)}; {len(open_rows)} units, {len(new)} of them new")

    command = ["translate", "--model", arguments.model, *arguments.options.split()]
    ways = {
        "off": ["--own-translations", "off", "--mode", "off"],
        "TMX": ["--own-translations", "off", "--memory", str(tmx)],
        "own translations": ["--own-translations", "approved"],
    }
    for way, options in ways.items():
        folder = arguments.work / way.replace(" ", "-")
        if code := run([*command, *options, *paths, "--output", str(folder)]):
            raise SystemExit(code)
        targets = list[str]()
        for path in paths:
            (document,) = open_translatable(folder / Path(path).name).documents()
            units = [unit for number, unit in enumerate(document.units) if number % 2]
            targets += [unit.target.plain if unit.target else "" for unit in units]
        references = [row.tgt for row in open_rows]
        scores = [
            score([targets[n] for n in part], [references[n] for n in part])
            for part in (range(len(targets)), new)
        ]
        print(f"{way:17} BLEU {scores[0]:.1f}, of new units {scores[1]:.1f}", flush=True)


def score(targets: Sequence[str], references: Sequence[str]) -> float:
    """BLEU as sacrebleu has it by default."""
    return float(sacrebleu.corpus_bleu(list(targets), [list(references)]).score)


if __name__ == "__main__":
    main()
