"""Whether a model replays whole sentences that were confirmed before, for sources that are not like
theirs: a weak one can follow the positions of one sentence to its end.

    python eval/replayed_sentences.py FILE --model MODEL [--memory MEMORY]... [--beam 4]
                                      [--tau 0.8] [--temperature 0.1] [--longer 3]

The segments of FILE are translated document by document with the nearest positions, and their
references are confirmed one after another. A translation is replayed where it equals, but for case
and signs, the target of an earlier segment whose source has a fuzzy score below 0.5 with the
segment's, and has more words than `--longer`. Translations of the base alone are counted beside
them, and references, which may well be the same for two sources. `half`: those that have more than
half of their words in one run out of such a target."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path

from tmnmt.config.options import TranslationOptions
from tmnmt.engine.loading import load_layers
from tmnmt.engine.settings import settled
from tmnmt.errors import TmnmtError
from tmnmt.formats import read_memory
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.index.opening import open_memory
from tmnmt.layers.reach import STANDARD, Reach, Reaches
from tmnmt.models.folder import Model, load_model
from tmnmt.segments import Segment
from tmnmt.text import match_tokens
from tmnmt.translator import Translator

UNLIKE = 0.5  # fuzzy score of two sources below which a target of one is none of the other
SHOWN = 10

Documents = Sequence[Sequence[Segment]]


def main() -> int:
    """Prints a line for the base, for the nearest positions, and for the references; 1 when a file
    is missing or wrong."""
    chosen = options()
    try:
        model = load_model(chosen.model)
        languages = model.config["src_lang"], model.config["tgt_lang"]
        segments = [*read_memory(chosen.file, *languages)]
        documents = [[*each] for _, each in groupby(segments, key=lambda s: s.document)]
        for mode in ("off", "nearest"):
            outputs = translations(model, documents, mode, chosen)
            report(mode, documents, outputs, chosen.longer)
        report("references", documents, [s.tgt for s in segments], chosen.longer)
    except TmnmtError as error:
        print(f"replayed_sentences: {error}", file=sys.stderr)
        return 1
    return 0


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--memory", action="append", default=[], metavar="MEMORY")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--tau", type=float, default=STANDARD.session.tau)
    parser.add_argument("--temperature", type=float, default=0.1)
    parser.add_argument("--longer", type=int, default=3, help="words that a target has at least")
    return parser.parse_args()


def translations(
    model: Model, documents: Documents, mode: str, chosen: argparse.Namespace
) -> list[str]:
    """The translation of every segment beside what was confirmed before it in its document."""
    options = TranslationOptions(beam=chosen.beam, cache=0 if mode != "off" else None)
    settings = settled(options, None, "nearest" if mode == "nearest" else "off")
    languages = model.config["src_lang"], model.config["tgt_lang"]
    memories = [open_memory(place, *languages) for place in chosen.memory]
    reach = Reach(chosen.tau, chosen.temperature)
    reaches = Reaches(pairs=reach, session=reach)
    translator = Translator(model, load_layers(model, "cpu"), memories, settings, reaches=reaches)
    outputs = list[str]()
    for document in documents:
        session = translator.session()
        for segment in document:
            outputs.append(session.translate(segment.src).tgt)
            if mode != "off":
                session.confirm(segment.src, segment.tgt)
    return outputs


def report(name: str, documents: Documents, outputs: Sequence[str], longer: int) -> None:
    """Prints how many of the outputs are replayed, and some of them."""
    rest, count, half, shown = iter(outputs), 0, 0, list[str]()
    for document in documents:
        for number, segment in enumerate(document):
            output = next(rest)
            unlike = [s for s in document[:number] if is_unlike(s.src, segment.src)]
            words = plain_words(output)
            targets = [plain_words(s.tgt) for s in unlike if len(plain_words(s.tgt)) > longer]
            is_replayed = words in targets
            count += is_replayed
            half += any(2 * longest_run(words, target) > len(words) > longer for target in targets)
            if is_replayed:
                shown.append(f"    {segment.src!r} -> {output!r}")
    print(f"{name}: {count} of {len(outputs)} replayed, {half} by more than half")
    print("\n".join(shown[:SHOWN]), end="\n" if shown else "", flush=True)


def is_unlike(source: str, other: str) -> bool:
    """Whether two sources have less than half in common."""
    return fuzzy_score(match_tokens(source), match_tokens(other)) < UNLIKE


def plain_words(text: str) -> list[str]:
    """The words of a text, without case and signs."""
    return [word.casefold() for word in match_tokens(text) if word.isalnum()]


def longest_run(words: Sequence[str], others: Sequence[str]) -> int:
    """How many words follow one another in both."""
    if not set(words) & set(others):
        return 0
    return SequenceMatcher(None, words, others, autojunk=False).find_longest_match().size


if __name__ == "__main__":
    sys.exit(main())
