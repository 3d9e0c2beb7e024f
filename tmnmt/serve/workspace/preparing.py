"""Long documents are prepared some segments at a time, while people work on them already. The
document says how far this is, so that another process goes on where one was killed."""

from __future__ import annotations

from collections.abc import Mapping

from tmnmt.serve.keys import Caller
from tmnmt.serve.workspace.documents import Documents, Edit
from tmnmt.serve.workspace.opening import Preparation
from tmnmt.serve.workspace.segment import WorkSegment

TOGETHER = 250  # segments that are prepared at a time


def prepare_more(documents: Documents, id: str, caller: Caller, preparation: Preparation) -> bool:
    """Prepares the next segments of a document. Returns whether more are left. Raises Refused where
    the document is gone."""
    document = documents.get(id, caller)
    first = document.head["unprepared"]
    if first is None:
        return False
    end = min(first + TOGETHER, document.head["segments"] + 1)
    numbers = range(first, end)
    present = documents.segments(document, numbers)
    prepared = {segment.number: segment for segment in preparation.prepare([*present.values()])}

    def work(segments: Mapping[int, WorkSegment]) -> list[Edit]:
        return [
            Edit(prepared[number])
            for number, segment in segments.items()
            if segment == present[number] != prepared[number]
        ]

    unprepared = end if end <= document.head["segments"] else None
    documents.change(id, caller, numbers, work, unprepared=unprepared)
    return unprepared is not None
