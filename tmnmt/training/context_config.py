"""What a context network is, and how it learns."""

from __future__ import annotations

from dataclasses import dataclass

from tmnmt.config.bounds import AboveZero, Count, Seed
from tmnmt.models.document_context import ContextForm, ContextKind


@dataclass(frozen=True)
class ContextConfig:
    """Sizes and rates are OURS, and those of reference networks, so that both can be compared."""

    form: ContextForm = "attended"  # LC-NMT; auxiliary, gated: CS-NMT
    size: Count = 256  # of the encoders of previous sentences
    hidden: Count = 256  # units of the attention
    # the decoder learns too. The papers train all; here encoder and embedding stay, as they do
    # with a reference network
    decoder: bool = True
    sentences: Count = 20_000  # that the network learns from
    epochs: Count = 2  # the best on dev is kept
    learning_rate: AboveZero = 1e-3  # of the network
    base_learning_rate: AboveZero = 1e-4  # of the decoder
    batch_tokens: Count = 2000  # padded target or source tokens of one update
    max_subwords: Count = 80  # of a sentence on either side; longer ones are not trained on
    dev_segments: Count = 500  # of all dev documents
    validate_every: Count = 200  # updates
    checkpoint_every: Count = 50  # updates
    seed: Seed = 1

    def kind(self) -> ContextKind:
        """The network that is asked for."""
        return ContextKind(self.form, self.size, self.hidden)

    @property
    def tunes_decoder(self) -> bool:
        """Whether the base's decoder learns with the network."""
        return self.decoder
