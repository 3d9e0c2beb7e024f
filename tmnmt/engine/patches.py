"""Patches a replay (`engine/replays.py`): what its source has otherwise than the source of the pair
is put into the target of the pair, which stays as it is otherwise (OURS; after the repair of fuzzy
matches by Ortega, Sánchez-Martínez and Forcada 2014, with the probabilities of the model).

    pair     The permit is valid.            Le permis est valide.
    source   The permit is valid in Canada.
    draft    Le permis vaut au Canada.       by the model without a memory
    phrase   au Canada                       what the draft has for the words that differ
    patched  Le permis est valide au Canada.

A phrase is tried at several places, and with the small words before it. What the model without a
memory finds likeliest is taken, unless that is much less likely than the replay."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tmnmt.engine.beam_search import Live
from tmnmt.engine.links import Linker, with_same_words
from tmnmt.engine.replays import Pair, SourceEdit, source_edits
from tmnmt.keys.pair_keys import padded
from tmnmt.layers.combine import Stepped
from tmnmt.models.base import Backbone
from tmnmt.spans import Array, piece_spans
from tmnmt.text import token_spans
from tmnmt.vocab import BOS, EOS, Vocabulary

PLACES = 4  # where a phrase is tried
SHORT = 4  # letters of a small word, at most
SMALL_WORDS = 2  # before a phrase, at most
GOOD_PART = 0.2  # of what a word comes from
APART = 2  # from one word of a phrase to the next, at most
# in nats, chosen on dev: what a text gains for each subword put in and for each one taken out, and
# its log probability for each subword
GAIN_ADDED, GAIN_REMOVED, LIKELY = -1.2, 0.5, -2.5
_OPENING = "'’([{«“‘\"¿¡/-"
Span = tuple[int, int]


@dataclass(frozen=True)
class LinkedText:
    """A text, and from which source word each of its words comes.

    text: the text.
    links: (T, S), how much of every word of the text comes from every source word."""

    text: str
    links: Array

    @cached_property
    def spans(self) -> list[Span]:
        """Where its words and marks stand."""
        return token_spans(self.text)

    def phrase(self, start: int, end: int) -> Span | None:
        """The words, from the first to behind the last, that come from source words; None where
        there are none. Of several groups of them that with the strongest links.

        start: the first of the source words.
        end: the source word behind the last."""
        if end <= start or not self.links.size:
            return None
        groups = list[list[int]]()
        for number in self._linked(start, end):
            if groups and number - groups[-1][-1] <= APART:
                groups[-1].append(number)
            else:
                groups.append([number])
        best = max(groups, key=lambda group: self.links[group, start:end].sum(), default=None)
        return None if best is None else (best[0], best[-1] + 1)

    def _linked(self, start: int, end: int) -> list[int]:
        """The words that come from source words in the first place; otherwise the one that does so
        most, where that is a good part."""
        origin, mass = self.links.argmax(1), self.links[:, start:end].sum(1)
        words = [number for number in range(len(origin)) if self._is_word(number)]
        linked = [number for number in words if start <= origin[number] < end]
        best = max(words, key=lambda number: mass[number], default=None)
        return linked or ([best] if best is not None and mass[best] >= GOOD_PART else [])

    def widened(self, phrase: Span) -> list[Span]:
        """The phrase in characters, as it is and with small words before it.

        phrase: its words."""
        first, end = phrase
        starts = [first]
        while first and len(starts) <= SMALL_WORDS and self._is_small(first - 1):
            first -= 1
            starts.append(first)
        return [(self.spans[start][0], self.spans[end - 1][1]) for start in starts]

    def _is_word(self, number: int) -> bool:
        start, end = self.spans[number]
        return any(map(str.isalnum, self.text[start:end]))

    def _is_small(self, number: int) -> bool:
        start, end = self.spans[number]
        return self.text[start:end] in "'’" or (
            self.text[start:end].isalpha() and end - start <= SHORT
        )


class Dictation:
    """Leads a search of one row a sentence so that nothing but given subwords is written, as
    `Leader` does."""

    compares_all_words = True

    def __init__(self, ids: Sequence[Sequence[int]], device: str) -> None:
        """ids: the subwords of every sentence, without </s>.
        device: where the search runs."""
        self.lengths = [len(row) + 1 for row in ids]
        self._words = padded([[*row, EOS] for row in ids], device)

    def bar(self, live: Live, step: Stepped, position: int) -> None:
        """Leaves the one subword that comes next, as `Leader.bar` does.

        live: the rows that are still decoded.
        step: what the step gave; its log p are changed in place.
        position: the number of the step, from 0."""
        words = self._words[live.sentence, position][:, None]
        log_probs = step.log_probs.gather(1, words)
        step.log_probs.fill_(-torch.inf).scatter_(1, words, log_probs)

    def advance(self, rows: Tensor, tokens: Tensor) -> None:
        """Follows the rows of the beam, as `Leader.advance` does: every sentence has one.

        rows: (R',) which row each of the next rows was.
        tokens: (R',) the subword that each of them has got."""


@dataclass(frozen=True)
class Patcher:
    """Patches replays of one model.

    backbone: the base as it decodes.
    vocab: the vocabulary.
    linker: links the words of texts by this model.
    device: what torch computes on.
    src_lang: the code of the source language."""

    backbone: Backbone
    vocab: Vocabulary
    linker: Linker
    device: str
    src_lang: str

    def patched(self, source: str, pair: Pair, draft: str) -> str | None:
        """The target of the pair with what the source has otherwise; None where that is not found,
        or where the model finds it much less likely.

        source: the source, as the model reads it.
        pair: the pair, as the model reads it.
        draft: what the model writes for the source without a memory."""
        [links] = self.linker.attention([(source, draft)])
        linked_draft = LinkedText(draft, with_same_words(links, source, draft))
        target = pair[1]
        edits = source_edits(pair[0], source, self.src_lang)
        for edit in edits:
            [links] = self.linker.attention([(pair[0], target)])
            former = LinkedText(target, with_same_words(links, pair[0], target))
            texts = self._candidates(source, former, linked_draft, edit)
            best = self._best(source, target, texts) if texts else None
            if best is None:
                return None
            target = best
        return target if target != pair[1] else None

    def _candidates(
        self, source: str, former: LinkedText, draft: LinkedText, edit: SourceEdit
    ) -> list[str]:
        """The texts that the former one may become by an edit of its source."""
        new = draft.phrase(edit.new_start, edit.new_end)
        old = former.phrase(edit.start, edit.end)
        if new is None and edit.new_end > edit.new_start:
            return []
        phrases = [""] if new is None else [draft.text[slice(*span)] for span in draft.widened(new)]
        if old is not None:
            texts = [
                replaced(former.text, span, phrase)
                for count, span in enumerate(former.widened(old))
                for phrase in phrases[count:]  # small words are replaced by small words alone
            ]
            return [text for text in texts if text.strip()]
        return [
            inserted(former.text, former.spans, place, phrase)
            for phrase in phrases
            if phrase
            for place in self._places(source, former, phrase)
        ]

    def _places(self, source: str, former: LinkedText, phrase: str) -> list[int]:
        """The words of a text before which the model would likeliest go on with a phrase."""
        ids, first = self.vocab.encode(former.text), self.vocab.encode(phrase)[0]
        spans = piece_spans(self.vocab.pieces(former.text), former.text)
        with torch.inference_mode():
            log_probs = self._log_probs(source, [ids])[0, :, first]
        chances = list[tuple[float, int]]()
        for number in range(len(former.spans) + 1):
            is_end = number == len(former.spans)
            start = len(former.text) if is_end else former.spans[number][0]
            if former.text[:start].rstrip()[-1:] in _OPENING and start:
                continue
            position = next((p for p, (_, end) in enumerate(spans) if end > start), len(ids))
            chances.append((float(log_probs[position]), number))
        return [number for _, number in sorted(chances, reverse=True)[:PLACES]]

    def _best(self, source: str, former: str, texts: Sequence[str]) -> str | None:
        """The likeliest of the texts; None where it is too unlikely beside the former one."""
        texts = [former, *dict.fromkeys(texts)]
        ids = [self.vocab.encode(text) for text in texts]
        with torch.inference_mode():
            log_probs = self._log_probs(source, ids)
            words = padded([[*row, EOS] for row in ids], self.device)
            of_words = log_probs.gather(-1, words[..., None])[..., 0]
        scores = [float(of_words[row, : len(ids[row]) + 1].sum()) for row in range(len(ids))]
        best = max(range(1, len(texts)), key=lambda row: scores[row], default=0)
        added = len(ids[best]) - len(ids[0])
        least = GAIN_ADDED * max(added, 1) if added >= 0 else GAIN_REMOVED * -added
        is_likely = scores[best] >= LIKELY * (len(ids[best]) + 1)
        return texts[best] if best and is_likely and scores[best] - scores[0] >= least else None

    def _log_probs(self, source: str, targets: Sequence[Sequence[int]]) -> Tensor:
        """log p (B, T, V) of what comes at every place of targets, of the model without a
        memory."""
        src = torch.tensor([[*self.vocab.encode_source(source), EOS]], device=self.device)
        length = torch.tensor([src.shape[1]], device=self.device)
        rows = torch.zeros(len(targets), dtype=torch.long, device=self.device)
        encoded = self.backbone.encode(src, length).rows(rows)
        tgt = padded([[*ids, EOS] for ids in targets], self.device)
        prev = padded([[BOS, *ids] for ids in targets], self.device)
        contexts, hiddens = self.backbone.forced(encoded, tgt)
        return self.backbone.readout(prev, hiddens, contexts).float().log_softmax(-1)


def replaced(text: str, span: Span, phrase: str) -> str:
    """A text with a phrase in place of a stretch; "" takes out the stretch, with a blank.

    text: the text.
    span: the stretch, in characters.
    phrase: the phrase."""
    start, end = span
    if phrase:
        return text[:start] + phrase + text[end:]
    return text[:start].rstrip() + text[end:]


def inserted(text: str, spans: Sequence[Span], place: int, phrase: str) -> str:
    """A text with a phrase put in before one of its words, with a blank where the text has blanks.

    text: the text.
    spans: where its words and marks stand.
    place: the number of the word; their number for the end.
    phrase: the phrase."""
    end = spans[place - 1][1] if place else 0
    has_blanks = not any(unicodedata.east_asian_width(sign) == "W" for sign in phrase)
    blank = " " if has_blanks else ""
    if not place:
        return phrase + blank + text
    gap = text[end : spans[place][0]] if place < len(spans) else ""
    is_word = place < len(spans) and text[spans[place][0]].isalnum()
    return text[:end] + blank + phrase + (gap or blank * is_word) + text[end + len(gap) :]
