"""Texts with codes through the translator: the plain text is translated as ever, and the codes come
back in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest
import torch
from coded_texts import SOURCES, kept, outside
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt import Translator
from tmnmt.codes.place import place
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Code, Source, Text, inline, join_parts
from tmnmt.codes.tags import html_tags, with_tags
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.assembly import Assembly
from tmnmt.engine.links import Linker
from tmnmt.engine.source_segment import SourceSegment
from tmnmt.errors import UsageError
from tmnmt.files.texts import text_of
from tmnmt.filters import Filters
from tmnmt.filters.contract import Reader
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.index import MemoryIndex, build
from tmnmt.records import words
from tmnmt.segments import Match, Segment, Translation
from tmnmt.text import token_spans

BOLD = Code(0, "open", "<b>", "1", "html"), Code(0, "close", "</b>", "1", "html")
ITALIC = Code(0, "open", "<i>", "1", "html"), Code(0, "close", "</i>", "1", "html")
BREAK = Code(0, "standalone", "<br/>", "", "html")
PICTURE = Code(0, "standalone", "<img/>", "", "html")
FILTERS = Filters(Reader())
PLAIN = [src for src, _ in PAIRS]


def bold(text: str, codes: tuple[Code, Code] = BOLD) -> Text:
    """*These words* are in a span."""
    before, inside, after = text.split("*")
    return join_parts([before, (codes[0], ""), inside, (codes[1], ""), after])


def written(translation: Translation) -> str:
    return Text(translation.tgt, translation.tgt_codes).full_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    return Translator.load(folder, options=TranslationOptions(cache=0))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "index"
    build(path, segments(), "en", "fr")
    return path


def test_codes_stand_around_the_words_that_their_own_became(translator: Translator) -> None:
    (found,) = translator.translate([bold("The Commission shall inform *the Member States*.")])
    assert written(found) == "La Commission informe les <b>États membres</b>."
    assert (found.src, found.src_codes) == (
        PAIRS[0][0],
        bold("The Commission shall inform *the Member States*.").codes,
    )


def test_the_words_are_those_of_the_text_without_codes(translator: Translator) -> None:
    texts = [bold(f"*{text[:7]}*{text[7:]}") for text in PLAIN]
    found, usual = translator.translate(texts), translator.translate(PLAIN)
    assert [(one.tgt, one.origin, one.score) for one in found] == [
        (one.tgt, one.origin, one.score) for one in usual
    ]
    assert not any(one.src_codes or one.tgt_codes for one in usual)


def test_links_are_made_only_where_a_place_depends_on_them_and_all_at_once(
    translator: Translator, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, whole = list[int](), Linker.attention
    monkeypatch.setattr(
        Linker, "attention", lambda self, pairs: (asked.append(len(pairs)), whole(self, pairs))[1]
    )
    outside = [bold(f"*{PLAIN[0]}*"), join_parts([(BREAK, ""), PLAIN[1]]), Text(PLAIN[2])]
    translator.translate([*outside, *PLAIN])
    assert asked == []
    inside = [bold("The *Commission* shall inform the Member States."), bold("It *shall* apply.")]
    translator.translate([*outside, *inside])
    assert asked == [2]
    few = Translator.load(folder, options=TranslationOptions(batch=1, cache=0))
    assert [written(one) for one in few.translate(inside)] == [
        written(one) for one in translator.translate(inside)
    ]
    assert asked == [2, 2, 2]  # of two batches together


def test_white_space_at_the_ends_comes_back_and_a_text_of_codes_alone_stays(
    translator: Translator,
) -> None:
    texts = [Text(f"  {PLAIN[0]}\n"), join_parts([(BREAK, "")]), Text(""), Text(" \n")]
    found = [written(one) for one in translator.translate(texts)]
    assert found == [f"  {PAIRS[0][1]}\n", "<br/>", "", " \n"]


def test_a_blank_text_of_a_file_ends_no_document(folder: Path) -> None:
    translator = Translator.load(folder, options=TranslationOptions(cache=20))
    documents: list[list[Source]] = [[PLAIN[0], Text(" "), PLAIN[1]], [PLAIN[0], " ", PLAIN[1]]]
    numbers = []
    for texts in documents:
        parts = translator.pipeline.preparation.documents([(texts, repeat(None))], Assembly(), "")
        numbers.append([piece.segment.document for part in parts for piece in part])
    assert numbers == [[0, 0], [0, 1]]


def test_a_segment_in_pieces_has_every_code_once(translator: Translator) -> None:
    text = "This Regulation shall *enter* into force today; "
    long = join_parts(
        [
            part
            for number in range(9)
            for part in (
                *bold(text, tuple(_numbered(code, number) for code in BOLD)).parts(),  # type: ignore[arg-type]
                (PICTURE, ""),
            )
        ]
    )
    (found,) = translator.translate([long])
    assert translator.tally.changed[translator.pipeline.lookup.in_pieces] > 0
    kept(clean_codes(long)[0], Text(found.tgt, found.tgt_codes))


def _numbered(code: Code, number: int) -> Code:
    return replace(code, pair=str(number), markup=f"{code.markup}{number}")


@given(SOURCES)
def test_every_stretch_of_what_is_read_leads_back_to_the_source(source: Text) -> None:
    segment = SourceSegment(source, FILTERS)
    assert segment.pieces([segment.read.strip()]) == [segment.source.plain]
    found = segment.pieces(segment.read.split())
    assert "".join("".join(found).split()) == "".join(segment.source.plain.split())


@settings(max_examples=200)
@given(st.lists(SOURCES, min_size=1, max_size=4), st.integers(0, 10**6))
def test_a_segment_too_long_to_be_placed_at_once_has_every_code_once(
    texts: list[Text], seed: int
) -> None:
    whole = join_parts([part for text in texts for part in (*text.parts(), " ")])
    coded, chance = SourceSegment(whole, FILTERS), np.random.default_rng(seed)
    for number, piece in enumerate(coded.read.split()):
        said = coded.restore_piece(" ".join(chance.choice(["A", "901", ","], 2)), piece)
        coded.add(number, piece, Translation(piece, said, 0.0), is_whole=False)
    for number, piece, said in coded.placement.unlinked():
        links = chance.random((len(token_spans(said)), len(token_spans(piece))))
        coded.placement.link(number, links)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tmnmt.engine.placement.MAX_CELLS", -1)
        found = coded.restore(Translation("", "", 0.0))
    kept(without_blanks(whole), without_blanks(Text(found.tgt, found.tgt_codes)))


def test_tags_of_a_string_stand_around_the_words_that_their_own_became(
    translator: Translator,
) -> None:
    source = "The Commission shall inform <b>the Member States</b>."
    tagged, both = translator.translate([source, f"{{0}} {source}"])
    assert (tagged.src, tagged.tgt) == (source, "La Commission informe les <b>États membres</b>.")
    assert (tagged.src_codes, tagged.tgt_codes) == ((), ())
    assert [both.tgt.count(part) for part in ("{0}", "<b>", "</b>")] == [1, 1, 1]


MARKUP = ["<b>", "</b>", "<br/>", '<g id="1">', "</g>", "<", ">", "&amp;", "{0}", "%s", "<file>"]
WORDS = [" ", "  ", "\t", "the Commission", "MEMBER STATES", "Article 5", ".", "日本"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(MARKUP + WORDS), min_size=1, max_size=12).map("".join))
def test_no_tag_of_a_string_is_lost(translator: Translator, source: str) -> None:
    (found,) = translator.translate([source])
    theirs, ours = (
        Counter(code.markup for code in inline(text_of(text, breaks=False).codes))
        for text in (source, found.tgt)
    )
    assert found.src == source and not theirs - ours


def test_of_strings_with_the_same_words_each_has_the_pair_with_its_own_tags(
    folder: Path, tmp_path: Path
) -> None:
    pairs = [
        ("It <b>shall apply</b>.", "Il <b>est d'application</b>."),
        ("It shall apply.", "Il s'applique."),
    ]
    build(tmp_path / "index", [Segment(*pair, "d") for pair in pairs], "en", "fr")
    translator = Translator.load(folder, [tmp_path / "index"], TranslationOptions(cache=0))
    texts = ["It <b>shall apply</b>.", "<b>It</b> shall apply.", "It shall apply."]
    first, second, third = (found.tgt for found in translator.translate(texts))
    assert (first, third) == (pairs[0][1], pairs[1][1])
    assert with_tags(Text(second), html_tags).plain == "Il s'applique." and "<b>" in second


def test_placeholders_come_through_a_model_that_does_not_know_them(translator: Translator) -> None:
    texts = [
        with_placeholders(Text("The %s shall inform {name} and https://x.org/a?b=c.")),
        with_placeholders(Text("%s")),
        with_placeholders(bold("Article *%d* of %(name)s is replaced by the following:")),
    ]
    for text, found in zip(texts, translator.translate(texts), strict=True):
        for code in text.codes:
            if code.kind == "placeholder":
                assert found.tgt.count(code.markup) == 1, found.tgt
        kept(text, Text(found.tgt, found.tgt_codes))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SOURCES)
def test_whatever_the_codes_are_they_come_back(translator: Translator, text: Text) -> None:
    session = translator.session()
    found = session.translate(text)
    kept(without_blanks(text), without_blanks(Text(found.tgt, found.tgt_codes)))


def without_blanks(text: Text) -> Text:
    return Text(text.plain, tuple(code for code in text.codes if code.kind != "blank"))


# --- exact matches


def test_an_exact_match_of_text_and_codes_is_taken_with_its_codes(
    folder: Path, tmp_path: Path
) -> None:
    query = bold("The Commission shall inform *the Member States*.")
    target = bold("*Ceci* est à nous.")
    pair = Segment(query.plain, target.plain, src_codes=query.codes, tgt_codes=target.codes)
    others = [Segment(query.plain, "Sans codes.", changed="2020-01-01T00:00:00Z")] * 3
    build(tmp_path / "index", [*others, pair], "en", "fr")
    translator = Translator.load(folder, [tmp_path / "index"])
    coded, plain = translator.translate([query, query.plain])
    assert (written(coded), coded.origin) == ("<b>Ceci</b> est à nous.", "memory")
    assert (plain.tgt, plain.tgt_codes, plain.origin) == ("Sans codes.", (), "memory")


def test_an_exact_match_of_other_codes_lends_its_places_or_has_them_placed(
    folder: Path, tmp_path: Path
) -> None:
    source = bold("The Commission shall inform *the Member States*.")
    target = bold("*Les États membres* sont informés par la Commission.")
    pair = Segment(source.plain, target.plain, src_codes=source.codes, tgt_codes=target.codes)
    build(tmp_path / "index", [pair], "en", "fr")
    translator = Translator.load(folder, [tmp_path / "index"])
    lent, placed, none = translator.translate(
        [
            bold("The Commission shall inform *the Member States*.", ITALIC),
            bold("*The Commission shall inform the Member States.*", ITALIC),
            Text(source.plain),
        ]
    )
    assert written(lent) == "<i>Les États membres</i> sont informés par la Commission."
    assert written(placed) == "<i>Les États membres sont informés par la Commission.</i>"
    assert (none.tgt, none.tgt_codes) == (target.plain, ())
    for one in (lent, placed, none):  # a person should look at these
        assert one.origin == "adapted"
        worth = one.matches[0].worth
        assert worth is not None and (worth.value, worth.reasons) == (99, (("codes", -1),))


def test_an_exact_match_without_a_placeholder_of_the_source_gets_it(
    folder: Path, tmp_path: Path
) -> None:
    pair = Segment("Delete %s files", "Supprimer les fichiers")
    build(tmp_path / "index", [pair], "en", "fr")
    text = with_placeholders(Text(pair.src))
    (found,) = Translator.load(folder, [tmp_path / "index"]).translate([text])
    assert sorted(found.tgt.split()) == ["%s", "Supprimer", "fichiers", "les"]
    assert found.origin == "memory"


def test_codes_do_not_depend_on_an_explanation(folder: Path, index: Path) -> None:
    translator = Translator.load(folder, [index], TranslationOptions(verbatim=0, cache=0))
    texts: list[Source] = [bold("The Commission *shall inform* the Member States."), PLAIN[1]]
    usual, told = translator.translate(texts), translator.translate(texts, explain=True)
    assert [one.tokens for one in usual] == [(), ()]
    assert all(one.tokens for one in told)
    assert [written(one) for one in usual] == [written(one) for one in told]


def test_of_a_pair_with_another_placeholder_the_places_are_told_where_it_has_them(
    folder: Path, tmp_path: Path
) -> None:
    src, tgt = (
        "The Commission of {the_place} shall inform %s.",
        "La Commission de {the_place} le %s.",
    )
    pair = Segment(src, tgt)
    build(tmp_path / "index", [pair], "en", "fr")
    translator = Translator.load(
        folder, [tmp_path / "index"], TranslationOptions(threshold=0.3, mode="copy", cache=0)
    )
    text = "The Commission of %s shall inform {name} today."
    (found,) = translator.translate([text], explain=True)
    assert found.tgt.count("%s") == found.tgt.count("{name}") == 1
    own = [*translator.vocab.pieces(pair.tgt), "</s>"]
    (match,) = found.matches
    read = SourceSegment(text, FILTERS).masked_pair(match.segment)
    assert read.tgt == "La Commission de 902 le 901."
    masked = [*translator.vocab.pieces(read.tgt), "</s>"]
    assert len(own) > len(masked)
    sources = [(token.text, one.position) for token in found.tokens for one in token.sources]
    moved = [(text, own[at]) for text, at in sources if text not in "▁901902"]
    assert moved and all(text == there for text, there in moved)
    assert max(one.position for token in found.tokens for one in token.attention) < len(own)


def pair(source: Text, target: Text) -> Match:
    segment = Segment(source.plain, target.plain, src_codes=source.codes, tgt_codes=target.codes)
    return Match(segment, 0.8, 1)


def add_whole(coded: SourceSegment, translation: Translation) -> None:
    coded.add(0, coded.read, translation, is_whole=True)


OLD, NEW = "les femmes de 1998", "les femmes de 1997"


@pytest.mark.parametrize(
    ("query", "source", "target", "said", "wanted"),
    [
        # a person left the article out
        ("the *women* of 1997", "the *women* of 1998", "les *femmes* de 1998", NEW, True),
        # other codes, other spans, another text, nothing to place
        ("the *women* of 1997", "the women of 1998", OLD, NEW, False),
        ("the *women* of 1997", "*the women of 1998*", f"*{OLD}*", NEW, False),
        ("the *women* of 1997", "the *women* of 1998", f"*{OLD}*", NEW, False),
        ("the *women* of 1997", "the *women* of 1998", "*femmes* 1998", "aucune fille", False),
        ("*the women of 1997*", "*the women of 1998*", f"*{OLD}*", NEW, False),
    ],
)
def test_a_pair_that_is_like_the_translation_lends_its_places(
    query: str, source: str, target: str, said: str, wanted: bool
) -> None:
    sides = [
        bold(text, codes) if "*" in text else Text(text)
        for text, codes in ((query, ITALIC), (source, BOLD), (target, BOLD))
    ]
    coded, done = (
        SourceSegment(sides[0], FILTERS),
        Translation("", said, 0.0, (pair(sides[1], sides[2]),)),
    )
    add_whole(coded, done)
    assert (written(coded.restore(done)) != said) and bool(coded.placement.whole_target) == wanted
    if wanted:
        found = coded.restore(done)
        assert written(found) == "les <i>femmes</i> de 1997"


@settings(max_examples=200)
@given(SOURCES, st.integers(0, 10**6), st.integers(0, 7))
def test_borrowed_codes_are_as_whole_as_others(source: Text, seed: int, changed: int) -> None:
    words = ["A", "B", "C", "D", "E", "F", "G", "H"]
    chance = np.random.default_rng(seed)
    rows, columns = token_spans(" ".join(words)), token_spans(source.plain)
    target = place(source, " ".join(words), columns, rows, chance.random((len(rows), len(columns))))
    coded = SourceSegment(source, FILTERS)
    words[changed] = "X"
    done = Translation("", " ".join(words), 0.0, (pair(coded.source, target),))
    add_whole(coded, done)
    if coded.placement.whole_target is not None:
        found = coded.restore(done)
        text = Text(found.tgt, found.tgt_codes)
        kept(without_blanks(source), without_blanks(text))
        for front in (True, False):
            for number in outside(without_blanks(source), columns, front):
                code = without_blanks(text).codes[number]
                assert code.markup == without_blanks(source).codes[number].markup
                beside = text.plain[: code.at] if front else text.plain[code.at :]
                assert not beside.strip()


# --- sessions


@pytest.mark.parametrize("kept_in_index", [True, False])
def test_a_session_keeps_the_codes_of_what_is_confirmed(
    folder: Path, tmp_path: Path, kept_in_index: bool
) -> None:
    path = tmp_path / "index"
    translator = Translator.load(folder, write_to=path if kept_in_index else None)
    session = translator.session()
    source = bold("It *shall* apply.")
    assert session.translate(source).origin == "model"
    session.confirm(source, bold("Il est *applicable*."))
    again = session.translate(source)
    assert (written(again), again.origin) == ("Il est <b>applicable</b>.", "memory")
    lent = session.translate(bold("It *shall* apply.", ITALIC))
    assert written(lent) == "Il est <i>applicable</i>."
    session.save(tmp_path / "session")
    restored = translator.session(tmp_path / "session")
    assert restored.done == session.done
    assert written(restored.translate(source)) == "Il est <b>applicable</b>."
    if kept_in_index:
        (segment,) = MemoryIndex.open(path).segments()
        assert (segment.src_codes, segment.tgt_codes) == (
            source.codes,
            bold("Il est *applicable*.").codes,
        )


def test_the_same_text_with_other_codes_is_another_pair(folder: Path, tmp_path: Path) -> None:
    translator = Translator.load(folder, write_to=tmp_path / "index")
    session = translator.session()
    for codes in (BOLD, BOLD, ITALIC):
        session.confirm(bold("It *shall* apply.", codes), bold("Il est *applicable*.", codes))
    session.confirm("It shall apply.", "Il est applicable.")  # what the memory gives anyway
    segments_ = list(MemoryIndex.open(tmp_path / "index").segments())
    assert [one.src_codes[0].markup for one in segments_] == ["<b>", "<i>"]
    found = session.translate(bold("It *shall* apply.")), session.translate("It shall apply.")
    assert [written(one) for one in found] == ["Il est <b>applicable</b>.", "Il est applicable."]


def test_a_half_of_a_character_in_a_code_is_refused(translator: Translator) -> None:
    with pytest.raises(UsageError, match="half of a surrogate pair"):
        translator.translate([Text("a", (Code(0, "standalone", "\ud800"),))])
    with pytest.raises(UsageError, match="a list of texts is wanted"):
        translator.translate(Text("a"))  # type: ignore[arg-type]


def test_a_letter_written_byte_by_byte_is_told_in_capitals(translator: Translator) -> None:
    (free,) = translator.translate([PAIRS[0][0]], explain=True)
    pieces = ("▁z", "<0xC5>", "<0x82>", "oty")
    tokens = tuple(replace(free.tokens[0], text=piece) for piece in pieces)
    coded = SourceSegment("THE ZŁOTY", FILTERS)
    made = replace(free, tgt="ZŁOTY", tokens=tokens)
    add_whole(coded, made)
    assert [word for word, _ in words(coded.restore(made).tokens)] == ["ZŁOTY"]
