"""Robust kNN-MT (Jiang et al. 2022, "Towards Robust k-Nearest-Neighbor Machine Translation") beside
kNN with fixed weights and adaptive kNN, learned from some dev documents and measured on others.

    tmnmt keys --index INDEX --model MODEL --faiss auto
    python eval/robust_knn.py DEV --memory INDEX --model MODEL [--columns COLUMNS]
        [--documents FILE] [--unlike OTHER] [--segments 200] [--updates 2000] [--seed 1]

DEV is a memory file of documents that are kept out of the memory. Every second of them, in the
order of the sha256 of their ids, is learned from. Of the others `--segments` segments of 4 to 60
words are drawn by the seed: the loss of their references is told, and the BLEU of greedy
translations. Nothing is chosen on these. OTHER is a memory file of other text, of which as many are
measured: the memory is of the wrong kind there. "off" is the base, and "nearest" reads matches and
fragments as `tmnmt translate` does.

k neighbours of a step hold words y_i at distances d_i. Two small networks read them:

    calibration   c_i = W3 tanh(W4 [log p(y_i); log p'(y_i)])
                  p_kNN ~ sum of exp(-d_i / T + c_i) over those that hold y,  1 / T = sigmoid(t)
    weight        s, t = W1 tanh(W2 [d; r]),  s' = W5 [log p_1..8; log p(y_i); log p'(y_i)]
                  p = w p_kNN + (1 - w) p_model,  w = sigmoid(s - s')

    p(y_i)    what the model gives the word now      p'(y_i)   what it gave it at the neighbour
    r         how many different words the 1 ... k nearest hold      p_1..8   the eight likeliest

As in the paper, noise of 0.01 is added to keys while it learns, and where no neighbour holds the
word of the reference, the farthest becomes one that does, in the place of the step itself with
noise; both ever less often, by exp(-update / 1000). Here D is taken along the directions that
`tmnmt keys` learns, as in all kNN of this project, and p' is not computed anew with noise."""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tmnmt.config.options import TranslationOptions
from tmnmt.eval.measures.metrics import count, metrics
from tmnmt.eval.measures.significance import Scored
from tmnmt.formats import parse_columns, read_memory
from tmnmt.formats.splits import point_of
from tmnmt.index.base import BuiltIndex
from tmnmt.index.opening import open_memory
from tmnmt.keys.compute import longest
from tmnmt.keys.pair_keys import encode_pair, force_all
from tmnmt.layers.contract import Collated
from tmnmt.layers.mixing import mix_gold
from tmnmt.models.base import Backbone, shift
from tmnmt.models.folder import Model, load_model
from tmnmt.papers.interpolation import Interpolation
from tmnmt.papers.knn import KNN, AdaptiveKNN, KNNVoters, Votes, distinct, nearest
from tmnmt.papers.knn_training import own_pairs
from tmnmt.progress import Progress
from tmnmt.segments import Segment
from tmnmt.trained_layers.datastore import Datastore
from tmnmt.trained_layers.neighbours import NeighbourQuery
from tmnmt.training.data import Document
from tmnmt.translator import Translator
from tmnmt.vocab import BOS

K = 8
LIKELIEST = 8  # words that the weight is shown
HIDDEN, CALIBRATING = 32, 4  # units of the two networks, as in the paper
NOISE, DECAY = 0.01, 1000.0
FARTHEST, LEAST = 50.0, -10.0  # D and log p, beyond which all look alike
BATCH, LEARNING_RATE = 256, 1e-3  # subwords of an update
WORDS = range(4, 61)
BELOW = 0.5
TEMPERATURES, WEIGHTS = (2.0, 5.0, 10.0, 20.0), (0.02, 0.1, 0.2, 0.3, 0.5, 0.7)


class Seen(NamedTuple):
    """What model and neighbours say at n steps."""

    distances: Tensor  # (n, k)
    ids: Tensor  # (n, k)
    now: Tensor  # (n, k) log p(y_i)
    then: Tensor  # (n, k) log p'(y_i)
    likeliest: Tensor  # (n, 8) log p of the likeliest words

    @property
    def certain(self) -> Tensor:
        """(n, 2), as adaptive kNN is shown it."""
        return self.likeliest[:, :2].clamp_min(LEAST)


class Observed(NamedTuple):
    """The same along references, with what noise needs; the first five are those of `Seen`."""

    distances: Tensor
    ids: Tensor
    now: Tensor
    then: Tensor
    likeliest: Tensor
    gold: Tensor  # (n,) the words of the references
    log_p: Tensor  # (n,) what the model gives them
    keys: Tensor  # (n, k, l + d) c' and z' of the neighbours
    query: Tensor  # (n, l + d) c and s

    @property
    def seen(self) -> Seen:
        """What the networks are shown."""
        return Seen(*self[:5])


class RobustKNN(nn.Module):
    """Both networks."""

    def __init__(self) -> None:
        super().__init__()
        self.calibration = nn.Sequential(
            nn.Linear(2, CALIBRATING), nn.Tanh(), nn.Linear(CALIBRATING, 1)
        )
        self.of_neighbours = nn.Sequential(
            nn.Linear(2 * K, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2)
        )
        self.of_model = nn.Linear(2 * K + LIKELIEST, 1)

    def forward(self, seen: Seen) -> tuple[Tensor, Tensor]:
        """The weights (n, k) of the neighbours, and the logit (n,) of w."""
        real = seen.distances.isfinite()
        distances = seen.distances.clamp_max(FARTHEST)
        now, then, likeliest = (
            part.clamp_min(LEAST) for part in (seen.now, seen.then, seen.likeliest)
        )
        correction = self.calibration(torch.stack([then, now], -1))[..., 0]
        counts = distinct(seen.ids, real)
        of_neighbours, scale = self.of_neighbours(torch.cat([distances, counts], -1)).unbind(-1)
        of_model = self.of_model(torch.cat([likeliest, then, now], -1))[:, 0]
        energy = -distances * scale.sigmoid()[:, None] + correction
        weights = energy.masked_fill(~real, torch.finfo(energy.dtype).min).softmax(-1) * real
        return weights, torch.where(real.any(-1), of_neighbours - of_model, -torch.inf)


@dataclass(frozen=True)
class Looking:
    """A model, and the keys of a memory."""

    model: Model
    backbone: Backbone
    datastore: Datastore

    def seen(self, hidden: Tensor, context: Tensor, log_probs: Tensor) -> tuple[Seen, Tensor]:
        """What is found at states (n, d) and contexts (n, l) where the model says log p (n, V); and
        where the neighbours stand (n, k), -1 for none."""
        found = nearest(self.datastore, K, hidden, context)
        return self._seen(found, log_probs)[0], found.positions

    def observed(self, segments: Sequence[Segment]) -> Observed:
        """The same along the references of segments."""
        vocab, most = self.model.vocab, longest(self.model)
        pairs = [encode_pair((s.src, s.tgt), vocab, most) for s in segments]
        parts = []
        for states in force_all(self.backbone, pairs, "cpu"):
            previous = shift(states.ids[None], BOS)[0]
            log_probs = self.backbone.readout(previous, states.hiddens, states.contexts)
            log_probs = log_probs.float().log_softmax(-1)
            found = nearest(self.datastore, K, states.hiddens, states.contexts)
            seen, keys = self._seen(found, log_probs)
            log_p = log_probs.gather(1, states.ids[:, None])[:, 0]
            query = torch.cat([states.contexts, states.hiddens], -1).float()
            parts.append(Observed(*seen, states.ids, log_p, keys, query))
        return Observed(*map(torch.cat, zip(*parts, strict=True)))

    def distances(self, keys: Tensor, query: Tensor) -> Tensor:
        """D (n, k) of keys (n, k, l + d) and queries (n, l + d)."""
        directions = self.datastore.searches[0].directions
        size = self.datastore.searches[0].files.header.context_size
        flat = keys.flatten(0, 1).numpy()
        projected = torch.from_numpy(directions.project(flat[:, :size], flat[:, size:]))
        asked = torch.from_numpy(
            directions.project(query[:, :size].numpy(), query[:, size:].numpy())
        )
        return (projected.view(*keys.shape[:2], -1) - asked[:, None]).square().sum(-1)

    def _seen(self, found: Any, log_probs: Tensor) -> tuple[Seen, Tensor]:
        entries = self.datastore.entries(found.positions.numpy())
        contexts, hiddens = (torch.from_numpy(x) for x in (entries.contexts, entries.hiddens))
        previous = torch.from_numpy(np.where(entries.previous_ids < 0, BOS, entries.previous_ids))
        rows = (part.flatten(0, 1) for part in (previous, hiddens, contexts))
        then = self.backbone.readout(*rows).float().log_softmax(-1)
        then = then.gather(1, found.ids.reshape(-1, 1)).view(found.ids.shape)
        now = log_probs.gather(1, found.ids)
        likeliest = log_probs.topk(LIKELIEST, -1).values
        seen = Seen(found.distances, found.ids, now, then, likeliest)
        return seen, torch.cat([contexts, hiddens], -1)


def perturbed(looking: Looking, part: Observed, update: int) -> Seen:
    """What the networks are shown of some steps while they learn."""
    rate = math.exp(-update / DECAY)
    chosen = torch.rand(len(part.gold), 1) < rate
    lacks = ~(part.ids == part.gold[:, None]).any(-1, keepdim=True)
    replaced = (torch.rand(len(part.gold), 1) < rate) & lacks
    keys = part.keys + chosen[..., None] * NOISE * torch.randn_like(part.keys)
    place = (part.query + NOISE * torch.randn_like(part.query))[:, None]
    keys = torch.where(replaced[..., None], torch.cat([place, keys[:, :-1]], 1), keys)

    def moved(column: Tensor, first: Tensor) -> Tensor:
        return torch.where(replaced, torch.cat([first[:, None], column[:, :-1]], 1), column)

    found = part.distances.isfinite()
    distances = looking.distances(keys, part.query)
    distances = distances.masked_fill(~moved(found, torch.ones_like(found[:, 0])), torch.inf)
    distances, order = distances.sort(-1)
    ids, now, then = (
        moved(column, first).gather(1, order)
        for column, first in (
            (part.ids, part.gold),
            (part.now, part.log_p),
            (part.then, part.log_p),
        )
    )
    return Seen(distances, ids, now, then, part.likeliest)


def batches(count: int, updates: int, seed: int) -> Iterator[tuple[int, list[int]]]:
    """The numbers of the steps of every update."""
    chance, order = random.Random(seed), list[int]()
    for update in range(updates):
        if len(order) < BATCH:
            order = [*range(count)]
            chance.shuffle(order)
        yield update, [order.pop() for _ in range(min(BATCH, count))]


def learned(
    network: nn.Module, looking: Looking, train: Observed, options: argparse.Namespace
) -> None:
    """Trains a network, robust or adaptive, by as many updates."""
    torch.manual_seed(options.seed)
    optimiser = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    network.train()
    for update, rows in batches(len(train.gold), options.updates, options.seed):
        part = Observed(*(column[rows] for column in train))
        is_robust = isinstance(network, RobustKNN)
        seen = perturbed(looking, part, update) if is_robust else part.seen
        loss = -mixed(network, seen, part).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    network.eval()


def mixed(knn: nn.Module | KNN, seen: Seen, part: Observed) -> Tensor:
    """log p (n,) of the words of the references."""
    weights, logit = weighed(knn, seen)
    same = (seen.ids == part.gold[:, None]) & seen.distances.isfinite()
    return mix_gold(part.log_p, (weights * same).sum(-1), logit)


def weighed(knn: nn.Module | KNN, seen: Seen) -> tuple[Tensor, Tensor]:
    """The weights (n, k) of the neighbours, and the logit (n,) of what they count."""
    if isinstance(knn, RobustKNN):
        weights, logit = knn(seen)
    else:
        weights, logit = knn(seen.distances, seen.ids, seen.certain)
    return weights, logit.expand(len(weights))


def fixed(train: Observed) -> KNN:
    """The T and w that make the references most likely that others learn from."""
    ways = [KNN(weight, temperature) for weight in WEIGHTS for temperature in TEMPERATURES]
    return max(ways, key=lambda way: float(mixed(way, train.seen, train).mean()))


@dataclass(frozen=True)
class Voters(KNNVoters):
    """Neighbours whose words are mixed in by any of the three."""

    looking: Looking
    network: nn.Module | KNN

    def vote(self, hidden: Tensor, context: Tensor, log_probs: Tensor) -> Votes:
        """As the superclass."""
        seen, positions = self.looking.seen(hidden, context, log_probs)
        weights, logit = weighed(self.network, seen)
        return Votes(weights, logit, seen.ids, positions)


class Voting(Interpolation):
    """The layer that mixes them in."""

    def __init__(self, looking: Looking, network: nn.Module | KNN) -> None:
        super().__init__()
        self.voters = [(looking, network)]  # in a list, so that they are no submodules

    def ready(self, collated: Collated, backbone: Backbone, mode: str) -> KNNVoters | None:
        query = collated.search
        if not isinstance(query, NeighbourQuery):
            return None
        return Voters(query, KNN(0.5, 1.0), *self.voters[0])


def documents_of(segments: Iterable[Segment], chosen: set[str] | None) -> list[Document]:
    """The documents of some segments, of all or of the chosen ones, in their order."""
    documents = dict[str, list[Segment]]()
    for segment in segments:
        if chosen is None or segment.document in chosen:
            documents.setdefault(segment.document, []).append(segment)
    return [*documents.values()]


@dataclass(frozen=True)
class Translations:
    """What systems have made of some segments, by their names."""

    outputs: dict[str, list[str]]
    references: list[str]
    unlike: Any  # (segments,) bool: which have no match
    language: str

    def gains(self, name: str, baseline: str) -> list[str]:
        """BLEU, and what is gained over another system, of all and of the segments without a
        match; and chrF2++ of all with its gain."""
        cells = []
        texts = [self.outputs[baseline], self.outputs[name]]
        for metric in metrics(self.language):
            parts = {"BLEU": (slice(None), self.unlike), "chrF2++": (slice(None),)}
            counts = count(metric, [self.references], texts) if metric.name in parts else []
            for rows in parts.get(metric.name, ()):
                first, other = (Scored(metric, part[rows]) for part in counts)
                low, high = np.quantile(other.resampled - first.resampled, [0.025, 0.975])
                gain = f"{other.score - first.score:+.2f} ({low:+.2f} to {high:+.2f})"
                cells += [f"{other.score:.2f}", gain]
        return cells


@dataclass(frozen=True)
class Comparison:
    """The three beside the base and what ships.

    options: of the command. translator: reads neighbours in mode knn. index: the memory. train:
    what was learned from. ways: the three, by name."""

    options: argparse.Namespace
    translator: Translator
    index: BuiltIndex
    looking: Looking
    train: Observed
    ways: dict[str, nn.Module | KNN]

    def measure(self, documents: Sequence[Document]) -> None:
        """Prints a table of segments that are drawn from documents."""
        drawn = sample_of(documents, self.options)
        segments = [segment for document in drawn for segment in document]
        observations = observed(self.looking, drawn)
        found = self.index.search([segment.src for segment in segments], 1, BELOW)
        unlike = np.array([not matches for matches in found])
        self.looking.datastore.forget()
        outputs = {
            mode: translated(self.options, mode, self.index, segments)
            for mode in ("off", "nearest")
        }
        for name, network in self.ways.items():
            self.translator.layers.knn = Voting(self.looking, network)  # type: ignore[union-attr]
            texts = self.translator.translate([segment.src for segment in segments])
            outputs[name] = [translation.tgt for translation in texts]
        references = [segment.tgt for segment in segments]
        made = Translations(outputs, references, unlike, self.translator.tgt_lang)
        print(f"\n{len(segments)} segments, {unlike.sum()} without a match\n")
        print("| | nats, learned from | these | BLEU | | without a match | | chrF2++ | |")
        print("|---" * 9 + "|")
        for name in outputs:
            losses = [""] * 2
            if name != "nearest":
                way = self.ways.get(name)
                losses = [f"{loss_of(way, part):.4f}" for part in (self.train, observations)]
            print(f"| {' | '.join([name, *losses, *made.gains(name, 'off')])} |")
        *_, adaptive, robust = self.ways
        print(
            f"\n{robust} beside {adaptive}: {' | '.join(made.gains(robust, adaptive))}", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("dev", type=Path)
    parser.add_argument("--columns")
    parser.add_argument("--documents", type=Path)
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--unlike", type=Path)
    parser.add_argument("--segments", type=int, default=200)
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    settings = TranslationOptions(mode="knn", neighbours=K, beam=1, verbatim=0, cache=0)
    model = load_model(options.model)
    languages = model.config["src_lang"], model.config["tgt_lang"]
    index = open_memory(options.memory, *languages)
    translator = Translator.load(options.model, [index], settings)
    datastore = Datastore.open([index], model.states_hash, 1)
    looking = Looking(model, translator.pipeline.backbone, datastore)
    columns = parse_columns(options.columns) if options.columns else None
    chosen = options.documents and {*options.documents.read_text(encoding="utf-8").split()}
    documents = documents_of(read_memory(options.dev, *languages, columns=columns), chosen)
    documents.sort(key=lambda document: point_of(document[0].document))
    train = observed(looking, documents[::2])
    print(f"{len(documents[::2])} documents, {len(train.gold):,} subwords learned from")
    torch.manual_seed(options.seed)
    ways: dict[str, nn.Module | KNN] = {
        "kNN": fixed(train),
        "adaptive kNN": AdaptiveKNN(K, 5.0),
        "robust kNN": RobustKNN(),
    }
    print(ways["kNN"], flush=True)
    for network in ways.values():
        if isinstance(network, nn.Module):
            learned(network, looking, train, options)
    comparison = Comparison(options, translator, index, looking, train, ways)
    comparison.measure(documents[1::2])
    if options.unlike is not None:
        comparison.measure(documents_of(read_memory(options.unlike, *languages), None))


@torch.no_grad()
def loss_of(way: nn.Module | KNN | None, part: Observed) -> float:
    """Nats a subword; of the model alone for None."""
    return -float((part.log_p if way is None else mixed(way, part.seen, part)).mean())


def observed(looking: Looking, documents: Sequence[Document]) -> Observed:
    """What is seen along all references of documents, each as if it were in no memory."""
    parts = []
    excluded = own_pairs(looking.datastore, documents)
    with Progress("looking up", "documents", len(documents)) as progress, torch.no_grad():
        for document, numbers in zip(documents, excluded, strict=True):
            looking.datastore.forget(numbers)
            parts.append(looking.observed(document))
            progress.advance()
    return Observed(*map(torch.cat, zip(*parts, strict=True)))


def sample_of(documents: Sequence[Document], options: argparse.Namespace) -> list[Document]:
    """The segments that the seed draws from documents, each source once, in their documents."""
    by_source = {
        segment.src: segment
        for document in documents
        for segment in document
        if len(segment.src.split()) in WORDS and segment.src != segment.tgt
    }
    drawn = [*by_source.values()]
    random.Random(options.seed).shuffle(drawn)
    return documents_of(drawn[: options.segments], None)


def translated(
    options: argparse.Namespace, mode: str, index: BuiltIndex, segments: Sequence[Segment]
) -> list[str]:
    """What is made of segments in a mode without neighbours."""
    settings = TranslationOptions(mode=mode, neighbours=0, beam=1, verbatim=0, cache=0)
    plain = Translator.load(options.model, [index], settings)
    return [translation.tgt for translation in plain.translate([s.src for s in segments])]


if __name__ == "__main__":
    main()
