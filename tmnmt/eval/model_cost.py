"""What a system's model costs beside its decoding: the parameters that it reads, and what their
training took."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from tmnmt.engine.settings import Settings
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import Model, parameters
from tmnmt.trained_layers.neighbours import voting_of
from tmnmt.trained_layers.tm import OUTPUTS
from tmnmt.training.cache import CachePart
from tmnmt.training.log import TrainingCost
from tmnmt.training.tm import TMPart
from tmnmt.training.trainers import JOINT_TRAINERS, NETWORK_TRAINERS


def parameters_read(model: Model, layers: MemoryLayers | None, settings: Settings) -> int | None:
    """Of the backbone, with its reference or context network where that is read, of the memory
    layers that these settings read, and of an adaptive kNN. None for a base that does not show
    them."""
    if model.backbone.modes:
        return None
    model = model.reading(settings)
    voting = voting_of(settings, model, "cpu")
    return (
        parameters(model.backbone)
        + (layers.parameters_read(settings.mode, settings.cache > 0) if layers is not None else 0)
        + (parameters(voting) if isinstance(voting, nn.Module) else 0)
    )


def training_read(
    costs: Mapping[str | None, TrainingCost], settings: Settings
) -> dict[str, float | int | None]:
    """{"training_seconds", "training_tokens", "training_tokens_per_second"} of what is read; None
    where the log does not say.

    A reference or context network counts where it is not read, too: the decoder may have learned
    with it. The anchors of a network learn from points, which are no tokens of the target."""
    unread = _prior(settings)
    relevant = {part: cost for part, cost in costs.items() if part not in unread}
    pointwise = {part for trainer in NETWORK_TRAINERS.values() for part in trainer.pointwise}
    measured = [cost for part, cost in relevant.items() if part not in pointwise and cost.tokens]
    tokens, seconds = sum(c.tokens for c in measured), sum(c.seconds for c in measured)
    return {
        "training_seconds": round(sum(c.seconds for c in relevant.values()), 1)
        if relevant
        else None,
        "training_tokens": tokens or None,
        "training_tokens_per_second": round(tokens / seconds, 1) if seconds else None,
    }


def _prior(settings: Settings) -> set[str]:
    """The parts of a training that only layers come from which are not read."""
    tm, cache = settings.mode in OUTPUTS, settings.cache > 0
    parts = {TMPart.name: tm, CachePart.name: cache}
    parts |= {name: tm and cache for name in JOINT_TRAINERS}
    return {name for name, is_read in parts.items() if not is_read}
