"""`tmnmt translate --workers`: a pool of workers, and what they finish kept beside the output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tmnmt.progress import Progress
from tmnmt.quantities import quantity

if TYPE_CHECKING:
    from tmnmt.batch.finished_tasks import FinishedTasks
    from tmnmt.batch.workers import WorkerPool
    from tmnmt.cli.translate_arguments import TranslateArguments
    from tmnmt.translator import Translator


def finished_tasks(output: Path) -> FinishedTasks:
    """What workers have finished of a run, which is kept beside its output until that is whole.

    output: the file, or the folder, that the run writes.

    Raises DataError where it cannot be kept."""
    from tmnmt.batch.finished_tasks import FinishedTasks

    return FinishedTasks(output.with_name(f"{output.name}.finished"))


@contextmanager
def worker_pool(
    translator: Translator,
    arguments: TranslateArguments,
    cluster: str,
    finished: FinishedTasks,
    total: int | None,
) -> Iterator[WorkerPool]:
    """The workers of a cluster, who translate as `translator` does, which has the memories that are
    named and nothing of the files. `cluster`: its address. `total`: how many segments there are;
    None where that is not known. Raises UsageError and ServerError as
    `tmnmt.batch.ray_workers.connected`."""
    from tmnmt.batch.ray_address import address_of
    from tmnmt.batch.ray_workers import connected
    from tmnmt.batch.task import Setup, options_text, state_of
    from tmnmt.batch.workers import WorkerPool

    address = address_of(cluster)
    options = replace(arguments.options, verbatim=arguments.min_worth)
    own_memory = arguments.own_memory
    setup = Setup(
        str(Path(str(arguments.model)).absolute()),
        tuple(map(absolute_memory, arguments.memory)),
        options_text(options),
        tuple(own_memory.segments) if own_memory is not None else (),
        (),
    )
    setup = replace(setup, state=state_of(translator, setup, options))
    print(f"{address}: connecting; given up after about a minute", file=sys.stderr)
    with connected(address, setup, arguments.options.threads or 1) as workers:
        print(f"{address}: {quantity(workers.count(), 'worker')}", file=sys.stderr)
        with Progress("translating", "segments", total) as progress:
            pool = WorkerPool(workers, setup, finished, translator.tally, progress)
            yield pool
        if pool.restored:
            print(
                f"{quantity(pool.restored, 'segment')} of them an earlier run had finished",
                file=sys.stderr,
            )


def absolute_memory(name: str) -> str:
    """The name of a memory as another process finds it that works in another folder.

    name: the name, with the settings behind it."""
    from tmnmt.index.back_ends import local_path
    from tmnmt.index.named_memories import parse_memory

    place = str(parse_memory(name).place)
    path = local_path(place)
    return name if path is None else f"{path.absolute()}{name.removeprefix(place)}"
