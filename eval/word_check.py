"""How often the check of words is wrong, and what it finds: translations that people made, as they
are and with one letter changed in one of their words.

    python eval/word_check.py FILE --columns en=0,fr=1 [--memory INDEX] [--model MODEL]
        [--pairs 500] [--seed 1] [--show]

A word that is misspelt has five letters or more; a letter is left out, said twice, exchanged with
the next one, or another one. A dictionary of Hunspell must be installed for the target language."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from check_alarms import drawn

from tmnmt.dictionaries import dictionary_for
from tmnmt.engine.invented_words import InventedWords, invented_words, prose_words, words_of
from tmnmt.index import MemoryIndex
from tmnmt.models.folder import load_model
from tmnmt.segments import Translation

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SHORTEST = 5  # letters of a word that is misspelt


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--columns", required=True, help="of both languages, as en=4,fr=5")
    parser.add_argument("--memory", type=Path, help="an index")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--misspelt", type=int, default=100, help="words that are misspelt")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    (_, src), (language, tgt) = (column.split("=") for column in options.columns.split(","))
    pairs = drawn(options.files, int(src), int(tgt), options.pairs, options.seed)
    finder = finder_of(language, options.memory, options.model)
    generator = random.Random(options.seed)
    flagged = misspelt = hits = 0
    for source, target in pairs:
        if what := found(finder, source, target):
            flagged += 1
            if options.show:
                print(f"{what}\n  {target}")
        words = [word for word in prose_words(target) if len(word) >= SHORTEST]
        if words and not what and misspelt < options.misspelt:
            word = generator.choice(words)
            misspelt += 1
            hits += bool(found(finder, source, target.replace(word, misspell(word, generator), 1)))
    share = round(100 * flagged / len(pairs), 2)
    print(
        json.dumps(
            {
                "pairs": len(pairs),
                "flagged": flagged,
                "flagged %": share,
                "misspelt": misspelt,
                "found": hits,
            }
        )
    )


def finder_of(language: str, memory: Path | None, model: Path | None) -> InventedWords:
    indexes = [MemoryIndex.open(memory)] if memory is not None else []
    if model is not None:
        finder = invented_words(language, load_model(model).vocab, indexes)
    else:
        dictionary = dictionary_for(language)
        memories = [words_of(index) for index in indexes]
        finder = InventedWords((dictionary.knows, *memories)) if dictionary is not None else None
    if finder is None:
        raise SystemExit(f"no dictionary of {language} is installed")
    return finder


def found(finder: InventedWords, source: str, target: str) -> str:
    checks = finder.checks(Translation(source, target, 0.0, origin="model"))
    return checks[0].what if checks else ""


def misspell(word: str, generator: random.Random) -> str:
    place = generator.randrange(1, len(word) - 1)
    before, sign, following, rest = word[:place], word[place], word[place + 1], word[place + 2 :]
    changed = generator.choice(
        [
            before + following + rest,
            before + sign + sign + following + rest,
            before + following + sign + rest,
            before + generator.choice(LETTERS) + following + rest,
        ]
    )
    return changed if changed != word else misspell(word, generator)


if __name__ == "__main__":
    main()
