"""What each memory costs at decoding, over the plain model, one document and 32 side by side; where
a step's time goes.

    python benchmarks/decode.py [--model DIR] [--memory PATH] [--test TSV] [--device cpu] [--threads
    1] [--rounds 2]
                                [--json]

Every row is the plain model and one system in turn, on the same sentences, round after round: the
cost is the median of the rounds' ratios. Every output is as long as its source in subwords, so that
all systems take as many steps; `</s>` is left out of all of them alike. Seconds are those of the
processor, and by the clock. A new translator begins every turn, so no key is known before. The
second cost is that of the decoder alone, without search and keys. Words are white-space separated
words of the source.

Rows are printed as they are measured. The profile comes from one more turn of every system, with a
clock around its parts; a part's time does not count what it calls of the others. `--json` prints
one object a line instead.

On a GPU (`--device cuda`) what counts are the ratios by the clock: the processor gives out work and
waits. The GPU is waited for before every reading of the clock, so a step that is profiled takes
longer than others."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from tmnmt.allocator import keep_freed
from tmnmt.engine import beam_search as decode
from tmnmt.engine import decoder as engine
from tmnmt.engine.assembly import Assembly
from tmnmt.engine.loading import load_layers, load_on
from tmnmt.engine.lookup import Lookup
from tmnmt.engine.piece import Piece
from tmnmt.engine.pipeline import Pipeline
from tmnmt.engine.run_statistics import Tally
from tmnmt.engine.schedule import side_by_side
from tmnmt.engine.settings import Settings
from tmnmt.errors import TmnmtError
from tmnmt.formats import read_memory
from tmnmt.index import Index
from tmnmt.index.opening import open_memory
from tmnmt.layers import combine, contract
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import Model
from tmnmt.models.rnnsearch_fast import FastRNNsearch
from tmnmt.models.transformer import Transformer
from tmnmt.trained_layers import cache as session_cache
from tmnmt.trained_layers import tm
from tmnmt.trained_layers.cache import SessionCache
from tmnmt.trained_layers.tm import TranslationMemory
from tmnmt.translator import Translator
from tmnmt.vocab import EOS

ROOT = Path(__file__).resolve().parent.parent
PLAIN = "plain"
SLOTS = 1000  # of the session cache: what the one that ships has learned with
SYSTEMS = {
    "copy": Settings(mode="copy"),
    "fusion": Settings(mode="fusion"),
    "cache": Settings(cache=SLOTS, remember="own"),
    "copy + cache": Settings(mode="copy", cache=SLOTS, remember="own"),
    "fusion + cache": Settings(mode="fusion", cache=SLOTS, remember="own"),
    "both": Settings(mode="both"),
    "both + cache": Settings(mode="both", cache=SLOTS, remember="own"),
}
PARTS: list[tuple[str, Any, str]] = [
    *(
        (part, backbone, name)
        for backbone in (FastRNNsearch, Transformer)
        for part, name in (("encode", "encode"), ("step", "step"), ("read-out", "readout"))
    ),
    ("softmax", combine, "read_out"),
    ("session cache", SessionCache, "fuse"),
    ("read pairs", TranslationMemory, "read"),
    ("gates", tm, "copy_logit"),
    ("gates", tm, "fusion_gate"),
    ("copy", contract, "mix_copy"),
    ("other of memories", MemoryLayers, "step"),
    ("candidates", decode, "continuations"),
    ("beam", decode, "_survivors"),
    ("results", decode, "_results"),
    ("search", Lookup, "with_matches"),
    ("keys", Lookup, "_keys"),
    ("collate", engine, "collate"),
    ("collate", session_cache, "collate_caches"),
    ("remember", Pipeline, "write_keys"),
]
NOTHING_INSIDE = ("keys",)  # what these call of the model is theirs


@dataclass(frozen=True)
class Turn:
    """Seconds of one translation of all documents, and of search and keys alone."""

    cpu: float
    wall: float
    cpu_around: float
    wall_around: float


@dataclass(frozen=True)
class Row:
    """One system beside the plain model; costs are medians of the rounds' ratios, words/s of the
    clock's medians."""

    batch: int
    system: str
    cost: float  # processor
    cost_wall: float
    cost_decoding: float  # processor, without search and keys
    cost_decoding_wall: float
    words_per_second: float
    words_per_second_decoding: float
    plain_words_per_second: float


class TimedTally(Tally):
    """Knows the processor's time of search and keys, too."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device
        self.cpu: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        wait_for(self.device)
        start = time.process_time()
        with super().timed(what):
            yield
            wait_for(self.device)
        self.cpu[what] += time.process_time() - start


def main() -> None:
    chosen = options()
    keep_freed()
    torch.set_num_threads(chosen.threads)
    try:
        model = load_on(chosen.model, chosen.device)
    except TmnmtError as error:
        raise SystemExit(f"decode.py: error: {error}") from error
    index = open_memory(chosen.memory, model.config["src_lang"], model.config["tgt_lang"])
    forced_length()
    told = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "threads": chosen.threads,
        "device": device_name(chosen.device),
        "torch": torch.__version__,
        "model": model.hash,
        "memory": chosen.memory.name,
        "beam": chosen.beam,
        "precision": chosen.precision,
        "rounds": chosen.rounds,
    }
    print(
        json.dumps(told)
        if chosen.json
        else "  ".join(f"{name} {value}" for name, value in told.items()),
        flush=True,
    )
    for batch in chosen.batches:
        documents = cut(
            chosen.test, model, batch, chosen.segments if batch == 1 else chosen.sentences
        )
        base = Settings(batch=batch, beam=chosen.beam, precision=chosen.precision)
        systems = {name: SYSTEMS[name] for name in chosen.systems}
        measure(model, index, documents, base, systems, chosen)


def options() -> argparse.Namespace:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--model", type=Path, default=ROOT / "models" / "law.en-fr")
    asked.add_argument("--memory", type=Path, default=ROOT / "memories" / "jrc-acquis.en-fr.tmx.gz")
    asked.add_argument(
        "--test", type=Path, default=ROOT / "memories" / "held-out" / "jrc-acquis.test.en-fr.tsv.gz"
    )
    asked.add_argument(
        "--batches", type=int, nargs="+", default=[1, 32], help="documents side by side (1 32)"
    )
    asked.add_argument("--segments", type=int, default=32, help="of a document that is alone (32)")
    asked.add_argument("--sentences", type=int, default=3, help="of each of several documents (3)")
    asked.add_argument("--rounds", type=int, default=2, help="turns of either side of a row (2)")
    asked.add_argument(
        "--systems",
        nargs="+",
        choices=SYSTEMS,
        default=list(SYSTEMS),
        help="beside the plain model (all)",
    )
    asked.add_argument("--beam", type=int, default=5)
    asked.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    asked.add_argument(
        "--device", default="cpu", help="as of tmnmt translate: cpu, cuda, cuda:1, mps (cpu)"
    )
    asked.add_argument("--threads", type=int, default=1)
    asked.add_argument("--json", action="store_true", help="one object a line")
    return asked.parse_args()


def forced_length() -> None:
    """From now on every output is as long as its source, and nothing ends before."""
    search: Any = decode.beam_search
    predict: Any = decode.predict

    def as_long(
        backbone: Any, layers: Any, encoded: Any, memory: Any, max_len: Any, *others: Any
    ) -> Any:
        lengths = [(length - 10) // 2 for length in max_len]
        return search(backbone, layers, encoded, memory, lengths, *others)

    def without_end(*arguments: Any) -> Any:
        stepped = predict(*arguments)
        stepped.log_probs[:, EOS] = -torch.inf
        return stepped

    setattr(engine, "beam_search", as_long)  # noqa: B010  a name that it imports
    setattr(decode, "predict", without_end)  # noqa: B010


def cut(test: Path, model: Model, documents: int, sentences: int) -> list[list[str]]:
    """`documents` runs of consecutive segments, spread over the test set."""
    texts = [
        segment.src
        for segment in read_memory(test, model.config["src_lang"], model.config["tgt_lang"])
    ]
    step = max(sentences, (len(texts) - sentences) // max(documents - 1, 1))
    return [texts[at : at + sentences] for at in range(0, step * documents, step)]


def measure(
    model: Model,
    index: Index,
    documents: list[list[str]],
    base: Settings,
    systems: dict[str, Settings],
    chosen: argparse.Namespace,
) -> None:
    """Prints every system's row, then every profile."""
    device, as_json = chosen.device, chosen.json
    memories = load_layers(model, device)
    words = sum(len(text.split()) for document in documents for text in document)

    def translator(settings: Settings, tally: Tally | None = None) -> Translator:
        both = replace(
            settings,
            verbatim=0,
            batch=base.batch,
            beam=base.beam,
            precision=base.precision,
        )
        indexes = [index] if both.mode != "off" else []
        return Translator(model, memories, indexes, both, device, tally=tally)

    def turn(settings: Settings) -> Turn:
        tally = TimedTally(device)
        made = translator(settings, tally)
        cpu, wall = time.process_time(), time.perf_counter()
        translate(made, documents)
        wait_for(device)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return Turn(
            cpu,
            wall,
            *(around["search"] + around["keys"] for around in (tally.cpu, tally.seconds)),
        )

    turn(Settings(mode="both", cache=SLOTS, remember="own"))  # warms up
    if not as_json:
        print(f"\n{len(documents)} side by side, {words} words\n\n{HEAD}", flush=True)
    for name, settings in systems.items():
        turns = [(turn(Settings()), turn(settings)) for _ in range(chosen.rounds)]
        row = compared(base.batch, name, words, turns)
        print(json.dumps(asdict(row)) if as_json else line(row), flush=True)
    for name, settings in {PLAIN: Settings(), **systems}.items():
        found = profile(translator(settings), documents)
        said = (
            json.dumps({"batch": base.batch, "system": name, "ms_a_step": found})
            if as_json
            else told(name, found)
        )
        print(said, flush=True)


def compared(batch: int, name: str, words: int, turns: list[tuple[Turn, Turn]]) -> Row:
    def median(of: Callable[[Turn, Turn], float]) -> float:
        return statistics.median(of(plain, system) for plain, system in turns)

    return Row(
        batch,
        name,
        median(lambda plain, system: system.cpu / plain.cpu),
        median(lambda plain, system: system.wall / plain.wall),
        median(lambda plain, system: (system.cpu - system.cpu_around) / plain.cpu),
        median(lambda plain, system: (system.wall - system.wall_around) / plain.wall),
        words / median(lambda _, system: system.wall),
        words / median(lambda _, system: system.wall - system.wall_around),
        words / median(lambda plain, _: plain.wall),
    )


HEAD = """| system | cost | decoding alone | by the clock | decoding alone \
| words/s | decoding alone | plain words/s |
|---|---|---|---|---|---|---|---|"""


def line(row: Row) -> str:
    costs = row.cost, row.cost_decoding, row.cost_wall, row.cost_decoding_wall
    speeds = row.words_per_second, row.words_per_second_decoding, row.plain_words_per_second
    return (
        " | ".join(
            [f"| {row.system}", *(f"{x:.2f}" for x in costs), *(f"{x:,.0f}" for x in speeds)]
        )
        + " |"
    )


def translate(translator: Translator, documents: list[list[str]]) -> None:
    """As `Translator.stream` with a session cache does it, whether there is one or not."""
    pipeline, prepared = translator.pipeline, list[list[Piece]]()
    for number, document in enumerate(documents):
        assembly = Assembly()
        prepared.append(
            [
                piece
                for text in document
                for piece in pipeline.preparation.pieces(text, assembly, document=number)
            ]
        )
    sessions = [translator.session() for _ in prepared]
    for group in side_by_side(prepared, translator.settings.batch, pipeline.retrieve):
        pipeline.translate(group, [sessions[piece.segment.document] for piece in group])


class Clock:
    """Seconds by part, each without what it calls of the others."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: defaultdict[str, int] = defaultdict(int)
        self._open: list[str] = []
        self._last = time.perf_counter()

    def around(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            if self._open and self._open[-1] in NOTHING_INSIDE:
                return function(*arguments, **named)
            self._switch()
            self._open.append(part)
            self.calls[part] += 1
            try:
                return function(*arguments, **named)
            finally:
                self._switch()
                self._open.pop()

        return timed

    def _switch(self) -> None:
        wait_for(self.device)
        now = time.perf_counter()
        self.seconds[self._open[-1] if self._open else "rest"] += now - self._last
        self._last = now


def profile(translator: Translator, documents: list[list[str]]) -> dict[str, float]:
    """Milliseconds a step of the beam by part, in the order of `PARTS`, and the number of steps."""
    clock = Clock(translator.pipeline.decoder.device)
    own = [(owner, name, getattr(owner, name)) for _, owner, name in PARTS]
    for (part, owner, name), (_, _, function) in zip(PARTS, own, strict=True):
        setattr(owner, name, clock.around(part, function))
    try:
        clock.around("rest", translate)(translator, documents)
    finally:
        for owner, name, function in own:
            setattr(owner, name, function)
    steps = clock.calls["step"]
    names = dict.fromkeys([part for part, _, _ in PARTS] + ["rest"])
    return {name: 1000 * clock.seconds[name] / steps for name in names if clock.calls[name]}


def told(name: str, found: dict[str, float]) -> str:
    parts = "  ".join(f"{part} {ms:.3f}" for part, ms in found.items())
    return f"{name}: {sum(found.values()):.3f} ms a step: {parts}"


def wait_for(device: str) -> None:
    """Until a GPU has done what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    elif device == "mps":
        torch.mps.synchronize()


def device_name(device: str) -> str:
    """Of a GPU its name."""
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def processor() -> str:
    """Its name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next(
        (text.split(":", 1)[1].strip() for text in lines if text.startswith("model name")),
        platform.machine(),
    )


if __name__ == "__main__":
    main()
