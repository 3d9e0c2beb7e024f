"""What is counted, in the text form of Prometheus (exposition format 0.0.4)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from tmnmt.errors import ServerError
from tmnmt.serve.http_error import Refused
from tmnmt.serve.service import Service


async def exposed(service: Service) -> str:
    """All counters; none has a text, a key or a path of a request. Sessions are left out while they
    cannot be counted.

    service: the service."""
    sessions = None
    with suppress(ServerError, Refused):
        sessions = await service.write(service.sessions.__len__)
    return "\n".join([*_lines(service, sessions), ""])


def _lines(service: Service, sessions: int | None) -> Iterator[str]:
    yield from _head("uptime_seconds", "gauge", "Seconds since the start.")
    yield f"tmnmt_uptime_seconds {time.time() - service.started:.3f}"
    if sessions is not None:
        yield from _head("sessions", "gauge", "Sessions that are open.")
        yield f"tmnmt_sessions {sessions}"
    yield from _head("requests_total", "counter", "Requests by route and status.")
    for key, number in sorted(service.counts.items()):
        if key[0] == "requests":
            yield f'tmnmt_requests_total{{route="{key[1]}",status="{key[2]}"}} {number}'
    yield from _head("request_seconds", "histogram", "How long requests took, by route.")
    yield from service.durations.lines("tmnmt_request_seconds")
    for name, help_text in (
        ("texts", "Texts translated."),
        ("characters", "Characters of these texts."),
        ("completions", "Translations gone on from what was typed."),
        ("searches", "Texts looked up in memories."),
        ("added", "Segments added to memories."),
        ("confirmed", "Pairs confirmed in sessions."),
    ):
        yield from _head(f"{name}_total", "counter", help_text)
        yield f"tmnmt_{name}_total {service.counts[name,]}"
    yield from _head("waiting_characters", "gauge", "Characters that wait for a model.")
    for model in service.models:
        yield f'tmnmt_waiting_characters{{model="{model.name}"}} {model.queue.waiting}'
    for name, help_text in (
        ("batches", "Batches decoded."),
        ("pieces", "Segments, or parts of long ones, in these batches."),
        ("given_up", "Requests whose time was over."),
    ):
        yield from _head(f"{name}_total", "counter", help_text)
        for model in service.models:
            yield f'tmnmt_{name}_total{{model="{model.name}"}} {model.queue.counts[name]}'
    yield from _head("seconds_total", "counter", "Where the time of models went.")
    for model in service.models:
        for part, seconds in sorted(model.translator.tally.seconds.items()):
            yield f'tmnmt_seconds_total{{model="{model.name}",part="{part}"}} {seconds:.3f}'


def _head(name: str, kind: str, help_text: str) -> Iterator[str]:
    yield f"# HELP tmnmt_{name} {help_text}"
    yield f"# TYPE tmnmt_{name} {kind}"
