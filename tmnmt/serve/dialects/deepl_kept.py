"""What DeepL keeps for its users: glossaries, which are lists of terms of the tenant, and
translation memories, which are those that are served: their segments, import and export. A file is
put where the answer to an import says; who knows that address may, as DeepL has it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from tmnmt.formats.clean import clean_name
from tmnmt.segments import Segment
from tmnmt.serve import files
from tmnmt.serve.asked import Asked
from tmnmt.serve.fields import ENTRIES, NAMES, Field, read
from tmnmt.serve.jobs import KEPT, Advance, Steps
from tmnmt.serve.keys import ANYBODY
from tmnmt.serve.languages import language
from tmnmt.serve.managed import MOST_NAME, SAVED
from tmnmt.serve.memories import Memory
from tmnmt.serve.refused import Refused, unknown, wrong
from tmnmt.serve.routes import Route
from tmnmt.serve.service import Service
from tmnmt.serve.storage.records import Dictionary, Glossary, Job
from tmnmt.serve.terms import entries_of

_DICTIONARY = (
    Field("source_lang", "text", "Code of a language.", needed=True),
    Field("target_lang", "text", "Code of a language.", needed=True),
    Field("entries", "lines", "A pair of terms a line.", needed=True, entries=ENTRIES + 1),
    Field("entries_format", "text", "Of the entries.", default="tsv", choices=("tsv", "csv")),
)
_NAMED = Field("name", "text", "What it is called.", needed=True)
_DICTIONARIES = Field(
    "dictionaries",
    "objects",
    "One for a pair of languages.",
    default=[],
    inside=_DICTIONARY,
    entries=NAMES,
)
_RENAMED = Field("name", "text", "What it is called.")
_FILE_NAME = (Field("file_name", "text", "Of the file.", needed=True),)
_MEMORY_NAME = (Field("display_name", "text", "Of a memory."),)
_IMPORT = (
    Field("source_file", "object", "The file, with file_name.", needed=True),
    Field("parameters", "object", "With display_name."),
    *_MEMORY_NAME,
)
_LANGUAGES = _DICTIONARY[:2]
_PAGE = (
    Field("page_size", "whole", "Segments of a page.", default=10, least=1, most=1000),
    Field("page_cursor", "whole", "The id behind which the page begins.", default=0, least=0),
    Field("filter_text", "text", "That a segment has.", default=""),
    Field("filter_case_sensitive", "flag", "Whether case counts.", default=False),
)
_STATES = {"awaiting": "awaiting_input", "waiting": "processing", "working": "processing"}
_STATES |= {"done": "completed", "failed": "failed"}


def dictionary(values: Mapping[str, Any]) -> Dictionary:
    """Raises Refused."""
    fields = read(values, _DICTIONARY, strict=False)
    text = fields["entries"]
    try:
        rows = (
            list(csv.reader(io.StringIO(text), strict=True))
            if fields["entries_format"] == "csv"
            else [line.split("\t") for line in text.splitlines()]
        )
    except csv.Error as error:
        raise wrong("entries are no CSV") from error
    rows = [row for row in rows if any(map(str.strip, row))]
    for number, row in enumerate(rows, 1):
        if len(row) < 2:
            raise wrong(f"entry {number} of a glossary needs a source and a target")
    source, target = _pair(fields)
    return Dictionary(source, target, entries_of((row[0], row[1]) for row in rows))


def _pair(fields: Mapping[str, Any]) -> tuple[str, str]:
    """The codes of the languages as glossaries have them."""
    source, target = (language(fields[name]) for name in ("source_lang", "target_lang"))
    return source.code.lower(), target.code.lower()


def _info(one: Dictionary) -> dict[str, Any]:
    return {
        "source_lang": one.source,
        "target_lang": one.target,
        "entry_count": len(one.entries),
    }


def glossary(one: Glossary) -> dict[str, Any]:
    """As v3 has it."""
    return {
        "glossary_id": one.id,
        "name": one.name,
        "creation_time": one.made,
        "dictionaries": [_info(each) for each in one.dictionaries],
    }


def glossary_of_one(one: Glossary) -> dict[str, Any]:
    """As v2 has it: with one dictionary."""
    head = {"glossary_id": one.id, "name": one.name, "ready": True, "creation_time": one.made}
    return head | _info(one.dictionaries[0])


async def make(service: Service, asked: Asked) -> Any:
    fields = read(asked.values, (_NAMED, _DICTIONARIES), strict=False)
    dictionaries = await service.in_thread(lambda: _dictionaries(fields))
    return JSONResponse(glossary(await _made(service, asked, fields["name"], dictionaries)), 201)


async def make_of_one(service: Service, asked: Asked) -> Any:
    name = read(asked.values, (_NAMED,), strict=False)["name"]
    dictionaries = [await service.in_thread(lambda: dictionary(asked.values))]
    return JSONResponse(glossary_of_one(await _made(service, asked, name, dictionaries)), 201)


async def _made(
    service: Service, asked: Asked, name: str, dictionaries: list[Dictionary]
) -> Glossary:
    if not dictionaries:
        raise wrong("a glossary needs a dictionary")
    name = clean_name(name)[:MOST_NAME]
    return await service.written(lambda: service.terms.make(name, dictionaries, asked.caller))


async def every(service: Service, asked: Asked) -> Any:
    glossaries = await service.written(lambda: service.terms.glossaries(asked.caller))
    return {"glossaries": [glossary(one) for one in glossaries]}


async def every_of_one(service: Service, asked: Asked) -> Any:
    glossaries = await service.written(lambda: service.terms.glossaries(asked.caller))
    return {
        "glossaries": [glossary_of_one(one) for one in glossaries if len(one.dictionaries) == 1]
    }


async def get(service: Service, asked: Asked) -> Any:
    return glossary(await _glossary(service, asked))


async def get_of_one(service: Service, asked: Asked) -> Any:
    glossary = await _glossary(service, asked)
    if len(glossary.dictionaries) != 1:
        raise unknown("there is no such glossary of one pair of languages")
    return glossary_of_one(glossary)


async def _glossary(service: Service, asked: Asked) -> Glossary:
    id = asked.path["id"]
    return await service.written(lambda: service.terms.get(id, asked.caller))


async def change(service: Service, asked: Asked) -> Any:
    """Another name, more dictionaries, or more entries in those that there are."""
    fields = read(asked.body, (_RENAMED, _DICTIONARIES), strict=False)
    own = (await _glossary(service, asked)).dictionaries
    there = {(one.source, one.target): one for one in own}

    def extended() -> list[Dictionary]:
        put = []
        for one in _dictionaries(fields):
            old = there.get((one.source, one.target))
            entries = entries_of([*(old.entries if old else ()), *one.entries])
            put.append(Dictionary(one.source, one.target, entries))
        return put

    put = await service.in_thread(extended)
    return glossary(await _changed(service, asked, fields["name"], put))


def _dictionaries(fields: Mapping[str, Any]) -> list[Dictionary]:
    return [dictionary(one) for one in fields["dictionaries"]]


async def replace_dictionary(service: Service, asked: Asked) -> Any:
    one = await service.in_thread(lambda: dictionary(asked.body))
    await _changed(service, asked, None, [one])
    return _info(one)


async def _changed(
    service: Service, asked: Asked, name: str | None, put: list[Dictionary]
) -> Glossary:
    id, said = asked.path["id"], clean_name(name)[:MOST_NAME] if name is not None else None
    return await service.written(lambda: service.terms.change(id, asked.caller, said, put))


async def delete(service: Service, asked: Asked) -> Any:
    id = asked.path["id"]
    await service.written(lambda: service.terms.delete(id, asked.caller))
    return Response(status_code=204)


async def delete_dictionary(service: Service, asked: Asked) -> Any:
    pair, id = _pair(read(asked.query, _LANGUAGES, strict=False)), asked.path["id"]
    await service.written(lambda: service.terms.delete_dictionary(id, *pair, asked.caller))
    return Response(status_code=204)


def _lines(one: Dictionary) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in one.entries)


async def entries_of_one(service: Service, asked: Asked) -> Any:
    (one, *_) = (await _glossary(service, asked)).dictionaries or (None,)
    if one is None:
        raise unknown("there is no such dictionary")
    return PlainTextResponse(_lines(one), media_type="text/tab-separated-values")


async def entries(service: Service, asked: Asked) -> Any:
    fields = read(asked.query, _LANGUAGES, strict=False)
    pair = _pair(fields)
    rows = [
        {
            "source_lang": one.source,
            "target_lang": one.target,
            "entries": _lines(one),
            "entries_format": "tsv",
        }
        for one in (await _glossary(service, asked)).dictionaries
        if (one.source, one.target) == pair
    ]
    if not rows:
        raise unknown("there is no such dictionary")
    return {"dictionaries": rows}


async def pairs(service: Service, asked: Asked) -> Any:
    languages = dict.fromkeys(model.languages for model in service.models)
    listed = [
        {"source_lang": source.language, "target_lang": target.language}
        for source, target in languages
    ]
    return {"supported_languages": listed}


async def segments(service: Service, asked: Asked) -> Any:
    """A page of a memory; its cursor is the id of its last segment."""
    fields = read(asked.query, _PAGE, strict=False)
    memory = service.memories.get(asked.path["id"], asked.caller)

    def meant() -> Iterator[Segment]:
        text, exactly = fields["filter_text"], fields["filter_case_sensitive"]
        text = text if exactly else text.lower()
        for one in memory.index.segments():
            both = f"{one.src}\n{one.tgt}"
            if one.id > fields["page_cursor"] and text in (both if exactly else both.lower()):
                yield one

    page = await service.in_thread(lambda: list(islice(meant(), fields["page_size"] + 1)))
    shown = page[: fields["page_size"]]
    answer: dict[str, Any] = {"segments": [_segment(memory, one) for one in shown]}
    answer["segment_count"] = len(shown)
    if len(page) > len(shown):
        answer["next_page_cursor"] = str(shown[-1].id)
    return answer


def _segment(memory: Memory, one: Segment) -> dict[str, Any]:
    times = {"creation_time": one.created or None, "updated_time": one.changed or None}
    target = {
        "target_segment_id": str(one.id),
        "target_language": memory.languages[1].code,
        "target_text": one.tgt,
    }
    source = {"source_segment_id": str(one.id), "source_text": one.src}
    return source | times | {"targets": [target | times]}


async def import_(service: Service, asked: Asked) -> Any:
    """Into the memory of the display name, else the first that is written to: none is made."""
    fields = read(asked.body, _IMPORT, strict=False)
    file = read(fields["source_file"], _FILE_NAME, strict=False)["file_name"]
    named = clean_name(file)[:MOST_NAME]
    to = read(fields["parameters"] or fields, _MEMORY_NAME, strict=False)["display_name"]
    memories = [one for one in service.memories.of(asked.caller) if one.writable is not None]
    memory = next((one for one in memories if to in (None, one.name)), None)
    if memory is None:
        raise Refused(403, "read_only", "there is no memory of this name that is written to")
    about = {"memory": memory.name, "file": named}
    id = await service.written(lambda: service.jobs.make("import", about, asked.caller, "awaiting"))
    until = datetime.fromtimestamp(datetime.now(UTC).timestamp() + KEPT, UTC).isoformat()
    url = f"{_address(service, asked)}/deepl/v3/translation_memories/files/{id}"
    return JSONResponse({"job_id": id, "upload_url": url, "expires_at": until}, 201)


async def awaited(service: Service, asked: Asked) -> Any:
    """Raises Refused where no import awaits this file."""
    id = asked.path["job"]
    if (await service.written(lambda: service.jobs.get(id, None))).state != "awaiting":
        raise _taken()


def _taken() -> Refused:
    return Refused(409, "taken", "the file of this import was put here before")


async def upload(service: Service, asked: Asked) -> Any:
    """The file of an import."""
    id = asked.path["job"]

    def begun() -> None:
        job = service.jobs.get(id, None)
        to, name = job.given.get("memory"), str(job.given["file"])
        memory = next((one for one in service.memories if one.name == to), None)
        index = memory.writable if memory is not None else None
        if index is None:
            raise Refused(409, "not_served", "the memory of this import is not written to now")
        if not service.jobs.take(id):
            raise _taken()
        document = name.partition(".")[0]

        def work(path: Path, advance: Advance) -> Steps:
            return files.read_into(index, path, document, advance, service.limits.text)

        service.jobs.start(id, ANYBODY.tenant, asked.raw, name, work)  # it has no key

    await service.written(begun)
    return Response(status_code=200)


async def export(service: Service, asked: Asked) -> Any:
    memory = service.memories.get(asked.path["id"], asked.caller)
    index, name = memory.index, f"{memory.name}.tmx"

    def work(path: Path, advance: Advance) -> Steps:
        languages = index.src_lang, index.tgt_lang
        return files.written_from(index.segments(), languages, path, advance)

    def begun() -> str:
        id = service.jobs.make("export", {"memory": memory.name, "file": name}, asked.caller)
        service.jobs.start(id, asked.caller.tenant, b"", name, work)
        return id

    about = {"parameters": {"translation_memory_id": memory.name}}
    return JSONResponse({"job_id": await service.written(begun), **about}, 202)


async def job(service: Service, asked: Asked) -> Any:
    id = asked.path["job"]
    job = await service.written(lambda: service.jobs.get(id, asked.caller))
    return _job(job, f"{_address(service, asked)}/deepl/v3/translation_memories/files/{id}")


def _address(service: Service, asked: Asked) -> str:
    return service.site.address(asked.headers, asked.scheme, asked.server)


def _job(job: Job, url: str) -> dict[str, Any]:
    result: dict[str, Any] = {"status": _STATES[job.state]}
    result["translation_memory_id"] = job.given.get("memory")
    if job.state == "awaiting":
        result["status_metadata"] = {"required_action": "upload_file"}
    if job.state == "done" and job.has_file:
        result["download_url"] = url
    if "skipped" in job.result:
        result["skipped_segment_count"] = job.result["skipped"]
    if "error" in job.result:
        result["error"] = {"message": job.result["error"]}
    time = datetime.fromtimestamp(job.changed, UTC).isoformat()
    return {
        "job_id": job.id,
        "operation": job.kind,
        "product": "translation_memory",
        "parameters": {"translation_memory_id": job.given.get("memory")},
        "creation_time": time,
        "updated_time": time,
        "results": [result],
    }


async def download(service: Service, asked: Asked) -> Any:
    """What an export has made."""
    id = asked.path["job"]
    made = await service.written(lambda: service.jobs.file(id, None))
    return Response(made, media_type="application/octet-stream", headers=SAVED)


async def not_deleted(service: Service, asked: Asked) -> Any:
    service.memories.get(asked.path["id"], asked.caller)
    raise Refused(403, "forbidden", "memories are made and deleted where the server runs")


_MEMORIES, _FILE = "/v3/translation_memories", "/v3/translation_memories/files/{job}"
ROUTES = (
    Route("GET", "/v2/glossary-language-pairs", pairs, "read"),
    Route("GET", "/v2/glossaries", every_of_one, "read"),
    Route("POST", "/v2/glossaries", make_of_one, fields=(_NAMED, *_DICTIONARY), keeps=True),
    Route("GET", "/v2/glossaries/{id}", get_of_one, "read"),
    Route("GET", "/v2/glossaries/{id}/entries", entries_of_one, "read"),
    Route("DELETE", "/v2/glossaries/{id}", delete),
    Route("GET", "/v3/glossaries", every, "read"),
    Route("POST", "/v3/glossaries", make, fields=(_NAMED, _DICTIONARIES), keeps=True),
    Route("GET", "/v3/glossaries/{id}", get, "read"),
    Route("PATCH", "/v3/glossaries/{id}", change, fields=(_RENAMED, _DICTIONARIES), keeps=True),
    Route("DELETE", "/v3/glossaries/{id}", delete),
    Route("GET", "/v3/glossaries/{id}/entries", entries, "read", _LANGUAGES),
    Route(
        "PUT",
        "/v3/glossaries/{id}/dictionaries",
        replace_dictionary,
        fields=_DICTIONARY,
        keeps=True,
    ),
    Route("DELETE", "/v3/glossaries/{id}/dictionaries", delete_dictionary, fields=_LANGUAGES),
    Route("POST", f"{_MEMORIES}/import", import_, "write", _IMPORT),
    Route("PUT", _FILE, upload, None, is_file=True, check=awaited),
    Route("GET", _FILE, download, None),
    Route("GET", f"{_MEMORIES}/jobs/{{job}}", job, "read"),
    Route("POST", f"{_MEMORIES}/{{id}}/export", export, "export"),
    Route("GET", f"{_MEMORIES}/{{id}}/segments", segments, "export", _PAGE),
    Route("DELETE", f"{_MEMORIES}/{{id}}", not_deleted, "write"),
)
