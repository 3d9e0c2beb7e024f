"""The server as a process: what is opened, where it listens, how it stops."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import uvicorn

from tmnmt.allocator import keep_freed, map_large
from tmnmt.config.option import options_of
from tmnmt.config.options import HostedBase
from tmnmt.config.serving import ServedParts, ServerOptions
from tmnmt.errors import UsageError
from tmnmt.progress import ReadProgress
from tmnmt.serve.app import application
from tmnmt.serve.keys import Keys
from tmnmt.serve.opening import check_keys, open_parts
from tmnmt.serve.protocol import Protocol
from tmnmt.serve.reloading import Reloader, reload_by_request, reloading
from tmnmt.serve.routes import Dialect
from tmnmt.serve.service import Limits, Service
from tmnmt.serve.site import Site
from tmnmt.serve.storage.opening import open_storage as storage_opened
from tmnmt.serve.storage.opening import place_of

_WAITING = 512  # connections that the system keeps until they are taken
# Seconds after which a thread of Python lets another one run. The decoder gives Python up and takes
# it again at every operation: at 5 ms, which is usual, each search made it wait so long each time.
SWITCH = 0.0005
_LOOK = 0.1  # seconds between looks whether it shall end at once

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
    hosted: HostedBase = HostedBase(),
) -> Service:
    """Everything loaded. `sessions`: the file or Redis of what outlives the process. `keep`: as
    `Decoding.keep` has it. `hosted`: how bases behind an address are asked. Raises what
    `opening.open_parts`, `place_of` and `storage.opened` raise."""
    place = place_of(sessions)
    options = ServedParts(
        model=tuple(map(str, models)),
        memory=tuple(readable),
        write_to=tuple(writable),
        terms=tuple(terms),
        threads=threads,
        keep=keep,
        **{option.name: getattr(hosted, option.name) for option in options_of(HostedBase)},
    )
    map_large()
    parts = open_parts(options, limits.waiting, progress)
    keep_freed()
    if keys is not None:
        check_keys(keys, parts)
    log.info("opening the sessions")
    storage = storage_opened(place)
    return Service(parts.models, parts.memories, storage, keys, limits, parts.terms, site)


def limits_of(options: ServerOptions) -> Limits:
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
    """Stops at SIGTERM or Ctrl-C: it says that it is not ready and goes on for a while, takes no
    more connections, answers those that it has, and ends. A second Ctrl-C ends it at once."""

    def __init__(self, config: uvicorn.Config, service: Service, drain: float = 0.0) -> None:
        """drain: the seconds for which it goes on."""
        super().__init__(config)
        self._service, self._drain = service, drain

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.close()  # or who watches a job would hold it up
        end = time.monotonic() + self._drain
        while time.monotonic() < end and not self.force_exit:
            await asyncio.sleep(_LOOK)
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
    drain: float = 0.0,
) -> Server:
    """A server that is not started yet. `dialects`: as `application` has them. `drain`: the seconds
    for which it goes on when it is told to stop."""
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
    return Server(config, service, drain)


def run(
    service: Service,
    sockets: Sequence[socket.socket],
    announce: Callable[[], None],
    certificate: Path | None = None,
    private_key: Path | None = None,
    reloader: Reloader | None = None,
    dialects: Sequence[Dialect] | None = None,
    drain: float = 0.0,
) -> None:
    """Serves until it is told to stop. `announce`: called when it is ready. `reloader`: what SIGHUP
    has read again. `dialects`: as `application` has them. `drain`: as `server_of` has it."""
    server = server_of(service, certificate, private_key, dialects, drain)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    sys.setswitchinterval(SWITCH)
    if service.models and any(model.translates for model in service.models):
        log.info("translating once with each model")
    service.start()
    if reloader is not None:
        service.reload = partial(reload_by_request, reloader)
    try:
        with reloading(reloader):
            announce()
            server.run([*sockets])
    finally:
        service.stop()
