"""A document that is translated in part is translated with its confirmed pairs in the session."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_model import PAIRS, write_tiny_model

from tmnmt.config.options import TranslationOptions
from tmnmt.engine import history
from tmnmt.engine.document_state import DocumentState
from tmnmt.engine.history import History
from tmnmt.engine.streaming import Stream
from tmnmt.partial_document import ConfirmedNeighbour, PartialDocument
from tmnmt.segments import Token
from tmnmt.translator import Translator

TEXTS = [PAIRS[1][0], PAIRS[2][0], "It shall apply from 1 June 1997."]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_tiny_model(tmp_path_factory.mktemp("model") / "model")


def slots(tokens: tuple[Token, ...]) -> set[str]:
    return {slot.text for token in tokens for slot in token.slots}


def test_a_stream_gives_what_a_session_with_these_pairs_gives(model: Path) -> None:
    translator = Translator.load(model, options=TranslationOptions(beam=2, verbatim=0))
    pairs = [ConfirmedNeighbour(*PAIRS[5], 0), ConfirmedNeighbour(*PAIRS[0], 3)]
    streamed = list(translator.stream([PartialDocument(TEXTS, pairs)], explain=True))
    session = translator.session()
    session.learn_background([PAIRS[5], PAIRS[0]])
    assert streamed == list(session.stream(TEXTS, explain=True))
    assert slots(streamed[0].tokens)
    plain = list(translator.stream([TEXTS], explain=True))
    assert not slots(plain[0].tokens) and [t.score for t in plain] != [t.score for t in streamed]


def test_documents_know_their_own_pairs_alone(model: Path) -> None:
    translator = Translator.load(model, options=TranslationOptions(beam=2, verbatim=0))
    documents = [
        PartialDocument(TEXTS[:1], [ConfirmedNeighbour(*PAIRS[0], 0)]),
        PartialDocument(TEXTS[:1]),
        PartialDocument(TEXTS[:1], [ConfirmedNeighbour(*PAIRS[4], 1)]),
    ]
    first, second, third = translator.stream(documents, explain=True)
    assert slots(first.tokens) and not slots(second.tokens)
    assert slots(third.tokens) and slots(third.tokens) != slots(first.tokens)


def test_what_is_not_to_be_remembered_is_not_learned(model: Path) -> None:
    options = TranslationOptions(beam=2, verbatim=0, remember="nothing")
    translator = Translator.load(model, options=options)
    pairs = [ConfirmedNeighbour(*PAIRS[0], 0)]
    streamed = list(translator.stream([PartialDocument(TEXTS, pairs)], explain=True))
    assert streamed == list(translator.stream([TEXTS], explain=True))


def test_a_session_that_goes_back_still_knows_the_pairs_before_it(model: Path) -> None:
    session = Translator.load(model).session()
    session.learn_background([PAIRS[0]])
    known = session.histories["cache"].ids.clone()
    session.confirm(*PAIRS[1])
    assert len(session.histories["cache"].ids.unique()) > len(known.unique())
    session.undo()
    assert torch.equal(session.histories["cache"].ids, known) and not session.done


def test_a_stretch_has_the_pairs_near_by_the_nearest_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_PAIRS", 3)
    pairs = [ConfirmedNeighbour(str(place), str(place), place) for place in range(0, 200, 10)]
    nearest = History(pairs).nearest(History(pairs).stretch_of(100))  # of the texts 96 to 111
    assert [pair.place for pair in nearest] == [90, 110, 100] or {
        pair.place for pair in nearest
    } == {90, 100, 110}
    assert nearest[-1].place == 100


def test_only_the_stretches_that_were_used_last_are_held(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.engine.streaming.MOST_STRETCHES", 2)
    translator = Translator.load(model)
    opened, new = list[DocumentState](), Stream._new

    def counted(stream: Stream) -> DocumentState:
        opened.append(new(stream))
        return opened[-1]

    monkeypatch.setattr(Stream, "_new", counted)
    documents = [
        PartialDocument(TEXTS[:1], [ConfirmedNeighbour(*PAIRS[number], 0)]) for number in range(5)
    ]
    assert len(list(translator.stream(documents))) == 5
    assert len(opened) >= 6  # one for documents without pairs, and one each
