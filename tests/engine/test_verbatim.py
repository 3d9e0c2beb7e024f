"""Exact matches as they stand: what the memory holds itself is not translated again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt import Translator
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import UsageError
from tmnmt.index import build
from tmnmt.segments import Segment


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def index(tmp_path: Path) -> Path:
    changed = "2020-01-01T00:00:00Z"
    own = [replace(segment, tgt=f"vu la {segment.tgt}", changed=changed) for segment in segments()]
    build(tmp_path / "index", [*segments(), *own], "en", "fr")
    return tmp_path / "index"


def test_the_newest_exact_match_comes_back_as_it_stands_and_the_others_are_translated(
    folder: Path, index: Path
) -> None:
    texts = [PAIRS[0][0], "This Decision is addressed to the Council.", f"  {PAIRS[1][0]} "]
    found = Translator.load(folder, [index], TranslationOptions(cache=0, verbatim=100)).translate(
        texts, explain=True
    )
    usual = Translator.load(folder, [index], TranslationOptions(cache=0)).translate(
        texts, explain=True
    )
    assert [found[0].tgt, found[2].tgt] == [f"vu la {PAIRS[0][1]}", f"vu la {PAIRS[1][1]}"]
    assert found[0].score == 0.0 and found[0].matches == usual[0].matches
    assert (found[1].tgt, found[1].matches) == (usual[1].tgt, usual[1].matches)
    assert found[1].score == pytest.approx(usual[1].score, abs=1e-4)


def test_every_subword_is_said_to_be_copied_from_that_pair(folder: Path, index: Path) -> None:
    translator = Translator.load(folder, [index], TranslationOptions(verbatim=100))
    found = translator.translate([PAIRS[0][0]], explain=True)[0]
    assert "".join(token.text for token in found.tokens).replace("▁", " ").strip() == found.tgt
    assert {(token.origin, token.probability, token.copied) for token in found.tokens} == {
        ("memory", 1.0, 1.0)
    }
    assert [token.sources[0].position for token in found.tokens] == list(range(len(found.tokens)))
    assert {token.sources[0].match for token in found.tokens} == {0}


def test_what_was_taken_is_not_confirmed(folder: Path, index: Path) -> None:
    session = Translator.load(folder, [index], TranslationOptions(verbatim=100)).session()
    session.translate(PAIRS[0][0])
    assert not len(session.histories.get("cache", ()))


def test_what_was_taken_is_in_a_cache_of_translations_as_a_confirmed_text_would_be(
    folder: Path, index: Path
) -> None:
    taken = Translator.load(
        folder, [index], TranslationOptions(cache=30, remember="own", verbatim=100)
    ).session()
    confirmed = Translator.load(
        folder, [index], TranslationOptions(cache=30, remember="own")
    ).session()
    taken.translate(PAIRS[0][0])
    confirmed.confirm(PAIRS[0][0], f"vu la {PAIRS[0][1]}")
    assert taken.histories["cache"].ids.tolist() == confirmed.histories["cache"].ids.tolist()
    torch.testing.assert_close(taken.histories["cache"].keys, confirmed.histories["cache"].keys)


def test_a_long_segment_that_a_memory_holds_is_taken_whole(folder: Path, tmp_path: Path) -> None:
    long = " ".join(
        [PAIRS[0][0], *(f"Article {n} of that Directive is replaced." for n in range(30))]
    )
    build(tmp_path / "long", [Segment(long, "TOUT"), *segments()], "en", "fr")
    translator = Translator.load(folder, [tmp_path / "long"])
    taken, alike = translator.translate([long, f"{long} Repealed."])
    assert (taken.tgt, taken.origin, taken.score) == ("TOUT", "memory", 0.0)
    assert alike.origin == "model" and "TOUT" not in alike.tgt
    assert translator.tally.changed["had more than 40 subwords, translated in pieces"] == 1


def test_a_long_segment_that_was_confirmed_is_taken_whole(folder: Path) -> None:
    long = " ".join(f"Article {n} of that Directive is replaced." for n in range(30))
    translator = Translator.load(folder)
    session = translator.session()
    session.confirm(long, "TOUT")
    found = session.translate(long, explain=True)
    assert (found.tgt, found.origin) == ("TOUT", "memory") and [
        m.segment.tgt for m in found.matches
    ] == ["TOUT"]
    streamed = list(translator.stream([[long, long]], confirmed=[[(long, "TOUT"), None]]))
    assert streamed[0].tgt != "TOUT" == streamed[1].tgt


def test_what_this_session_confirmed_last_is_taken_before_what_the_memory_holds(
    folder: Path, index: Path
) -> None:
    translator = Translator.load(folder, [index])
    session = translator.session()
    assert session.translate(PAIRS[0][0]).tgt == f"vu la {PAIRS[0][1]}"
    for tgt in ("une", "deux"):
        session.confirm(PAIRS[0][0], tgt)
        assert session.translate(PAIRS[0][0]).tgt == tgt
    assert translator.session().translate(PAIRS[0][0]).tgt == f"vu la {PAIRS[0][1]}"
    kept = Translator.load(folder, [index], TranslationOptions(confirm_to="cache")).session()
    kept.confirm(PAIRS[0][0], "une")
    assert kept.translate(PAIRS[0][0]).tgt == f"vu la {PAIRS[0][1]}"


@pytest.mark.parametrize("mode", [None, "off", "fusion"])
def test_exact_matches_are_taken_by_default_whatever_the_mode(
    folder: Path, index: Path, mode: str | None
) -> None:
    taken = Translator.load(folder, [index], TranslationOptions(mode=mode))
    assert taken.translate([PAIRS[0][0]])[0].tgt == f"vu la {PAIRS[0][1]}"
    asked = Translator.load(folder, [index], TranslationOptions(mode=mode, verbatim=0))
    assert asked.translate([PAIRS[0][0]])[0].origin == "model"


def test_a_model_that_reads_no_memory_takes_exact_matches_alone(
    tmp_path: Path, index: Path
) -> None:
    plain = write_tiny_model(tmp_path / "plain", memories=False)
    translator = Translator.load(plain, [index], TranslationOptions(mode="off"))
    found = translator.translate([PAIRS[0][0], "Repealed."])
    assert (found[0].tgt, found[0].origin, found[1].origin) == (
        f"vu la {PAIRS[0][1]}",
        "memory",
        "model",
    )
    assert found[1].tgt == Translator.load(plain).translate(["Repealed."])[0].tgt
    with pytest.raises(UsageError, match="no parameters for mode copy"):
        Translator.load(plain, [index], TranslationOptions(mode="copy"))


PAGE = Segment("Page 3 of 12.", "Page 3 sur 12.", "manual", 1)


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    around = [
        Segment("Here it begins.", "Début.", "manual", 0),
        PAGE,
        Segment("It goes on.", "Suite.", "manual", 2),
    ]
    other = Segment("It goes on.", "On continue.", "other", 7)
    build(tmp_path / "pages", [*around, other, replace(other, position=9)], "en", "fr")
    return tmp_path / "pages"


def test_a_full_match_with_other_numbers_is_taken_adapted_and_marked(
    folder: Path, pages: Path
) -> None:
    translator = Translator.load(folder, [pages])
    found = translator.translate(["Page 7 of 31.", "PAGE 7 OF 31."], explain=True)
    assert (found[0].tgt, found[0].origin) == ("Page 7 sur 31.", "adapted")
    assert found[1].origin == "model"  # worth 99
    (match,) = [match for match in found[0].matches if match.segment.tgt == PAGE.tgt]
    assert match.worth is not None and (match.worth.value, match.worth.tgt) == (100, found[0].tgt)
    read = [token for token in found[0].tokens if token.sources]
    put_in = [token.text for token in found[0].tokens if not token.sources]
    assert read and put_in and not set("".join(put_in)) & set("agesur")
    assert {source.position for token in read for source in token.sources} <= set(range(99))


def test_from_what_worth_on_a_match_is_taken_is_a_setting(folder: Path, pages: Path) -> None:
    def origins(verbatim: int, memory: str = str(pages)) -> list[str]:
        translator = Translator.load(folder, [memory], TranslationOptions(verbatim=verbatim))
        texts = ["Here it begins.", "It goes on.", "", "Page 7 of 31.", "PAGE 8 OF 31."]
        return [found.origin for found in translator.translate(texts) if found.src]

    assert origins(0) == ["model"] * 4
    assert origins(100) == ["memory", "memory", "adapted", "model"]
    assert origins(101) == ["model"] * 4
    assert origins(99) == ["memory", "memory", "adapted", "fuzzy"]
    assert origins(100, f"{pages}:penalty=1") == ["model"] * 4
    assert origins(99, f"{pages}:penalty=1") == ["fuzzy", "fuzzy", "fuzzy", "model"]


def test_of_exact_matches_the_one_in_the_same_place_is_taken(folder: Path, pages: Path) -> None:
    translator = Translator.load(folder, [pages])
    (alone,) = translator.translate(["It goes on."])
    together = translator.translate(["Here it begins.", PAGE.src, "It goes on."])
    assert alone.tgt == "On continue." and together[2].tgt == "Suite."
    values = [match.worth.value for one in together for match in one.matches[:1] if match.worth]
    assert values == [101, 102, 101]
    strict = Translator.load(folder, [pages], TranslationOptions(verbatim=102))
    assert [
        one.origin for one in strict.translate(["Here it begins.", PAGE.src, "It goes on."])
    ] == [
        "model",
        "memory",
        "model",
    ]


def test_what_a_session_confirmed_is_adapted_and_its_last_segment_is_the_one_before(
    folder: Path, pages: Path
) -> None:
    session = Translator.load(folder, [pages]).session()
    session.confirm("Chapter 3 begins.", "Voici le chapitre 3.")
    found = session.translate("Chapter 8 begins.")
    assert (found.tgt, found.origin) == ("Voici le chapitre 8.", "adapted")
    session.confirm(PAGE.src, PAGE.tgt)
    assert session.translate("It goes on.").tgt == "Suite."
