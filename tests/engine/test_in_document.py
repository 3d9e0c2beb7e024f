"""A model that reads the source segments before its own is given them, wherever it translates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from reading_model import write_reading_model
from tiny_model import PAIRS

from tmnmt import Translator
from tmnmt.config.options import ContextForm, Decoding, Remembering
from tmnmt.segments import Translation
from tmnmt.serve.queue import Job, Queue
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


def translator(folder: Path, **decoding: Any) -> Translator:
    options = Decoding(**{"mode": "off", "verbatim": 0, **decoding})
    return Translator.load(folder, decoding=options, remembering=Remembering(cache=0), threads=1)


def scores(found: list[Translation]) -> list[float]:
    return [one.score for one in found]


def test_every_segment_is_read_with_those_before_it(folder: Path) -> None:
    made = translator(folder)
    backbone, vocab = made.backbone, made.vocab
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
    assert plain.model_hash != made.model_hash and plain.backbone.previous == 0
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


def test_memory_layers_work_on_top(folder: Path) -> None:
    made = Translator.load(
        folder,
        decoding=Decoding(mode="both", verbatim=0),
        remembering=Remembering(cache=25),
        threads=1,
    )
    session = made.session()
    session.confirm(*PAIRS[0])
    found = session.translate("The Commission shall inform the Commission.", explain=True)
    assert found.tokens
    for token in found.tokens:
        parts = token.generated + token.recalled + token.copied
        assert parts == pytest.approx(token.probability, abs=1e-5)
    assert any(token.copied > 0.01 for token in found.tokens)
