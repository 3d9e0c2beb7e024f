"""Words a second with and without memory: batch 1 and 32, with and without the time of search and keys.

    python benchmarks/translate_speed.py [--model DIR] [--memory PATH] [--test TSV] [--documents 32] [--output JSON]

All systems translate the same sentences in the same run, interleaved: every round gives each system its turn, and the
median of the rounds is told. Every turn is told on stderr as it ends, the table of a batch size when it is whole. With
batch 32 that many documents go side by side in every system, without memory too, so that only the memory differs; with
batch 1, which takes longer, a quarter of them one after another. Words are white-space separated words of the source.
For closer figures --rounds 5 --sentences 4 --alone 32, which take many times as long.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import torch

from tmnmt.engine import Precision, Settings, Translator, load_memories
from tmnmt.formats import read_memory
from tmnmt.index import Index
from tmnmt.index.cached import open_memory
from tmnmt.models.folder import Model, load_model
from tmnmt.schedule import InOrder, side_by_side

ROOT = Path(__file__).resolve().parent.parent
SYSTEMS = {
    "without memory": Settings(),
    "copy": Settings(mode="copy"),
    "fusion": Settings(mode="fusion"),
    "cache": Settings(cache=25),
    "copy + cache": Settings(mode="copy", cache=25),
}

HEAD = """\
| batch | system | seconds | words/s | cost | search and keys, s | words/s decoding | cost decoding |
|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Timing:
    """One system at one batch size; seconds are medians of the rounds."""

    system: str
    batch: int
    seconds: float
    search_and_keys: float
    words_per_second: float
    words_per_second_decoding: float  # without the time of search and keys
    cost: float  # seconds over those of the system without memory, median of the rounds' ratios
    cost_decoding: float


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", type=Path, default=ROOT / "models" / "law.en-fr")
    options.add_argument("--memory", type=Path, default=ROOT / "memories" / "jrc-acquis.en-fr.tmx.gz")
    options.add_argument("--test", type=Path, default=ROOT / "memories" / "held-out" / "jrc-acquis.test.en-fr.tsv.gz")
    options.add_argument("--documents", type=int, default=32, help="cut from the test segments, side by side")
    options.add_argument("--alone", type=int, default=8, help="so many of them, for batch 1")
    options.add_argument("--sentences", type=int, default=2, help="of each document; with one the cache stays empty")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--beam", type=int, default=5)
    options.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    options.add_argument("--output", type=Path)
    chosen = options.parse_args()
    torch.set_num_threads(chosen.threads)
    model = load_model(chosen.model)
    index = open_memory(chosen.memory, model.config["src_lang"], model.config["tgt_lang"])
    documents = cut(chosen.test, model, chosen.documents, chosen.sentences)
    print(HEAD, flush=True)
    timings = []
    alone = documents[:: -(-len(documents) // chosen.alone)]
    for batch, some in ((1, alone), (chosen.documents, documents)):
        found = measure(model, index, some, batch, chosen.rounds, chosen.beam, chosen.precision)
        print(table(found), flush=True)
        timings += found
    if chosen.output:
        record = {
            "when": datetime.now(UTC).isoformat(timespec="seconds"), "machine": platform.machine(),
            "threads": chosen.threads, "torch": torch.__version__, "model": model.hash,
            "beam": chosen.beam, "precision": chosen.precision,
            "memory": chosen.memory.name, "documents": len(documents), "sentences": sum(map(len, documents)),
            "words": count(documents), "words_alone": count(alone), "rounds": chosen.rounds,
            "timings": [asdict(timing) for timing in timings],
        }  # fmt: skip
        chosen.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def cut(test: Path, model: Model, documents: int, sentences: int) -> list[list[str]]:
    """`documents` runs of consecutive segments, spread over the test set."""
    texts = [segment.src for segment in read_memory(test, model.config["src_lang"], model.config["tgt_lang"])]
    step = max(sentences, (len(texts) - sentences) // max(documents - 1, 1))
    return [texts[at : at + sentences] for at in range(0, step * documents, step)]


def measure(
    model: Model, index: Index, documents: list[list[str]], batch: int, rounds: int, beam: int, precision: Precision
) -> list[Timing]:
    """Every system's timing at one batch size; a first round, not counted, warms everything up."""
    memories = load_memories(model, "cpu")
    whole: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    around: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    for number in range(rounds + 1):
        turn = f"batch {batch}, " + (f"round {number} of {rounds}" if number else "warming up")
        for name, settings in SYSTEMS.items():
            # a new translator each time: no key is known before
            indexes = [index] if settings.mode != "off" else []
            translator = Translator(
                model, memories, indexes, replace(settings, batch=batch, beam=beam, precision=precision)
            )
            start = time.perf_counter()
            translate(translator, documents)
            whole[name].append(time.perf_counter() - start)
            around[name].append(translator.seconds["search"] + translator.seconds["keys"])
            print(f"{turn}: {name} {whole[name][-1]:.2f} s", file=sys.stderr, flush=True)
    words, base = count(documents), "without memory"
    decoding = {name: [a - b for a, b in zip(whole[name], around[name], strict=True)] for name in SYSTEMS}

    def cost(seconds: dict[str, list[float]], name: str) -> float:
        return statistics.median(a / b for a, b in zip(seconds[name][1:], seconds[base][1:], strict=True))

    return [
        Timing(
            name, batch, statistics.median(whole[name][1:]), statistics.median(around[name][1:]),
            words / statistics.median(whole[name][1:]), words / statistics.median(decoding[name][1:]),
            cost(whole, name), cost(decoding, name),
        )
        for name in SYSTEMS
    ]  # fmt: skip


def translate(translator: Translator, documents: list[list[str]]) -> None:
    """As `Translator.stream` with a session cache does it, whether there is one or not."""
    queue = InOrder()
    prepared = [
        [piece for text in document for piece in translator.pieces_of(text, number, queue)]
        for number, document in enumerate(documents)
    ]
    caches = [translator.new_cache() for _ in prepared]
    for group in side_by_side(prepared, translator.settings.batch, translator.retrieve):
        translator.translate_batch(group, [caches[piece.document] for piece in group])


def count(documents: list[list[str]]) -> int:
    return sum(len(text.split()) for document in documents for text in document)


def table(timings: list[Timing]) -> str:
    return "\n".join(
        f"| {t.batch} | {t.system} | {t.seconds:.2f} | {t.words_per_second:,.0f} | {t.cost:.2f} "
        f"| {t.search_and_keys:.2f} | {t.words_per_second_decoding:,.0f} | {t.cost_decoding:.2f} |"
        for t in timings
    )


if __name__ == "__main__":
    main()
