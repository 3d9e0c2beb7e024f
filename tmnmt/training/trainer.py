"""The training loop of the base model: exact to resume, the same on one process and on several.

Every random choice is a function of (seed, epoch) or (seed, update, process), so that a run which was interrupted
goes on exactly as if it had not been.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import sacrebleu
import torch
import torch.distributed as dist
from torch import Tensor

from tmnmt.errors import DataError, UsageError
from tmnmt.models.base import Trainable
from tmnmt.training import checkpoint
from tmnmt.training.config import TrainingConfig
from tmnmt.training.data import Pairs, token_batches
from tmnmt.vocab import BOS, EOS, PAD, UNK, Vocabulary

log = logging.getLogger(__name__)

ALL_DONE = "all updates done"


@dataclass
class Progress:
    """Where a run stands; saved with every checkpoint."""

    update: int = 0
    epoch: int = 0
    batch: int = 0  # batches of this epoch already used
    tokens: int = 0  # target tokens seen
    seconds: float = 0.0  # of training, over all sessions
    best: float = math.inf  # dev loss, nats a token
    best_bleu: float = 0.0
    without_gain: int = 0  # validations since the best
    stopped: str = ""


class Trainer:
    """Trains `model` in place; `folder` gets last.safetensors, best.safetensors and train.jsonl."""

    def __init__(
        self, model: Trainable, vocab: Vocabulary, train: Pairs, dev: Pairs, config: TrainingConfig, folder: Path
    ) -> None:
        self.model, self.vocab, self.train_pairs, self.dev, self.config = model, vocab, train, dev, config
        self.folder, self.progress = folder, Progress()
        self.device = next(model.parameters()).device
        self.rank, self.processes = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        model.dtype = torch.bfloat16 if config.precision == "bf16" else None
        self.parameters = list(model.parameters())
        self.optimiser = torch.optim.Adam(self.parameters, lr=config.learning_rate, betas=(0.9, 0.98), fused=True)

    def run(self) -> Progress:
        """Trains until the updates are done or dev stops improving. Ctrl-C saves a checkpoint first."""
        progress, config = self.progress, self.config
        try:
            for batch in self._batches():
                start = time.monotonic()
                loss, tokens = self.update(batch)
                progress.update += 1
                progress.batch += 1
                progress.tokens += tokens
                progress.seconds += time.monotonic() - start
                if progress.update % 50 == 0:
                    self._report(loss)
                if progress.update % config.validate_every == 0 or progress.update == config.updates:
                    self._validate()
                if progress.update % config.checkpoint_every == 0 or progress.stopped:
                    self.save("last")
                if progress.stopped:
                    break
        except KeyboardInterrupt:
            self.save("last")
            raise
        self.save("last")
        return progress

    def _batches(self) -> Iterator[list[list[int]]]:
        """The batches of one update after the other."""
        progress, least = self.progress, max(self.config.accumulate, self.processes)
        while progress.update < self.config.updates and not progress.stopped:
            tokens = self.config.batch_tokens // least
            batches = token_batches(self.train_pairs, tokens, self.config.seed + progress.epoch)
            n = round(least * min(self.config.growth**progress.epoch, self.config.grown))
            groups = [batches[i : i + n] for i in range(0, len(batches) - n + 1, n)]
            if not groups:
                raise UsageError(f"batches of training pairs: {len(batches)}, fewer than one update's {n}")
            for group in groups[progress.batch :]:
                if progress.update >= self.config.updates:
                    return
                yield group
            progress.epoch, progress.batch = progress.epoch + 1, 0

    def update(self, group: list[list[int]]) -> tuple[float, int]:
        """One step of Adam on a group of batches, shared by the processes -> loss in nats a token, target tokens."""
        self.model.train()
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
        for entry in self.optimiser.param_groups:
            entry["lr"] = self.learning_rate(self.progress.update)
        self.optimiser.step()
        self.optimiser.zero_grad()
        return float(totals[0] / totals[1]), int(totals[1])

    def _expect_finite(self, number: float) -> None:
        if not math.isfinite(number):
            raise DataError(f"diverged at update {self.progress.update + 1}; a smaller learning_rate helps")

    def _sum_over_processes(self, totals: Tensor) -> None:
        if self.processes == 1:
            return
        flat = torch.cat([totals, *(p.grad.flatten() for p in self.parameters if p.grad is not None)])
        dist.all_reduce(flat)
        totals.copy_(flat[:2])
        at = 2
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad.copy_(flat[at : at + parameter.numel()].view_as(parameter))
                at += parameter.numel()

    def learning_rate(self, update: int) -> float:
        """Linear warm-up, constant or falling with 1 / sqrt(update), linear decay over the last share of the run."""
        config = self.config
        falling = math.sqrt(config.warmup / max(update + 1, config.warmup)) if config.inverse_sqrt else 1.0
        left = (config.updates - update) / max(config.decay * config.updates, 1)
        return config.learning_rate * min((update + 1) / config.warmup, falling, left)

    def _validate(self) -> None:
        progress = self.progress
        loss = dev_loss(self.model, self.dev, self.config.batch_tokens)
        self._expect_finite(loss)
        bleu = dev_bleu(self.model, self.dev, self.vocab)
        better = loss < progress.best
        progress.without_gain = 0 if better else progress.without_gain + 1
        if better:
            progress.best, progress.best_bleu = loss, bleu
            self.save("best")
        self._log({"dev_loss": loss, "dev_bleu": bleu, "best": float(better)})
        log.info("update %d: dev loss %.4f, BLEU %.2f%s", progress.update, loss, bleu, " (best)" if better else "")
        if progress.update >= self.config.updates:
            progress.stopped = ALL_DONE
        elif progress.without_gain >= self.config.patience:
            progress.stopped = f"dev loss has not improved for {progress.without_gain} validations"

    def _report(self, loss: float) -> None:
        progress = self.progress
        rate = progress.tokens / max(progress.seconds, 1e-9)
        left = (self.config.updates - progress.update) * progress.seconds / progress.update / 60
        log.info(
            "update %d of %d, epoch %d: loss %.3f, %.0f target tokens/s, at most %.0f min left",
            progress.update, self.config.updates, progress.epoch + 1, loss, rate, left,
        )  # fmt: skip
        self._log({"loss": loss, "tokens_per_second": rate})

    def _log(self, entry: dict[str, float]) -> None:
        if self.rank:
            return
        progress = self.progress
        at: dict[str, float] = {"update": progress.update, "epoch": progress.epoch, "tokens": progress.tokens}
        rate = self.learning_rate(progress.update)
        at |= {"seconds": round(progress.seconds, 1), "learning_rate": rate}
        with (self.folder / "train.jsonl").open("a", encoding="utf-8") as out:
            out.write(json.dumps(at | {k: round(v, 5) for k, v in entry.items()}) + "\n")

    def save(self, name: str) -> None:
        """The checkpoint NAME.safetensors."""
        if not self.rank:
            notes = {"progress": json.dumps(asdict(self.progress))}
            checkpoint.save(self.folder / f"{name}.safetensors", self.model, self.optimiser, notes)

    def restore(self, name: str = "last") -> None:
        """Takes up a checkpoint: the run goes on as if it had not been interrupted."""
        notes = checkpoint.load(self.folder / f"{name}.safetensors", self.model, self.optimiser)
        self.progress = Progress(**json.loads(notes["progress"]))
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
    for at in range(0, len(order), 64):
        chosen = order[at : at + 64]
        src, src_len, _ = pairs.take(chosen)
        for i, ids in zip(chosen, greedy(model, src.to(device), src_len.to(device)), strict=True):
            hypotheses[i] = vocab.decode(ids)
    return sacrebleu.corpus_bleu(hypotheses, [[vocab.decode(t.tolist()) for t in pairs.tgt]]).score


def greedy(model: Trainable, src: Tensor, src_len: Tensor) -> list[list[int]]:
    """The most likely word at every step, without </s>."""
    encoded = model.encode(src, src_len)
    state, prev = model.start(encoded), src.new_full((src.shape[0],), BOS)
    words, done = [], torch.zeros_like(prev, dtype=torch.bool)
    for _ in range(2 * src.shape[1] + 10):
        state, context, hidden = model.step(prev, state, encoded)
        logits = model.readout(prev, hidden, context)
        logits[:, [PAD, BOS, UNK]] = -math.inf
        prev = logits.argmax(-1).masked_fill(done, EOS)
        words.append(prev)
        done |= prev == EOS
        if bool(done.all()):
            break
    return [row[: row.index(EOS)] if EOS in row else row for row in torch.stack(words, 1).tolist()]
