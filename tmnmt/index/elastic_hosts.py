"""Which host of a cluster is asked, and for how long, where one of them hangs: it takes requests and never answers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from elastic_transport import BaseNode, ConnectionTimeout, NodeSelector, Transport, TransportApiResponse

SECONDS_BEFORE_THE_NEXT = (5.0, 15.0)  # that each host has for what may be asked twice, in the first and second round
# At the end of a path; all others that search or read are GET or HEAD.
READING = ("/_search", "/_msearch", "/_mget", "/_pit")

log = logging.getLogger(__name__)


class FirstHost(NodeSelector):
    """Takes the first host that is alive; one that has failed comes back as the last. So a change goes to the host that
    has just answered what was read for it, and one that hangs gets nothing while another answers."""

    def select(self, nodes: Sequence[BaseNode]) -> BaseNode:
        return nodes[0]


class Hosts(Transport):
    """Asks one host after the other, a few seconds each, for what changes nothing. Where none answers, and for a
    change, which may be under way on a host that hangs, one host has all the time that a request may take."""

    def perform_request(
        self, method: str, target: str, *, request_timeout: Any = None, **asked: Any
    ) -> TransportApiResponse:
        rounds = SECONDS_BEFORE_THE_NEXT if len(self.node_pool) > 1 and only_reads(method, target) else ()
        for seconds in rounds:
            if isinstance(request_timeout, int | float) and seconds >= request_timeout:
                break
            try:
                return super().perform_request(
                    method, target, request_timeout=seconds, **{**asked, "retry_on_timeout": True}
                )
            except ConnectionTimeout:
                log.warning("no host has answered within %g s; asking again for longer", seconds)
        return super().perform_request(method, target, request_timeout=request_timeout, **asked)


def only_reads(method: str, target: str) -> bool:
    """Whether a request changes nothing, so that two hosts may be asked for the same."""
    return method in ("GET", "HEAD") or (method == "POST" and target.partition("?")[0].endswith(READING))
