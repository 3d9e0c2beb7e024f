"""One memory layer (the TM layer, the session cache) trained on a fixed base: the loop, its
checkpoints, its log.

Every random choice is a function of (seed, epoch), so a run that was interrupted goes on as if it
had not been."""

from __future__ import annotations

import json
import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tmnmt.allocator import give_back, keep_freed
from tmnmt.errors import DataError, UsageError
from tmnmt.interrupts import uninterrupted
from tmnmt.progress import Progress
from tmnmt.training import checkpoint
from tmnmt.training.log import add_line, count_lines, keep_lines

log = logging.getLogger(__name__)

CLIP = 1.0  # largest norm of the gradient, as in the papers
WARMUP = 50  # updates
DECAY = 0.3  # the last share of a part's units decays linearly to zero
UPDATES_A_LINE = 20

# what is trained on between two places where one can stop: numbers that the part understands
Unit = list[int]


class Part(ABC):
    """What the loop needs to know of a part."""

    name: str
    module: nn.Module

    @abstractmethod
    def units(self, epoch: int) -> Sequence[Unit]:
        """The epoch's units in order, the same whenever asked; every epoch has as many."""

    @abstractmethod
    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        """The updates of a unit: summed loss in nats, and the target tokens it is the sum of. The
        module is updated between two of them."""

    @abstractmethod
    def validate(self) -> dict[str, float]:
        """Dev losses in nats a token; `criterion` is the one that is to fall."""

    def groups(self, learning_rate: float) -> list[dict[str, object]]:
        """Parameter groups of Adam, each with its greatest rate under `peak`."""
        return [{"params": list(self.module.parameters()), "peak": learning_rate}]


class Flat(NamedTuple):
    """When a part has learned what it can before its epochs are over: so many `epochs` that each
    lowered its criterion by less than the share `gain` of the lowest."""

    gain: float
    epochs: int


@dataclass
class Standing:
    """Where a part's training stands; saved with every checkpoint.

    A report or a validation is part of it only when all of it is done: one that was interrupted is
    made again."""

    epoch: int = 0
    unit: int = 0  # units of this epoch already used
    within: int = 0  # updates of the next one already made
    update: int = 0
    tokens: int = 0  # target tokens seen
    seconds: float = 0.0  # of training, over all sessions
    best: float = math.inf  # the lowest criterion on dev
    at_best: dict[str, float] = field(default_factory=dict)  # all dev losses then
    at_start: dict[str, float] = field(default_factory=dict)  # and before the first update
    validated: int = -1  # the update of the last validation
    done: bool = False
    reported: int = 0  # the update of the last report
    loss: float = 0.0  # summed since then, in nats
    loss_tokens: int = 0  # and of how many tokens
    lines: int = 0  # in the log
    lowest: float = math.inf  # the criterion when it last fell by enough
    without_gain: int = 0  # epochs since then


class PartTrainer:
    """Trains a part in place; `folder` gets memory-NAME-last and -best.safetensors and lines in
    train.jsonl.

    begun_from: names what the part began from and is; a checkpoint of another beginning is not gone
    on with.
    flat: when it ends before its epochs are over; None: never."""

    def __init__(
        self,
        part: Part,
        folder: Path,
        epochs: int,
        learning_rate: float,
        validate_every: int,
        checkpoint_every: int,
        begun_from: str = "",
        flat: Flat | None = None,
    ) -> None:
        self.part, self.folder, self.epochs, self.begun_from = part, folder, epochs, begun_from
        self.flat = flat
        self.validate_every, self.checkpoint_every = validate_every, checkpoint_every
        self.standing = Standing()
        self.optimiser = torch.optim.Adam(part.groups(learning_rate), betas=(0.9, 0.98))
        self._checkpoint_at = 0
        self._progress = Progress("", "")

    def path(self, kind: str) -> Path:
        """The checkpoint `kind`: "last" or "best"."""
        return self.folder / f"memory-{self.part.name}-{kind}.safetensors"

    def run_from(self, resume: bool, content: str) -> Standing:
        """Goes on from the checkpoint, where there is one, to the end. Raises UsageError where
        there is one and `resume` is not given; `content` says what the folder then holds."""
        if self.path("last").exists():
            if not resume:
                raise UsageError(
                    f"{self.folder}: holds {content} already; go on with --resume, or name another "
                    "folder"
                )
            if self.restore():
                log.info("%s: going on at update %d", self.part.name, self.standing.update)
        self.run()
        return self.standing

    def run(self) -> None:
        """Trains through all epochs and leaves the module with its best parameters on dev. Ctrl-C
        saves first."""
        keep_freed()
        keep_lines(self.folder, self.part.name, self.standing.lines)
        try:
            if self.standing.validated < 0:
                self._validate()
            progress = Progress(f"learning {self.part.name}", "batches", self._left(), lazy=True)
            with progress as self._progress:
                while not self.standing.done:
                    self._epoch()
        except KeyboardInterrupt:
            self.save("last")
            raise
        checkpoint.load(self.path("best"), self.part.module, self.optimiser)

    def _left(self) -> int:
        """Units that are still to be trained on."""
        standing = self.standing
        return (self.epochs - standing.epoch) * len(self.part.units(standing.epoch)) - standing.unit

    def _epoch(self) -> None:
        units = self.part.units(self.standing.epoch)
        if not self.standing.within:
            self._after_unit(len(units))  # what an interruption left to be done
        for unit in units[self.standing.unit :]:
            start = time.monotonic()
            # of a unit that was broken off, the updates that were made are gone through without
            # making them again
            for loss, tokens in islice(self.part.losses(unit), self.standing.within, None):
                self._update(
                    loss,
                    tokens,
                    (self.standing.epoch + self.standing.unit / len(units)) / self.epochs,
                )
            self.standing.unit, self.standing.within = self.standing.unit + 1, 0
            self.standing.seconds += time.monotonic() - start
            if not log.isEnabledFor(logging.INFO):  # else its lines say how far it is
                self._progress.advance()
            self._after_unit(len(units))
        if self.standing.update > self.standing.validated:
            self._validate()
        epoch = self.standing.epoch + 1
        self.standing = replace(self.standing, epoch=epoch, unit=0, done=epoch >= self.epochs)
        if self.flat is not None:
            self._end_where_flat(self.flat)
        self.save("last")

    def _end_where_flat(self, flat: Flat) -> None:
        standing = self.standing
        if standing.best < (1 - flat.gain) * standing.lowest:
            self.standing = replace(standing, lowest=standing.best, without_gain=0)
            return
        without_gain = standing.without_gain + 1
        is_flat = without_gain >= flat.epochs
        done = standing.done or is_flat
        self.standing = replace(standing, without_gain=without_gain, done=done)
        if is_flat:
            log.info("%s, update %d: flat at %.4f", self.part.name, standing.update, standing.best)

    def _after_unit(self, units: int) -> None:
        """Report, validation and checkpoint, each where it is due and not made yet."""
        if self.standing.update >= self.standing.reported + UPDATES_A_LINE:
            self._report(units)
        if self.standing.update >= self.standing.validated + self.validate_every:
            self._validate()
        if self.standing.update >= self._checkpoint_at + self.checkpoint_every:
            self.save("last")

    def _update(self, loss: Tensor, tokens: int, run: float) -> None:
        """One step of Adam; `run` is the share of the training that is over, in [0, 1)."""
        self.optimiser.zero_grad()  # of an update that was interrupted, too
        (loss / tokens).backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.part.module.parameters(), CLIP)
        if not math.isfinite(float(loss.detach() + norm)):
            raise DataError(
                f"{self.part.name}: diverged at update {self.standing.update + 1}; a smaller "
                "learning rate helps"
            )
        factor = min(1.0, (self.standing.update + 1) / WARMUP, (1 - run) / DECAY)
        for group in self.optimiser.param_groups:
            group["lr"] = factor * group["peak"]
        with uninterrupted():
            self.optimiser.step()
            self.standing.update += 1
            self.standing.within += 1
            self.standing.tokens += tokens
            self.standing.loss += float(loss.detach())
            self.standing.loss_tokens += tokens

    def _validate(self) -> None:
        losses = self.part.validate()
        standing = replace(
            self.standing, validated=self.standing.update, at_start=self.standing.at_start or losses
        )
        better = losses["criterion"] < standing.best
        if better:
            standing.best, standing.at_best = losses["criterion"], losses
            self.save("best", standing)
        summary = ", ".join(f"{name} {value:.4f}" for name, value in losses.items())
        log.info(
            "%s, update %d: dev %s%s",
            self.part.name,
            standing.update,
            summary,
            " (best)" if better else "",
        )
        self._log(standing, {f"dev_{name}": value for name, value in losses.items()})
        self.standing = standing

    def _report(self, units: int) -> None:
        standing = replace(self.standing, reported=self.standing.update, loss=0.0, loss_tokens=0)
        finished, total = standing.epoch * units + standing.unit, self.epochs * units
        loss = self.standing.loss / self.standing.loss_tokens
        rate = standing.tokens / max(standing.seconds, 1e-9)
        minutes = (total - finished) * standing.seconds / max(finished, 1) / 60
        log.info(
            "%s, update %d, %.0f%%: loss %.4f, %.0f target tokens/s, %.0f min left",
            self.part.name,
            standing.update,
            100 * finished / total,
            loss,
            rate,
            minutes,
        )
        self._log(standing, {"loss": loss, "tokens_per_second": rate})
        give_back()
        self.standing = standing

    def _log(self, standing: Standing, entry: dict[str, float]) -> None:
        standing.lines += 1
        head: dict[str, object] = {
            "part": self.part.name,
            "update": standing.update,
            "epoch": standing.epoch,
        }
        head |= {"tokens": standing.tokens, "seconds": round(standing.seconds, 1)}
        add_line(self.folder, head | {name: round(value, 5) for name, value in entry.items()})

    def save(self, kind: str, standing: Standing | None = None) -> None:
        """The checkpoint `kind`: "last" or "best"; where the part stands by now, unless `standing`
        says otherwise."""
        notes = {
            "standing": json.dumps(asdict(standing or self.standing)),
            "begun from": self.begun_from,
        }
        checkpoint.save(self.path(kind), self.part.module, self.optimiser, notes)
        self._checkpoint_at = self.standing.update

    def restore(self) -> bool:
        """Takes up the last checkpoint: the run goes on as if it had not been interrupted.

        False, and nothing is taken up, where it began from another base, or is of another kind. One
        of an older version does not say."""
        path = self.path("last")
        if checkpoint.read_notes(path).get("begun from", self.begun_from) != self.begun_from:
            log.warning(
                "%s: began from another base, or is of another kind; the part is trained anew", path
            )
            return False
        notes = checkpoint.load(path, self.part.module, self.optimiser)
        saved = json.loads(notes["standing"])
        older = {
            "reported": saved["update"],
            "lines": count_lines(self.folder, self.part.name),
        }  # did not say
        self.standing = Standing(**(older | saved))
        self._checkpoint_at = self.standing.update
        return True
