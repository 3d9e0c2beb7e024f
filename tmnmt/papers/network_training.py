"""A network beside a finished base learns from sentences of everywhere, alone or with the base's
decoder. Encoder and embedding stay as they are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from tmnmt.errors import DataError
from tmnmt.keys.pair_keys import padded
from tmnmt.models.base import Injectable
from tmnmt.models.injected import Network
from tmnmt.papers.network_config import Config
from tmnmt.training.parts import Flat, Part, PartTrainer, Standing, Unit
from tmnmt.training.tm import batches, evenly
from tmnmt.vocab import EOS, Vocabulary


class Texts(Protocol):
    """What is learned from: a source and its target."""

    @property
    def src(self) -> str: ...

    @property
    def tgt(self) -> str: ...


T = TypeVar("T", bound=Texts)


class InjectedPart(Part, Generic[T]):
    """The network, and the decoder where it learns too."""

    def __init__(
        self,
        network: Network,
        backbone: Injectable,
        vocab: Vocabulary,
        train: Sequence[T],
        dev: Sequence[T],
        config: Config,
    ) -> None:
        self.backbone, self.vocab, self.network = backbone, vocab, network
        self.train, self.dev, self.config = train, dev, config
        self.device = next(network.parameters()).device
        self.module: nn.Module = network
        if not config.learning_rate:  # its gradient is no part of the norm that is clipped
            network.requires_grad_(False)
        if config.tunes_decoder:
            self.module = nn.ModuleDict({"network": network, "base": backbone})
            for parameter in self._decoder():
                parameter.requires_grad_(True)
        self._units = batches(self._sizes(train), config.batch_tokens, f"{config.seed}")
        self.dev_units = batches(self._sizes(dev), config.batch_tokens, "dev")

    def _sizes(self, examples: Sequence[T]) -> dict[int, tuple[int, int]]:
        return {
            i: (len(self.vocab.encode_source(s.src)) + 1, len(self.vocab.encode(s.tgt)) + 1)
            for i, s in enumerate(examples)
        }

    def _decoder(self) -> list[nn.Parameter]:
        """Those of the base that its encoder does not read."""
        return [
            parameter
            for name, parameter in self.backbone.named_parameters()
            if not name.startswith(self.backbone.encoder_reads)
        ]

    def groups(self, learning_rate: float) -> list[dict[str, object]]:
        groups: list[dict[str, object]] = [
            {"params": list(self.network.parameters()), "peak": learning_rate}
        ]
        if self.config.tunes_decoder:
            groups.append({"params": self._decoder(), "peak": self.config.base_learning_rate})
        return groups

    def units(self, epoch: int) -> Sequence[Unit]:
        units = list(self._units)
        Random(f"{self.config.seed} {epoch}").shuffle(units)
        return [[epoch, *unit] for unit in units]

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        _, *sentences = unit
        # dropout follows from the unit, so that a resumed run drops the same
        torch.manual_seed(Random(f"{self.config.seed} {unit}").getrandbits(63))
        self.backbone.train(self.config.tunes_decoder)
        yield self.loss([self.train[i] for i in sentences])

    @abstractmethod
    def loss(self, examples: Sequence[T]) -> tuple[Tensor, int]:
        """What is to fall, summed in nats, and the target tokens it is the sum of."""

    def coded(self, examples: Sequence[T]) -> tuple[Tensor, Tensor, Tensor]:
        """Sources (B, S), their lengths (B,), and targets (B, T), with </s>."""
        src = [[*self.vocab.encode_source(example.src), EOS] for example in examples]
        tgt = padded([[*self.vocab.encode(example.tgt), EOS] for example in examples], self.device)
        lengths = torch.tensor([len(ids) for ids in src], device=self.device)
        return padded(src, self.device), lengths, tgt


def expect_two(sample: Sequence[T]) -> Sequence[T]:
    """The sample. Raises DataError where it is of fewer than two, of which no interval is."""
    if len(sample) < 2:
        raise DataError(f"{len(sample)} segments that are short enough; at least 2 are wanted")
    return sample


def sample_of(all_of_them: Sequence[T], limit: int) -> list[T]:
    """About so many, evenly."""
    return [all_of_them[i] for i in evenly(len(all_of_them), limit)]


def run_part(
    part: Part,
    folder: Path,
    epochs: int,
    learning_rate: float,
    config: Config,
    resume: bool,
    begun_from: str,
    content: str,
    flat: Flat | None = None,
) -> Standing:
    """Trains a part to its end, from where it stands; where `flat` is given, until it is flat.
    Raises UsageError where a run is there and `resume` is not given; `content` says what the folder
    then holds."""
    trainer = PartTrainer(
        part,
        folder,
        epochs,
        learning_rate,
        config.validate_every,
        config.checkpoint_every,
        begun_from,
        flat,
    )
    return trainer.run_from(resume, content)
