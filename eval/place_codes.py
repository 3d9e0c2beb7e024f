"""How well inline codes are placed, with the reference forced: where each stands, against where the
reference has it.

python eval/place_codes.py --src dev.en --tgt dev.fr [--model models/law.en-fr] [--memory M.tmx]...

The files hold one sentence a line with XLIFF's inline elements (g, x, bx, ex). Lines whose sides
have other codes are left out and counted. So are those of which no code has words before and after
it in the source, since `place` leaves such codes outside. The model reads the text without codes,
and is forced along the reference's; codes are placed there by the links of the words. The ways:

    min-max     every target word belongs to the source word it looks at most; a span goes around
                all words that belong to its own, any other code before the first one behind it
    arg-max     the same links, placed by `tmnmt.codes.place`
    attention   all of the attention, placed so
    pairs       (1 - zeta) alpha + zeta q A_pair, placed so; where a memory is given
    words       the last of these, but a word that stands once on each side comes from itself alone

Places are compared in characters that are no white space. Told are all codes of these lines; those
that have words before and after them in the source; and of the latter each kind."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from tmnmt.codes.links import place_of
from tmnmt.codes.place import place
from tmnmt.codes.record import Code, Part, Text, join_parts, pairs
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.beam_search import Hypothesis
from tmnmt.engine.links import Array, Linker, with_same_words
from tmnmt.engine.piece import OpenSegment, Piece
from tmnmt.engine.source_segment import SourceSegment
from tmnmt.explain.provenance import Neighbouring, tokens_of
from tmnmt.layers.collated import collate
from tmnmt.layers.contract import Collated
from tmnmt.layers.trace import Trace
from tmnmt.segments import Match, Token
from tmnmt.text import token_spans
from tmnmt.translator import Translator
from tmnmt.vocab import BOS, EOS

_TAG = re.compile(r'<(/?)(g|x|bx|ex)(?: id="(\d+)")?\s*(/?)>')
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--tgt", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("models/law.en-fr"))
    parser.add_argument("--memory", action="append", default=[], help="a memory file or an index")
    parser.add_argument("--lines", type=int, help="at most so many, spread over the file")
    parser.add_argument("--output", type=Path, help="the figures as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    both, left_out = lines(options.src, options.tgt)
    some = [(source, target) for source, target in both if any(among_words(source))]
    inside = len(some)
    if options.lines:
        some = some[:: max(1, len(some) // options.lines)][: options.lines]
    translator = Translator.load(options.model, options.memory, TranslationOptions(verbatim=0))
    tallies: dict[str, Tally] = {}
    start, matched = time.perf_counter(), 0
    for source, reference in some:
        read = read_along(translator, source.plain, reference.plain)
        matched += bool(read[0])
        for way, text in placed(translator, source, reference, *read):
            tallies.setdefault(way, Tally()).add(source, reference, text)
    told = {
        "lines": len(some),
        "left out, other codes": left_out,
        "left out, codes outside": len(both) - inside,
        "with matches": matched,
        "seconds": round(time.perf_counter() - start),
        "ways": {way: tally.summary() for way, tally in tallies.items()},
    }
    print(json.dumps(told, indent=1))
    if options.output:
        options.output.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def lines(src: Path, tgt: Path) -> tuple[list[tuple[Text, Text]], int]:
    """Both sides of the lines that have codes, the same ones; and how many have others."""
    found, left_out = [], 0
    with src.open(encoding="utf-8") as sources, tgt.open(encoding="utf-8") as targets:
        for source, target in zip(sources, targets, strict=True):
            both = coded(source.strip()), coded(target.strip())
            marks = [Counter(code.markup for code in one.codes) for one in both]
            if marks[0] != marks[1]:
                left_out += 1
            elif marks[0]:
                found.append(both)
    return found, left_out


def among_words(text: Text) -> list[bool]:
    """Of every code whether it has words before and after it."""
    words = token_spans(text.plain)
    return [0 < place_of(code.at, words) < len(words) for code in text.codes]


def coded(line: str) -> Text:
    """A line with XLIFF's inline elements."""
    parts: list[Part] = []
    waiting: list[str] = []
    at = 0
    for tag in _TAG.finditer(line):
        parts.append(_unescaped(line[at : tag.start()]))
        at = tag.end()
        closing, name, number, _ = tag.groups()
        if closing:
            number = waiting.pop()
            parts.append((Code(0, "close", f"</g {number}>", number), ""))
        elif name == "g":
            waiting.append(number)
            parts.append((Code(0, "open", f"<g {number}>", number), ""))
        else:
            parts.append((Code(0, "standalone", f"<{name} {number}/>"), ""))
    return join_parts([*parts, _unescaped(line[at:])])


def _unescaped(text: str) -> str:
    return re.sub("|".join(_ENTITIES), lambda found: _ENTITIES[found[0]], text)


def placed(
    translator: Translator,
    source: Text,
    reference: Text,
    tokens: Sequence[Token],
    matches: Sequence[Match],
) -> Iterator[tuple[str, Text]]:
    """The reference's text with the source's codes, by each of the ways."""
    linker = Linker(translator.pipeline.backbone, translator.vocab)
    words, into = token_spans(source.plain), token_spans(reference.plain)
    links = linker.links(source.plain, reference.plain)
    sharp = np.zeros_like(links)
    if links.size:
        sharp[np.arange(len(links)), links.argmax(1)] = 1
    yield "min-max", min_max(source, reference.plain, sharp)
    yield "arg-max", place(source, reference.plain, words, into, sharp)
    yield "attention", place(source, reference.plain, words, into, links)
    if tokens:
        links = linker.links(source.plain, reference.plain, tokens, matches)
    yield "pairs", place(source, reference.plain, words, into, links)
    links = with_same_words(links, source.plain, reference.plain)
    yield "words", place(source, reference.plain, words, into, links)


def read_along(
    translator: Translator, source: str, target: str
) -> tuple[Sequence[Token], Sequence[Match]]:
    """What the decoder read of the memory while it was forced along the target, word by word; and
    its matches. Nothing where there is none."""
    of_source = tuple(translator.vocab.encode_source(source))
    segment = SourceSegment(source, translator.pipeline.preparation.filters)
    piece = Piece(OpenSegment(segment, 0, 0), source, source, of_source)
    (piece,) = translator.pipeline.retrieve([piece])
    memories, backbone = translator.layers, translator.pipeline.backbone
    if piece.retrieved is None or not piece.matches or memories is None:
        return (), ()
    scores = [match.score for match in piece.matches]
    collated = Collated(pairs=collate([[*piece.retrieved.keys]], [scores]))
    ids = translator.vocab.encode(target)
    with torch.inference_mode():
        encoded = backbone.encode(
            torch.tensor([[*piece.ids, EOS]]), torch.tensor([len(piece.ids) + 1])
        )
        ready = memories.ready(collated, backbone, translator.settings.mode)
        state, traces = backbone.start(encoded), list[Trace]()
        for prev, word in zip([BOS, *ids], ids, strict=False):
            stepped = memories.step(
                backbone, torch.tensor([prev]), state, encoded, ready, explain=True
            )
            state, ready = stepped.state, stepped.ready
            if stepped.trace is not None:
                one = stepped.trace.select(torch.tensor([0]), torch.tensor([word]))
                traces.append(one.pick(0, 0))
    forced = Hypothesis(tuple(ids), 0, 0, True, probabilities=(0,) * len(ids), traces=tuple(traces))
    near = Neighbouring(None, 0, piece)
    return tokens_of(forced, translator.vocab, collated, 0, near, piece), piece.matches


def min_max(source: Text, target: str, links: Array) -> Text:
    """Spans around the first and the last word that belong to their own; any other code before the
    first word that belongs to one behind it, else at the end."""
    words, into = token_spans(source.plain), token_spans(target)
    owner = links.argmax(1) if links.size else np.zeros(0, int)
    places = [place_of(code.at, words) for code in source.codes]
    found = list[tuple[int, int, Code]]()
    closes = pairs(source.codes)
    partner = closes | {close: opening for opening, close in closes.items()}
    for number, code in enumerate(source.codes):
        first, last = sorted((places[number], places[partner.get(number, number)]))
        if number in partner:
            inside = np.nonzero((owner >= int(first)) & (owner < last))[0]
        else:
            inside = np.nonzero(owner >= int(first))[0]
        if not len(inside):
            at = len(target)
        elif code.kind == "close":
            at = into[inside[-1]][1]
        else:
            at = into[inside[0]][0]
        found.append((at, number, code))
    found.sort(key=lambda one: one[:2])
    parts: list[Part] = []
    end = 0
    for at, _, code in found:
        parts += [target[end:at], (code, "")]
        end = at
    return join_parts([*parts, target[end:]])


@dataclass
class Tally:
    """How far codes stand from where the reference has them."""

    distances: dict[str, list[int]] = field(default_factory=dict)

    def add(self, source: Text, reference: Text, text: Text) -> None:
        inner = among_words(source)
        where = {code.markup: number for number, code in enumerate(source.codes)}
        for (markup, at), (_, right) in zip(_places(text), _places(reference), strict=True):
            number = where[markup]
            kind = source.codes[number].kind
            for name in ("all", *(["among words", kind] if inner[number] else [])):
                self.distances.setdefault(name, []).append(abs(at - right))

    def summary(self) -> dict[str, dict[str, float]]:
        return {
            kind: {
                "codes": len(some),
                "exact %": round(100 * sum(one == 0 for one in some) / len(some), 1),
                "characters": round(sum(some) / len(some), 2),
            }
            for kind, some in sorted(self.distances.items())
        }


def _places(text: Text) -> Sequence[tuple[str, int]]:
    """Every code and the characters before it, white space left out, in the order of the
    markup."""
    return sorted((code.markup, len("".join(text.plain[: code.at].split()))) for code in text.codes)


if __name__ == "__main__":
    main()
