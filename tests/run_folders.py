"""Run folders to report on, made of real segments: references worsened at random stand for
translations."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import sacrebleu
from places import HELD_OUT
from rapidfuzz.distance import Levenshtein

from tmnmt.formats.reader import read_memory
from tmnmt.segments import Segment

BANDS = (
    "0-0.2",
    "0.2-0.4",
    "0.4-0.5",
    "0.5-0.6",
    "0.6-0.7",
    "0.7-0.8",
    "0.8-0.9",
    "0.9-1",
    "exact",
)
LOWEST = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

# name: (share of words that go wrong, how far the memory mends that, settings)
SYSTEMS: dict[str, tuple[float, float, dict[str, Any]]] = {
    "base": (0.40, 0.0, {"model": "models/law.en-fr", "mode": "plain", "beam": 5}),
    "pasted TM": (0.95, 0.97, {"paste": "the best match's target, at any score"}),
    **{
        f"copy K={k}": (
            0.41,
            mends,
            {"model": "models/law.en-fr", "mode": "copy", "beam": 5, "K": k, "cache": 0},
        )
        for k, mends in ((1, 0.45), (2, 0.55), (4, 0.62), (8, 0.6))
    },
    "copy K=4, cache 100": (
        0.40,
        0.63,
        {"model": "models/law.en-fr", "mode": "copy", "beam": 5, "K": 4, "cache": 100},
    ),
}


def segments(count: int, test: str = "jrc-acquis") -> list[Segment]:
    """So many segments of a test set that ships, of at most 40 words; again from its start when it
    has fewer."""
    all_of_it = read_memory(HELD_OUT / f"{test}.test.en-fr.tsv.gz", "en", "fr")
    found = list(
        islice((segment for segment in all_of_it if len(segment.tgt.split()) <= 40), count)
    )
    return [found[i % len(found)] for i in range(count)]


def write_run(
    folder: Path, texts: Sequence[Segment], test: str = "jrc-acquis", quick: bool = False
) -> Path:
    """A run folder; `quick` gives every segment the scores of one like it, where there are very
    many."""
    chance = random.Random(1)
    lines = [_line(segment, test, chance) for segment in texts]
    known: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(lines):
        same = known.get(line["src"]) if quick else None
        line["systems"] = same or {name: _output(line, name, chance, number) for name in SYSTEMS}
        known.setdefault(line["src"], line["systems"])
    report = {
        "format": 1,
        "name": "JRC-Acquis, English to French",
        "description": "Seven systems on the kept-out documents of the sample that ships.",
        "made": {
            "version": "0.1.0",
            "date": "2026-11-21T20:00:00Z",
            "machine": "2 cores",
            "seconds": 291.4,
            "command": "tmnmt evaluate run eval/recipes/jrc-acquis.sample.toml",
            "recipe_sha256": "5f" * 32,
        },
        "tests": [_test(test, lines)],
    }
    write(folder, report, lines)
    return folder


def write(folder: Path, report: dict[str, Any], lines: Sequence[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    with (folder / "segments.jsonl").open("w", encoding="utf-8") as text:
        text.writelines(json.dumps(line) + "\n" for line in lines)


def _line(segment: Segment, test: str, chance: random.Random) -> dict[str, Any]:
    score = min(1.0, chance.choice((chance.uniform(0, 0.5), chance.uniform(0.3, 1.08))))
    band = BANDS[max(i for i, low in enumerate(LOWEST) if score >= low)]
    matches = [
        {
            "src": _worsened(segment.src, 1 - score, chance),
            "tgt": _worsened(segment.tgt, 1 - score, chance),
            "score": round(max(score - 0.03 * i, 0), 4),
            "document": f"jrc3199{i}R0{chance.randrange(100, 999)}",
        }
        for i in range(3 if score >= 0.5 else 1)
    ]
    return {
        "test": test,
        "document": segment.document,
        "position": segment.position,
        "src": segment.src,
        "ref": segment.tgt,
        "band": band,
        "best": matches[0],
        "given": matches if score >= 0.5 else [],
    }


def _output(line: dict[str, Any], name: str, chance: random.Random, number: int) -> dict[str, Any]:
    wrong, mends, settings = SYSTEMS[name]
    score = line["best"]["score"] if "paste" in settings or line["given"] else 0.0
    seed = (
        random.Random(number) if "paste" not in settings else chance
    )  # systems of one model err alike
    hyp = _worsened(line["ref"], wrong * (1 - mends * score), seed)
    given = line["given"][: settings.get("K", 0)]
    edits = Levenshtein.distance(hyp.split(), line["ref"].split())
    return {
        "hyp": hyp,
        "bleu": round(sacrebleu.sentence_bleu(hyp, [line["ref"]]).score, 3),
        "edit_rate": edits / len(line["ref"].split()),
        "matches": given,
        "tokens": _tokens(hyp, given, settings.get("cache", 0), chance)
        if "K" in settings
        else None,
    }


def _worsened(text: str, share: float, chance: random.Random) -> str:
    """`text` with so large a share of its words changed, swapped with the next, or left out."""
    words = text.split()
    for i in range(len(words)):
        if chance.random() < share * 0.7:
            kind = chance.random()
            if kind < 0.5:
                words[i] = chance.choice(
                    ("disposition", "mesure", "de", "présent", "visée", "marché", "la", "aux")
                )
            elif kind < 0.75 and i + 1 < len(words):
                words[i], words[i + 1] = words[i + 1], words[i]
            else:
                words[i] = ""
    return " ".join(filter(None, words))


def _tokens(
    hyp: str, given: Sequence[object], cache: int, chance: random.Random
) -> list[dict[str, Any]]:
    tokens, origin = [], "model"
    for word in hyp.split():
        if chance.random() < 0.4:
            origin = chance.choice(
                ("model", *("memory",) * 2 * bool(given), *("cache",) * bool(cache))
            )
        pieces = [f"▁{word[:4]}", *(word[i : i + 4] for i in range(4, len(word), 4))]
        tokens += [{"text": piece, "origin": origin, "probability": 0.5} for piece in pieces]
    return tokens


def _test(name: str, lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    references = [line["ref"] for line in lines]
    systems = [_system(system, lines) for system in SYSTEMS]
    return {
        "name": name,
        "src_lang": "en",
        "tgt_lang": "fr",
        "segments": len(lines),
        "documents": len({line["document"] for line in lines}),
        "words": sum(len(ref.split()) for ref in references),
        "warnings": ["A fresh split of JRC-Acquis: not comparable with published figures."],
        "bands": [{"band": band, **_size(lines, band)} for band in BANDS],
        "reference": {"LTCR": 0.712, "LTCR-1": 0.75},
        "systems": systems,
    }


def _size(lines: Sequence[dict[str, Any]], band: str) -> dict[str, int]:
    there = [line for line in lines if line["band"] == band]
    return {"segments": len(there), "words": sum(len(line["ref"].split()) for line in there)}


def _system(name: str, lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    settings, baseline = SYSTEMS[name][2], name == "base"
    number = list(SYSTEMS).index(name)
    positions = [
        (low, low + 9, [i for i in lines if low <= i["position"] <= low + 9])
        for low in range(0, 60, 10)
    ]
    lengths = [
        (low, high, [i for i in lines if low <= len(i["src"].split()) <= high])
        for low, high in ((1, 10), (11, 20), (21, 40), (41, 80))
    ]
    share = {"memory": 0.31, "cache": 0.04, "model": 0.65}
    return {
        "name": name,
        "settings": settings,
        "baseline": baseline,
        "metrics": _metrics(lines, name, True),
        "versus": []
        if baseline
        else [
            {
                "test": test,
                "metric": metric,
                "against": "base",
                "difference": 2.5,
                "p": 0.0003 * number,
                "p_holm": p,
            }
            for metric in ("BLEU", "chrF2++", "TER")
            for test, p in (
                ("paired bootstrap", 0.012 * number),
                ("approximate randomisation", 0.011 * number),
            )
        ],
        "by_band": [
            {
                "band": band,
                **_size(lines, band),
                "metrics": _plain([i for i in lines if i["band"] == band], name),
            }
            for band in BANDS
        ],
        "by_position": [
            {"from": a, "to": b, "segments": len(s), "metrics": _plain(s, name)}
            for a, b, s in positions
        ],
        "by_length": [
            {"from": a, "to": b, "segments": len(s), "metrics": _plain(s, name)}
            for a, b, s in lengths
        ],
        "origin": {
            o: {"tokens": int(9000 * s), "share": s, "precision": 0.9 * s + 0.3}
            for o, s in share.items()
        }
        if settings.get("K")
        else None,
        "consistency": {"LTCR": 0.6 + number / 100, "LTCR-1": 0.665},
        "effort": {
            "edit_rate": sum(i["systems"][name]["edit_rate"] for i in lines) / len(lines),
            "weighted_words": 12345.6,
            "words_by_band": {band: _size(lines, band)["words"] for band in BANDS},
        },
        "cost": {
            "seconds": 100.0 + 20 * number,
            "peak_bytes": 900 * 2**20 + number * 2**27,
            "words_per_second": 20000 if "paste" in settings else 310 / (number + 1),
            "parameters": None if "paste" in settings else 8_900_000 + 10_000 * number,
            "training_seconds": None if "paste" in settings else 13_868.4 + 400 * number,
            "training_tokens": None if "paste" in settings else 36_831_576,
            "training_tokens_per_second": None if "paste" in settings else 2655.8 - number,
        },
    }


def _plain(lines: Sequence[dict[str, Any]], name: str) -> dict[str, float | None]:
    return (
        {metric: score["score"] for metric, score in _metrics(lines, name, False).items()}
        if lines
        else {}
    )


def _metrics(lines: Sequence[dict[str, Any]], name: str, intervals: bool) -> dict[str, Any]:
    hyps, refs = [i["systems"][name]["hyp"] for i in lines], [[i["ref"] for i in lines]]
    found: dict[str, Any] = {}
    metrics = {"BLEU": sacrebleu.BLEU(), "chrF2++": sacrebleu.CHRF(word_order=2)}
    if intervals:  # of whole test sets only: it is slow
        metrics["TER"] = sacrebleu.TER()
    for key, metric in metrics.items():
        score = metric.corpus_score(hyps, refs).score
        width = 30 / len(lines) ** 0.5
        found[key] = {
            "score": score,
            "low": score - width,
            "high": score + width,
            "signature": str(metric.get_signature()),
        }
    return found
