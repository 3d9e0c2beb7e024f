"""How often something is suggested behind a sentence that a person has finished.

    python eval/finished_sentences.py --memory INDEX [--test TSV] [--model DIR] [--sentences N]
        [--seed S]

Of the segments of kept-out documents some are drawn by the seed, of 3 words to 600 characters.
The whole human translation of each is typed at once, in a session of its own. Counted are those
behind which `Session.complete` adds something, and `Session.next_words`; they are printed. The
translation is typed up to 25, 50, 75 and 90 % of its characters, too: counted is how often the
suggestion is the very rest of it, and how often it is empty."""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from pathlib import Path

import torch

from tmnmt.config.options import TranslationOptions
from tmnmt.formats import read_memory
from tmnmt.translator import Translator

ROOT = Path(__file__).resolve().parent.parent
WORDS, CHARACTERS = 3, 600
CUTS = (25, 50, 75, 90)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    test = ROOT / "memories" / "held-out" / "law.test.en-fr.tsv.gz"
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--test", type=Path, default=test)
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "law-transformer.en-fr")
    parser.add_argument("--sentences", type=int, default=120)
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args()
    torch.set_num_threads(1)
    fit = [
        segment
        for segment in read_memory(options.test, "en", "fr")
        if len(segment.tgt.split()) >= WORDS and len(segment.tgt) < CHARACTERS
    ]
    translator = Translator.load(options.model, [options.memory], TranslationOptions(threads=1))
    counts = Counter[str]()
    for segment in random.Random(options.seed).sample(fit, options.sentences):
        count(translator, segment.src, segment.tgt, counts)
    print(json.dumps({"sentences": options.sentences} | dict(sorted(counts.items())), indent=1))


def count(translator: Translator, source: str, target: str, counts: Counter[str]) -> None:
    added = translator.session().complete(source, target).tgt[len(target) :]
    counts["finished, suggested behind"] += bool(added)
    counts["finished, next words"] += bool(translator.session().next_words(source, target))
    if added:
        print(json.dumps({"src": source, "tgt": target, "added": added}, ensure_ascii=False))
    session = translator.session()
    for share in CUTS:
        typed, rest = (target[: (cut := len(target) * share // 100)], target[cut:])
        suggested = session.complete(source, typed).tgt[len(typed) :]
        counts[f"{share} %, the very rest"] += suggested == rest
        counts[f"{share} %, nothing"] += not suggested.strip()


if __name__ == "__main__":
    main()
