"""Documents that are translated as jobs, for the own interface and for every dialect that has
documents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmnmt.config.options import Output, Overwrite, OwnTranslations
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.formats.clean import clean_name
from tmnmt.serve import files
from tmnmt.serve.fields import MOST_NAME
from tmnmt.serve.http_error import Refused, unknown

if TYPE_CHECKING:
    from tmnmt.segments import ConfirmedPair
    from tmnmt.serve.in_turn import InTurn
    from tmnmt.serve.jobs import Advance, Steps, Work
    from tmnmt.serve.keys import Caller
    from tmnmt.serve.served_model import Model
    from tmnmt.serve.service import Service
    from tmnmt.serve.storage.records import Job

DOCUMENT = "document"  # the kind of such jobs
POLL_SECONDS = 0.1  # between two looks at a job that somebody waits for
SUFFIXES = (".txt", *dict.fromkeys(s for kind in FILE_KINDS.values() for s in kind.suffixes))


@dataclass(frozen=True)
class DocumentRequest:
    """A translation of a file that is asked for. Codes, names and options are as in
    `tmnmt.serve.service.Request`.

    name: the name of the file; its end says of which kind it is.
    overwrite: which translations in it are made anew.
    own_translations: which of the others in it are taken as confirmed."""

    name: str
    source: str = ""
    target: str = ""
    model: str = ""
    memories: Sequence[str] | None = None
    terms: Sequence[str] | None = None
    hard_terms: bool = False
    terms_domain: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    overwrite: Overwrite = "nothing"
    own_translations: OwnTranslations = Output.own_translations


async def start_document(
    service: Service, caller: Caller, content: bytes, request: DocumentRequest
) -> Job:
    """A job that is begun, and has the same file with translations in the end.

    service: what the server serves.
    caller: who asks.
    content: the file.
    request: what is to be done with it.

    Raises Refused for languages, memories or terms that are not there, and for too many jobs."""
    model = service.model(request.source, request.target, request.model)
    setup = service.resolve_setup(
        model,
        caller,
        request.memories,
        None,
        request.terms,
        request.hard_terms,
        request.options,
        request.terms_domain,
    )
    work = document_work(request, model, await service.in_turn(model, caller, setup))
    subject = {"model": model.name}
    return await start_job(service, caller, DOCUMENT, subject, request.name, content, work)


def document_work(
    request: DocumentRequest,
    model: Model,
    translated: InTurn,
    confirmed: Callable[[], Sequence[ConfirmedPair]] = tuple,
) -> Work:
    """What a job does with a document.

    request: what is asked for.
    model: the model that translates.
    translated: translates its segments.
    confirmed: gives what the session has confirmed, once all is translated."""
    languages = model.translator.src_lang, model.translator.tgt_lang

    def work(path: Path, advance: Advance) -> Steps:
        order = files.DocumentOrder(
            clean_name(request.name), languages, request.overwrite, request.own_translations
        )
        return files.document_through(path, order, translated, advance, confirmed)

    return work


async def start_job(
    service: Service,
    caller: Caller,
    kind: str,
    subject: Mapping[str, Any],
    name: str,
    content: bytes,
    work: Work,
) -> Job:
    """A job that is begun. Its file has the end of a name, and nothing else of it.

    service: what the server serves.
    caller: who asks.
    kind: what the job does.
    subject: what it is about.
    name: the name of the file.
    content: the file.
    work: what is done with the file.

    Raises Refused where there are too many jobs, or documents of a day."""
    if kind == DOCUMENT:
        await service.take(caller.tenant, "documents", 1)

    def start() -> Job:
        parameters = {**subject, "file": clean_name(name)[:MOST_NAME]}
        id = service.jobs.make(kind, parameters, caller)
        service.jobs.start(id, caller.tenant, content, name, work)
        return service.jobs.get(id, caller)

    return await service.write(start)


async def ended_job(service: Service, caller: Caller, job: Job) -> Job:
    """A job when it has ended. Where nobody waits for it any more, it is deleted.

    service: what the server serves.
    caller: who waits.
    job: the job."""
    id = job.id
    try:
        while not job.has_ended:
            await asyncio.sleep(POLL_SECONDS)
            try:
                job = await service.write(lambda: service.jobs.get(id, caller))
            except Refused as refused:
                if refused.status != 429:
                    raise
    except asyncio.CancelledError:
        await service.write(lambda: service.jobs.delete(id, caller))
        raise
    return job


async def document_job(service: Service, id: str, caller: Caller | None) -> Job:
    """A job of a document.

    service: what the server serves.
    id: its id.
    caller: who asks; None lets anybody who knows the id.

    Raises Refused where there is no such job of a document."""
    job = await service.write(lambda: service.jobs.get(id, caller))
    if job.kind != DOCUMENT:
        raise unknown("there is no such document")
    return job
