"""How many terms come as they are asked for, what the other words lose, and the time it takes.

python eval/terms.py --src dev.en --tgt dev.fr [--model models/law.en-fr] [--output terms.json]

The files hold one sentence a line, whose terms stand in XLIFF's g elements: the words in the
element of the source are a term, those in the one of the target its translation. Every sentence is
translated with its own terms, as in the terminology tasks of WMT:

    none     without terms
    proper   with the tagged terms
    random   with as many other words, and those that the reference has for them: words that look
             at one another most, by the model's attention along the reference

and every such list in both modes of --terms-mode. A term comes exactly where its words stand in the
translation, in whatever capitals, and by its stem where a form of them does."""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from place_codes import coded
from sacrebleu import corpus_bleu

from tmnmt.codes.form import BY_FORM
from tmnmt.codes.record import Text, pairs
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.extension import with_extensions
from tmnmt.engine.links import Linker
from tmnmt.terms.find import Finder, TermPlace
from tmnmt.terms.term import Term
from tmnmt.terms.term_list import TermList
from tmnmt.text import match_tokens, nfc, token_spans
from tmnmt.translator import Translator

Terms = list[list[Term]]  # of every sentence


class Own(Finder):
    """Finds in every text its own terms."""

    def __init__(self, texts: Sequence[str], terms: Terms) -> None:
        self._finders = {nfc(text): Finder(some) for text, some in zip(texts, terms, strict=True)}
        self._words = {text: {*match_tokens(text)} for text in self._finders}

    def find(self, text: str) -> list[TermPlace]:
        """Also of a piece of a text, and of one whose codes are masked: that of the text with which
        it shares most of its words."""
        finder = self._finders.get(text)
        if finder is None:
            words = {*match_tokens(text)}
            shared = {whole: len(words & others) for whole, others in self._words.items()}
            finder = self._finders[max(shared, key=lambda whole: shared[whole])]
        return finder.find(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--tgt", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("models/law.en-fr"))
    parser.add_argument("--output", type=Path, help="the figures as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    read = [
        [coded(line.strip()) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (options.src, options.tgt)
    ]
    sources, references = ([text.plain for text in side] for side in read)
    translator = Translator.load(options.model, options=TranslationOptions(verbatim=0))
    free = translator.pipeline
    proper = [tagged(*both) for both in zip(*read, strict=True)]
    lists = {"proper": proper, "random": others(translator, sources, references, proper)}
    told = {"none": _told(translator, sources, references, proper)}
    for name, terms in lists.items():
        before = _told(translator, sources, references, terms)  # again: for the time, too
        told[f"none, scored by {name} terms"] = before
        for mode in ("soft", "hard"):
            finder = Own(sources, terms)
            own = TermList(finder, translator.vocab, mode == "hard", translator.tgt_lang)
            # a decoder that knows nothing of the runs before
            extensions = with_extensions(free.extensions, {"terms": own})
            with_terms = free.writer.restricted(free.settings, extensions)
            translator.pipeline = replace(free, writer=with_terms)
            told[f"{name}, {mode}"] = _told(translator, sources, references, terms)
        translator.pipeline = free
    print(json.dumps(told, indent=1))
    if options.output:
        options.output.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def tagged(source: Text, target: Text) -> list[Term]:
    """The tagged terms of a sentence."""
    own, theirs = (_inside(text) for text in (source, target))
    return [Term(own[name], (theirs[name],)) for name in own if own[name] and theirs.get(name)]


def _inside(text: Text) -> dict[str, str]:
    return {
        text.codes[start].pair: text.plain[text.codes[start].at : text.codes[end].at].strip()
        for start, end in pairs(text.codes).items()
    }


def others(
    translator: Translator, sources: Sequence[str], references: Sequence[str], proper: Terms
) -> Terms:
    """As many words of every sentence that are no terms, with those of the reference."""
    linker, chance = Linker(translator.pipeline.backbone, translator.vocab), random.Random(7)
    found: Terms = []
    for source, reference, terms in zip(sources, references, proper, strict=True):
        links = linker.attention([(source, reference)])[0]
        words, into = ([text[a:b] for a, b in token_spans(text)] for text in (source, reference))
        taken = {word for term in terms for word in match_tokens(term.source)}
        copied = BY_FORM.placeholders(source)  # what is in it can have no translation
        spans = token_spans(source)
        linked = [
            Term(word, (into[row],))
            for at, word in enumerate(words)
            if word.isalpha()
            and len(word) > 3
            and word not in taken
            and not any(a < spans[at][1] and spans[at][0] < b for a, b in copied)
            and (row := int(links[:, at].argmax())) is not None
            and int(links[row].argmax()) == at
            and into[row].isalpha()
        ]
        found.append(chance.sample(linked, min(len(terms), len(linked))))
    return found


def _told(
    translator: Translator, sources: Sequence[str], references: Sequence[str], terms: Terms
) -> dict[str, float]:
    start = time.process_time()
    said = [one.tgt for one in translator.translate(sources)]
    seconds = time.process_time() - start
    pairs = [(form, text) for some, text in zip(terms, said, strict=True) for form in some]
    exact = sum(_is_in(term.targets[0], text) for term, text in pairs)
    stems = sum(bool(Finder([Term(t.targets[0], ())]).find(text)) for t, text in pairs)
    return {
        "terms": len(pairs),
        "exact %": round(100 * exact / len(pairs), 1),
        "exact or stem %": round(100 * stems / len(pairs), 1),
        "BLEU": round(corpus_bleu(said, [list(references)]).score, 2),
        "CPU seconds": round(seconds, 1),
    }


def _is_in(form: str, text: str) -> bool:
    words, own = ([word.casefold() for word in match_tokens(some)] for some in (text, form))
    return any(words[at : at + len(own)] == own for at in range(len(words)))


if __name__ == "__main__":
    main()
