"""Documents of DeepL: a file is put here, asked for until it is done, and taken once, as DeepL has
it. The id and the key that a client gets are the two halves of the job's id, which nobody can
guess."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict
from urllib.parse import quote

from starlette.responses import Response

from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.dialects.deepl_order import ORDER, order_of
from tmnmt.serve.document_jobs import DocumentRequest, document_job, start_document
from tmnmt.serve.fields import Field, read
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.routes import BINARY, FILE, Route, RouteAnswer
from tmnmt.serve.service import Service
from tmnmt.serve.storage.records import Job, State

_FILE = (
    Field("filename", "text", "Of the file, where the form does not say it.", default=""),
    Field("output_format", "text", "The end of its name, which stays as it is.", default=""),
)
_KEY = (Field("document_key", "text", "Of the document.", required=True),)

Status = Literal["queued", "translating", "done", "error"]
_STATUSES: dict[State, Status] = {
    "awaiting": "queued",
    "waiting": "queued",
    "working": "translating",
    "done": "done",
    "failed": "error",
}


class DocumentHandle(TypedDict):
    """What a client asks for its document with."""

    document_id: str
    document_key: str


class DocumentStatus(TypedDict):
    """How far a document is. Nothing is billed."""

    document_id: str
    status: Status
    billed_characters: NotRequired[int]
    error_message: NotRequired[str]


async def upload(service: Service, call: ApiRequest) -> Any:
    """Begins to translate a document."""
    order, fields = order_of(call.values), read(call.values, _FILE, strict=False)
    if call.file is None:
        raise wrong("file is needed: the document, in a form of parts (multipart/form-data)")
    name = fields["filename"] or call.file.name
    suffix = Path(name).suffix
    if not suffix:
        raise wrong("the name of the file is to have an end that says of which kind it is")
    if fields["output_format"].lower().lstrip(".") not in ("", suffix.lower().lstrip(".")):
        raise wrong("output_format: a document stays of its kind")
    request = DocumentRequest(
        name,
        order.source,
        order.target,
        memories=order.memories,
        terms=order.terms,
        hard_terms=order.has_terms,
        options=order.options,
    )
    return _handle(await start_document(service, call.caller, call.file.content, request))


def _handle(job: Job) -> DocumentHandle:
    half = len(job.id) // 2
    return {"document_id": job.id[:half], "document_key": job.id[half:]}


async def _job(service: Service, call: ApiRequest) -> Job:
    """Raises Refused where there is no document of this id and key."""
    key = read(call.values, _KEY, strict=False)["document_key"]
    return await document_job(service, call.path["id"] + key, call.caller)


async def document_status(service: Service, call: ApiRequest) -> Any:
    """How far a document is."""
    job = await _job(service, call)
    record: DocumentStatus = {"document_id": call.path["id"], "status": _STATUSES[job.state]}
    if job.state == "done":
        record["billed_characters"] = 0
    if job.state == "failed":
        record["error_message"] = str(job.result["error"])
    return record


async def document_result(service: Service, call: ApiRequest) -> Any:
    """The translated document, which is then gone from the server."""
    job = await _job(service, call)
    if not job.has_ended:
        raise Refused(503, "not_ready", "the document is not translated yet", 1)
    if job.state == "failed":
        raise wrong(str(job.result["error"]))
    content = await service.write(lambda: service.jobs.file(job.id, call.caller))
    await service.write(lambda: service.jobs.delete(job.id, call.caller))
    name = quote(str(job.parameters["file"]))
    headers = {"Content-Disposition": f"attachment; filename*=utf-8''{name}"}
    return Response(content, media_type=BINARY, headers=headers)


_DOCUMENT, _HANDLE = "/v2/document/{id}", RouteAnswer(DocumentHandle)
DOCUMENTS = (
    Route(
        "POST",
        "/v2/document",
        upload,
        fields=(*ORDER, *_FILE),
        file_field="file",
        keeps=True,
        answer=_HANDLE,
    ),
    Route("POST", _DOCUMENT, document_status, fields=_KEY, answer=RouteAnswer(DocumentStatus)),
    Route("POST", f"{_DOCUMENT}/result", document_result, fields=_KEY, answer=FILE),
)
