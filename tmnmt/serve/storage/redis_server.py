"""A connection to Redis: what is asked of it at the start, and what its errors mean here.

No text of an error of its own is told: it may have what was sent, a password too."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tmnmt.errors import DataError, ServerError, TmnmtError
from tmnmt.serve.storage.address import PASSWORD, USER, RedisAddress

FORMAT = 1  # of what the keys hold
PREFIX = f"tmnmt:{FORMAT}:"  # all keys begin so, but for one that holds the number of the format
FORMAT_KEY = "tmnmt:format"
ANSWERING = 10.0  # seconds until a Redis that does not answer is given up
CONNECTING = 5.0
SPARED = 1.0  # seconds in which nothing more is asked of it then: no thread waits in vain
# Written anew at every start: so it shows at once where nothing can be written.
_PREPARE = """
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind ~= 'none' and kind ~= 'string' then return 'a ' .. kind end
local format = redis.call('GET', KEYS[1])
if format and format ~= ARGV[1] then return format end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
"""
_MEANINGS = {
    "WRONGTYPE": "a key of its sessions was overwritten by another program",
    "READONLY": "it is a replica, which takes no changes; name the primary",
    "LOADING": "it is still loading its data; try again",
    "MASTERDOWN": "it is a replica without its primary",
    "OOM": "its memory is full (maxmemory)",
    "MISCONF": "it cannot write to its disk",
    "NOREPLICAS": "it has too few replicas to take changes",
    "NOPERM": "its user may not do what sessions need",
    "MOVED": "it is a Redis Cluster, which cannot hold sessions",
    "CLUSTERDOWN": "it is a Redis Cluster, which cannot hold sessions",
    "CROSSSLOT": "it is a Redis Cluster, which cannot hold sessions",
    "DB index": "it has no database of this number",
}
_SILENT = "it does not answer in time"
_NOT_KNOWN = f"it takes no such user and password (in the address, or {USER} and {PASSWORD})"
_CLASSES: Sequence[tuple[type[Exception], str]] = (
    (redis.exceptions.AuthenticationWrongNumberOfArgsError, "NOAUTH"),
    (redis.AuthenticationError, "NOAUTH"),
    (redis.exceptions.AuthorizationError, "NOAUTH"),
    (redis.BusyLoadingError, "LOADING"),
    (redis.ReadOnlyError, "READONLY"),
    (redis.exceptions.NoPermissionError, "NOPERM"),
    (redis.OutOfMemoryError, "OOM"),
    (redis.exceptions.MasterDownError, "MASTERDOWN"),
    (redis.exceptions.ClusterError, "CLUSTERDOWN"),
    (redis.exceptions.AskError, "MOVED"),  # and moved
)

log = logging.getLogger("tmnmt.serve")


class RedisServer:
    """A connection for any thread. Every method raises ServerError where the Redis cannot be
    written to."""

    def __init__(self, address: RedisAddress) -> None:
        """address: the address of the Redis.

        Raises DataError where the database is of another program or a newer version."""
        self._address, self._asked_from = address, 0.0
        self._client: Any = redis.Redis(connection_pool=_pool(address))  # its types are unions
        try:
            with self._as_server_error(""):
                self._prepare()
                risks = risks_of(self._information(), self._setting)
        except TmnmtError:
            self.close()
            raise
        if risks:
            log.warning("%s: may lose what was confirmed: %s", address, "; ".join(risks))

    def _prepare(self) -> None:
        number = self._client.eval(_PREPARE, 1, FORMAT_KEY, str(FORMAT)).decode(errors="replace")
        if not re.fullmatch(r"[0-9]{1,9}", number):
            raise DataError(f"{self._address}: {FORMAT_KEY} is a key of another program there")
        if int(number) != FORMAT:
            raise DataError(
                f"{self._address}: sessions of format {number}, this version reads {FORMAT}"
            )

    def _information(self) -> Mapping[str, Any]:
        try:
            information: Mapping[str, Any] = self._client.info()
        except redis.ResponseError:  # not allowed
            return {}
        if information.get("redis_mode") == "cluster":
            raise ServerError(f"{self._address}: {_MEANINGS['MOVED']}")
        return information

    def _setting(self, name: str) -> str:
        """As CONFIG gives it; "": it does not."""
        try:
            return str(self._client.config_get(name).get(name, ""))
        except redis.ResponseError:  # not allowed, or there is no such command
            return ""

    def run(self, *command: Any) -> Any:
        """The answer to a command.

        command: the command and its arguments."""
        with self._as_server_error():
            return self._client.execute_command(*command)

    def together(self, *commands: Sequence[Any]) -> list[Any]:
        """The answers to several commands, with nothing of anybody else between them.

        commands: each command with its arguments."""
        if not commands:
            return []
        with self._as_server_error(), self._client.pipeline(transaction=True) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            answers: list[Any] = pipeline.execute()
            return answers

    def script(self, text: str) -> Callable[[Sequence[str], Sequence[Any]], Any]:
        """A script that can be called, with keys and arguments. It is done as a whole, with nothing
        of anybody else between.

        text: the script."""
        registered = self._client.register_script(text)

        def run_script(keys: Sequence[str], arguments: Sequence[Any]) -> Any:
            with self._as_server_error():
                return registered(keys, arguments)

        return run_script

    def close(self) -> None:
        self._client.close()
        self._client.connection_pool.disconnect()

    @contextmanager
    def _as_server_error(
        self, prefix: str = "sessions cannot be read or written: "
    ) -> Iterator[None]:
        if time.monotonic() < self._asked_from:
            raise ServerError(f"{prefix}{self._address}: {_SILENT}")
        try:
            yield
        except (redis.RedisError, OSError) as error:
            if isinstance(error, redis.TimeoutError):
                self._asked_from = time.monotonic() + SPARED
            raise ServerError(f"{prefix}{self._address}: {meaning(error)}") from None


def _pool(address: RedisAddress) -> redis.ConnectionPool:
    """Nothing is sent twice: what is appended might be so, too."""
    settings: dict[str, Any] = {
        "db": address.number,
        "username": address.user,
        "password": address.password,
        "socket_timeout": ANSWERING,
        "socket_connect_timeout": CONNECTING,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
    }
    if address.path:
        del settings["socket_connect_timeout"]
        settings |= {"path": address.path}
        return redis.ConnectionPool(redis.UnixDomainSocketConnection, **settings)
    settings |= {"host": address.host, "port": address.port, "socket_keepalive": True}
    if address.scheme == "redis":
        return redis.ConnectionPool(redis.Connection, **settings)
    settings |= {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
    if address.ca is not None:
        settings |= {"ssl_ca_certs": str(address.ca)}
    return redis.ConnectionPool(redis.SSLConnection, **settings)


def meaning(error: Exception) -> str:
    """The meaning of an error, in words of our own.

    error: the error."""
    code = next((code for kind, code in _CLASSES if isinstance(error, kind)), None)
    if code is None and isinstance(error, redis.ResponseError):
        code = next((code for code in _MEANINGS if re.search(rf"\b{code}\b", str(error))), None)
    if code == "NOAUTH":
        return _NOT_KNOWN
    if code is not None:
        return _MEANINGS[code]
    match error:
        case redis.TimeoutError():
            return _SILENT
        case redis.exceptions.InvalidResponse():
            return "what answers there is no Redis"
        case redis.ConnectionError() | OSError():
            return _unreachable(error)
        case _:
            return "it refuses what sessions need; is it a Redis, of version 6 or newer?"


def _unreachable(error: Exception) -> str:
    cause = error if isinstance(error, OSError) else error.__cause__ or error.__context__
    why = getattr(cause, "verify_message", None) or getattr(cause, "strerror", None)
    if not why:
        return "it ended the connection; is it a Redis, and one with or without TLS as named?"
    return f"cannot be reached: {why}"


def risks_of(information: Mapping[str, Any], setting: Callable[[str], str]) -> list[str]:
    """Why a Redis may lose what it has acknowledged, in words.

    information: the answer to INFO.
    setting: gives the answer to CONFIG for a name; "" where there is none."""
    risks = []
    fsync = setting("appendfsync")
    if "aof_enabled" not in information:
        risks.append("it does not say what it writes to disk; appendonly has to be yes")
    elif not information["aof_enabled"]:
        risks.append("appendonly is no, and has to be yes")
    if fsync != "always":
        risks.append(f"appendfsync is {fsync or 'not told'}, and has to be always")
    elif setting("no-appendfsync-on-rewrite") == "yes":
        risks.append("no-appendfsync-on-rewrite is yes, and has to be no")
    policy = str(information.get("maxmemory_policy", ""))
    if policy.startswith("allkeys"):
        risks.append(f"maxmemory-policy is {policy}, and has to be noeviction")
    return risks
