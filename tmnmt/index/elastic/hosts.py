"""Which host of a cluster is asked, and for how long, where one of them hangs (it takes requests
and never answers) or has just started and knows no index yet."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from elastic_transport import (
    BaseNode,
    ConnectionTimeout,
    NodeConfig,
    NodeSelector,
    SerializerCollection,
    Transport,
    TransportApiResponse,
)

from tmnmt.index.elastic.engine import ENGINES

SECONDS_BEFORE_THE_NEXT = (
    5.0,
    15.0,
)  # that each host has for what may be asked twice, in the first and second round
# At the end of a path; all others that search or read are GET or HEAD.
READING = ("/_search", "/_msearch", "/_mget", *(engine.point_path for engine in ENGINES))
NO_INDEX = "index_not_found_exception"

log = logging.getLogger(__name__)


class FirstHost(NodeSelector):
    """Takes the first host that is alive; one that has failed comes back as the last. So a change
    goes to the host that has just answered what was read for it, and one that hangs gets nothing
    while another answers. The hosts in `unknowing` do not know an index; they are taken where no
    other is alive."""

    def __init__(self, hosts: list[NodeConfig]) -> None:
        """hosts: the hosts of the cluster."""
        super().__init__(hosts)
        self.unknowing: set[NodeConfig] = set()

    def select(self, nodes: Sequence[BaseNode]) -> BaseNode:
        """The host that is asked.

        nodes: the hosts that are alive, the first of which comes first."""
        return next((node for node in nodes if node.config not in self.unknowing), nodes[0])


class JsonOrText(SerializerCollection):
    """Reads an answer as JSON, and otherwise as text, whatever it calls itself. So its status can
    be told in any case."""

    def loads(self, data: bytes, mimetype: str | None = None) -> Any:
        """What an answer says; None where it is empty.

        data: its bytes.
        mimetype: what it calls itself."""
        try:
            return orjson.loads(data) if data else None
        except orjson.JSONDecodeError:
            return data.decode(errors="replace")


class Hosts(Transport):
    """Asks one host after the other, a few seconds each, for what changes nothing. Where none
    answers, and for a change, which may be under way on a host that hangs, one host has all the
    time that a request may take. Where one says that there is no such index, all are asked."""

    def perform_request(
        self, method: str, target: str, *, request_timeout: Any = None, **parameters: Any
    ) -> TransportApiResponse:
        """The answer to a request.

        method: the method of HTTP.
        target: the path of the request, with its query.
        request_timeout: how many seconds the request may take.
        parameters: the parameters of the request besides, such as its body."""
        if len(self.node_pool) == 1 or not only_reads(method, target):
            return super().perform_request(
                method, target, request_timeout=request_timeout, **parameters
            )
        hosts = self.node_pool.node_selector
        assert isinstance(hosts, FirstHost)
        answer = self._in_rounds(method, target, request_timeout, parameters)
        while misses_an_index(answer.body) and answer.meta.node not in hosts.unknowing:
            hosts.unknowing.add(answer.meta.node)
            answer = self._in_rounds(method, target, request_timeout, parameters)
        if misses_an_index(answer.body):
            hosts.unknowing.clear()
        else:
            hosts.unknowing.discard(answer.meta.node)
        return answer

    def _in_rounds(
        self, method: str, target: str, request_timeout: Any, parameters: Any
    ) -> TransportApiResponse:
        for seconds in SECONDS_BEFORE_THE_NEXT:
            if isinstance(request_timeout, int | float) and seconds >= request_timeout:
                break
            try:
                return super().perform_request(
                    method,
                    target,
                    request_timeout=seconds,
                    **{**parameters, "retry_on_timeout": True},
                )
            except ConnectionTimeout:
                log.warning("no host has answered within %g s; asking again for longer", seconds)
        return super().perform_request(
            method, target, request_timeout=request_timeout, **parameters
        )


def only_reads(method: str, target: str) -> bool:
    """Whether a request changes nothing, so that two hosts may get the same one.

    method: the method of HTTP.
    target: the path of the request, with its query."""
    return method in ("GET", "HEAD") or (
        method == "POST" and target.partition("?")[0].endswith(READING)
    )


def misses_an_index(answer: Any) -> bool:
    """Whether a host says, of a whole request or of a part, that there is no such index.

    answer: the JSON of its answer."""
    if not isinstance(answer, Mapping):
        return False
    errors = [
        part.get("error")
        for part in (answer, *answer.get("responses", ()), *answer.get("docs", ()))
    ]
    return any(isinstance(error, Mapping) and error.get("type") == NO_INDEX for error in errors)
