"""Training speed, target tokens per core-second, beside Joey NMT's on the same sentences in the same run.

    python benchmarks/train_speed.py [MEMORY...] [--seconds 20] [--rounds 5] [--output FILE.json]

The contenders take turns, each in a process of its own that waits while the others work. CPU only. Joey NMT is put
into .cache/joey-venv on the first run. It is measured twice: as it ships (512 units in each direction of the encoder,
source and target embeddings apart, shuffled batches of mixed lengths) and as near to ours as it can be set (256 units,
one embedding table, exactly our batches).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".cache"
JOEY = ["joeynmt==2.3.0", "importlib_metadata"]  # it imports the latter without asking for it
MEMORIES = [HERE.parent / "memories" / f"{name}.en-fr.tmx.gz" for name in ("canadian-law", "jrc-acquis")]
SIZE = {"embedding": 256, "hidden": 512, "dropout": 0.1}
CONTENDERS: dict[str, dict[str, Any]] = {
    "tmnmt, bf16 products": {"precision": "bf16"},
    "tmnmt, fp32": {"precision": "fp32"},
    "Joey NMT as it ships": {"encoder": 512, "tied": False, "own_batches": True},
    "Joey NMT, our size and batches": {"encoder": 256, "tied": True, "own_batches": False},
}


def prepare(memories: list[Path], folder: Path, batch_tokens: int, vocabulary: int) -> dict[str, int]:
    """Writes what both sides read: subword ids as words (w17), the vocabulary and the batches; says how much it is."""
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
        lines = (" ".join(f"w{i}" for i in row[:-1]) for row in rows)  # both sides add </s> themselves
        (folder / f"train.{side}").write_text("".join(f"{line}\n" for line in lines))
    (folder / "batches.json").write_text(json.dumps(token_batches(pairs, batch_tokens, 1)))
    return {"pairs": len(pairs), "target_tokens": sum(map(len, pairs.tgt)), "vocabulary": len(vocab)}


def joey_python() -> Path:
    """The interpreter that has Joey NMT; made when missing."""
    venv = CACHE / "joey-venv"
    python = venv / "bin" / "python"
    works = (
        python.exists()
        and not subprocess.run([python, "-c", "import joeynmt.training"], capture_output=True).returncode
    )
    if not works:
        print(f"installing {' '.join(JOEY)} into {venv}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *JOEY], check=True)
    return python


class Contender:
    """A worker process: `train(seconds)` has it work and gives what it did; between calls it waits."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.facts = self._answer()
        self.turns: list[dict[str, float]] = []

    def train(self, seconds: float) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a worker ended with code {self._process.wait()}; see its messages above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def rates(self) -> list[float]:
        """Target tokens per core-second, a turn each."""
        return [turn["tokens"] / turn["cpu_seconds"] for turn in self.turns]

    def result(self) -> dict[str, Any]:
        return {**self.facts, "tokens_per_core_second": statistics.median(self.rates()), "turns": self.turns}


@contextmanager
def contender(folder: Path, options: dict[str, Any]) -> Iterator[Contender]:
    """A running worker; it ends with the block."""
    joey = "encoder" in options
    python, script = (joey_python(), "joey_worker.py") if joey else (Path(sys.executable), "tmnmt_worker.py")
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(
        [python, HERE / script, folder, json.dumps(options)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        yield Contender(process)


def measure(folder: Path, seconds: float, rounds: int, options: dict[str, Any]) -> dict[str, Contender]:
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
        lines.append(f"| {name} | {one['parameters'] / 1e6:.1f} M | {rate:,.0f} | {rate / peer:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("memory", nargs="*", type=Path, default=MEMORIES, help="English-French memories")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch-tokens", type=int, default=3000, help="padded tokens of the longer side")
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--output", type=Path, default=HERE / "train_speed.json")
    arguments = parser.parse_args()
    folder = CACHE / "train-speed"
    folder.mkdir(parents=True, exist_ok=True)
    data = prepare(arguments.memory, folder, arguments.batch_tokens, arguments.vocabulary)
    options = {"threads": arguments.threads, "batch_tokens": arguments.batch_tokens}
    running = measure(folder, arguments.seconds, arguments.rounds, options)
    result = {
        "date": time.strftime("%Y-%m-%d"), "machine": _processor(), "memories": [p.name for p in arguments.memory],
        "seconds": arguments.seconds, **options, **SIZE, **data,
        "contenders": {name: one.result() for name, one in running.items()},
    }  # fmt: skip
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    print(report(result))


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    names = [line.split(": ")[1] for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.processor()


if __name__ == "__main__":
    main()
