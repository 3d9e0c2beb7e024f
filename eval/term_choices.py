"""Does a term of several targets come back as a document has confirmed it?

python eval/term_choices.py --test memories/held-out/law.test.en-fr.tsv.gz --terms terms.csv

Of every document the segments are translated that have such a term and one of its targets in their
reference, and each reference is confirmed before the next segment. Of the places of terms is told:

- LTCR, the share of pairs in a document that are translated alike; also that of the references, and
  of those terms alone that the document's references say by one target;
- how many of those that come after a confirmed one have the target that was confirmed last, and the
  one of their own reference.

A place without any of the targets counts as translated otherwise. "as ever" is with the session
cache, the confirmed pairs and the list; "chosen" prefers the confirmed target, too."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import torch
from sacrebleu import corpus_bleu

from tmnmt.config.options import TermsMode, TranslationOptions
from tmnmt.eval.measures.consistency import consistency
from tmnmt.formats import read_memory
from tmnmt.segments import Segment
from tmnmt.session import Session
from tmnmt.terms.check import unique_target
from tmnmt.terms.term import Term
from tmnmt.terms.term_list import TermList
from tmnmt.translator import Translator

MODES: tuple[TermsMode, ...] = ("soft", "hard")


class AsEver(Session):
    """A session that prefers no target."""

    def _choose(self, *_: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--terms", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("models/law.en-fr"))
    parser.add_argument("--most", type=int, default=200, help="segments, at most")
    parser.add_argument("--output", type=Path, help="the figures as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    told = dict[str, dict[str, float]]()
    for mode in MODES:
        translator = Translator.load(
            options.model, options=TranslationOptions(terms=options.terms, terms_mode=mode)
        )
        documents = with_terms(translator, read_memory(options.test, "en", "fr"), options.most)
        for name, kind in (("as ever", AsEver), ("chosen", Session)):
            told[f"{mode}, {name}"] = measured(translator, documents, kind)
    print(json.dumps(told, indent=1))
    if options.output:
        options.output.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def with_terms(
    translator: Translator, segments: Iterable[Segment], most: int
) -> dict[str, list[tuple[Segment, dict[Term, str]]]]:
    """By document the segments with terms, and the targets of their references: where a term comes
    again in the document."""
    terms = translator.pipeline.extensions["terms"]
    assert isinstance(terms, TermList)
    of = defaultdict[str, list[tuple[Segment, dict[Term, str]]]](list)
    for segment in segments:
        if own := terms.choices(segment.src, segment.tgt):
            of[segment.document].append((segment, own))
    left, found = most, dict[str, list[tuple[Segment, dict[Term, str]]]]()
    for document, some in of.items():
        if len(some) > 1 and left > 0:
            found[document] = some[: min(left, 25)]
            left -= len(found[document])
    return found


def measured(
    translator: Translator,
    documents: dict[str, list[tuple[Segment, dict[Term, str]]]],
    kind: type[Session],
) -> dict[str, float]:
    groups, last, right, later = defaultdict[object, list[str]](list), 0, 0, 0
    wanted = defaultdict[object, list[str]](list)
    said, references = list[str](), list[str]()
    for document, some in documents.items():
        session, confirmed = kind(translator), dict[Term, str]()
        for number, (segment, own) in enumerate(some):
            done = session.translate(segment.src).tgt
            said.append(done)
            references.append(segment.tgt)
            for term, target in own.items():
                came = unique_target(term, done) or f"none {number}"
                groups[document, term].append(came)
                wanted[document, term].append(target)
                if term in confirmed:
                    later += 1
                    last += came == confirmed[term]
                    right += came == target
            confirmed |= own
            session.confirm(segment.src, segment.tgt)
    found, theirs = consistency(groups.values()), consistency(wanted.values())
    of_one = consistency(some for key, some in groups.items() if len({*wanted[key]}) == 1)
    return {
        "segments": len(said),
        "LTCR %": round(100 * (found.ltcr or 0), 1),
        "LTCR of the references %": round(100 * (theirs.ltcr or 0), 1),
        "LTCR where references have one target %": round(100 * (of_one.ltcr or 0), 1),
        "places after a confirmed one": later,
        "as confirmed last %": round(100 * last / max(1, later), 1),
        "as their reference %": round(100 * right / max(1, later), 1),
        "BLEU": round(corpus_bleu(said, [references]).score, 2),
    }


if __name__ == "__main__":
    main()
