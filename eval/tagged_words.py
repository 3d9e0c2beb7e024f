"""Pairs with a tag around words that translate each other, for place_codes.py.

python eval/tagged_words.py MEMORY --languages en pt [--columns src=3,tgt=4] [--learn-from MEMORY]
    --out FOLDER [--lines 300] [--seed 1]

Which words translate each other is learned from the memory itself (IBM model 1, in both directions
at once), not from a model that is measured. In every line that is drawn one to three neighbouring
words of the source are tagged, one of which has five letters or more. Their translations are
neighbours, too, with nothing else between them. FOLDER gets lines.src and lines.tgt."""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from tmnmt.eval.measures.align import Aligner, tokens
from tmnmt.formats import parse_columns, read_memory
from tmnmt.text import token_spans

WORDS = range(8, 31)  # of a source
LONGEST = 3  # words that are tagged
MARKUP = "`*_|<>{}=\\"  # signs of texts that a model reads with masks in them; they are left out
LETTERS = 5  # of one of them, at least

Span = tuple[int, int]  # first word, and the one behind the last


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("memory", type=Path)
    parser.add_argument("--languages", nargs=2, required=True)
    parser.add_argument("--columns")
    parser.add_argument("--learn-from", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    columns = parse_columns(options.columns) if options.columns else None
    pairs = [
        (s.src, s.tgt) for s in read_memory(options.memory, *options.languages, columns=columns)
    ]
    more = options.learn_from
    known = [(s.src, s.tgt) for s in read_memory(more, *options.languages)] if more else pairs
    aligner = Aligner(known)
    chance = random.Random(options.seed)
    chance.shuffle(pairs)
    options.out.mkdir(parents=True, exist_ok=True)
    sides: tuple[list[str], list[str]] = ([], [])
    for src, tgt in dict.fromkeys(pairs):
        if len(sides[0]) < options.lines and (places := spans(aligner, src, tgt)):
            for side, text, span in zip(sides, (src, tgt), chance.choice(places), strict=True):
                side.append(tagged(text, span))
    for side, name in zip(sides, ("src", "tgt"), strict=True):
        text = "".join(f"{line}\n" for line in side)
        (options.out / f"lines.{name}").write_text(text, encoding="utf-8")
    print(f"{len(sides[0])} lines")


def spans(aligner: Aligner, src: str, tgt: str) -> list[tuple[Span, Span]]:
    """The words of source and target that translate each other, none of which stands at an end."""
    words, into = tokens(src), tokens(tgt)
    if len(words) not in WORDS or len(words) != len(token_spans(src)):
        return []
    if len(into) != len(token_spans(tgt)) or any(sign in src + tgt for sign in MARKUP):
        return []
    links = aligner.translations(words, into)
    found = []
    for first in range(1, len(words) - 1):
        for end in range(first + 1, min(first + LONGEST, len(words) - 1) + 1):
            block = _block(links, first, end)
            if block and block[0] > 0 and block[1] < len(into) and _says_much(words[first:end]):
                found.append(((first, end), block))
    return found


def _block(links: Sequence[int | None], first: int, end: int) -> Span | None:
    """Where the translations of these words stand, if all are neighbours and no other word's."""
    into = [place for place in links[first:end] if place is not None]
    if len(set(into)) < end - first or max(into) - min(into) + 1 != end - first:
        return None
    others = {*links[:first], *links[end:]}
    return None if others.intersection(into) else (min(into), max(into) + 1)


def _says_much(words: Sequence[str]) -> bool:
    return all(map(str.isalpha, words)) and max(map(len, words)) >= LETTERS


def tagged(text: str, span: Span) -> str:
    """A text with a tag around these words, as XLIFF has it."""
    places = token_spans(text)
    begin, end = places[span[0]][0], places[span[1] - 1][1]
    parts = map(escape, (text[:begin], text[begin:end], text[end:]))
    before, inside, behind = (" ".join(part.split("\n")) for part in parts)
    return f'{before}<g id="1">{inside}</g>{behind}'


if __name__ == "__main__":
    main()
