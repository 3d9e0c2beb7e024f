"""What of a translation changes where its source changes a little.

    python eval/edit_locality.py DATA --work FOLDER [--model models/law.en-fr] [--seed 1]

Test documents of law become pages, in English and with their published French. In a new English
version every tenth segment is another: a phrase is put in before its last mark. The new version is
translated with the former one (`--previous`), and without. Told are the share of the segments that
did not change whose translation is to the byte what it was, how like (chrF) the translations of the
changed segments are to the former ones, and how many of these did not change at all."""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Sequence
from pathlib import Path

import sacrebleu
from own_translations import SPLIT, Row, documents

from tmnmt.cli import run
from tmnmt.formats.xml_text import escaped

EVERY = 10
PHRASE = " as soon as feasible"
LAST_MARK = re.compile(r"[.;:,)]*$")
PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)


def page(path: Path, texts: Sequence[str], lang: str) -> Path:
    """A page with a paragraph for every text."""
    body = "".join(f"<p>{escaped(text)}</p>\n" for text in texts)
    path.write_text(f'<!DOCTYPE html>\n<html lang="{lang}"><body>\n{body}</body></html>\n', "utf-8")
    return path


def edited(rows: Sequence[Row]) -> list[str]:
    """The sources, every tenth of them changed."""
    return [
        row.src
        if number % EVERY
        else LAST_MARK.sub(lambda mark: PHRASE + mark[0], row.src, count=1)
        for number, row in enumerate(rows)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", default="models/law.en-fr")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--documents", type=int, default=6)
    parser.add_argument("--segments", type=int, default=120, help="of a document, at most")
    parser.add_argument("--least", type=int, default=40, help="segments of a document")
    arguments = parser.parse_args()
    ids = set(SPLIT.read_text(encoding="utf-8").split())
    all_documents = documents(arguments.data, ids, arguments.segments)
    names = sorted(name for name, rows in all_documents.items() if len(rows) >= arguments.least)
    chosen = sorted(random.Random(arguments.seed).sample(names, arguments.documents))
    arguments.work.mkdir(parents=True, exist_ok=True)
    for way in ("without", "previous"):
        same = unchanged = 0
        new, former = list[str](), list[str]()
        for number, name in enumerate(chosen):
            rows = all_documents[name]
            old = page(arguments.work / f"{number}.en.html", [row.src for row in rows], "en")
            target = page(arguments.work / f"{number}.fr.html", [row.tgt for row in rows], "fr")
            source = page(arguments.work / f"{number}.new.html", edited(rows), "en")
            output = arguments.work / f"{number}.{way}.html"
            options = ["--previous", str(old), str(target)] if way == "previous" else []
            command = ["translate", "--model", arguments.model, *options, str(source)]
            if run([*command, "--output", str(output)]):
                raise SystemExit(1)
            texts = [PARAGRAPH.findall(path.read_text("utf-8")) for path in (target, output)]
            for place, (before, after) in enumerate(zip(*texts, strict=True)):
                if place % EVERY:
                    unchanged += 1
                    same += before == after
                else:
                    former.append(before)
                    new.append(after)
        likeness = sacrebleu.corpus_chrf(new, [former]).score
        share = f"{same} of {unchanged} ({same / unchanged:.1%})"
        equal = sum(before == after for before, after in zip(former, new, strict=True))
        print(
            f"{way:9} unchanged to the byte {share}; of the changed chrF {likeness:.1f}, and "
            f"{equal} of {len(new)} as before",
            flush=True,
        )


if __name__ == "__main__":
    main()
