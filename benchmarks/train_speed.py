"""Training speed, target tokens per core-second, beside Joey NMT's on the same sentences in the
same run.

    python benchmarks/train_speed.py [MEMORY...] [--seconds 20] [--rounds 5] [--output FILE.json]

The contenders take turns, each in a process of its own that waits while the others work. CPU only.
Joey NMT is put into .cache/joey-venv on the first run. It is measured twice: as it ships (512 units
in each direction of the encoder, source and target embeddings apart, shuffled batches of mixed
lengths) and as near to ours as it can be set (256 units, one embedding table, exactly our batches).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from workers import CACHE, HERE, JOEY, Worker, environment, processor, worker

MEMORIES = [
    HERE.parent / "memories" / f"{name}.en-fr.tmx.gz" for name in ("canadian-law", "jrc-acquis")
]
SIZE = {"embedding": 256, "hidden": 512, "dropout": 0.1}
CONTENDERS: dict[str, dict[str, Any]] = {
    "tmnmt, bf16 products": {"precision": "bf16"},
    "tmnmt, fp32": {"precision": "fp32"},
    "Joey NMT as it ships": {"encoder": 512, "tied": False, "own_batches": True},
    "Joey NMT, our size and batches": {"encoder": 256, "tied": True, "own_batches": False},
}


def prepare(
    memories: list[Path], folder: Path, batch_tokens: int, vocabulary: int
) -> dict[str, int]:
    """Writes what both sides read: subword ids as words (w17), the vocabulary and the batches; says
    how much it is."""
    from tmnmt.formats import read_memory
    from tmnmt.training.config import DataConfig
    from tmnmt.training.data import encode_pairs, token_batches
    from tmnmt.vocab import Vocabulary

    segments = [s for memory in memories for s in read_memory(memory, "en", "fr")]
    vocab = Vocabulary.train((text for s in segments for text in (s.src, s.tgt)), vocabulary)
    pairs = encode_pairs(segments, vocab, DataConfig(corpus=()), Counter())
    (folder / "spm.model").write_bytes(vocab.model)
    names = ["<unk>", "<pad>", "<s>", "</s>", *(f"w{i}" for i in range(4, len(vocab)))]
    (folder / "vocabulary.txt").write_text("".join(f"{name}\n" for name in names))
    for side, rows in (("src", pairs.src), ("tgt", pairs.tgt)):
        lines = (
            " ".join(f"w{i}" for i in row[:-1]) for row in rows
        )  # both sides add </s> themselves
        (folder / f"train.{side}").write_text("".join(f"{line}\n" for line in lines))
    (folder / "batches.json").write_text(json.dumps(token_batches(pairs, batch_tokens, 1)))
    return {
        "pairs": len(pairs),
        "target_tokens": sum(map(len, pairs.tgt)),
        "vocabulary": len(vocab),
    }


class Contender:
    """A worker that trains, and what it did at every turn."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.turns: list[dict[str, float]] = []

    def train(self, seconds: float) -> dict[str, float]:
        return self._worker.ask(str(seconds))

    def rates(self) -> list[float]:
        """Target tokens per core-second, a turn each."""
        return [turn["tokens"] / turn["cpu_seconds"] for turn in self.turns]

    def result(self) -> dict[str, Any]:
        rate = statistics.median(self.rates())
        return {**self._worker.facts, "tokens_per_core_second": rate, "turns": self.turns}


@contextmanager
def contender(folder: Path, options: dict[str, Any]) -> Iterator[Contender]:
    """A running worker; it ends with the block."""
    joey = "encoder" in options
    python = environment("joey", JOEY, "joeynmt.training") if joey else Path(sys.executable)
    script = "joey_worker.py" if joey else "tmnmt_worker.py"
    with worker(python, script, folder, json.dumps(options)) as process:
        yield Contender(process)


def measure(
    folder: Path, seconds: float, rounds: int, options: dict[str, Any]
) -> dict[str, Contender]:
    """Every contender's turns, interleaved; a first turn of each warms up and does not count."""
    with ExitStack() as stack:
        running = {}
        for name, own in CONTENDERS.items():
            work = folder / name.replace(" ", "-").replace(",", "")
            work.mkdir(exist_ok=True)
            for file in ("train.src", "train.tgt", "vocabulary.txt", "batches.json", "spm.model"):
                (work / file).unlink(missing_ok=True)
                (work / file).symlink_to(folder / file)
            running[name] = stack.enter_context(contender(work, {**SIZE, **options, **own}))
        for turn in range(rounds + 1):
            for name, one in running.items():
                done = one.train(seconds if turn else min(seconds, 5))
                if turn:
                    one.turns.append(done)
                print(f"round {turn}: {name}: loss {done['loss']:.2f}", file=sys.stderr)
        return running


def report(result: dict[str, Any]) -> str:
    """The table, best first, with each one's multiple of Joey NMT as it ships."""
    rows = sorted(result["contenders"].items(), key=lambda item: -item[1]["tokens_per_core_second"])
    peer = result["contenders"]["Joey NMT as it ships"]["tokens_per_core_second"]
    lines = ["| | parameters | target tokens / core-second | times Joey NMT |", "|---|---|---|---|"]
    for name, one in rows:
        rate = one["tokens_per_core_second"]
        lines.append(
            f"| {name} | {one['parameters'] / 1e6:.1f} M | {rate:,.0f} | {rate / peer:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "memory", nargs="*", type=Path, default=MEMORIES, help="English-French memories"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--batch-tokens", type=int, default=3000, help="padded tokens of the longer side"
    )
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--output", type=Path, default=HERE / "train_speed.json")
    arguments = parser.parse_args()
    folder = CACHE / "train-speed"
    folder.mkdir(parents=True, exist_ok=True)
    data = prepare(arguments.memory, folder, arguments.batch_tokens, arguments.vocabulary)
    options = {"threads": arguments.threads, "batch_tokens": arguments.batch_tokens}
    running = measure(folder, arguments.seconds, arguments.rounds, options)
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": processor(),
        "memories": [p.name for p in arguments.memory],
        "seconds": arguments.seconds,
        **options,
        **SIZE,
        **data,
        "contenders": {name: one.result() for name, one in running.items()},
    }
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    print(report(result))


if __name__ == "__main__":
    main()
