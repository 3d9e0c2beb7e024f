"""Pages of a documentation that a memory does not have, as PO files to be translated.

python eval/kept_out_pages.py python-docs.en-pt.tsv.gz --languages en pt --out FOLDER [--pages 4]

The file has the columns page, place, source and target. Of the pages with 20 to 60 messages those
are kept out whose names have the smallest sha256. FOLDER gets them as PO files with empty
translations (pages/), their references (references.tsv) and a memory of all other pages
(memory.tsv.gz), without the messages whose source stands in a page that is kept out."""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MESSAGES = range(20, 61)  # of a page that may be kept out
HEAD = """msgid ""
msgstr ""
"Language: {}\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"""
Row = list[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tsv", type=Path)
    parser.add_argument("--languages", nargs=2, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pages", type=int, default=4)
    options = parser.parse_args()
    pages: dict[str, list[Row]] = {}
    with gzip.open(options.tsv, "rt", encoding="utf-8", newline="") as file:
        for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row[1].isdecimal():  # not its header, where it has one
                pages.setdefault(row[0], []).append(row)
    names = _kept_out(pages, options.pages)
    (options.out / "pages").mkdir(parents=True)
    sources = set[str]()
    for name in names:
        sources.update(row[2] for row in pages[name])
        path = options.out / "pages" / Path(name).with_suffix(".po").name
        path.write_text(_catalogue(pages[name], options.languages[1]), encoding="utf-8")
    header = ["file", "idx", *options.languages]
    others = [row for name in pages if name not in names for row in pages[name]]
    memory = [row for row in others if row[2] not in sources]
    with gzip.open(options.out / "memory.tsv.gz", "wt", encoding="utf-8", newline="") as file:
        _write(file, [header, *memory])
    with (options.out / "references.tsv").open("w", encoding="utf-8", newline="") as file:
        _write(file, [header, *(row for name in names for row in pages[name])])
    print(f"{', '.join(names)}: {sum(len(pages[name]) for name in names)} messages")
    dropped = len(others) - len(memory)
    print(f"memory: {len(memory):,} pairs; {dropped} with a source of these left out")


def _kept_out(pages: dict[str, list[Row]], count: int) -> list[str]:
    fitting = [name for name, rows in pages.items() if len(rows) in MESSAGES]
    return sorted(fitting, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:count]


def _catalogue(rows: Sequence[Row], language: str) -> str:
    head = HEAD.format(language)
    messages = dict.fromkeys(row[2] for row in rows)
    return head + "".join(f'\nmsgid "{_escaped(text)}"\nmsgstr ""\n' for text in messages)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _write(file: Any, rows: Sequence[Row]) -> None:
    file.write("".join("\t".join(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
