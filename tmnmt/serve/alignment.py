"""The page on which a person mends aligned documents, served to a browser of this machine.

It is a server of its own, with the application of `tmnmt serve` and none of its dialects: it reads
the documents that `tmnmt align` has made, and knows neither models nor memories. Every change is
kept at once."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from tmnmt.alignment.align import DOUBTFUL, Decision, Link
from tmnmt.alignment.folder import AlignedMemory
from tmnmt.alignment.memory import AlignedDocument
from tmnmt.errors import DataError
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.api_v1 import refusal
from tmnmt.serve.fields import Field, read
from tmnmt.serve.http_error import Refused, unknown, wrong
from tmnmt.serve.page import PARTS, file_of_page
from tmnmt.serve.routes import Dialect, Route
from tmnmt.serve.service import Service
from tmnmt.serve.storage.sqlite import SqliteStorage

MOST_LINKS = 1_000  # that are changed at once
MOST_NUMBERS = 1_000  # sentences of a side of one of them
_LINK = (
    Field("sources", "numbers", "Source sentences.", required=True, entries=MOST_NUMBERS),
    Field("targets", "numbers", "Target sentences.", required=True, entries=MOST_NUMBERS),
    Field("probability", "number", "How sure it is.", required=True, minimum=0, maximum=1),
    Field("decision", "text", "What a person said.", default="", choices=get_args(Decision)),
)
_CHANGE = (
    Field("version", "whole", "Of the document that is changed.", required=True),
    Field("start", "whole", "The first link that goes.", required=True, minimum=0),
    Field("count", "whole", "How many go.", required=True, minimum=0, maximum=MOST_LINKS),
    Field(
        "links", "objects", "What comes in their place.", required=True, inside=_LINK,
        entries=MOST_LINKS,
    ),
)  # fmt: skip


class Review:
    """The documents of a memory while a person mends them. A document's version is the number of
    its changes, so that a second tab of the browser does not undo what the first one did."""

    def __init__(self, memory: AlignedMemory) -> None:
        """memory: the aligned documents."""
        self._memory = memory
        self._versions = dict.fromkeys(memory.documents, 0)
        self._titles = {name: title for title, name in reversed(memory.entries)}

    @property
    def dialect(self) -> Dialect:
        """The routes of the page."""
        routes = (
            Route("GET", "/", self.page, None, is_page=True, is_shell=True),
            PARTS,
            Route("GET", "/alignments", self.documents),
            Route("GET", "/alignments/{name}", self.document),
            Route("POST", "/alignments/{name}", self.change, fields=_CHANGE),
            Route("POST", "/memory", self.write),
        )
        return Dialect("alignment", ("",), routes, refusal, is_strict=True)

    async def page(self, service: Service, call: ApiRequest) -> Any:
        """The page."""
        return file_of_page("align.html")

    async def documents(self, service: Service, call: ApiRequest) -> Any:
        """The documents, by name and by how much is doubtful in each."""
        return {
            "memory": self._memory.path.name,
            "documents": [
                {"name": name, "title": self._titles[name], **_counts(document)}
                for name, document in self._memory.documents.items()
            ],
        }

    async def document(self, service: Service, call: ApiRequest) -> Any:
        """The sentences of a document, and its links."""
        name, document = self._find(call)
        source, target = document.languages
        return {
            "version": self._versions[name],
            "doubtful_below": DOUBTFUL,
            "source": source,
            "target": target,
            "sources": list(document.sources),
            "targets": list(document.targets),
            "links": [*map(_record, document.alignment.links)],
        }

    async def change(self, service: Service, call: ApiRequest) -> Any:
        """Puts links in the place of others. Refused where somebody else changed the document."""
        name, document = self._find(call)
        values = read(call.values, _CHANGE)
        if values["version"] != self._versions[name]:
            raise Refused(409, "changed", "the document was changed elsewhere: load it again")
        links = [*map(_link, values["links"])]
        try:
            changed = document.mended(values["start"], values["count"], links)
        except DataError as error:
            raise wrong(str(error)) from error
        self._memory.put(name, changed)
        self._versions[name] += 1
        return {"version": self._versions[name], **_counts(changed)}

    async def write(self, service: Service, call: ApiRequest) -> Any:
        """Writes the memory."""
        return {"memory": str(self._memory.path), "segments": self._memory.write()}

    def _find(self, call: ApiRequest) -> tuple[str, AlignedDocument]:
        name = call.path["name"]
        if name not in self._memory.documents:
            raise unknown("there is no such document")
        return name, self._memory.documents[name]


def _counts(document: AlignedDocument) -> dict[str, int]:
    links = document.alignment.links
    return {
        "links": len(links),
        "doubtful": sum(link.is_doubtful for link in links),
        "decided": sum(bool(link.decision) for link in links),
    }


def _record(link: Link) -> dict[str, Any]:
    return {
        "sources": link.sources,
        "targets": link.targets,
        "probability": link.probability,
        "decision": link.decision,
    }


def _link(record: dict[str, Any]) -> Link:
    return Link(
        tuple(sorted(record["sources"])),
        tuple(sorted(record["targets"])),
        record["probability"],
        record["decision"],
    )


def serve_review(memory: AlignedMemory, announce: Callable[[str], None]) -> None:
    """Serves the page until it is told to stop.

    memory: whose documents are mended.
    announce: called with the address when the page is ready.

    Raises UsageError where nothing can be listened at."""
    from tmnmt.serve.running import listening, run

    logging.getLogger("tmnmt.serve").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder, listening("127.0.0.1", 0) as socket:
        address = f"http://127.0.0.1:{socket.getsockname()[1]}"
        service, dialects = review_service(Path(folder)), [Review(memory).dialect]
        run(service, [socket], lambda: announce(address), dialects=dialects)


def review_service(folder: Path) -> Service:
    """A service without models and memories.

    folder: the folder where it keeps its file."""
    return Service([], [], SqliteStorage(folder / "review.db"))
