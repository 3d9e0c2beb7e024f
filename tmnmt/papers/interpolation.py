"""kNN interpolation as a memory layer: the words of the neighbours nearest to a step are mixed in
(`knn.py`), last, beside pairs or without. It has no parameters of its own."""

from __future__ import annotations

from torch import Tensor

from tmnmt.layers.contract import Collated, LayerOutput, MemoryLayer, StepState, Words
from tmnmt.layers.view import first_of
from tmnmt.models.base import Backbone
from tmnmt.papers.knn import KNN, AdaptiveKNN, KNNVoters
from tmnmt.trained_layers.neighbours import NeighbourQuery


class Interpolation(MemoryLayer[KNNVoters]):
    """p(y) = w p_knn(y) + (1 - w) p(y)."""

    modes: tuple[str, ...] = ("knn",)

    def ready(self, collated: Collated, backbone: Backbone, mode: str) -> KNNVoters | None:
        query = collated.search
        if not isinstance(query, NeighbourQuery) or not isinstance(query.voting, KNN | AdaptiveKNN):
            return None
        return KNNVoters(query, query.voting)

    def fuse(
        self, step: StepState, hidden: Tensor, ready: KNNVoters
    ) -> tuple[Tensor, LayerOutput[KNNVoters]]:
        return hidden, LayerOutput(ready, hidden[:, :0])

    def mix(
        self, step: StepState, log_probs: Tensor, reading: LayerOutput[KNNVoters]
    ) -> tuple[Tensor, LayerOutput[KNNVoters]]:
        votes = reading.ready.vote(step.hidden, step.context, log_probs)
        words = Words(votes.ids, first_of(votes.ids), votes.logit)
        reading = LayerOutput(reading.ready, votes.weights, words=words, positions=votes.positions)
        return super().mix(step, log_probs, reading)
