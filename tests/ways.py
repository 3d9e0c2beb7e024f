"""The same segments by every way that there is to a translation, and what each way gives.

    python tests/ways.py FILE [MODEL ...]      what all ways give for all kinds of input, as JSON

Two such files of two versions of the program show what a change of the program changes."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import product
from pathlib import Path

from places import ROOT

from tmnmt.codes.record import Code, Source, Text
from tmnmt.config.options import TranslationOptions
from tmnmt.segments import Translation
from tmnmt.serve.queue import Job, Queue
from tmnmt.translator import Translator

MEMORY = [
    ("The Minister may revoke the permit.", "Le ministre peut révoquer le permis."),
    ("The permit is valid for 30 days.", "Le permis est valide pendant 30 jours."),
    ("DEFINITIONS AND INTERPRETATION", "DÉFINITIONS ET INTERPRÉTATION"),
    (
        "The holder of the licence shall notify the Minister within 10 days.",
        "Le titulaire de la licence avise le ministre dans les 10 jours.",
    ),
    ("Deputy Minister", "Sous-ministre"),
    ("Click here to open %s.", "Cliquez ici pour ouvrir %s."),
]
TERMS = "permit\tlicence\nMinister\tministre\n"
BOLD = Code(4, "open", "<b>", "1", "x"), Code(12, "close", "</b>", "1", "x")
LONG = " ".join(
    f"The holder of permit {number} shall inform the Minister, in writing, of any change."
    for number in range(1, 30)
)

KINDS: Mapping[str, Source] = {
    "plain": "The Minister shall publish the report every year.",
    "full match": "The Minister may revoke the permit.",
    "full match but for the number": "The permit is valid for 45 days.",
    "full match but for the case": "the minister may revoke the permit.",
    "fuzzy match": "The Minister may revoke the licence.",
    "two sentences": "The permit is void. It must be returned.",
    "three sentences": "The permit is void. It must be returned. The Clerk keeps a copy.",
    "heading": "Application for a Permit",
    "heading in capitals": "GENERAL PROVISIONS",
    "capitals of a match": "DEFINITIONS AND INTERPRETATION",
    "capitals of a sentence": "THE MINISTER SHALL PUBLISH THE REPORT.",
    "contraction": "The Minister can't issue a permit.",
    "numbers": "The fee is $1,250.50 for 12 permits.",
    "number in words": "The permit is valid for thirty days.",
    "placeholder": "The permit %s was issued on {date}.",
    "placeholder of a match": "Click here to open %s.",
    "tags as text": "The <b>Minister</b> may revoke <a href='x'>the permit</a>.",
    "tags of a file": Text("The Minister may revoke the permit.", BOLD),
    "tags of a file without match": Text("The Minister reads the annual report.", BOLD),
    "message of ICU": "{count, plural, one {The permit is void.} other {# permits are void.}}",
    "foreign script": "The Minister met Владимир in 東京.",
    "letters that are unknown": "The Minister met Łukasz Żółć.",
    "address of the web": "See https://example.org/a?b=1 for the permit.",
    "code span": "Set `max_size` before the permit is issued.",
    "no words": "12.5 %",
    "signs alone": "***",
    "blank": "   ",
    "one word": "Permit",
    "quotes": "The word “permit” means a permit issued by the Minister.",
    "too long": LONG,
    "term twice": "A permit is not a permit of the Minister.",
    "control characters": "The Minister\x07 may publish\x00 the report.",
    "several lines": "The Minister may\npublish the report.",
}


def memory(folder: Path) -> Path:
    path = folder / "memory.tsv"
    lines = ["src\ttgt", *("\t".join(pair) for pair in MEMORY)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def loaded(model: Path, folder: Path, mode: str | None, has_terms: bool) -> Translator:
    """A translator with the memory above, and the terms. Each call is a translator of its own, so
    that its counts are those of what it translates."""
    (folder / "terms.txt").write_text(TERMS, encoding="utf-8")
    return Translator.load(
        model,
        [memory(folder)],
        TranslationOptions(
            mode=mode,
            beam=2,
            batch=8,
            keep=r"permit \d+",
            terms=folder / "terms.txt" if has_terms else None,
            threads=1,
        ),
    )


def by_queue(translator: Translator, source: Source) -> Translation:
    queue = Queue(translator, room=100_000)
    queue.start()
    try:
        (translation,) = queue.submit(Job(translator.session(), [source])).result(60)
    finally:
        queue.stop()
    return translation


WAYS: Mapping[str, Callable[[Translator, Source], Translation]] = {
    "translate": lambda translator, source: translator.translate([source])[0],
    "translate, explained": lambda translator, source: translator.translate([source], True)[0],
    "stream of a session": lambda translator, source: next(translator.session().stream([source])),
    "session": lambda translator, source: translator.session().translate(source),
    "completion": lambda translator, source: translator.complete(source, ""),
    "completion in a session": lambda translator, source: translator.session().complete(source, ""),
    "queue of the server": by_queue,
}


def counts(translator: Translator) -> dict[str, object]:
    """What a translator has counted of what it translated."""
    tally = translator.tally
    names = "low", "total", "unknown", "with_unknown"
    return {name: getattr(tally, name) for name in names} | {"changed": {**+tally.changed}}


def given(
    translator: Translator, way: Callable[[Translator, Source], Translation], source: Source
) -> dict[str, object]:
    """What a way gives, and what was counted meanwhile."""
    tally, translator.tally.changed = translator.tally, Counter()
    tally.low = tally.total = tally.unknown = tally.with_unknown = 0
    translation = way(translator, source)
    record = json.loads(json.dumps(asdict(translation), default=str))
    return {
        "tgt": translation.tgt,
        "codes": [f"{code.at} {code.covers} {code.markup}" for code in translation.tgt_codes],
        "score": round(translation.score, 3),
        "origin": translation.origin,
        "low": translation.low,
        "unknown": translation.unknown,
        "checks": [list(check) for check in translation.user_checks],
        "matches": [match.segment.src for match in translation.matches],
        "tokens": [[token["text"], token["origin"]] for token in record["tokens"]],
        "counts": counts(translator),
    }


def main(path: Path, models: list[Path]) -> None:
    results = {}
    modes: tuple[str, ...] = ("copy", "fusion", "both", "nearest", "off")
    for model, mode, has_terms in product(models, modes, (False, True)):
        with tempfile.TemporaryDirectory() as folder:
            translator = loaded(model, Path(folder), mode, has_terms)
            for (kind, source), (way, translate) in product(KINDS.items(), WAYS.items()):
                key = f"{model.name} {mode} {'terms' if has_terms else 'free'} | {kind} | {way}"
                results[key] = given(translator, translate, source)
            print(model.name, mode, has_terms, file=sys.stderr)
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    shipped = [ROOT / "models" / name for name in ("law-transformer.en-fr", "law.en-fr")]
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]] or shipped)
