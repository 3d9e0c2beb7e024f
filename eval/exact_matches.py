"""What becomes of segments whose very source the memory holds, with exact matches taken as they
stand and without.

    python eval/exact_matches.py FILE [--memory MEMORY]... [--model models/law.en-fr] [--output
    FILE.json]

Every segment of FILE is translated whose source MEMORY holds, word for word. Without MEMORY, FILE
itself is the memory.
Counted is what comes back: "unchanged", the translation that is taken where exact matches are taken
as they stand; "another", one of the others that the memory holds for this source; "nothing", what
it does not hold. The same source comes once: a memory of law holds "[Repealed]" a thousand times.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tmnmt.config.options import TranslationOptions
from tmnmt.errors import DataError, TmnmtError
from tmnmt.formats import read_memory
from tmnmt.formats.clean import clean
from tmnmt.translator import Translator, restrict

ROOT = Path(__file__).resolve().parent.parent
OUTCOMES = "unchanged", "another", "nothing"
EVERY = 1000  # matches of score 1 that are asked for
SHOWN = 20  # of what the memory does not hold


def main() -> int:
    """Prints a line for each way; 1 when a file is missing or wrong."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("file", type=Path, metavar="FILE")
    options.add_argument("--memory", type=Path, action="append", metavar="MEMORY")
    options.add_argument("--model", type=Path, default=ROOT / "models" / "law.en-fr")
    options.add_argument("--mode", choices=("copy", "fusion"), default="copy")
    options.add_argument("--output", type=Path)
    chosen = options.parse_args()
    try:
        made = measured(chosen.file, chosen.memory or [chosen.file], chosen.model, chosen.mode)
    except TmnmtError as error:
        print(f"exact_matches: {error}", file=sys.stderr)
        return 1
    if chosen.output:
        chosen.output.write_text(
            json.dumps(made, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )
    return 0


def measured(
    file: Path, memories: list[Path], model: Path, mode: str
) -> dict[str, dict[str, object]]:
    """Counts and examples by way: "as it stands" and "translated"."""
    translator = Translator.load(
        model, memories, TranslationOptions(remember="nothing", mode=mode, verbatim=100)
    )
    languages = translator.src_lang, translator.tgt_lang
    sources = list(
        dict.fromkeys(clean(segment.src)[0] for segment in read_memory(file, *languages))
    )
    held = {
        source: targets
        for source, targets in zip(sources, held_by(translator, sources), strict=True)
        if targets
    }
    if not held:
        raise DataError(f"{file}: the memory holds no source of it")
    taken = [done.tgt for done in translator.translate(held)]
    indexes = translator.pipeline.lookup.retriever.indexes
    decoding = restrict(translator, indexes, [], replace(translator.settings, verbatim=0))
    said = [done.tgt for done in decoding.translate(held)]
    return {
        name: reported(name, list(held), taken, texts, list(held.values()))
        for name, texts in (("as it stands", taken), ("translated", said))
    }


def held_by(translator: Translator, sources: list[str]) -> list[set[str]]:
    """All targets that the memory has for each source."""
    indexes = translator.pipeline.lookup.retriever.indexes
    found = [index.search(sources, EVERY, 1.0) for index in indexes]
    return [
        {match.segment.tgt for matches in alike for match in matches}
        for alike in zip(*found, strict=True)
    ]


def outcome(text: str, taken: str, held: set[str]) -> str:
    """What became of a segment that came back as `text`."""
    if text == taken:
        return "unchanged"
    return "another" if text in held else "nothing"


def reported(
    name: str, sources: list[str], taken: list[str], texts: list[str], held: list[set[str]]
) -> dict[str, object]:
    """Prints shares and what the memory does not hold; returns both."""
    outcomes = [outcome(*one) for one in zip(texts, taken, held, strict=True)]
    counts = Counter(outcomes)
    shares = (
        f"{kind} {counts[kind]} ({100 * counts[kind] / len(texts):.1f} %)" for kind in OUTCOMES
    )
    print(f"{name}: {len(texts)} sources; {', '.join(shares)}")
    strange = [
        {"src": source, "held": target, "said": text}
        for source, target, text, kind in zip(sources, taken, texts, outcomes, strict=True)
        if kind == "nothing"
    ]
    for one in strange[:SHOWN]:
        print(f"  {one['src']}\n    held {one['held']}\n    said {one['said']}")
    return {"sources": len(texts), **{kind: counts[kind] for kind in OUTCOMES}, "strange": strange}


if __name__ == "__main__":
    raise SystemExit(main())
