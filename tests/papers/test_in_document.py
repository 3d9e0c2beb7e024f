"""A model that reads other segments of the document is given them, wherever it translates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from model_ends import keep_model_ends
from reading_model import write_reading_model
from tiny_model import PAIRS

from tmnmt import Translator
from tmnmt.config.options import ContextForm, TranslationOptions
from tmnmt.errors import UsageError
from tmnmt.models.base import SurroundingText
from tmnmt.papers.context_network import InDocument, surveyed
from tmnmt.segments import Translation
from tmnmt.serve.queue import Job, Queue
from tmnmt.serve.running import service_of
from tmnmt.vocab import EOS

TEXTS = [src for src, _ in PAIRS[:5]]


@pytest.fixture(params=["attended", "gated"])
def form(request: pytest.FixtureRequest) -> ContextForm:
    form: ContextForm = request.param
    return form


@pytest.fixture
def folder(form: ContextForm, tmp_path: Path) -> Path:
    torch.set_num_threads(1)
    return write_reading_model(tmp_path / "model", form)


@pytest.fixture(autouse=True)
def model_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_model_ends(monkeypatch)


def translator(folder: Path, **decoding: Any) -> Translator:
    options = {"mode": "off", "verbatim": 0, "typography": "off", **decoding}
    return Translator.load(folder, options=TranslationOptions(cache=0, threads=1, **options))


def scores(found: list[Translation]) -> list[float]:
    return [one.score for one in found]


def test_every_segment_is_read_with_those_before_it(folder: Path) -> None:
    made = translator(folder)
    backbone, vocab = made.pipeline.backbone, made.vocab
    found = made.translate(TEXTS)
    for at, one in enumerate(found):
        before = [vocab.encode(text) for text in TEXTS[max(0, at - backbone.previous) : at]]
        src = torch.tensor([[*vocab.encode(TEXTS[at]), EOS]])
        tgt = torch.tensor([[*vocab.encode(one.tgt), EOS]])
        with torch.inference_mode():
            encoded = backbone.encode(src, torch.tensor([src.shape[1]]))
            contexts, hiddens = backbone.forced(backbone.in_document(encoded, [before]), tgt)
            prev = torch.cat([torch.tensor([[1]]), tgt[:, :-1]], 1)
            log_p = backbone.readout(prev[0], hiddens[0], contexts[0]).log_softmax(-1)
        mean = log_p.gather(1, tgt[0][:, None]).mean()
        assert one.score == pytest.approx(float(mean), abs=1e-4)
    alone = [made.translate([text])[0].score for text in TEXTS]
    plain = translator(folder, context=False)
    assert scores(plain.translate(TEXTS)) == pytest.approx(alone, abs=1e-5)
    assert plain.model_hash != made.model_hash and plain.pipeline.backbone.previous == 0
    assert found[0].score == pytest.approx(alone[0], abs=1e-5)
    assert all(
        abs(one.score - other) > 1e-4 for one, other in zip(found[1:], alone[1:], strict=True)
    )


def test_a_new_document_begins_with_nothing_and_batches_change_nothing(folder: Path) -> None:
    made = translator(folder)
    together = scores(made.translate([*TEXTS[:3], "", *TEXTS[3:]]))
    apart = scores([one for part in (TEXTS[:3], TEXTS[3:]) for one in made.translate(part)])
    assert [*together[:3], *together[4:]] == pytest.approx(apart, abs=1e-5)
    single = translator(folder, batch=1)
    assert scores(single.translate(TEXTS)) == pytest.approx(scores(made.translate(TEXTS)), abs=1e-5)


def test_a_session_reads_what_was_finished(folder: Path, tmp_path: Path) -> None:
    made = translator(folder)
    expected = made.translate(TEXTS)
    session = made.session()
    for text, one in zip(TEXTS[:3], expected[:3], strict=True):
        assert session.translate(text).score == pytest.approx(one.score, abs=1e-5)
        session.confirm(text, one.tgt)
    session.save(tmp_path / "session")
    for other in (session, made.session(tmp_path / "session")):
        assert scores([*other.stream(TEXTS[3:])]) == pytest.approx(scores(expected[3:]), abs=1e-5)
        completed = other.complete(TEXTS[3], "")
        assert completed.tgt == expected[3].tgt
        assert completed.score == pytest.approx(expected[3].score, abs=1e-5)
    session.undo()
    assert session.translate(TEXTS[2]).score == pytest.approx(expected[2].score, abs=1e-5)
    session.new_document()
    alone = made.translate([TEXTS[4]])[0].score
    assert session.translate(TEXTS[4]).score == pytest.approx(alone, abs=1e-5)


def test_a_service_s_request_is_a_document(folder: Path) -> None:
    made = translator(folder)
    queue = Queue(made, room=10_000)
    future = queue.submit(Job(made.session(), [*TEXTS[:2], "", *TEXTS[2:]]))
    queue.start()
    try:
        found = future.result(60)
    finally:
        queue.stop()
    expected = made.translate([*TEXTS[:2], "", *TEXTS[2:]])
    assert scores(found) == pytest.approx(scores(expected), abs=1e-5)


def test_all_around_is_read_after_a_first_pass(tmp_path: Path) -> None:
    made = translator(write_reading_model(tmp_path / "model", "around", std=0.1))
    backbone, vocab = made.pipeline.backbone, made.vocab
    assert isinstance(backbone, InDocument)
    plain = translator(tmp_path / "model", context=False)
    first = plain.translate(TEXTS)
    pairs = [(vocab.encode(t), vocab.encode(one.tgt)) for t, one in zip(TEXTS, first, strict=True)]
    document = surveyed(backbone.base, pairs, torch.device("cpu"))
    found = made.translate(TEXTS)
    for at, one in enumerate(found):
        src = torch.tensor([[*vocab.encode(TEXTS[at]), EOS]])
        tgt = torch.tensor([[*vocab.encode(one.tgt), EOS]])
        with torch.inference_mode():
            encoded = backbone.encode(src, torch.tensor([src.shape[1]]))
            encoded = backbone.in_document(encoded, [SurroundingText(document, at)])
            contexts, hiddens = backbone.forced(encoded, tgt)
            prev = torch.cat([torch.tensor([[1]]), tgt[:, :-1]], 1)
            log_p = backbone.readout(prev[0], hiddens[0], contexts[0]).log_softmax(-1)
        mean = log_p.gather(1, tgt[0][:, None]).mean()
        assert one.score == pytest.approx(float(mean), abs=1e-4)
        assert abs(one.score - first[at].score) > 1e-4
    # documents are apart; batches change nothing; one segment has nothing around it
    together = scores(made.translate([*TEXTS[:3], "", *TEXTS[3:]]))
    apart = scores([one for part in (TEXTS[:3], TEXTS[3:]) for one in made.translate(part)])
    assert [*together[:3], *together[4:]] == pytest.approx(apart, abs=1e-5)
    single = translator(tmp_path / "model", batch=1)
    assert scores(single.translate(TEXTS)) == pytest.approx(scores(found), abs=1e-5)
    assert scores(made.translate(TEXTS[:1])) == pytest.approx(scores(first[:1]), abs=1e-5)


def test_in_a_session_what_is_asked_for_together_is_read_around_each(tmp_path: Path) -> None:
    made = Translator.load(
        write_reading_model(tmp_path / "model", "around", std=0.1),
        options=TranslationOptions(mode="off", verbatim=0, cache=25, remember="own", threads=1),
    )
    plain = translator(tmp_path / "model", context=False)
    assert made.session().translate(TEXTS[0]).score == pytest.approx(
        plain.translate(TEXTS[:1])[0].score, abs=1e-5
    )
    no_words = translator(tmp_path / "model").translate(TEXTS)
    found = [*made.session().stream(TEXTS)]
    assert found[0].score == pytest.approx(no_words[0].score, abs=1e-5)  # of an empty cache
    assert len(found) == len(TEXTS) and all(one.tgt for one in found)


def test_the_server_refuses_what_reads_whole_documents(tmp_path: Path) -> None:
    folder = write_reading_model(tmp_path / "model", "around")
    with pytest.raises(UsageError, match=r"reads whole documents.*serve its base instead"):
        service_of([folder], [], [], threads=1, sessions=str(tmp_path / "s"))


def test_memory_layers_work_on_top(folder: Path) -> None:
    made = Translator.load(
        folder, options=TranslationOptions(mode="both", verbatim=0, cache=25, threads=1)
    )
    session = made.session()
    session.confirm(*PAIRS[0])
    found = session.translate("The Commission shall inform the Commission.", explain=True)
    assert found.tokens
    for token in found.tokens:
        parts = token.generated + token.recalled + token.copied
        assert parts == pytest.approx(token.probability, abs=1e-5)
    assert any(token.copied > 0.01 for token in found.tokens)
