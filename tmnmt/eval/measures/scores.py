"""BLEU and chrF with the signatures that make them comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sacrebleu


@dataclass(frozen=True)
class Scores:
    """In [0, 100], of a whole test set."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


def score(hypotheses: Sequence[str], references: Sequence[str]) -> Scores:
    """The scores of as many hypotheses as references, one reference each."""
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    of_bleu = bleu.corpus_score(list(hypotheses), [list(references)])
    of_chrf = chrf.corpus_score(list(hypotheses), [list(references)])
    return Scores(
        of_bleu.score, of_chrf.score, str(bleu.get_signature()), str(chrf.get_signature())
    )


def closeness(hypothesis: str, reference: str) -> float:
    """chrF of one segment, in [0, 100]: for finding telling examples."""
    return float(sacrebleu.sentence_chrf(hypothesis, [reference]).score)
