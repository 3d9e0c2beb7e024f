"""Documents by workers: in order, the same as in one process, and none of it twice. Here threads of
this process are the workers; `tests/batch/test_ray_workers.py` has those of Ray."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt.batch import ray_address, task, workers
from tmnmt.batch.finished_tasks import GOES_ON, FinishedTasks
from tmnmt.batch.ray_address import Address
from tmnmt.batch.task import Setup, Way, options_of_text, options_text, state_of
from tmnmt.batch.workers import WorkerPool
from tmnmt.cli import run
from tmnmt.cli.workers import absolute_memory
from tmnmt.codes.record import Code, Placed, Source, Text
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.run_statistics import CONTROL, Tally
from tmnmt.errors import DataError, ModelError, ServerError
from tmnmt.index import build
from tmnmt.index.embedded.index import MemoryIndex
from tmnmt.index.opening import memory_digest
from tmnmt.interrupts import INTERRUPTED
from tmnmt.partial_document import ConfirmedNeighbour, PartialDocument
from tmnmt.progress import Progress
from tmnmt.translator import Translator
from tmnmt.typed_json import dumps

OPTIONS = TranslationOptions(beam=2, threads=1)
ADDRESS = "ray://127.0.0.1:1"
HEAD = (
    '<?xml version="1.0"?>\n<xliff version="1.2"><file original="a.html" source-language="en" '
    'target-language="{}" datatype="html"><body>\n'
)
TAIL = "</body></file></xliff>\n"
NEW = '<trans-unit id="{0}"><source>{1}</source></trans-unit>\n'
READY = '<trans-unit id="{0}"><source>{1}</source><target>{2}</target></trans-unit>\n'


class HereWorkers:
    """Two threads. The first task is answered behind the second where `holds_first`; `stops` is
    called with the number of every task before it is sent."""

    stops: Callable[[int], None] = staticmethod(lambda number: None)

    def __init__(self, setup: Setup, holds_first: bool = False) -> None:
        self.setup, self.tasks = setup, list[bytes]()
        self._holds_first, self._second = holds_first, threading.Event()
        self._lock, self._threads = threading.Lock(), ThreadPoolExecutor(2)

    def count(self) -> int:
        return 1

    def submit(self, text: bytes) -> Future[bytes]:
        self.tasks.append(text)
        self.stops(len(self.tasks))
        return self._threads.submit(self._do, len(self.tasks), text)

    def _do(self, number: int, text: bytes) -> bytes:
        if number == 1 and self._holds_first:
            assert self._second.wait(60)
        try:
            with self._lock:
                return task.run(repr(self.setup), dumps(self.setup), text, 1)
        finally:
            if number == 2:
                self._second.set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("workers")
    write_tiny_model(folder / "model")
    build(folder / "index", segments(), "en", "fr")
    return folder


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    return Translator.load(folder / "model", [folder / "index"], OPTIONS)


@pytest.fixture(scope="module")
def setup(folder: Path, translator: Translator) -> Setup:
    plain = Setup(str(folder / "model"), (str(folder / "index"),), options_text(OPTIONS), (), ())
    return replace(plain, state=state_of(translator, plain, OPTIONS))


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "SEGMENTS_OF_TASK", 2)


def pool_of(setup: Setup, finished: FinishedTasks, holds_first: bool = False) -> Any:
    """A pool, its workers, and what it counts."""
    here, tally, progress = HereWorkers(setup, holds_first), Tally(), Progress("", "segments", 9)
    return WorkerPool(here, setup, finished, tally, progress), here, tally, progress


DOCUMENTS: list[Sequence[Source]] = [
    [PAIRS[0][0], "It\x01 shall inform."],
    [
        Placed(PAIRS[1][0], (), "before", "behind", "name", "note"),
        Text("The second day", (Code(4, "open", "<b>", "1"), Code(10, "close", "</b>", "1"))),
    ],
    [],
    PartialDocument(["Having regard to it,"], [ConfirmedNeighbour("to it", "à elle", 0)]),
    [PAIRS[5][0], PAIRS[4][0], PAIRS[0][0]],
]
TASKS = DOCUMENTS[:1], DOCUMENTS[1:2], DOCUMENTS[2:]


def test_translations_are_those_of_one_process_in_order_and_so_are_the_counts(
    tmp_path: Path, setup: Setup, translator: Translator
) -> None:
    translator.tally.drained()
    # a task is a batch: how many sentences are in one shows in the last digits of numbers
    expected = [
        translation for task in TASKS for translation in translator.stream(task, explain=True)
    ]
    counts = translator.tally.drained()
    with FinishedTasks(tmp_path / "finished") as finished:
        pool, here, tally, progress = pool_of(setup, finished, holds_first=True)
        assert [*pool.translations(iter(DOCUMENTS), Way(explain=True))] == expected
        assert len(here.tasks) == 3 and progress.completed == len(expected) == 8
        assert (tmp_path / "finished").exists()
    assert not (tmp_path / "finished").exists()
    totals = tally.drained()
    assert totals.pop("seconds").keys() == counts.pop("seconds").keys()
    assert totals == counts and counts["changed"][CONTROL] == 1
    together = [(translation.src, translation.tgt) for translation in translator.stream(DOCUMENTS)]
    assert [(translation.src, translation.tgt) for translation in expected] == together


def test_what_was_finished_is_not_done_again(
    tmp_path: Path, setup: Setup, translator: Translator
) -> None:
    expected = [translation for task in TASKS for translation in translator.stream(task)]

    def stop(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt) as stopped,
        FinishedTasks(tmp_path / "finished") as finished,
    ):
        pool, here, _, _ = pool_of(setup, finished)
        here.stops = stop
        [*pool.translations(DOCUMENTS, Way())]
    assert stopped.value.__notes__ == [GOES_ON]
    with FinishedTasks(tmp_path / "finished") as finished:
        kept = len(finished)
        assert 1 <= kept <= 2
        pool, here, tally, progress = pool_of(setup, finished)
        assert [*pool.translations(DOCUMENTS, Way())] == expected
        assert len(here.tasks) == 3 - kept and pool.restored + progress.completed == 8
        assert progress.total == 9 - pool.restored and tally.total == 8
    with FinishedTasks(tmp_path / "finished") as finished:
        changed = replace(setup, options=options_text(replace(OPTIONS, beam=1)))
        pool_of(changed, finished)[0]._finished.put(b"x", b"")
        pool, here, _, _ = pool_of(changed, finished)
        [*pool.translations(DOCUMENTS[:1], Way())]
        assert len(here.tasks) == 1


def test_later_inputs_are_read_in_order_while_earlier_ones_are_translated(
    tmp_path: Path, setup: Setup
) -> None:
    read = list[str]()

    def documents(name: str, count: int) -> Iterator[list[str]]:
        for number in range(count):
            read.append(f"{name}{number}")
            yield [f"{name} {number}."] * 2

    with FinishedTasks(tmp_path / "finished") as finished:
        pool, _here, _, _ = pool_of(setup, finished)
        streams = [pool.translations(documents(name, 2), Way()) for name in "abc"]
        assert read == []
        assert next(streams[0]).src == "a 0."
        assert read[:2] == ["a0", "a1"] and len(read) > 2
        sources = [translation.src for stream in streams for translation in stream]
    assert read == ["a0", "a1", "b0", "b1", "c0", "c1"]
    assert (
        sources == ["a 0.", *(f"{name} {n}." for name in "abc" for n in "0011")][:1] + sources[1:]
    )
    assert len(sources) == 11 and sources[-1] == "c 1."


def test_what_is_ahead_is_bounded(
    tmp_path: Path, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "SEGMENTS_AHEAD", 4)
    read = list[int]()

    def documents() -> Iterator[list[str]]:
        for number in range(20):
            read.append(number)
            yield [f"Article {number}."] * 2

    with FinishedTasks(tmp_path / "finished") as finished:
        first = pool_of(setup, finished)[0].translations(documents(), Way())
        next(first)
        assert len(read) <= 3  # also where all of it was finished before
        assert len([*first]) == 39


def test_an_error_of_a_worker_names_its_machine_and_is_not_kept(
    tmp_path: Path, setup: Setup
) -> None:
    with (
        pytest.raises(ModelError, match=r"^worker on \S+: /absent: no model folder"),
        FinishedTasks(tmp_path / "finished") as finished,
    ):
        absent = replace(setup, model="/absent")
        [*pool_of(absent, finished)[0].translations(DOCUMENTS, Way())]
    assert not (tmp_path / "finished").exists()  # nothing was finished
    (name, _), *others = setup.state
    changed = replace(setup, state=((name, "another version"), *others))
    with (
        pytest.raises(DataError, match="tmnmt: is not the same here as where the command was"),
        FinishedTasks(tmp_path / "finished") as finished,
    ):
        [*pool_of(changed, finished)[0].translations(DOCUMENTS, Way())]
    with pytest.raises(DataError, match="a worker's answer is damaged"):
        task.answer_of(b"no answer")


def test_the_state_follows_what_translations_depend_on(
    tmp_path: Path, folder: Path, translator: Translator
) -> None:
    for name in ("index", "other"):
        build(tmp_path / name, segments(), "en", "fr")
    (tmp_path / "terms.tsv").write_text("en\tfr\nday\tjour\n")
    options = replace(OPTIONS, terms=tmp_path / "terms.tsv")
    plain = Setup("model", (f"{tmp_path / 'index'}:penalty=1",), options_text(options), (), ())
    first = state_of(translator, plain, options)
    assert [name for name, _ in first] == [
        "tmnmt",
        "model",
        str(tmp_path / "index"),
        str(tmp_path / "terms.tsv"),
    ]
    assert state_of(translator, plain, options) == first
    with MemoryIndex.open(tmp_path / "other") as other:
        copy = memory_digest(tmp_path / "other", "en", "fr")
        other.add([replace(segments()[0], tgt="autre")])
        assert memory_digest(tmp_path / "other", "en", "fr") != copy
    (tmp_path / "terms.tsv").write_text("en\tfr\nday\tjournée\n")
    second = state_of(translator, replace(plain, memories=(str(tmp_path / "other"),)), options)
    assert [a == b for a, b in zip(first, second, strict=True)] == [True, True, False, False]


def test_options_and_memories_come_to_another_folder_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tmx").write_text("")
    options = TranslationOptions(beam=3, terms=Path("terms.tsv"), verbatim=0)
    assert options_of_text(options_text(options)) == replace(options, terms=tmp_path / "terms.tsv")
    names = ["a.tmx", "a.tmx:penalty=5,weight=0.5", "elasticsearch+http://localhost:9200/a"]
    assert [absolute_memory(name) for name in names] == [
        f"{tmp_path}/a.tmx",
        f"{tmp_path}/a.tmx:penalty=5,weight=0.5",
        names[2],
    ]


def test_a_file_of_another_kind_is_not_taken_for_what_was_finished(tmp_path: Path) -> None:
    (tmp_path / "finished").write_text("no database" * 100)
    with pytest.raises(DataError, match=r"finished: cannot be used: .*; delete it to do its work"):
        FinishedTasks(tmp_path / "finished")
    with pytest.raises(DataError, match="absent/finished: cannot be used: unable to open"):
        FinishedTasks(tmp_path / "absent" / "finished")


def _inputs(folder: Path) -> list[Path]:
    """Files with a repetition of one in another, a region, and what is confirmed in one."""
    files = {
        "a.xlf": HEAD.format("fr")
        + "".join(NEW.format(n, src) for n, (src, _) in enumerate(PAIRS))
        + NEW.format("9", "The second day is repeated.")
        + TAIL,
        "b.xlf": HEAD.format("fr-CA")
        + NEW.format("1", "The second day is repeated.")
        + NEW.format("2", "Article 2: it shall apply.")
        + READY.format("3", "This is ready.", "Ceci est prêt.")
        + TAIL,
        "c.xlf": HEAD.format("fr") + NEW.format("1", "This is ready.") + TAIL,
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return [folder / name for name in files]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[HereWorkers]:
    """The workers that commands have, in place of those of a cluster."""
    instances = list[HereWorkers]()

    @contextmanager
    def connected(address: Address, setup: Setup, threads: int) -> Iterator[HereWorkers]:
        instances.append(HereWorkers(setup))
        yield instances[-1]

    seconds = count(10)  # what is dated is so in another second for each who reads it
    monkeypatch.setattr("tmnmt.index.base.present", lambda: f"2038-01-19T03:14:{next(seconds)}Z")
    monkeypatch.setattr("tmnmt.batch.ray_workers.connected", connected)
    monkeypatch.setattr(ray_address, "check_reachable", lambda address: None)
    return instances


def translate(folder: Path, *arguments: str | Path) -> int:
    command = ["translate", "--model", str(folder / "model"), "--memory", str(folder / "index")]
    return run([*command, "--beam", "2", "--threads", "1", *map(str, arguments)])


def test_files_come_out_as_in_one_process(
    folder: Path, tmp_path: Path, sent: list[HereWorkers], capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = _inputs(tmp_path)
    for name, options in (("here", []), ("there", ["--workers", ADDRESS])):
        (tmp_path / name).mkdir()
        assert translate(folder, *inputs, "-o", tmp_path / name, *options) == 0
    for path in inputs:
        made = [(tmp_path / name / path.name).read_bytes() for name in ("here", "there")]
        assert made[0] == made[1] != path.read_bytes()
    assert len(sent[0].tasks) == 3 and [*tmp_path.glob("*.finished")] == []
    assert b"repetition" in (tmp_path / "there" / "b.xlf").read_bytes()
    told = capsys.readouterr().err
    of_workers = f"{ADDRESS}: connecting; given up after about a minute\n{ADDRESS}: 1 worker\n"
    assert of_workers in told
    told = told.replace(of_workers, "")
    assert len(told.splitlines()) % 2 == 0  # the same lines twice
    lines = told.splitlines()
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]


@pytest.mark.parametrize("option", ["--json", "--explain", "--no-verbatim"])
def test_lines_come_out_as_in_one_process(
    option: str, folder: Path, tmp_path: Path, sent: list[HereWorkers]
) -> None:
    lines = [PAIRS[0][0], "", "An article.", PAIRS[3][0], "", "It shall apply.", "An article."]
    (tmp_path / "in.txt").write_text("\r\n".join(lines) + "\r\n")
    for name, options in (("here", []), ("there", ["--workers", ADDRESS])):
        assert translate(folder, tmp_path / "in.txt", option, "-o", tmp_path / name, *options) == 0
    assert len(sent[0].tasks) == 3
    here, there = ((tmp_path / name).read_text() for name in ("here", "there"))
    if option == "--json":  # a batch of other sentences shows in the last digits of numbers
        here, there = (re.sub(r"(\.\d{5})\d+", r"\1", text) for text in (here, there))
        assert [json.loads(line)["src"] for line in there.splitlines()] == lines
    assert here == there


def test_stopped_it_goes_on_and_the_output_is_whole(
    folder: Path, tmp_path: Path, sent: list[HereWorkers], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.txt").write_text("One.\nTwo.\n\nThree.\nFour.\n\nFive.\n")
    assert translate(folder, tmp_path / "in.txt", "-o", tmp_path / "here") == 0
    command: list[str | Path] = [tmp_path / "in.txt", "-o", tmp_path / "out", "--workers", ADDRESS]

    def stop(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(HereWorkers, "stops", staticmethod(stop))
        assert translate(folder, *command) == INTERRUPTED
    told = capsys.readouterr().err
    assert f"interrupted: {GOES_ON}\n" in told
    assert (tmp_path / "out.finished").exists() and not (tmp_path / "out").exists()
    assert translate(folder, *command) == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "here").read_bytes()
    assert "of them an earlier run had finished" in capsys.readouterr().err
    assert [*tmp_path.glob("out.*")] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--workers need an --output, beside which they keep what they have finished"),
        (["-o", "out", "--workers", "ray://head"], "'ray://head' is wrong; allowed: ray://HOST"),
        (["-o", "out", "--workers", ""], "--workers '' is wrong; allowed: ray://HOST:PORT"),
        (["-o", "out", "--workers", "ray://h:99999"], "allowed: ray://HOST:PORT"),
        (["-o", "out", "--workers", "http://h:1"], "allowed: ray://HOST:PORT"),
        (["-o", "out", "--watch"], "--watch and --workers exclude each other"),
        (["-o", "out", "--device", "cuda"], "--workers compute on processors, not on cuda"),
        (["-o", "out", "--confirmed", "in.txt"], "--workers confirm nothing"),
        (["-o", "out", "-"], "--workers are of files, which can be read again: name one"),
    ],
)
def test_what_does_not_go_with_workers_is_told(
    options: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = [] if "--workers" in options else ["--workers", ADDRESS]
    assert translate(folder, str(folder / "model" / "config.toml"), *first, *options) == 2
    told = capsys.readouterr().err
    assert message in told and len(told.splitlines()) == 1


def test_workers_need_a_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["translate", "--memory", str(folder / "index"), "--workers", ADDRESS, "-o", "out"]
    assert run([*command, str(folder / "model" / "config.toml")]) == 2
    assert "--workers are of a --model that is a folder" in capsys.readouterr().err


def test_what_is_absent_is_told_before_anything_is_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = str(folder / "model" / "config.toml")
    command = [text, "-o", "out", "--workers", ADDRESS]
    monkeypatch.setattr(ray_address, "find_spec", lambda name: None)
    assert translate(folder, *command) == 2
    assert "need the package ray, which is not installed: pip install 'tmnmt[ray]'" in (
        capsys.readouterr().err
    )
    monkeypatch.setattr(ray_address, "find_spec", lambda name: True)
    assert translate(folder, *command) == ServerError.exit_code
    told = capsys.readouterr().err
    assert f"{ADDRESS}: nobody answers: Connection refused; `ray start --head` makes" in told
    assert len(told.splitlines()) == 1
