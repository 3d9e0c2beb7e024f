"""What the nearest positions of a memory cost at decoding, over the plain model: with keys that
`tmnmt keys` has computed, with keys that are computed at need and kept, with a session, and with
fragments.

    python benchmarks/nearest.py MODEL MEMORY [TEST | --held-out N] [--mode nearest]
                                 [--beams 4 1] [--batches 1 32] [--segments 64] [--rounds 2]
                                 [--systems ...]

MEMORY and TEST are files of segments. Every row is the plain model and one system in turn, on the
same sentences, round after round: a cost is the median of the rounds' ratios of processor time,
and `rounds` are the least and the greatest of these ratios.
Every output is as long as its source in subwords, and no source is read in a second way, so that
all systems take as many steps. Each turn begins with a new translator, which knows no key. The
second cost is that of the decoder alone, without search and keys.

`first` and `second` use copies of the index without keys: the first turn computes what it needs,
and a later one finds it. One turn of every system is not counted. In a session the references are
confirmed, one after another; what that takes, above all forcing them, is no part of the costs and
has a column of its own."""

from __future__ import annotations

import argparse
import gc
import random
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from decode import TimedTally, forced_length, processor, translate

from tmnmt.__main__ import NEW_OBJECTS
from tmnmt.allocator import keep_freed
from tmnmt.engine.assembly import Assembly
from tmnmt.engine.document_state import confirm_all
from tmnmt.engine.loading import load_layers, load_on
from tmnmt.engine.settings import Settings
from tmnmt.formats import read_memory
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.compute import compute, header_of, plan
from tmnmt.keys.layout import DIRECTIONS
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import Model
from tmnmt.segments import Segment
from tmnmt.translator import Translator

PAIRS = 4  # of a segment that is held out, at least
Documents = list[list[Segment]]


@dataclass(frozen=True)
class System:
    """One way to read a memory."""

    settings: Settings
    keys: str = "kept"  # kept, first or second


@dataclass(frozen=True)
class Turn:
    """Seconds of the processor for all documents, for search, for keys, and for confirming, which
    is no part of the first."""

    cpu: float
    search: float
    keys: float
    confirming: float = 0.0


@dataclass(frozen=True)
class Bench:
    """A model with its memory, as an index with keys and as one without."""

    model: Model
    layers: MemoryLayers | None
    kept: Path
    bare: Path
    work: Path

    def turn(self, system: System, documents: Documents, index: Path) -> Turn:
        tally = TimedTally("cpu")
        settings = system.settings
        with MemoryIndex.open(index) as opened:
            indexes = [opened] if settings.mode != "off" else []
            made = Translator(self.model, self.layers, indexes, settings, tally=tally)
            start = time.process_time()
            if settings.remember == "nothing":
                translate(made, [[segment.src for segment in each] for each in documents])
            else:
                translate_and_confirm(made, documents, tally)
            cpu = time.process_time() - start
        confirming = tally.cpu["confirming"]
        return Turn(cpu - confirming, tally.cpu["search"], tally.cpu["keys"], confirming)

    def system_turn(self, system: System, documents: Documents) -> Turn:
        """A turn of a system: with a fresh index for a first use, with one index for all others."""
        if system.keys == "kept":
            return self.turn(system, documents, self.kept)
        index = self.work / system.keys
        if system.keys == "first":
            shutil.rmtree(index, ignore_errors=True)
        if not index.exists():
            shutil.copytree(self.bare, index)
        return self.turn(system, documents, index)


def translate_and_confirm(translator: Translator, documents: Documents, tally: TimedTally) -> None:
    """Translates the documents side by side, one segment of each after another, and confirms its
    reference in the session of its document."""
    pipeline = translator.pipeline
    sessions = [translator.session() for _ in documents]
    for number in range(max(map(len, documents))):
        rows = [row for row, document in enumerate(documents) if number < len(document)]
        pieces = [
            piece
            for row in rows
            for piece in pipeline.preparation.pieces(
                documents[row][number].src, Assembly(), document=row
            )
        ]
        pipeline.translate(pieces, [sessions[piece.segment.document] for piece in pieces])
        with tally.timed("confirming"):
            confirmed = [documents[row][number] for row in rows]
            documents_of = [sessions[row] for row in rows]
            confirm_all(
                [
                    (session, session.confirmation(segment.src, segment.tgt))
                    for session, segment in zip(documents_of, confirmed, strict=True)
                ]
            )


def main() -> None:
    chosen = options()
    keep_freed()
    torch.set_num_threads(chosen.threads)
    model = load_on(chosen.model, "cpu")
    forced_length()
    with tempfile.TemporaryDirectory() as folder:
        bench = prepared(model, chosen, Path(folder))
        set_collection_aside()
        print(f"{processor()}  model {model.hash}  mode {chosen.mode}  rounds {chosen.rounds}")
        for beam in chosen.beams:
            for batch in chosen.batches:
                documents = cut(chosen.test_segments, batch, chosen.segments)
                measure(bench, documents, beam, batch, chosen)


def set_collection_aside() -> None:
    """Garbage is looked for as rarely as in the program, and not among what stays: one look at all
    of it takes as long as ten segments, and falls into the turn of anybody."""
    gc.set_threshold(NEW_OBJECTS, 20, 20)
    gc.collect()
    gc.freeze()


def options() -> argparse.Namespace:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("model", type=Path)
    asked.add_argument("memory", type=Path)
    asked.add_argument("test", type=Path, nargs="?")
    asked.add_argument(
        "--held-out",
        type=int,
        metavar="N",
        help="in place of TEST: N segments of MEMORY, by seed 1, that have four pairs in the rest",
    )
    asked.add_argument("--mode", default="nearest")
    asked.add_argument("--beams", type=int, nargs="+", default=[4, 1])
    asked.add_argument("--batches", type=int, nargs="+", default=[1, 32])
    asked.add_argument("--segments", type=int, default=96, help="of all documents together (96)")
    asked.add_argument("--fragments", type=int, default=16)
    asked.add_argument("--precision", default=None)
    asked.add_argument("--rounds", type=int, default=2)
    asked.add_argument("--threads", type=int, default=1)
    asked.add_argument("--systems", nargs="+", default=None)
    asked.add_argument("--no-keys", action="store_true", help="none computed ahead: second uses")
    return asked.parse_args()


def prepared(model: Model, chosen: argparse.Namespace, folder: Path) -> Bench:
    """Both indexes in a folder."""
    languages = model.config["src_lang"], model.config["tgt_lang"]
    segments: list[Segment] = [*read_memory(chosen.memory, *languages)]
    bare, kept = folder / "bare", folder / "kept"
    if chosen.held_out:
        chosen.test_segments, segments = held_out(
            segments, chosen.held_out, folder / "all", languages
        )
    else:
        chosen.test_segments = [*read_memory(chosen.test, *languages)]
    build(bare, segments, *languages)
    shutil.copytree(bare, kept)
    if not chosen.no_keys:
        precise = replace(model, products=chosen.precision)
        with MemoryIndex.open(kept) as index:
            compute(index, precise, plan(index, header_of(precise, DIRECTIONS), model.vocab))
    return Bench(model, load_layers(model, "cpu"), kept, bare, folder)


def held_out(
    segments: list[Segment], count: int, folder: Path, languages: tuple[str, str]
) -> tuple[list[Segment], list[Segment]]:
    """Segments that have four pairs in what is left, and what is left."""
    build(folder, segments, *languages)
    chosen = dict[str, Segment]()
    with MemoryIndex.open(folder) as index:
        for segment in random.Random(1).sample(segments, len(segments)):
            (matches,) = index.search([segment.src], 40, Settings.threshold)
            others = {m.segment.src for m in matches} - {segment.src, *chosen}
            if len(others) >= PAIRS and 4 <= len(segment.src.split()) <= 60:
                chosen[segment.src] = segment
            if len(chosen) == count:
                break
    return [*chosen.values()], [segment for segment in segments if segment.src not in chosen]


def cut(test: list[Segment], documents: int, segments: int) -> Documents:
    """`documents` runs of consecutive segments, spread over the test set."""
    each = max(1, segments // documents)
    step = max(each, (len(test) - each) // max(documents - 1, 1))
    return [test[at : at + each] for at in range(0, step * documents, step)]


def systems(chosen: argparse.Namespace, base: Settings) -> dict[str, System]:
    def with_memory(**options: Any) -> Settings:
        return replace(base, **{"mode": chosen.mode, "fragments": 0, **options})

    session = {"remember": "confirmed"}

    kept = "second" if chosen.no_keys else "kept"
    with_fragments = with_memory(fragments=chosen.fragments)
    every = {
        "matches": System(with_memory(), kept),
        "+ session": System(with_memory(**session), kept),
        "+ fragments": System(with_fragments, kept),
        "+ session + fragments": System(with_memory(fragments=chosen.fragments, **session), kept),
        "matches, first": System(with_memory(), "first"),
        "matches, second": System(with_memory(), "second"),
        "+ fragments, first": System(with_fragments, "first"),
        "+ fragments, second": System(with_fragments, "second"),
    }
    return {
        name: system
        for name, system in every.items()
        if chosen.systems is None or name in chosen.systems
    }


def measure(
    bench: Bench, documents: Documents, beam: int, batch: int, chosen: argparse.Namespace
) -> None:
    base = Settings(
        mode="off",
        verbatim=0,
        batch=batch,
        beam=beam,
        precision=chosen.precision,
        fragments=0,
        remember="nothing",
        headings=False,
        lost_sentences=False,
    )
    plain = System(base)
    count = sum(map(len, documents))
    print(f"\nbeam {beam}, {batch} side by side, {count} segments\n")
    print("| system | cost | rounds | decoding alone | search | keys | confirming | plain ms |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name, system in systems(chosen, base).items():
        bench.system_turn(system, documents)
        turns = [
            (bench.system_turn(plain, documents), bench.system_turn(system, documents))
            for _ in range(chosen.rounds)
        ]
        print(row(name, turns, count), flush=True)


def row(name: str, turns: list[tuple[Turn, Turn]], segments: int) -> str:
    median = statistics.median
    costs = [own.cpu / plain.cpu for plain, own in turns]
    numbers = (
        median((own.cpu - own.search - own.keys) / plain.cpu for plain, own in turns),
        median(own.search / plain.cpu for plain, own in turns),
        median(own.keys / plain.cpu for plain, own in turns),
        median(own.confirming / plain.cpu for plain, own in turns),
        1000 * median(plain.cpu for plain, _ in turns) / segments,
    )
    spread = f"{min(costs):.2f} to {max(costs):.2f}"
    return (
        " | ".join([f"| {name}", f"{median(costs):.2f}", spread, *(f"{x:.2f}" for x in numbers)])
        + " |"
    )


if __name__ == "__main__":
    main()
