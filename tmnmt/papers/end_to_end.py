"""The base trained together with a memory, end to end.

With the translation memory (Gu et al. 2018) the keys of the pairs depend on the base's weights:
they are computed anew for every update and differentiated through. A share of the sentences has no
pair at all, so that the base stays good where the memory has nothing.

With the session cache (Tu et al. 2018, footnote 8) the base learns along each sentence. What stands
in the cache is kept as it was written: no gradient goes into the sentences before (OURS)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import torch
from torch import Tensor, nn

from tmnmt.models.base import Backbone
from tmnmt.trained_layers.tm import TranslationMemory
from tmnmt.training.cache import CachePart, SideBySide, WrittenStretches
from tmnmt.training.memory_config import MemoryConfig
from tmnmt.training.parts import Unit
from tmnmt.training.teacher_forcing import force_references, gold_log_probs
from tmnmt.training.tm import MODES, PairedSentences, TMPart, batches
from tmnmt.vocab import Vocabulary

EVERYWHERE = "plain everywhere"  # the base on all dev sentences, with and without pairs


class EndToEndPart(TMPart):
    """The TM with its base: both are updated, and both are what a checkpoint holds."""

    gradients = True

    def __init__(
        self,
        tm: TranslationMemory,
        backbone: Backbone,
        vocab: Vocabulary,
        train: PairedSentences,
        dev: PairedSentences,
        batch_tokens: int,
        base_learning_rate: float,
    ) -> None:
        super().__init__(tm, backbone, vocab, train, dev, batch_tokens)
        self.module = nn.ModuleDict({"tm": tm, "base": backbone})
        self.base_learning_rate = base_learning_rate
        backbone.requires_grad_(True)
        sizes = {i: dev.size(i, vocab) for i in range(len(dev.segments))}
        self._all_dev = batches(sizes, batch_tokens, "dev")

    def groups(self, learning_rate: float) -> list[dict[str, object]]:
        base = {"params": list(self.backbone.parameters()), "peak": self.base_learning_rate}
        return [*super().groups(learning_rate), base]

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        _drop(self.backbone, self.train.seed, unit)
        yield from super().losses(unit)

    def dev_losses(self) -> dict[str, float]:
        self.backbone.eval()
        return super().dev_losses() | {EVERYWHERE: self._plain_everywhere()}

    def criterion(self, losses: dict[str, float]) -> float:
        """The base on all dev sentences counts as much as sentences without pairs do in
        training."""
        modes = sum(mode in losses for mode in MODES)
        return super().criterion(losses) + modes * self.train.shares.no_pair * losses[EVERYWHERE]

    def _plain_everywhere(self) -> float:
        total, tokens = 0.0, 0
        for unit in self._all_dev:
            batch = force_references(
                self.backbone, self.vocab, [self.dev.segments[i] for i in unit], self.device
            )
            log_p = gold_log_probs(self.backbone, batch, batch.hiddens[batch.real], batch.real)
            total, tokens = total - float(log_p.sum()), tokens + len(log_p)
        return total / tokens


class EndToEndCachePart(CachePart):
    """The session cache with its base: both are updated, and both are what a checkpoint holds. What
    dev says of the plain model is of the base as it has become."""

    def __init__(
        self,
        documents: SideBySide,
        train: WrittenStretches,
        dev: WrittenStretches,
        seed: int,
        base_learning_rate: float,
        is_pretrained: bool = False,
    ) -> None:
        super().__init__(documents, train, dev, seed, is_pretrained)
        self.backbone, self.base_learning_rate = documents.backbone, base_learning_rate
        self.module = nn.ModuleDict({"cache": documents.cache, "base": self.backbone})
        self.backbone.requires_grad_(True)
        documents.gradients = True

    def groups(self, learning_rate: float) -> list[dict[str, object]]:
        base = {"params": list(self.backbone.parameters()), "peak": self.base_learning_rate}
        return [*super().groups(learning_rate), base]

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        _drop(self.backbone, self.seed, unit)
        yield from super().losses(unit)

    def validate(self) -> dict[str, float]:
        self.backbone.eval()
        return super().validate()


def tm_part(
    tm: TranslationMemory,
    backbone: Backbone,
    vocab: Vocabulary,
    train: PairedSentences,
    dev: PairedSentences,
    config: MemoryConfig,
) -> EndToEndPart:
    """As [memory] says."""
    sizes = config.batch_tokens, config.base_learning_rate
    return EndToEndPart(tm, backbone, vocab, train, dev, *sizes)


def cache_part(
    documents: SideBySide,
    train: WrittenStretches,
    dev: WrittenStretches,
    config: MemoryConfig,
    resumed: bool,
) -> EndToEndCachePart:
    """As [memory] says."""
    return EndToEndCachePart(documents, train, dev, config.seed, config.base_learning_rate, resumed)


def _drop(backbone: Backbone, seed: int, unit: Unit) -> None:
    """Dropout from here on, which follows from the unit, so that a resumed run drops the same."""
    torch.manual_seed(Random(f"{seed} {unit}").getrandbits(63))
    backbone.train()
