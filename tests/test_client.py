"""The client of a server gives what a Translator gives, and raises what one raises."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from serving import Server, tiny_server
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt import Translator
from tmnmt.checks import Check, ChecksError
from tmnmt.client import Client, _translation
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import DataError, ServerError, UsageError
from tmnmt.index import build
from tmnmt.segments import Other, SearchWork, Segment, Translation, Word, Work
from tmnmt.serve.keys import Keys, new_key
from tmnmt.serve.service import Limits


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("client")
    write_tiny_model(folder / "model")
    build(folder / "law", segments(), "en", "fr")
    return folder


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Server]:
    with tiny_server(folder, ("law=law",), ("own=own",)) as server:
        yield server


TEXTS = ["The Commission shall inform the Council.", PAIRS[1][0], "", "It shall apply from 3 May."]


def known(one: Translation) -> Translation:
    """What the server tells of it: no edits, and of a match's segment what is asked for."""
    matches = tuple(
        replace(
            match,
            edits=0,
            score=round(match.score, 8),
            segment=Segment(
                match.segment.src, match.segment.tgt, match.segment.document, id=match.segment.id
            ),
        )
        for match in one.matches
    )
    return replace(one, matches=matches, score=round(one.score, 8), tokens=())


def test_translations_are_those_of_a_translator(served: Server, folder: Path) -> None:
    translator = Translator.load(folder / "model", [folder / "law"], TranslationOptions(threads=1))
    client = Client(served.url, memories=["law"])
    for text in TEXTS:
        (found,), (own,) = client.translate([text], True), translator.translate([text], True)
        assert known(found) == known(own)
        assert [token.text for token in found.tokens] == [token.text for token in own.tokens]
        assert [token.sources for token in found.tokens if token.sources] or not own.tokens
    assert [one.src for one in client.stream([TEXTS[:2], TEXTS[2:]])] == TEXTS
    assert [one.tgt for one in client.translate(["No."] * 450)] == [
        client.translate(["No."])[0].tgt
    ] * 450


def test_a_session_is_used_as_one_of_a_translator(
    served: Server, folder: Path, tmp_path: Path
) -> None:
    client = Client(served.url)
    session = client.session(write_to="own")
    session.confirm("All of it is void.", "Tout est nul.")
    session.confirm("Nothing else is.", "Rien d'autre.")
    assert session.translate("All of it is void.").tgt == "Tout est nul."
    assert client.session(session.id).confirmed == 2
    assert session.undo() == ("Nothing else is.", "Rien d'autre.")
    assert session.pairs() == [("All of it is void.", "Tout est nul.")]
    session.save(tmp_path / "session")
    translator = Translator.load(folder / "model", options=TranslationOptions(threads=1))
    assert (
        translator.session(tmp_path / "session").translate("All of it is void.").tgt
        == "Tout est nul."
    )
    session.undo()
    with pytest.raises(UsageError, match="nothing was confirmed"):
        session.undo()
    session.end()
    with pytest.raises(DataError, match="no such session"):
        session.translate("No.")


def test_what_the_checks_find_is_told_or_refused(served: Server) -> None:
    session = Client(served.url).session(write_to="")
    src, tgt = "It ends in 30 days.", "Il expire dans 45 jours."
    with pytest.raises(ChecksError) as error:
        session.confirm(src, tgt, on_checks="refuse")
    assert error.value.checks == [Check("numbers", "30")] and session.confirmed == 0
    assert session.confirm(src, tgt) == [Check("numbers", "30")] and session.confirmed == 1
    assert session.confirm(src, tgt.replace("45", "30"), on_checks="refuse") == []


def test_what_is_typed_is_gone_on_with_as_a_translator_does(served: Server, folder: Path) -> None:
    translator = Translator.load(folder / "model", [folder / "law"], TranslationOptions(threads=1))
    client = Client(served.url, memories=["law"])
    session, own_session = client.session(write_to=""), translator.session()
    for one in (session, own_session):
        one.confirm("It is void.", "Il est nul.")
    for there, here in ((client, translator), (session, own_session)):
        for prefix in ("", "Les", "La Com"):
            found, own = (one.complete(TEXTS[0], prefix, explain=True) for one in (there, here))
            assert known(found) == known(own) and found.tokens[0].text == own.tokens[0].text
            assert there.complete(TEXTS[0], prefix).tokens == ()
            some, others = (one.alternatives(TEXTS[0], prefix, 3) for one in (there, here))
            assert [one.text for one in some] == [one.text for one in others] != []
            assert some[0].probability == pytest.approx(others[0].probability, abs=1e-6)
    assert session.next_words(TEXTS[0], "Les") == own_session.next_words(TEXTS[0], "Les")
    with pytest.raises(UsageError, match="a text is wanted"):
        client.complete(TEXTS[0], 3)  # type: ignore[arg-type]


def test_confidence_work_and_the_next_best_come_over() -> None:
    words = [{"text": "Il", "confidence": 0.5}]
    plain: dict[str, Any] = {"src": "a", "tgt": "b", "score": -1.0, "origin": "model"}
    empty: dict[str, Any] = {"low": False, "unknown": 0, "checks": [], "matches": [], "tokens": []}
    told: dict[str, Any] = {
        "words": words,
        "confidence": 0.25,
        "others": [{"tgt": "c", "score": -2.0}],
    }
    search = {"candidates": 9, "distances": 7}
    counts = {"pairs": 4, "positions": 60, "lookups": 30, "neighbours": 240}
    told["work"] = {"search": search, **counts}
    found = _translation(plain | empty | told)
    assert found.work == Work(SearchWork(9, 7), 4, 60, 30, 240)
    told["work"] = {"search": None, **counts}
    assert _translation(plain | empty | told).work == Work(None, 4, 60, 30, 240)
    assert found.words == (Word("Il", 0.5),) and found.confidence == 0.25
    assert found.others == (Other("c", -2.0, 0),)


def test_checks_that_need_the_memory_or_terms_come_over() -> None:
    record: dict[str, Any] = {"src": "a", "tgt": "b", "score": -1.0, "origin": "model"}
    record |= {"low": False, "unknown": 0, "matches": [], "tokens": []}
    names = ("length", "replay", "words", "terms")
    checks = [{"name": name, "what": "x"} for name in names]
    found = _translation(record | {"checks": checks})
    assert [check.name for check in found.user_checks] == ["replay", "words", "terms"]


def test_memories_and_files(served: Server, tmp_path: Path) -> None:
    client = Client(served.url)
    (id,) = client.add("own", [Segment("It is added.", "C'est ajouté.", "a")])
    assert client.edit("own", id, "It is added.", "C'est mis.").tgt == "C'est mis."
    ((match,),) = client.search("own", ["It is added."])
    assert (match.tgt, match.score, match.segment.id) == ("C'est mis.", 1.0, id)
    client.export("own", tmp_path / "own.tmx")
    client.delete("own", id)
    assert client.search("own", ["It is added."]) == [[]]
    assert client.read_into("own", tmp_path / "own.tmx")["added"] == 1
    assert client.search("own", ["It is added."])[0][0].tgt == "C'est mis."
    (tmp_path / "a.html").write_text(f"<p>{PAIRS[0][0]}</p>", encoding="utf-8")
    told = client.translate_file(tmp_path / "a.html", tmp_path / "b.html")
    assert told["translated"] == 1 and PAIRS[0][1] in (tmp_path / "b.html").read_text("utf-8")
    session = client.session(write_to="")
    session.confirm(PAIRS[0][0], "Confirmé.")
    session.translate_file(tmp_path / "a.html", tmp_path / "b.html")
    assert (tmp_path / "b.html").read_text("utf-8") == "<p>Confirmé.</p>"
    assert [one["name"] for one in client.memories()] == ["law", "own"]
    assert client.models()[0]["name"] == "model"


def test_how_far_a_job_is_is_told(
    served: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the connection on which it is told breaks off, or the server does not tell it."""
    monkeypatch.setattr("tmnmt.serve.files.AT_ONCE", 1)
    monkeypatch.setattr("tmnmt.serve.jobs.NOTE_INTERVAL", 0.0)
    monkeypatch.setattr("tmnmt.serve.events.NOTE_INTERVAL", 0.001)
    monkeypatch.setattr("tmnmt.client.RETRY_SECONDS", 0.001)
    client, reached = Client(served.url), Client._reached
    page = "".join(f"<p>Article {n} is repealed.</p>" for n in range(20))
    (file := tmp_path / "a.html").write_text(page, encoding="utf-8")
    far = list[tuple[int, int | None]]()
    told = client.translate_file(file, tmp_path / "b.html", advance=lambda *at: far.append(at))
    assert told["translated"] == 20 and far == sorted(far) and far[-1][1] == 20

    @contextmanager
    def broken(self: Client, request: Any) -> Iterator[Any]:
        with reached(self, request) as reply:
            is_told = request.full_url.endswith("/events")
            yield [reply.readline(), b'data: {"state": "wor'] if is_told else reply

    monkeypatch.setattr(Client, "_reached", broken)
    assert client.translate_file(file, tmp_path / "b.html")["translated"] == 20

    @contextmanager
    def refusing(self: Client, request: Any) -> Iterator[Any]:
        request.full_url = request.full_url.replace("/events", "/nothing")
        with reached(self, request) as reply:
            yield reply

    monkeypatch.setattr(Client, "_reached", refusing)
    assert client.translate_file(file, tmp_path / "b.html")["translated"] == 20


def test_what_is_wrong_is_raised(served: Server, folder: Path, tmp_path: Path) -> None:
    client = Client(served.url)
    with pytest.raises(UsageError, match="de is not served"):
        Client(served.url, target="de").translate(["No."])
    with pytest.raises(UsageError, match="not written to"):
        client.add("law", [Segment("a", "b")])
    with pytest.raises(DataError, match="no such memory"):
        client.search("none", ["a"])
    with pytest.raises(UsageError, match="a list of texts is wanted"):
        client.translate("No.")
    with pytest.raises(UsageError, match="no address"):
        Client("ftp://somewhere")
    with pytest.raises(DataError, match="cannot be read"):
        client.read_into("own", tmp_path / "none.tmx")
    (tmp_path / "no.tmx").write_text("<x/>", encoding="utf-8")
    with pytest.raises(DataError, match=r"no\.tmx"):
        client.read_into("own", tmp_path / "no.tmx")
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ServerError, match="cannot be reached"):
        Client(nobody).models()
    key = new_key(tmp_path / "keys.toml", "one", "read", None, ["law"])
    with tiny_server(folder, ("law=law",), keys=Keys.load(tmp_path / "keys.toml")) as server:
        assert Client(server.url, key).search("law", [PAIRS[0][0]])[0][0].score == 1
        with pytest.raises(UsageError, match="a key of the role translate"):
            Client(server.url, key).translate(["No."])
        with pytest.raises(UsageError, match="a key is needed"):
            Client(server.url).models()


def test_a_request_that_is_put_off_is_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = list[float]()
    with tiny_server(folder, limits=Limits(sessions=1)) as server:
        client = Client(server.url)
        first = client.session(write_to="")

        def later(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 2:
                first.end()

        monkeypatch.setattr("tmnmt.client.time.sleep", later)
        client.session(write_to="")
        assert waits == [30.0, 30.0]
        with pytest.raises(ServerError, match="too many sessions"):
            client.session(write_to="")


def test_what_is_sent_again_is_not_carried_out_twice(
    served: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The storage has done what it was told, and its answer was lost."""
    storage, waits = served.service.storage.sessions, list[float]()
    monkeypatch.setattr("tmnmt.client.time.sleep", waits.append)
    session = Client(served.url).session(write_to="")
    append, withdraw = storage.append, storage.withdraw

    def append_in_silence(*given: Any) -> None:
        monkeypatch.setattr(storage, "append", append)
        append(*given)
        raise ServerError("no answer")

    def withdraw_in_silence(*given: Any) -> None:
        monkeypatch.setattr(storage, "withdraw", withdraw)
        withdraw(*given)
        raise ServerError("no answer")

    session.confirm("All is void.", "Tout est nul.")
    monkeypatch.setattr(storage, "append", append_in_silence)
    session.confirm("It is void.", "Il est nul.")
    assert len(waits) == 1 and session.confirmed == 2
    monkeypatch.setattr(storage, "withdraw", withdraw_in_silence)
    with pytest.raises(ServerError):
        session.undo()
    assert len(waits) == 1 and session.pairs()[0] == ("All is void.", "Tout est nul.")
