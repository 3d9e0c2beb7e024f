"""A running server that is told to read again what it serves: at SIGHUP, or by its interface."""

from __future__ import annotations

import _thread
import logging
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from tmnmt.config.option import options_of
from tmnmt.config.server_config import ServerConfig, server_settings
from tmnmt.config.serving import TenantLimits
from tmnmt.errors import TmnmtError, UsageError
from tmnmt.serve.holdings import Holdings, discard
from tmnmt.serve.keys import Keys
from tmnmt.serve.opening import Parts, check_keys, close_memories, open_parts
from tmnmt.serve.service import Service
from tmnmt.serve.terms import TermLists
from tmnmt.serve.usage import TenantTable
from tmnmt.system import ENDING_SIGNALS

log = logging.getLogger("tmnmt.serve")
_TENANT = options_of(TenantLimits)


@dataclass(frozen=True)
class Reloaded:
    """What has come of reading everything again, by names.

    models: all models.
    memories: all memories.
    terms: all lists of terms.
    keys: how many keys there are; None without a file of keys.
    opened: models and memories that were opened for it.
    closed: models and memories that are served no more, or were opened anew.
    restart: entries that have changed and that a restart alone takes."""

    models: tuple[str, ...]
    memories: tuple[str, ...]
    terms: tuple[str, ...]
    keys: int | None
    opened: tuple[str, ...]
    closed: tuple[str, ...]
    restart: tuple[str, ...]

    @property
    def record(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}


class Reloader:
    """Reads again what a server is told, and has it served. For any thread; one at a time."""

    def __init__(
        self, service: Service, config: ServerConfig, read_config: Callable[[], ServerConfig]
    ) -> None:
        """service: what is served.
        config: what the server was told at its start.
        read_config: reads what it is told now."""
        self._service, self._config, self._read_config = service, config, read_config
        self._turn = threading.Lock()

    def reload(self) -> Reloaded:
        """Has what the files say now served from now on. What was taken ends as it began.

        Raises TmnmtError or OSError where anything is wrong; then everything stays as it was."""
        with self._turn:
            config, service = self._read_config(), self._service
            options, former = config.options, service.latest
            keys = Keys.load(options.keys) if options.keys is not None else None
            previous = Parts(former.models, list(former.memories))
            parts = open_parts(options, service.limits.waiting, previous=previous)
            try:
                check_keys_stay(self._config, config)
                if keys is not None:
                    check_keys(keys, parts)
            except BaseException:
                close_memories(parts, previous)
                raise
            terms = TermLists(parts.terms, service.storage.glossaries)
            holdings = Holdings(parts.models, parts.memories, terms, keys)
            self._start(holdings, former)
            service.change(holdings)
            service.tenants = tenant_table(config)
            return _summary(holdings, former, self._restart(config))

    def _start(self, holdings: Holdings, former: Holdings) -> None:
        """Starts the models that do not run yet."""
        running = {id(model.queue) for model in former.models}
        models = [model for model in holdings.models if id(model.queue) not in running]
        try:
            with holdings.bound():
                self._service.warm_up(models)
        except BaseException:
            discard(holdings, former)
            raise

    def _restart(self, config: ServerConfig) -> tuple[str, ...]:
        """The entries that differ from those of the start, and stay as they were."""
        return tuple(
            setting.name
            for setting in server_settings()
            if setting.is_fixed
            and getattr(config.options, setting.name) != getattr(self._config.options, setting.name)
        )


def tenant_table(config: ServerConfig) -> TenantTable:
    """What each tenant may have.

    config: what the server is told."""
    limits = {setting.name: getattr(config.options, setting.name) for setting in _TENANT}
    return TenantTable(TenantLimits(**limits), config.tenant)


def check_keys_stay(former: ServerConfig, config: ServerConfig) -> None:
    """Checks that a server with keys still has a file of keys. Without one, everybody who reaches
    it would be answered.

    former: what the server was told at its start.
    config: what it is told now.

    Raises UsageError where there is none any more."""
    if former.options.keys is not None and config.options.keys is None:
        raise UsageError("keys: a server that has keys goes on without them after a restart alone")


def _summary(holdings: Holdings, former: Holdings, restart: tuple[str, ...]) -> Reloaded:
    former_names, now = _by_identity(former), _by_identity(holdings)
    return Reloaded(
        tuple(model.name for model in holdings.models),
        tuple(memory.name for memory in holdings.memories),
        tuple(holdings.terms.served),
        len(holdings.keys.callers) if holdings.keys is not None else None,
        tuple(name for key, name in now.items() if key not in former_names),
        tuple(name for key, name in former_names.items() if key not in now),
        restart,
    )


def _by_identity(holdings: Holdings) -> dict[int, str]:
    models = {id(model.queue): model.name for model in holdings.models}
    return models | {id(memory.index): memory.name for memory in holdings.memories}


def report(reloaded: Reloaded) -> Iterable[str]:
    """Lines for the log.

    reloaded: what has come of reading everything again."""
    counts = {
        "models": len(reloaded.models),
        "memories": len(reloaded.memories),
        "lists of terms": len(reloaded.terms),
    }
    counts |= {"keys": reloaded.keys} if reloaded.keys is not None else {}
    yield f"serving {', '.join(f'{noun}: {count}' for noun, count in counts.items())}"
    for label, names in (("opened", reloaded.opened), ("closed", reloaded.closed)):
        if names:
            yield f"{label}: {', '.join(names)}"
    if reloaded.restart:
        yield f"a restart alone takes: {', '.join(reloaded.restart)}"


def log_report(cause: str, reloaded: Reloaded) -> None:
    """Tells the log what has come of reading everything again.

    cause: why it was read again.
    reloaded: what has come of it."""
    for line in report(reloaded):
        log.info("%s: %s", cause, line)


def reload_by_request(reloader: Reloader) -> dict[str, Any]:
    """Reads everything again, and returns what has come of it as JSON has it. The log tells it.

    reloader: what reads.

    Raises what `Reloader.reload` raises."""
    reloaded = reloader.reload()
    log_report("reloaded", reloaded)
    return reloaded.record


@contextmanager
def reloading(reloader: Reloader | None) -> Iterator[None]:
    """While the block runs, SIGHUP has everything read again, and ends nothing. A thread of its own
    does it: the signal may interrupt a write to the log, and a stream refuses a write within a
    write.

    reloader: what reads; None where nothing can be read again, as the log then says."""
    number = ENDING_SIGNALS.get("SIGHUP")
    if number is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    # a bare thread: a `Thread` takes locks that the interrupted code may hold
    old = signal.signal(number, lambda *_: _thread.start_new_thread(answer_signal, (reloader,)))
    try:
        yield
    finally:
        signal.signal(number, old)


def answer_signal(reloader: Reloader | None) -> None:
    """Reads everything again, and tells the log what came of it.

    reloader: what reads; None where nothing can be read again."""
    if reloader is None:
        log.warning("SIGHUP: there is nothing to read again, and the server goes on as it is")
        return
    try:
        reloaded = reloader.reload()
    except (TmnmtError, OSError) as error:
        log.error("SIGHUP: everything stays as it was: %s", error)
        return
    log_report("SIGHUP", reloaded)
