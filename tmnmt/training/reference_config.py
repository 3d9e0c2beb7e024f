"""The table [reference] of a training configuration: which reference network, and how it learns."""

from __future__ import annotations

from dataclasses import dataclass

from tmnmt.config.bounds import AboveZero, AtLeastZero, Count, Seed
from tmnmt.config.options import Form
from tmnmt.models.reference import ReferenceKind

ANCHORS: dict[Form, int] = {"monolingual": 100, "bilingual": 30}  # as in the paper


@dataclass(frozen=True)
class ReferenceConfig:
    """The table [reference]. What the paper does not say is OURS; where it does, that is the
    default."""

    form: Form = "monolingual"  # M-RefNet; or bilingual: B-RefNet
    anchors: Count | None = None  # 100 of a monolingual network, 30 of a bilingual one
    anchor_size: Count = 100  # bilingual
    hidden: Count = 256  # units of the scores; the paper does not say
    # l_alpha and l_beta of eq. 13, which the paper does not give
    far: AtLeastZero = 1.0
    near: AtLeastZero = 0.1
    anchor_sentences: Count = 20_000  # whose mean states anchors are found for
    anchor_epochs: Count = 5
    anchor_batch: Count = 256  # sentences of an update
    anchor_learning_rate: AboveZero = 1e-3
    # monolingual: the decoder learns too, as in the paper (eq. 24); false: the base stays as it is
    decoder: bool = True
    regression: AtLeastZero = 1.0  # lambda of eq. 25
    decay: AtLeastZero = 1e-4  # lambda_M of eq. 23, which the paper does not give
    sentences: Count = 20_000  # that the network learns from
    epochs: Count = 2  # the best on dev is kept
    learning_rate: AboveZero = 1e-3  # of the network
    base_learning_rate: AboveZero = 1e-4  # of the decoder: a tenth of what it was trained with
    batch_tokens: Count = 2000  # padded target or source tokens of one update
    max_subwords: Count = 80  # of a sentence on either side; longer ones are not trained on
    dev_segments: Count = 500  # of all dev documents
    validate_every: Count = 200  # updates
    checkpoint_every: Count = 50  # updates
    seed: Seed = 1

    def kind(self) -> ReferenceKind:
        """The network that is asked for."""
        anchors = self.anchors or ANCHORS[self.form]
        return ReferenceKind(self.form, anchors, self.hidden, self.anchor_size)

    @property
    def tunes_decoder(self) -> bool:
        """Whether the base's decoder learns with the network."""
        return self.form == "monolingual" and self.decoder
