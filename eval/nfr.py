"""Neural fuzzy repair (NFR, Bulté and Tezcan 2019): another way to use a memory, as a reference.
The best match's translation is appended to the source, and the plain model learns what to do with
it.

    TMNMT_DATA=DATA python eval/nfr.py train models/law-transformer.en-fr.toml \\
        models/law-transformer.en-fr --out FOLDER
    NFR=FOLDER tmnmt train eval/nfr.toml
    python eval/nfr.py append memories/held-out/law.test.en-fr.tsv.gz --memory INDEX --out FILE
    tmnmt translate --model runs/nfr FILE --output FILE.fr

`train` writes FOLDER/pairs.tsv, with the document ids of dev in dev.txt: every training pair of the
config as it is, and once more with its best match from other documents where there is one
(section 3.3 of the paper). A pair of the dev documents is written once, with its match where it has
one. `append` writes the segments of a test file, one a line, with their matches."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tmnmt.formats import read_memory
from tmnmt.index import MemoryIndex, build
from tmnmt.models.folder import load_model
from tmnmt.progress import Progress
from tmnmt.segments import Segment
from tmnmt.training.config import DataConfig, load_config
from tmnmt.training.data import encode_pairs, load_corpora
from tmnmt.training.retrieve import RetrievedPair, retrieve
from tmnmt.vocab import Vocabulary

BREAK = "@@@"  # the paper's, between source and match
THRESHOLD = 0.5  # fuzzy score, the paper's best


def main() -> None:
    options = arguments()
    options.work(options)


def train(options: argparse.Namespace) -> None:
    config, out = load_config(options.config), options.out
    corpora = load_corpora(config.data)
    vocab = load_model(options.base).vocab
    languages = (config.data.src_lang, config.data.tgt_lang)
    out.mkdir(parents=True, exist_ok=True)
    learned = usable((s for document in corpora.train for s in document), vocab, config.data)
    dev = [s for document in corpora.dev for s in document]
    with Progress("indexing", "segments", len(learned)) as progress:
        build(out / "index", learned, *languages, force=True, progress=progress.advance)
    with (out / "pairs.tsv").open("w", encoding="utf-8") as file:
        for name, segments in (("train", learned), ("dev", dev)):
            with Progress(f"matches for {name}", "segments", len(segments)) as progress:
                found = retrieve(
                    lambda: MemoryIndex.open(out / "index"),
                    segments,
                    1,
                    THRESHOLD,
                    out / f"{name}.jsonl.gz",
                    progress.advance,
                    whole_documents=True,
                )
            for segment, pairs in zip(segments, found, strict=True):
                if name == "train" or not pairs:
                    print(segment.document, segment.src, segment.tgt, sep="\t", file=file)
                if pairs:
                    src = with_match(segment.src, pairs)
                    print(segment.document, src, segment.tgt, sep="\t", file=file)
            matched = sum(map(bool, found))
            print(f"{name}: {len(segments):,} pairs, {matched:,} of them with a match")
    ids = sorted({segment.document for segment in dev})
    (out / "dev.txt").write_text("".join(f"{document}\n" for document in ids), encoding="utf-8")


def usable(segments: Iterable[Segment], vocab: Vocabulary, config: DataConfig) -> list[Segment]:
    """Each pair once, none too long or of odd ratio, as the base was trained."""
    distinct = {(s.src, s.tgt): s for s in segments}
    return [s for s in distinct.values() if len(encode_pairs([s], vocab, config, Counter()))]


def append(options: argparse.Namespace) -> None:
    segments = list(read_memory(options.test, "en", "fr"))
    with (
        MemoryIndex.open(options.memory) as index,
        options.out.open("w", encoding="utf-8") as file,
    ):
        answers = index.search([segment.src for segment in segments], 1, THRESHOLD)
        for segment, matches in zip(segments, answers, strict=True):
            pairs = [RetrievedPair(m.segment.src, m.segment.tgt, m.score) for m in matches]
            print(with_match(segment.src, pairs), file=file)
    print(f"{len(segments):,} segments, {sum(map(bool, answers)):,} of them with a match")


def with_match(src: str, pairs: Sequence[RetrievedPair]) -> str:
    return f"{src} {BREAK} {pairs[0].tgt}" if pairs else src


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    works = parser.add_subparsers(required=True)
    of_train = works.add_parser("train", help="the pairs that a model learns from")
    of_train.add_argument("config", type=Path, help="of the base's training")
    of_train.add_argument("base", type=Path, help="model folder: its vocabulary counts subwords")
    of_train.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    of_train.set_defaults(work=train)
    of_append = works.add_parser("append", help="a test file's segments with their matches")
    of_append.add_argument("test", type=Path)
    of_append.add_argument("--memory", type=Path, required=True, metavar="INDEX")
    of_append.add_argument("--out", type=Path, required=True, metavar="FILE")
    of_append.set_defaults(work=append)
    return parser.parse_args()


if __name__ == "__main__":
    main()
