"""Texts of several requests through one model: together, in the right order, and not for nobody."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tmnmt.allocator import INTERVAL
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.piece import Piece
from tmnmt.engine.pipeline import Pipeline
from tmnmt.index import MemoryIndex
from tmnmt.segments import Translation
from tmnmt.serve.http_error import Refused
from tmnmt.serve.queue import Job, Queue
from tmnmt.session import Session
from tmnmt.translator import Translator, restrict

TEXTS = ["The Commission shall inform the Council.", "It shall apply from 1 June 1997.", "", "No."]


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    return Translator.load(
        folder / "model", [folder / "law"], TranslationOptions(batch=8, threads=1)
    )


@pytest.fixture
def queue(translator: Translator) -> Iterator[Queue]:
    """One that is not started: what is submitted waits."""
    queue = Queue(translator, room=100_000)
    yield queue
    if queue._thread.is_alive():
        queue.stop()


def job(translator: Translator, texts: Sequence[str] = TEXTS, **how: Any) -> Job:
    return Job(Session(translator), texts, **how)


def seen(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The texts of every batch that is decoded."""
    batches: list[list[str]] = []
    plain = Pipeline.translate

    def watched(pipeline: Pipeline, batch: Sequence[Piece], *rest: Any) -> Any:
        batches.append([piece.segment.text for piece in batch])
        return plain(pipeline, batch, *rest)

    monkeypatch.setattr(Pipeline, "translate", watched)
    return batches


def test_requests_get_what_the_translator_gives(translator: Translator, queue: Queue) -> None:
    jobs = [
        job(translator, TEXTS[n:] + TEXTS[:n], explain=explain)
        for n in range(4)
        for explain in (False, True)
    ]
    futures = [queue.submit(one) for one in jobs]
    queue.start()
    for n in range(4):
        texts = TEXTS[n:] + TEXTS[:n]
        for explain, future in zip((False, True), futures[2 * n : 2 * n + 2], strict=True):
            done = future.result(60)
            assert [one.src for one in done] == texts
            expected = [translator.translate([text], explain)[0].tgt for text in texts]
            assert [one.tgt for one in done] == expected
            assert all(bool(one.tokens) == (explain and bool(one.src)) for one in done)
    assert queue.waiting == 0


def test_requests_that_wait_are_decoded_together(
    translator: Translator, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = seen(translator, monkeypatch)
    futures = [queue.submit(job(translator, [f"Text {n} is repealed."])) for n in range(8)]
    queue.start()
    assert all(future.result(60)[0].tgt for future in futures)
    assert [len(batch) for batch in batches] == [8]


def test_texts_of_one_length_go_together(
    translator: Translator, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = seen(translator, monkeypatch)
    long = TEXTS[0]
    futures = [queue.submit(job(translator, ["No.", long] * 4, urgent=True)) for _ in range(2)]
    queue.start()
    for future in futures:
        future.result(60)
    assert [set(batch) for batch in batches] == [{"No."}, {long}]


def test_what_somebody_waits_for_goes_first(
    translator: Translator, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = seen(translator, monkeypatch)
    slow = queue.submit(job(translator, [f"List {n}." for n in range(40)]))
    quick = queue.submit(job(translator, ["Repealed."]))
    queue.start()
    assert len(slow.result(60)) == 40 and len(quick.result(60)) == 1
    assert batches[0] == ["Repealed."] and len(batches) == 6


LONG = "The Commission shall inform the Council of the measures that it has taken. " * 40


def test_long_texts_of_one_tenant_hold_up_no_short_one_of_another(
    translator: Translator, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = seen(translator, monkeypatch)
    loud = queue.submit(job(translator, [LONG] * 6, tenant="loud"))
    quiet = queue.submit(job(translator, ["Repealed"], tenant="quiet"))
    queue.start()
    quiet.result(60)
    assert batches[0] == ["Repealed"]
    assert len(loud.result(60)) == 6


@pytest.mark.parametrize("tenant", ["loud", "quiet"])
def test_a_short_text_that_comes_during_a_flood_waits_for_a_batch(
    translator: Translator, queue: Queue, monkeypatch: pytest.MonkeyPatch, tenant: str
) -> None:
    """Of the same tenant, too."""
    batches = seen(translator, monkeypatch)
    floods = [queue.submit(job(translator, [LONG] * 6, tenant="loud")) for _ in range(3)]
    for _ in range(4):
        queue._work()
    quiet = queue.submit(job(translator, ["Repealed"], tenant=tenant))
    queue._work()
    assert batches[4] == ["Repealed"] and quiet.done()
    queue.start()
    assert all(len(flood.result(60)) == 6 for flood in floods)


def test_tenants_have_the_model_in_turn_by_characters(
    translator: Translator, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = seen(translator, monkeypatch)
    for number in range(6):
        queue.submit(job(translator, [f"List {number}." * 3] * 32, urgent=False, tenant="loud"))
    queue.submit(job(translator, ["A text of 36 characters is this one."] * 96, tenant="quiet"))
    given = {"L": 0, "A": 0}
    for _ in range(12):
        queue._work()
        for text in batches[-1]:
            given[text[0]] += len(text)
    assert abs(given["L"] - given["A"]) <= 8 * 36 + 8 * 24


def test_a_list_goes_on_while_somebody_asks_for_short_texts_all_the_time(
    translator: Translator, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = seen(translator, monkeypatch)
    queue.submit(job(translator, [f"List {n}." for n in range(40)], urgent=False))
    for _ in range(40):
        queue.submit(job(translator, ["Repealed."] * 8, urgent=True))
        queue._work()
    lists = sum(batch[0].startswith("List") for batch in batches)
    assert 3 <= lists <= 10


def test_who_queues_too_much_is_refused_and_others_are_not(translator: Translator) -> None:
    queue = Queue(translator, room=10_000)
    for _ in range(3):
        queue.submit(job(translator, ["x" * 3_000], tenant="loud"))
    with pytest.raises(Refused) as refused:
        queue.submit(job(translator, ["x" * 3_000], tenant="loud"))
    assert refused.value.status == 429 and refused.value.retry_after
    assert queue.submit(job(translator, ["x" * 3_000], tenant="quiet"))


def test_who_waits_for_little_is_not_refused_for_the_flood_of_another(
    translator: Translator, queue: Queue
) -> None:
    for _ in range(20):
        queue._note_pace(1.0)  # seconds a batch

    def flood() -> None:
        queue.submit(job(translator, [LONG], tenant="loud", seconds=12))

    flood()
    flood()
    with pytest.raises(Refused) as refused:
        flood()
    assert refused.value.status == 429
    assert queue.submit(job(translator, ["Repealed."], tenant="quiet", seconds=12))


def test_a_batch_takes_about_a_second_at_most(
    translator: Translator, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = seen(translator, monkeypatch)
    monkeypatch.setattr("tmnmt.serve.queue._MIN_PIECES", 4)
    queue.submit(job(translator, [f"The Council shall {n}." for n in range(32)]))
    queue._work()
    cost = 5.0 * sum(len(text) + 1 for text in batches[0])
    for seconds, count in ((0.5, 8), (1.5, 5), (60.0, 4)):
        for _ in range(40):
            queue._note_pace(seconds, cost)
        queue._work()
        assert len(batches[-1]) == count


def test_calls_of_one_tenant_hold_up_no_short_text_of_another(
    translator: Translator, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = seen(translator, monkeypatch)
    done = list[int]()
    for number in range(20):
        queue.call(partial(done.append, number), "loud", 500.0)
    queue.submit(job(translator, ["Repealed."], tenant="quiet"))
    while not batches:
        queue._work()
    assert len(done) <= 1


def test_nothing_is_decoded_for_who_is_gone(
    translator: Translator, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = seen(translator, monkeypatch)
    gone = queue.submit(job(translator, ["A text of nobody."]))
    kept = queue.submit(job(translator, ["Repealed."]))
    assert gone.cancel()
    queue.start()
    kept.result(60)
    assert batches == [["Repealed."]] and queue.waiting == 0


def test_a_request_whose_time_is_over_is_given_up(translator: Translator, queue: Queue) -> None:
    late = queue.submit(job(translator, seconds=0))
    queue.start()
    with pytest.raises(Refused) as refused:
        late.result(60)
    assert refused.value.status == 503 and queue.counts["given_up"] == 1


def test_too_much_is_refused_and_room_is_kept_for_short_requests(translator: Translator) -> None:
    queue = Queue(translator, room=100)

    def status(texts: Sequence[str], urgent: bool) -> int:
        try:
            queue.submit(job(translator, texts, urgent=urgent))
        except Refused as refused:
            assert bool(refused.retry_after) == (refused.status == 429)
            return refused.status
        return 200

    assert status(["x" * 100], True) == 413
    assert status(["x" * 60], False) == 413
    assert status(["x" * 40], False) == 200
    assert status(["x" * 40], False) == 429
    assert status(["x" * 40], True) == 200
    assert status(["x" * 40], True) == 429


def test_who_would_wait_too_long_is_refused_at_once(
    translator: Translator, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of 8 that take a second each: what has 12 s may wait for two, and its own."""
    plain, now = Pipeline.translate, [0.0]

    def slowly(*given: Any) -> Any:
        now[0] += 1
        return plain(*given)

    monkeypatch.setattr("tmnmt.serve.queue.time.monotonic", lambda: now[0])
    monkeypatch.setattr(Pipeline, "translate", slowly)
    for _ in range(2):  # the first says nothing
        queue.submit(job(translator, ["No."], seconds=60))
        queue._work()
        queue._jobs.clear()
    waiting = [queue.submit(job(translator, ["No."] * 8, seconds=12)) for _ in range(3)]
    with pytest.raises(Refused) as error:
        queue.submit(job(translator, ["No."], seconds=12))
    assert (error.value.status, error.value.retry_after) == (429, 2)
    waiting[0].cancel()
    assert queue.submit(job(translator, ["No."], seconds=12))
    assert queue.submit(job(translator, ["No."] * 8, seconds=16))
    queue._jobs.clear()
    assert queue.submit(job(translator, ["No."], seconds=0.5))  # it waits for nobody


def test_the_more_batches_differ_the_sooner_is_refused(translator: Translator) -> None:
    even, uneven = Queue(translator, room=1000), Queue(translator, room=1000)
    for _ in range(20):
        even._note_pace(1.0)
        uneven._note_pace(0.5)
        uneven._note_pace(1.5)
    new, before = job(translator, ["No."]), [job(translator, ["No."] * 8)]
    assert even._seconds_before(new, before) == pytest.approx(2.0)
    assert 2.6 < uneven._seconds_before(new, before) < 3.4


def test_what_was_taken_is_finished_and_no_more_is_taken(
    translator: Translator, queue: Queue
) -> None:
    futures = [queue.submit(job(translator)) for _ in range(3)]
    called = queue.call(lambda: 7)
    queue.start()
    queue.stop()
    assert all(future.done() and future.result() for future in futures) and called.result() == 7
    for submit in (lambda: queue.submit(job(translator)), lambda: queue.call(lambda: None)):
        with pytest.raises(Refused) as refused:
            submit()
        assert refused.value.status == 503


class Broken(MemoryIndex):
    """A memory that cannot be searched."""

    def __init__(self) -> None:
        self.src_lang, self.tgt_lang = "en", "fr"

    def look_up(self, *_: Any, **__: Any) -> Any:
        raise OSError("the disk is gone")


def test_a_memory_that_fails_fails_its_own_requests_alone(
    translator: Translator, queue: Queue
) -> None:
    settings = translator.settings
    broken = restrict(translator, [Broken()], [], settings)
    bad = queue.submit(job(broken, ["Repealed."]))
    good = queue.submit(job(translator, ["Repealed."]))
    queue.start()
    assert good.result(60)[0].tgt
    with pytest.raises(OSError, match="disk"):
        bad.result(60)
    assert queue.submit(job(translator, ["Again."])).result(60)[0].tgt


def test_the_thread_goes_on_after_what_nobody_expected(
    translator: Translator, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = queue._batch

    def broken(_: Any) -> Any:
        monkeypatch.setattr(queue, "_batch", batch)
        raise RuntimeError("unheard of")

    monkeypatch.setattr(queue, "_batch", broken)
    first = queue.submit(job(translator))
    queue.start()
    with pytest.raises(RuntimeError, match="unheard of"):
        first.result(60)
    assert queue.submit(job(translator)).result(60)


def test_too_many_calls_are_refused(
    translator: Translator, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.serve.queue.MOST_CALLS", 2)
    calls = [queue.call(lambda: 1), queue.call(lambda: 2)]
    with pytest.raises(Refused) as refused:
        queue.call(lambda: 3)
    assert refused.value.status == 429
    queue.start()
    assert [call.result(60) for call in calls] == [1, 2]


def test_many_threads_lose_nothing(translator: Translator, queue: Queue) -> None:
    queue.start()
    found: dict[int, list[Translation]] = {}

    def work(number: int) -> None:
        future: Future[list[Translation]] = queue.submit(job(translator, [f"Text {number}."]))
        if number % 3 == 0:
            future.cancel()
        else:
            found[number] = future.result(60)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: one[0].src for n, one in found.items()} == {
        n: f"Text {n}." for n in range(24) if n % 3
    }


def test_freed_memory_is_given_back_now_and_then(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, given, ticks = [0.0], list[float](), itertools.count()
    monkeypatch.setattr("tmnmt.serve.queue.time.monotonic", lambda: now[0] + next(ticks) / 1000)
    monkeypatch.setattr("tmnmt.serve.queue.give_back", lambda: given.append(now[0]))
    queue._given_back = 0.0
    for at in range(5):
        now[0] = 0.4 * at * INTERVAL
        queue.submit(job(queue.translator, [f"Text {at}."]))
        queue._work()
    assert given == [0.4 * 3 * INTERVAL]


def test_freed_memory_is_given_back_once_nothing_is_left_to_do(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = threading.Semaphore(0)
    monkeypatch.setattr("tmnmt.serve.queue.IDLE", 0.01)
    monkeypatch.setattr("tmnmt.serve.queue.give_back", given.release)
    queue.start()
    for text in ("Repealed.", "Replaced."):
        queue.submit(job(queue.translator, [text])).result(60)
        assert given.acquire(timeout=60)
    assert not given.acquire(blocking=False), "nothing was done since"
