"""Terms that come again, words aligned, edits and origins: each held to an example
worked by hand."""

from __future__ import annotations

import pytest

from tmnmt.eval.measures.align import Aligner, tokens
from tmnmt.eval.measures.consistency import Terms, consistency, function_words
from tmnmt.eval.measures.effort import WEIGHTS, edits_to, weighted_words, words_by_band
from tmnmt.eval.measures.origin import origins
from tmnmt.eval.measures.slices import BANDS, band_of, parts, places
from tmnmt.segments import Match, Segment

PAIRS = [
    ("the house", "la maison"),
    ("the book", "le livre"),
    ("a house", "une maison"),
    ("a book", "un livre"),
    ("the blue house", "la maison bleue"),
    ("the red book", "le livre rouge"),
    ("the home", "le foyer"),
    ("a home", "un foyer"),
    ("red", "rouge"),
    ("blue", "bleue"),
]


def test_the_aligner_learns_which_words_translate_each_other() -> None:
    aligner = Aligner(PAIRS)
    src, tgt = tokens("The red house"), tokens("La maison rouge")
    assert [tgt[j] if j is not None else None for j in aligner.translations(src, tgt)][1:] == [
        "rouge",
        "maison",
    ]
    assert aligner.translations(["unheard"], tgt) == [None]
    assert aligner.translations(src, []) == [None] * 3
    for word in ("the", "house"):  # t(. | word) is a distribution over the target words
        targets = sorted({target for _, text in PAIRS for target in tokens(text)})
        assert aligner.chances([word], targets)[:, 0].sum() == pytest.approx(1)


def test_one_step_of_model_1_equals_the_sums_worked_by_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Of "a b"/"x y" and "a"/"x", from uniform: x and y of the first pair are explained by a and b
    # at 0.46 each, the x of the second by a at 0.92; the rest by NULL. So a has x 0.46 + 0.92, y
    # 0.46: t(x|a) = 3/4; b has x and y alike.
    monkeypatch.setattr("tmnmt.eval.measures.align.ITERATIONS", 1)
    chances = Aligner([("a b", "x y"), ("a", "x")]).chances(["a", "b"], ["x", "y"])
    assert chances[:, :2].ravel() == pytest.approx([3 / 4, 1 / 2, 1 / 4, 1 / 2])


def test_an_aligner_that_was_taught_nothing_aligns_nothing() -> None:
    assert Aligner([]).translations(["house"], ["maison"]) == [None]


def test_ltcr_equals_the_example_worked_by_hand() -> None:
    # maison maison foyer maison: 3 of 6 pairs alike, 2 of 3 agree with the first; livre bouquin: 0
    # of 1, 0 of 1.
    found = consistency([["maison", "maison", "foyer", "maison"], ["livre", "bouquin"], ["seul"]])
    assert (found.ltcr, found.ltcr_1, found.pairs) == (3 / 7, 2 / 4, 7)
    assert consistency([]).ltcr is None


def test_terms_are_counted_within_documents_and_both_ways() -> None:
    sources = ["the house", "red house", "the house", "the book", "the house"]
    documents = ["one", "one", "one", "one", "two"]
    common = {"the", "une"}
    terms = Terms(sources, documents, common)
    assert terms.repeated == {("one", "house"): [(0, 1), (1, 1), (2, 1)]}
    outputs = ["la maison", "foyer rouge", "la maison", "le livre", "le foyer"]
    by_words = terms.by_alignment(outputs, Aligner([*PAIRS, *[("red house", "foyer rouge")] * 3]))
    assert (by_words.ltcr, by_words.ltcr_1, by_words.pairs) == (1 / 3, 1 / 2, 3)
    assert terms.by_strings(outputs).ltcr == 1 / 3
    assert terms.by_strings(["la maison"] * 3 + ["le livre"] * 2).ltcr == 1


def test_function_words_are_the_commonest() -> None:
    texts = [["the", "house"], ["the", "book"]]
    assert "the" in function_words(texts)


def test_edits_are_to_the_nearest_reference_and_words_weigh_by_band() -> None:
    found = edits_to("le livre bleu", ["le livre rouge est là", "un livre bleu"])
    assert (found.edits, found.words, found.rate) == (1, 3, 1 / 3)
    by_band = words_by_band(["one two three", "four", "five six"], ["exact", "0-0.2", "exact"])
    assert by_band == {"exact": 5, "0-0.2": 1}
    assert weighted_words(by_band, WEIGHTS) == pytest.approx(5 * 0.3 + 1)


def test_a_word_is_of_what_most_of_its_subwords_are_and_right_where_the_reference_has_it() -> None:
    tokens_of = [
        ("▁la", "model"),
        ("▁mai", "memory"),
        ("son", "memory"),
        ("▁la", "model"),
        ("▁ble", "cache"),
        ("u", "cache"),
        ("e", "memory"),
    ]
    records = [{"text": text, "origin": origin} for text, origin in tokens_of]
    found = origins([(records, ["La maison", "la maison rouge"])])
    assert found["memory"] == {"tokens": 1, "share": 0.25, "precision": 1.0}
    assert found["model"] == {
        "tokens": 2,
        "share": 0.5,
        "precision": 0.5,
    }  # the reference has one "la"
    assert found["cache"] == {"tokens": 1, "share": 0.25, "precision": 0.0}


@pytest.mark.parametrize(
    ("score", "band"),
    [
        (0.0, "0-0.2"),
        (0.2, "0.2-0.4"),
        (0.5, "0.5-0.6"),
        (0.7 - 1e-12, "0.7-0.8"),
        (0.99, "0.9-1"),
        (1.0, "exact"),
    ],
)
def test_bands_hold_their_lower_end(score: float, band: str) -> None:
    assert band_of(Match(Segment("", ""), score, 0)) == band and band in BANDS


def test_parts_cover_every_segment_once() -> None:
    assert places(["a", "a", "b", "a"]) == [1, 2, 1, 3]
    found = parts([1, 10, 11, 300], (1, 11, 21))
    assert found == [(1, 10, [0, 1]), (11, 20, [2]), (21, None, [3])]
