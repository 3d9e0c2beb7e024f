"""kNN interpolation: what the words of the nearest keys weigh, and how much they count beside the
model's own.

    distance    D of [c; s] and [c'; z'], each of length 1 (`trained_layers/key_directions.py`)
    votes       p_r(y) ~ sum of exp(-D / T) over those of the r nearest that hold y
    vanilla     p(y) = w p_k(y) + (1 - w) p_model(y), w fixed
                Khandelwal et al. 2021, eq. 3, 4
    adaptive    p(y) = sum of p(r) p_r(y) over r = 0, 1, 2, 4, ..., k, p_0 = p_model
                Zheng et al. 2021

    R: rows    k: neighbours of a row, nearest first; an infinite distance where there are fewer
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from tmnmt.durable import replacing
from tmnmt.engine.settings import Settings
from tmnmt.errors import ModelError, UsageError, short_repr
from tmnmt.layers.view import first_of
from tmnmt.models.folder import UNREADABLE, Model, reason_of
from tmnmt.models.weights import fill
from tmnmt.trained_layers.datastore import Datastore
from tmnmt.trained_layers.neighbours import NeighbourQuery

FORMAT = "2"  # of the file of an adaptive kNN
MOST_K = 1024
WIDTH = 32  # hidden units, as in the paper
DROPOUT = 0.1
START = 3.0  # at first the neighbours together have a weight of sigmoid(-3) = 0.05
# T: farther keys weigh nothing, and are shown to the network as if they stood there
FARTHEST = 10.0
SURE = 0.95  # a greatest probability from which on neighbours are not looked for: it saves time
LEAST_CERTAIN = -10.0  # log p: what is less likely is shown to the network as if it were so


class Nearest(NamedTuple):
    """The keys of the least distance D."""

    distances: Tensor  # (R, k) float32
    ids: Tensor  # (R, k) int64 their words
    positions: Tensor  # (R, k) int64 where they stand in the datastore, -1: nowhere


def nearest(
    datastore: Datastore, k: int, hidden: Tensor, context: Tensor, asks: Tensor | None = None
) -> Nearest:
    """The `k` nearest to the hidden states (R, d) and contexts (R, l), for the rows that ask (R,)
    bool, by default all; the others have none."""
    queries = torch.cat([context, hidden], 1).float().cpu().numpy()
    rows = np.arange(len(queries)) if asks is None else asks.nonzero()[:, 0].cpu().numpy()
    distances = np.full((len(queries), k), np.inf, np.float32)
    positions = np.full((len(queries), k), -1, np.int64)
    if len(rows):
        scores, places = datastore.search(queries[rows], k)
        distances[rows, : places.shape[1]] = -scores
        positions[rows, : places.shape[1]] = places
    ids = datastore.words(positions)
    return Nearest(*(torch.from_numpy(x).to(context.device) for x in (distances, ids, positions)))


@dataclass(frozen=True)
class KNN:
    """The vanilla form: a weight w in [0, 1), and the temperature T > 0 of the distances."""

    weight: float
    temperature: float

    def asks(self, certain: Tensor) -> Tensor:
        """All rows (R,) bool."""
        return torch.ones_like(certain[:, 0], dtype=torch.bool)

    def __call__(
        self, distances: Tensor, ids: Tensor, certain: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """p_knn as weights of the neighbours (R, k), and the logit of w (R,); -inf where nothing
        was found."""
        logit = math.log(self.weight / (1 - self.weight)) if self.weight else -math.inf
        return knn_weights(distances, self.temperature), closed_without(
            distances, distances.new_full((), logit)
        )


class AdaptiveKNN(nn.Module):
    """The paper's meta-k network: two layers with tanh between say, for every row, what each r is
    worth; r = 0 is the model itself. It is shown the k distances and, for i = 1 ... k, how many
    different words the i nearest hold.

    OURS: it is also shown how certain the model is (`certainty`). Distances are shown in units of
    T, to 10 at most, so that missing and very far ones look alike; training starts near the plain
    model. Where the model is sure, it speaks alone. `k` is a power of two; T stays as given."""

    def __init__(self, k: int, temperature: float) -> None:
        super().__init__()
        self.k, self.temperature = k, temperature
        self.counts = [2**i for i in range(k.bit_length())]  # the r > 0
        self.inner, self.dropout = nn.Linear(2 * k + 2, WIDTH), nn.Dropout(DROPOUT)
        self.out = nn.Linear(WIDTH, 1 + len(self.counts))
        with torch.no_grad():
            self.out.weight.mul_(0.1)
            self.out.bias.zero_()[0] = START + math.log(len(self.counts))

    def asks(self, certain: Tensor) -> Tensor:
        """The rows (R,) bool where the model is not sure."""
        return unsure(certain)

    def forward(self, distances: Tensor, ids: Tensor, certain: Tensor) -> tuple[Tensor, Tensor]:
        """As `KNN`: the weights (R, k) of all p_r, r > 0, mixed, and the logit (R,) of 1 - p(r =
        0)."""
        logits = self.choose(distances, ids, certain)
        weights = torch.bmm(logits[:, 1:].softmax(-1)[:, None], self.of_each(distances))[:, 0]
        return weights, closed_without(distances, logits[:, 1:].logsumexp(-1) - logits[:, 0])

    def choose(self, distances: Tensor, ids: Tensor, certain: Tensor) -> Tensor:
        """The logits of p(r), r = 0, 1, 2, 4, ..., k: (R, 1 + log2 k + 1), by `certainty`
        (R, 2)."""
        features = (
            (distances / self.temperature).clamp_max(FARTHEST),
            distinct(ids, distances.isfinite()),
            certain,
        )
        logits: Tensor = self.out(self.dropout(torch.tanh(self.inner(torch.cat(features, -1)))))
        return logits

    def of_each(self, distances: Tensor) -> Tensor:
        """p_r as weights of the neighbours, for every r > 0: (R, log2 k + 1, k)."""
        limits = torch.tensor(self.counts, device=distances.device)
        excluded = torch.arange(self.k, device=distances.device) >= limits[:, None]
        return knn_weights(distances[:, None].masked_fill(excluded, torch.inf), self.temperature)

    def save(self, path: Path, model: str) -> None:
        """Writes `path`, whole or not at all; `model` is the hash of the model whose keys it has
        learned to judge."""
        from safetensors.torch import save_file

        metadata = {"format": FORMAT, "model": model, "k": self.k, "temperature": self.temperature}
        with replacing(path) as new:
            tensors = {name: x.detach().cpu() for name, x in self.state_dict().items()}
            save_file(tensors, new, {"adaptive knn": json.dumps(metadata)})

    @classmethod
    def load(cls, path: Path, model: str, device: torch.device | str = "cpu") -> AdaptiveKNN:
        """What `save` wrote, in evaluation mode. Raises ModelError where it is none, or was made
        with another model."""
        from safetensors import safe_open

        try:
            if path.exists() and not path.is_file() and not path.is_dir():
                raise ValueError("no regular file")  # a pipe would be waited for
            # safetensors says of every file that cannot be read that there is none
            path.open("rb").close()
            with safe_open(path, "pt") as file:
                metadata = json.loads((file.metadata() or {})["adaptive knn"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}
            if metadata["format"] != FORMAT:
                raise ModelError(
                    f"{path}: format {short_repr(metadata['format'])} of an adaptive kNN, this "
                    f"version reads {FORMAT}"
                )
            if type(metadata["model"]) is not str or not metadata["model"].isprintable():
                raise ValueError("the name of its model is missing")
            if metadata["model"] != model:
                raise ModelError(
                    f"{path}: was trained with model {metadata['model']}, this one is {model}"
                )
            check_k(metadata["k"], metadata["temperature"])
            network = cls(metadata["k"], metadata["temperature"])
            fill(network, tensors)
        except UNREADABLE as error:
            raise ModelError(f"{path}: no adaptive kNN: {reason_of(error)}") from error
        return network.to(device).eval()


class Votes(NamedTuple):
    """p_knn of every row, as weights of words, and how much it counts."""

    weights: Tensor  # (R, k)
    logit: Tensor  # (R,) of w; -inf where nothing was found
    ids: Tensor  # (R, k)
    positions: Tensor  # (R, k) where they stand in the datastore, -1: nowhere


@dataclass(frozen=True)
class KNNVoters:
    """Neighbours whose words are mixed in, and the form of kNN that weighs them."""

    search: NeighbourQuery
    knn: KNN | AdaptiveKNN

    def vote(self, hidden: Tensor, context: Tensor, log_probs: Tensor) -> Votes:
        """p_knn at the hidden states (R, d) and contexts (R, l), where the rest says log p
        (R, V)."""
        certain = certainty(log_probs)
        hits = nearest(
            self.search.datastore, self.search.k, hidden, context, self.knn.asks(certain)
        )
        weights, logit = self.knn(hits.distances, hits.ids, certain)
        return Votes(weights, logit, hits.ids, hits.positions)

    def rows(self, index: Tensor) -> KNNVoters:
        """The same: no row is asked for."""
        return self

    reordered = rows


def voting_of(settings: Settings, model: Model, device: str) -> KNN | AdaptiveKNN | None:
    """How neighbours are mixed in; None where they are not: in other modes than knn without an
    adaptive kNN. Raises UsageError where one is given and does not go with the other settings,
    ModelError where the file is none of this model."""
    if settings.knn_adaptive is None:
        return (
            KNN(settings.knn_weight, settings.knn_temperature) if settings.mode == "knn" else None
        )
    if settings.mode == "off":
        raise UsageError(
            "knn-adaptive is read in the modes copy, fusion, both and knn; the mode is off"
        )
    if (settings.knn_weight, settings.knn_temperature) != (
        Settings.knn_weight,
        Settings.knn_temperature,
    ):
        raise UsageError(
            "knn-adaptive has weights and a temperature of its own: leave out knn-weight, "
            "knn-temperature"
        )
    knn = AdaptiveKNN.load(Path(settings.knn_adaptive), model.hash, device)
    if knn.k != settings.neighbours:
        raise UsageError(
            f"{settings.knn_adaptive}: was trained for {knn.k} neighbours, and they are set to "
            f"{settings.neighbours}"
        )
    return knn


def check_k(k: object, temperature: object) -> None:
    """Raises ValueError where these are no k and no T of an adaptive kNN."""
    if type(k) is not int or not 1 <= k <= MOST_K or k & (k - 1):
        raise ValueError(f"k is {short_repr(k)}, wanted: a power of two, at most {MOST_K:,}")
    if type(temperature) not in (int, float) or not 0 < cast(float, temperature) < math.inf:
        raise ValueError(
            f"the temperature is {short_repr(temperature)}, wanted: a number greater than 0"
        )


def distinct(ids: Tensor, real: Tensor) -> Tensor:
    """(R, k) float32: how many different words the first 1 ... k neighbours (R, k) hold, of those
    that were found."""
    first = first_of(ids) == torch.arange(ids.shape[1], device=ids.device)
    return (first & real).cumsum(-1).float()


def certainty(log_probs: Tensor) -> Tensor:
    """(R, 2): the two greatest of log p (R, V), -10 at least."""
    return log_probs.topk(2, -1).values.clamp_min(LEAST_CERTAIN)


def unsure(certain: Tensor) -> Tensor:
    """(R,) bool of `certainty` (R, 2): where neighbours are looked for."""
    return certain[:, 0] < math.log(SURE)


def closed_without(distances: Tensor, logit: Tensor) -> Tensor:
    """The logit (R,) or () of every row (R,), -inf for rows without a neighbour: there the model
    speaks alone."""
    return torch.where(distances.isfinite().any(1), logit, -torch.inf)


def knn_weights(distances: Tensor, temperature: float) -> Tensor:
    """softmax(-distance / T) over the neighbours (..., k), 0 where it is infinite (Khandelwal et
    al. 2021, eq. 3)."""
    real = distances.isfinite()
    return (-distances / temperature).masked_fill(~real, torch.finfo(distances.dtype).min).softmax(
        -1
    ) * real
