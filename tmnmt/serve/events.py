"""Server-sent events: what is told while it comes about. A translation, how far a job is."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from starlette.responses import StreamingResponse

from tmnmt.errors import TmnmtError
from tmnmt.serve.http_error import Refused
from tmnmt.serve.jobs import NOTE_INTERVAL
from tmnmt.serve.request_log import request_id
from tmnmt.serve.routes import EVENTS
from tmnmt.serve.storage.records import Job

QUIET = 15.0  # seconds after which a line says that the connection is meant to stay
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_STAYS = ": \n\n"  # a comment, which no client sees
_UNAVAILABLE = Refused(503, "unavailable", "it cannot be used now")
_STOPPING = Refused(503, "stopping", "the server is stopping", 5)


def event(name: str, data: Mapping[str, Any]) -> str:
    """An event as a stream has it.

    name: the name of the event.
    data: what it says."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


def error_record(refused: Refused) -> dict[str, Any]:
    """What was refused, as the own interface writes it.

    refused: why it was refused."""
    error: dict[str, Any] = {"code": refused.code, "message": refused.message}
    if refused.values:
        error |= {"template": refused.template, "values": dict(refused.values)}
    if id := request_id():
        error["request"] = id
    return {"error": error, **refused.details}


def event_stream(events: AsyncIterator[str]) -> StreamingResponse:
    """An answer that sends each event as soon as it is there. What fails in the midst is an event,
    too: error.

    events: the events."""

    async def frames() -> AsyncIterator[str]:
        try:
            async for frame in events:
                yield frame
        except Refused as refused:
            yield event("error", error_record(refused))
        except TmnmtError:
            yield event("error", error_record(_UNAVAILABLE))

    return StreamingResponse(frames(), media_type=EVENTS, headers=_HEADERS)


async def of_job(
    job: Job, look: Callable[[], Awaitable[Job]], is_open: Callable[[], bool]
) -> AsyncIterator[str]:
    """The events of a job: progress, whenever it is further; then done or failed.

    job: the job as it stands.
    look: gives the job as it stands by then.
    is_open: says whether the server is still open.

    Raises Refused where nobody can say any more, or where the server is not open any more."""
    previous, last = None, time.monotonic()
    while True:
        if job.record != previous:
            previous, last = job.record, time.monotonic()
            yield event(job.state if job.has_ended else "progress", previous)
        if job.has_ended:
            return
        if time.monotonic() - last > QUIET:
            last = time.monotonic()
            yield _STAYS
        await asyncio.sleep(NOTE_INTERVAL)
        if not is_open():
            raise _STOPPING
        try:
            job = await look()
        except Refused as refused:
            if refused.status != 429:
                raise
