"""Decoding speed of the plain model beside Joey NMT, eole, transformers and CTranslate2, in one
run.

    python benchmarks/decode_peers.py [--rounds 5] [--sentences 200] [--single 20] [--own-torch]
    [--output FILE.json]

Processor's seconds for the same sentences in the same batches (of 64, sorted by length, and of 1),
beam 5, every output 30 tokens long, one thread. The contenders take turns, each in a process of its
own that waits while the others work (decode_worker.py).

With a Transformer (--model), transformers and CTranslate2 have one of the same sizes. With the GRU
they have a Transformer with as many parameters, and Joey NMT and eole take part with a GRU of our
sizes; their output has the hidden size and a matrix of its own, hence more parameters.

The peers are put into .cache/ on the first run, with the torch that runs this; --own-torch
downloads one for each."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from workers import CACHE, HERE, JOEY, Worker, environment, processor, worker

EOLE = [
    ["--no-deps", "eole==0.6.4"],
    [
        "torch",
        "numpy",
        "configargparse",
        "pydantic",
        "pyonmttok",
        "pandas",
        "six",
        "safetensors",
        "huggingface_hub",
        "datasets",
        "ctranslate2",
        "pyahocorasick",
    ],
]
MARIAN = [["torch", "transformers==5.23.0", "ctranslate2==4.8.5"]]
AS_OUR_GRU = {  # a Transformer with as many parameters
    "hidden": 256,
    "encoder_layers": 3,
    "decoder_layers": 3,
    "feed_forward": 640,
    "heads": 8,
}
RECURRENT = {"joeynmt", "eole"}  # their models are GRUs, and so stand beside ours alone
OF_TRANSFORMERS = "tmnmt, int8"  # a GRU has no products in int8
CONTENDERS: dict[str, dict[str, Any]] = {
    "tmnmt, bf16 products": {"library": "tmnmt", "precision": "bf16"},
    "tmnmt, fp32": {"library": "tmnmt", "precision": "fp32"},
    "tmnmt, int8": {"library": "tmnmt", "precision": "int8"},
    "Joey NMT, our size": {"library": "joeynmt", "encoder": 256, "tied": True},
    "Joey NMT as it ships": {"library": "joeynmt", "encoder": 512, "tied": False},
    "eole": {"library": "eole"},
    "transformers, Marian": {"library": "transformers"},
    "CTranslate2, fp32": {"library": "ctranslate2", "precision": "float32"},
    "CTranslate2, int8": {"library": "ctranslate2", "precision": "int8"},
}
BATCH = 64
WHAT = {"batch": f"batch {BATCH}", "single": "batch 1"}


def sentences(model: Path, test: Path, count: int) -> tuple[list[list[int]], dict[str, Any]]:
    """Sources spread over the test set, as ids, of those translated in one piece; and what the
    peers must know."""
    from tmnmt.formats import read_memory
    from tmnmt.models.folder import load_model

    loaded = load_model(model)
    rows = [
        loaded.vocab.encode(segment.src)
        for segment in read_memory(test, loaded.config["src_lang"], loaded.config["tgt_lang"])
    ]
    rows = [row for row in rows if 0 < len(row) <= loaded.config["max_subwords"]]
    sizes = {"kind": "rnnsearch", **loaded.config["model"]}
    return [rows[i * len(rows) // count] for i in range(count)], {
        "sizes": sizes,
        "transformer": sizes if sizes["kind"] == "transformer" else AS_OUR_GRU,
        "vocabulary": len(loaded.vocab),
    }


def interpreter(library: str, own_torch: bool) -> Path:
    if library == "tmnmt":
        return Path(sys.executable)
    name, installs, needs = {
        "joeynmt": ("joey", JOEY, "joeynmt.training"),
        "eole": ("eole", EOLE, "eole.predict.translator"),
        "transformers": ("marian", MARIAN, "transformers, ctranslate2"),
        "ctranslate2": ("marian", MARIAN, "transformers, ctranslate2"),
    }[library]
    return environment(name, installs, needs, borrow=not own_torch)


def measure(job: Path, chosen: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Every contender's facts and turns; a first turn of each warms up and does not count."""
    tokens = {
        name: chosen.steps * n
        for name, n in (("batch", chosen.sentences), ("single", chosen.single))
    }
    with ExitStack() as stack:
        running: dict[str, Worker] = {}
        for name in chosen.contenders:
            own = {"model": str(chosen.model), **CONTENDERS[name]}
            python = interpreter(own["library"], chosen.own_torch)
            running[name] = stack.enter_context(
                worker(
                    python,
                    "decode_worker.py",
                    job,
                    json.dumps(own),
                    OMP_NUM_THREADS=str(chosen.threads),
                )
            )
        turns: dict[str, dict[str, list[dict[str, float]]]] = {
            name: {what: [] for what in WHAT} for name in running
        }
        for turn in range(chosen.rounds + 1):
            for name, one in running.items():
                for what in WHAT:
                    done = one.ask(what if turn else "warm")
                    if turn:
                        assert done["tokens"] == tokens[what], (
                            f"{name}: {done['tokens']} tokens, not {tokens[what]}"
                        )
                        turns[name][what].append(done)
            print(f"round {turn} of {chosen.rounds}", file=sys.stderr)
        return {name: {**one.facts, "turns": turns[name]} for name, one in running.items()}


def seconds(contender: dict[str, Any], what: str) -> float:
    return statistics.median(turn["cpu_seconds"] for turn in contender["turns"][what])


def report(contenders: dict[str, dict[str, Any]]) -> str:
    """The table: the medians, and of each round's ratio to the first contender (ours)
    the median."""
    first, *_ = contenders
    heads = [f"{label} | times {first}" for label in WHAT.values()]
    lines = [f"| | parameters | {' | '.join(heads)} |", "|---|---|---|---|---|---|"]
    for name, one in contenders.items():
        cells = []
        for what in WHAT:
            pairs = zip(one["turns"][what], contenders[first]["turns"][what], strict=True)
            ratio = statistics.median(
                own["cpu_seconds"] / other["cpu_seconds"] for own, other in pairs
            )
            cells += [f"{seconds(one, what):.2f} s", f"{ratio:.2f}"]
        lines.append(f"| {name} | {one['parameters'] / 1e6:.1f} M | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--model", type=Path, default=HERE.parent / "models" / "law.en-fr")
    asked.add_argument(
        "--test",
        type=Path,
        default=HERE.parent / "memories" / "held-out" / "jrc-acquis.test.en-fr.tsv.gz",
    )
    asked.add_argument(
        "--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), metavar="NAME"
    )
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--sentences", type=int, default=200)
    asked.add_argument(
        "--single", type=int, default=20, help="sentences that are decoded one by one"
    )
    asked.add_argument("--beam", type=int, default=5)
    asked.add_argument("--steps", type=int, default=30, help="target tokens of every sentence")
    asked.add_argument("--threads", type=int, default=1)
    asked.add_argument(
        "--own-torch", action="store_true", help="a torch for every peer: some 5 GB each"
    )
    asked.add_argument("--output", type=Path, default=HERE / "decode_peers.json")
    chosen = asked.parse_args()
    rows, known = sentences(chosen.model, chosen.test, chosen.sentences)
    ordered = sorted(rows, key=len, reverse=True)  # the longest first: Joey NMT wants it
    batches = {
        "batch": [ordered[at : at + BATCH] for at in range(0, len(ordered), BATCH)],
        "single": [[row] for row in rows[:: len(rows) // chosen.single][: chosen.single]],
        "warm": [ordered[:8], ordered[:1]],
    }
    if known["sizes"]["kind"] == "transformer":
        chosen.contenders = [
            name for name in chosen.contenders if CONTENDERS[name]["library"] not in RECURRENT
        ]
    else:
        chosen.contenders = [name for name in chosen.contenders if name != OF_TRANSFORMERS]
    settings = {name: getattr(chosen, name) for name in ("threads", "beam", "steps")}
    job = CACHE / "decode-peers.json"
    CACHE.mkdir(exist_ok=True)
    job.write_text(json.dumps({**settings, **known, "batches": batches}))
    contenders = measure(job, chosen)
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": processor(),
        **settings,
        "sentences": chosen.sentences,
        "single": chosen.single,
        "batch": BATCH,
        "source_tokens": sum(map(len, rows)),
        "contenders": contenders,
    }
    chosen.output.write_text(json.dumps(result, indent=1) + "\n")
    print(report(contenders))


if __name__ == "__main__":
    main()
