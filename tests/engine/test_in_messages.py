"""Messages of an ICU argument are translated as the sentences that they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from places import MODEL

from tmnmt.batch.pretranslate import Pretranslator
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Code, Text
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.retrieve import Retriever
from tmnmt.index import MemoryIndex, build
from tmnmt.records import checks_of
from tmnmt.segments import Segment
from tmnmt.translator import Translator

ONE, OTHER = "The Minister must sign the contract.", "The owners must sign the contract."
WHOLE = f"{{n, plural, one {{{ONE}}} other {{{OTHER}}}}}"


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load(MODEL, [], TranslationOptions(threads=1))


def test_every_message_says_what_it_says_alone(translator: Translator) -> None:
    one, other = (made.tgt for made in translator.translate([ONE, OTHER]))
    expected = f"{{n, plural, one {{{one}}} other {{{other}}}}}"
    (said,) = translator.translate([WHOLE])
    assert (said.src, said.tgt, said.origin) == (WHOLE, expected, "model")
    assert translator.session().translate(WHOLE).tgt == expected
    session = translator.session()
    for typed in ("", "{n, plural, one {L", expected, ""):
        assert session.complete(WHOLE, typed).tgt == expected
    assert session.complete(WHOLE, "{n, plural, one {Il").tgt.startswith("{n, plural, one {Il")
    coded = with_placeholders(Text(WHOLE))
    (made,) = translator.translate([coded])
    assert made.tgt == expected and [code.markup for code in made.tgt_codes] == [
        code.markup for code in coded.codes
    ]
    around = "The Minister must {g, select, a {sign the contract} other {publish it}}."
    whole = f"{{g, select, a {{{ONE}}} other {{The Minister must publish it.}}}}"

    assert translator.translate([around])[0].tgt == translator.translate([whole])[0].tgt


def test_words_and_placeholders_around_are_in_every_message(translator: Translator) -> None:
    around = "Mr {name} and {g, select, a {the owner} other {the owners}} must sign it, {date}."
    first, second = (
        f"Mr {{name}} and the {owner} must sign it, {{date}}." for owner in ("owner", "owners")
    )
    one, other = (made.tgt for made in translator.translate([first, second]))
    (said,) = translator.translate([around])
    assert said.tgt == f"{{g, select, a {{{one}}} other {{{other}}}}}"
    assert checks_of(said) == []
    session = translator.session()
    assert [session.complete(around, typed).tgt for typed in ("", said.tgt)] == [said.tgt] * 2


def test_placeholders_tags_and_capitals_keep_their_places(translator: Translator) -> None:
    text = (
        "{n, plural, one {The <b>Minister</b> shall pay {amount}.} "
        "other {THE MINISTERS SHALL PAY # DOLLARS.}}"
    )
    (said,) = translator.translate([text], explain=True)
    first, second = said.tgt.removeprefix("{n, plural, one {").removesuffix("}}").split("} other {")
    assert first.count("{amount}") == 1 and first.index("<b>") < first.index("</b>")
    assert second.count("#") == 1 and second.isupper()
    assert said.tokens


def test_a_memory_that_has_the_whole_gives_it(tmp_path: Path) -> None:
    target = "{n, plural, one {Un} other {Plusieurs}}"
    build(tmp_path / "memory", [Segment(WHOLE, target)], "en", "fr")
    translator = Translator.load(MODEL, [tmp_path / "memory"], TranslationOptions(threads=1))
    assert translator.translate([WHOLE])[0].tgt == target
    near = WHOLE.replace("contract", "lease")
    assert translator.translate([near])[0].matches[0].segment.tgt == "Un"
    session = Translator.load(MODEL, [], TranslationOptions(threads=1)).session()
    session.confirm(WHOLE, target)
    assert session.translate(WHOLE).tgt == target


def test_messages_that_a_memory_has_stand_beside_those_of_the_model(
    translator: Translator, tmp_path: Path
) -> None:
    pairs = [
        Segment(ONE, "Le ministre doit signer."),
        Segment("{n, plural, one {# lease of {x}} other {# leases of {x}}}", LEASES),
    ]
    build(tmp_path / "memory", pairs, "en", "fr")
    with_memory = Translator.load(MODEL, [tmp_path / "memory"], TranslationOptions(threads=1))
    (said,) = with_memory.translate([WHOLE])
    assert said.tgt.startswith("{n, plural, one {Le ministre doit signer.} other {")
    assert said.origin == "model"
    session = translator.session()
    session.confirm(ONE, "Le ministre doit signer.")
    assert session.translate(WHOLE).tgt.startswith(said.tgt[:44])
    assert session.complete(WHOLE, "").tgt == session.translate(WHOLE).tgt
    alone = f"{{g, select, a {{{ONE}}} other {{}}}}"
    assert with_memory.translate([alone])[0].tgt == (
        "{g, select, a {Le ministre doit signer.} other {}}"
    )


LEASES = "{n, plural, one {# bail de {x}} many {# de baux de {x}} other {# baux de {x}}}"
SAME = {
    "{n, plural, one {# lease of {x}} other {# leases of {x}}}": LEASES,
    "{n,plural,one{# lease of {x}}other{# leases of {x}}}": LEASES,
    # frames are those of the text where others stand around the same messages
    "{k, plural, =0 {} one {# lease of {x}} other {# leases of {x}}}": (
        "{k, plural, =0 {} one {# bail de {x}} other {# baux de {x}}}"
    ),
}


@pytest.mark.parametrize("text", SAME)
def test_messages_of_a_pair_are_taken_by_their_keys(tmp_path: Path, text: str) -> None:
    source = "{n, plural, one {# lease of {x}} other {# leases of {x}}}"
    build(tmp_path / "memory", [Segment(source, LEASES)], "en", "fr")
    translator = Translator.load(MODEL, [tmp_path / "memory"], TranslationOptions(threads=1))
    (said,) = translator.translate([text])
    # messages that are put together are no full match of the whole
    assert (said.tgt, said.origin) == (SAME[text], "memory" if SAME[text] == LEASES else "adapted")
    if SAME[text] == LEASES:
        with MemoryIndex.open(tmp_path / "memory") as index:
            pretranslator = Pretranslator(Retriever([index], 3, 0.5))
            (taken,) = pretranslator.stream([with_placeholders(Text(text))])
        assert taken.tgt == LEASES


def test_a_pair_that_is_like_the_whole_lends_its_messages(translator: Translator) -> None:
    session = translator.session()
    session.confirm(
        "{n, plural, one {# contract was signed.} other {# contracts were signed.}}",
        "{n, plural, one {# contrat a été signé.} other {# contrats ont été signés.}}",
    )
    text = "{n, plural, one {# contract was revoked.} other {# contracts were revoked.}}"
    said = session.translate(text)
    one, other = said.tgt.removeprefix("{n, plural, one {").split("} other {")
    assert one.startswith("# contrat a été") and other.startswith("# contrats ont été")
    assert said.matches[0].segment.src == "# contract was signed."
    other_thing = session.translate("{n, plural, one {# house} other {# houses}}")
    assert not other_thing.matches


def test_a_message_that_loses_a_sentence_is_translated_sentence_by_sentence(
    translator: Translator,
) -> None:
    text = "The Minister signed the contracts. The owner did not. The tenant did."
    (alone,) = translator.translate([text])
    (said,) = translator.translate([f"{{g, select, a {{{text}}} other {{}}}}"])
    assert said.tgt == f"{{g, select, a {{{alone.tgt}}} other {{}}}}"


def test_messages_over_several_lines_are_found_in_texts_with_codes(translator: Translator) -> None:
    lines = f"{{n, plural,\n  one {{{ONE}}}\n  other {{{OTHER}}}\n}}"
    tag = Code(0, "standalone", "<x/>", form="xliff")
    (said,) = translator.translate([Text(lines, (tag,))])
    one, other = (made.tgt for made in translator.translate([ONE, OTHER]))
    assert " ".join(said.tgt.split()) == f"{{n, plural, one {{{one}}} other {{{other}}} }}"


def test_a_catalogue_keeps_its_form(translator: Translator, tmp_path: Path) -> None:
    from tmnmt.files.opening import open_translatable
    from tmnmt.files.unit import Filling

    (tmp_path / "a.arb").write_text(json.dumps({"@@locale": "en", "a": WHOLE, "b": ONE}))
    file = open_translatable(tmp_path / "a.arb")
    units = [unit for document in file.documents() for unit in document.units]
    made = translator.translate([unit.source for unit in units])
    fillings = [Filling(Text(one.tgt, one.tgt_codes), "model") for one in made]
    with (tmp_path / "b.arb").open("wb") as to:
        file.write(to, fillings)
    strings = json.loads((tmp_path / "b.arb").read_text())
    assert strings["a"].startswith("{n, plural, one {" + strings["b"] + "} other {")
