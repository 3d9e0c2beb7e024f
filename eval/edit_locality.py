"""What of a translation changes where its source changes a little.

    python eval/edit_locality.py DATA --model models/law.en-fr [--texts law] [--seed 1]

Documents of kept-out texts have a former version with its published translation. In the new version
every tenth segment is another: an edit, drawn by the seed, replaces a word or puts a phrase in. The
edited segments are translated with the former version (as `--previous` does), and without it. Told
are how many have the edit in them, how many are the former translation as it was, and the share of
the characters of the former translations that changed outside the edit: all stretches of words that
differ, except the longest one."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from own_translations import SPLIT, documents

from tmnmt.config.options import TranslationOptions
from tmnmt.index.embedded.in_memory import InMemoryIndex
from tmnmt.partial_document import ConfirmedNeighbour, PartialDocument
from tmnmt.segments import Segment
from tmnmt.text import normalise
from tmnmt.translator import Translator, with_memory

EVERY = 10
LAST_MARK = r"(?=[.;:,)]*$)"
PAGE = range(20, 121)  # messages of a page that is a document


class Edit(NamedTuple):
    """A change of a source, and what a translation has that follows it."""

    place: str
    text: str
    expected: str


EDITS = {
    "law": (
        Edit(r"\bMinister\b", "Governor", r"gouverneur"),
        Edit(r"\bdays\b", "weeks", r"semaines"),
        Edit(r"\bmay\b(?! not)", "may not", r"\bne\b|\bn[’']|interdi"),
        Edit(r"\bperson\b", "corporation", r"personnes? morale|société|corporation|compagnie"),
        Edit(r"\bvessel\b", "aircraft", r"aéronef|avion"),
        Edit(LAST_MARK, " as soon as feasible", r"dès qu|aussitôt|plus tôt|meilleurs délais|brefs"),
        Edit(LAST_MARK, " in writing", r"écrit"),
        Edit(LAST_MARK, " without delay", r"sans (délai|retard|tarder)"),
    ),
    "python": (
        Edit(r"(?<![:`])\bfunction\b(?![:`])", "method", r"método"),
        Edit(r"\bstring\b", "list", r"lista"),
        Edit(r"(?<![:`])\bmodule\b(?![:`])", "package", r"pacote"),
        Edit(r"\bcan\b(?! not)", "cannot", r"\bnão\b"),
        Edit(r"(?<![:`])\bfile\b(?![:`])", "directory", r"diretório"),
        Edit(LAST_MARK, " by default", r"padrão|predefini"),
        Edit(LAST_MARK, " in this case", r"n[eo]ss?[ea] caso|n?este caso"),
    ),
}


class Edited(NamedTuple):
    """A segment of a document whose source was edited."""

    src: str
    edit: Edit
    former: Segment


class Counts(NamedTuple):
    """What came of the edited segments of one kind."""

    segments: int
    edits: int
    replays: int
    outside: float


def python_pages(path: Path) -> dict[str, list[Segment]]:
    """The pages of a documentation that are long enough to be documents."""
    pages = dict[str, list[Segment]]()
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if len(row) == 4 and row[1].isdecimal() and row[2].strip() and row[3].strip():
                pages.setdefault(row[0], []).append(Segment(row[2], row[3], row[0]))
    return {name: rows for name, rows in pages.items() if len(rows) in PAGE}


def law_documents(data: Path, least: int, most: int) -> dict[str, list[Segment]]:
    """The first segments of the test documents of law."""
    ids = set(SPLIT.read_text(encoding="utf-8").split())
    return {
        name: [Segment(row.src, row.tgt, name) for row in rows]
        for name, rows in documents(data, ids, most).items()
        if len(rows) >= least
    }


def edited(segments: Sequence[Segment], edits: Sequence[Edit], draw: random.Random) -> list[Edited]:
    """Every tenth segment, edited. Words that the segment has are replaced rather than phrases put
    in, two times of three."""
    result = []
    for segment in segments[::EVERY]:
        fitting = [edit for edit in edits if re.search(edit.place, segment.src)]
        words = [edit for edit in fitting if edit.place != LAST_MARK]
        phrases = [edit for edit in fitting if edit.place == LAST_MARK]
        edit = draw.choice(words if words and draw.random() < 2 / 3 else phrases)
        if re.search(edit.expected, segment.tgt, re.IGNORECASE):
            continue
        result.append(Edited(re.sub(edit.place, edit.text, segment.src, count=1), edit, segment))
    return result


def changed_outside(former: str, output: str) -> int:
    """The characters of the stretches that differ, except the longest stretch."""
    words, new_words = former.split(), output.split()
    sizes = [
        max(len(" ".join(words[start:end])), len(" ".join(new_words[new_start:new_end])))
        for tag, start, end, new_start, new_end in SequenceMatcher(
            None, words, new_words, autojunk=False
        ).get_opcodes()
        if tag != "equal"
    ]
    return sum(sizes) - max(sizes, default=0)


def counts(rows: Sequence[Edited], outputs: Sequence[str]) -> Counts:
    """What came of edited segments."""
    pairs = [*zip(rows, outputs, strict=True)]
    outside = sum(changed_outside(row.former.tgt, output) for row, output in pairs)
    return Counts(
        len(rows),
        sum(bool(re.search(row.edit.expected, out, re.IGNORECASE)) for row, out in pairs),
        sum(normalise(row.former.tgt) == normalise(output) for row, output in pairs),
        outside / max(1, sum(len(row.former.tgt) for row in rows)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path, default=Path("models/law.en-fr"))
    parser.add_argument("--texts", choices=EDITS, default="law")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--documents", type=int, default=6)
    parser.add_argument("--segments", type=int, default=120, help="of a document, at most")
    parser.add_argument("--least", type=int, default=40, help="segments of a document")
    parser.add_argument("--no-patches", action="store_true")
    parser.add_argument("--outputs", type=Path, help="a file for all outputs")
    arguments = parser.parse_args()
    if arguments.texts == "law":
        every = law_documents(arguments.data, arguments.least, arguments.segments)
    else:
        every = python_pages(arguments.data / "software-docs" / "python-docs.en-pt.tsv.gz")
    draw = random.Random(arguments.seed)
    chosen = sorted(draw.sample(sorted(every), arguments.documents))
    changed = {name: edited(every[name], EDITS[arguments.texts], draw) for name in chosen}
    options = TranslationOptions(patches=not arguments.no_patches)
    translator = Translator.load(arguments.model, [], options)
    rows = [row for name in chosen for row in changed[name]]
    records = []
    for way in ("without", "previous"):
        outputs = list[str]()
        for name in chosen:
            outputs += translated(translator, every[name], changed[name], way == "previous")
        total = counts(rows, outputs)
        print(
            f"{way:9} of {total.segments} edited segments {total.edits} have the edit, "
            f"{total.replays} are as before; {total.outside:.1%} changed outside",
            flush=True,
        )
        for row, output in zip(rows, outputs, strict=True):
            records.append(
                {
                    **{"way": way, "src": row.src, "tgt": output},
                    **{"former_src": row.former.src, "former": row.former.tgt},
                }
            )
    if arguments.outputs is not None:
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        arguments.outputs.write_text("".join(lines), encoding="utf-8")


def translated(
    translator: Translator, former: Sequence[Segment], rows: Sequence[Edited], is_previous: bool
) -> list[str]:
    """The translations of the edited segments of one document."""
    texts = [row.src for row in rows]
    if not is_previous:
        return [translation.tgt for translation in translator.translate(texts)]
    pairs = [
        ConfirmedNeighbour(segment.src, segment.tgt, number * len(texts) // len(former))
        for number, segment in enumerate(former)
    ]
    translator = with_memory(translator, InMemoryIndex.build(former))
    document = PartialDocument(texts, pairs)
    return [translation.tgt for translation in translator.stream([document])]


if __name__ == "__main__":
    main()
