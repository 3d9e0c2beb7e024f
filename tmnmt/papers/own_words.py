"""What the base itself says of the sentences that the session cache learns from.

With `cache_history = "own"` these fill the cache in training, as its own translations do at work in
Tu et al. 2018.
OURS: they are found once, greedily and without a cache, and kept.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from tmnmt.engine.beam_search import SearchSettings, beam_search
from tmnmt.keys.pair_keys import padded
from tmnmt.layers.combine import LayerInputs
from tmnmt.models.base import Backbone
from tmnmt.models.decoding import for_decoding
from tmnmt.progress import Progress
from tmnmt.training.answer_cache import read_kept, write_kept
from tmnmt.training.cache import Stretch
from tmnmt.training.checkpoint import digest_of
from tmnmt.training.retrieve import digest
from tmnmt.vocab import EOS, Vocabulary

FORMAT = 1
TOGETHER = 64  # sentences


def own_words(
    backbone: Backbone, vocab: Vocabulary, data: list[Stretch], path: Path, device: torch.device
) -> list[Stretch]:
    """The same stretches, each segment with the base's translation in place of its reference.

    Read from `path` where that holds them; else made, and kept there."""
    segments = [segment for stretch in data for segment in stretch]
    header = {"format": FORMAT, "base": digest_of(backbone), "pairs": digest(segments)}
    translations = read_kept(path, header, len(segments), _text)
    if translations is None:
        translations = _greedy(backbone, vocab, [segment.src for segment in segments], device)
        write_kept(path, header, translations)
    translated = iter(
        [replace(segment, tgt=tgt) for segment, tgt in zip(segments, translations, strict=True)]
    )
    return [[next(translated) for _ in stretch] for stretch in data]


def _text(answer: object) -> str:
    if not isinstance(answer, str):
        raise TypeError(f"{answer!r} is no text")
    return answer


def _greedy(
    backbone: Backbone, vocab: Vocabulary, sources: list[str], device: torch.device
) -> list[str]:
    """The best word after the best word, sentences of like length together."""
    fast = for_decoding(backbone)
    ids = [[*vocab.encode_source(source), EOS] for source in sources]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    translations, settings = [""] * len(ids), SearchSettings(beam=1)
    with (
        Progress("translating for the session cache", "sentences", len(ids)) as progress,
        torch.inference_mode(),
    ):
        for start in range(0, len(order), TOGETHER):
            numbers = order[start : start + TOGETHER]
            rows = [ids[i] for i in numbers]
            encoded = fast.encode(
                padded(rows, device), torch.tensor([len(row) for row in rows], device=device)
            )
            hypotheses = beam_search(
                fast, None, encoded, LayerInputs(), [2 * len(row) + 10 for row in rows], settings
            )
            for i, best in zip(numbers, hypotheses, strict=True):
                translations[i] = vocab.decode(best.ids)
            progress.advance(len(numbers))
    return translations
