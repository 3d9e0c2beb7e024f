"""Terms through the translator: soft and hard, explained, and checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_model import PAIRS, write_tiny_model

from tmnmt.checks import Check
from tmnmt.codes.record import Source
from tmnmt.config.options import Terms, TermsMode, TranslationOptions
from tmnmt.errors import UsageError
from tmnmt.records import checks_of, words
from tmnmt.segments import Translation
from tmnmt.terms import rewriting
from tmnmt.terms.find import Finder
from tmnmt.terms.insertion import Insert
from tmnmt.terms.rewriting import Fixed
from tmnmt.terms.term import Term
from tmnmt.terms.term_list import TermList
from tmnmt.translator import Translator

SOURCE = PAIRS[0][0]  # The Commission shall inform the Member States.


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_tiny_model(tmp_path_factory.mktemp("terms") / "model")


def loaded(model: Path, folder: Path, text: str, mode: TermsMode = "soft") -> Translator:
    (folder / "terms.txt").write_text(text, encoding="utf-8")
    options = TranslationOptions(terms=folder / "terms.txt", terms_mode=mode, beam=2)
    return Translator.load(model, options=options)


def translated(model: Path, folder: Path, text: str, mode: TermsMode) -> Translation:
    return loaded(model, folder, text, mode).translate([SOURCE], explain=True)[0]


def test_a_path_in_place_of_the_options_is_refused_in_a_line(model: Path) -> None:
    with pytest.raises(UsageError, match=r"'x.csv' is no options: write TranslationOptions\(...\)"):
        Translator.load(model, options="x.csv")  # type: ignore[arg-type]


def test_the_tiny_model_knows_its_pair(model: Path) -> None:
    assert Translator.load(model).translate([SOURCE])[0].tgt == PAIRS[0][1]


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_a_term_comes_and_is_told_as_one(model: Path, tmp_path: Path, mode: TermsMode) -> None:
    found = translated(model, tmp_path, "Commission\tDirective\n", mode)
    assert "Directive" in found.tgt and found.user_checks == ()
    told = {word.strip(".").lower() for word, origin in words(found.tokens) if origin == "term"}
    assert told == {"directive"}


def test_another_form_will_do_where_terms_are_soft_and_not_where_they_are_hard(
    model: Path, tmp_path: Path
) -> None:
    text = "Member State\tÉtat membre\n"
    soft = translated(model, tmp_path, text, "soft")
    assert soft.tgt == PAIRS[0][1]
    assert [word for word, origin in words(soft.tokens) if origin == "term"] == [
        "États",
        "membres.",
    ]
    assert "État membre" in translated(model, tmp_path, text, "hard").tgt


def test_what_was_there_comes_again_beside_what_was_missing(model: Path, tmp_path: Path) -> None:
    text = "Member State\tÉtat membre\nCommission\tDirective\n"
    found = translated(model, tmp_path, text, "soft")
    assert "Directive" in found.tgt and found.user_checks == ()


def test_segments_without_a_term_are_translated_as_ever(model: Path, tmp_path: Path) -> None:
    sources = [src for src, _ in PAIRS]
    plain = Translator.load(model, options=TranslationOptions(beam=2)).translate(sources)
    for mode in ("soft", "hard"):
        with_terms = loaded(model, tmp_path, "zebra\tzèbre\n", mode).translate(sources)
        assert with_terms == plain


def test_a_capital_follows_the_source_and_masks_do_not_hide_terms(
    model: Path, tmp_path: Path
) -> None:
    translator = loaded(model, tmp_path, "commission\tdirective\n", "hard")
    for source in (SOURCE, SOURCE.replace("States", "%s"), SOURCE.upper()):
        assert "directive" in translator.translate([source])[0].tgt.lower()


def test_the_name_of_a_role_is_no_term_and_a_word_beside_it_is_one(model: Path) -> None:
    """What is copied as it stands lacks no translation of its parts; a term that is the whole of it
    still counts."""
    vocab = Translator.load(model).vocab
    terms = TermList(Finder([Term("class", ("rang",)), Term("HTTP_OK", ("OUI",))]), vocab, False)
    assert terms.check("See :class:`type`.", "Voir :class:`type`.") == []
    found = terms.check("A class of :class:`type`.", "Un :class:`type`.")
    assert found == [Check("terms", "rang for class")]
    assert terms.check("Open HTTP_OK now.", "Ouvrir HTTP_OK.") == [
        Check("terms", "OUI for HTTP_OK")
    ]


def test_what_is_forbidden_is_told_also_in_what_a_memory_has(model: Path, tmp_path: Path) -> None:
    (tmp_path / "m.tsv").write_text("src\ttgt\n" + "\t".join(PAIRS[0]) + "\n", encoding="utf-8")
    (tmp_path / "t.tsv").write_text(
        "source\ttarget\tforbidden\nCommission\t\tCommission\n", encoding="utf-8"
    )
    options = TranslationOptions(terms=tmp_path / "t.tsv")
    for memory, origin in (([], "model"), ([tmp_path / "m.tsv"], "memory")):
        (found,) = Translator.load(model, memory, options).translate([SOURCE])
        assert found.origin == origin
        assert checks_of(found) == [Check("forbidden", "Commission for Commission")]


def test_all_but_the_term_stays_and_the_score_is_that_of_the_free_translation(
    model: Path, tmp_path: Path
) -> None:
    free = Translator.load(model, options=TranslationOptions(beam=2)).translate([SOURCE])[0]
    found = translated(model, tmp_path, "Commission\tzèbre\n", "hard")
    words_of, free_words = found.tgt.split(), free.tgt.split()
    assert "zèbre" in words_of[:2] and words_of[2:] == free_words[2:]
    assert found.score == free.score and found.low == free.low


def test_a_hard_term_whose_source_is_not_translated_comes_and_a_soft_one_is_told(
    model: Path, tmp_path: Path
) -> None:
    """shall has no word of its own in the translation, or one that is no term's."""
    text = "Commission\tCommission\nshall\tzèbre\n"
    assert "zèbre" in translated(model, tmp_path, text, "hard").tgt
    soft = translated(model, tmp_path, text, "soft")
    assert ("zèbre" in soft.tgt) != any(check.name == "terms" for check in soft.user_checks)


def test_a_mode_without_terms_is_refused() -> None:
    with pytest.raises(UsageError, match="--terms-mode is of --terms"):
        Terms(terms_mode="hard")


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_terms_come_beside_pairs_a_session_cache_and_an_explanation(
    model: Path, tmp_path: Path, mode: TermsMode
) -> None:
    rows = [f"{src} Really.\t{tgt} Vraiment." for src, tgt in PAIRS]
    (tmp_path / "m.tsv").write_text("src\ttgt\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "t.txt").write_text("Commission\tdirective\n", encoding="utf-8")
    translator = Translator.load(
        model,
        [tmp_path / "m.tsv"],
        TranslationOptions(
            remember="own", cache=8, beam=2, terms=tmp_path / "t.txt", terms_mode=mode
        ),
    )
    found = translator.translate([src for src, _ in PAIRS], explain=True)
    for one in found:
        assert one.matches and ("directive" in one.tgt) >= ("Commission" in one.src)
        for token in one.tokens:
            parts = token.generated + token.recalled + token.copied
            assert parts == pytest.approx(token.probability, abs=1e-5)


def test_what_lacks_terms_is_written_anew_for_several_batches_at_once(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And comes as it does alone, with what it was read from."""
    (tmp_path / "m.tsv").write_text(f"src\ttgt\n{SOURCE} Really.\t{PAIRS[0][1]} Vraiment.\n")
    (tmp_path / "t.txt").write_text("Commission\tDirective\n", encoding="utf-8")
    sources = [f"{SOURCE} {number}" for number in range(5)] + [PAIRS[1][0]]
    rows = list[int]()
    led = rewriting.Writer.__init__

    def noted(
        self: rewriting.Writer, parts: Sequence[Sequence[rewriting.Part]], *rest: Any
    ) -> None:
        rows.append(len(parts))
        led(self, parts, *rest)

    monkeypatch.setattr(rewriting.Writer, "__init__", noted)
    made = list[list[Translation]]()
    for batch in (2, 1):
        translator = Translator.load(
            model,
            [tmp_path / "m.tsv"],
            TranslationOptions(beam=2, batch=batch, terms=tmp_path / "t.txt"),
        )
        made.append(list(translator.stream([sources], explain=True)))
        unexplained = translator.translate(sources)
        assert [one.tgt for one in unexplained] == [one.tgt for one in made[-1]]
    together, alone = made
    assert rows == [5, 5, 4, 1, 4, 1]  # four batches of two, and then of one, twice each
    assert all("Directive" in one.tgt for one in together[:5])
    for one, other in zip(together, alone, strict=True):
        assert one.tgt == other.tgt
        assert [[s.match for s in token.sources] for token in one.tokens] == [
            [s.match for s in token.sources] for token in other.tokens
        ]


def test_only_words_near_a_term_may_change_their_endings(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is farther behind it stays as one piece."""
    behind = list[list[rewriting.Part]]()
    led = rewriting.Writer.__init__

    def noted(
        self: rewriting.Writer, parts: Sequence[Sequence[rewriting.Part]], *rest: Any
    ) -> None:
        at = next(at for at, part in enumerate(parts[0]) if isinstance(part, Insert))
        behind.append([*parts[0][at + 1 :]])
        led(self, parts, *rest)

    monkeypatch.setattr(rewriting.Writer, "__init__", noted)
    for reach in (0, 1, 16):
        monkeypatch.setattr("tmnmt.terms.term_list.REACH", reach)
        translated(model, tmp_path, "Commission\tDirective\n", "soft")
    words_behind = PAIRS[0][1].rstrip(".").split()[2:]  # La Commission informe ...
    assert [len(parts) for parts in behind] == [1, 2, len([*words_behind, "."])]
    assert all(isinstance(parts[-1], Fixed) for parts in behind[:2])


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_the_target_that_was_confirmed_in_the_document_comes_back(
    model: Path, tmp_path: Path, mode: TermsMode
) -> None:
    """In it alone, and until it is taken back; what was confirmed last counts, where it is one."""
    translator = loaded(model, tmp_path, "Commission\tCommission\nCommission\tDirective\n", mode)
    session = translator.session()

    def said() -> str:
        return " ".join(
            w for w in ("Commission", "Directive") if w in session.translate(SOURCE).tgt
        )

    assert said() == "Commission"
    session.confirm("To the Commission of Paris", "À la Directive de Paris")
    assert said() == "Directive" and session.translate(SOURCE).user_checks == ()
    assert "Directive" in session.complete(SOURCE, "").tgt
    session.confirm("Commission, Commission!", "Directive, Commission !")
    session.pass_over("The Commission is elsewhere")
    assert said() == "Directive"
    session.save(tmp_path / "session")
    session.confirm("Of the Commission", "De la Commission")
    assert said() == "Commission"
    session.undo()
    assert said() == "Directive"
    session.new_document()
    assert said() == "Commission"
    session = translator.session(tmp_path / "session")
    assert said() == "Directive"
    assert session.knowledge and not session.fork().knowledge


def test_documents_side_by_side_each_go_on_with_their_own_target(
    model: Path, tmp_path: Path
) -> None:
    (tmp_path / "t.txt").write_text("Commission\tCommission\nCommission\tDirective\n")
    translator = Translator.load(
        model, options=TranslationOptions(confirm_to="cache", terms=tmp_path / "t.txt")
    )
    documents = [["Of the Commission", SOURCE]] * 2
    confirmed: list[list[tuple[Source, Source] | None]] = [
        [(documents[0][0], f"De la {word}"), None] for word in ("Directive", "Commission")
    ]
    found = [one.tgt for one in translator.stream(documents, confirmed=confirmed)]
    assert "Directive" in found[1] and "Commission" in found[3]
