"""Finds which words of a source the words of a translation come from. This is what the decoder
looked at, and, as far as it copied, what the copied words come from.

    A = (1 - zeta) alpha + zeta sum over positions of q A_pair

Here alpha is the attention along the translation, and zeta and q are the gate and the weights with
which the pairs were read. A_pair leads from a target word of a pair to its source word, by the
attention along that pair, and from there to the word of the query, by the alignment behind their
fuzzy score.

T, S: words, numbers and marks (`token_spans`) of target and source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

from tmnmt.index.fuzzy import word_edits
from tmnmt.keys.pair_keys import padded
from tmnmt.spans import Array as Array
from tmnmt.spans import mean, piece_spans, shares
from tmnmt.text import match_tokens, token_spans
from tmnmt.vocab import EOS, Vocabulary

if TYPE_CHECKING:
    from tmnmt.engine.beam_search import Hypothesis
    from tmnmt.models.base import Backbone, Encoded
    from tmnmt.segments import Match, Token

LINKED_AT_ONCE = 32  # pieces of segments with codes


class Linkable(Protocol):
    """A segment whose places of codes depend on the links of words."""

    def unlinked(self) -> list[tuple[int, str, str]]:
        """The pieces that lack links, each with its number, the text that was read, and the text
        that was written."""

    def link(self, piece: int, links: Array) -> None:
        """Takes the links of the words of a piece.

        piece: the number of the piece.
        links: (T, S) how much of every target word comes from every source word."""


class Linker:
    """Links the words of texts by one model."""

    def __init__(
        self, backbone: Backbone, vocab: Vocabulary, device: torch.device | str = "cpu"
    ) -> None:
        """backbone: the model.
        vocab: its vocabulary.
        device: what torch computes on."""
        self._backbone, self._vocab, self._device = backbone, vocab, device

    def links(
        self, source: str, target: str, tokens: Sequence[Token] = (), matches: Sequence[Match] = ()
    ) -> Array:
        """How much of every target word comes from every source word, (T, S).

        source: the source.
        target: its translation.
        tokens: the tokens of the explained translation. Without them, the links are the attention
        alone.
        matches: the matches that the tokens were read from."""
        numbers = sorted({entry.match for token in tokens for entry in token.attention})
        pairs = [(matches[number].segment.src, matches[number].segment.tgt) for number in numbers]
        attention, *of_pairs = self.attention([(source, target), *pairs])
        if not numbers:
            return attention
        origin = {
            number: self._of_positions(pair, links @ same_words(pair[0], source))
            for number, pair, links in zip(numbers, pairs, of_pairs, strict=True)
        }
        copied = np.stack([_copied(token, origin, attention.shape[1]) for token in tokens])
        gates = np.array([[token.copy_gate] for token in tokens])
        spans = piece_spans([token.text for token in tokens], target)
        words = mean(shares(spans, token_spans(target)))
        linked: Array = (1 - words @ gates) * attention + words @ (gates * copied)
        return linked

    def attention(self, pairs: Sequence[tuple[str, str]]) -> list[Array]:
        """The attention along the target of every pair, by words, as a matrix (T, S) each.

        pairs: every source with its translation."""
        src = [[*self._vocab.encode_source(source), EOS] for source, _ in pairs]
        with torch.inference_mode():
            length = torch.tensor([len(ids) for ids in src], device=self._device)
            encoded = self._backbone.encode(padded(src, self._device), length)
            ids = [self._vocab.encode(target) for _, target in pairs]
            tgt = padded([[*row, EOS] for row in ids], self._device)
            weights = self._backbone.alphas(encoded, tgt)
        sources, targets = zip(*pairs, strict=True)
        return self._in_words(sources, ids, targets, weights)

    def link(self, segments: Sequence[Linkable]) -> None:
        """Gives segments with codes the links on which the places of these codes depend. The links
        are what every word of the translation looks at, and they are computed in one pass for as
        many pieces as a batch has.

        The way through the pairs that the decoder read is not used here. It places no more codes
        right, and it needs a trace of the decoder and a pass along every pair.

        segments: the segments."""
        parts = [(segment, *part) for segment in segments for part in segment.unlinked()]
        parts.sort(key=lambda part: len(part[-1]))
        for start in range(0, len(parts), LINKED_AT_ONCE):
            together = parts[start : start + LINKED_AT_ONCE]
            attention = self.attention([(source, target) for *_, source, target in together])
            for (segment, part, source, target), links in zip(together, attention, strict=True):
                segment.link(part, with_same_words(links, source, target))

    def hypothesis_links(
        self, encoded: Encoded, sources: Sequence[str], hypotheses: Sequence[Hypothesis]
    ) -> list[Array]:
        """The links of sources that are encoded already, along the hypotheses that were found for
        them. The attention of a hypothesis is not computed again where it was noted.

        encoded: the encoded sources.
        sources: their texts.
        hypotheses: the hypothesis of every source."""
        notes = (
            hypothesis.evidence.notes
            for hypothesis in hypotheses
            if hypothesis.evidence is not None
        )
        weights: Sequence[Tensor] | Tensor = [note.attention for note in notes if note is not None]
        if len(weights) < len(hypotheses):
            with torch.inference_mode():
                tgt = padded([[*hypothesis.ids, EOS] for hypothesis in hypotheses], self._device)
                weights = self._backbone.alphas(encoded, tgt)
        targets = [self._vocab.decode(hypothesis.ids) for hypothesis in hypotheses]
        return self._in_words(
            sources, [hypothesis.ids for hypothesis in hypotheses], targets, weights
        )

    def _in_words(
        self,
        sources: Sequence[str],
        ids: Sequence[Sequence[int]],
        targets: Sequence[str],
        weights: Iterable[Tensor],
    ) -> list[Array]:
        attention = (matrix.double().cpu().numpy() for matrix in weights)
        rows = zip(sources, ids, targets, attention, strict=True)
        return [self._by_words(*row) for row in rows]

    def _by_words(self, source: str, ids: Sequence[int], target: str, weights: Array) -> Array:
        source_pieces = self._vocab.source_pieces(source)
        of_source = piece_spans(source_pieces, source)
        of_target = piece_spans([self._vocab.piece(token) for token in ids], target)
        rows = mean(shares(of_target, token_spans(target)))
        by_words: Array = (
            rows
            @ weights[: len(ids), : len(source_pieces)]
            @ shares(of_source, token_spans(source)).T
        )
        return by_words

    def _of_positions(self, pair: tuple[str, str], links: Array) -> Array:
        """The links of a pair's target words as those of its subwords, </s> too."""
        spans = piece_spans(self._vocab.pieces(pair[1]), pair[1])
        by_position = shares(spans, token_spans(pair[1])).T @ links
        return np.concatenate([by_position, np.zeros((1, links.shape[1]))])


def same_words(source: str, query: str) -> Array:
    """The share that every word of a pair's source has in every word of the query, by the fewest
    edits between them. A word that stays has the share 1, and words that are replaced are spread
    evenly over their places.

    source: the source of the pair.
    query: the query."""
    x, y = match_tokens(source), match_tokens(query)
    matrix = np.zeros((len(x), len(y)))
    for stays, run in groupby(word_edits(x, y), lambda edit: edit.tag == "equal"):
        edits = list(run)
        (start, query_start), (end, query_end) = (edits[0][1::2], edits[-1][2::2])
        if stays:
            matrix[range(start, end), range(query_start, query_end)] = 1
        elif query_end > query_start:
            matrix[start:end, query_start:query_end] = 1 / (query_end - query_start)
    return matrix


def with_same_words(links: Array, source: str, target: str) -> Array:
    """The same links, except that a target word which stands once on each side, as a number or a
    name does, comes from that source word alone.

    links: (T, S) how much of every target word comes from every source word.
    source: the source.
    target: its translation."""
    words, target_words = match_tokens(source), match_tokens(target)
    source_counts, target_counts = Counter(words), Counter(target_words)
    corrected = links.copy()
    for row, word in enumerate(target_words):
        if word[0].isalnum() and source_counts[word] == target_counts[word] == 1:
            corrected[row] = 0
            corrected[row, words.index(word)] = 1
    return corrected


def _copied(token: Token, origin: dict[int, Array], width: int) -> Array:
    """The sum over what a token was read from of q A_pair, (S,)."""
    looked_at = np.zeros(width)
    for source in token.attention:
        looked_at += source.weight * origin[source.match][source.position]
    return looked_at
