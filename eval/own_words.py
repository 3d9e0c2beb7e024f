"""Does a session cache of the model's own words help (Tu et al. 2018)? Translates whole documents,
also with caches that are written something else.

    python eval/own_words.py TEST.tsv OUT MODEL... [--split FILE] [--documents N] [--segments N]
                             [--ways WAY...]

TEST.tsv has columns document, number, source and target, packed or not; --split: a file that names
documents of it, one a line. Every MODEL is a folder with a session cache, as
`eval/memory_training.py` makes them. OUT gets `reference.txt`, `source.txt`, `base.txt` without a
cache, and `MODEL.WAY.txt` for every model and way, a blank line between documents. `tmnmt evaluate
score` compares them. What is there already is not made again.

own        what the model has said in the document, as in the paper
other      what it has said in the next document, at the same place
whole      what it has said in the document, a slot for every word: the mean of its subwords. Not
           for caches that read their words, shallow ones and those with `words`
nothing    the cache stays empty: the base as it is in that folder
noise      directions drawn at random in place of contexts and states, as long as these
constant   one direction for all contexts, one for all states, as long as these

Where --ways does not name them, all but `whole` and `nothing`.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tmnmt.durable import write
from tmnmt.engine.loading import load_layers
from tmnmt.engine.pipeline import Pipeline
from tmnmt.engine.settings import Settings
from tmnmt.errors import TmnmtError
from tmnmt.formats import parse_columns, read_memory
from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.contract import Histories
from tmnmt.models.folder import Model, load_model
from tmnmt.progress import Progress
from tmnmt.trained_layers.cache import CacheContents
from tmnmt.translator import Translator
from tmnmt.vocab import EOS, PAD

WAYS = ("own", "other", "whole", "nothing", "noise", "constant")
USUAL = ("own", "other", "noise", "constant")  # those that every cache can be asked for
SPACE = "▁"  # how the first subword of a word begins
Said = tuple[Tensor, Tensor, Tensor]  # contexts (T, l), states (T, d), words (T,) of a sentence


@dataclass(frozen=True)
class _Written(Pipeline):
    """A pipeline that asks what is to be written into a cache, and tells of every new one."""

    instead: Callable[..., Said | None]
    opened: Callable[[CacheContents], None]

    def new_histories(self) -> Histories:
        histories = super().new_histories()
        if "cache" in histories:
            self.opened(histories["cache"])
        return histories

    def write_keys(self, histories: Histories, keys: PairKeys) -> None:
        written = self.instead(histories["cache"], keys.contexts, keys.hiddens, keys.ids)
        if written is not None:
            super().write_keys(histories, PairKeys(*written))


class Writing(Translator):
    """Writes into the caches what `way` says, and keeps what was said in every document."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        fields = vars(self.pipeline)
        self.pipeline = _Written(**fields, instead=self._instead, opened=self._opened)

    def begin(self, way: str, of_others: list[list[Said]]) -> None:
        self.way, self.of_others = way, of_others
        self.said: list[list[Said]] = []
        self.kept: list[CacheContents] = []  # in the order of the documents
        self.words: dict[tuple[int, ...], int] = {}  # of several subwords, with their numbers
        self.random = torch.Generator().manual_seed(1)

    def _opened(self, cache: CacheContents) -> None:
        self.kept.append(cache)
        self.said.append([])

    def _instead(
        self, cache: CacheContents, contexts: Tensor, hiddens: Tensor, ids: Tensor
    ) -> Said | None:
        """What is written in place of what was said; None: nothing."""
        document = next(at for at, other in enumerate(self.kept) if other is cache)
        said = self.said[document]
        said.append((contexts, hiddens, ids))
        if self.way == "other":
            others = self.of_others[(document + 1) % len(self.of_others)]
            if len(said) > len(others):
                return None
            contexts, hiddens, ids = others[len(said) - 1]
        elif self.way == "whole":
            contexts, hiddens, ids = self._of_words(contexts, hiddens, ids)
        elif self.way == "nothing":
            return None
        elif self.way == "noise":
            contexts, hiddens = (self._turned(x, len(x)) for x in (contexts, hiddens))
        elif self.way == "constant":
            contexts, hiddens = (self._turned(x, 1) for x in (contexts, hiddens))
        return contexts, hiddens, ids

    def _of_words(self, contexts: Tensor, hiddens: Tensor, ids: Tensor) -> Said:
        """One position for every word: the mean of those of its subwords. A word of several is
        numbered behind the vocabulary, so a cache that reads its words cannot be written so."""
        spoken = ids[(ids != EOS) & (ids != PAD)].tolist()
        if not spoken:
            return contexts, hiddens, ids
        begins = [i for i, id in enumerate(spoken) if self.vocab.piece(id).startswith(SPACE)]
        ends = [*(i for i in begins if i), len(spoken)]
        words = [tuple(spoken[at:end]) for at, end in pairwise([0, *ends])]
        contexts, hiddens = (
            torch.stack([x[at:end].mean(0) for at, end in pairwise([0, *ends])])
            for x in (contexts, hiddens)
        )
        return contexts, hiddens, torch.tensor(list(map(self._number, words)), device=ids.device)

    def _number(self, word: tuple[int, ...]) -> int:
        if len(word) == 1:
            return word[0]
        return self.words.setdefault(word, len(self.vocab) + len(self.words))

    def _turned(self, x: Tensor, directions: int) -> Tensor:
        """So many directions at random, each as long as what stands there in x (T, ...)."""
        if directions == 1:
            self.random.manual_seed(2)
        direction = torch.randn(directions, x.shape[1], generator=self.random)
        return direction / direction.norm(dim=1, keepdim=True) * x.norm(dim=1, keepdim=True)


def main() -> None:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("test", type=Path)
    asked.add_argument("out", type=Path)
    asked.add_argument("models", type=Path, nargs="+")
    asked.add_argument("--split", type=Path)
    asked.add_argument("--documents", type=int, help="the first N of them")
    asked.add_argument("--segments", type=int, help="the first N of each")
    asked.add_argument("--ways", nargs="+", choices=WAYS, default=list(USUAL))
    asked.add_argument("--batch", type=int, default=32)
    chosen = asked.parse_args()
    torch.set_num_threads(1)
    chosen.out.mkdir(parents=True, exist_ok=True)
    loaded = load_model(chosen.models[0])
    documents = read(chosen.test, chosen.split, loaded)[: chosen.documents]
    documents = [document[: chosen.segments] for document in documents]
    for name, side in (("source", 0), ("reference", 1)):
        put(chosen.out / f"{name}.txt", [[pair[side] for pair in one] for one in documents])
    sources = [[src for src, _ in document] for document in documents]
    if not (chosen.out / "base.txt").exists():
        settings = Settings(batch=chosen.batch)
        translated(Writing(loaded, None, [], settings), "own", [], sources, chosen.out / "base.txt")
    for folder in chosen.models:
        of_model(folder, chosen.ways, sources, chosen.batch, chosen.out)


def of_model(
    folder: Path, ways: Sequence[str], sources: list[list[str]], batch: int, out: Path
) -> None:
    loaded = load_model(folder)
    layers = load_layers(loaded, "cpu")
    if layers is None or layers.cache is None:
        raise SystemExit(f"{folder}: it has no session cache")
    settings = Settings(batch=batch, cache=layers.cache.kind.size, remember="own")
    translator = Writing(loaded, layers, [], settings)
    if "whole" in ways and (layers.cache.kind.fusion == "shallow" or layers.cache.kind.words):
        raise SystemExit(f"{folder}: its cache reads words, and whole words have no numbers")
    said: list[list[Said]] = []
    for way in sorted({"own", *ways}, key=WAYS.index):
        path = out / f"{folder.name}.{way}.txt"
        needed = (
            way == "own" and "other" in ways and not (out / f"{folder.name}.other.txt").exists()
        )
        if needed or not path.exists():
            translated(translator, way, said, sources, path)
        if way == "own" and needed:
            said = translator.said


def translated(
    translator: Writing, way: str, said: list[list[Said]], sources: list[list[str]], path: Path
) -> None:
    """Documents side by side, each with a cache of its own."""
    translator.begin(way, said)
    with Progress(path.stem, "segments", total=sum(map(len, sources))) as progress:
        # documents go side by side, but come one after another
        done = translator.stream(sources, finished=lambda: progress.advance(1))
        lines = [translation.tgt for translation in done]
    texts = iter(lines)
    put(path, [[next(texts) for _ in document] for document in sources])


def read(test: Path, split: Path | None, model: Model) -> list[list[tuple[str, str]]]:
    """The documents, in the order of the file."""
    languages = model.config["src_lang"], model.config["tgt_lang"]
    columns = parse_columns("doc=1,idx=2,src=3,tgt=4")
    names = set(split.read_text(encoding="utf-8").split()) if split is not None else None
    segments = read_memory(test, *languages, columns=columns)
    documents = defaultdict[str, list[tuple[str, str]]](list)
    for name, group in groupby(segments, key=lambda segment: segment.document):
        if names is None or name in names:
            documents[name] += [(segment.src, segment.tgt) for segment in group]
    return list(documents.values())


def put(path: Path, documents: list[list[str]]) -> None:
    text = "\n\n".join("\n".join(document) for document in documents) + "\n"
    write(path, text.encode())


if __name__ == "__main__":
    try:
        main()
    except (TmnmtError, OSError) as error:
        raise SystemExit(f"own_words: {error}") from error
