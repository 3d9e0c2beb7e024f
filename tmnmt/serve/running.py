"""The server as a process: what is opened, where it listens, how it stops."""

from __future__ import annotations

import _thread
import contextlib
import ipaddress
import logging
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import uvicorn

from tmnmt.allocator import keep_freed
from tmnmt.compiled.steps import prepare_decoding
from tmnmt.config.options import TranslationOptions
from tmnmt.config.serving import RequestLimits
from tmnmt.errors import TmnmtError, UsageError
from tmnmt.index.back_ends import prepare_search
from tmnmt.progress import ReadProgress
from tmnmt.serve.app import application
from tmnmt.serve.http_error import Refused
from tmnmt.serve.keys import NAME, NAMES, Keys, check_tenants
from tmnmt.serve.languages import language
from tmnmt.serve.memories import Memory, languages_of_indexes, open_memories
from tmnmt.serve.protocol import Protocol
from tmnmt.serve.queue import Queue
from tmnmt.serve.routes import Dialect
from tmnmt.serve.served_model import Model
from tmnmt.serve.service import Limits, Service
from tmnmt.serve.site import Site
from tmnmt.serve.storage.opening import open_storage as storage_opened
from tmnmt.serve.storage.opening import place_of
from tmnmt.serve.terms import open_terms as terms_opened
from tmnmt.system import ENDING_SIGNALS
from tmnmt.translator import Translator

_WAITING = 512  # connections that the system keeps until they are taken
# Seconds after which a thread of Python lets another one run. The decoder gives Python up and takes
# it again at every operation: at 5 ms, which is usual, each search made it wait so long each time.
SWITCH = 0.0005

log = logging.getLogger("tmnmt.serve")


def check_host(host: str, keys: Path | None) -> None:
    """Raises UsageError for an address that others can reach, where there are no keys."""
    if keys is None and not _is_loopback(host):
        raise UsageError(
            f"--host {host} can be reached from elsewhere, so it needs --keys; without keys only "
            "loopback is allowed, as 127.0.0.1; tmnmt serve-key makes a key"
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def service_of(
    models: Sequence[Path],
    readable: Sequence[str],
    writable: Sequence[str],
    keys: Keys | None = None,
    limits: Limits = Limits(),
    threads: int | None = None,
    progress: ReadProgress | None = None,
    terms: Sequence[str] = (),
    sessions: str | None = None,
    site: Site = Site(),
    keep: str | None = None,
) -> Service:
    """Everything loaded. `sessions`: the file or Redis of what outlives the process. `keep`: as
    `Decoding.keep` has it. Raises what
    `Translator.load`, `memories.open_memories`, `terms.open_terms`, `place_of` and `storage.opened`
    raise, and UsageError for keys that do not go with the memories, and where nothing is to be
    served. Without a model, memories alone are looked up in."""
    from tmnmt.models.folder import languages_in

    if not models and not readable and not writable:
        raise UsageError("there is nothing to serve; give --model, --memory or --write-to")
    place = place_of(sessions)
    keep_freed()
    if models:
        prepare_decoding()
    prepare_search(concordance=True)
    pairs = list(dict.fromkeys(languages_in(model) for model in models))
    pairs = pairs or languages_of_indexes([*readable, *writable])
    memories = open_memories(readable, writable, pairs, progress)
    lists = terms_opened(terms, pairs)
    if keys is not None:
        check_keys(keys, memories, {term_list.name for term_list in lists})
    served = [_model(model, memories, limits, threads, keep) for model in models]
    names = [model.name for model in served]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise UsageError(f"two models are called {name}: rename one of the folders")
    return Service(served, memories, storage_opened(place), keys, limits, lists, site)


def limits_of(options: RequestLimits) -> Limits:
    """The limits as the service takes them."""
    return Limits(
        body=options.body_bytes,
        file=options.file_bytes,
        bodies=options.bodies_bytes,
        tenant=options.tenant_bytes,
        text=options.text_length,
        waiting=options.waiting,
        seconds=options.seconds,
    )


def _model(
    folder: Path,
    memories: Sequence[Memory],
    limits: Limits,
    threads: int | None,
    keep: str | None,
) -> Model:
    from tmnmt.models.folder import languages_in

    name = folder.resolve().name
    if not NAME.fullmatch(name):
        raise UsageError(f"{folder}: {name!r} cannot be the name of a model; allowed: {NAMES}")
    try:
        source, target = map(language, languages_in(folder))
    except Refused as refused:
        raise UsageError(f"{folder}: the languages of this model are unknown") from refused
    pair_memories = [memory for memory in memories if memory.serves((source, target))]
    indexes = [memory.index for memory in pair_memories]
    translator = Translator.load(folder, indexes, TranslationOptions(keep=keep, threads=threads))
    if translator.backbone.reads_around:
        raise UsageError(
            f"{folder}: its context network reads whole documents, and the server translates "
            "segment by segment; serve its base instead"
        )
    return Model(name, Queue(translator, limits.waiting))


def check_certificate(certificate: Path, private_key: Path) -> None:
    """Raises UsageError where these are no certificate and its key."""
    for path in (certificate, private_key):
        if not path.is_file():
            raise UsageError(f"{path}: there is no such file")
    try:
        # a password is never asked for
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            certificate, private_key, password=""
        )
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{certificate} and {private_key} are no certificate and its key, as PEM without a "
            "password"
        ) from error


class Server(uvicorn.Server):
    """Stops at SIGTERM or Ctrl-C: it takes no more connections, answers those that it has, and
    ends. A second one ends it at once."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.close()  # or who watches a job would hold it up
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        old = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:  # and not raised once more, as uvicorn does: to be stopped is no failure
            for number, handler in old.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def reloading(service: Service, keys: Path | None) -> Iterator[None]:
    """While the block runs, SIGHUP has the file of keys read again, and ends nothing. A thread of
    its own reads it: the signal may interrupt a write to the log, and a stream refuses a write
    within a write."""
    number = ENDING_SIGNALS.get("SIGHUP")
    if number is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    turn = threading.Lock()

    def reload() -> None:
        with turn:
            reload_keys(service, keys)

    # a bare thread: a `Thread` takes locks that the interrupted code may hold
    old = signal.signal(number, lambda *_: _thread.start_new_thread(reload, ()))
    try:
        yield
    finally:
        signal.signal(number, old)


def reload_keys(service: Service, path: Path | None) -> None:
    """Takes the keys of the file as they are now. Where they cannot be taken, the log says why and
    those that there are stay. Without a file nothing changes."""
    if path is None:
        log.warning("SIGHUP: the server has no file of keys, and goes on as it is")
        return
    try:
        keys = Keys.load(path)
        check_keys(keys, list(service.memories), service.terms.served)
    except (TmnmtError, OSError) as error:
        log.error("SIGHUP: the keys stay as they were: %s", error)
        return
    service.keys = keys
    log.warning("SIGHUP: %d keys are read from %s", len(keys.callers), path)


def check_keys(keys: Keys, memories: Sequence[Memory], terms: Collection[str]) -> None:
    """Raises UsageError for keys that do not go with what is served."""
    writable = {memory.name for memory in memories if memory.writable is not None}
    check_tenants(keys.callers, {memory.name for memory in memories}, writable, terms)


def listening(host: str, port: int) -> socket.socket:
    """Raises UsageError where this cannot be listened at."""
    try:
        family, *_, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        server_socket = socket.create_server(address[:2], family=family, backlog=_WAITING)
        # for its connections, too. asyncio does it for sockets of its own alone; without it, an
        # answer on a connection that is kept waits 40 ms for the client's system
        server_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return server_socket
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no name of a machine"
        raise UsageError(f"cannot listen at {host}, port {port}: {why}") from error


def server_of(
    service: Service,
    certificate: Path | None = None,
    private_key: Path | None = None,
    dialects: Sequence[Dialect] | None = None,
) -> Server:
    """A server that is not started yet. `dialects`: as `application` has them."""
    config = uvicorn.Config(
        application(service, dialects),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        http=Protocol,
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
        timeout_graceful_shutdown=int(service.limits.seconds) + 5,
    )
    return Server(config, service)


def run(
    service: Service,
    sockets: Sequence[socket.socket],
    announce: Callable[[], None],
    certificate: Path | None = None,
    private_key: Path | None = None,
    keys: Path | None = None,
    dialects: Sequence[Dialect] | None = None,
) -> None:
    """Serves until it is told to stop. `announce`: called when it is ready. `keys`: the file of
    keys, which SIGHUP has read again. `dialects`: as `application` has them."""
    server = server_of(service, certificate, private_key, dialects)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    sys.setswitchinterval(SWITCH)
    service.start()
    try:
        with reloading(service, keys):
            announce()
            server.run([*sockets])
    finally:
        service.stop()
