"""Translations with inline codes, measured on sentences whose reference has them.

python eval/coded.py --src dev.en --tgt dev.fr [--model models/law.en-fr] [--memory M.tmx]...

The files hold one sentence a line with XLIFF's inline elements (g, x, bx, ex). Every line is
translated twice: with its codes, and as text without them. Told are the measures of Hashimoto et
al. 2019 (tmnmt/eval/measures/tagged.py) for all lines and for those that have codes; how many
references have the elements of their source, which no way of keeping these can exceed; BLEU of the
texts; and processor time of both runs, one thread each. With --arg-max the codes are also placed by
arg-max attention, from the first word to the last."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import torch
from place_codes import coded, min_max

from tmnmt.codes.record import Code, Text
from tmnmt.engine.links import Linker
from tmnmt.eval.measures.tagged import tagged
from tmnmt.segments import Translation
from tmnmt.translator import Translator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--tgt", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("models/law.en-fr"))
    parser.add_argument("--memory", action="append", default=[], help="a memory file or an index")
    parser.add_argument("--arg-max", action="store_true", help="that way, too")
    parser.add_argument("--lines", type=int, help="at most so many, spread over the file")
    parser.add_argument("--output", type=Path, help="the figures as JSON")
    parser.add_argument("--translations", type=Path, help="what was said, one a line")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sources, references = (
        [coded(line.strip()) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (options.src, options.tgt)
    )
    if options.lines:
        step = max(1, len(sources) // options.lines)
        sources, references = (one[::step][: options.lines] for one in (sources, references))
    translator = Translator.load(options.model, options.memory)
    translator.translate(sources[:32])  # what is done once
    plain, of_plain = _timed(translator, [source.plain for source in sources])
    found, of_coded = _timed(translator, sources)
    texts = [Text(one.tgt, one.tgt_codes) for one in found]
    ways: dict[str, Sequence[Text]] = {"place": texts}
    if options.arg_max:
        both = zip(sources, texts, strict=True)
        ways["arg-max"] = [_min_max(*one, translator) for one in both]
    some = [at for at, source in enumerate(sources) if source.codes]
    told = {
        "lines": len(sources),
        "seconds": {"without codes": round(of_plain, 1), "with codes": round(of_coded, 1)},
        "seconds of links": round(translator.tally.seconds["links"], 1),
        "text BLEU without codes": round(
            tagged(
                [escape(one.tgt) for one in plain], [escape(one.plain) for one in references]
            ).text_bleu,
            2,
        ),
        "all lines": _measured(range(len(sources)), sources, references, ways),
        "lines with codes": _measured(some, sources, references, ways),
    }
    print(json.dumps(told, indent=1))
    if options.output:
        options.output.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    if options.translations:
        options.translations.write_text("".join(xml(one) + "\n" for one in texts), encoding="utf-8")


def _timed(translator: Translator, texts: Sequence[str | Text]) -> tuple[list[Translation], float]:
    start = time.process_time()
    found = translator.translate(texts)
    return found, time.process_time() - start


def _measured(
    some: Sequence[int],
    sources: Sequence[Text],
    references: Sequence[Text],
    ways: dict[str, Sequence[Text]],
) -> dict[str, dict[str, float]]:
    """The measures of some lines, by their numbers, for every way to place codes."""
    lines = [xml(references[at]) for at in some]
    told = {
        way: asdict(tagged([xml(said[at]) for at in some], lines)) for way, said in ways.items()
    }
    told["most"] = {"match": tagged([xml(sources[at]) for at in some], lines).match}
    return {
        way: {name: round(value, 2) for name, value in figures.items()}
        for way, figures in told.items()
    }


def _min_max(source: Text, said: Text, translator: Translator) -> Text:
    if not source.codes:
        return said
    links = Linker(translator.pipeline.backbone, translator.vocab).links(source.plain, said.plain)
    sharp = np.zeros_like(links)
    if links.size:
        sharp[np.arange(len(links)), links.argmax(1)] = 1
    return min_max(source, said.plain, sharp)


def xml(text: Text) -> str:
    """A text with the elements that `coded` has read."""
    return "".join(
        escape(part) if isinstance(part, str) else _element(part[0]) for part in text.parts()
    )


def _element(code: Code) -> str:
    """<g 1> as <g id="1">."""
    name, _, number = code.markup.strip("</>").partition(" ")
    if code.kind == "blank":
        return code.markup
    if code.kind == "close":
        return f"</{name}>"
    return f'<{name} id="{number}"{"/" * (code.kind == "standalone")}>'


if __name__ == "__main__":
    main()
