"""How long the sentences of the pages are, without code, tables and headings.

python tests/prose.py [PAGE.md]...      # words a sentence of every page, and its longest
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from places import ROOT

MEAN, LONGEST = 18.0, 40  # words of a sentence: on average over a page, and at most
FOLDERS = ("benchmarks", "eval", "index", "memories", "models", "tests")
NOT_READ = re.compile(r"^(```|~~~).*?^\1[^\n]*$|<!--.*?-->|^---$.*?^---$", re.M | re.S)
CODE = re.compile(r"``.+?``|`[^`]+`", re.S)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
ADDRESS = re.compile(r"https?://\S+")
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
# A sentence ends at these signs, with what closes behind them, before a capital, a digit or code.
END = re.compile(r"""[.!?][)"'*_»”]*\s+(?=["'(\[*_«“]*[A-ZÀ-Þ0-9\x00])""")
ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|cf|vs|et al|eq|c|No)\.$")
WORD = re.compile(r"[^\W_]|\x00")


def pages() -> list[Path]:
    """Every page that the limits hold for: the README, docs/, and the README of every folder."""
    named = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [
        *named,
        *(ROOT / folder / "README.md" for folder in FOLDERS),
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def sentences(markdown: str) -> list[str]:
    """The sentences of a page in order; a piece of code is one word, shown as a zero byte."""
    return [sentence for block in _blocks(NOT_READ.sub("", markdown)) for sentence in _split(block)]


def words(sentence: str) -> int:
    """Words of a sentence: what stands between blanks and has a letter, a digit or code in it."""
    return sum(bool(WORD.search(part)) for part in sentence.split())


def _blocks(markdown: str) -> Iterator[str]:
    """Paragraphs and items of lists, each on one line; headings, tables and code are left out."""
    block: list[str] = []
    blank, in_item, in_code = True, False, False
    for line in [*markdown.splitlines(), ""]:
        indented = line.startswith("    ") and not in_item
        in_code = indented and (blank or in_code)
        item = ITEM.match(line) if not in_code else None
        left_out = in_code or line.lstrip().startswith(("#", "|", ":::", "!!!"))
        if (item or left_out or not line.strip()) and block:
            yield " ".join(block)
            block = []
        if item:
            in_item = True
        elif line.strip() and not line.startswith(" "):
            in_item = in_item and not blank
        if not left_out and line.strip():
            block.append(line[item.end() :].strip() if item else line.strip().removeprefix("> "))
        blank = not line.strip()


def _split(block: str) -> Iterator[str]:
    text = ADDRESS.sub("\x00", LINK.sub(r"\1", CODE.sub("\x00", block)))
    start = 0
    for end in END.finditer(text):
        if not ABBREVIATED.search(text[: end.start() + 1]):
            yield text[start : end.end()].strip()
            start = end.end()
    if words(text[start:]):
        yield text[start:].strip()


def main(named: list[str]) -> int:
    """Prints a line a page; 1 where a page is over a limit."""
    over = 0
    for page in [Path(name) for name in named] or pages():
        found = sentences(page.read_text(encoding="utf-8"))
        counts = [words(sentence) for sentence in found]
        mean = sum(counts) / max(1, len(counts))
        longest = max(found, key=words, default="")
        over += mean > MEAN or words(longest) > LONGEST
        print(f"{mean:5.1f} words a sentence of {len(found):3}, longest {words(longest):2}  {page}")
        for sentence in found:
            if words(sentence) > LONGEST:
                print(f"      {words(sentence)}: {sentence}".replace("\x00", "`…`"))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
