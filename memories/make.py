"""Makes the memories that ship, and the documents kept out of them, from the data folder given as
the argument.

    python memories/make.py DATA [--demo DOCUMENT] [--whole-law FILE.tmx.gz] [--law-dev FILE.tsv.gz]

DATA holds jrc-acquis/, canadian-law/ and software-docs/ as described in memories/README.md. Which
documents are dev and test is read from eval/splits/. A memory has whole documents, less every pair
whose source (as `tmnmt.text.normalise` sees it) also stands in a dev or test document of a corpus
of its languages, and less those that mispaired.py finds. The same data give the same files, byte
for byte."""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mispaired import RULES, mispaired

from tmnmt.formats import Columns, read_memory, write_tmx, write_tsv
from tmnmt.formats.atomic import writing
from tmnmt.segments import Segment
from tmnmt.text import normalise

HERE = Path(__file__).resolve().parent
SPLITS = HERE.parent / "eval" / "splits"
LAW_SEGMENTS = 10_000
# The longest statutes would fill the sample alone.
LAW_LONGEST = 1_500
DEMO = "jrc32002L0085"


@dataclass(frozen=True)
class Corpus:
    """One corpus in memory, and the ids of its dev and test documents."""

    name: str
    segments: list[Segment]
    dev: frozenset[str]
    test: frozenset[str]
    tgt_lang: str = "fr"

    def held(self) -> Iterator[Segment]:
        return (segment for segment in self.segments if segment.document in self.dev | self.test)


def read_jrc(data: Path) -> Corpus:
    columns = Columns(src="en", tgt="fr", document="celex_doc", position="en_par")
    reader = read_memory(
        data / "jrc-acquis" / "jrc-acquis.en-fr-de-es.tsv.gz", "en", "fr", columns=columns
    )
    segments = [replace(segment, origin="JRC-Acquis 3.0") for segment in reader]
    return Corpus("jrc-acquis", segments, split("jrc-acquis.dev"), split("jrc-acquis.test"))


def read_law(data: Path) -> Corpus:
    """The running text of the statutes: headings, marginal notes and table cells are left out."""
    # The third column is the XML tag; it is read as the origin only to be filtered on.
    columns = Columns(src=5, tgt=6, document=1, position=2, origin=3)
    segments = [
        replace(segment, origin=f"Justice Laws of Canada, {part}")
        for part in ("acts", "regs")
        for segment in read_memory(
            data / "canadian-law" / f"{part}.tsv.gz", "en", "fr", columns=columns
        )
        if segment.origin == "Text"
    ]
    return Corpus("law", segments, split("law.dev"), split("law.test"))


def read_python_docs(data: Path) -> Corpus:
    """The messages of a catalogue stand beside each other, so nothing here is paired wrongly by its
    place."""
    reader = read_memory(
        data / "software-docs" / "python-docs.en-pt.tsv.gz",
        "en",
        "pt",
        columns=Columns(src="en", tgt="pt", document="file", position="idx"),
    )
    segments = [replace(segment, origin="Python documentation") for segment in reader]
    dev, test = split("python-docs.dev"), split("python-docs.test")
    return Corpus("python-docs", segments, dev, test, "pt")


def split(name: str) -> frozenset[str]:
    return frozenset((SPLITS / f"{name}.txt").read_text(encoding="utf-8").split())


def law_sample(law: Corpus) -> list[Segment]:
    """Whole documents in the order of the sha256 of their ids, until there are 10,000 segments."""
    documents: dict[str, list[Segment]] = {}
    for segment in rest(law):
        documents.setdefault(segment.document, []).append(segment)
    sample: list[Segment] = []
    for document in sorted(documents, key=lambda name: hashlib.sha256(name.encode()).digest()):
        if len(sample) < LAW_SEGMENTS and len(documents[document]) <= LAW_LONGEST:
            sample += documents[document]
    return sample


def held_sources(*corpora: Corpus) -> set[str]:
    """The sources that stand in a dev or test document of any of these."""
    return {normalise(segment.src) for corpus in corpora for segment in corpus.held()}


def rest(corpus: Corpus) -> list[Segment]:
    """What is in neither dev nor test."""
    return [
        segment for segment in corpus.segments if segment.document not in corpus.dev | corpus.test
    ]


def without(segments: Iterable[Segment], sources: set[str]) -> list[Segment]:
    return [segment for segment in segments if normalise(segment.src) not in sources]


def row(file: str, segments: list[Segment], dropped: list[int] | None = None) -> str:
    documents = len({segment.document for segment in segments})
    words = sum(len(segment.tgt.split()) for segment in segments)
    cells = [f"`{file}`", str(documents), f"{len(segments):,}", f"{words:,}"]
    cells += [f"{count:,}" for count in dropped] if dropped else [""] * (1 + len(RULES))
    return f"| {' | '.join(cells)} |"


def write_memory(
    file: str, segments: list[Segment], sources: set[str], tgt_lang: str = "fr"
) -> str:
    others = without(segments, sources)
    found = mispaired(segments)
    wrong = set().union(*found.values())
    paired = [segment for segment in others if (segment.document, segment.position) not in wrong]
    write_tmx(HERE / file, paired, "en", tgt_lang)
    by_rule = [
        sum((segment.document, segment.position) in places for segment in others)
        for places in found.values()
    ]
    return row(file, paired, [len(segments) - len(others), *by_rule])


def write_held_out(file: str, corpus: Corpus, documents: frozenset[str]) -> str:
    segments = [segment for segment in corpus.segments if segment.document in documents]
    write_tsv(HERE / file, segments)
    return row(file, segments)


def write_demo(document: str, corpus: Corpus) -> str:
    segments = [segment for segment in corpus.segments if segment.document == document]
    if document not in corpus.test:
        raise SystemExit(
            f"{document} is no test document of {corpus.name}; allowed: "
            f"{', '.join(sorted(corpus.test))}"
        )
    for lang, texts in (("en", [s.src for s in segments]), ("fr", [s.tgt for s in segments])):
        with writing(HERE / "held-out" / f"{document}.{lang}.txt") as file:
            file.writelines(f"{text}\n" for text in texts)
    return row(f"held-out/{document}.en.txt, .fr.txt", segments)


def write_counts(rows: list[str]) -> None:
    table = [
        f"| file | documents | segments | target words | pairs dropped | {' | '.join(RULES)} |",
        "|---|---|---|---|---|" + "---|" * len(RULES),
        *rows,
    ]
    readme = HERE / "README.md"
    marked = re.compile(r"(<!-- counts -->\n).*?(<!-- /counts -->)", re.DOTALL)
    text = readme.read_text(encoding="utf-8")
    readme.write_text(
        marked.sub(lambda m: m[1] + "\n".join(table) + "\n" + m[2], text), encoding="utf-8"
    )
    print("\n".join(table))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder with the corpora")
    parser.add_argument(
        "--demo", default=DEMO, help="JRC-Acquis test document for the demo (default: %(default)s)"
    )
    parser.add_argument(
        "--whole-law", type=Path, help="only write this memory of all law documents, for measuring"
    )
    parser.add_argument(
        "--law-dev", type=Path, help="only write the dev documents of law, for choosing on them"
    )
    options = parser.parse_args()
    jrc, law = read_jrc(options.data), read_law(options.data)
    sources = held_sources(jrc, law)
    if options.whole_law:
        print(write_memory(str(options.whole_law.resolve()), rest(law), sources))
    if options.law_dev:
        print(write_held_out(str(options.law_dev.resolve()), law, law.dev))
    if options.whole_law or options.law_dev:
        return
    docs = read_python_docs(options.data)
    (HERE / "held-out").mkdir(exist_ok=True)
    write_counts(
        [
            write_memory("jrc-acquis.en-fr.tmx.gz", rest(jrc), sources),
            write_memory("canadian-law.en-fr.tmx.gz", law_sample(law), sources),
            write_held_out("held-out/jrc-acquis.test.en-fr.tsv.gz", jrc, jrc.test),
            write_held_out("held-out/law.test.en-fr.tsv.gz", law, law.test),
            write_demo(options.demo, jrc),
            write_memory("python-docs.en-pt.tmx.gz", rest(docs), held_sources(docs), "pt"),
            write_held_out("held-out/python-docs.test.en-pt.tsv.gz", docs, docs.test),
        ]
    )


if __name__ == "__main__":
    main()
