"""The demonstration: a kept-out document translated without memory, with the TM, and while a
translator confirms it.

    python eval/demo.py

Builds an index over the JRC-Acquis memory that ships, translates with the model that ships, and
prints BLEU and time of each run and one explained segment. In the last run every segment's
reference is confirmed before the next is translated: the TM and the session cache then know it.
Under two minutes on two cores."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tmnmt.cli.explanation import explained
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import TmnmtError
from tmnmt.eval.measures.scores import Scores, closeness, score
from tmnmt.formats import read_memory
from tmnmt.formats.text import read_document_lines
from tmnmt.index import MemoryIndex, build
from tmnmt.progress import Progress
from tmnmt.segments import Translation
from tmnmt.translator import Translator

ROOT = Path(__file__).resolve().parent.parent
ALONE, TM, CONFIRMED = "without memory", "with the TM", "TM, confirming"


def main() -> int:
    """Runs the demonstration; 1 when a file is missing or wrong."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--model", type=Path, default=ROOT / "models" / "law-transformer.en-fr")
    options.add_argument(
        "--memory", type=Path, default=ROOT / "memories" / "jrc-acquis.en-fr.tmx.gz"
    )
    options.add_argument(
        "--document",
        default=str(ROOT / "memories" / "held-out" / "jrc32002L0085"),
        help="PREFIX of a pair PREFIX.en.txt, PREFIX.fr.txt",
    )
    options.add_argument("--index", type=Path, default=ROOT / "index" / "built" / "demo")
    chosen = options.parse_args()
    try:
        run(chosen.model, chosen.memory, chosen.document, chosen.index)
    except TmnmtError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


def run(model: Path, memory: Path, document: str, index: Path) -> None:
    """Index, three translations, their scores, an explained segment; all printed."""
    started = time.perf_counter()
    build_index(memory, index)
    sources, references = (
        list(read_document_lines(Path(f"{document}.{lang}.txt"))) for lang in ("en", "fr")
    )
    words = sum(len(line.split()) for line in sources)
    print(f"\n{Path(document).name}: {len(sources)} segments, {words:,} words, not in the memory\n")
    print(f"{'':20}  BLEU   chrF   seconds")
    found: dict[str, list[Translation]] = {}
    scores: Scores | None = None
    with MemoryIndex.open(index, "en", "fr") as opened:
        alone, remembering = (
            Translator.load(model, options=TranslationOptions(mode="off")),
            Translator.load(model, [opened]),
        )
        for name, translate in (
            (ALONE, lambda: alone.translate(sources)),
            (TM, lambda: remembering.translate(sources)),
            (CONFIRMED, lambda: confirming(remembering, sources, references)),
        ):
            start = time.perf_counter()
            found[name] = translate()
            seconds = time.perf_counter() - start
            scores = score([translation.tgt for translation in found[name]], references)
            print(f"{name:20}  {scores.bleu:5.2f}  {scores.chrf:5.2f}  {seconds:5.1f}")
    assert scores is not None
    print("(the seconds of the last are of one segment at a time, with the origin of every word)")
    print(f"\n{scores.bleu_signature}\n{scores.chrf_signature}\n")
    at = telling(found[ALONE], found[CONFIRMED], references)
    print("A segment, and where its words come from:\n")
    explained(sys.stdout)(found[CONFIRMED][at])
    print(f"without memory:  {found[ALONE][at].tgt}\nreference:       {references[at]}")
    print(f"\n{time.perf_counter() - started:.0f} seconds in all")


def confirming(
    translator: Translator, sources: Sequence[str], references: Sequence[str]
) -> list[Translation]:
    """Segment by segment, each confirmed as its reference says before the next, as in post-editing;
    explained."""
    session, done = translator.session(), []
    for src, tgt in zip(sources, references, strict=True):
        done.append(session.translate(src, explain=True))
        if src.strip() and tgt.strip():
            session.confirm(src, tgt)
    return done


def build_index(memory: Path, index: Path) -> None:
    """An index over the memory, in place of an older one."""
    start = time.perf_counter()
    index.parent.mkdir(parents=True, exist_ok=True)
    with Progress("indexing", "segments") as progress:
        manifest = build(
            index,
            read_memory(memory, "en", "fr"),
            "en",
            "fr",
            force=True,
            progress=progress.advance,
        )
    print(
        f"{memory.name}: {manifest.segments:,} segments indexed in "
        f"{time.perf_counter() - start:.1f} seconds"
    )


def telling(
    plain: Sequence[Translation], remembering: Sequence[Translation], references: Sequence[str]
) -> int:
    """The matched segment of middle length that the memory brought closer to the reference than any
    other."""
    gains = [
        closeness(b.tgt, reference) - closeness(a.tgt, reference)
        if b.matches and 8 <= len(a.src.split()) <= 40
        else -100
        for a, b, reference in zip(plain, remembering, references, strict=True)
    ]
    return max(range(len(gains)), key=gains.__getitem__)


if __name__ == "__main__":
    sys.exit(main())
