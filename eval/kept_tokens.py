"""What no translation may change: how much of it comes through, with which model.

python eval/kept_tokens.py tokens --model models/law.en-fr [--tokens FILE] [--output FILE.json]
python eval/kept_tokens.py pages --model MODEL --tsv python-docs.en-pt.tsv.gz [--sentences 300]
python eval/kept_tokens.py plain --model MODEL --tsv memories/held-out/law.test.en-fr.tsv.gz
python eval/kept_tokens.py rule --tsv python-docs.en-pt.tsv.gz

tokens: every token of a list stands in "The permit of X is valid for two years.", in four formats.
It comes through where the translation has it as it is, or as the target's typography writes it
(the columns
of its language).
pages: sentences of pages of Python's documentation that are drawn by a seed. Told is how many have
all roles (:func:`open`) and literals (``None``) of their source, no more and no fewer; with
--memory, beside the pairs of all other pages.
plain: BLEU of plain sentences, and how many have a mask.
rule: of what is masked in the sources of a file, how much stands in the translations of people."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, unescape

import torch
from sacrebleu import corpus_bleu

from tmnmt.batch.filling import agree_on_languages, translate_file
from tmnmt.codes.form import BY_FORM, Copied
from tmnmt.codes.placeholders import ALL_FINDERS
from tmnmt.config.options import TranslationOptions
from tmnmt.files.opening import open_translatable
from tmnmt.formats import read_memories
from tmnmt.index import build
from tmnmt.segments import Segment
from tmnmt.translator import Translator

FRAME = "The permit of {} is valid for two years."
SEED = 7
PAGES = 40  # pages that are kept out
ROLE = re.compile(r"(?::[\w+.-]+){1,2}:`[^`]+`|``[^`]+``|(?<![\w`:])`[^`<]+`_{0,2}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["tokens", "pages", "plain", "rule"])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--tokens", type=Path, default=Path("tests/data/kept-tokens.tsv"))
    parser.add_argument("--tsv", type=Path)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--mode")
    parser.add_argument("--memory", action="store_true", help="of pages: all other pages")
    parser.add_argument("--output", type=Path, help="the figures as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    figures = {"tokens": tokens, "pages": pages, "plain": plain, "rule": rule}[options.what](
        options
    )
    print(json.dumps(figures, indent=1, ensure_ascii=False))
    if options.output:
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        options.output.write_text(f"{text}\n", encoding="utf-8")


# --- tokens


def tokens(options: argparse.Namespace) -> dict[str, object]:
    translator = Translator.load(options.model)
    lang = translator.tgt_lang
    with options.tokens.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    forms = {row["token"]: (row.get(lang) or "").split("|") for row in rows}
    table = {
        kind: {
            word: outcome(word, target, forms[word])
            for word, target in zip(forms, translated(translator, kind, list(forms)), strict=True)
        }
        for kind in ("txt", *FILES)
    }
    kept = {
        kind: Counter(
            "as it is" if one == "" else "in its form" if one == "~" else "changed"
            for one in outcomes.values()
        )
        for kind, outcomes in table.items()
    }
    changed = {
        kind: {word: one for word, one in outcomes.items() if one not in ("", "~")}
        for kind, outcomes in table.items()
    }
    return {"model": options.model.name, "tokens": len(forms), "kept": kept, "changed": changed}


def outcome(word: str, target: str, forms: Iterable[str]) -> str:
    """Nothing where the target has the token as it is, "~" where it has it in a form that is right,
    else the target."""
    if alone(word, target) and has_no_new_sign(target):
        return ""
    return "~" if any(form and alone(form, spaced(target)) for form in forms) else target


def has_no_new_sign(target: str) -> bool:
    return not re.search("[\u200b\ufffd]", target)


def spaced(text: str) -> str:
    return re.sub("[\u00a0\u202f\u2009]", " ", text)


def alone(word: str, text: str) -> bool:
    """Whether a text has a word that is no part of a longer one."""
    before = r"(?<!\w)" if word[0].isalnum() else ""
    behind = r"(?!\w)" if word[-1].isalnum() else ""
    return len(re.findall(before + re.escape(word) + behind, text)) == 1


def translated(translator: Translator, kind: str, words: Sequence[str]) -> list[str]:
    """The translations of the frame with every word, through a file of this kind."""
    texts = [FRAME.format(word) for word in words]
    if kind == "txt":
        return [one.tgt for one in translator.translate(texts)]
    written, read = FILES[kind]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"texts.{kind}"
        path.write_text(written(texts), encoding="utf-8")
        file = open_translatable(path)
        agree_on_languages(file, translator.src_lang, translator.tgt_lang)
        fillings = [one.filling for one in translate_file(file, "nothing", translator.stream)]
        to = Path(folder) / f"target.{kind}"
        with to.open("wb") as stream:
            file.write(stream, fillings)
        return read(to.read_text(encoding="utf-8"))


def json_of(texts: Sequence[str]) -> str:
    return json.dumps({f"k{number}": text for number, text in enumerate(texts)}, ensure_ascii=False)


def of_json(text: str) -> list[str]:
    return list(json.loads(text).values())


def po_of(texts: Sequence[str]) -> str:
    import polib

    file = polib.POFile()
    file.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    file.extend(polib.POEntry(msgid=text, msgstr="") for text in texts)
    return str(file)


def of_po(text: str) -> list[str]:
    import polib

    return [entry.msgstr for entry in polib.pofile(text)]


def xliff_of(texts: Sequence[str]) -> str:
    units = "".join(
        f'<trans-unit id="{number}"><source>{escape(text)}</source></trans-unit>\n'
        for number, text in enumerate(texts)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" '
        'xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" datatype="plaintext" '
        f'source-language="en"><body>\n{units}</body></file></xliff>\n'
    )


def of_xliff(text: str) -> list[str]:
    return [unescape(one) for one in re.findall(r"<target[^>]*>(.*?)</target>", text, re.DOTALL)]


FILES = {
    "json": (json_of, of_json),
    "po": (po_of, of_po),
    "xlf": (xliff_of, of_xliff),
}


# --- pages


def pages(options: argparse.Namespace) -> dict[str, object]:
    rows = rows_of(options.tsv)
    names = sorted({row[0] for row in rows})
    kept_out = set(random.Random(SEED).sample(names, PAGES))
    test = [(src, tgt) for page, _, src, tgt in rows if page in kept_out and ROLE.search(src)]
    test = random.Random(SEED).sample(test, min(options.sentences, len(test)))
    sources = {src for src, _ in test}
    memory = [
        Segment(src, tgt)
        for page, _, src, tgt in rows
        if page not in kept_out and src not in sources
    ]
    with tempfile.TemporaryDirectory() as folder:
        places = []
        if options.memory:
            build(Path(folder) / "index", memory, "en", "pt")
            places = [Path(folder) / "index"]
        translator = Translator.load(
            options.model, places, TranslationOptions(mode=mode_of(options))
        )
        targets = [one.tgt for one in translator.translate([src for src, _ in test])]
    lost = [
        (src, tgt)
        for (src, _), tgt in zip(test, targets, strict=True)
        if Counter(ROLE.findall(src)) != Counter(ROLE.findall(tgt))
    ]
    score = corpus_bleu(targets, [[ref for _, ref in test]]).score
    people = sum(Counter(ROLE.findall(src)) == Counter(ROLE.findall(ref)) for src, ref in test)
    return {
        "model": options.model.name,
        "mode": options.mode,
        "memory": len(memory) if options.memory else 0,
        "sentences": len(test),
        "with all": len(test) - len(lost),
        "people": people,
        "BLEU": round(score, 2),
        "lost": lost[:40],
    }


def mode_of(options: argparse.Namespace) -> str | None:
    return options.mode or None


def rows_of(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n").split("\t") for line in lines]


# --- plain sentences, and the rule itself


def pairs_of(path: Path) -> list[tuple[str, str]]:
    if "python-docs" in path.name:
        return [(row[2], row[3]) for row in rows_of(path)]
    if "php" in path.name:
        return [(row[4], row[5]) for row in rows_of(path)]
    return [(pair.src, pair.tgt) for pair in read_memories([path], "en", "fr")]


def plain(options: argparse.Namespace) -> dict[str, object]:
    pairs = random.Random(SEED).sample(pairs_of(options.tsv), options.sentences)
    translator = Translator.load(options.model)
    made = translator.translate([src for src, _ in pairs])
    masked = [[text for text in masks_of(src)] for src, _ in pairs]
    return {
        "model": options.model.name,
        "sentences": len(pairs),
        "with masks": sum(map(bool, masked)),
        "BLEU": round(corpus_bleu([one.tgt for one in made], [[tgt for _, tgt in pairs]]).score, 2),
    }


def masks_of(text: str) -> list[str]:
    return Copied((*ALL_FINDERS, *BY_FORM.finders)).tokens(text)


def rule(options: argparse.Namespace) -> dict[str, object]:
    times, kept = Counter[str](), Counter[str]()
    for src, tgt in pairs_of(options.tsv):
        for text in masks_of(src):
            times[text] += 1
            kept[text] += text in tgt
    changed = {text: (count - kept[text], count) for text, count in times.items()}
    worst = sorted(changed.items(), key=lambda one: -one[1][0])[:150]
    return {"masks": times.total(), "as people": kept.total(), "worst": dict(worst)}


if __name__ == "__main__":
    main()
