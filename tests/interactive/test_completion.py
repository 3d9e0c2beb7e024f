"""Translations that go on from what was typed of them: the typed text stays as it is, all memories
are read, and what was kept from one keystroke to the next changes nothing."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_model import PAIRS, segments, trained, write_tiny_model

from tmnmt import Translator
from tmnmt.codes.record import Code, Text
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.assembly import Assembly
from tmnmt.errors import UsageError
from tmnmt.index import build
from tmnmt.interactive import completion
from tmnmt.interactive.cache import CACHE_SIZE
from tmnmt.interactive.prefix import Opening, Spellings, Typed
from tmnmt.models.folder import save_model
from tmnmt.models.transformer import Transformer
from tmnmt.records import decode_subwords, translation_record
from tmnmt.segments import Translation
from tmnmt.session import Session

SOURCE = "The Commission shall inform the Council."
LONG = " ".join(src for src, _ in PAIRS)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    build(folder / "index", segments(), "en", "fr")
    return write_tiny_model(folder / "model")


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    return Translator.load(folder, [folder.parent / "index"], TranslationOptions(threads=1))


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """A random one: its state is written over in place."""
    torch.manual_seed(3)
    vocab, _ = trained()
    sizes = {"hidden": 16, "feed_forward": 32, "heads": 2}
    backbone = Transformer(len(vocab), **sizes)  # type: ignore[arg-type]
    folder = tmp_path_factory.mktemp("transformer")
    config = {"src_lang": "en", "tgt_lang": "fr", "max_subwords": 40}
    save_model(folder, backbone, vocab, config | {"model": {"kind": "transformer"} | sizes})
    return Translator.load(folder, options=TranslationOptions(threads=1))


def said(translation: Translation) -> str:
    """What its tokens spell."""
    return "".join(decode_subwords([token.text for token in translation.tokens])).removeprefix(" ")


@pytest.mark.parametrize("source", [SOURCE, PAIRS[0][0], LONG, "THE COMMISSION SHALL.", " ", "%s!"])
@pytest.mark.parametrize("beam", [1, 5])
def test_with_nothing_typed_it_is_what_translate_gives(
    folder: Path, source: str, beam: int
) -> None:
    index = folder.parent / "index"
    translator = Translator.load(folder, [index], TranslationOptions(beam=beam, threads=1))
    session = translator.session()
    session.confirm("It is void.", "Il est nul.")
    wanted = session.translate(source, explain=True)
    assert session.complete(source, "", explain=True) == wanted
    assert session.complete(source, "").tokens == ()


def test_what_is_typed_beyond_the_longest_translation_stays_whole(translator: Translator) -> None:
    typed = "Le présent règlement entre en vigueur aujourd'hu"
    found = translator.complete(PAIRS[0][0], typed, explain=True)
    assert found.tgt == typed and said(found) == typed
    assert {token.origin for token in found.tokens} == {"typed"}


def _with_zeros(text: str) -> str:
    """The text with a 0 for every number, and with single blanks."""
    return " ".join(re.sub(r"[0-9]+", "0", text).split())


@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_it_begins_with_what_was_typed_of_real_sentences(
    translator: Translator, data: st.DataObject
) -> None:
    source = data.draw(st.sampled_from([SOURCE, LONG, *(src for src, _ in PAIRS)]))
    target = data.draw(st.sampled_from([tgt for _, tgt in PAIRS]))
    prefix = target[: data.draw(st.integers(0, len(target)))]
    found = translator.complete(source, prefix, explain=True)
    assert found.tgt.startswith(prefix)
    # a subword of nothing but a blank may be the last one, and is no text; a wrong number of the
    # model becomes that of the source in the text alone
    assert _with_zeros(said(found)) == _with_zeros(found.tgt)
    typed = [token.origin == "typed" for token in found.tokens]
    assert typed == sorted(typed, reverse=True)
    whole = "".join(decode_subwords([t.text for t in found.tokens if t.origin == "typed"])).lstrip(
        " "
    )
    assert prefix.startswith(whole)
    for token in found.tokens:
        parts = token.generated + token.recalled + token.copied
        assert parts == pytest.approx(token.probability, abs=1e-5)


@given(prefix=st.text(max_size=30))
@settings(max_examples=30, deadline=None)
def test_it_begins_with_whatever_was_typed(translator: Translator, prefix: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in prefix):
        with pytest.raises(UsageError, match="surrogate"):
            translator.complete(SOURCE, prefix)
    else:
        assert translator.complete(SOURCE, prefix).tgt.startswith(prefix)


@pytest.mark.parametrize(
    "prefix", ["La  Comm", " La", "La\tC", "La Commission ", "½ ", "œuvr", "中"]
)
def test_blanks_and_letters_that_are_no_subwords_stay(translator: Translator, prefix: str) -> None:
    found = translator.complete(SOURCE, prefix)
    assert found.tgt.startswith(prefix)
    assert found.tgt[len(prefix) :] == found.tgt[len(prefix) :].strip("\ufffd")


@pytest.mark.parametrize("blank", [" ", "  ", "\n"])
def test_a_blank_behind_a_whole_suggestion_adds_nothing(folder: Path, blank: str) -> None:
    source, target = PAIRS[1]
    translator = Translator.load(folder, options=TranslationOptions(verbatim=0, threads=1))
    for known in (True, False):
        session = translator.session()
        if known:
            session.complete(source, "")
            assert session.next_words(source, target + blank) == ""
        found = session.complete(source, target + blank, explain=True)
        assert found.tgt == target + blank
        assert {token.origin for token in found.tokens} == {"typed"}
    cut = target.rpartition(" ")[0]
    assert session.complete(source, cut + " ").tgt == target  # something stands behind this one


@pytest.mark.parametrize("source", [source for source, _ in PAIRS])
def test_nothing_is_put_behind_a_finished_sentence_that_the_model_would_not_write(
    folder: Path, source: str
) -> None:
    translator = Translator.load(folder, options=TranslationOptions(verbatim=0, threads=1))
    for _, typed in PAIRS:
        assert translator.session().complete(source, typed).tgt == typed


@pytest.mark.parametrize("typed", ["Les États", "Les États ", "Zut, les zut de la", "La Comm"])
def test_the_score_is_what_the_model_gives_to_the_whole(folder: Path, typed: str) -> None:
    """Though what is typed is certain to the search."""
    translator = Translator.load(folder, options=TranslationOptions(verbatim=0, threads=1))
    found = translator.session().complete(SOURCE, typed, explain=True)
    written = sum(math.log(token.probability) for token in found.tokens)
    length = len(found.tokens) + 1
    assert written / length - 0.1 < found.score <= written / length + 1e-6 < 0


def test_half_a_word_opens_the_words_that_begin_so(folder: Path) -> None:
    """The model knows the sentence by heart."""
    source, target = PAIRS[1]
    translator = Translator.load(folder, options=TranslationOptions(verbatim=0, threads=1))
    for end in range(1, len(target) + 1):
        assert translator.session().complete(source, target[:end]).tgt == target


def test_what_agrees_with_the_suggestion_is_not_decoded(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = translator.session()
    suggested = session.complete(SOURCE, "").tgt
    with monkeypatch.context() as patched:
        patched.setattr(completion, "search_on", None)
        for end in range(len(suggested) + 1):
            assert session.complete(SOURCE, suggested[:end]).tgt == suggested
    other = session.complete(SOURCE, "Zut ").tgt
    assert other.startswith("Zut ")
    monkeypatch.setattr(completion, "search_on", None)
    assert session.complete(SOURCE, other[:6]).tgt == other
    assert session.complete(SOURCE, "").tgt == suggested


@pytest.mark.parametrize("kind", ["translator", "transformer"])
@pytest.mark.parametrize("beam", [1, 5])
def test_what_was_typed_before_changes_nothing(
    kind: str, beam: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The states that are kept are those of a decoder that begins anew."""
    translator: Translator = request.getfixturevalue(kind)
    monkeypatch.setattr(completion, "BEAM", beam)
    typed = ["x", "Les États zut", "Les États zut de", "Les zut", "Les États zut de la", "Zut", "x"]
    one = translator.session()
    for prefix in typed:
        found = one.complete(SOURCE, prefix, explain=True)
        assert found == translator.session().complete(SOURCE, prefix, explain=True)


def test_a_confirmed_pair_is_read_at_once(translator: Translator) -> None:
    session = translator.session()
    session.complete(SOURCE, "Le ")
    session.confirm(SOURCE, "Le Conseil est informé par la Commission.")
    assert session.complete(SOURCE, "Le ").tgt == "Le Conseil est informé par la Commission."
    other = session.complete(SOURCE, "Il ", explain=True)
    assert other.tgt.startswith("Il ") and other.matches[0].segment.src == SOURCE
    session.undo()
    assert session.complete(SOURCE, "Le ").tgt == translator.complete(SOURCE, "Le ").tgt


def test_what_is_typed_is_not_remembered(folder: Path) -> None:
    own = Translator.load(folder, options=TranslationOptions(remember="own", cache=25, threads=1))
    session = own.session()
    session.complete(SOURCE, "")
    session.complete(SOURCE, "Les ")
    assert len(session.histories.get("cache", ())) == 0
    session.translate(SOURCE)
    assert len(session.histories.get("cache", ())) > 0


def test_a_memory_s_own_translation_stands_until_another_is_typed(translator: Translator) -> None:
    source, target = PAIRS[0]
    found = translator.complete(source, target[:5], explain=True)
    assert (found.tgt, found.origin) == (target, "memory")
    assert found.tokens[0].origin == "typed" and found.tokens[-1].origin == "memory"
    other = translator.complete(source, "Les ", explain=True)
    assert other.origin == "model" and other.tgt.startswith("Les ")
    assert max(token.copied for token in other.tokens) > 0  # its pair is read


@pytest.mark.parametrize(
    ("prefix", "begins"),
    [
        ("", "La Commission informe les <b>États membres</b>"),
        ("La Commission informe les <b>É", "La Commission informe les <b>États membres</b>"),
        ("La Commission <b>informe", "La Commission <b>informe les États membres</b>"),
    ],
)
def test_tags_of_a_string_are_typed_or_suggested_once(
    translator: Translator, prefix: str, begins: str
) -> None:
    source = "The Commission shall inform <b>the Member States</b>."
    suggested = translator.session().complete(source, prefix).tgt
    assert suggested.startswith(begins)
    assert suggested.count("<b>") == suggested.count("</b>") == 1


def test_capitals_stay_capitals(translator: Translator) -> None:
    found = translator.complete("THE COMMISSION SHALL INFORM THE MEMBER STATES TODAY.", "LES ÉT")
    assert found.tgt.startswith("LES ÉT") and found.tgt == found.tgt.upper()


def test_placeholders_that_were_typed_stand_once(translator: Translator) -> None:
    source = "The Commission shall inform %s today."
    for prefix in ("", "La Commission ", "La Commission informe %s", "La Commission informe %s au"):
        found = translator.complete(source, prefix)
        assert found.tgt.startswith(prefix) and found.tgt.count("%s") == 1


def test_codes_are_placed_behind_what_was_typed(translator: Translator) -> None:
    words = "The Commission shall "
    tagged = Text(f"{words}inform.", (Code(len(words), "standalone", "<x/>"),))
    found = translator.complete(tagged, "La Comm")
    assert found.tgt.startswith("La Comm") and len(found.tgt_codes) == 1


@pytest.mark.parametrize("prefix", ["  La  Commission", "Les\u00a0 ", "Zzz. Les Zzz "])
def test_codes_stay_where_the_words_are_another_s(translator: Translator, prefix: str) -> None:
    text = Text(SOURCE, (Code(4, "open", "<b>", "1", "x"), Code(14, "close", "</b>", "1", "x")))
    found = translator.complete(text, prefix)
    assert found.tgt.startswith(prefix) and found.tgt != prefix
    assert [code.markup for code in found.tgt_codes] == ["<b>", "</b>"]
    Text(found.tgt, found.tgt_codes)  # in order, within the text


def test_a_long_segment_is_gone_on_with_piece_by_piece(translator: Translator) -> None:
    pieces = translator.pipeline.preparation.pieces
    assert len(pieces(LONG, Assembly())) > 1
    whole = translator.complete(LONG, "").tgt
    assert whole == translator.translate([LONG])[0].tgt
    at = len(whole) // 2
    prefix = whole[:at].rpartition(" ")[0] + " zut"
    found = translator.session().complete(LONG, prefix, explain=True)
    assert found.tgt.startswith(prefix) and said(found) == found.tgt
    assert found.tgt.endswith(whole[-12:])


def test_a_term_takes_no_place_of_what_was_typed(folder: Path, tmp_path: Path) -> None:
    terms = tmp_path / "terms.csv"
    terms.write_text("en,fr\nCommission,comité\n", encoding="utf-8")
    translator = Translator.load(
        folder, options=TranslationOptions(terms=terms, verbatim=0, threads=1)
    )
    source, target = PAIRS[0]
    assert "comité" in translator.complete(source, "").tgt
    assert translator.complete(source, target[:20]).tgt.startswith(target[:20])


def naive(vocab_bytes: list[bytes], text: bytes) -> set[int]:
    """The subwords with which a way to spell a text begins, by trying all."""

    def possible(left: bytes) -> bool:
        return not left or any(
            one and (one.startswith(left) or (left.startswith(one) and possible(left[len(one) :])))
            for one in vocab_bytes
        )

    return {
        number
        for number, one in enumerate(vocab_bytes)
        if one and (one.startswith(text) or (text.startswith(one) and possible(text[len(one) :])))
    }


@pytest.mark.parametrize(
    "text", [" ", " inf", " États", " l'aut", " 中", " œu", " Directive.", "x"]
)
def test_what_may_follow_is_all_that_spells_it(text: str) -> None:
    vocab, _ = trained()
    spellings = Spellings(vocab)
    spelled = [spellings.bytes_of([number]) for number in range(len(vocab))]
    opening, whole = Opening(text.encode(), spellings), text.encode()
    assert opening.is_possible
    for at in range(len(whole)):
        assert set(opening.allowed(at).tolist()) == naive(spelled, whole[at:])


class Letters:
    """A vocabulary without bytes, which lacks most letters."""

    PIECES = ("<pad>", "<s>", "</s>", "<unk>", "▁", "▁a", "ab", "b", "▁ab")

    def __len__(self) -> int:
        return len(self.PIECES)

    def piece(self, index: int) -> str:
        return self.PIECES[index]

    def encode(self, text: str) -> list[int]:
        known = {"a": [5], "ab": [8]}
        return list(itertools.chain(*(known.get(word, [4, 3]) for word in text.split())))


def test_a_way_that_leads_nowhere_is_not_taken() -> None:
    """▁a leaves "a", which no subword spells in front of what follows."""
    spellings = Spellings(Letters())  # type: ignore[arg-type]
    assert set(Opening(b" aab", spellings).allowed(0).tolist()) == {5}
    assert set(Opening(b" ab", spellings).allowed(0).tolist()) == {4, 5, 8}
    assert not Opening(b" aa b", spellings).is_possible


def test_what_a_vocabulary_cannot_spell_is_decided() -> None:
    spellings = Spellings(Letters())  # type: ignore[arg-type]
    assert Typed.parse("a ab", spellings) == Typed((5,), b" ab", spellings)
    assert Typed.parse("a ç", spellings) == Typed((5, 4, 3), b"", spellings)
    assert Typed.parse("a ", spellings) == Typed((5,), b" ", spellings)
    assert Typed.parse("", spellings) == Typed((), b"", spellings)


@pytest.fixture(autouse=True)
def _sessions_are_not_kept(translator: Translator) -> Iterator[None]:
    yield
    assert len(translator.completions._states) <= CACHE_SIZE


def test_what_others_write_to_a_memory_is_read_after_a_while(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "own", segments(), "en", "fr")
    reader = Translator.load(folder, [tmp_path / "own"], TranslationOptions(threads=1))
    writer = Translator.load(
        folder, options=TranslationOptions(threads=1), write_to=tmp_path / "own"
    ).session()
    reader.complete(SOURCE, "")
    writer.confirm(SOURCE, "Le Conseil est informé.")
    monkeypatch.setattr(completion, "FRESH", 0.0)
    assert reader.complete(SOURCE, "Le").tgt == "Le Conseil est informé."


def test_sentences_at_work_are_forgotten_with_their_session(translator: Translator) -> None:
    session: Session = translator.session()
    session.complete(SOURCE, "x")
    assert any(key[0] is session for key in translator.completions._states)
    translator.completions.forget(session)
    assert not any(key[0] is session for key in translator.completions._states)


@pytest.mark.parametrize("prefix", ["La ", "La Com", "Zut a", "«  x", "La Commission informe"])
@pytest.mark.parametrize("source", [SOURCE, LONG, "THE COMMISSION SHALL INFORM %s."])
def test_the_next_words_are_whole_ones_and_all_of_a_short_rest(
    translator: Translator, monkeypatch: pytest.MonkeyPatch, source: str, prefix: str
) -> None:
    monkeypatch.setattr(completion, "LOOK_AHEAD", 6)
    session = translator.session()
    few = session.next_words(source, prefix)
    monkeypatch.setattr(completion, "LOOK_AHEAD", 1000)
    rest = session.next_words(source, prefix)
    # a cut search may have chosen another beginning; a word that it has is not cut
    assert len(few) < len(rest) or few == rest
    if few and rest.startswith(few):
        assert rest[len(few) :][:1] in ("", " ")
    assert (source == LONG) or prefix + rest == session.complete(source, prefix).tgt


def test_the_next_words_are_those_of_a_suggestion_that_stands(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = translator.session()
    whole = session.complete(SOURCE, "Les").tgt
    monkeypatch.setattr(completion, "search_on", None)  # nothing is decoded
    assert session.next_words(SOURCE, "Les ") == whole.removeprefix("Les ")
    assert session.next_words(" ", "Les") == ""
    taken = translator.session()
    assert taken.next_words(*PAIRS[0][:1], PAIRS[0][1][:4]) == PAIRS[0][1][4:]


def test_the_words_that_may_follow_are_the_likeliest(translator: Translator) -> None:
    """Each is what the search writes there, if it is the first; together they are no more than
    certain."""
    for prefix in ("", "La ", "La C", "La Commission ", "Zut a"):
        some = translator.alternatives(SOURCE, prefix, 4)
        assert 1 <= len(some) <= 4 and len({one.text for one in some}) == len(some)
        chances = [one.probability for one in some]
        assert chances == sorted(chances, reverse=True) and 0 < sum(chances) <= 1 + 1e-5
        half = prefix.rpartition(" ")[2]
        for one in some:
            assert one.text.startswith(half) and " " not in one.text
            assert (
                "".join(decode_subwords([token.text for token in one.tokens])).strip() == one.text
            )
            assert {token.origin for token in one.tokens} <= {"model", "memory", "cache"}


def test_an_alternative_has_the_probability_that_it_has_where_it_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator.load(folder, options=TranslationOptions(verbatim=0, beam=1, threads=1))
    source, target = PAIRS[1]
    found = translator.translate([source], explain=True)[0]
    first = list(itertools.takewhile(lambda t: t == found.tokens[0], found.tokens[:1]))
    rest = list(itertools.takewhile(lambda t: not t.text.startswith("▁"), found.tokens[1:]))
    best = translator.alternatives(source, "", 3)[0]
    assert target.startswith(best.text)
    written = [*first, *rest]
    assert [(one.text, one.origin) for one in best.tokens] == [(t.text, t.origin) for t in written]
    # to rounding: it is one of several rows there
    chances = [one.probability for one in best.tokens]
    assert chances == pytest.approx([one.probability for one in written], abs=1e-6)


def test_a_long_segment_has_alternatives_in_the_piece_that_is_typed(
    translator: Translator,
) -> None:
    whole = translator.complete(LONG, "").tgt
    prefix = whole[: whole.rindex(" ") + 1]
    found = translator.alternatives(LONG, prefix, 5)
    assert whole.split()[-1].rstrip(".") in {one.text.rstrip(".") for one in found}
    assert translator.alternatives(" ", "", 5) == []


def test_so_many_of_the_best_are_told(folder: Path) -> None:
    def told(nbest: int) -> Translator:
        options = TranslationOptions(verbatim=0, beam=5, nbest=nbest, threads=1)
        return Translator.load(folder, options=options)

    for source in (SOURCE, LONG):
        (alone,), (found,) = told(1).translate([source]), told(4).translate([source])
        assert (alone.tgt, alone.score) == (found.tgt, found.score) and not alone.others
        texts = [found.tgt, *(other.tgt for other in found.others)]
        assert 2 <= len(set(texts)) == len(texts) <= 4
        scores = [other.score for other in found.others]
        assert scores == sorted(scores, reverse=True)
        assert [one["tgt"] for one in translation_record(found)["others"]] == texts[1:]
    with pytest.raises(UsageError, match="nbest is 6; a beam of 5"):
        told(6)


def test_others_have_their_placeholders(folder: Path) -> None:
    options = TranslationOptions(verbatim=0, nbest=5, threads=1)
    translator = Translator.load(folder, options=options)
    (found,) = translator.translate(["The Commission shall inform %s."])
    assert found.others and not any("901" in other.tgt for other in found.others)


def test_own_words_are_remembered_of_so_many_as_are_asked_for(folder: Path) -> None:
    """However many are told."""

    def remembered(nbest: int) -> int:
        options = TranslationOptions(
            remember="own", cache=200, cache_overwrite=False, verbatim=0, nbest=nbest, threads=1
        )
        session = Translator.load(folder, options=options).session()
        session.translate(SOURCE)
        return len(session.histories.get("cache", ()))

    assert remembered(1) == remembered(5) > 0
