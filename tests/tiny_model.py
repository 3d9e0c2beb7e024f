"""A model folder with every memory, made in seconds: a tiny base that has learnt six pairs by
heart.

Its memories are untrained: they attend by the plain inner product and open their gates by a
quarter, which is enough to see who reads whose memory, and when."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import save_model
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.segments import Segment
from tmnmt.trained_layers.cache import CacheKind, SessionCache
from tmnmt.trained_layers.tm import TranslationMemory
from tmnmt.vocab import EOS, PAD, Vocabulary

PAIRS = [
    ("The Commission shall inform the Member States.", "La Commission informe les États membres."),
    (
        "This Regulation shall enter into force today.",
        "Le présent règlement entre en vigueur aujourd'hui.",
    ),
    (
        "This Decision is addressed to the Member States.",
        "Les États membres en sont destinataires.",
    ),
    ("Having regard to the proposal from the Commission,", "vu la proposition de la Commission,"),
    (
        "Article 2 of that Directive is replaced by the following:",
        "L'article 2 de ladite directive est remplacé par :",
    ),
    ("It shall apply from 1 January 1996.", "Il est applicable à partir du 1er janvier 1996."),
]
HIDDEN = 32
SIZES = {"embedding": 16, "hidden": HIDDEN, "attention": 16, "dropout": 0.0}


def segments() -> list[Segment]:
    return [Segment(src, tgt, "tiny", position) for position, (src, tgt) in enumerate(PAIRS)]


def write_tiny_model(folder: Path, memories: bool = True, cache: CacheKind | None = None) -> Path:
    """A model folder at `folder`; without `memories` a plain one."""
    vocab, backbone = trained()
    save_model(
        folder,
        backbone,
        vocab,
        {"src_lang": "en", "tgt_lang": "fr", "max_subwords": 40, "model": SIZES},
    )
    if memories:
        torch.manual_seed(7)
        parts = MemoryLayers(
            TranslationMemory(HIDDEN, HIDDEN, 16),
            SessionCache(HIDDEN, HIDDEN, 16, cache or CacheKind()),
        )
        parts.save(folder / "memory.safetensors")
    return folder


@cache
def trained() -> tuple[Vocabulary, RNNsearch]:
    """The vocabulary and the base, trained once for all tests of a run."""
    torch.manual_seed(5)
    vocab = Vocabulary.train([text for pair in PAIRS for text in pair] * 3, 420)
    backbone = RNNsearch(len(vocab), **SIZES)  # type: ignore[arg-type]
    coded = [[[*vocab.encode(text), EOS] for text in side] for side in zip(*PAIRS, strict=True)]
    src, tgt = (padded(side) for side in coded)
    src_len = torch.tensor([len(ids) for ids in coded[0]])
    optimiser = torch.optim.Adam(backbone.parameters(), lr=0.02)
    for _ in range(60):
        optimiser.zero_grad()
        (backbone.loss(src, src_len, tgt) / (tgt != PAD).sum()).backward()
        optimiser.step()
    return vocab, backbone


def padded(rows: list[list[int]]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])
