"""The table [memory] of a training configuration: which memory layers, what they learn from, and
for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tmnmt.config.bounds import (
    AboveZero,
    AtLeastTwo,
    AtLeastZero,
    Count,
    Logit,
    NotNegative,
    Seed,
    Share,
    ShareBelowOne,
)
from tmnmt.config.options import Select, Selection, Similarity
from tmnmt.errors import UsageError
from tmnmt.trained_layers.cache import GATE_START, CacheFusion, CacheGate, CacheMatching, Combining
from tmnmt.trained_layers.coverage import CoverageKind
from tmnmt.trained_layers.tm import FusionGate, Matching
from tmnmt.training.retrieve import Shares

History = Literal["confirmed", "own"]


@dataclass(frozen=True)
class MemoryConfig:
    """The table [memory]."""

    copy: bool = True
    fusion: bool = True
    cache: bool = True
    matching: Matching = "diagonal"  # M: identity, diagonal or full
    coverage: CoverageKind = "gated"  # off, plain, gated (only what was used counts) or gru
    # one for every element of the state, or scalar as in the paper
    fusion_gate: FusionGate = "elements"
    # gates see how good the pairs are and how well they match; false: f(c, s, z~) (the paper)
    gate_signs: bool = True
    # of better pairs, exact matches and words that follow; false: the paper's energy
    preferences: bool = True
    # and, of those, of the one after what was just read; false: of none more than the others
    pointer: bool = True
    # fusion and cache blend words with the states that led to them; false: states only (papers)
    words: bool = True
    # words are mixed in (Tu et al., section 4.4); or deep: their states
    cache_fusion: CacheFusion = "shallow"
    # OURS: contexts and hidden states; learned: footnote 2; dot, as in the paper
    cache_matching: CacheMatching = "joint"
    cache_rank: Count = 64  # joint: numbers of a slot
    cache_combining: Combining = "interpolate"  # or add to the state, gated (footnote 3)
    # of the state, one for every element as in the paper, or scalar (OURS); deep
    cache_gate: CacheGate = "elements"
    # the bias of its gate to begin with, as a logit: OURS, almost closed; 0: half open
    cache_gate_start: Logit = GATE_START
    # OURS: slots are preferred whose word came after the word just written
    cache_follows: bool = True
    cache_signs: bool = True  # OURS: the gate of a shallow cache is shown how well the slots match
    # OURS: an empty slot takes, for the model, what is unlike this position; shallow only
    cache_empty: bool = True
    # what it is filled with: references, or own: what the base says; the paper does not tell
    cache_history: History = "confirmed"
    k: Count = 4  # pairs a sentence, as in decoding
    # which of the pairs found, as in decoding: topk, greedy, walk or contrastive
    select: Select = "topk"
    # what ranks them: fuzzy, or bleu over the 100 best by fuzzy score
    similarity: Similarity = "fuzzy"
    # of contrastive: how much likeness to the pairs taken counts against; 0.1
    alpha: AtLeastZero | None = None
    threshold: Share = 0.5  # fuzzy score of a pair that decoding would use
    # sentences without such a pair are shown pairs down to this score, to learn doubt
    weak_threshold: Share = 0.3
    # of the sentences: so that pairs of little use, or of none, do no harm
    share_weak: ShareBelowOne = 0.3
    # of the sentences, anew in every epoch, get random pairs: the gate learns to close
    share_irrelevant: ShareBelowOne = 0.2
    # OURS: of the sentences, anew in every epoch, get their own pair too: exact matches come back
    share_exact: ShareBelowOne = 0.1
    # the base is trained with the TM: the keys of the pairs are differentiated through; where no
    # TM is asked for, with the session cache
    end_to_end: bool = False
    # end to end, of the sentences get no pair: the base stays good without a memory
    share_no_pair: ShareBelowOne = 0.2
    # end to end, of the base: a tenth of what it was trained with
    base_learning_rate: AboveZero = 1e-4
    # of the sentences get pairs with wrong words; 0, since no gain was shown
    share_noise: ShareBelowOne = 0.0
    # sentences the TM is trained on: some 0.7 M subwords for 0.5 M parameters
    max_pairs: Count = 20_000
    tm_epochs: Count = 2  # the best on dev is kept
    # slots, in decoding too where nothing is said; 25 in the paper's experiments
    cache_size: Count = 1000
    # a word that has a slot is averaged into it, as in the paper; in decoding too
    cache_overwrite: bool = False
    cache_pairs: Count = 20_000  # sentences the cache is trained on
    cache_epochs: Count = 1  # the paper has 5
    # OURS: longest part of a document with one cache: those side by side are of one length
    stretch: AtLeastTwo = 100
    documents_together: Count = 32
    batch_tokens: Count = 2000  # padded target or source tokens of one update of the TM
    max_subwords: Count = 100  # of a sentence on either side; longer ones are not trained on
    # of all dev documents, for the TM; as many in stretches for the cache
    dev_segments: Count = 600
    learning_rate: AboveZero = 1e-3  # of the TM
    cache_learning_rate: AboveZero = 2e-3  # of the session cache; a deep one wants less: 5e-4
    validate_every: Count = 200  # updates
    checkpoint_every: Count = 50  # updates
    # updates of the gates of TM and cache together; docs/results-training.md has what it brought
    tune_gates: NotNegative = 0
    seed: Seed = 1

    def selection(self) -> Selection:
        """Which of the pairs found are taken. Raises UsageError where alpha does not go with
        `select`."""
        return Selection(self.select, self.similarity, self.alpha)

    def shares(self) -> Shares:
        """What a sentence is shown in an epoch."""
        no_pair = self.share_no_pair if self.end_to_end else 0.0
        return Shares(
            self.threshold, self.share_irrelevant, self.share_exact, self.share_noise, no_pair
        )


def check(config: MemoryConfig) -> None:
    """Raises UsageError for values that do not go together."""
    try:
        config.selection()
    except UsageError as error:
        raise UsageError(f"[memory] {error}") from error
    if not (config.copy or config.fusion or config.cache):
        raise UsageError("[memory]: copy, fusion and cache are all false; nothing is to be trained")
    if sum(config.shares()[1:]) > 1:
        raise UsageError(
            "[memory] share_irrelevant, share_exact, share_noise and share_no_pair are more than "
            "1 together"
        )
    if config.cache and config.cache_fusion == "deep" and config.cache_matching == "joint":
        raise UsageError(
            '[memory] cache_matching = "joint" keeps no states, which a deep cache blends; name '
            "dot or learned"
        )
    if config.tune_gates and config.cache_history != "confirmed":
        raise UsageError(
            '[memory] tune_gates fills the cache with references: cache_history must be "confirmed"'
        )
    if config.tune_gates and not (config.cache and (config.copy or config.fusion)):
        raise UsageError("[memory] tune_gates needs cache and one of copy and fusion")
