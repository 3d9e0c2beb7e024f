"""Requests to a server that are tried again while that can help, and whose errors speak to the
user."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.client import responses
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, urlencode

from tmnmt.config.tables import API_KEY, PASSWORD
from tmnmt.errors import ServerError, short_repr
from tmnmt.index.elastic.address import CA, USER, ElasticAddress, open_hosts, read_secrets
from tmnmt.index.elastic.engine import ENGINES, engine_in, is_too_old
from tmnmt.visible import visible

if TYPE_CHECKING:
    from elastic_transport import ApiError, TransportApiResponse

PATIENCE = 30.0  # seconds for which a request is tried again: a node restarts, a queue empties
SECONDS_TO_ANSWER = 60.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 3.0  # seconds between tries, doubled every time
BUSY = (
    429,
    502,
    503,
    504,
)  # HTTP: full queues, a proxy without a node behind it, no master, a gateway that gave up
MOST_TOLD = 300  # characters of what a server says
NOT_FOUND, CONFLICT, BAD_REQUEST = 404, 409, 400  # HTTP
# what is answered where a privilege is missing, or there is nothing to tell
_UNTOLD = (BAD_REQUEST, 403, NOT_FOUND, 405)
_JSON, _LINES = "application/json", "application/x-ndjson"

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
        from elastic_transport import NdjsonSerializer, OrjsonSerializer
        from elastic_transport.client_utils import url_to_node_config

        from tmnmt.index.elastic.bounded import BoundedNode
        from tmnmt.index.elastic.hosts import FirstHost, Hosts, JsonOrText

        secrets = read_secrets()
        if secrets.authorization and (readable := open_hosts(address)):
            warning = (
                f"the password or key goes to %s unencrypted; use {address.engine.prefix}https"
            )
            log.warning("%s: " + warning, address, ", ".join(readable))
        self.address, self.patience, self.seconds_to_answer = address, patience, seconds_to_answer
        headers = {"authorization": secrets.authorization} if secrets.authorization else {}
        ca = str(secrets.ca) if secrets.ca else None
        self._transport = Hosts(
            [
                url_to_node_config(host).replace(headers=headers, ca_certs=ca)
                for host in address.hosts
            ],
            node_class=BoundedNode,
            node_selector_class=FirstHost,
            max_retries=len(address.hosts) - 1,
            retry_on_timeout=False,
            retry_on_status=(),
            meta_header=False,
        )
        self._transport.serializers = JsonOrText(
            {_JSON: OrjsonSerializer(), _LINES: NdjsonSerializer()}
        )

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        expected: Sequence[int] = (),
        seconds: float | None = None,
        **parameters: Any,
    ) -> Any:
        """The JSON of an answer. A lost connection and a busy server are tried again until patience
        ends, so the request must be harmless when it is made twice.

        method: the method of HTTP.
        path: the path of the request.
        body: what is sent: an object, or the lines of a request with many parts, each an object or
        written as JSON already; None for nothing.
        expected: the codes of HTTP that are raised as ApiError, because the caller handles them.
        seconds: how many seconds the server has for the answer; None takes those of the server.
        parameters: the parameters in the address of the request.

        Raises ServerError for every other failure, for an answer that is no JSON object, and as
        soon as one is read for what it lacks."""
        content = self._answer(method, path, body, expected, seconds, parameters).body
        if not isinstance(content, Mapping):
            kind = "no JSON, but " if isinstance(content, str) else ""
            raise self._foreign(method, path, f": {kind}{short_repr(content)}")
        return _Content(content, self._foreign(method, path))

    def ask_of_indexes(
        self, path: str, field: str, *, expected: Sequence[int] = (), **parameters: Any
    ) -> dict[str, Any]:
        """What is known of indexes, by their names.

        path: the path of the request.
        field: the field of every index that is meant, which holds an object.
        expected: as of `ask`.
        parameters: the parameters in the address of the request.

        Raises as `ask`, also for an index without the field."""
        entries = self.ask("GET", path, expected=expected, **parameters)
        if not all(
            isinstance(entry, Mapping) and isinstance(entry.get(field), Mapping)
            for entry in entries.values()
        ):
            raise self._foreign("GET", path)
        fields = {name: entry[field] for name, entry in entries.items()}
        return _Content(fields, self._foreign("GET", path))

    def _foreign(self, method: str, path: str, content: str = "") -> ServerError:
        return self.error(f"answers as no search server does to {method} {path}{content}")

    def _answer(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | Sequence[Any] | None,
        expected: Sequence[int],
        seconds: float | None,
        parameters: Mapping[str, Any],
    ) -> TransportApiResponse:
        """As `ask`, with the headers."""
        from elastic_transport import ApiError, ConnectionTimeout, TlsError, TransportError

        from tmnmt.index.elastic.bounded import MOST_BYTES, AnswerTooLargeError

        target = quote(path, safe="/,*") + (f"?{_query(parameters)}" if parameters else "")
        headers = {"accept": _JSON}
        if body is not None:
            headers["content-type"] = _JSON if isinstance(body, Mapping) else _LINES
        limit = self.seconds_to_answer if seconds is None else seconds
        waiting = Waiting(self)
        while True:
            try:
                answer = self._transport.perform_request(
                    method, target, body=body, headers=headers, request_timeout=limit
                )
            except ConnectionTimeout as error:
                problem = f"no answer within {limit:g} s; ask again when the server is less busy"
                raise self.error(problem) from error
            except TlsError as error:
                problem = (
                    f"the certificate is not trusted: {_one_line(error.message)}; {CA} names the "
                    "authority's file"
                )
                raise self.error(problem) from error
            except TransportError as error:
                if isinstance(error.__cause__, AnswerTooLargeError):
                    problem = f"the answer to {method} {path} has more than {MOST_BYTES:,} bytes"
                    raise self.error(f"{problem}, and was not read to its end") from error
                waiting.pause(f"cannot be reached: {_one_line(error.message)}", error)
                continue
            status = answer.meta.status
            if 200 <= status < 300:
                return answer
            refusal = ApiError(f"HTTP {status}", answer.meta, answer.body)
            if status in expected:
                raise refusal
            if status not in BUSY:
                problem = reason(refusal)
                if status in (401, 403):
                    problem = f"access refused; set {USER} and {PASSWORD}, or {API_KEY}"
                elif location := answer.meta.headers.get("location"):
                    problem = f"a redirect to {short_repr(location)}, which is not followed"
                raise self.error(f"HTTP {status}: {problem}")
            waiting.pause(f"is too busy (HTTP {status}): {reason(refusal)}", refusal)

    def try_once(self, method: str, path: str, body: Mapping[str, Any], seconds: float) -> None:
        """Makes a request that need not arrive: it is made once, and whatever becomes of it is
        right.

        method: the method of HTTP.
        path: the path of the request.
        body: what is sent.
        seconds: how many seconds the server has for the answer."""
        from elastic_transport import TransportError

        headers = {"accept": _JSON, "content-type": _JSON}
        with suppress(TransportError):
            self._transport.perform_request(
                method, path, body=body, headers=headers, request_timeout=seconds
            )

    def check_engine(self) -> None:
        """Raises ServerError where another engine answers than the address names, or a version that
        lacks what is needed. Where a server without a header of its own does not tell it, because
        that needs a privilege, it is taken for what the address says."""
        wanted = self.address.engine
        if wanted.header and wanted.header in self._told(f"/{self.address.name}/_alias")[0]:
            return
        headers, content = self._told("/")
        found, version = engine_in(headers, content)
        named = f"{found.name if found else ''} {version}".strip()
        if found == wanted:
            if is_too_old(wanted, version):
                raise self.error(f"{named} answers there, and tmnmt needs {wanted}")
        elif found:
            raise self.error(f"{named} answers there, whose addresses begin with {found.prefix}")
        elif content is not None or wanted.header:
            raise self.error(f"what answers there is neither {' nor '.join(map(str, ENGINES))}")

    def _told(self, path: str) -> tuple[Mapping[str, str], Any]:
        """The headers and the JSON of an answer; None for the JSON where it is not to be had."""
        from elastic_transport import ApiError

        try:
            answer = self._answer("GET", path, None, _UNTOLD, None, {})
        except ApiError as error:
            return error.meta.headers, None
        return answer.meta.headers, answer.body

    def error(self, problem: str) -> ServerError:
        """An error of this server, to be raised.

        problem: what is wrong, in words."""
        return ServerError(f"{self.address}: {problem}")

    def close(self) -> None:
        self._transport.close()


class _Content(dict[str, Any]):
    """The JSON object of an answer, in which every field that is read has to be."""

    def __init__(self, content: Mapping[str, Any], error: ServerError) -> None:
        super().__init__(content)
        self._error = error

    def __missing__(self, field: str) -> NoReturn:
        raise self._error


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


def _query(parameters: Mapping[str, Any]) -> str:
    """Parameters as they stand in an address."""
    return urlencode(
        {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in parameters.items()
        },
        safe=",*",
    )


def reason(error: ApiError) -> str:
    """Why the server refused, in its own words, without its stack.

    error: the error of the client."""
    body: Any = error.body
    if isinstance(body, Mapping):
        return reason_in(body.get("error", body))
    return _one_line(body or responses.get(error.meta.status, "without a reason"))


def reason_in(problem: Any) -> str:
    """The words of an error.

    problem: the `error` object of an answer of Elasticsearch."""
    if not isinstance(problem, Mapping):
        return _one_line(problem)
    inner = problem.get("failed_shards") or problem.get("root_cause") or ()
    deepest = (
        inner[0].get("reason", inner[0]) if inner and isinstance(inner[0], Mapping) else problem
    )
    cause = deepest if isinstance(deepest, Mapping) and deepest.get("reason") else problem
    return _one_line(f"{cause.get('type', 'error')}: {cause.get('reason', problem)}")


def _one_line(problem: object) -> str:
    """The beginning of what a server says, on one line."""
    return visible(" ".join(f"{problem!s:.{MOST_TOLD}}".split()))
