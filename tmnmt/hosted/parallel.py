"""Several requests in flight, in the order of what they are for."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
LOOK = 0.2  # seconds after which it is looked whether somebody has interrupted


def run_parallel(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    workers: int,
    stop: Callable[[], None],
) -> list[Result]:
    """The result of every item, in order. The first error ends the others, and is raised.

    work: what is done with an item.
    items: the items.
    workers: how many threads do it at most.
    stop: is called where an error or an interruption ends all; what is under way has to end soon
    then."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(items)):
        waiting.put(number)
    results = dict[int, Result]()
    errors = list[BaseException]()

    def run() -> None:
        while not errors:
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                results[number] = work(items[number])
            except BaseException as error:
                errors.append(error)

    threads = [
        threading.Thread(target=run, name="request", daemon=True)
        for _ in range(min(workers, len(items)))
    ]
    try:
        for thread in threads:
            thread.start()
        while not errors and (running := [t for t in threads if t.is_alive()]):
            running[0].join(LOOK)
    except BaseException:
        stop()
        raise
    if errors:
        stop()
        raise errors[0]
    return [results[number] for number in range(len(items))]
