"""Do the words around a term go with it? 40 sentences of law, each with one term of another gender
or beginning than the model's own word.

python eval/term_agreement.py [--model models/law.en-fr] [--half dev|test]

`term-agreement.tsv` has the sentences, which were written before any was translated. In 20 the
word before the term must have its gender and elision; in 20 what depends on the term in its clause
must agree with it. A sentence is right where a form of the term stands in the translation, no word
before it is one that cannot stand there, and no word is one that its column `wrong` finds. The
halves are by the seed: `dev` is for work, `test` was kept apart. Terms are soft."""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from tmnmt.config.options import TranslationOptions
from tmnmt.engine.extension import with_extensions
from tmnmt.terms.check import target_spans
from tmnmt.terms.find import Finder
from tmnmt.terms.term import Term
from tmnmt.terms.term_list import TermList
from tmnmt.translator import Translator

SENTENCES = Path(__file__).with_name("term-agreement.tsv")
SEED = 45
# what cannot stand before a singular noun, by its gender, before a consonant and before a vowel
WRONG_BEFORE = {
    ("feminine", False): "le un ce cet tout aucun du au son quel l' d'",
    ("feminine", True): "le la un ce cet tout aucun du au sa de que quel",
    ("masculine", False): "la une cette cet toute aucune sa quelle l' d'",
    ("masculine", True): "le la une ce cette toute aucune du au sa de que quelle",
}
_WORD_BEFORE = re.compile(r"(\w+['’]?)\s*$")
Row = Mapping[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, default=Path("models/law.en-fr"))
    parser.add_argument("--half", choices=("dev", "test"), default="dev")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = half(options.half)
    translator = Translator.load(options.model, options=TranslationOptions(verbatim=0))
    free, right = translator.pipeline, Counter[str]()
    for row in rows:
        term = Term(row["term"], (row["target"],))
        terms = TermList(Finder([term]), translator.vocab, False, translator.tgt_lang)
        extensions = with_extensions(free.extensions, {"terms": terms})
        writer = free.writer.restricted(free.settings, extensions)
        translator.pipeline = replace(free, writer=writer)
        text = translator.translate([row["source"]])[0].tgt
        problem = problem_of(row, term, text)
        right[row["kind"]] += not problem
        print(f"{problem or 'right':<9} {row['source']}\n          {text}")
    print(json.dumps({kind: f"{right[kind]} of {len(rows) // 2}" for kind in sorted({*right})}))


def half(name: str) -> list[Row]:
    """Half of the sentences of each kind, in their order."""
    with SENTENCES.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file, delimiter="\t")]
    chance, chosen = random.Random(SEED), set[int]()
    for kind in ("article", "agreement"):
        numbers = [number for number, row in enumerate(rows) if row["kind"] == kind]
        chosen |= {*chance.sample(numbers, len(numbers) // 2)}
    return [row for number, row in enumerate(rows) if (number in chosen) == (name == "dev")]


def problem_of(row: Row, term: Term, text: str) -> str:
    """What is wrong in a translation; "" for nothing."""
    spans: Sequence[tuple[int, int]] = target_spans(term, text, exact=False)
    if not spans:
        return "no term"
    key = row["gender"], row["target"][0] in "aeéiou"
    for start, _ in spans:
        before = _WORD_BEFORE.search(text[:start])
        if before and before[1].lower().replace("’", "'") in WRONG_BEFORE[key].split():
            return "article"
    return "agreement" if row["wrong"] and re.search(row["wrong"], text) else ""


if __name__ == "__main__":
    main()
