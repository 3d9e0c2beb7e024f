"""Requests to Elasticsearch that are tried again while that can help, and whose errors speak to the
user."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tmnmt.config.tables import API_KEY, PASSWORD
from tmnmt.errors import ServerError
from tmnmt.index.elastic.address import CA, USER, ElasticAddress, open_hosts, read_secrets

if TYPE_CHECKING:
    from elasticsearch import ApiError, Elasticsearch

PATIENCE = 30.0  # seconds for which a request is tried again: a node restarts, a queue empties
SECONDS_TO_ANSWER = 60.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 3.0  # seconds between tries, doubled every time
BUSY = (
    429,
    502,
    503,
    504,
)  # HTTP: full queues, a proxy without a node behind it, no master, a gateway that gave up
# what the client and other servers say where they do not speak as each other
_OTHER_SERVER = ("not Elasticsearch", "media_type_header_exception", "Content-Type header")
_NEEDED = (
    "the installed client of Elasticsearch does not speak to this server; that of 9 speaks to "
    "Elasticsearch 9, that of 8 to 8 and 9, and none to OpenSearch"
)
_REFUSED = f"; set {USER} and {PASSWORD}, or {API_KEY}"

T = TypeVar("T")
log = logging.getLogger(__name__)


class Server:
    """The cluster of an address. Every failure is a ServerError that names the address; use from
    any thread."""

    def __init__(
        self,
        address: ElasticAddress,
        patience: float = PATIENCE,
        seconds_to_answer: float = SECONDS_TO_ANSWER,
    ) -> None:
        """address: the address.
        patience: how many seconds lost connections and a busy server are waited for, in all.
        seconds_to_answer: how many seconds the server has for an answer.

        Raises UsageError where the secrets of the environment are incomplete."""
        from elasticsearch import Elasticsearch

        from tmnmt.index.elastic.hosts import FirstHost, Hosts

        secrets = read_secrets()
        if (secrets.basic or secrets.api_key) and (readable := open_hosts(address)):
            warning = "the password or key goes to %s unencrypted; use elasticsearch+https"
            log.warning("%s: " + warning, address, ", ".join(readable))
        self.address, self.patience, self.seconds_to_answer = address, patience, seconds_to_answer
        tls: dict[str, Any] = {"ca_certs": str(secrets.ca)} if secrets.ca else {}
        self.client: Elasticsearch = Elasticsearch(
            list(address.hosts),
            basic_auth=secrets.basic,
            api_key=secrets.api_key,
            request_timeout=seconds_to_answer,
            max_retries=len(address.hosts) - 1,
            retry_on_timeout=False,
            retry_on_status=(),
            transport_class=Hosts,
            node_selector_class=FirstHost,
            **tls,
        )

    def ask(
        self, request: Callable[..., T], *, expected: Sequence[int] = (), **parameters: Any
    ) -> T:
        """What a method of the client returns. A lost connection and a busy server are tried again
        until patience ends, so the request must be harmless when it is made twice.

        request: the method.
        expected: the codes of HTTP that are raised as ApiError, because the caller handles them.
        parameters: the parameters of the method.

        Raises ServerError for every other failure."""
        from elastic_transport import TlsError
        from elasticsearch import ApiError, ConnectionTimeout, TransportError

        waiting = Waiting(self)
        while True:
            try:
                return request(**parameters)
            except ConnectionTimeout as error:
                problem = (
                    f"no answer within {self.seconds_to_answer:g} s; ask again when the "
                    "server is less busy"
                )
                raise self.error(problem) from error
            except TlsError as error:
                problem = (
                    f"the certificate is not trusted: {error.message}; {CA} names the "
                    "authority's file"
                )
                raise self.error(problem) from error
            except TransportError as error:
                waiting.pause(f"cannot be reached: {error.message}", error)
            except ApiError as error:
                if error.status_code in expected:
                    raise
                if any(sign in str(error.message) + reason(error) for sign in _OTHER_SERVER):
                    raise self.error(_NEEDED) from error
                if error.status_code not in BUSY:
                    refused = error.status_code in (401, 403)
                    problem = f"access refused{_REFUSED}" if refused else reason(error)
                    raise self.error(f"HTTP {error.status_code}: {problem}") from error
                waiting.pause(f"is too busy (HTTP {error.status_code}): {reason(error)}", error)

    def error(self, problem: str) -> ServerError:
        """An error of this server, to be raised.

        problem: what is wrong, in words."""
        return ServerError(f"{self.address}: {problem}")

    def close(self) -> None:
        self.client.close()


class Waiting:
    """Pauses that grow, until the server's patience ends: then `pause` raises."""

    def __init__(self, server: Server) -> None:
        """server: the server."""
        self._server = server
        self._start = time.monotonic()
        self._seconds = FIRST_PAUSE
        self._is_announced = False

    def pause(self, problem: str, cause: Exception | None = None) -> None:
        """Waits for the next try.

        problem: why one is needed, in words.
        cause: the error that the last try raised; None where it raised none.

        Raises ServerError when there is no time left for a try."""
        waited = time.monotonic() - self._start
        if waited + self._seconds > self._server.patience:
            raise self._server.error(
                f"{problem} (tried for {waited:.0f} s); try again later"
            ) from cause
        if not self._is_announced and self._seconds >= LONGEST_PAUSE:
            self._is_announced = True
            log.warning("%s %s; trying again", self._server.address, problem)
        time.sleep(self._seconds)
        self._seconds = min(2 * self._seconds, LONGEST_PAUSE)


def reason(error: ApiError) -> str:
    """Why the server refused, in its own words, without its stack.

    error: the error of the client."""
    body: Any = error.body
    return (
        reason_in(body.get("error", body))
        if isinstance(body, Mapping)
        else str(body or error.message)
    )


def reason_in(problem: Any) -> str:
    """The words of an error.

    problem: the `error` object of an answer of Elasticsearch."""
    if not isinstance(problem, Mapping):
        return str(problem)
    inner = problem.get("failed_shards") or problem.get("root_cause") or ()
    deepest = (
        inner[0].get("reason", inner[0]) if inner and isinstance(inner[0], Mapping) else problem
    )
    cause = deepest if isinstance(deepest, Mapping) and deepest.get("reason") else problem
    return f"{cause.get('type', 'error')}: {cause.get('reason', problem)}"
