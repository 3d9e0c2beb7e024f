"""What a model does with placeholders, as they are and behind masks of several kinds.

python eval/placeholders.py --tsv dev.tsv [--model models/law.en-fr] [--sentences 150]

The file has source and target in two columns. In its sentences numbers that stand once on each side
become placeholders, and in other sentences words that do, such as names: so the reference says
where they belong. Told are for every kind of mask how many placeholders the model wrote exactly
once, lost, or wrote more than once; and BLEU once masks are placeholders again. "translator" is
what tmnmt makes of the same sentences (tmnmt/codes/masked.py).

With --memory its pairs get placeholders in the same way, and only sentences are taken that have a
pair like them. "translator" reads these pairs with the masks of the sentence
(tmnmt/codes/masked_pair.py), "pairs as they are" without."""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import torch
from sacrebleu import corpus_bleu

from tmnmt.config.options import TranslationOptions
from tmnmt.filters.masked_pair import MaskedPair
from tmnmt.formats import read_memories
from tmnmt.index import build
from tmnmt.segments import Segment
from tmnmt.translator import Translator

NAMES = (
    *("%s", "%(name)s", "{count}", "https://example.org/docs/page.html", "name@example.org"),
    *("%1$d", "${user}", "{0}"),
)
MASKS: dict[str, Callable[[int], str]] = {
    "901": lambda number: str(901 + number),
    "7301": lambda number: str(7301 + number),
    "X1": lambda number: f"X{number + 1}",
    "AAA": lambda number: "ABC"[number] * 3,
    "[1]": lambda number: f"[{number + 1}]",
}
_WORD = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")


class Case(NamedTuple):
    """A sentence with placeholders, in the order of the source."""

    source: str
    reference: str
    names: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tsv", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("models/law.en-fr"))
    parser.add_argument("--sentences", type=int, default=150)
    parser.add_argument("--memory", type=Path, help="a TMX or another memory file")
    parser.add_argument("--output", type=Path, help="the figures as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = (line.split("\t") for line in options.tsv.read_text(encoding="utf-8").splitlines())
    pairs = [(src, tgt) for src, tgt, *_ in rows if 30 < len(src) < 250]
    told: dict[str, dict[str, dict[str, float]]] = {}
    for kind in ("numbers", "words"):
        if options.memory:
            told[kind] = _beside_pairs(options, pairs, kind)
            continue
        translator = Translator.load(options.model)
        found = cases(pairs, kind, options.sentences)
        ways = told[kind] = {"translator": _through(translator, found)}
        with mock.patch("tmnmt.filters.placeholders.with_placeholders", lambda text, *_: text):
            ways["as they are"] = _through(translator, found)
            ways |= {name: _masked(translator, found, mask) for name, mask in MASKS.items()}
    print(json.dumps(told, indent=1))
    if options.output:
        options.output.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _beside_pairs(
    options: argparse.Namespace, pairs: Sequence[tuple[str, str]], kind: str
) -> dict[str, dict[str, float]]:
    """The figures with a memory that has placeholders, too, and without."""
    read = [(pair.src, pair.tgt) for pair in read_memories([options.memory], "en", "fr")]
    with tempfile.TemporaryDirectory() as folder:
        memory = [Segment(case.source, case.reference) for case in cases(read, kind, len(read))]
        build(Path(folder) / "index", memory, "en", "fr")
        translator = Translator.load(
            options.model, [Path(folder) / "index"], TranslationOptions(verbatim=0)
        )
        found = cases(pairs, kind, len(pairs))
        answers = translator.pipeline.lookup.retriever.search([case.source for case in found])
        like = [case for case, matches in zip(found, answers, strict=True) if matches]
        like = like[: options.sentences]
        ways = {"translator": _through(translator, like)}
        as_they_are = lambda _, pair: MaskedPair(pair.src, pair.tgt, [])  # noqa: E731
        with mock.patch("tmnmt.engine.source_segment.SourceSegment.masked_pair", as_they_are):
            ways["pairs as they are"] = _through(translator, like)
        ways["no memory"] = _through(Translator.load(options.model), like)
    return ways


def cases(pairs: Sequence[tuple[str, str]], kind: str, most: int) -> list[Case]:
    """Sentences with one to three placeholders in place of numbers, or of words that both sides
    have."""
    chance, found = random.Random(3), list[Case]()
    for source, target in chance.sample(pairs, len(pairs)):
        times = [Counter(_WORD.findall(text)) for text in (source, target)]
        slots = [
            word
            for word, count in times[0].items()
            if count == times[1][word] == 1
            and (word.isdigit() if kind == "numbers" else word.isalpha() and len(word) >= 4)
        ]
        if not slots:
            continue
        slots = chance.sample(slots, min(len(slots), chance.choice([1, 1, 2, 3])))
        named = dict(zip(slots, chance.sample(NAMES, len(slots)), strict=True))
        texts = [_named(text, named) for text in (source, target)]
        found.append(Case(texts[0], texts[1], sorted(named.values(), key=texts[0].index)))
        if len(found) == most:
            break
    return found


def _named(text: str, names: dict[str, str]) -> str:
    """With names in place of words."""
    return _WORD.sub(lambda word: names.get(word[0], word[0]), text)


def _masked(
    translator: Translator, found: Sequence[Case], mask: Callable[[int], str]
) -> dict[str, float]:
    texts, times = list[str](), list[list[int]]()
    for case in found:
        text = case.source
        for number, name in enumerate(case.names):
            text = text.replace(name, mask(number))
        texts.append(text)
    said = [one.tgt for one in translator.translate(texts)]
    for at, case in enumerate(found):
        times.append([])
        for number, name in enumerate(case.names):
            pattern = _whole(mask(number))
            times[-1].append(len(pattern.findall(said[at])))
            said[at] = pattern.sub(lambda _, to=name: to, said[at])  # type: ignore[misc]
    return _told(found, said, times)


def _through(translator: Translator, found: Sequence[Case]) -> dict[str, float]:
    said = [one.tgt for one in translator.translate([case.source for case in found])]
    times = [
        [text.count(name) for name in case.names] for case, text in zip(found, said, strict=True)
    ]
    return _told(found, said, times)


def _whole(mask: str) -> re.Pattern[str]:
    """No part of a longer number or word."""
    more = [
        r"\d" if sign.isdigit() else r"\w" if sign.isalpha() else "" for sign in (mask[0], mask[-1])
    ]
    return re.compile(
        (f"(?<!{more[0]})" if more[0] else "")
        + re.escape(mask)
        + (f"(?!{more[1]})" if more[1] else "")
    )


def _told(
    found: Sequence[Case], said: Sequence[str], times: Sequence[Sequence[int]]
) -> dict[str, float]:
    every = [min(number, 2) for row in times for number in row]
    score = corpus_bleu(list(said), [[case.reference for case in found]]).score
    return {
        "placeholders": len(every),
        "once": every.count(1),
        "lost": every.count(0),
        "more": every.count(2),
        "BLEU": round(score, 1),
    }


if __name__ == "__main__":
    main()
