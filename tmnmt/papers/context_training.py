"""Training of context networks: a finished base learns to read other sentences of the document.

Of the sentences before, the sources are read, in order; what stands before a document's first
sentence is nothing. A segment without a document has no sentences before it.

A network that reads all around a sentence learns from stretches of documents: of at most 100
segments (OURS), each as if it were a document. As in the authors' code, what it remembers of
targets is what the base itself said of the sentences, and is computed once, before anything is
learned."""

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
from tmnmt.models.base import Injectable, Place, SurroundingText
from tmnmt.models.injected import Network
from tmnmt.papers.context_network import (
    ContextNetwork,
    InDocument,
    context_network_of,
    surveyed,
)
from tmnmt.papers.network_config import ContextConfig
from tmnmt.papers.network_training import InjectedPart, expect_two, run_part
from tmnmt.papers.own_words import own_words
from tmnmt.papers.reading import Change, Keep, ignore, reading_of, unchanged
from tmnmt.training.cache import elsewhere, stretches
from tmnmt.training.checkpoint import digest_of
from tmnmt.training.memory_data import Documents, fits, fitting
from tmnmt.training.parts import Unit
from tmnmt.training.teacher_forcing import ForcedBatch, gold_log_probs
from tmnmt.training.tm import evenly
from tmnmt.training.trainers import NetworkOutcome
from tmnmt.vocab import Vocabulary

STRETCH = 100  # segments of a document that are read around one, as of the session cache


class Example(NamedTuple):
    """A sentence in its document."""

    src: str
    tgt: str
    document: str
    place: Place


def train_context(
    backbone: Injectable,
    vocab: Vocabulary,
    documents: Documents,
    dev_documents: Documents,
    folder: Path,
    config: ContextConfig,
    resume: bool = False,
    start: Network | None = None,
) -> NetworkOutcome:
    """Trains a context network for a finished base; checkpoints and log go to `folder`. The caller
    saves it, and with it the base, whose decoder may have learned. `start`: a network of the same
    kind that learns on.

    Afterwards `backbone` is in evaluation mode and asks for no gradients. Raises UsageError where a
    run is there and `resume` is not given, DataError where there is nothing to learn from."""
    make_folder(folder)
    backbone.eval().requires_grad_(False)
    torch.manual_seed(config.seed)
    network = (
        start if isinstance(start, ContextNetwork) else context_network_of(config.kind(), backbone)
    )
    network = network.to(next(backbone.parameters()).device)
    parts = (
        ("train", documents, config.sentences),
        ("dev", dev_documents, config.dev_segments),
    )
    train, dev = (
        examples_for(
            network, backbone, vocab, part, config, limit, folder / f"said-{name}.jsonl.gz"
        )
        for name, part, limit in parts
    )
    for label, sample in (("to learn from", train), ("held out", dev)):
        if not any(example.place for example in sample):
            raise DataError(
                f"context: no segment {label} has another before it in its document; memory files "
                "must say which document a segment is of"
            )
    part = ContextPart(network, backbone, vocab, train, dev, config)
    begun_from = f"{digest_of(backbone, network)} {json.dumps(asdict(config.kind()))}"
    label = "a trained context network"
    rate = config.learning_rate
    standing = run_part(part, folder, config.epochs, rate, config, resume, begun_from, label)
    backbone.eval().requires_grad_(False)
    network.eval().requires_grad_(False)
    reading = InDocument(backbone, network)
    return NetworkOutcome(reading, standing.at_start["criterion"], standing.best)


def examples_for(
    network: ContextNetwork,
    backbone: Injectable,
    vocab: Vocabulary,
    documents: Documents,
    config: ContextConfig,
    limit: int,
    path: Path,
) -> list[Example]:
    """About `limit` of the segments, with what the network reads of their documents. What the base
    says of them is kept in `path`, where the network reads it."""
    if network.reads_document:
        return surrounded(backbone, documents, vocab, config, limit, path)
    return examples(documents, vocab, network.sentences, config.max_subwords, limit)


def examples(
    documents: Documents, vocab: Vocabulary, sentences: int, max_subwords: int, limit: int
) -> list[Example]:
    """About `limit` of the segments that are short enough, evenly, each with the subwords of at
    most so many `sentences` before it, which are cut at `max_subwords`."""
    places = [
        (document, position)
        for document in documents
        for position, segment in enumerate(document)
        if fits(segment.src, vocab, max_subwords) and fits(segment.tgt, vocab, max_subwords)
    ]
    sample = []
    for document, position in (places[i] for i in evenly(len(places), limit)):
        segment = document[position]
        texts = (
            [previous.src for previous in document[max(position - sentences, 0) : position]]
            if segment.document
            else []
        )
        context = [vocab.encode_source(text)[:max_subwords] for text in texts]
        sample.append(Example(segment.src, segment.tgt, segment.document, context))
    return sample


def surrounded(
    backbone: Injectable,
    documents: Documents,
    vocab: Vocabulary,
    config: ContextConfig,
    limit: int,
    path: Path,
) -> list[Example]:
    """At most `limit` segments, in stretches, each with all others of its stretch. What the base
    says of them is kept in `path`."""
    usable = [document for document in documents if document and document[0].document]
    selection = stretches(fitting(usable, vocab, config.max_subwords), STRETCH, limit, config.seed)
    device = next(backbone.parameters()).device
    sample = []
    for stretch, translated in zip(
        selection, own_words(backbone, vocab, selection, path, device), strict=True
    ):
        pairs = [
            (vocab.encode_source(segment.src), vocab.encode(segment.tgt)[: config.max_subwords])
            for segment in translated
        ]
        document = surveyed(backbone, pairs, device)
        sample += [
            Example(segment.src, segment.tgt, segment.document, SurroundingText(document, position))
            for position, segment in enumerate(stretch)
        ]
    return sample[:limit]


def transplanted(place: Place, replacement: Place) -> Place:
    """What a sentence is read with in the place of another one: only what stands around is the
    other document's, the sentence that asks for it stays."""
    if isinstance(place, SurroundingText) and isinstance(replacement, SurroundingText):
        return place.in_place_of(replacement)
    return replacement


class ContextPart(InjectedPart[Example]):
    """The network on sentences of everywhere, and the decoder where it learns too."""

    name = "context"
    network: ContextNetwork

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        """None for sentences of which none has any before it, where the base stays as it is."""
        if self.config.tunes_decoder or any(self.train[i].place for i in unit[1:]):
            yield from super().losses(unit)

    def loss(self, batch: Sequence[Example]) -> tuple[Tensor, int]:
        log_p = self.log_probs(batch, [example.place for example in batch])
        return -log_p.sum(), len(log_p)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Dev's loss, and what the network reads; and the loss with what is read for sentences of
        other documents in place of what is read for these: how much of a gain is the document's.
        The last where there are two."""
        self.backbone.eval()
        reading = reading_of(self)
        losses = reading.figures | {"criterion": reading.loss}
        partners = elsewhere(
            [example.document for example in self.dev], distance=len(self.dev) // 2
        )
        if partners is None:
            return losses
        total, words = 0.0, 0
        for unit in self.dev_units:
            batch = [self.dev[i] for i in unit]
            places = [transplanted(self.dev[i].place, self.dev[partners[i]].place) for i in unit]
            log_p = self.log_probs(batch, places)
            total, words = total - float(log_p.sum()), words + len(log_p)
        return losses | {"of another document": total / words}

    def dev_forced(self, unit: Sequence[int], change: Change, keep: Keep) -> ForcedBatch:
        batch = [self.dev[i] for i in unit]
        return self._forced(batch, [example.place for example in batch], change, keep)

    def has_text(self, unit: Sequence[int]) -> Tensor:
        return torch.tensor([self.network.has_text(self.dev[i].place) for i in unit])

    def _forced(
        self,
        batch: Sequence[Example],
        places: Sequence[Place],
        change: Change = unchanged,
        keep: Keep = ignore,
    ) -> ForcedBatch:
        """Contexts and hidden states along the references, where `places` say what is read, with
        what is fed in place of what the network feeds."""
        src, lengths, tgt = self.coded(batch)
        encoded = self.backbone.encode(src, lengths)
        memory = self.network.read(self.backbone.embed, places)
        inject = None
        if memory is not None:
            inject = change(self.network.injector(self.backbone.embed, memory, keep))
        return ForcedBatch(tgt, *self.backbone.forced(encoded, tgt, inject))

    def log_probs(self, batch: Sequence[Example], places: Sequence[Place]) -> Tensor:
        """log p of every reference word (n,), where `places` say what is read."""
        forced = self._forced(batch, places)
        return gold_log_probs(self.backbone, forced, forced.hiddens[forced.real], forced.real)


def context_reader(
    model: InDocument, vocab: Vocabulary, documents: Documents, config: ContextConfig, path: Path
) -> ContextPart:
    """A base with its network, and about `config.dev_segments` segments along which it is measured
    what the network reads. What the base says of them is kept in `path`."""
    network, base = model.network, model.base
    dev = examples_for(network, base, vocab, documents, config, config.dev_segments, path)
    return ContextPart(network, base, vocab, [], expect_two(dev), config)
