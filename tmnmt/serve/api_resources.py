"""The part of the own interface that keeps what lies on the server: segments of memories, files
into and out of them, documents, jobs, and terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from starlette.responses import JSONResponse, Response

from tmnmt.config.options import Output, OwnTranslations
from tmnmt.engine.confirmed import confirmable
from tmnmt.errors import UsageError
from tmnmt.formats.clean import clean_name
from tmnmt.segments import Segment
from tmnmt.serve import answers, files
from tmnmt.serve import memories as memories_
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.document_jobs import DocumentRequest, document_work, start_document, start_job
from tmnmt.serve.events import event_stream, of_job
from tmnmt.serve.fields import ENTRIES, MOST_NAME, NAMES, Field, read
from tmnmt.serve.http_error import Refused, unknown, wrong
from tmnmt.serve.jobs import Advance, Steps, Work
from tmnmt.serve.languages import language
from tmnmt.serve.memories import Memory
from tmnmt.serve.routes import EMPTY, EVENTS, FILE, Route, RouteAnswer
from tmnmt.serve.service import Service
from tmnmt.serve.storage.records import Dictionary, Glossary, Job
from tmnmt.serve.terms import entries_of

SAVED = {"Content-Disposition": "attachment"}

SOURCE = Field("source", "text", "Language of the texts; not given, the only one.", default="")
TARGET = Field("target", "text", "Language wanted; not given, the only one.", default="")
MODEL = Field("model", "text", "Its name; not given, the first of the languages.", default="")
MEMORIES = Field(
    "memories",
    "texts",
    "Names of the memories to read; not given, all of the pair.",
    entries=NAMES,
    distinct=True,
)
TERMS = Field(
    "terms",
    "texts",
    "Names of lists of terms, or ids; not given, all of the pair.",
    entries=NAMES,
    distinct=True,
)
WRITE_TO = Field(
    "write_to",
    "text",
    "Name of the memory that confirmed pairs are added to, for good; empty: of none; not "
    "given, the first of the languages that is written to, where the key may write.",
)
TERMS_MODE = Field("terms_mode", "text", "soft, or hard.", "soft", choices=("soft", "hard"))
TERMS_DOMAIN = Field(
    "terms_domain",
    "text",
    "What the texts are about: of a term of several meanings the one whose context or note names "
    "it is taken.",
    "",
)
SRC = Field("src", "text", "The source text.", required=True)
TGT = Field("tgt", "text", "Its translation.", required=True)
PAIR = (SRC, TGT, Field("document", "text", "Where it is from.", default=""))
_NAME = Field("name", "text", "Of the file; its end says of which kind it is.", required=True)
IMPORT = (_NAME,)
EXPORT = (Field("format", "text", "Of the file.", default="tmx", choices=("tmx", "tsv")),)
_OVERWRITE = Field(
    "overwrite",
    "text",
    "Which translations in it are made anew.",
    default="nothing",
    choices=("nothing", "drafts", "all"),
)
_OWN_TRANSLATIONS = Field(
    "own_translations",
    "text",
    "Which of the other translations in it are taken as confirmed.",
    default=Output.own_translations,
    choices=get_args(OwnTranslations),
)
IN_SESSION = (_NAME, _OVERWRITE, _OWN_TRANSLATIONS)
DOCUMENT = (
    _NAME,
    SOURCE,
    TARGET,
    MODEL,
    Field(
        "memories",
        "names",
        "Names with commas between them; not given, all of the pair.",
        entries=NAMES,
        distinct=True,
    ),
    Field(
        "terms",
        "names",
        "Names with commas between them; not given, all of the pair.",
        entries=NAMES,
        distinct=True,
    ),
    TERMS_MODE,
    TERMS_DOMAIN,
    _OVERWRITE,
    _OWN_TRANSLATIONS,
)
GLOSSARY = (
    Field("name", "text", "What it is called.", required=True),
    Field("source", "text", "Language of the terms.", required=True),
    Field("target", "text", "Language of their translations.", required=True),
    Field(
        "entries",
        "objects",
        "The terms.",
        required=True,
        inside=(
            Field("source", "text", "A term.", required=True),
            Field("target", "text", "Its translation.", required=True),
        ),
        entries=ENTRIES,
    ),
)


def pair_of(src: str, tgt: str, document: str) -> Segment:
    """A pair as a memory holds it.

    src: the source.
    tgt: the target.
    document: the name of the document.

    Raises Refused for a pair that a memory cannot hold."""
    try:
        source, target = confirmable(src, tgt)
    except UsageError as error:
        raise wrong(str(error)) from error
    return Segment(source.plain, target.plain, clean_name(document), origin="server")


async def segment(service: Service, call: ApiRequest) -> Any:
    """A segment of a memory."""
    memory, id = _segment_of(service, call)
    return _record(await service.in_thread(lambda: memories_.segment(memory, id)))


async def edit(service: Service, call: ApiRequest) -> Any:
    """Corrects a segment of a memory; it is on disk when this is answered."""
    fields = read(call.body, PAIR)
    service.check_lengths((fields["src"], fields["tgt"]))
    memory, id = _segment_of(service, call)
    new = pair_of(fields["src"], fields["tgt"], fields["document"])

    def changed(old: Segment) -> Segment:
        return replace(old, src=new.src, tgt=new.tgt, document=new.document or old.document)

    return _record(await service.write(lambda: memories_.edited(memory, id, changed)))


async def delete(service: Service, call: ApiRequest) -> Any:
    """Deletes a segment of a memory, for good."""
    memory, id = _segment_of(service, call)
    await service.write(lambda: memories_.deleted(memory, id))
    return Response(status_code=204)


def _segment_of(service: Service, call: ApiRequest) -> tuple[Memory, int]:
    memory, id = service.memories.get(call.path["memory"], call.caller), call.path["segment"]
    if not id.isascii() or not id.isdigit() or len(id) > 15:
        raise unknown("there is no such segment")
    return memory, int(id)


def _record(segment: Segment) -> dict[str, Any]:
    names = ("id", "src", "tgt", "document", "origin", "user", "created", "changed")
    return {name: getattr(segment, name) for name in names}


async def import_(service: Service, call: ApiRequest) -> Any:
    """Reads a memory file (TMX, TSV and so on) into a memory, all of it or nothing, as a job."""
    fields = read(call.query, IMPORT)
    memory = service.memories.get(call.path["memory"], call.caller)
    index, document = memory.writable, clean_name(Path(fields["name"]).name.partition(".")[0])
    if index is None:
        raise Refused(403, "read_only", "this memory is not written to")

    def work(path: Path, advance: Advance) -> Steps:
        return files.read_into(index, path, document, advance, service.limits.text)

    return await _job(service, call, "import", {"memory": memory.name}, fields["name"], work)


async def export(service: Service, call: ApiRequest) -> Any:
    """Writes a memory to a file, TMX or TSV, as a job; the job has the file."""
    fields = read(call.body, EXPORT)
    memory = service.memories.get(call.path["memory"], call.caller)
    index = memory.index

    def work(path: Path, advance: Advance) -> Steps:
        languages = index.src_lang, index.tgt_lang
        return files.written_from(index.segments(), languages, path, advance)

    name = f"{memory.name}.{fields['format']}"
    return await _job(service, call, "export", {"memory": memory.name}, name, work)


async def document_through(service: Service, call: ApiRequest) -> Any:
    """Translates a file, of any kind that `tmnmt translate` fills, as a job; the job
    has the same file with translations, all else untouched."""
    fields = read(call.query, DOCUMENT)
    request = DocumentRequest(
        fields["name"],
        fields["source"],
        fields["target"],
        fields["model"],
        fields["memories"],
        fields["terms"],
        fields["terms_mode"] == "hard",
        fields["terms_domain"],
        overwrite=fields["overwrite"],
        own_translations=fields["own_translations"],
    )
    return _started(await start_document(service, call.caller, call.raw, request))


async def document_in_session(service: Service, call: ApiRequest) -> Any:
    """Translates a file as a job, as /v1/documents does, with what is confirmed in a session when
    its segments have their turn. It reads and keeps to what the session does."""
    fields = read(call.query, IN_SESSION)
    open_session = await service.session(call.path["session"], call.caller)
    in_turn = service.in_turn_of(open_session)
    request = DocumentRequest(
        fields["name"],
        overwrite=fields["overwrite"],
        own_translations=fields["own_translations"],
    )
    work = document_work(
        request,
        open_session.model,
        in_turn,
        lambda: service.sessions.confirmed_pairs(open_session),
    )
    return await _job(
        service, call, "document", {"model": open_session.model.name}, fields["name"], work
    )


async def _job(
    service: Service, call: ApiRequest, kind: str, subject: Mapping[str, Any], name: str, work: Work
) -> Any:
    """A job that is begun. Its file has the end of `name`, and nothing else of it."""
    return _started(await start_job(service, call.caller, kind, subject, name, call.raw, work))


def _started(job: Job) -> Response:
    return JSONResponse(job.record, 202)


async def job(service: Service, call: ApiRequest) -> Any:
    """How far a job is, and what came of it."""
    return (await _job_of(service, call)).record


async def job_events(service: Service, call: ApiRequest) -> Any:
    """How far a job is, told as server-sent events: progress whenever it is further, then done or
    failed, each with the job; or error."""
    first = await _job_of(service, call)
    return event_stream(of_job(first, lambda: _job_of(service, call), lambda: service.ready))


async def _job_of(service: Service, call: ApiRequest) -> Job:
    return await service.write(lambda: service.jobs.get(call.path["job"], call.caller))


async def job_file(service: Service, call: ApiRequest) -> Any:
    """The file that a job has made."""
    id = call.path["job"]
    if (await _job_of(service, call)).kind == "export":
        call.caller.check("export")
    content = await service.write(lambda: service.jobs.file(id, call.caller))
    return Response(content, media_type="application/octet-stream", headers=SAVED)


async def job_delete(service: Service, call: ApiRequest) -> Any:
    """Forgets a job and its file; one under way ends. What it has added stays."""
    id = call.path["job"]
    await service.write(lambda: service.jobs.delete(id, call.caller))
    return Response(status_code=204)


async def terms(service: Service, call: ApiRequest) -> Any:
    """The lists of terms that this key sees, and its glossaries."""
    listed = [
        {"name": name, "source": pair[0].code, "target": pair[1].code, "terms": count}
        for name, pair, count in service.terms.listed(call.caller)
    ]
    glossaries = await service.write(lambda: service.terms.glossaries(call.caller))
    return {"terms": listed, "glossaries": [_glossary(glossary) for glossary in glossaries]}


async def add_terms(service: Service, call: ApiRequest) -> Any:
    """Makes a glossary of a pair of languages, for every key of this tenant."""
    name, dictionary = await service.in_thread(lambda: _dictionary(call.body))
    return _glossary(
        await service.write(lambda: service.terms.make(name, [dictionary], call.caller))
    )


def _dictionary(values: Mapping[str, Any]) -> tuple[str, Dictionary]:
    """The name of a glossary, and what it holds. Raises Refused."""
    fields = read(values, GLOSSARY)
    source, target = language(fields["source"]).code, language(fields["target"]).code
    entries = entries_of((entry["source"], entry["target"]) for entry in fields["entries"])
    return clean_name(fields["name"])[:MOST_NAME], Dictionary(source, target, entries)


async def delete_terms(service: Service, call: ApiRequest) -> Any:
    """Deletes a glossary."""
    id = call.path["glossary"]
    await service.write(lambda: service.terms.delete(id, call.caller))
    return Response(status_code=204)


def _glossary(glossary: Glossary) -> dict[str, Any]:
    pairs = [
        {"source": dictionary.source, "target": dictionary.target, "terms": len(dictionary.entries)}
        for dictionary in glossary.dictionaries
    ]
    return {
        "id": glossary.id,
        "name": glossary.name,
        "made": glossary.created,
        "dictionaries": pairs,
    }


_SEGMENT, _JOB = "/v1/memories/{memory}/segments/{segment}", "/v1/jobs/{job}"
_STORED = RouteAnswer(answers.StoredSegment)
_STARTED = RouteAnswer(answers.JobRecord, 202)
_JOB_EVENTS = dict.fromkeys(("progress", "done", "failed"), answers.JobRecord)
MANAGED = (
    Route("GET", _SEGMENT, segment, "export", answer=_STORED),
    Route("PUT", _SEGMENT, edit, "write", PAIR, answer=_STORED),
    Route("DELETE", _SEGMENT, delete, "write", answer=EMPTY),
    Route("POST", "/v1/memories/{memory}/import", import_, "write", IMPORT, True, answer=_STARTED),
    Route("POST", "/v1/memories/{memory}/export", export, "export", EXPORT, answer=_STARTED),
    Route("POST", "/v1/documents", document_through, "translate", DOCUMENT, True, answer=_STARTED),
    Route(
        "POST",
        "/v1/sessions/{session}/documents",
        document_in_session,
        "translate",
        IN_SESSION,
        True,
        answer=_STARTED,
    ),
    Route("GET", _JOB, job, "read", answer=RouteAnswer(answers.JobRecord)),
    Route("DELETE", _JOB, job_delete, "read", answer=EMPTY),
    Route(
        "GET",
        f"{_JOB}/events",
        job_events,
        "read",
        answer=RouteAnswer({**_JOB_EVENTS, "error": answers.Error}, media=EVENTS),
    ),
    Route("GET", f"{_JOB}/file", job_file, "read", answer=FILE),
    Route("GET", "/v1/terms", terms, "read", answer=RouteAnswer(answers.TermLists)),
    Route(
        "POST",
        "/v1/terms",
        add_terms,
        "translate",
        GLOSSARY,
        keeps=True,
        answer=RouteAnswer(answers.GlossaryRecord),
    ),
    Route("DELETE", "/v1/terms/{glossary}", delete_terms, "translate", answer=EMPTY),
)
