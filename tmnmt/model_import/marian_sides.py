"""Whether the two sentencepiece models of a Marian model are on their right sides. Where both sides
share one table of words, nothing else in the files says so: the model itself has to be asked."""

from __future__ import annotations

from collections.abc import Mapping

import sentencepiece
import torch

from tmnmt.models.base import Backbone
from tmnmt.vocab import BOS, EOS, PairVocabulary

PROBES, LENGTH = 32, 12  # sources that are made up, and their pieces
FEWEST = 20  # pieces that one side alone must have, for an answer
TIMES = 10  # as likely the words of one side are to be those that the model writes


def fit_better_exchanged(
    spms: tuple[bytes, bytes], numbers: tuple[Mapping[str, int], Mapping[str, int]]
) -> bool:
    """Whether, of sides with a table of words each, each sentencepiece model has more of its pieces
    in the other side's table.

    spms: the sentencepiece models of source and target.
    numbers: the tables of source and target."""
    shares = [[_share(_pieces(spm), table) for table in numbers] for spm in spms]
    return shares[0][1] > shares[0][0] and shares[1][0] > shares[1][1]


@torch.no_grad()
def writes_its_source(backbone: Backbone, vocab: PairVocabulary, spms: tuple[bytes, bytes]) -> bool:
    """Whether, of sides that share a table of words, the model writes words that the sentencepiece
    model of the source alone has, and not those of the target. It is asked for the first word
    behind made-up sources of pieces of both sides, always the same ones.

    backbone: the model.
    vocab: its vocabulary.
    spms: the sentencepiece models of source and target."""
    piece_numbers = {vocab.piece(number): number for number in range(len(vocab))}
    source, target = (
        {piece_numbers[piece] for piece in _pieces(spm) if piece in piece_numbers} for spm in spms
    )
    sides = [sorted(source - target), sorted(target - source)]
    if min(map(len, sides)) < FEWEST:
        return False
    draw = torch.Generator().manual_seed(1)
    candidates = torch.tensor([*sides[0], *sides[1]])
    weights = torch.tensor([1 / len(side) for side in sides for _ in side])
    src = candidates[torch.multinomial(weights.expand(PROBES, -1), LENGTH, True, generator=draw)]
    src = torch.cat([src, torch.full((PROBES, 1), EOS)], 1)
    encoded = backbone.encode(src, torch.full((PROBES,), LENGTH + 1))
    contexts, hiddens = backbone.forced(encoded, torch.full((PROBES, 1), EOS))
    logits = backbone.readout(torch.full((PROBES, 1), BOS), hiddens, contexts)
    likely = torch.softmax(logits[:, 0].double(), -1)
    of_source, of_target = (likely[:, side].sum(-1) for side in sides)
    return bool((of_source > TIMES * of_target).float().mean() > 0.9)


def _pieces(spm: bytes) -> set[str]:
    """The pieces that stand for text."""
    model = sentencepiece.SentencePieceProcessor(model_proto=spm)
    return {
        model.id_to_piece(number)
        for number in range(len(model))
        if not (model.is_byte(number) or model.is_control(number) or model.is_unknown(number))
    }


def _share(pieces: set[str], table: Mapping[str, int]) -> float:
    return sum(piece in table for piece in pieces) / max(1, len(pieces))
