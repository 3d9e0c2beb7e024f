"""The part of the own interface that keeps what lies on the server: segments of memories, files
into and out of them, documents, jobs, and terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse, Response

from tmnmt.engine.confirmed import Done, confirmable
from tmnmt.errors import UsageError
from tmnmt.formats.clean import clean_name
from tmnmt.segments import Segment
from tmnmt.serve import files
from tmnmt.serve import memories as memories_
from tmnmt.serve.asked import Asked
from tmnmt.serve.events import of_job, sent
from tmnmt.serve.fields import ENTRIES, NAMES, Field, read
from tmnmt.serve.jobs import Advance, Steps, Work
from tmnmt.serve.languages import language
from tmnmt.serve.memories import Memory
from tmnmt.serve.refused import Refused, unknown, wrong
from tmnmt.serve.routes import Route
from tmnmt.serve.served_model import Model
from tmnmt.serve.service import InTurn, Service
from tmnmt.serve.storage.records import Dictionary, Glossary, Job
from tmnmt.serve.terms import entries_of

MOST_NAME = 200  # characters of a name that is told
SAVED = {"Content-Disposition": "attachment"}

SOURCE = Field("source", "text", "Language of the texts; not given, the only one.", default="")
TARGET = Field("target", "text", "Language wanted; not given, the only one.", default="")
MODEL = Field("model", "text", "Its name; not given, the first of the languages.", default="")
TERMS_MODE = Field("terms_mode", "text", "soft, or hard.", "soft", choices=("soft", "hard"))
SRC = Field("src", "text", "The source text.", needed=True)
TGT = Field("tgt", "text", "Its translation.", needed=True)
PAIR = (SRC, TGT, Field("document", "text", "Where it is from.", default=""))
_NAME = Field("name", "text", "Of the file; its end says of which kind it is.", needed=True)
IMPORT = (_NAME,)
EXPORT = (Field("format", "text", "Of the file.", default="tmx", choices=("tmx", "tsv")),)
_OVERWRITE = Field(
    "overwrite",
    "text",
    "Which translations in it are made anew.",
    default="nothing",
    choices=("nothing", "drafts", "all"),
)
IN_SESSION = (_NAME, _OVERWRITE)
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
    _OVERWRITE,
)
GLOSSARY = (
    Field("name", "text", "What it is called.", needed=True),
    Field("source", "text", "Language of the terms.", needed=True),
    Field("target", "text", "Language of their translations.", needed=True),
    Field(
        "entries",
        "objects",
        "The terms.",
        needed=True,
        inside=(
            Field("source", "text", "A term.", needed=True),
            Field("target", "text", "Its translation.", needed=True),
        ),
        entries=ENTRIES,
    ),
)


def pair_of(src: str, tgt: str, document: str) -> Segment:
    try:
        source, target = confirmable(src, tgt)
    except UsageError as error:
        raise wrong(str(error)) from error
    return Segment(source.plain, target.plain, clean_name(document), origin="server")


async def segment(service: Service, asked: Asked) -> Any:
    """A segment of a memory."""
    memory, id = _segment_of(service, asked)
    return _record(await service.in_thread(lambda: memories_.segment(memory, id)))


async def edit(service: Service, asked: Asked) -> Any:
    """Corrects a segment of a memory; it is on disk when this is answered."""
    fields = read(asked.body, PAIR)
    service.check_lengths((fields["src"], fields["tgt"]))
    memory, id = _segment_of(service, asked)
    new = pair_of(fields["src"], fields["tgt"], fields["document"])

    def changed(old: Segment) -> Segment:
        return replace(old, src=new.src, tgt=new.tgt, document=new.document or old.document)

    return _record(await service.written(lambda: memories_.edited(memory, id, changed)))


async def delete(service: Service, asked: Asked) -> Any:
    """Deletes a segment of a memory, for good."""
    memory, id = _segment_of(service, asked)
    await service.written(lambda: memories_.deleted(memory, id))
    return Response(status_code=204)


def _segment_of(service: Service, asked: Asked) -> tuple[Memory, int]:
    memory, id = service.memories.get(asked.path["memory"], asked.caller), asked.path["segment"]
    if not id.isascii() or not id.isdigit() or len(id) > 15:
        raise unknown("there is no such segment")
    return memory, int(id)


def _record(segment: Segment) -> dict[str, Any]:
    names = ("id", "src", "tgt", "document", "origin", "user", "created", "changed")
    return {name: getattr(segment, name) for name in names}


async def import_(service: Service, asked: Asked) -> Any:
    """Reads a memory file (TMX, TSV and so on) into a memory, all of it or nothing, as a job."""
    fields = read(asked.query, IMPORT)
    memory = service.memories.get(asked.path["memory"], asked.caller)
    index, document = memory.writable, clean_name(Path(fields["name"]).name.partition(".")[0])
    if index is None:
        raise Refused(403, "read_only", "this memory is not written to")

    def work(path: Path, advance: Advance) -> Steps:
        return files.read_into(index, path, document, advance, service.limits.text)

    return await _job(service, asked, "import", {"memory": memory.name}, fields["name"], work)


async def export(service: Service, asked: Asked) -> Any:
    """Writes a memory to a file, TMX or TSV, as a job; the job has the file."""
    fields = read(asked.body, EXPORT)
    memory = service.memories.get(asked.path["memory"], asked.caller)
    index = memory.index

    def work(path: Path, advance: Advance) -> Steps:
        languages = index.src_lang, index.tgt_lang
        return files.written_from(index.segments(), languages, path, advance)

    name = f"{memory.name}.{fields['format']}"
    return await _job(service, asked, "export", {"memory": memory.name}, name, work)


async def document_through(service: Service, asked: Asked) -> Any:
    """Translates a file (XLIFF, PO, TMX, HTML, Markdown, JSON, Java properties), as a job; the job
    has the same file with translations, all else untouched."""
    fields = read(asked.query, DOCUMENT)
    model = service.model(fields["source"], fields["target"], fields["model"])
    hard = fields["terms_mode"] == "hard"
    given = service.given(model, asked.caller, fields["memories"], None, fields["terms"], hard)
    in_turn = await service.in_turn(model, asked.caller, given)
    return await _through(service, asked, fields, model, in_turn)


async def document_in_session(service: Service, asked: Asked) -> Any:
    """Translates a file as a job, as /v1/documents does, with what is confirmed in a session when
    its segments have their turn. It reads and keeps to what the session does."""
    fields = read(asked.query, IN_SESSION)
    one = await service.session(asked.path["session"], asked.caller)
    in_turn = service.in_turn_of(one)
    return await _through(
        service, asked, fields, one.model, in_turn, lambda: service.sessions.done(one)
    )


async def _through(
    service: Service,
    asked: Asked,
    fields: Mapping[str, Any],
    model: Model,
    translated: InTurn,
    confirmed: Callable[[], Sequence[Done]] = tuple,
) -> Any:
    languages = model.translator.src_lang, model.translator.tgt_lang

    def work(path: Path, advance: Advance) -> Steps:
        overwrite = fields["overwrite"]
        return files.document_through(path, languages, overwrite, translated, advance, confirmed)

    return await _job(service, asked, "document", {"model": model.name}, fields["name"], work)


async def _job(
    service: Service, asked: Asked, kind: str, about: Mapping[str, Any], name: str, work: Work
) -> Any:
    """A job that is begun. Its file has the end of `name`, and nothing else of it."""

    def begun() -> dict[str, Any]:
        given = {**about, "file": clean_name(name)[:MOST_NAME]}
        id = service.jobs.make(kind, given, asked.caller)
        service.jobs.start(id, asked.caller.tenant, asked.raw, name, work)
        return service.jobs.get(id, asked.caller).record

    return JSONResponse(await service.written(begun), 202)


async def job(service: Service, asked: Asked) -> Any:
    """How far a job is, and what came of it."""
    return (await _job_of(service, asked)).record


async def job_events(service: Service, asked: Asked) -> Any:
    """How far a job is, told as server-sent events: progress whenever it is further, then done or
    failed, each with the job; or error."""
    first = await _job_of(service, asked)
    return sent(of_job(first, lambda: _job_of(service, asked), lambda: service.ready))


async def _job_of(service: Service, asked: Asked) -> Job:
    return await service.written(lambda: service.jobs.get(asked.path["job"], asked.caller))


async def job_file(service: Service, asked: Asked) -> Any:
    """The file that a job has made."""
    id = asked.path["job"]
    if (await _job_of(service, asked)).kind == "export":
        asked.caller.check("export")
    made = await service.written(lambda: service.jobs.file(id, asked.caller))
    return Response(made, media_type="application/octet-stream", headers=SAVED)


async def job_delete(service: Service, asked: Asked) -> Any:
    """Forgets a job and its file; one under way ends. What it has added stays."""
    id = asked.path["job"]
    await service.written(lambda: service.jobs.delete(id, asked.caller))
    return Response(status_code=204)


async def terms(service: Service, asked: Asked) -> Any:
    """The lists of terms that this key sees, and its glossaries."""
    listed = [
        {"name": name, "source": pair[0].code, "target": pair[1].code, "terms": count}
        for name, pair, count in service.terms.listed(asked.caller)
    ]
    made = await service.written(lambda: service.terms.glossaries(asked.caller))
    return {"terms": listed, "glossaries": [_glossary(one) for one in made]}


async def add_terms(service: Service, asked: Asked) -> Any:
    """Makes a glossary of a pair of languages, for every key of this tenant."""
    name, dictionary = await service.in_thread(lambda: _dictionary(asked.body))
    return _glossary(
        await service.written(lambda: service.terms.make(name, [dictionary], asked.caller))
    )


def _dictionary(values: Mapping[str, Any]) -> tuple[str, Dictionary]:
    """The name of a glossary, and what it holds. Raises Refused."""
    fields = read(values, GLOSSARY)
    source, target = language(fields["source"]).code, language(fields["target"]).code
    entries = entries_of((one["source"], one["target"]) for one in fields["entries"])
    return clean_name(fields["name"])[:MOST_NAME], Dictionary(source, target, entries)


async def delete_terms(service: Service, asked: Asked) -> Any:
    """Deletes a glossary."""
    id = asked.path["glossary"]
    await service.written(lambda: service.terms.delete(id, asked.caller))
    return Response(status_code=204)


def _glossary(one: Glossary) -> dict[str, Any]:
    pairs = [
        {"source": each.source, "target": each.target, "terms": len(each.entries)}
        for each in one.dictionaries
    ]
    return {"id": one.id, "name": one.name, "made": one.made, "dictionaries": pairs}


MANAGED = (
    Route("GET", "/v1/memories/{memory}/segments/{segment}", segment, "export"),
    Route("PUT", "/v1/memories/{memory}/segments/{segment}", edit, "write", PAIR),
    Route("DELETE", "/v1/memories/{memory}/segments/{segment}", delete, "write"),
    Route("POST", "/v1/memories/{memory}/import", import_, "write", IMPORT, True),
    Route("POST", "/v1/memories/{memory}/export", export, "export", EXPORT),
    Route("POST", "/v1/documents", document_through, "translate", DOCUMENT, True),
    Route(
        "POST",
        "/v1/sessions/{session}/documents",
        document_in_session,
        "translate",
        IN_SESSION,
        True,
    ),
    Route("GET", "/v1/jobs/{job}", job, "read"),
    Route("DELETE", "/v1/jobs/{job}", job_delete, "read"),
    Route("GET", "/v1/jobs/{job}/events", job_events, "read", is_stream=True),
    Route("GET", "/v1/jobs/{job}/file", job_file, "read"),
    Route("GET", "/v1/terms", terms, "read"),
    Route("POST", "/v1/terms", add_terms, "translate", GLOSSARY, keeps=True),
    Route("DELETE", "/v1/terms/{glossary}", delete_terms, "translate"),
)
