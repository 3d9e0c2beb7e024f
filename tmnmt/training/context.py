"""Training of context networks: a finished base learns to read the source sentences before its own.

The sources are those of the documents, in order; what stands before a document's first sentence is
nothing. A segment without a document has no sentences before it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from tmnmt.durable import make_folder
from tmnmt.errors import DataError
from tmnmt.models.base import Before, Injectable
from tmnmt.models.document_context import ContextNetwork, InDocument, context_network_of
from tmnmt.training.checkpoint import digest_of
from tmnmt.training.forced import ForcedBatch, gold_log_probs
from tmnmt.training.injected import InjectedPart, Learned, run_part
from tmnmt.training.injected_config import ContextConfig
from tmnmt.training.memory_data import Documents, fits
from tmnmt.training.parts import Unit
from tmnmt.training.tm import evenly
from tmnmt.vocab import Vocabulary


class Example(NamedTuple):
    """A sentence in its document."""

    src: str
    tgt: str
    before: Before


def train_context(
    backbone: Injectable,
    vocab: Vocabulary,
    documents: Documents,
    dev_documents: Documents,
    folder: Path,
    config: ContextConfig,
    resume: bool = False,
) -> Learned:
    """Trains a context network for a finished base; checkpoints and log go to `folder`. The caller
    saves it, and with it the base, whose decoder may have learned.

    Afterwards `backbone` is in evaluation mode and asks for no gradients. Raises UsageError where a
    run is there and `resume` is not given, DataError where there is nothing to learn from."""
    make_folder(folder)
    backbone.eval().requires_grad_(False)
    torch.manual_seed(config.seed)
    network = context_network_of(config.kind(), backbone)
    network = network.to(next(backbone.parameters()).device)
    train, dev = (
        examples(part, vocab, network.sentences, config.max_subwords, most)
        for part, most in ((documents, config.sentences), (dev_documents, config.dev_segments))
    )
    for what, own in (("to learn from", train), ("held out", dev)):
        if not any(one.before for one in own):
            raise DataError(
                f"context: no segment {what} has another before it in its document; memory files "
                "must say which document a segment is of"
            )
    part = ContextPart(network, backbone, vocab, train, dev, config)
    begun_from = f"{digest_of(backbone, network)} {json.dumps(asdict(config.kind()))}"
    what = "a trained context network"
    rate = config.learning_rate
    standing = run_part(part, folder, config.epochs, rate, config, resume, begun_from, what)
    backbone.eval().requires_grad_(False)
    network.eval().requires_grad_(False)
    reading = InDocument(backbone, network)
    return Learned(reading, standing.at_start["criterion"], standing.best)


def examples(
    documents: Documents, vocab: Vocabulary, sentences: int, max_subwords: int, most: int
) -> list[Example]:
    """About `most` of the segments that are short enough, evenly, each with the subwords of at most
    so many `sentences` before it, which are cut at `max_subwords`."""
    places = [
        (document, at)
        for document in documents
        for at, one in enumerate(document)
        if fits(one.src, vocab, max_subwords) and fits(one.tgt, vocab, max_subwords)
    ]
    made = []
    for document, at in (places[i] for i in evenly(len(places), most)):
        own = document[at]
        texts = [one.src for one in document[max(at - sentences, 0) : at]] if own.document else []
        before = [vocab.encode_source(text)[:max_subwords] for text in texts]
        made.append(Example(own.src, own.tgt, before))
    return made


class ContextPart(InjectedPart[Example]):
    """The network on sentences of everywhere, and the decoder where it learns too."""

    name = "context"
    beside: ContextNetwork

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        """None for sentences of which none has any before it, where the base stays as it is."""
        if self.config.tunes_decoder or any(self.train[i].before for i in unit[1:]):
            yield from super().losses(unit)

    def loss(self, batch: Sequence[Example]) -> tuple[Tensor, int]:
        log_p = self.log_probs(batch, [one.before for one in batch])
        return -log_p.sum(), len(log_p)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Dev's loss; and with what stands before other sentences in place of what stands before
        these: how much of a gain is the document's."""
        self.backbone.eval()
        own, other, tokens = 0.0, 0.0, 0
        for unit in self.dev_units:
            batch = [self.dev[i] for i in unit]
            elsewhere = [self.dev[(i + len(self.dev) // 2) % len(self.dev)].before for i in unit]
            log_p = self.log_probs(batch, [one.before for one in batch])
            own, tokens = own - float(log_p.sum()), tokens + len(log_p)
            other -= float(self.log_probs(batch, elsewhere).sum())
        return {"of another document": other / tokens, "criterion": own / tokens}

    def log_probs(self, batch: Sequence[Example], before: Sequence[Before]) -> Tensor:
        """log p of every reference word (n,), where `before` is what is read."""
        src, lengths, tgt = self.coded(batch)
        reading = InDocument(self.backbone, self.beside)
        encoded = reading.in_document(reading.encode(src, lengths), before)
        forced = ForcedBatch(tgt, *reading.forced(encoded, tgt))
        return gold_log_probs(self.backbone, forced, forced.hiddens[forced.real], forced.real)
