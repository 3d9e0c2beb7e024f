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
from tmnmt.models.base import Around, Injectable, Place
from tmnmt.papers.context_network import (
    ContextNetwork,
    InDocument,
    context_network_of,
    surveyed,
)
from tmnmt.papers.network_config import ContextConfig
from tmnmt.papers.network_training import InjectedPart, run_part
from tmnmt.papers.own_words import own_words
from tmnmt.training.cache import elsewhere, stretches
from tmnmt.training.checkpoint import digest_of
from tmnmt.training.forced import ForcedBatch, gold_log_probs
from tmnmt.training.memory_data import Documents, fits, fitting
from tmnmt.training.parts import Unit
from tmnmt.training.tm import evenly
from tmnmt.training.trainers import Learned
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
    parts = (
        ("train", documents, config.sentences),
        ("dev", dev_documents, config.dev_segments),
    )
    train, dev = (
        surrounded(backbone, part, vocab, config, most, folder / f"said-{name}.jsonl.gz")
        if network.around
        else examples(part, vocab, network.sentences, config.max_subwords, most)
        for name, part, most in parts
    )
    for what, own in (("to learn from", train), ("held out", dev)):
        if not any(one.place for one in own):
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
        made.append(Example(own.src, own.tgt, own.document, before))
    return made


def surrounded(
    backbone: Injectable,
    documents: Documents,
    vocab: Vocabulary,
    config: ContextConfig,
    most: int,
    path: Path,
) -> list[Example]:
    """At most `most` segments, in stretches, each with all others of its stretch. What the base
    says of them is kept in `path`."""
    named = [document for document in documents if document and document[0].document]
    chosen = stretches(fitting(named, vocab, config.max_subwords), STRETCH, most, config.seed)
    device = next(backbone.parameters()).device
    made = []
    for own, said in zip(chosen, own_words(backbone, vocab, chosen, path, device), strict=True):
        pairs = [
            (vocab.encode_source(one.src), vocab.encode(one.tgt)[: config.max_subwords])
            for one in said
        ]
        document = surveyed(backbone, pairs, device)
        made += [
            Example(one.src, one.tgt, one.document, Around(document, at))
            for at, one in enumerate(own)
        ]
    return made[:most]


def transplanted(place: Place, other: Place) -> Place:
    """What a sentence is read with in the place of another one: only what stands around is the
    other document's, the sentence that asks for it stays."""
    if isinstance(place, Around) and isinstance(other, Around):
        return place.in_place_of(other)
    return other


class ContextPart(InjectedPart[Example]):
    """The network on sentences of everywhere, and the decoder where it learns too."""

    name = "context"
    beside: ContextNetwork

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        """None for sentences of which none has any before it, where the base stays as it is."""
        if self.config.tunes_decoder or any(self.train[i].place for i in unit[1:]):
            yield from super().losses(unit)

    def loss(self, batch: Sequence[Example]) -> tuple[Tensor, int]:
        log_p = self.log_probs(batch, [one.place for one in batch])
        return -log_p.sum(), len(log_p)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Dev's loss; and with what is read for sentences of other documents in place of what is
        read for these: how much of a gain is the document's. The second where there are two."""
        self.backbone.eval()
        others = elsewhere([one.document for one in self.dev], ahead=len(self.dev) // 2)
        own, other, tokens = 0.0, 0.0, 0
        for unit in self.dev_units:
            batch = [self.dev[i] for i in unit]
            log_p = self.log_probs(batch, [one.place for one in batch])
            own, tokens = own - float(log_p.sum()), tokens + len(log_p)
            if others is not None:
                places = [transplanted(self.dev[i].place, self.dev[others[i]].place) for i in unit]
                other -= float(self.log_probs(batch, places).sum())
        controls = {"of another document": other / tokens} if others is not None else {}
        return controls | {"criterion": own / tokens}

    def log_probs(self, batch: Sequence[Example], places: Sequence[Place]) -> Tensor:
        """log p of every reference word (n,), where `places` say what is read."""
        src, lengths, tgt = self.coded(batch)
        reading = InDocument(self.backbone, self.beside)
        encoded = reading.in_document(reading.encode(src, lengths), places)
        forced = ForcedBatch(tgt, *reading.forced(encoded, tgt))
        return gold_log_probs(self.backbone, forced, forced.hiddens[forced.real], forced.real)
