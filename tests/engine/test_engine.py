"""Retrieve, decode, remember: who is translated with what, in which order, and what is learnt."""

from __future__ import annotations

import itertools
import json
import logging
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file
from tiny_model import PAIRS, segments, write_tiny_model
from torch import Tensor

from tmnmt import Translator
from tmnmt.config.options import (
    ConfirmTo,
    Remember,
    TranslationOptions,
)
from tmnmt.engine.assembly import Assembly, join
from tmnmt.engine.beam_search import Hypothesis
from tmnmt.engine.beam_writer import BeamDraft
from tmnmt.engine.decoder import Decoded
from tmnmt.engine.loading import devices, load_layers
from tmnmt.engine.piece import OpenSegment, Piece
from tmnmt.engine.pieces import pieces
from tmnmt.engine.pipeline import Outcome
from tmnmt.engine.preparation import Preparation
from tmnmt.engine.retrieve import Answer, Request
from tmnmt.engine.schedule import by_length, side_by_side
from tmnmt.engine.settings import Settings
from tmnmt.engine.source_segment import SourceSegment
from tmnmt.engine.streaming import Stream
from tmnmt.errors import DataError, MemoryIndexError, ModelError, UsageError
from tmnmt.filters import Filters
from tmnmt.filters.contract import Reader
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.pair_keys import PairKeys, PairKeyStore, force
from tmnmt.layers.contract import Collated
from tmnmt.models.folder import load_model
from tmnmt.numbers import missing_numbers
from tmnmt.segments import Match, MemorySource, Segment, Token, Translation
from tmnmt.trained_layers.cache import CacheContents, CacheKind
from tmnmt.vocab import EOS, Vocabulary

DOCUMENT = [
    "The Commission shall inform the Council.",
    "It shall apply from 1 June 1997.",
    "",
    "Repealed.",
]

FILTERS = Filters(Reader())


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def plain_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("plain"), memories=False)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    build(tmp_path / "index", segments(), "en", "fr")
    return tmp_path / "index"


def outcome(translations: list[Translation]) -> list[tuple[str, float]]:
    return [(t.tgt, t.score) for t in translations]


def test_as_many_translations_as_texts_and_blank_ones_stay_blank(folder: Path, index: Path) -> None:
    found = Translator.load(folder, [index]).translate(DOCUMENT)
    assert [t.src for t in found] == DOCUMENT
    assert found[2] == Translation("", "", 0.0)
    assert all(t.tgt for t in found if t.src)
    assert found[0].matches[0].segment.tgt == PAIRS[0][1]


def test_a_number_that_the_model_changes_is_that_of_the_source(plain_folder: Path) -> None:
    """The model knows the sentence with 1996, by heart."""
    translator = Translator.load(plain_folder)
    for year in ("1996", "1997"):
        (made,) = translator.translate([f"It shall apply from 1 January {year}."])
        assert year in made.tgt and missing_numbers(made.src, made.tgt) == []


def test_without_memory_and_cache_it_is_the_plain_model_bit_for_bit(
    folder: Path, plain_folder: Path
) -> None:
    plain = Translator.load(plain_folder)
    assert (plain.settings.mode, plain.settings.cache) == ("nearest", 0)
    remembering = Translator.load(folder, options=TranslationOptions(cache=0))
    assert remembering.settings.mode == "copy"
    assert outcome(remembering.translate(DOCUMENT)) == outcome(plain.translate(DOCUMENT))


def test_an_index_without_matches_and_one_that_is_empty_change_nothing(
    folder: Path, index: Path, tmp_path: Path
) -> None:
    texts = ["Wholly different words stand here", "and none of these either", *DOCUMENT]
    build(tmp_path / "empty", [], "en", "fr")
    for memory, some in (([index], texts[:2]), ([tmp_path / "empty"], texts), ([], texts)):
        off = Translator.load(folder, options=TranslationOptions(cache=0, mode="off")).translate(
            some
        )
        for mode in ("copy", "fusion", "both"):
            found = Translator.load(
                folder, memory, TranslationOptions(cache=0, mode=mode)
            ).translate(some)
            assert outcome(found) == outcome(off)
            assert not any(translation.matches for translation in found)


@pytest.mark.parametrize(("mode", "cache"), [("off", 0), ("copy", 0), ("fusion", 25), ("both", 3)])
def test_batches_give_what_single_sentences_give(
    folder: Path, index: Path, mode: str, cache: int
) -> None:
    documents = [
        DOCUMENT,
        ["The Member States shall inform the Commission."],
        [src for src, _ in PAIRS],
    ]
    many, one = (
        list(
            Translator.load(
                folder,
                [index],
                TranslationOptions(
                    cache=cache,
                    remember="own" if cache else "confirmed",
                    mode=mode,
                    batch=batch,
                    verbatim=0,
                ),
            ).stream(documents)
        )
        for batch in (32, 1)
    )
    assert [t.src for t in many] == list(itertools.chain(*documents))
    assert [t.tgt for t in many] == [t.tgt for t in one]
    assert [t.score for t in many] == pytest.approx([t.score for t in one], abs=1e-4)


def test_a_document_remembers_and_a_new_one_forgets(folder: Path) -> None:
    first, second = PAIRS[0][0], PAIRS[4][0]
    translator = Translator.load(folder, options=TranslationOptions(cache=25, remember="own"))
    alone = translator.translate([second])
    remembered, forgotten, other = (
        found[-1].score
        for found in (
            translator.translate([first, second]),
            translator.translate([first, "", second]),
            list(translator.stream([[first], [second]])),
        )
    )
    assert remembered != pytest.approx(alone[0].score, abs=1e-4)
    assert forgotten == pytest.approx(alone[0].score, abs=1e-5)
    assert other == pytest.approx(alone[0].score, abs=1e-5)


def test_a_session_translates_as_the_document_does(folder: Path, index: Path) -> None:
    translator = Translator.load(folder, [index])
    texts = [src for src, _ in PAIRS]
    session = translator.session()
    one_by_one, whole = [session.translate(text) for text in texts], translator.translate(texts)
    assert [t.tgt for t in one_by_one] == [t.tgt for t in whole]
    assert [t.score for t in one_by_one] == pytest.approx([t.score for t in whole], abs=1e-4)


def test_a_confirmed_pair_is_found_by_the_very_next_sentence(folder: Path) -> None:
    translator = Translator.load(folder)
    session = translator.session()
    assert session.translate("Notice of the third meeting").matches == ()
    session.confirm("Notice of the third meeting", "Avis de la troisième réunion")
    session.confirm("Notice of the third meeting", "Avis concernant la troisième réunion")
    found = session.translate("Notice of the fourth meeting")
    assert [m.segment.tgt for m in found.matches] == [
        "Avis concernant la troisième réunion",
        "Avis de la troisième réunion",
    ]
    assert found.matches[0].score == pytest.approx(0.8)


def test_a_confirmed_pair_is_kept_in_a_built_index(folder: Path, index: Path) -> None:
    session = Translator.load(folder, [index], write_to=index).session()
    session.confirm("Notice of the third meeting", "Avis de la troisième réunion")
    with MemoryIndex.open(index) as opened:
        assert (
            opened.search(["Notice of the third meeting"])[0][0].segment.tgt
            == "Avis de la troisième réunion"
        )


def test_a_confirmed_text_takes_the_place_of_the_translation_in_the_cache(folder: Path) -> None:
    translator = Translator.load(folder, options=TranslationOptions(cache=25))
    session = translator.session()
    session.translate(PAIRS[0][0])
    session.confirm(*PAIRS[0])
    ids = translator.vocab.encode(PAIRS[0][1])
    assert session.histories["cache"].ids.tolist() == list(dict.fromkeys(ids))[-25:]
    keys = force(
        translator.pipeline.backbone,
        [([*translator.vocab.encode(PAIRS[0][0]), EOS], [*ids, EOS])],
        "cpu",
    )[0]
    last = session.histories["cache"].ids.tolist().index(ids[-1])
    torch.testing.assert_close(session.histories["cache"].keys[last], keys.contexts[len(ids) - 1])


def test_a_cache_holds_what_is_confirmed_alone_where_nothing_is_said(folder: Path) -> None:
    translator = Translator.load(folder)
    assert (translator.settings.cache, translator.settings.remember) == (
        CacheKind().size,
        "confirmed",
    )
    session = translator.session()
    session.translate(PAIRS[0][0])
    session.translate(PAIRS[1][0])
    assert not len(session.histories.get("cache", ()))
    session.confirm(*PAIRS[0])
    confirmed = list(session.histories["cache"].ids.tolist())
    session.translate(PAIRS[2][0])
    other = Translator.load(folder).session()
    other.confirm(*PAIRS[0])
    caches = [each.histories["cache"].ids.tolist() for each in (session, other)]
    assert caches == [confirmed, confirmed] and confirmed


@pytest.mark.parametrize("own", [False, True])
def test_what_is_confirmed_late_wipes_nothing_that_was_confirmed_before_it(
    folder: Path, own: bool
) -> None:
    translator = Translator.load(
        folder, options=TranslationOptions(cache=200, remember="own" if own else "confirmed")
    )
    late, in_turn = translator.session(), translator.session()
    late.translate(PAIRS[0][0])
    late.translate(PAIRS[1][0])
    for pair in PAIRS[:2]:
        late.confirm(*pair)
    if own:
        in_turn.translate(
            PAIRS[0][0]
        )  # is not in the place of what was translated last, so it stays
    for pair in PAIRS[:2]:
        in_turn.confirm(*pair)
    assert late.histories["cache"].record() == in_turn.histories["cache"].record()
    torch.testing.assert_close(late.histories["cache"].keys, in_turn.histories["cache"].keys)


def test_where_nothing_can_be_confirmed_such_a_cache_changes_nothing(
    folder: Path, index: Path
) -> None:
    found, without = (
        Translator.load(folder, [index], TranslationOptions(cache=cache)) for cache in (None, 0)
    )
    assert outcome(found.translate(DOCUMENT)) == outcome(without.translate(DOCUMENT))
    assert not Translator.load(
        folder, options=TranslationOptions(cache=1000)
    ).settings.remembers  # own words are asked for by their name alone
    assert Translator.load(
        folder, options=TranslationOptions(cache=7, remember="own")
    ).settings.remembers


def test_a_saved_session_goes_on_as_if_it_had_never_been_saved(
    folder: Path, tmp_path: Path
) -> None:
    translator = Translator.load(folder, options=TranslationOptions(cache=6, remember="own"))
    whole, broken = translator.session(), translator.session()
    for session in (whole, broken):
        for text in DOCUMENT[:2]:
            session.translate(text)
    broken.save(tmp_path / "document.session")
    broken = translator.session(tmp_path / "document.session")
    for session in (whole, broken):
        session.confirm(DOCUMENT[1], "Il est applicable.")  # in place of what was translated last
    assert outcome([whole.translate(DOCUMENT[3])]) == outcome([broken.translate(DOCUMENT[3])])
    assert_same_cache(whole, broken)
    assert whole.histories["cache"].record() == broken.histories["cache"].record()


def test_k_best_are_written_worst_first(folder: Path) -> None:
    contexts = torch.tensor([[4.0], [8.0]])
    other = Hypothesis(
        (5, 6), -2.0, -2.0, True, contexts[1:].expand(2, 1), contexts[1:].expand(2, 1)
    )
    best = Hypothesis((5,), -1.0, -1.0, True, contexts[:1], contexts[:1], alternatives=(other,))
    options = TranslationOptions(cache=3, remember="own", cache_best=2)
    translator = Translator.load(folder, options=options)
    session = translator.session()
    cache = CacheContents(3, 1, 1)
    session.histories["cache"] = cache
    piece = Piece(OpenSegment(SourceSegment("x", FILTERS), 0, 0), "x", "x", (5,))
    draft = BeamDraft("", 2, Decoded(best, Collated(), 0), remembered=2)
    outcomes = [[Outcome(piece, draft)]]
    translator.pipeline._remember([session], outcomes)
    assert cache.ids.tolist() == [5, 6]
    assert cache.keys.flatten().tolist() == [6.0, 8.0]  # (8 + 4) / 2


def test_the_cache_holds_the_best_hypotheses_that_are_asked_for(folder: Path) -> None:
    one, several = (
        Translator.load(
            folder, options=TranslationOptions(cache=100, cache_best=best, remember="own")
        ).session()
        for best in (1, 4)
    )
    assert one.translate(DOCUMENT[0]) == several.translate(
        DOCUMENT[0]
    )  # the first sentence has nothing to read
    assert set(one.histories["cache"].ids.tolist()) < set(several.histories["cache"].ids.tolist())


def test_without_overwriting_every_word_takes_a_slot(folder: Path) -> None:
    sessions = [
        Translator.load(
            folder, options=TranslationOptions(cache=100, cache_overwrite=on, remember="own")
        ).session()
        for on in (True, False)
    ]
    for session in sessions:
        session.translate(DOCUMENT[0])
        session.translate(DOCUMENT[0])
    over, under = (session.histories["cache"].ids.tolist() for session in sessions)
    assert len(over) == len(set(over)) and len(under) > len(over) and set(under) >= set(over)


def test_a_session_that_cannot_be_written_is_one_clear_error_and_leaves_nothing(
    folder: Path, tmp_path: Path
) -> None:
    session = Translator.load(folder, options=TranslationOptions(cache=6)).session()
    (tmp_path / "taken").mkdir()
    with pytest.raises(
        DataError, match=r"none/document\.session: cannot be written: No such file or directory"
    ):
        session.save(tmp_path / "none" / "document.session")
    with pytest.raises(DataError, match="taken: cannot be written: Is a directory"):
        session.save(tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir() if path != folder) == ["taken"]


def assert_same_cache(one: Any, other: Any) -> None:
    """The session caches of both hold the same."""
    caches = [session.histories["cache"] for session in (one, other)]
    assert caches[0].record() == caches[1].record()
    assert torch.equal(caches[0].keys, caches[1].keys)
    assert torch.equal(caches[0].values, caches[1].values)


def damaged(path: Path, change: Callable[[dict[str, Any], dict[str, Tensor]], object]) -> None:
    """Changes what a saved session says and holds."""
    with safe_open(path, "pt") as file:
        about = json.loads(file.metadata()["session"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    change(about, tensors)
    save_file(tensors, path, {"session": json.dumps(about)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda about, _: about["cache"]["words"][2].__setitem__(1, 10**6),
            "a word that is not among the",
        ),
        (
            lambda about, _: about["cache"]["words"][2].__setitem__(1, -1),
            "a word that is not among the",
        ),
        (
            lambda about, _: about["cache"]["words"][2].__setitem__(2, 10**6),
            "a word that is not among the",
        ),
        (lambda about, _: about["cache"]["words"][2].__setitem__(1, 7.5), "no whole numbers"),
        (lambda about, _: about["cache"]["words"][2].__setitem__(0, 0), "not what was written"),
        (
            lambda about, _: about["cache"]["words"][2].__setitem__(
                1, about["cache"]["words"][1][1]
            ),
            "has two slots",
        ),
        (lambda about, _: about.update(text=None), "text that may still be confirmed"),
        (
            lambda _, t: t.update({"cache.keys": t["cache.keys"][:1]}),
            r"keys are torch.float32 \(1, 32\), wanted 6 slots",
        ),
        (
            lambda _, t: t.update({"cache.values": t["cache.values"][:, :1].clone()}),
            r"values are .*\(6, 1\), wanted 6",
        ),
        (lambda _, t: t.update({"cache.keys": t["cache.keys"].long()}), "keys are torch.int64"),
        (lambda _, t: t["cache.keys"][3].fill_(torch.nan), "its keys are not all finite"),
        (lambda about, _: about.pop("cache"), "'cache'"),
        (
            lambda about, _: about["done"][0].__setitem__(2, "1"),
            "what is done is not source, target, id, time",
        ),
        (lambda about, _: about["done"][0].pop(), "'of_target'"),
        (lambda about, _: about["done"][0][5].append([0]), "no code"),
        (lambda about, _: about["cache"].update({"size": 6.0}), "its size is no whole number"),
        (
            lambda _, t: t.update({"cache.keys": t["cache.keys"].double() * 1e300}),
            "its keys are not all finite",
        ),
        (
            lambda _, t: t["before.cache.values"][:1].fill_(torch.inf),
            "its values are not all finite",
        ),
    ],
)
def test_a_damaged_session_is_one_clear_error(
    folder: Path,
    tmp_path: Path,
    change: Callable[[dict[str, Any], dict[str, Tensor]], object],
    message: str,
) -> None:
    path = tmp_path / "document.session"
    translator = Translator.load(folder, options=TranslationOptions(cache=6, remember="own"))
    session = translator.session()
    for text in DOCUMENT[:2]:
        session.translate(text)
    session.pass_over(DOCUMENT[0])
    session.save(path)
    damaged(path, change)
    with pytest.raises(DataError, match=rf"document\.session: no saved session: .*{message}"):
        translator.session(path)


def test_a_session_of_another_model_or_size_or_none_at_all_is_refused(
    folder: Path, tmp_path: Path
) -> None:
    path, translator = (
        tmp_path / "document.session",
        Translator.load(folder, options=TranslationOptions(cache=6)),
    )
    translator.session().save(path)
    with pytest.raises(ModelError, match="cache of 6 slots, here it has 5"):
        Translator.load(folder, options=TranslationOptions(cache=5)).session(path)
    with pytest.raises(ModelError, match="was saved with overwriting on, here it is off"):
        Translator.load(folder, options=TranslationOptions(cache=6, cache_overwrite=False)).session(
            path
        )
    model, memories = load_model(folder), load_layers(load_model(folder), "cpu")
    assert memories is not None and memories.cache is not None
    with pytest.raises(ModelError, match=f"was saved with model {model.hash}, this one is another"):
        Translator(replace(model, hash="another"), memories, [], Settings(cache=6)).session(path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=r"document\.session: no saved session"):
        translator.session(path)
    with pytest.raises(DataError, match="none: no saved session"):
        translator.session(tmp_path / "none")


@pytest.fixture
def joint(tmp_path: Path) -> Path:
    """A model whose cache keeps every occurrence of a word, as few numbers, as the one that ships;
    its gate is open."""
    kind = CacheKind(
        "shallow",
        matching="joint",
        signs=True,
        follows=True,
        rank=8,
        size=40,
        overwrite=False,
        empty=True,
    )
    model = write_tiny_model(tmp_path / "joint", cache=kind)
    memories = load_layers(load_model(model), "cpu")
    assert memories is not None and memories.cache is not None
    torch.nn.init.zeros_(memories.cache.U.bias)
    assert memories.cache.empty is not None
    memories.cache.empty.data.copy_(torch.tensor([0.0, 0.1]))  # an untrained K finds nothing alike
    memories.save(model / "memory.safetensors")
    return model


def test_a_session_of_reduced_slots_is_as_it_was_learned_and_goes_on_when_it_was_saved(
    joint: Path, tmp_path: Path
) -> None:
    translator, path = (
        Translator.load(joint, options=TranslationOptions(mode="off")),
        tmp_path / "document.session",
    )
    assert (translator.settings.cache, translator.settings.remember) == (40, "confirmed")
    session, empty = translator.session(), translator.session()
    for _ in range(2):
        session.confirm(*PAIRS[0])
    ids = translator.vocab.encode(PAIRS[0][1])
    cache = session.histories["cache"]
    assert cache.ids.tolist() == [*ids, *ids][:40] and cache.keys.shape[1:] == (8,)
    session.save(path)
    told = session.translate(PAIRS[0][0], explain=True)
    assert told == translator.session(path).translate(PAIRS[0][0], explain=True)
    assert told.score != pytest.approx(empty.translate(PAIRS[0][0]).score, abs=1e-3)
    averaging = Translator.load(
        joint, options=TranslationOptions(cache=40, cache_overwrite=True, mode="off")
    ).session()
    averaging.confirm(*PAIRS[0])
    assert len(averaging.histories.get("cache", ())) == len(set(ids))
    model, memories = load_model(joint), load_layers(load_model(joint), "cpu")
    assert memories is not None and memories.cache is not None and memories.cache.K is not None
    torch.nn.init.zeros_(
        memories.cache.signs.weight if memories.cache.signs is not None else memories.cache.U.bias
    )
    Translator(model, memories, [], translator.settings).session(
        path
    )  # another gate reads the same slots
    torch.nn.init.zeros_(memories.cache.K.weight)
    with pytest.raises(
        ModelError, match=f"was saved with model {model.hash} .*, this one is {model.hash}"
    ):
        Translator(model, memories, [], translator.settings).session(path)


def test_documents_side_by_side_with_reduced_slots_are_as_one_by_one(joint: Path) -> None:
    translator = Translator.load(
        joint, options=TranslationOptions(cache=40, remember="own", mode="off")
    )
    texts = [[src for src, _ in PAIRS[at : at + 3]] for at in range(3)]
    together = [one.score for one in translator.stream(texts)]
    alone = [one.score for document in texts for one in translator.translate(document)]
    assert together == pytest.approx(alone, abs=1e-4)
    bare = [
        one.score
        for one in Translator.load(joint, options=TranslationOptions(cache=0, mode="off")).stream(
            texts
        )
    ]
    assert together != pytest.approx(bare, abs=1e-3)


@pytest.mark.parametrize("blank", [" ", "\u200b", "\u200b \u2060", "\x07"])
def test_a_side_without_anything_to_see_cannot_be_confirmed(folder: Path, blank: str) -> None:
    session = Translator.load(folder).session()
    for pair, side in ((("Notice", blank), "the translation"), ((blank, "Avis"), "the source")):
        with pytest.raises(
            UsageError, match=f"needs a text on both sides, and {side} has nothing that can be seen"
        ):
            session.confirm(*pair)
    assert session.done == [] and not len(session.histories.get("cache", ()))


def test_what_is_confirmed_without_a_memory_to_write_to_lasts_for_its_session(
    folder: Path, index: Path
) -> None:
    translator = Translator.load(folder, [index])
    session = translator.session()
    session.confirm("Notice of the third meeting", "Avis de la troisième réunion")
    assert session.translate("Notice of the fourth meeting").matches
    assert not translator.session().translate("Notice of the fourth meeting").matches
    with MemoryIndex.open(index) as opened:
        assert len(opened) == len(PAIRS)


def test_a_memory_to_write_to_is_made_and_read_where_it_is_not_there_yet(
    folder: Path, tmp_path: Path
) -> None:
    translator = Translator.load(folder, write_to=tmp_path / "new")
    for _ in range(2):  # the same pair is written once
        translator.session().confirm("Notice of the third meeting", "Avis de la troisième réunion")
    assert translator.session().translate("Notice of the fourth meeting").matches[0].segment.id == 1
    with MemoryIndex.open(tmp_path / "new", "en", "fr") as opened:
        assert len(opened) == 1
    (tmp_path / "file.tmx").touch()
    with pytest.raises(
        UsageError, match=r"file\.tmx: is a file, and what is confirmed is written to a built index"
    ):
        Translator.load(folder, write_to=tmp_path / "file.tmx")


@pytest.mark.parametrize(
    ("remember", "to"), [("confirmed", "both"), ("confirmed", "memory"), ("confirmed", "cache")]
)
def test_what_is_confirmed_goes_where_it_is_told_to(
    folder: Path, remember: Remember, to: ConfirmTo
) -> None:
    translator = Translator.load(
        folder, options=TranslationOptions(remember=remember, confirm_to=to)
    )
    session = translator.session()
    session.confirm("Notice of the third meeting", "Avis de la troisième réunion")
    assert (len(session.histories.get("cache", ())) > 0) == (to != "memory")
    assert bool(session.translate("Notice of the fourth meeting").matches) == (to != "cache")
    nothing = Translator.load(folder, options=TranslationOptions(remember="nothing")).session()
    nothing.confirm("Notice of the third meeting", "Avis de la troisième réunion")
    assert (
        not len(nothing.histories.get("cache", ()))
        and not nothing.translate("Notice of the fourth meeting").matches
    )


@pytest.mark.parametrize("kept", [False, True])
def test_what_is_taken_back_leaves_memory_and_cache_as_if_it_had_never_been(
    folder: Path, index: Path, tmp_path: Path, kept: bool
) -> None:
    translator = Translator.load(folder, [index], write_to=index if kept else None)
    session, other = translator.session(), translator.session()
    third, fourth = "Notice of the third meeting", "Notice of the fourth meeting"
    for one in (session, other):
        one.confirm("A cow is red.", "Une vache est rouge.")
    session.confirm(third, "Avis")
    session.save(tmp_path / "saved")
    session.pass_over("Repealed.")
    assert session.translate(third).tgt == "Avis"
    assert (session.undo().src, session.undo().tgt) == ("Repealed.", "Avis")
    assert (
        session.translate(third) == other.translate(third)
        and session.translate(third).origin == "model"
    )
    assert_same_cache(session, other)
    assert session.translate(fourth).matches == ()
    with MemoryIndex.open(index) as opened:
        assert len(opened) == len(PAIRS) + kept
    saved = translator.session(tmp_path / "saved")
    assert [one.tgt for one in saved.done] == ["Une vache est rouge.", "Avis"] and saved.translate(
        third
    ).tgt == "Avis"
    saved.undo(), saved.undo()
    assert not len(saved.histories.get("cache", ()))
    with pytest.raises(UsageError, match="nothing to take back"):
        saved.undo()
    with pytest.raises(UsageError, match="cannot be taken back where own words are remembered"):
        own = Translator.load(folder, options=TranslationOptions(remember="own")).session()
        own.confirm(third, "Avis")
        own.undo()


def pairs_in(index: Path) -> list[tuple[str, str]]:
    with MemoryIndex.open(index) as opened:
        return [(segment.src, segment.tgt) for segment in opened.segments()]


def test_with_another_memory_nothing_of_it_is_taken_back_and_what_it_does_not_hold_is_still_found(
    folder: Path, index: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="tmnmt")  # whatever a test before this one has set
    session = Translator.load(folder, write_to=tmp_path / "own").session()
    for number in (
        "third",
        "fourth",
        "third",
    ):  # as many as the other memory, and the last is there already
        session.confirm(f"Notice of the {number} meeting", f"Avis {number}")
    session.save(tmp_path / "saved")
    before, own = pairs_in(index), pairs_in(tmp_path / "own")
    for other in (index, None):
        saved = Translator.load(
            folder,
            options=TranslationOptions(cache=session.histories["cache"].size),
            write_to=other,
        ).session(tmp_path / "saved")
        matches = saved.translate("Notice of the fifth meeting").matches
        assert sorted(match.segment.tgt for match in matches) == ["Avis fourth", "Avis third"]
        assert saved.undo().tgt == "Avis third" and not caplog.messages
        assert saved.undo().tgt == "Avis fourth" and f"stays in {tmp_path / 'own'}" in caplog.text
        assert [
            match.segment.tgt for match in saved.translate("Notice of the fifth meeting").matches
        ] == ["Avis third"]
        assert saved.undo().tgt == "Avis third" and not saved.done and len(caplog.messages) == 2
        assert saved.translate("Notice of the fifth meeting").matches == ()
        assert pairs_in(index) == before and pairs_in(tmp_path / "own") == own
        caplog.clear()
    again = Translator.load(folder, write_to=tmp_path / "own").session(tmp_path / "saved")
    assert [again.undo().tgt for _ in range(3)] == ["Avis third", "Avis fourth", "Avis third"]
    assert pairs_in(tmp_path / "own") == [] and not caplog.messages


def test_a_pair_that_others_have_changed_or_built_anew_stays_when_it_is_taken_back(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = tmp_path / "own"
    translator = Translator.load(folder, write_to=own)
    session = translator.session()
    session.confirm("Notice", "Avis erroné")
    session.save(tmp_path / "saved")
    with MemoryIndex.open(own) as opened:
        opened.edit([1], lambda segment: replace(segment, tgt="Avis"))
    session.undo()
    assert pairs_in(own) == [("Notice", "Avis")] and "segment 1 stays in" in caplog.text
    build(
        own, [Segment("Notice", "Avis erroné")], "en", "fr", force=True
    )  # somebody else's, with the same id
    translator.session(tmp_path / "saved").undo()
    assert pairs_in(own) == [("Notice", "Avis erroné")]


def test_what_a_memory_gives_anyway_is_not_added_and_what_is_confirmed_more_often_wins(
    folder: Path, tmp_path: Path
) -> None:
    translator = Translator.load(folder, write_to=tmp_path / "own")
    for tgt, held in (
        ("A", "A"),
        ("A", "A"),
        ("B", "AB"),
        ("B", "AB"),
        ("A", "ABA"),
        ("A", "ABA"),
        ("B", "ABAB"),
    ):
        translator.session().confirm("Notice", tgt)
        assert "".join(one for _, one in pairs_in(tmp_path / "own")) == held
        assert translator.session().translate("Notice").tgt == tgt
    often = Translator.load(folder, write_to=tmp_path / "often")
    with MemoryIndex.open(tmp_path / "often") as opened:
        opened.add([Segment("Notice", "A", changed="2020-01-01T00:00:00Z")] * 2)
    for tgt, held, answer in (
        ("B", "AAB", "A"),
        ("A", "AAB", "A"),
        ("B", "AABB", "B"),
        ("B", "AABB", "B"),
    ):
        often.session().confirm("Notice", tgt)  # B is the newest, and not the most frequent
        assert "".join(one for _, one in pairs_in(tmp_path / "often")) == held
        assert often.session().translate("Notice").tgt == answer


def test_half_of_a_surrogate_pair_is_no_text(folder: Path) -> None:
    translator = Translator.load(folder)
    session = translator.session()
    for use in (
        session.translate,
        session.pass_over,
        lambda text: session.confirm("Notice", text),
        lambda text: session.confirm(text, "Avis"),
        lambda text: translator.translate([text]),
        lambda text: list(session.stream([text])),
    ):
        with pytest.raises(UsageError, match="character 3 of this one is half of a surrogate pair"):
            use("ab\ud800")
    assert session.done == []


def test_a_new_document_empties_the_cache_and_what_was_confirmed_is_still_found(
    folder: Path,
) -> None:
    session = Translator.load(folder).session()
    session.confirm("Notice of the third meeting", "Avis de la troisième réunion")
    filled = session.histories["cache"].record()
    session.new_document()
    assert (
        not len(session.histories.get("cache", ()))
        and session.translate("Notice of the fourth meeting").matches
    )
    session.undo()
    assert session.histories["cache"].record() == filled


def test_a_session_goes_on_with_many_texts_together(folder: Path, index: Path) -> None:
    translator = Translator.load(folder, [index])
    session = translator.session()
    session.confirm(
        "It shall apply from 1 June 1998.", "Il est applicable à partir du 1er juin 1998."
    )
    together = list(session.stream(DOCUMENT))
    alone = [session.translate(text) for text in DOCUMENT[:3]]
    session.new_document()
    alone.append(session.translate(DOCUMENT[3]))
    assert [(t.tgt, t.matches) for t in together] == [(t.tgt, t.matches) for t in alone]
    assert [t.score for t in together] == pytest.approx([t.score for t in alone], abs=1e-4)


def test_a_stream_confirms_as_sessions_do(folder: Path, index: Path) -> None:
    translator = Translator.load(folder, [index], TranslationOptions(batch=2))
    documents = [[src for src, _ in PAIRS[:3]] * 2, ["Repealed.", "", "Repealed."]]
    pairs = [
        [(src, f"{tgt} bis") for src, tgt in PAIRS[:3]] + [None] * 3,
        [("Repealed.", "Abrogé."), None, None],
    ]
    found, expected = [t.tgt for t in translator.stream(documents, confirmed=pairs)], []
    for texts, said in (
        *zip(documents[:1], pairs, strict=False),
        (["Repealed."], pairs[1]),
        (["Repealed."], list[tuple[str, str] | None]([None])),
    ):
        session = translator.session()
        for text, pair in zip(texts, said, strict=False):
            expected.append(session.translate(text).tgt)
            if pair is not None:
                session.confirm(*pair)
    assert found == [*expected[:7], "", expected[7]]
    assert found[3:6] == [f"{tgt} bis" for _, tgt in PAIRS[:3]]
    with pytest.raises(UsageError, match="confirmed: document 2 has not as many pairs as texts"):
        list(translator.stream(documents, confirmed=[pairs[0], [None]]))


def test_languages_are_the_models_and_a_region_is_no_other_language(
    plain_folder: Path, index: Path, tmp_path: Path
) -> None:
    Translator.load(plain_folder, [index], TranslationOptions(src_lang="en-CA", tgt_lang="fr_CA"))
    build(tmp_path / "german", [Segment("eins", "one")], "de", "en")
    for memory in (tmp_path / "german", MemoryIndex.open(tmp_path / "german")):
        with pytest.raises(MemoryIndexError, match="this index is from de to en, not en to fr"):
            Translator.load(plain_folder, [memory])


@pytest.mark.parametrize("pair", [("a " * 1001, "x"), ("x", "a " * 1001)])
def test_a_text_that_no_memory_takes_cannot_be_confirmed(
    folder: Path, index: Path, pair: tuple[str, str]
) -> None:
    session = Translator.load(folder, [index]).session()
    with pytest.raises(UsageError, match="has 1,001 tokens; at most 1,000 are allowed"):
        session.confirm(*pair)
    with MemoryIndex.open(index) as opened:
        assert len(opened) == len(PAIRS)
    assert session.histories["cache"].ids.tolist() == []


def test_after_a_refused_text_the_last_translation_can_be_confirmed(folder: Path) -> None:
    refusing, other = (Translator.load(folder).session() for _ in range(2))
    for session in (refusing, other):
        session.translate(PAIRS[0][0])
    with pytest.raises(UsageError, match="a text is wanted, not NoneType"):
        refusing.translate(None)  # type: ignore[arg-type]
    for session in (refusing, other):
        session.confirm(*PAIRS[0])
    assert_same_cache(refusing, other)


def test_what_cannot_be_made_keys_of_is_not_confirmed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise MemoryError

    session = Translator.load(folder).session()
    monkeypatch.setattr("tmnmt.keys.pair_keys.force_all", failing)
    with pytest.raises(MemoryError):
        session.confirm(*PAIRS[0])
    assert session.confirmed.exact(PAIRS[0][0]) is None and session.done == []


def test_the_best_matches_of_several_memories_are_used_and_each_pair_once(
    folder: Path, tmp_path: Path
) -> None:
    build(tmp_path / "one", [*segments(), Segment(*PAIRS[0], document="again")], "en", "fr")
    build(
        tmp_path / "two",
        [Segment("The Commission shall inform the Council.", "exact", "two")],
        "en",
        "fr",
    )
    translator = Translator.load(
        folder, [tmp_path / "one", tmp_path / "two"], TranslationOptions(top_k=2)
    )
    found = translator.translate(["The Commission shall inform the Council."])[0]
    assert [m.segment.tgt for m in found.matches] == ["exact", PAIRS[0][1]]
    assert found.matches[0].score == 1


def test_a_long_segment_is_translated_in_pieces(folder: Path, index: Path) -> None:
    translator = Translator.load(folder, [index])
    text = " ".join(src for src, _ in PAIRS * 6)
    found = translator.translate([text, PAIRS[0][0]], explain=True)
    assert [t.src for t in found] == [text, PAIRS[0][0]]
    assert {m.segment.src for m in found[0].matches} == {src for src, _ in PAIRS}
    assert all(
        source.match < len(found[0].matches)
        for token in found[0].tokens
        for source in token.sources
    )
    assert translator.tally.changed["had more than 40 subwords, translated in pieces"] == 1


@pytest.mark.parametrize("in_order", [False, True])
def test_a_long_segment_with_a_good_match_is_translated_whole(
    folder: Path, tmp_path: Path, in_order: bool
) -> None:
    long = " ".join(f"Article {n} of that Directive is replaced." for n in range(5))
    build(tmp_path / "long", [Segment(f"{long} Repealed.", "TOUT"), *segments()], "en", "fr")
    translator = Translator.load(folder, [tmp_path / "long"], TranslationOptions(cache=0, batch=1))
    assert (
        translator.pipeline.preparation.longest
        < len(translator.vocab.encode(long))
        <= translator.pipeline.lookup.longest_whole
    )
    decoded: list[tuple[str, int]] = []
    decode = translator.pipeline.decoder.decode

    def noted(pieces: Sequence[Piece], *others: Any) -> list[Hypothesis]:
        decoded.extend((piece.text, len(piece.matches)) for piece in pieces)
        return decode(pieces, *others)

    translator.pipeline.decoder.decode = noted  # type: ignore[method-assign, assignment]
    documents = [[long, PAIRS[0][0][:-4]]]
    found = list(translator.stream(documents, True, [[None, None]] if in_order else None))
    assert [t.src for t in found] == documents[0] and sorted(text for text, _ in decoded) == sorted(
        documents[0]
    )
    assert (
        dict(decoded)[long] == len(found[0].matches) >= 1
        and found[0].matches[0].segment.tgt == "TOUT"
    )
    assert (
        found[0].origin == "model"
        and not translator.tally.changed["had more than 40 subwords, translated in pieces"]
    )
    other = " ".join(f"Nothing like {n} is here at all." for n in range(3))
    assert (
        translator.pipeline.preparation.longest
        < len(translator.vocab.encode(other))
        <= translator.pipeline.lookup.longest_whole
    )
    translator.translate([other])
    counts = dict(translator.tally.changed)
    assert counts["had more than 40 subwords, translated in pieces"] == 1


def test_a_long_segment_like_one_just_confirmed_is_translated_whole(folder: Path) -> None:
    long = " ".join(f"Article {n} of that Directive is replaced." for n in range(5))
    session = Translator.load(folder, options=TranslationOptions(cache=0)).session()
    assert not session.translate(long).matches
    session.confirm(f"{long} Repealed.", "TOUT")
    assert [match.segment.tgt for match in session.translate(long).matches] == ["TOUT"]
    assert session.pipeline.tally.changed["had more than 40 subwords, translated in pieces"] == 1


def test_the_whole_of_a_long_segment_is_searched_for_once(folder: Path, index: Path) -> None:
    translator = Translator.load(folder, [index], TranslationOptions(cache=0, batch=2, beam=1))
    text = " ".join(
        f"Nothing like number {number} is here, nor is anything like it." for number in range(40)
    )
    asked: list[str] = []
    look_up = translator.pipeline.lookup.retriever.look_up

    def noted(requests: Sequence[Request], *others: Any) -> list[Answer]:
        asked.extend(request.query.text for request in requests if request.similar)
        return look_up(requests, *others)

    translator.pipeline.lookup.retriever.look_up = noted  # type: ignore[method-assign, assignment]
    batches = list(
        Stream(translator.pipeline)._batches(
            iter([translator.pipeline.preparation.pieces(text, Assembly())])
        )
    )
    assert len(batches) > 10
    for batch in batches:
        translator.pipeline.retrieve(batch)
    assert asked.count(text) == 1 and len(asked) == sum(map(len, batches)) + 1


def test_a_text_that_is_much_too_long_is_never_encoded_as_a_whole(folder: Path) -> None:
    class Watched(Vocabulary):
        most = 0

        def encode(self, text: str) -> list[int]:
            self.most = max(self.most, len(text))
            return super().encode(text)

    vocab = Watched((folder / "spm.model").read_bytes())
    text = " ".join(src for src, _ in PAIRS * 500)
    assert (
        pieces(text, vocab, 40) == [src for src, _ in PAIRS * 500]
        or len(pieces(text, vocab, 40)) > 500
    )
    assert vocab.most <= 3 * 40 * vocab.longest


def test_pieces_of_unlike_length_come_back_in_the_order_of_the_text(
    folder: Path, vocab: Vocabulary
) -> None:
    sentences = [
        "x " * 30 + "y.",
        "The Commission shall inform the Council.",
        "z " * 20 + "a.",
        "Repealed at once.",
    ]
    translator = Translator.load(folder, options=TranslationOptions(cache=0, batch=2, beam=1))
    parts = pieces(" ".join(sentences), vocab, translator.pipeline.preparation.longest)
    lengths = [len(vocab.encode(part)) for part in parts]
    assert lengths != sorted(lengths)
    whole = translator.translate(["Notice.", " ".join(sentences), "Notice."])[1]
    alone = [translator.translate([part])[0].tgt for part in parts]
    assert len(set(alone)) > 1
    assert whole.tgt == " ".join(tgt for tgt in alone if tgt)


@pytest.mark.parametrize("text", ["\0\0", "a\0b\x07c", "ᚠᛇᚻ ᛒᛦᚦ", "\u2028", "😀" * 200, "x" * 300])
def test_odd_text_is_translated_as_well_as_can_be(folder: Path, text: str) -> None:
    translator = Translator.load(folder, options=TranslationOptions(beam=2))
    found = translator.translate([text, "Repealed."])
    assert [t.src for t in found] == [text, "Repealed."]
    assert found[1].tgt
    assert all(character.isprintable() for t in found for character in t.tgt)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "copy"}, "no parameters for mode copy"),
        ({"remember": "all"}, "remember all is unknown; allowed: confirmed, own, nothing"),
        ({"confirm_to": "disk"}, "confirm-to disk is unknown; allowed: both, memory, cache"),
        ({"mode": "off", "confirm_to": "cache"}, "confirm-to is cache, and there is none"),
        (
            {"cache": 5, "confirm_to": "memory"},
            "cache is 5, and confirm-to is memory, so nothing is written to it",
        ),
        (
            {"cache": 5, "remember": "nothing"},
            "cache is 5, and remember is nothing, so nothing is written to it",
        ),
        ({"src_lang": "de"}, "plain.*: this model is from en to fr, not de to fr"),
        ({"tgt_lang": "de"}, "plain.*: this model is from en to fr, not en to de"),
        ({"cache": 25}, "no parameters for a session cache"),
        ({"beam": 0}, "beam is 0"),
        ({"threshold": 1.5}, "threshold is 1.5"),
        ({"device": "toaster"}, "device toaster is unknown"),
        ({"device": "meta"}, "device meta is unknown"),
        (
            {"device": "cuda:99"},
            "device cuda:99 is not on this machine, or torch cannot use it; there: cpu",
        ),
        ({"beam": 300}, "it must be 2.. at most"),  # of about 420 subwords
        ({"beam": 2.0}, "beam is 2.0"),
        ({"batch": 10**9}, "batch is 1000000000; it must be a whole number, 1 to 10,000"),
        ({"top_k": "4"}, "top-k is '4'"),
        ({"cache": 3_000_000_000}, "cache is 3000000000"),
        ({"cache": -1}, "cache is -1"),
        ({"cache_best": 0}, "cache-best is 0"),
        ({"cache_best": 3, "beam": 2}, "cache-best is 3; a beam of 2 finds that many at most"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": 10**9}, "threads is 1000000000"),
        ({"length_penalty": float("nan")}, "length-penalty is nan"),
        ({"length_penalty": float("inf")}, "length-penalty is inf"),
        ({"length_penalty": "1"}, "length-penalty is '1'"),
        ({"length_penalty": -1.0}, "length-penalty is -1.0"),
    ],
)
def test_what_the_model_cannot_serve_is_one_line(
    plain_folder: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        Translator.load(plain_folder, options=TranslationOptions(**options))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ("index", r"a list of memories is wanted, as in \['index'\]"),
        (Path("index"), "a list of memories is wanted"),
        (3, r"a list of memories \(paths, addresses, open indexes\) is wanted, not 3"),
        (b"index", "is wanted, not b'index'"),
        ([3], "a memory is a path, an address or an open index, not 3"),
    ],
)
def test_what_is_no_memory_is_one_line(plain_folder: Path, memory: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        Translator.load(plain_folder, memory)
    assert "\n" not in str(raised.value)


def test_devices_are_those_that_torch_can_use_and_its_warnings_are_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def driver_too_old() -> bool:
        warnings.warn("The NVIDIA driver on your system is too old", UserWarning, stacklevel=1)
        return False

    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    monkeypatch.setattr("torch.cuda.is_available", driver_too_old)
    assert devices() == ["cpu"]
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert devices() == ["cpu", "cuda", "cuda:0", "cuda:1"]


@pytest.mark.parametrize(
    "texts", ["It shall", b"It shall", None, 5, [None], [b"x"], [["It shall"]]]
)
def test_what_is_no_list_of_texts_is_refused(plain_folder: Path, texts: Any) -> None:
    translator = Translator.load(plain_folder)
    with pytest.raises(UsageError, match="wanted, not"):
        translator.translate(texts)
    with pytest.raises(UsageError, match="wanted, not"):
        list(translator.stream([texts]))
    if not isinstance(texts, str):
        with pytest.raises(UsageError, match="a text is wanted, not"):
            translator.session().translate(texts)
        with pytest.raises(UsageError, match="a text is wanted, not"):
            translator.session().confirm(texts, "x")


def test_a_folder_that_is_no_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no model folder"):
        Translator.load(tmp_path)


@pytest.mark.parametrize("in_order", [False, True])
def test_the_keys_of_what_is_retrieved_are_asked_for_once(
    folder: Path, tmp_path: Path, in_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "index", segments(), "en", "fr")
    translator = Translator.load(
        folder, [tmp_path / "index"], TranslationOptions(cache=0, batch=2, verbatim=0)
    )
    own, asked = translator.pipeline.keys.keys_of, list[int]()

    def counted(
        sentences: Iterable[Iterable[tuple[str, str]]], *others: Any
    ) -> list[list[PairKeys]]:
        wanted = [list(pairs) for pairs in sentences]
        asked.append(sum(map(len, wanted)))
        return own(wanted, *others)

    monkeypatch.setattr(translator.pipeline.keys, "keys_of", counted)
    confirmed = [[None] * len(DOCUMENT)] if in_order else None
    found = list(translator.stream([DOCUMENT], False, confirmed))
    told = sum(len(translation.matches) for translation in found)
    assert told and sum(asked) == told


def test_keys_are_those_of_each_pair_alone_and_the_oldest_are_forgotten(folder: Path) -> None:
    translator = Translator.load(folder)
    store = PairKeyStore(translator.pipeline.backbone, translator.vocab, 50, positions_kept=80)
    together = store.keys_of([PAIRS[:3], [], PAIRS[2:]])
    alone = PairKeyStore(translator.pipeline.backbone, translator.vocab, 50).keys_of([PAIRS[3:4]])[
        0
    ][0]
    assert [len(keys) for keys in together] == [3, 0, 4]
    torch.testing.assert_close(together[2][1].contexts, alone.contexts, atol=1e-5, rtol=0)
    torch.testing.assert_close(together[2][1].hiddens, alone.hiddens, atol=1e-5, rtol=0)
    assert alone.ids.tolist() == [*translator.vocab.encode(PAIRS[3][1]), EOS]
    assert 0 < len(store) < len(PAIRS)
    again: PairKeys = store.keys_of([PAIRS[:1]])[0][0]
    torch.testing.assert_close(again.contexts, together[0][0].contexts, atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def vocab(folder: Path) -> Vocabulary:
    return Vocabulary.load(folder / "spm.model")


def test_long_texts_are_cut_after_sentences_first(vocab: Vocabulary) -> None:
    text = " ".join(src for src, _ in PAIRS)
    assert pieces(text, vocab, 40) == pieces(text + "  ", vocab, 40)
    assert all(piece.endswith((".", ",", ":")) for piece in pieces(text, vocab, 40))


@given(
    text=st.text(st.sampled_from("ab ,.;。é字😀\u2028"), max_size=300), longest=st.integers(6, 50)
)
def test_pieces_fit_and_lose_nothing_but_blanks(vocab: Vocabulary, text: str, longest: int) -> None:
    found = pieces(text, vocab, longest)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(len(vocab.encode(piece)) <= longest for piece in found)


def piece(segment: int, document: int, length: int = 1) -> Piece:
    text = f"{segment}"
    return Piece(
        OpenSegment(SourceSegment(text, FILTERS), segment, document), text, text, (4,) * length
    )


def retrieved(group: list[Piece]) -> list[Piece]:
    return group


@given(lengths=st.lists(st.integers(1, 5), max_size=9), batch=st.integers(1, 4))
def test_documents_go_side_by_side_each_in_its_order(lengths: list[int], batch: int) -> None:
    numbers = itertools.count()
    documents = [
        [piece(next(numbers), d) for _ in range(length)] for d, length in enumerate(lengths)
    ]
    batches = list(side_by_side(iter(documents), batch, retrieved))  # type: ignore[arg-type]
    assert all(len({p.segment.document for p in found}) == len(found) <= batch for found in batches)
    for d, document in enumerate(documents):
        assert [p for found in batches for p in found if p.segment.document == d] == document
    assert all(
        len(found) == batch
        for found in batches[: min(lengths, default=0) if len(lengths) >= batch else 0]
    )


def test_sentences_of_like_length_go_together() -> None:
    lengths = [9, 1, 5, 2, 8, 6]
    documents = [[piece(i, 0, length) for i, length in enumerate(lengths)]]
    assert [[len(p.ids) for p in found] for found in by_length(documents, 2)] == [
        [1, 2],  # of the first four: they are sorted two batches at a time
        [5, 9],
        [6, 8],
    ]


@given(st.permutations(range(5)))
def test_translations_come_back_in_order_as_soon_as_they_can(order: list[int]) -> None:
    queue = Assembly()
    numbers = [queue.announce(str(i), 1) for i in range(5)]
    done: list[str] = []
    for count, i in enumerate(order):
        queue.put(piece(numbers[i], 0), Translation("", f"t{i}", -1.0), 3)
        done += [t.tgt for t in queue.ready()]
        first_missing = min(set(range(5)) - set(order[: count + 1]), default=5)
        assert done == [f"t{i}" for i in range(first_missing)]


@given(st.permutations(range(4)))
def test_the_pieces_of_a_segment_may_be_done_in_any_order(order: list[int]) -> None:
    queue = Assembly()
    number = queue.announce("text", 4)
    for count, part in enumerate(order, 1):
        queue.put(replace(piece(number, 0), number=part), Translation("", f"t{part}", -1.0), 3)
        assert [t.tgt for t in queue.ready()] == (["t0 t1 t2 t3"] if count == 4 else [])


def test_joined_pieces_share_their_matches() -> None:
    one, two = (Match(Segment(t, t), 0.5, 1) for t in "ab")
    token = Token("x", "memory", 1, 0, 0, sources=(MemorySource(0, 3, 1.0),))
    parts = [
        (Translation("", "x", -1.0, (one,), (token,)), 1),
        (Translation("", "y", -4.0, (two, one), (token,)), 2),
    ]
    found = join("a b", parts)
    assert (found.src, found.tgt, found.score) == ("a b", "x y", -3.0)
    assert found.matches == (one, two)
    assert [t.sources[0].match for t in found.tokens] == [0, 1]


@pytest.mark.parametrize("number", [5, 6])
def test_a_session_of_a_former_format_is_gone_on_with(
    folder: Path, tmp_path: Path, number: int
) -> None:
    path = tmp_path / "document.session"
    translator = Translator.load(folder, options=TranslationOptions(cache=6, remember="own"))
    session = translator.session()
    session.confirm(*PAIRS[0])
    session.translate(DOCUMENT[0])
    session.save(path)

    def former(about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """They hold a session cache alone, and what is done in format 5 has no codes."""
        about["format"] = number
        about["before"] = about.pop("before.cache")
        assert about.pop("histories") == ["cache"]
        for name in ("keys", "values"):
            tensors[f"before.{name}"] = tensors.pop(f"before.cache.{name}")
        about["done"] = [entry[: 5 if number == 5 else 7] for entry in about["done"]]

    damaged(path, former)
    restored = translator.session(path)
    assert restored.done == session.done
    assert_same_cache(restored, session)
    for each in (restored, session):
        each.confirm(DOCUMENT[0], "Il est applicable.")  # in place of what was translated
    assert_same_cache(restored, session)


def test_a_session_of_a_former_format_without_a_cache_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "document.session"
    model = write_tiny_model(tmp_path / "plain", memories=False)
    session = Translator.load(model).session()
    session.confirm(*PAIRS[0])
    session.save(path)

    def former(about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        about["format"] = 6
        assert about.pop("histories") == []
        about["cache"] = {"size": 0, "overwrite": True, "words": []}
        tensors["cache.keys"] = tensors["cache.values"] = torch.zeros(0, 32)

    damaged(path, former)
    restored = Translator.load(model).session(path)
    assert restored.done == session.done
    assert torch.equal(restored.histories["nearest"].ids, session.histories["nearest"].ids)


def test_of_a_long_document_few_segments_are_prepared_at_a_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what comes out does not depend on it, nor on how many documents there are."""
    translator = Translator.load(folder, options=TranslationOptions(beam=1, batch=2))
    sources = [f"{PAIRS[number % len(PAIRS)][0]} {number}" for number in range(24)]
    expected = [one.tgt for one in translator.stream([sources])]
    prepared, prepare = list[object](), Preparation.pieces

    def counted(self: Preparation, text: Any, *rest: Any) -> Any:
        prepared.append(text)
        return prepare(self, text, *rest)

    monkeypatch.setattr(Preparation, "pieces", counted)
    monkeypatch.setattr("tmnmt.engine.streaming.PIECES_AT_ONCE", 5)
    found, most = list[str](), 0
    for one in translator.stream([sources, [], sources[:1]]):
        found.append(one.tgt)
        most = max(most, len(prepared) - len(found))
    assert found == [*expected, expected[0]]
    assert len(prepared) == 25 and most < 12


def test_a_translator_and_a_piece_stay_small() -> None:
    methods = [name for name in vars(Translator) if not name.startswith("_")]
    assert len(methods) <= 12 and len(fields(Piece)) <= 8
