"""The translator's desk: through a real terminal, and step by step with the lines given."""

from __future__ import annotations

import builtins
import io
import readline
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from terminal import CTRL_D, CTRL_U, PAGE_UP, Terminal
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt.cli import interactive, run
from tmnmt.cli.interactive import Desk
from tmnmt.config.options import TranslationOptions
from tmnmt.index import MemoryIndex, build
from tmnmt.session import Session
from tmnmt.translator import Translator

THIRD, FOURTH = "Notice of the third meeting", "Notice of the fourth meeting"
AVIS = "Avis de la troisième réunion"
LINES = [PAIRS[0][0], THIRD, "", FOURTH, THIRD]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("interactive")
    write_tiny_model(folder / "model")
    build(folder / "index", segments(), "en", "fr")
    (folder / "text").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return folder


def test_on_a_terminal_a_document_is_confirmed_gone_back_in_ended_and_gone_on_with(
    folder: Path, tmp_path: Path
) -> None:
    command = [
        "translate",
        "--model",
        f"{folder / 'model'}",
        "--beam",
        "2",
        "--threads",
        "1",
        "--interactive",
        "--memory",
        f"{folder / 'index'}",
        "--write-to",
        f"{tmp_path / 'own'}",
        "-o",
        f"{tmp_path / 'out'}",
        "--session",
        f"{tmp_path / 'session'}",
        f"{folder / 'text'}",
    ]
    with Terminal(command, tmp_path / "err") as terminal:
        shown = terminal.until("\n> ")
        assert "Enter confirms the line" in shown and f"1 of 5  {PAIRS[0][0]}" in shown
        assert (
            f"  1.00  100 %  {PAIRS[0][0]}  (tiny)" in shown
            and "an exact match, as it stands" in shown
        )
        terminal.press("\n")  # what was prefilled
        assert terminal.until("\n> ").startswith(PAIRS[0][1])
        terminal.press(f"{CTRL_U}Avis erroné\n")
        assert f"4 of 5  {FOURTH}" in (shown := terminal.until("\n> ")) and "Avis erroné" in shown
        terminal.press(PAGE_UP)
        assert f"2 of 5  {THIRD}" in (shown := terminal.until("\n> ")) and "0.80" not in shown
        terminal.press(f"{CTRL_U}{AVIS}\n")
        assert AVIS in terminal.until("\n> ")
        terminal.press(CTRL_D)
        assert terminal.end() == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == f"{PAIRS[0][1]}\n{AVIS}\n\n"
    err = (tmp_path / "err").read_text(encoding="utf-8")
    assert f"what is confirmed is written to {tmp_path / 'own'}" in err
    assert f"3 of 5 lines are finished; --session {tmp_path / 'session'} goes on" in err
    with MemoryIndex.open(tmp_path / "own") as own:
        assert [segment.tgt for segment in own.segments()] == [PAIRS[0][1], AVIS]
    with Terminal(command, tmp_path / "err") as terminal:
        shown = terminal.until("\n> ")
        assert f"4 of 5  {FOURTH}" in shown and AVIS in shown
        terminal.press(f"{CTRL_U}\n")  # passed over
        assert "an exact match, as it stands" in terminal.until("\n> ")
        terminal.press("\n")
        assert terminal.end() == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == f"{PAIRS[0][1]}\n{AVIS}\n\n\n{AVIS}\n"


@pytest.mark.parametrize("end", ["ctrl-d", "interrupt", "hang-up"])
def test_what_was_confirmed_stays_where_somebody_goes_back_and_ends(
    folder: Path, tmp_path: Path, end: str
) -> None:
    places = ["--write-to", f"{tmp_path / 'own'}", "--session", f"{tmp_path / 'session'}"]
    model = ["--model", f"{folder / 'model'}", "--beam", "1", "--threads", "1"]
    command = ["translate", *model, "-i", "-o", f"{tmp_path / 'out'}", *places]
    with Terminal([*command, f"{folder / 'text'}"], tmp_path / "err") as terminal:
        for target in (PAIRS[0][1], AVIS):
            terminal.until("\n> ")
            terminal.press(f"{CTRL_U}{target}\n")
        for place in (4, 2):
            assert f"{place} of 5" in terminal.until("\n> ")
            terminal.press(PAGE_UP)
        assert "1 of 5" in terminal.until("\n> ")
        if end == "ctrl-d":
            terminal.press(CTRL_D)
            assert terminal.end() == 0
        elif end == "interrupt":
            assert terminal.stop(signal.SIGINT) == 130
        else:
            assert terminal.stop(signal.SIGHUP) == 129
    with MemoryIndex.open(tmp_path / "own") as own:
        assert [segment.tgt for segment in own.segments()] == [PAIRS[0][1], AVIS]
    name = "out" if end == "ctrl-d" else "out.partial"
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(f"{PAIRS[0][1]}\n{AVIS}\n")
    with Terminal([*command, f"{folder / 'text'}"], tmp_path / "err") as terminal:
        assert "4 of 5" in terminal.until("\n> ")


@pytest.mark.parametrize("keeps", [True, False])
def test_stopped_it_says_how_to_go_on(folder: Path, tmp_path: Path, keeps: bool) -> None:
    session = ["--session", f"{tmp_path / 'session'}"] if keeps else []
    command = [
        "translate",
        "--model",
        f"{folder / 'model'}",
        "--beam",
        "1",
        "--threads",
        "1",
        "-i",
        "-o",
        f"{tmp_path / 'out'}",
        *session,
        f"{folder / 'text'}",
    ]
    with Terminal(command, tmp_path / "err") as terminal:
        terminal.until("\n> ")
        terminal.press(f"{CTRL_U}{AVIS}.\n")
        terminal.until("\n> ")
        terminal.press("@@")  # its echo says that the line is being edited
        terminal.until("@@")
        stopped = terminal.stop(signal.SIGTERM if keeps else signal.SIGINT)
        assert stopped == (143 if keeps else 130)
    partial = f"{tmp_path / 'out'}.partial"
    again = " ".join(session) if keeps else f"--confirmed {partial}"
    assert (
        f"interrupted: the same command goes on with {again}; what was finished is in {partial}\n"
        in (tmp_path / "err").read_text(encoding="utf-8")
    )
    assert Path(partial).read_text(encoding="utf-8") == f"{AVIS}.\n"


def test_no_text_commands_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks, shown = list[Callable[[], None]](), list[str]()
    monkeypatch.setattr(
        readline, "set_startup_hook", lambda hook=None: hooks.extend([hook] if hook else [])
    )
    monkeypatch.setattr(readline, "insert_text", shown.append)

    def answer(prompt: str) -> str:
        shown.append(prompt)
        hooks[0]()
        return "caf\udce9"  # as Python reads a byte that is no UTF-8

    monkeypatch.setattr(builtins, "input", answer)
    assert interactive.edited("\x1b[2J> ", "a\x1b]0;b\x9b") == "caf\ufffd"
    assert shown == ["\u241b[2J> ", "a\u241b]0;b\ufffd"]


def test_what_the_desk_prints_does_not_command_the_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    monkeypatch.setattr(interactive, "check_terminal", lambda: None)
    monkeypatch.setattr(sys, "stdout", screen)
    desk = Desk(Translator.load(folder / "model").session(), [], None)
    desk._print("memory\x1b]0;b")
    assert "memory\u241b]0;b" in screen.getvalue()


class Person:
    """Answers in turn; what was prefilled where an answer is None."""

    def __init__(self, answers: list[str | None]) -> None:
        self.answers, self.offered = answers, list[str]()

    def __call__(self, prompt: str, text: str) -> str:
        self.offered.append(text)
        answer = self.answers.pop(0)
        return text if answer is None else answer


@pytest.fixture
def sit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    def work(
        session: Session, lines: list[str], answers: list[str | None], save: Path | None = None
    ) -> list[str]:
        person = Person(answers)
        monkeypatch.setattr(interactive, "check_terminal", lambda: None)
        monkeypatch.setattr(interactive, "edited", person)
        Desk(session, lines, save).work()
        assert not person.answers
        return person.offered

    return work


def test_what_is_gone_back_to_is_offered_as_it_was_confirmed_and_forgotten_until_then(
    folder: Path, sit: object
) -> None:
    session = Translator.load(folder / "model").session()
    offered = sit(session, LINES[1:], [AVIS, None, "<", "<", "autre", ":q"])  # type: ignore[operator]
    assert offered[0] == offered[1] != AVIS or offered[1] != offered[0]
    assert offered[3] == offered[1] and offered[4] == AVIS
    done = [(THIRD, "autre"), ("", ""), (FOURTH, offered[1])]  # the last one is confirmed again
    assert [(one.src, one.tgt) for one in session.done] == done
    exact = [session.confirmed.exact(text) for text in (THIRD, FOURTH)]
    assert [one and one.segment.tgt for one in exact] == ["autre", offered[1]]


def test_what_cannot_be_confirmed_is_said_and_asked_again(
    folder: Path, sit: object, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    session = Translator.load(folder / "model").session()
    offered = sit(session, [THIRD], ["<", "\u200b", AVIS], tmp_path / "saved")  # type: ignore[operator]
    out = capsys.readouterr().out
    assert "there is nothing to take back" in out and "nothing that can be seen" in out
    assert offered[1] == offered[0] and [one.tgt for one in session.done] == [AVIS]
    again = Translator.load(folder / "model").session(tmp_path / "saved")
    assert [one.tgt for one in again.done] == [AVIS] and again.translate(THIRD).tgt == AVIS


def test_what_the_checks_find_is_shown_and_a_second_enter_confirms_it(
    folder: Path, sit: object, capsys: pytest.CaptureFixture[str]
) -> None:
    session = Translator.load(folder / "model").session()
    offered = sit(session, [THIRD, FOURTH], ["x", None, "x", AVIS])  # type: ignore[operator]
    out = capsys.readouterr().out
    assert out.count("check length: it is much longer or shorter") == 2
    assert out.count("Enter once more confirms it all the same") == 2
    assert offered[1] == "x" == offered[3]
    assert [one.tgt for one in session.done] == ["x", AVIS]


@pytest.mark.parametrize("key", ["<", ":q", " :q "])
def test_a_key_behind_the_draft_is_no_part_of_the_translation(
    folder: Path, sit: object, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    session = Translator.load(folder / "model").session()
    draft = session.translate(THIRD).tgt
    offered = sit(session, [THIRD, FOURTH], [draft + key, None, "a < b :q<"])  # type: ignore[operator]
    out = capsys.readouterr().out
    assert f"{key.strip()} stands behind the draft" in out and "Ctrl-U empties the line" in out
    assert offered[:2] == [draft, draft]
    assert [one.tgt for one in session.done] == [draft, "a < b :q<"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{text}"], "--interactive needs --output"),
        (["{text}", "-o", "{there}"], "there exists; to go on with it: --confirmed"),
        (["{text}", "-o", "{begun}"], "begun.partial exists; to go on with it: --confirmed"),
        (["{text}", "-o", "{new}", "--json"], "--interactive shows the matches"),
        (["{text}", "-o", "{new}", "--remember", "own"], "leave out --remember own"),
        (["--session", "{new}"], "--session and --confirmed are of a document: name a file"),
        (["{text}", "{text}", "-o", "{new}"], "name one file"),
        (
            ["{text}", "-o", "{new}", "--session", "{session}", "--confirmed", "{there}"],
            "is of a document that begins",
        ),
    ],
)
def test_what_does_not_go_together_is_one_line(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.setattr(interactive, "check_terminal", lambda: None)
    (tmp_path / "session").touch()
    (tmp_path / "there").touch()
    (tmp_path / "begun.partial").touch()
    names = {name: str(tmp_path / name) for name in ("there", "begun", "new", "session")} | {
        "text": str(folder / "text")
    }
    command = ["translate", "--model", str(folder / "model"), "--interactive", "--threads", "1"]
    assert run([*command, *(a.format(**names) for a in arguments)]) == 2
    err = capsys.readouterr().err
    assert message in err and len(err.splitlines()) == 1


def test_a_session_of_another_document_is_refused(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(interactive, "check_terminal", lambda: None)
    session = Translator.load(folder / "model", options=TranslationOptions(beam=2)).session()
    session.pass_over("Repealed.")
    session.save(tmp_path / "session")
    command = ["translate", "--model", str(folder / "model"), "--interactive", "--threads", "1"]
    of_it = ["--session", str(tmp_path / "session"), "-o", str(tmp_path / "new")]
    assert run([*command, *of_it, str(folder / "text")]) == 1
    err = capsys.readouterr().err
    assert "its line 1 is 'Repealed.' there" in err and len(err.splitlines()) == 1
