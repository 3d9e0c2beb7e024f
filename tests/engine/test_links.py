"""Links of words: the attention, and through the pairs as far as the translation was copied."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_model import PAIRS, trained

from tmnmt.engine.links import Linker, same_words, with_same_words
from tmnmt.segments import Match, MemorySource, Provenance, Segment, Token
from tmnmt.spans import piece_spans, shares
from tmnmt.text import match_form, match_tokens, token_spans

SOURCE, TARGET = PAIRS[0]


@pytest.fixture
def linker() -> Linker:
    vocab, backbone = trained()
    return Linker(backbone.eval(), vocab)


def token(text: str, gate: float, *read: tuple[int, int, float]) -> Token:
    attention = tuple(MemorySource(*one) for one in read)
    copied = Provenance("copy", 0, gate, "memory", is_mixed=True)
    return Token(text, "", 0, 0, 0, (copied,), attention=attention)


def tokens(gate: float, match: int = 0) -> list[Token]:
    pieces = trained()[0].pieces(TARGET)
    return [token(piece, gate, (match, at, 1.0)) for at, piece in enumerate(pieces)]


def match(source: str) -> Match:
    return Match(Segment(source, TARGET), 0.8, 1)


def test_without_tokens_links_are_the_attention_by_words(linker: Linker) -> None:
    links = linker.links(SOURCE, TARGET)
    assert links.shape == (len(match_tokens(TARGET)), len(match_tokens(SOURCE)))
    assert (links >= 0).all() and (links.sum(1) <= 1 + 1e-6).all()
    (again, _) = linker.attention([(SOURCE, TARGET), PAIRS[1]])
    assert np.allclose(links, again, atol=1e-6)  # whatever else is in the batch


def test_what_is_copied_from_itself_has_the_links_of_itself(linker: Linker) -> None:
    own = linker.links(SOURCE, TARGET)
    for gate in (0.0, 0.3, 1.0):
        assert np.allclose(linker.links(SOURCE, TARGET, tokens(gate), [match(SOURCE)]), own)


def test_what_is_copied_is_linked_by_the_pair_and_its_likeness_to_the_query(
    linker: Linker,
) -> None:
    query = "Now " + SOURCE.replace("States", "Nations")
    of_pair = linker.links(SOURCE, TARGET)
    own = linker.links(query, TARGET)
    matches = [match("quite another"), match(SOURCE)]
    linked = linker.links(query, TARGET, tokens(1.0, match=1), matches)
    assert np.allclose(linked[:, 0], 0)  # "Now" stands nowhere in the pair
    assert np.allclose(linked[:, 1:], of_pair)  # "Nations" stands in the place of "States"
    half = linker.links(query, TARGET, tokens(0.5, match=1), matches)
    assert np.allclose(half, 0.5 * own + 0.5 * linked)


def test_what_was_read_at_the_end_of_a_pair_links_to_nothing(linker: Linker) -> None:
    end = len(trained()[0].pieces(TARGET))
    some = [token(piece, 1.0, (0, end, 1.0)) for piece in trained()[0].pieces(TARGET)]
    assert not linker.links(SOURCE, TARGET, some, [match(SOURCE)]).any()


@pytest.mark.parametrize("texts", [("", ""), ("a", ""), ("", "b")])
def test_texts_without_words_have_no_links(linker: Linker, texts: tuple[str, str]) -> None:
    shape = tuple(len(match_tokens(text)) for text in reversed(texts))
    assert linker.links(*texts).shape == shape


def test_words_that_stay_are_one_and_those_replaced_are_shared() -> None:
    assert same_words("a b c", "a x y c").tolist() == [[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1]]
    assert same_words("a b", "b").tolist() == [[0], [1]]
    decomposed = unicodedata.normalize("NFD", "é b")
    assert same_words(decomposed, decomposed).shape == (len(token_spans(decomposed)),) * 2


def test_a_word_that_stands_once_on_each_side_comes_from_itself_alone() -> None:
    source, target = "the 2017 act of the EU, EU", "la loi UE 2017, EU la"
    links = np.full((7, 8), 0.5)
    found = with_same_words(links, source, target)
    assert found[3].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert (np.delete(found, 3, 0) == 0.5).all() and (links == 0.5).all()


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12) | st.sampled_from(
    ["L'article 2, « ﬁn » ½", "  a  b ", "漢字 €"]
)


@given(TEXTS)
def test_subwords_stand_where_their_characters_stand(text: str) -> None:
    pieces = trained()[0].pieces(text)
    spans = piece_spans(pieces, text)
    assert len(spans) == len(pieces)
    assert all(0 <= a <= b <= len(text) for a, b in spans)
    ends = [b for a, b in spans if a < b]
    assert ends == sorted(ends)
    for piece, (start, end) in zip(pieces, spans, strict=True):
        if start < end and not piece.startswith("<0x"):
            assert "".join(text[start:end].split()) == piece.strip("▁")


def test_subwords_of_another_spelling_are_spread_over_the_text() -> None:
    assert piece_spans(["▁abcd", "ef", "", "<unk>"], "xyz") == [(0, 1), (1, 2), (2, 2), (1, 3)]


def test_spans_are_shared_by_their_characters() -> None:
    assert shares([(0, 2), (2, 6), (6, 6)], [(0, 3), (4, 5)]).tolist() == [[1, 0.5, 0], [0, 0.5, 0]]


@given(TEXTS)
def test_token_spans_are_those_of_the_match_tokens(text: str) -> None:
    words = [match_form(text[begin:end]) for begin, end in token_spans(text)]
    assert words == match_tokens(text)
