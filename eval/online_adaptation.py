"""Online adaptation, as a comparison: a base learns from a few pairs right before it translates.

    python eval/online_adaptation.py MODEL TEST OUT retrieved --memory MEMORY
    python eval/online_adaptation.py MODEL TEST OUT confirmed

retrieved   before each segment, from the pairs that are found for it; then the weights go back to
            what they were (Farajian et al. 2017, as in ModernMT): updates and rate grow with the
            score of the best pair
confirmed   after each segment, from its source and reference, as if a translator had confirmed it
            (Turchi et al. 2017); the weights go back at a document's start, with --keep never

MODEL is read without its reference network and memory layers, and not changed. TEST is a memory
file in document order; MEMORY must hold no source of it. OUT gets one translation a line, for
`hypothesis` in a recipe. The table has BLEU and the seconds a segment of finding, learning and
decoding, with the base beside it. OURS: plain gradient steps, without dropout, on all weights of
the decoder (`--all`: of the whole base); one step is over all pairs together."""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import sacrebleu
import torch

from tmnmt import Translator
from tmnmt.engine.settings import Settings
from tmnmt.errors import TmnmtError
from tmnmt.formats import read_memories
from tmnmt.index.base import Index
from tmnmt.index.opening import open_memory
from tmnmt.keys.pair_keys import padded
from tmnmt.models.base import Injectable, Trainable
from tmnmt.models.folder import Model, load_model
from tmnmt.segments import Segment
from tmnmt.vocab import EOS, PAD

Pairs = Sequence[tuple[str, str]]


class Adapting:
    """A base that learns and goes back. `seconds` says where the time went."""

    def __init__(self, model: Model, beam: int = 5, whole: bool = False) -> None:
        self.model = plain = model.plain()
        if not isinstance(plain.backbone, Trainable):
            raise TypeError("only a base that tmnmt trains can learn on")
        self.backbone, self.vocab = plain.backbone.eval(), plain.vocab
        # as a recipe's base
        self.settings = Settings(beam=beam, verbatim=0, headings=False, lost_sentences=False)
        fixed: tuple[str, ...] = ()
        if not whole and isinstance(plain.backbone, Injectable):
            fixed = plain.backbone.encoder_reads
        self.learning = [
            parameter
            for name, parameter in plain.backbone.named_parameters()
            if not name.startswith(fixed)
        ]
        self._first = [parameter.detach().clone() for parameter in self.learning]
        self._translator: Translator | None = None
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def learn(self, pairs: Pairs, updates: int, rate: float) -> list[float]:
        """So many gradient steps on all these pairs; the loss before each, in nats a subword."""
        with self._clock("learning"):
            src = [[*self.vocab.encode_source(s), EOS] for s, _ in pairs]
            tgt = padded([[*self.vocab.encode(t), EOS] for _, t in pairs], "cpu")
            lengths, count = torch.tensor([len(ids) for ids in src]), (tgt != PAD).sum()
            losses = []
            for _ in range(updates):
                loss = self.backbone.loss(padded(src, "cpu"), lengths, tgt) / count
                grads = torch.autograd.grad(loss, self.learning)
                with torch.no_grad():
                    for parameter, grad in zip(self.learning, grads, strict=True):
                        parameter.sub_(grad, alpha=rate)
                losses.append(float(loss.detach()))
            self._translator = None
        return losses

    def reset(self) -> None:
        """The base as it was, bit for bit."""
        with self._clock("learning"), torch.no_grad():
            for parameter, first in zip(self.learning, self._first, strict=True):
                parameter.copy_(first)
            self._translator = None

    def translate(self, source: str) -> str:
        with self._clock("decoding"):
            if self._translator is None:
                self._translator = Translator(self.model, None, [], self.settings)
            return self._translator.translate([source])[0].tgt

    @contextmanager
    def _clock(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[what] += time.perf_counter() - start


def from_retrieved(
    adapting: Adapting,
    index: Index,
    segments: Sequence[Segment],
    updates: int,
    rate: float,
    k: int = 4,
    threshold: float = 0.5,
) -> Iterator[str]:
    """Translations, each after learning from what is found for it; without a match, the base's."""
    for segment in segments:
        start = time.perf_counter()
        (matches,) = index.search([segment.src], k, threshold)
        adapting.seconds["finding"] += time.perf_counter() - start
        if matches:
            best = matches[0].score
            pairs = [(match.segment.src, match.segment.tgt) for match in matches]
            adapting.learn(pairs, max(1, round(updates * best)), rate * best)
        yield adapting.translate(segment.src)
        if matches:
            adapting.reset()


def from_confirmed(
    adapting: Adapting, segments: Sequence[Segment], updates: int, rate: float, keep: bool = False
) -> Iterator[str]:
    """Translations; after each the base learns from its reference."""
    document = segments[0].document if segments else ""
    for segment in segments:
        if segment.document != document and not keep:
            adapting.reset()
        document = segment.document
        yield adapting.translate(segment.src)
        adapting.learn([(segment.src, segment.tgt)], updates, rate)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("way", choices=("retrieved", "confirmed"))
    parser.add_argument("--memory", help="of `retrieved`: an index or a memory file")
    parser.add_argument("--segments", type=int, default=10**9, help="only the first so many")
    parser.add_argument("--updates", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    if (options.way == "retrieved") != (options.memory is not None):
        parser.error("--memory is of `retrieved`, which needs one")
    model = load_model(options.model)
    languages = model.config["src_lang"], model.config["tgt_lang"]
    segments = list(read_memories([options.test], *languages))[: options.segments]
    base, adapting = (Adapting(model, options.beam, options.all) for _ in range(2))
    rows = {"base": [base.translate(segment.src) for segment in segments]}
    with ExitStack() as stack:
        if options.way == "retrieved":
            index = open_memory(options.memory, *languages)
            stack.enter_context(index)
            made = from_retrieved(adapting, index, segments, options.updates, options.rate)
        else:
            made = from_confirmed(adapting, segments, options.updates, options.rate, options.keep)
        rows[options.way] = list(made)
    options.out.write_text("".join(f"{said}\n" for said in rows[options.way]), encoding="utf-8")
    references = [segment.tgt for segment in segments]
    print("| | BLEU | finding | learning | decoding |\n|---|---|---|---|---|")
    for (name, said), one in zip(rows.items(), (base, adapting), strict=True):
        bleu = sacrebleu.corpus_bleu(said, [references]).score
        seconds = [
            f"{one.seconds[what] / max(len(segments), 1):.3f}"
            for what in ("finding", "learning", "decoding")
        ]
        print(f"| {name} | {bleu:.2f} | {' | '.join(seconds)} |")


if __name__ == "__main__":
    try:
        main()
    except (TmnmtError, OSError) as error:
        raise SystemExit(f"online_adaptation: {error}") from error
