"""The training loop of the base model: exact to resume, the same on one process and on several.

Every random choice is a function of (seed, epoch) or (seed, update, process), so that a run which
was interrupted goes on exactly as if it had not been."""

from __future__ import annotations

import copy
import json
import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import sacrebleu
import torch
import torch.distributed as dist
from torch import Tensor

from tmnmt.allocator import give_back, keep_freed
from tmnmt.errors import DataError, UsageError
from tmnmt.interrupts import uninterrupted
from tmnmt.models.base import Backbone, Trainable
from tmnmt.training import averaging, checkpoint
from tmnmt.training.config import TrainingConfig
from tmnmt.training.data import Pairs, token_batches
from tmnmt.training.log import add_line, count_lines, keep_lines
from tmnmt.training.optimiser import Optimiser
from tmnmt.vocab import BOS, EOS, PAD, UNK, Vocabulary

log = logging.getLogger(__name__)

ALL_DONE = "all updates done"
UPDATES_A_LINE = 50
FIRST_UPDATES = 5  # after which the time of all is estimated, for the first time


@dataclass
class Progress:
    """Where a run stands; saved with every checkpoint.

    A report or a validation is part of it only when all of it is done: one that was interrupted is
    made again."""

    update: int = 0
    epoch: int = 0
    batch: int = 0  # batches of this epoch already used
    tokens: int = 0  # target tokens seen
    seconds: float = 0.0  # of training, over all sessions
    best: float = math.inf  # dev loss, nats a token
    best_bleu: float = 0.0
    without_gain: int = 0  # validations since the best
    stopped: str = ""
    loss: float = 0.0  # of the last update, nats a token
    reported: int = 0  # the update of the last report
    validated: int = 0  # and of the last validation
    lines: int = 0  # in the log


class Trainer:
    """Trains `model` in place; `folder` gets last.safetensors, best.safetensors and train.jsonl."""

    def __init__(
        self,
        model: Trainable,
        vocab: Vocabulary,
        train: Pairs,
        dev: Pairs,
        config: TrainingConfig,
        folder: Path,
    ) -> None:
        self.model = model
        self.vocab = vocab
        self.train_pairs = train
        self.dev = dev
        self.config = config
        self.folder, self.progress = folder, Progress()
        self.device = next(model.parameters()).device
        self.rank, self.processes = (
            (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        )
        model.dtype = torch.bfloat16 if config.precision == "bf16" else None
        self.parameters = list(model.parameters())
        self.optimiser = Optimiser(
            model, config.optimiser, config.learning_rate, config.matrix_rate
        )
        # called whenever the model is better on dev than before
        self.on_best: Callable[[], None] = lambda: None

    def run(self) -> Progress:
        """Trains until the updates are done or dev stops improving. Ctrl-C saves a checkpoint
        first."""
        keep_freed()
        if not self.rank:
            keep_lines(self.folder, None, self.progress.lines)
        try:
            self._after_update()  # what an interruption left to be done
            for batch in self._batches():
                start = time.monotonic()
                self.update(batch)
                self.progress.seconds += time.monotonic() - start
                self._after_update()
        except KeyboardInterrupt:
            self.save("last")
            raise
        self.save("last")
        return self.progress

    def _after_update(self) -> None:
        """Report, validation and checkpoint, each where it is due and not made yet."""
        update, config = self.progress.update, self.config
        if update == FIRST_UPDATES and not self.progress.reported:
            self._expect()
        if update % UPDATES_A_LINE == 0 and update > self.progress.reported:
            self._report()
        if (
            update % config.validate_every == 0 or update == config.updates
        ) and update > self.progress.validated:
            self._validate()
        if (update and update % config.checkpoint_every == 0) or self.progress.stopped:
            self.save("last")

    def _expect(self) -> None:
        """Says how long all updates take at most, by the first ones."""
        progress = self.progress
        tokens = progress.tokens * self.config.updates / progress.update
        log.info(
            "%d updates in %.0f s: all %s take at most %.0f min on this machine, and read %.1f "
            "million target tokens; validated every %d",
            progress.update,
            progress.seconds,
            f"{self.config.updates:,}",
            self.config.updates * progress.seconds / progress.update / 60,
            tokens / 1e6,
            self.config.validate_every,
        )

    def _batches(self) -> Iterator[list[list[int]]]:
        """The batches of one update after the other."""
        parts = max(self.config.accumulate, self.processes)
        while self._is_to_go_on():
            tokens, epoch = self.config.batch_tokens // parts, self.progress.epoch
            batches = token_batches(self.train_pairs, tokens, self.config.seed + epoch)
            n = round(parts * min(self.config.growth**epoch, self.config.grown))
            groups = [batches[i : i + n] for i in range(0, len(batches) - n + 1, n)]
            if not groups:
                raise UsageError(
                    f"batches of training pairs: {len(batches)}, fewer than one update's {n}"
                )
            for group in groups[self.progress.batch :]:
                yield group
                if not self._is_to_go_on():
                    return
            self.progress.epoch, self.progress.batch = self.progress.epoch + 1, 0

    def _is_to_go_on(self) -> bool:
        return self.progress.update < self.config.updates and not self.progress.stopped

    def update(self, group: list[list[int]]) -> tuple[float, int]:
        """One step of the optimiser on a group of batches, shared by the processes -> loss in nats
        a token, target tokens."""
        self.model.train()
        self.optimiser.zero_grad()  # of an update that was interrupted, too
        totals = torch.zeros(2, device=self.device)
        for i in range(self.rank, len(group), self.processes):
            torch.manual_seed(((self.config.seed << 40) + (self.progress.update << 8) + i) % 2**63)
            src, src_len, tgt = (t.to(self.device) for t in self.train_pairs.take(group[i]))
            loss = self.model.loss(src, src_len, tgt, self.config.label_smoothing)
            loss.backward()  # type: ignore[no-untyped-call]
            totals += torch.stack([loss.detach(), (tgt != PAD).sum().to(loss.dtype)])
        self._sum_over_processes(totals)
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad /= totals[1]
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.config.clip)
        self._expect_finite(float(totals[0] + norm))
        mean, tokens = float(totals[0] / totals[1]), int(totals[1])
        with uninterrupted():  # a checkpoint has all of the update or none of it
            self.optimiser.step(self.rate_share(self.progress.update))
            self.progress.update += 1
            self.progress.batch += 1
            self.progress.tokens += tokens
            self.progress.loss = mean
        return mean, tokens

    def _expect_finite(self, number: float) -> None:
        if not math.isfinite(number):
            raise DataError(
                f"diverged at update {self.progress.update + 1}; a smaller learning_rate helps"
            )

    def _sum_over_processes(self, totals: Tensor) -> None:
        if self.processes == 1:
            return
        flat = torch.cat(
            [totals, *(p.grad.flatten() for p in self.parameters if p.grad is not None)]
        )
        dist.all_reduce(flat)
        totals.copy_(flat[:2])
        offset = 2
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad.copy_(flat[offset : offset + parameter.numel()].view_as(parameter))
                offset += parameter.numel()

    def rate_share(self, update: int) -> float:
        """The share of the learning rates: linear warm-up, constant or falling with
        1 / sqrt(update), linear decay over the last share of the run."""
        config = self.config
        falling = (
            math.sqrt(config.warmup / max(update + 1, config.warmup))
            if config.inverse_sqrt
            else 1.0
        )
        remaining = (config.updates - update) / max(config.decay * config.updates, 1)
        return min((update + 1) / config.warmup, falling, remaining)

    def _validate(self) -> None:
        loss = dev_loss(self.model, self.dev, self.config.batch_tokens)
        self._expect_finite(loss)
        bleu = dev_bleu(self.model, self.dev, self.vocab)
        better = loss < self.progress.best
        progress = replace(self.progress, validated=self.progress.update)
        progress.without_gain = 0 if better else progress.without_gain + 1
        if better:
            progress.best, progress.best_bleu = loss, bleu
        if progress.update >= self.config.updates:
            progress.stopped = ALL_DONE
        elif progress.without_gain >= self.config.patience:
            progress.stopped = f"dev loss has not improved for {progress.without_gain} validations"
        if self.config.average > 1 and not self.rank:
            averaging.keep(self.folder, self.model, progress.update, self.config.average)
        if better:
            self.save("best", progress)
            if not self.rank:
                self.on_best()
        self._log(progress, {"dev_loss": loss, "dev_bleu": bleu, "best": float(better)})
        log.info(
            "update %d: dev loss %.4f, BLEU %.2f%s",
            progress.update,
            loss,
            bleu,
            " (best)" if better else "",
        )
        self.progress = progress

    def take_best(self) -> None:
        """The finished model: the best checkpoint, or the mean of the last ones where its BLEU on
        dev is higher, or as high at a lower loss. A checkpoint of the lowest loss may run on in
        repetitions that a mean does not have."""
        last = self.progress.update
        self.restore("best")
        if self.config.average == 1:
            return
        best = copy.deepcopy(self.model.state_dict())
        mean, count = averaging.average(self.folder, last)
        self.model.load_state_dict(mean)
        loss = dev_loss(self.model, self.dev, self.config.batch_tokens)
        bleu = dev_bleu(self.model, self.dev, self.vocab)
        better = (bleu, -loss) > (self.progress.best_bleu, -self.progress.best)
        log.info(
            "mean of the last %d: dev loss %.4f, BLEU %.2f%s",
            count,
            loss,
            bleu,
            "" if better else "; the best checkpoint is kept",
        )
        if not better:
            self.model.load_state_dict(best)

    def _report(self) -> None:
        progress = replace(self.progress, reported=self.progress.update)
        rate = progress.tokens / max(progress.seconds, 1e-9)
        minutes = (self.config.updates - progress.update) * progress.seconds / progress.update / 60
        log.info(
            "update %d of %d, epoch %d: loss %.3f, %.0f target tokens/s, at most %.0f min left",
            progress.update,
            self.config.updates,
            progress.epoch + 1,
            progress.loss,
            rate,
            minutes,
        )
        self._log(progress, {"loss": progress.loss, "tokens_per_second": rate})
        give_back()
        self.progress = progress

    def _log(self, progress: Progress, entry: dict[str, float]) -> None:
        progress.lines += 1
        if self.rank:
            return
        rate = self.config.learning_rate * self.rate_share(progress.update)
        head: dict[str, object] = {
            "update": progress.update,
            "epoch": progress.epoch,
            "tokens": progress.tokens,
        }
        head |= {"seconds": round(progress.seconds, 1), "learning_rate": rate}
        add_line(self.folder, head | {k: round(v, 5) for k, v in entry.items()})

    def save(self, name: str, progress: Progress | None = None) -> None:
        """The checkpoint NAME.safetensors; where the run stands by now, unless `progress` says
        otherwise."""
        if not self.rank:
            notes = {"progress": json.dumps(asdict(progress or self.progress))}
            checkpoint.save(self.folder / f"{name}.safetensors", self.model, self.optimiser, notes)

    def restore(self, name: str = "last") -> None:
        """Takes up a checkpoint: the run goes on as if it had not been interrupted."""
        notes = checkpoint.load(self.folder / f"{name}.safetensors", self.model, self.optimiser)
        saved = json.loads(notes["progress"])
        update = saved["update"]
        older = {
            "reported": update,
            "validated": update,
            "lines": count_lines(self.folder, None),
        }  # did not say
        self.progress = Progress(**(older | saved))
        if self.progress.update < self.config.updates and self.progress.stopped == ALL_DONE:
            self.progress.stopped = ""  # the configuration now asks for more


@torch.no_grad()
def dev_loss(model: Trainable, pairs: Pairs, batch_tokens: int) -> float:
    """Nats a target token."""
    model.eval()
    device = next(model.parameters()).device
    total, tokens = 0.0, 0
    for batch in token_batches(pairs, batch_tokens, 0):
        src, src_len, tgt = (t.to(device) for t in pairs.take(batch))
        total += float(model.loss(src, src_len, tgt))
        tokens += int((tgt != PAD).sum())
    return total / tokens


@torch.no_grad()
def dev_bleu(model: Trainable, pairs: Pairs, vocab: Vocabulary) -> float:
    """sacrebleu's BLEU of greedy translations."""
    model.eval()
    hypotheses = [""] * len(pairs)
    order = sorted(range(len(pairs)), key=lambda i: len(pairs.src[i]))
    device = next(model.parameters()).device
    for start in range(0, len(order), 64):
        batch = order[start : start + 64]
        src, src_len, _ = pairs.take(batch)
        for i, ids in zip(batch, greedy(model, src.to(device), src_len.to(device)), strict=True):
            hypotheses[i] = vocab.decode(ids)
    return sacrebleu.corpus_bleu(hypotheses, [[vocab.decode(t.tolist()) for t in pairs.tgt]]).score


def greedy(model: Backbone, src: Tensor, src_len: Tensor) -> list[list[int]]:
    """The most likely word at every step, without </s>."""
    encoded = model.encode(src, src_len)
    state, prev = model.start(encoded), src.new_full((src.shape[0],), BOS)
    words, finished = [], torch.zeros_like(prev, dtype=torch.bool)
    for _ in range(2 * src.shape[1] + 10):
        state, context, hidden = model.step(prev, state, encoded)
        logits = model.readout(prev, hidden, context)
        logits[:, [PAD, BOS, UNK]] = -math.inf
        prev = logits.argmax(-1).masked_fill(finished, EOS)
        words.append(prev)
        finished |= prev == EOS
        if bool(finished.all()):
            break
    return [row[: row.index(EOS)] if EOS in row else row for row in torch.stack(words, 1).tolist()]
