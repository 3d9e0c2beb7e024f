"""What the subwords of a vocabulary say of words: where they begin and end, what may stand before
an apostrophe, and which small words go before a term."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor

from tmnmt.terms.grammar import NO_AGREEMENT, Agreement
from tmnmt.text import APOSTROPHES
from tmnmt.vocab import BOS, UNK, Vocabulary

Ids = tuple[int, ...]
CACHE_SIZE = 1 << 16  # answers of a kind, at most: each is asked for by many trials
_FIRST = re.compile(r"[^\s']+'?")


class Form(NamedTuple):
    """The subwords of a form.

    ids: the subwords.
    inside: whether it begins without a blank, as behind an apostrophe.
    cost: how far it stands behind other forms, in nats."""

    ids: tuple[int, ...]
    inside: bool
    cost: float = 0.0


class Spelling:
    """What the subwords of a vocabulary say of where words begin and end."""

    def __init__(
        self,
        vocab: Vocabulary,
        small: Mapping[str, frozenset[str]] = MappingProxyType({}),
        agreement: Agreement = NO_AGREEMENT,
    ) -> None:
        """vocab: the vocabulary.
        small: the small words of the target language, each with the prepositions that it has.
        agreement: which of these may stand before which nouns."""
        self._small, self._agreement = small, agreement
        self.is_excluded = lru_cache(CACHE_SIZE)(self._is_excluded)
        self.small_behind = lru_cache(CACHE_SIZE)(self._small_behind)
        self.last_word = lru_cache(CACHE_SIZE)(self._last_word)
        self.stem = lru_cache(CACHE_SIZE)(self._stem)
        self._vocab = vocab
        pieces = [vocab.piece(number) for number in range(len(vocab))]
        self.goes_on = torch.tensor([piece[:1].isalnum() for piece in pieces])  # the word before
        self.is_open = [not piece[-1:].isalnum() for piece in pieces]  # a word may follow at once
        self.is_open[BOS] = False
        self.is_cut = [piece.endswith(APOSTROPHES) for piece in pieces]  # one must
        self._small_sorts = [  # of small letters, and with a capital
            {self.ids(spelled(word).removesuffix("'")): sorts for word, sorts in small.items()}
            for spelled in (str.lower, str.capitalize)
        ]
        # the last subwords of those that an apostrophe follows
        self.elided = {
            self.ids(word.removesuffix("'"))[-1]
            for small_word in small
            for word in (small_word, small_word.capitalize())
            if small_word.endswith("'")
        }
        self.apostrophes = [index for index, piece in enumerate(pieces) if piece in APOSTROPHES]

    def forms(self, text: str, cost: float = 0.0) -> list[Form]:
        """The forms of a text: as it is written after a blank, and after an apostrophe where one
        may stand before it. There are none where the vocabulary cannot write it.

        text: the text.
        cost: how far the forms stand behind others, in nats."""
        forms = [Form(tuple(self._vocab.encode(text)), False, cost)]
        for article in ("l'", "l’") if _is_elided(text) else ():
            article_ids, ids = self._vocab.encode(article), self._vocab.encode(article + text)
            if ids[: len(article_ids)] == article_ids and self.is_open[article_ids[-1]]:
                forms.append(Form(tuple(ids[len(article_ids) :]), True, cost))
        return [form for form in dict.fromkeys(forms) if form.ids and UNK not in form.ids]

    def _small_behind(self, ids: tuple[int, ...], was: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The small words that may follow: first those with a preposition of the small words that
        were there, and then, behind a preposition, those without one. They begin with a capital
        where those that were there did.

        ids: the subwords before the place.
        was: the subwords of the small words that were there."""
        if ids:
            return self._of_sorts(frozenset([""]), False) if "" not in self.sorts(ids) else []
        has_capital = self._vocab.decode(was)[:1].isupper()
        return self._of_sorts(self.sorts(was) if was else None, has_capital)

    def _of_sorts(self, sorts: frozenset[str] | None, has_capital: bool) -> list[tuple[int, ...]]:
        return [
            ids
            for ids, word_sorts in self._small_sorts[has_capital].items()
            if sorts is None or not word_sorts.isdisjoint(sorts)
        ]

    def _last_word(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The subwords of the last word, with its apostrophe.

        ids: the subwords of a text."""
        starts = [index for index, token in enumerate(ids) if self._vocab.piece(token)[:1] == "▁"]
        return ids[starts[-1] :] if starts else ids

    def has_same_gender(self, small: Ids, ids: Ids) -> bool:
        """Whether a text begins with small words of which the last one shows the gender and the
        number of what follows.

        small: the subwords of the small words.
        ids: those of the text."""
        words = self._vocab.decode(small).casefold().split()
        return (
            ids[: len(small)] == small and bool(words) and self._agreement.shows_gender(words[-1])
        )

    def _is_excluded(self, small: Ids, form: Ids) -> bool:
        """Whether a small word cannot stand before a form.

        small: the subwords of the small word.
        form: the subwords of the form."""
        word = self._vocab.decode(small).replace("’", "'")
        return bool(word) and self._agreement.excludes(word, self._vocab.decode(form))

    def _stem(self, ids: tuple[int, ...]) -> str:
        """What small words have in common. Without an apostrophe, e or a at their ends, le, la and
        l' are one, and so are un and une.

        ids: the subwords of the small words."""
        text = self._vocab.decode(ids).lower()
        return " ".join(word.strip("'’").rstrip("ea") for word in text.split())

    def sorts(self, ids: Sequence[int]) -> frozenset[str]:
        """The prepositions that small words may begin with.

        ids: the subwords of the small words."""
        text = self._vocab.decode(ids).lower().replace("’", "'")
        word = _FIRST.match(text)
        return self._small.get(word[0] if word else "", frozenset([""]))

    def ends(self, log_probs: Tensor) -> float:
        """The log probability that the word before ends, in nats.

        log_probs: (V,) the log probabilities of the next subword."""
        mask = self.goes_on.to(log_probs.device)
        return float(log_probs.masked_fill(mask, -torch.inf).logsumexp(0))

    def ids(self, word: str) -> tuple[int, ...]:
        """The subwords of a word after a blank.

        word: the word."""
        return tuple(self._vocab.encode(word))


def _is_elided(text: str) -> bool:
    """Whether a small word before a text may end in an apostrophe, as in l'avis."""
    return unicodedata.normalize("NFD", text[:1]).casefold().startswith(tuple("aeiouyhœæ"))
