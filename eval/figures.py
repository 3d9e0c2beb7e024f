"""BLEU and chrF of every system over whole held-out test sets, in one table.

    python eval/figures.py [--model DIR] [--test NAME=TSV]... [--memory NAME=PATH]... [--output DIR]

For each test set: the base model, the pasted TM (the best match's target, at any score), TM copy, TM fusion, session
cache, TM and cache, and the same with pairs that cannot help: K random pairs always given, and the nearest pairs of the
*other* test sets' memories at threshold 0. A memory belongs to the test set of the same name.

Writes figures.json and figures.md, and keeps every system's translations below translations/, so that a run that was
stopped goes on where it was; anything that changes the result (model, memory, settings) gets a folder of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path

import torch

from tmnmt.engine import Settings, Translator, load_memories
from tmnmt.errors import TmnmtError
from tmnmt.eval.scores import Scores, score
from tmnmt.formats import read_memory
from tmnmt.index import Index, MemoryIndex
from tmnmt.index.cached import open_memory
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.memories.combine import Memories, Mode
from tmnmt.models.folder import Model, load_model
from tmnmt.progress import Progress
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens

ROOT = Path(__file__).resolve().parent.parent
HELD_OUT = ROOT / "memories" / "held-out"
TESTS = [f"jrc-acquis={HELD_OUT / 'jrc-acquis.test.en-fr.tsv.gz'}", f"law={HELD_OUT / 'law.test.en-fr.tsv.gz'}"]
MEMORIES = [
    f"jrc-acquis={ROOT / 'memories' / 'jrc-acquis.en-fr.tmx.gz'}",
    f"law={ROOT / 'memories' / 'canadian-law.en-fr.tmx.gz'}",
]
GROUP = 64  # documents between two notes of what is done
HIGH = 0.5  # the match score whose share is told


@dataclass(frozen=True)
class System:
    """A row of the table; `pairs` says where its pairs come from: "own", "random", "other" or nowhere ("")."""

    name: str
    mode: Mode | None  # None: nothing is decoded
    cache: int
    pairs: str


@dataclass(frozen=True)
class Row:
    """What one system reached on one test set."""

    test: str
    system: str
    scores: Scores
    identical_to_base: int  # segments


class RandomPairs:
    """An index whose every search gives random pairs, the same for the same query."""

    def __init__(self, segments: Sequence[Segment], seed: int = 1) -> None:
        self.segments, self.seed = segments, seed
        self.src_lang = self.tgt_lang = ""

    def search(
        self, queries: Sequence[str], k: int = 4, threshold: float = 0.5, *, exclude_sources: bool = False,
        exclude_documents: Sequence[str] | None = None,
    ) -> list[list[Match]]:  # fmt: skip
        """`k` pairs for each query, whatever the threshold."""
        drawn = [random.Random(f"{self.seed} {query}").sample(self.segments, k) for query in queries]
        return [
            [Match(s, fuzzy_score(match_tokens(query), match_tokens(s.src)), 0) for s in segments]
            for query, segments in zip(queries, drawn, strict=True)
        ]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", type=Path, default=ROOT / "models" / "law.en-fr")
    options.add_argument("--test", action="append", metavar="NAME=TSV", help="default: both under memories/held-out")
    options.add_argument("--memory", action="append", metavar="NAME=PATH", help="default: both under memories")
    options.add_argument("--output", type=Path, default=ROOT / "eval" / "results")
    options.add_argument("--only", action="append", metavar="SYSTEM", help="only these rows")
    options.add_argument("--top-k", type=int, default=4)
    options.add_argument("--threshold", type=float, default=0.5)
    options.add_argument("--cache", type=int, default=25)
    options.add_argument("--beam", type=int, default=5)
    options.add_argument("--batch", type=int, default=32)
    options.add_argument("--length-penalty", type=float, default=1.0)
    options.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = options.parse_args()
    torch.set_num_threads(chosen.threads)
    settings = Settings(
        top_k=chosen.top_k, threshold=chosen.threshold, beam=chosen.beam, batch=chosen.batch,
        length_penalty=chosen.length_penalty, precision=chosen.precision,
    )  # fmt: skip
    try:
        Figures(chosen.model, named(chosen.test or TESTS), named(chosen.memory or MEMORIES), settings).write(
            chosen.output, systems(chosen.cache, chosen.only)
        )
    except TmnmtError as error:
        print(f"figures: {error}", file=sys.stderr)
        return 1
    return 0


def named(options: Sequence[str]) -> dict[str, Path]:
    return {name: Path(path) for name, _, path in (option.partition("=") for option in options)}


def systems(cache: int, only: Sequence[str] | None) -> list[System]:
    """The rows, the base first: the others are compared with it."""
    rows = [
        System("base", "off", 0, ""), System("pasted TM", None, 0, "own"), System("copy", "copy", 0, "own"),
        System("fusion", "fusion", 0, "own"), System("cache", "off", cache, ""),
        System("copy + cache", "copy", cache, "own"), System("fusion + cache", "fusion", cache, "own"),
        System("copy, random pairs", "copy", 0, "random"), System("fusion, random pairs", "fusion", 0, "random"),
        System("copy, other memory", "copy", 0, "other"), System("fusion, other memory", "fusion", 0, "other"),
    ]  # fmt: skip
    return [row for row in rows if not only or row.name in only or row.name == "base"]


class Figures:
    """The test sets, the memories and the model; `write` makes the table."""

    def __init__(self, model: Path, tests: dict[str, Path], memories: dict[str, Path], settings: Settings) -> None:
        self.model: Model = load_model(model)
        self.parameters: Memories | None = load_memories(self.model, "cpu")
        languages = self.model.config["src_lang"], self.model.config["tgt_lang"]
        self.settings, self.memory_paths = settings, memories
        self.tests = {name: list(read_memory(path, *languages)) for name, path in tests.items()}
        self.indexes: dict[str, MemoryIndex] = {n: open_memory(p, *languages) for n, p in memories.items()}
        self.random = RandomPairs([s for path in memories.values() for s in read_memory(path, *languages)])

    def write(self, output: Path, rows: Sequence[System]) -> None:
        """Translates what is not translated yet; writes and prints the table."""
        folder = output / "translations" / self.digest()
        folder.mkdir(parents=True, exist_ok=True)
        found: list[Row] = []
        shares = {name: self.share(name) for name in self.tests}
        for test, segments in self.tests.items():
            base: list[str] = []
            for system in rows:
                lines = self.translations(test, system, folder)
                if lines is None:
                    continue
                base = base or lines
                same = sum(a == b for a, b in zip(lines, base, strict=True))
                found.append(Row(test, system.name, score(lines, [s.tgt for s in segments]), same))
                print(f"{test}: {system.name}: {found[-1].scores.bleu:.2f} BLEU", file=sys.stderr)
        text = self.table(found, shares)
        (output / "figures.md").write_text(text, encoding="utf-8")
        record = {
            "model": self.model.hash, "settings": asdict(self.settings), "translations": folder.name,
            "memories": {name: path.name for name, path in self.memory_paths.items()},
            "share_of_matches": shares, "rows": [asdict(row) for row in found],
        }  # fmt: skip
        (output / "figures.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(text)

    def digest(self) -> str:
        """Names everything that the translations depend on."""
        path = self.model.folder / "memory.safetensors"
        parameters = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
        sizes = {name: len(index) for name, index in self.indexes.items()}
        tests = {name: [s.src for s in segments] for name, segments in self.tests.items()}
        described = json.dumps([self.model.hash, parameters, sizes, tests, asdict(self.settings)], sort_keys=True)
        return hashlib.sha256(described.encode()).hexdigest()[:12]

    def share(self, test: str) -> float:
        """The share of segments that have a match of at least 0.5 in their own memory."""
        if test not in self.indexes:
            return 0.0
        matches = self.indexes[test].search([s.src for s in self.tests[test]], 1, HIGH)
        return sum(map(bool, matches)) / len(matches)

    def translations(self, test: str, system: System, folder: Path) -> list[str] | None:
        """One line a segment; None for a system that the model has no parameters for or the test set no memory."""
        indexes = self.indexes_for(test, system)
        served = self.parameters.modes if self.parameters is not None else ("off",)
        lacks_cache = bool(system.cache) and (self.parameters is None or self.parameters.cache is None)
        if (system.pairs and not indexes) or (system.mode and system.mode not in served) or lacks_cache:
            return None
        if not system.mode:
            return pasted(indexes[0], self.tests[test])
        threshold = 0.0 if system.pairs in ("random", "other") else self.settings.threshold
        settings = replace(self.settings, mode=system.mode, cache=system.cache, threshold=threshold)
        name = f"{test}.{system.name.replace(' ', '-').replace(',', '')}.{system.cache}.json"
        return resumed(self.tests[test], Translator(self.model, self.parameters, indexes, settings), folder / name)

    def indexes_for(self, test: str, system: System) -> list[Index]:
        if system.pairs == "random":
            return [self.random]
        if system.pairs == "other":
            return [index for name, index in self.indexes.items() if name != test]
        return [self.indexes[test]] if system.pairs and test in self.indexes else []

    def table(self, rows: Sequence[Row], shares: dict[str, float]) -> str:
        """Markdown: one row a test set and system, with the difference to the base and the signatures."""
        base = {row.test: row.scores for row in rows if row.system == "base"}
        lines = ["| test set | system | BLEU | difference | chrF | as base |", "|---|---|---|---|---|---|"]
        for row in rows:
            gain = row.scores.bleu - base[row.test].bleu
            same = row.identical_to_base / len(self.tests[row.test])
            numbers = f"{row.scores.bleu:.2f} | {gain:+.2f} | {row.scores.chrf:.2f} | {same:.0%}"
            lines.append(f"| {row.test} | {row.system} | {numbers} |")
        lines.append("")
        for name, segments in self.tests.items():
            lines.append(f"- {name}: {len(segments):,} segments, {shares[name]:.1%} with a match of {HIGH} or better")
        if rows:
            lines += [f"- {rows[0].scores.bleu_signature}", f"- {rows[0].scores.chrf_signature}"]
        return "\n".join([*lines, f"- model {self.model.hash}, {asdict(self.settings)}", ""])


def pasted(index: Index, segments: Sequence[Segment]) -> list[str]:
    """The target of the best match at any score, "" where there is none."""
    found = index.search([s.src for s in segments], 1, 0.0)
    return [matches[0].segment.tgt if matches else "" for matches in found]


def resumed(segments: Sequence[Segment], translator: Translator, path: Path) -> list[str]:
    """The translations of whole documents, those in `path` not made again; each group of documents is noted there."""
    documents = [[s.src for s in group] for _, group in groupby(segments, key=lambda s: s.document)]
    lines: list[str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    done = 0
    with Progress(path.stem, "segments", len(segments)) as progress:
        for at in range(0, len(documents), GROUP):
            group = documents[at : at + GROUP]
            size = sum(map(len, group))
            if len(lines) < done + size:
                lines += [translation.tgt for translation in translator.stream(group)]
                partial = path.with_suffix(".partial")
                partial.write_text(json.dumps(lines, ensure_ascii=False, indent=0), encoding="utf-8")
                partial.replace(path)
            done += size
            progress.advance(size)
    return lines


if __name__ == "__main__":
    sys.exit(main())
