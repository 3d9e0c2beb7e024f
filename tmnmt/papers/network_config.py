"""What a network is that is injected into a base, and how it learns: reference networks (the table
[reference] of a training configuration) and context networks."""

from __future__ import annotations

from dataclasses import dataclass

from tmnmt.config.bounds import AboveZero, AtLeastZero, Count, Seed, Share
from tmnmt.config.options import Form
from tmnmt.papers.context_network import ContextForm, ContextKind
from tmnmt.papers.reference_network import ReferenceKind

# as in the paper; the control of a bilingual network has its size
ANCHORS: dict[Form, int] = {"monolingual": 100, "bilingual": 30, "regression": 30}


@dataclass(frozen=True, kw_only=True)
class InjectedConfig:
    """How such a network learns. Rates are OURS, and the same for all, so that they can be
    compared."""

    decoder: bool = True  # the base's decoder learns too, where the network lets it
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

    @property
    def tunes_decoder(self) -> bool:
        """Whether the base's decoder learns with the network."""
        return self.decoder


@dataclass(frozen=True)
class ReferenceConfig(InjectedConfig):
    """The table [reference]. What the paper does not say is OURS; where it does, that is the
    default. The decoder learns with a monolingual network only (eq. 24)."""

    form: Form = "monolingual"  # M-RefNet; bilingual: B-RefNet; regression: its control
    anchors: Count | None = None  # 100 of a monolingual network, 30 of a bilingual one
    anchor_size: Count = 100  # bilingual
    hidden: Count = 256  # units of the scores; the paper does not say
    # l_alpha and l_beta of eq. 13, which the paper does not give
    far: AtLeastZero = 1.0
    near: AtLeastZero = 0.1
    anchor_sentences: Count = 20_000  # whose mean states anchors are found for
    anchor_epochs: Count = 60  # at most; found earlier where eq. 13 on held-out states is flat:
    anchor_gain: Share = 0.001  # where an epoch lowers it by less than this share,
    anchor_flat_epochs: Count = 5  # and so many in a row do
    anchor_batch: Count = 256  # sentences of an update
    anchor_learning_rate: AboveZero = 1e-3
    regression: AtLeastZero = 1.0  # lambda of eq. 25
    decay: AtLeastZero = 1e-4  # lambda_M of eq. 23, which the paper does not give

    def kind(self) -> ReferenceKind:
        """The network that is asked for."""
        anchors = self.anchors or ANCHORS[self.form]
        return ReferenceKind(self.form, anchors, self.hidden, self.anchor_size)

    @property
    def tunes_decoder(self) -> bool:
        return self.form == "monolingual" and self.decoder


@dataclass(frozen=True)
class ContextConfig(InjectedConfig):
    """A context network. Sizes are OURS. The papers train all; here encoder and embedding stay, as
    they do with a reference network."""

    form: ContextForm = "attended"  # LC-NMT; auxiliary, gated: CS-NMT
    size: Count = 256  # of the encoders of previous sentences
    hidden: Count = 256  # units of the attention

    def kind(self) -> ContextKind:
        """The network that is asked for."""
        return ContextKind(self.form, self.size, self.hidden)


Config = ReferenceConfig | ContextConfig
