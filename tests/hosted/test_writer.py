"""Translating with a base behind an address: what it is asked, what becomes of its answers, and
what happens where it answers late, wrongly, or not at all."""

from __future__ import annotations

import stat
import threading
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from base_server import BaseServer, Response, base_server

from tmnmt.codes.record import Code, Placed, Text
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import ServerError, UsageError
from tmnmt.hosted import connection
from tmnmt.hosted.answer_cache import AnswerCache
from tmnmt.hosted.writer import ChatWriter
from tmnmt.translator import Translator

WORDS = {
    "Press the green button.": "Prima o botão verde.",
    "Press the red button.": "Prima o botão vermelho.",
    "Delete 901 files?": "Eliminar 901 ficheiros?",
}
MEMORY = "src\ttgt\nPress the red button.\tPrima o botão vermelho.\n"


def known(text: str, request: dict[str, Any]) -> Response:
    return Response(WORDS.get(text, f"«{text}»" if "\n" in text else f"Isto é {text}"))


def first(response: Response, then: Callable[..., Response] = known) -> Callable[..., Response]:
    """Answers a text so the first time it is asked for, and then otherwise."""
    seen = set[str]()

    def respond(text: str, request: dict[str, Any]) -> Response:
        if text in seen:
            return then(text, request)
        seen.add(text)
        return response

    return respond


def loaded(server: BaseServer, memory: Path | None = None, **options: Any) -> Translator:
    memories = [memory] if memory is not None else []
    return Translator.load(server.address(), memories, TranslationOptions(**options))


def counts(translator: Translator) -> dict[str, int]:
    writer = translator.pipeline.writer
    assert isinstance(writer, ChatWriter)
    return dict(writer.connection.counts)


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    path = tmp_path / "memory.tsv"
    path.write_text(MEMORY)
    return path


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_WAIT", 0.01)


def test_what_the_memory_holds_is_taken_and_the_rest_is_asked_for(memory: Path) -> None:
    with base_server(known) as server:
        exact, similar = loaded(server, memory).translate(
            ["Press the red button.", "Press the green button."], explain=True
        )
        assert (exact.tgt, exact.origin) == ("Prima o botão vermelho.", "memory")
        assert (similar.tgt, similar.origin) == ("Prima o botão verde.", "model")
        assert similar.matches[0].segment.src == "Press the red button."
        assert similar.score != similar.score and not similar.tokens  # nothing is known of these
        assert similar.confidence is None and not similar.low
        assert server.texts == ["Press the green button."]
        assert "Press the red button.\n=> Prima o botão vermelho." in server.systems[0]


def test_without_a_mode_the_memory_is_only_taken_from(memory: Path) -> None:
    with base_server(known) as server:
        loaded(server, memory, mode="off").translate(["Press the green button."])
        assert "red" not in server.systems[0]


def test_a_session_tells_what_was_confirmed_last() -> None:
    with base_server(known) as server:
        session = loaded(server, last_pairs=2).session()
        for number in range(3):
            session.confirm(f"Old text {number}.", f"Texto velho {number}.")
        session.translate("Press the green button.")
        assert "Texto velho 0" not in server.systems[0]
        assert "Texto velho 1.\nOld text 2.\n=> Texto velho 2." in server.systems[0]
        session.undo()
        session.translate("Press the green button.")
        assert "Texto velho 2" not in server.systems[1]
        session.new_document()
        session.translate("Press the green button.")
        assert "Texto velho" not in server.systems[2]


def test_notes_and_the_texts_beside_it_are_told() -> None:
    with base_server(known) as server:
        text = Placed("Press the green button.", (), "Before it.", "Behind it.", "id", "On a menu.")
        loaded(server).translate([text])
        assert all(told in server.systems[0] for told in ("Before it.", "Behind it.", "On a menu."))


def test_placeholders_are_put_back() -> None:
    with base_server(known) as server:
        [translation] = loaded(server).translate(["Delete %d files?"])
        assert (translation.tgt, translation.user_checks) == ("Eliminar %d ficheiros?", ())
        assert server.texts == ["Delete 901 files?"] and "901" in server.systems[0]


def test_tags_go_where_the_base_puts_them() -> None:
    def respond(text: str, request: dict[str, Any]) -> Response:
        assert text == "The <g1>red</g1> house <x2/>is old."
        return Response("A casa <g1>vermelha</g1> <x2/>é velha.")

    source = Text(
        "The red house is old.",
        (
            Code(4, "open", "<b>", "1"),
            Code(7, "close", "</b>", "1"),
            Code(14, "standalone", "<br/>"),
        ),
    )
    with base_server(respond) as server:
        [translation] = loaded(server).translate([source])
        target = Text(translation.tgt, translation.tgt_codes)
        assert target.full_text() == "A casa <b>vermelha</b> <br/>é velha."


def test_tags_that_the_base_loses_are_asked_for_and_then_marked() -> None:
    source = "The <b>red</b> house is old."
    with base_server(lambda text, request: Response("A casa vermelha é velha.")) as server:
        [translation] = loaded(server).translate([source])
        assert "<g1> </g1>" in server.systems[1].partition("A first answer")[2]
        assert translation.tgt.count("<b>") == translation.tgt.count("</b>") == 1
        assert [check.name for check in translation.user_checks] == ["answer"]
        assert "<g1>" in translation.user_checks[0].what


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("", "It is empty."),
        ("Here is the translation: Prima o botão.", "begins with words"),
        ('"Prima o botão verde 7."', "quotes around it"),
        ("Prima o botão verde 7.\n\nNote: verde is green.", "several lines"),
        ("Prima o botão verde.", "numbers are missing: 7"),
        ("Taste die grüne Schaltfläche, die nicht auf dem Bild ist, und warte 7 Mal.", "not in Po"),
        ("Prima 7 " * 200, "too long"),
    ],
)
def test_an_answer_that_breaks_a_rule_is_asked_for_once_more(answer: str, fault: str) -> None:
    text, right = "Press the green button 7.", "Prima o botão verde 7."
    with base_server(first(Response(answer), lambda *_: Response(right))) as server:
        translator = loaded(server)
        [translation] = translator.translate([text])
        assert (translation.tgt, translation.user_checks) == (right, ())
        assert fault in server.systems[1] and server.texts == [text, text]
        assert counts(translator) == {"requests": 2, "second tries": 1}
    with base_server(lambda *_: Response(answer)) as server:
        translator = loaded(server, keep_answers=False)
        [translation] = translator.translate([text])
        assert next(check.name for check in translation.user_checks) == "answer"
        assert fault in translation.user_checks[0].what
        assert counts(translator) == {"requests": 2, "second tries": 1, "broken rules": 1}


def test_a_second_answer_that_recites_what_was_wrong_is_not_taken() -> None:
    recited = "The text is not in Portuguese, but seems to be German. Keep to all rules 7."
    draft = "Taste die grüne Schaltfläche, die nicht auf dem Bild ist, und warte 7 Mal."
    with base_server(first(Response(draft), lambda *_: Response(recited))) as server:
        [translation] = loaded(server).translate(["Press the green button 7."])
        assert translation.tgt == draft and "seems to be German." in server.systems[1]
        assert [check.name for check in translation.user_checks] == ["answer"]


def test_a_second_answer_may_have_the_term_and_the_numbers_that_were_missing(
    tmp_path: Path,
) -> None:
    terms = tmp_path / "terms.csv"
    terms.write_text("en,pt\nbutton,tecla de cor verde\n")
    right = "Prima a tecla de cor verde 1, 2, 3, 4."
    draft = "Prima o botão verde."
    with base_server(first(Response(draft), lambda *_: Response(right))) as server:
        [translation] = loaded(server, terms=terms).translate(["Press the button 1, 2, 3, 4."])
        assert "tecla de cor verde for button" in server.systems[1]
        assert "1, 2, 3, 4." in server.systems[1]
        assert (translation.tgt, translation.user_checks) == (right, ())


def test_an_answer_that_was_cut_off_is_asked_for_once_more() -> None:
    cut = Response("Prima o", reason="length")
    with base_server(first(cut)) as server:
        [translation] = loaded(server).translate(["Press the green button."])
        assert translation.tgt == "Prima o botão verde." and "breaks off" in server.systems[1]


def test_what_a_base_thinks_first_is_left_out() -> None:
    with base_server(lambda *_: Response("<think>green\nis verde</think>\n Prima.")) as server:
        [translation] = loaded(server).translate(["Press."])
        assert (translation.tgt, len(server.asked)) == ("Prima.", 1)


def test_terms_are_told_and_asked_for(tmp_path: Path) -> None:
    terms = tmp_path / "terms.csv"
    terms.write_text("en,pt\nbutton,tecla\n")
    with base_server(
        first(Response("Prima o botão verde."), lambda *_: Response("Tecla verde."))
    ) as s:
        translator = loaded(s, terms=terms)
        [translation] = translator.translate(["Press the green button."])
        assert (
            "button = tecla" in s.systems[0]
            and "tecla" in s.systems[1].partition("A first answer")[2]
        )
        assert (translation.tgt, translation.user_checks) == ("Tecla verde.", ())


# --- how it is asked --------------------------------------------------------------------------


def test_several_requests_are_in_flight_and_no_more() -> None:
    texts = [f"Text number {number}." for number in range(12)]
    with base_server(lambda text, _: Response(f"{text} é.", latency=0.2)) as server:
        found = loaded(server, requests=3).translate(texts)
        assert [entry.tgt for entry in found] == [f"{text} é." for text in texts]
        assert server.most == 3


def test_equal_texts_are_asked_for_once() -> None:
    with base_server(known) as server:
        translator = loaded(server)
        found = list(translator.stream([["Press the green button."]] * 5))
        assert len(found) == 5 and len(server.asked) == 1


def test_answers_are_kept_for_the_user_alone(cache: Path) -> None:
    with base_server(known) as server:
        text = "Press the green button."
        loaded(server).translate([text])
        again = loaded(server)
        assert again.translate([text])[0].tgt == "Prima o botão verde."
        assert counts(again) == {"kept answers": 1} and len(server.asked) == 1
        loaded(server, last_pairs=0).translate([text])  # which asks the same
        assert len(server.asked) == 1
        other = loaded(server)
        session = other.session()
        session.confirm("Old.", "Velho.")
        session.translate(text)
        assert len(server.asked) == 2  # another prompt
        loaded(server, keep_answers=False).translate([text])
        assert len(server.asked) == 3
    [path] = (cache / "tmnmt" / "answers").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_request_that_is_put_off_is_made_again(status: int, quick: None) -> None:
    busy = Response(status=status, content=b"busy")
    with base_server(first(busy)) as server:
        translator = loaded(server)
        assert translator.translate(["Press the green button."])[0].tgt == "Prima o botão verde."
        assert counts(translator) == {"requests": 2, "retries": 1}


@pytest.mark.parametrize("wait", ["300", lambda: formatdate(time.time() + 600, usegmt=True)])
def test_the_server_says_when_it_may_be_asked_again(
    wait: Any, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked again at once here, after the seconds were noted that would have passed."""
    waits = list[float]()
    header = {"Retry-After": wait if isinstance(wait, str) else wait()}
    with base_server(first(Response(status=429, headers=header))) as server:
        translator = loaded(server, request_seconds=3600)
        writer = translator.pipeline.writer
        assert isinstance(writer, ChatWriter)
        monkeypatch.setattr(writer.connection.stopping, "wait", waits.append)
        translator.translate(["Press the green button."])
    assert len(waits) == 1 and 250 < waits[0] <= 600


def test_a_wait_that_is_too_long_ends_at_once(quick: None) -> None:
    busy = Response(status=429, headers={"Retry-After": "100"})
    with base_server(lambda *_: busy) as server:
        with pytest.raises(ServerError, match="answers 429"):
            loaded(server, request_seconds=20).translate(["Press."])
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"no JSON", b"[]", b'{"choices": []}', b'{"choices": [{"message": {"content": 1}}]}',
     b'{"choices": [{"message": {"content": "\\ud800"}}]}', b"[" * 5000],
)  # fmt: skip
def test_what_is_no_answer_is_asked_for_again(content: bytes, quick: None) -> None:
    with base_server(first(Response(content=content))) as server:
        assert loaded(server).translate(["Press the green button."])[0].tgt.endswith("verde.")
    with base_server(lambda *_: Response(content=content)) as server:
        with pytest.raises(ServerError, match=r"no chat completion|halves of characters"):
            loaded(server).translate(["Press."])
        assert len(server.asked) == connection.TRIES


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LARGEST", 10_000)
    with base_server(lambda *_: Response("a" * 20_000)) as server:
        translator = loaded(server)
        with pytest.raises(ServerError, match="more than 10,000 bytes"):
            translator.translate(["Press."])


@pytest.mark.parametrize("response", [Response("Prima.", latency=30), Response("Prima.", drip=0.3)])
def test_an_answer_that_comes_too_slowly_is_given_up(response: Response) -> None:
    """It would be whole after half a minute."""
    late = pytest.raises(ServerError, match="no answer in time")
    with base_server(lambda *_: response) as server, late:
        loaded(server, request_seconds=1).translate(["Press."])


def test_a_server_that_is_away_is_told(quick: None) -> None:
    with base_server(known) as server:
        pass
    with pytest.raises(ServerError, match="cannot be asked"):
        loaded(server).translate(["Press."])


class Held:
    """Answers that are held back until a test lets them go."""

    def __init__(self) -> None:
        self.came, self._may_go = threading.Event(), threading.Event()
        self.waited_for = 0  # answers that somebody has waited for to the end

    def __call__(self, text: str, request: dict[str, Any]) -> Response:
        self.came.set()
        self.waited_for += not self._may_go.wait(60)
        return Response("Sim.")

    def let_go(self) -> int:
        """How many were waited for until now."""
        waited_for = self.waited_for
        self._may_go.set()
        return waited_for


def test_the_first_error_ends_the_others() -> None:
    held = Held()

    def respond(text: str, request: dict[str, Any]) -> Response:
        if "7" not in text:
            return held(text, request)
        assert held.came.wait(60)
        return Response(status=400)

    with base_server(respond) as server:
        with pytest.raises(ServerError, match="answers 400"):
            loaded(server).translate([f"Text number {number}." for number in (1, 2, 7, 8)])
        assert held.let_go() == 0


def test_only_the_named_host_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with base_server(known) as other, base_server(known) as server:
        monkeypatch.setenv("http_proxy", other.url)
        elsewhere = {"Location": f"{other.url}/chat/completions"}
        server.respond = lambda *_: Response(status=307, headers=elsewhere)
        with pytest.raises(ServerError, match="answers 307, and sends to another address"):
            loaded(server).translate(["Press."])
        assert not other.asked


def test_a_refusal_is_told_in_the_words_of_the_server() -> None:
    content = b'{"error": {"message": "model small not found"}}'
    with base_server(lambda *_: Response(status=404, content=content)) as server:
        with pytest.raises(ServerError, match=r"answers 404: 'model small not found'"):
            loaded(server).translate(["Press."])
        assert len(server.asked) == 1


# --- the key ----------------------------------------------------------------------------------


def test_the_key_goes_to_the_server_and_into_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "key"
    path.write_text("s3cret-1\n")
    path.chmod(0o600)
    refusal = Response(status=401, content=b'{"error": {"message": "wrong key s3cret-1"}}')
    with caplog.at_level("DEBUG"), base_server(lambda *_: refusal) as server:
        with pytest.raises(ServerError, match="answers 401") as raised:
            loaded(server, key_file=path).translate(["Press."])
        assert server.headers[0]["Authorization"] == "Bearer s3cret-1"
        assert "s3cret" not in str(raised.value) + caplog.text
    monkeypatch.setenv(connection.KEY_VARIABLE, "s3cret-2")
    with base_server(known) as server:
        translator = loaded(server)
        translator.translate(["Press."])
        assert server.headers[0]["Authorization"] == "Bearer s3cret-2"
        assert "s3cret" not in repr(translator.pipeline.writer)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("s3cret")
    path.chmod(0o644)
    with base_server(known) as server, pytest.raises(UsageError, match="chmod 600"):
        loaded(server, key_file=path)
    path.chmod(0o600)
    path.write_text("\nx")
    with base_server(known) as server, pytest.raises(UsageError, match="no key in its first line"):
        loaded(server, key_file=path)


# --- what it is not ---------------------------------------------------------------------------


def test_what_leaves_the_machine_is_told(memory: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"), base_server(known) as server:
        loaded(server, memory)
        told = caplog.messages[-1]
        assert "127.0.0.1" in told and "pairs of the memories" in told and "terms" not in told
        loaded(server, memory, mode="off", last_pairs=0)
        assert "pairs" not in caplog.messages[-1] and "texts beside them" in caplog.messages[-1]


@pytest.mark.parametrize(
    "options", [{"nbest": 2, "beam": 5}, {"precision": "int8"}, {"cache": 10}, {"beam": 2}]
)
def test_options_of_states_are_refused(options: dict[str, Any]) -> None:
    with base_server(known) as server, pytest.raises(UsageError):
        loaded(server, **options)


def test_nothing_reads_states() -> None:
    with base_server(known) as server:
        translator = loaded(server)
        with pytest.raises(UsageError, match="shows no states"):
            _ = translator.pipeline.decoder
        with pytest.raises(UsageError, match="mode nearest; it serves examples, off"):
            loaded(server, mode="nearest")


def test_behind_what_is_typed_its_translation_goes_on_while_it_agrees() -> None:
    with base_server(known) as server:
        session = loaded(server).session()
        source = "Press the green button."
        assert session.complete(source, "").tgt == "Prima o botão verde."
        assert session.complete(source, "Prima o b").tgt == "Prima o botão verde."
        assert session.next_words(source, "Prima o ") == "botão verde."
        other = session.complete(source, "Carregue no ")
        assert (other.tgt, other.origin) == ("Carregue no ", "")
        assert session.next_words(source, "Carregue ") == ""
        assert session.alternatives(source, "Prima ") == []
        assert len(server.asked) == 1


def test_an_interruption_ends_what_is_under_way() -> None:
    held = Held()
    with base_server(held) as server:
        translator = loaded(server)
        writer = translator.pipeline.writer
        assert isinstance(writer, ChatWriter)
        connection = writer.connection
        abort = threading.Thread(target=lambda: held.came.wait(60) and connection.abort())
        abort.start()
        with pytest.raises(ServerError):
            translator.translate(["Press."])
        assert held.let_go() == 0
        abort.join()


def test_the_answers_that_were_used_longest_ago_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("tmnmt.hosted.answer_cache.time.time", lambda: now[0])
    cache = AnswerCache(tmp_path / "answers.db", most_answers=150)
    for number in range(201):
        now[0] += 10_000
        cache.put(bytes([number]), str(number))
        assert cache.get(b"\0") == "0"  # which stays, as it is used
    assert cache.get(bytes([200])) == "200" and cache.get(bytes([1])) is None
    assert sum(cache.get(bytes([number])) is not None for number in range(201)) == 150


def test_answers_that_cannot_be_kept_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "answers.db"
    path.write_bytes(b"no database at all" * 100)
    cache = AnswerCache(path)
    cache.put(b"1", "one")
    assert cache.get(b"1") is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
