"""How well `tmnmt align` finds what belongs together: documents whose alignment is known, with
sentences merged, dropped and swapped by a seed.

    python eval/aligned_documents.py [--model FOLDER] [--memory FILE ...] [--src-lang en]
        [--tgt-lang fr] [--half second] [--documents 20] [--drop 0 0.1] [--seed 1]

MEMORY has whole documents in order; not given, the kept-out documents of both memories that are
shipped. The constants of the alignment were chosen on the first half of these, and of the pages of
the Python documentation; the second half tells. Of every hundred segments ten are merged with the
next one, on one side or the other, and one changes places with the next one in the target. F1 is
over pairs that have exactly the two texts of a pair that belongs together, since one document has
"[Repealed]" eighty times."""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tmnmt.alignment.align import align
from tmnmt.config.options import TranslationOptions
from tmnmt.formats import read_memory
from tmnmt.translator import Translator

HELD_OUT = Path(__file__).parents[1] / "memories" / "held-out"
SHIPPED = [HELD_OUT / "law.test.en-fr.tsv.gz", HELD_OUT / "jrc-acquis.test.en-fr.tsv.gz"]
MERGED, SWAPPED = 0.1, 0.01  # shares of the segments
LONGEST = 800  # segments of a document
SHORTEST = 30
SPLIT_SEED = 5  # of the halves: on the first one the constants of the alignment were chosen

Link = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass
class Case:
    """A document whose alignment is known. `parts`: for every source sentence the segments that
    it was made of."""

    sources: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    parts: list[list[str]] = field(default_factory=list)

    def add(self, sources: Sequence[list[str]], targets: Sequence[str]) -> None:
        """Adds sentences of both sides, without a link."""
        self.sources += map(" ".join, sources)
        self.parts += sources
        self.targets += targets

    def texts(self, sources: Sequence[int], targets: Sequence[int]) -> tuple[str, str]:
        """What these sentences of each side say together."""
        return (
            " ".join(self.sources[number] for number in sources),
            " ".join(self.targets[number] for number in targets),
        )

    @property
    def next_numbers(self) -> tuple[int, int]:
        """The numbers that the next source and the next target get."""
        return len(self.sources), len(self.targets)


def case_of(pairs: Sequence[tuple[str, str]], drop: float, chance: random.Random) -> Case:
    """Pairs in order, merged, swapped and dropped."""
    case = Case()
    number = 0
    while number < len(pairs):
        (src, tgt), draw = pairs[number], chance.random()
        i, j = case.next_numbers
        if draw < SWAPPED + MERGED and number + 1 < len(pairs):
            next_src, next_tgt = pairs[number + 1]
            if draw < SWAPPED:
                case.add([[src], [next_src]], [next_tgt, tgt])
                case.links += [((i,), (j + 1,)), ((i + 1,), (j,))]
            elif chance.random() < 0.5:
                case.add([[src, next_src]], [tgt, next_tgt])
                case.links.append(((i,), (j, j + 1)))
            else:
                case.add([[src], [next_src]], [f"{tgt} {next_tgt}"])
                case.links.append(((i, i + 1), (j,)))
            number += 2
            continue
        number += 1
        draw = chance.random()
        if draw < drop / 2:
            case.add([], [tgt])
        elif draw < drop:
            case.add([[src]], [])
        else:
            case.add([[src]], [tgt])
            case.links.append(((i,), (j,)))
    return case


def documents_of(path: Path, languages: tuple[str, str]) -> list[list[tuple[str, str]]]:
    """The documents of a memory file that are long enough, in an order of their own."""
    documents = defaultdict[str, list[tuple[str, str]]](list)
    for segment in read_memory(path, *languages):
        documents[segment.document].append((segment.src, segment.tgt))
    names = sorted(name for name, pairs in documents.items() if len(pairs) >= SHORTEST)
    random.Random(SPLIT_SEED).shuffle(names)
    return [documents[name][:LONGEST] for name in names]


def translations_of(model: Path, texts: Sequence[str]) -> dict[str, str]:
    """What a model makes of every text."""
    options = TranslationOptions(mode="off", beam=1, headings=False, lost_sentences=False)
    translator = Translator.load(model, [], options)
    return dict(zip(texts, (t.tgt for t in translator.stream([texts])), strict=True))


def measure(cases: Sequence[Case], known: dict[str, str] | None) -> str:
    """Precision, recall, F1, and what the probabilities say of pairs that are right and wrong."""
    found = right = wanted = sentences = 0
    doubtful, doubtful_wrong, wrong = 0, 0, 0
    start = time.process_time()
    for case in cases:
        translations = None
        if known is not None:
            translations = [" ".join(known[part] for part in parts) for parts in case.parts]
        alignment = align(case.sources, case.targets, translations)
        links = Counter(case.texts(*link) for link in case.links)
        sentences += len(case.sources)
        wanted += links.total()
        for pair in alignment.pairs:
            texts = case.texts(pair.sources, pair.targets)
            is_right = links[texts] > 0
            links[texts] -= is_right
            found, right, wrong = found + 1, right + is_right, wrong + (not is_right)
            doubtful += pair.is_doubtful
            doubtful_wrong += pair.is_doubtful and not is_right
    seconds = 1000 * (time.process_time() - start) / sentences
    f1 = 2 * right / (found + wanted)
    return (
        f"{wanted} | {right / found:.3f} | {right / wanted:.3f} | {f1:.3f} | "
        f"{doubtful / found:.1%} | {doubtful_wrong} of {wrong} | {seconds:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path)
    parser.add_argument("--memory", type=Path, nargs="+", default=SHIPPED)
    parser.add_argument("--src-lang", default="en")
    parser.add_argument("--tgt-lang", default="fr")
    parser.add_argument("--half", choices=["first", "second", "both"], default="second")
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--drop", type=float, nargs="+", default=[0.0, 0.1])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("| memory | dropped | compared by | pairs | precision | recall | F1 | doubtful |", end="")
    print(" wrong pairs that are doubtful | CPU s a thousand sentences |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    align(["one"], ["un"])  # compiles
    for path in options.memory:
        documents = documents_of(path, (options.src_lang, options.tgt_lang))
        middle = len(documents) // 2
        halves = {"first": documents[:middle], "second": documents[middle:], "both": documents}
        documents = halves[options.half][: options.documents]
        known = None
        if options.model is not None:
            texts = [*dict.fromkeys(src for pairs in documents for src, _ in pairs)]
            known = translations_of(options.model, texts)
        for drop in options.drop:
            chance = random.Random(options.seed)
            cases = [case_of(pairs, drop, chance) for pairs in documents]
            for name, translations in (("its own words", None), ("the model", known)):
                if name == "its own words" or known is not None:
                    row = measure(cases, translations)
                    print(f"| {path.name} | {drop:.0%} | {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()
