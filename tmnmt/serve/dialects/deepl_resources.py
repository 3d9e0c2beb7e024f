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
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.api_resources import SAVED
from tmnmt.serve.dialects import dialect_answers as answers
from tmnmt.serve.fields import ENTRIES, MOST_NAME, NAMES, Field, read
from tmnmt.serve.http_error import Refused, unknown, wrong
from tmnmt.serve.jobs import RETENTION, Advance, Steps
from tmnmt.serve.keys import ANYBODY
from tmnmt.serve.languages import language
from tmnmt.serve.memories import Memory
from tmnmt.serve.routes import EMPTY, FILE, Route, RouteAnswer
from tmnmt.serve.service import Service
from tmnmt.serve.storage.records import Dictionary, Glossary, Job
from tmnmt.serve.terms import entries_of

_DICTIONARY = (
    Field("source_lang", "text", "Code of a language.", required=True),
    Field("target_lang", "text", "Code of a language.", required=True),
    Field("entries", "lines", "A pair of terms a line.", required=True, entries=ENTRIES + 1),
    Field("entries_format", "text", "Of the entries.", default="tsv", choices=("tsv", "csv")),
)
_NAME = Field("name", "text", "What it is called.", required=True)
_DICTIONARIES = Field(
    "dictionaries",
    "objects",
    "One for a pair of languages.",
    default=[],
    inside=_DICTIONARY,
    entries=NAMES,
)
_RENAMED = Field("name", "text", "What it is called.")
_FILE_NAME = (Field("file_name", "text", "Of the file.", required=True),)
_MEMORY_NAME = (Field("display_name", "text", "Of a memory."),)
_IMPORT = (
    Field("source_file", "object", "The file, with file_name.", required=True),
    Field("parameters", "object", "With display_name."),
    *_MEMORY_NAME,
)
_LANGUAGES = _DICTIONARY[:2]
_PAGE = (
    Field("page_size", "whole", "Segments of a page.", default=10, minimum=1, maximum=1000),
    Field("page_cursor", "whole", "The id behind which the page begins.", default=0, minimum=0),
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


def _info(dictionary: Dictionary) -> dict[str, Any]:
    return {
        "source_lang": dictionary.source,
        "target_lang": dictionary.target,
        "entry_count": len(dictionary.entries),
    }


def glossary(stored: Glossary) -> dict[str, Any]:
    """As v3 has it."""
    return {
        "glossary_id": stored.id,
        "name": stored.name,
        "creation_time": stored.created,
        "dictionaries": [_info(dictionary) for dictionary in stored.dictionaries],
    }


def glossary_of_one(stored: Glossary) -> dict[str, Any]:
    """As v2 has it: with one dictionary."""
    head = {
        "glossary_id": stored.id,
        "name": stored.name,
        "ready": True,
        "creation_time": stored.created,
    }
    return head | _info(stored.dictionaries[0])


async def make(service: Service, call: ApiRequest) -> Any:
    fields = read(call.values, (_NAME, _DICTIONARIES), strict=False)
    dictionaries = await service.in_thread(lambda: _dictionaries(fields))
    return JSONResponse(
        glossary(await _create_glossary(service, call, fields["name"], dictionaries)), 201
    )


async def make_of_one(service: Service, call: ApiRequest) -> Any:
    name = read(call.values, (_NAME,), strict=False)["name"]
    dictionaries = [await service.in_thread(lambda: dictionary(call.values))]
    return JSONResponse(
        glossary_of_one(await _create_glossary(service, call, name, dictionaries)), 201
    )


async def _create_glossary(
    service: Service, call: ApiRequest, name: str, dictionaries: list[Dictionary]
) -> Glossary:
    if not dictionaries:
        raise wrong("a glossary needs a dictionary")
    name = clean_name(name)[:MOST_NAME]
    return await service.write(lambda: service.terms.make(name, dictionaries, call.caller))


async def list_glossaries(service: Service, call: ApiRequest) -> Any:
    glossaries = await service.write(lambda: service.terms.glossaries(call.caller))
    return {"glossaries": [glossary(entry) for entry in glossaries]}


async def every_of_one(service: Service, call: ApiRequest) -> Any:
    glossaries = await service.write(lambda: service.terms.glossaries(call.caller))
    return {
        "glossaries": [
            glossary_of_one(entry) for entry in glossaries if len(entry.dictionaries) == 1
        ]
    }


async def get(service: Service, call: ApiRequest) -> Any:
    return glossary(await _glossary(service, call))


async def get_of_one(service: Service, call: ApiRequest) -> Any:
    glossary = await _glossary(service, call)
    if len(glossary.dictionaries) != 1:
        raise unknown("there is no such glossary of one pair of languages")
    return glossary_of_one(glossary)


async def _glossary(service: Service, call: ApiRequest) -> Glossary:
    id = call.path["id"]
    return await service.write(lambda: service.terms.get(id, call.caller))


async def change(service: Service, call: ApiRequest) -> Any:
    """Another name, more dictionaries, or more entries in those that there are."""
    fields = read(call.body, (_RENAMED, _DICTIONARIES), strict=False)
    dictionaries = (await _glossary(service, call)).dictionaries
    pair_index = {(entry.source, entry.target): entry for entry in dictionaries}

    def extended() -> list[Dictionary]:
        extensions = []
        for addition in _dictionaries(fields):
            old = pair_index.get((addition.source, addition.target))
            entries = entries_of([*(old.entries if old else ()), *addition.entries])
            extensions.append(Dictionary(addition.source, addition.target, entries))
        return extensions

    updates = await service.in_thread(extended)
    return glossary(await _changed(service, call, fields["name"], updates))


def _dictionaries(fields: Mapping[str, Any]) -> list[Dictionary]:
    return [dictionary(values) for values in fields["dictionaries"]]


async def replace_dictionary(service: Service, call: ApiRequest) -> Any:
    replacement = await service.in_thread(lambda: dictionary(call.body))
    await _changed(service, call, None, [replacement])
    return _info(replacement)


async def _changed(
    service: Service, call: ApiRequest, name: str | None, dictionaries: list[Dictionary]
) -> Glossary:
    id, new_name = call.path["id"], clean_name(name)[:MOST_NAME] if name is not None else None
    return await service.write(
        lambda: service.terms.change(id, call.caller, new_name, dictionaries)
    )


async def delete(service: Service, call: ApiRequest) -> Any:
    id = call.path["id"]
    await service.write(lambda: service.terms.delete(id, call.caller))
    return Response(status_code=204)


async def delete_dictionary(service: Service, call: ApiRequest) -> Any:
    pair, id = _pair(read(call.query, _LANGUAGES, strict=False)), call.path["id"]
    await service.write(lambda: service.terms.delete_dictionary(id, *pair, call.caller))
    return Response(status_code=204)


def _lines(dictionary: Dictionary) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in dictionary.entries)


async def entries_of_one(service: Service, call: ApiRequest) -> Any:
    (dictionary, *_) = (await _glossary(service, call)).dictionaries or (None,)
    if dictionary is None:
        raise unknown("there is no such dictionary")
    return PlainTextResponse(_lines(dictionary), media_type=_LINES)


async def entries(service: Service, call: ApiRequest) -> Any:
    fields = read(call.query, _LANGUAGES, strict=False)
    pair = _pair(fields)
    rows = [
        {
            "source_lang": dictionary.source,
            "target_lang": dictionary.target,
            "entries": _lines(dictionary),
            "entries_format": "tsv",
        }
        for dictionary in (await _glossary(service, call)).dictionaries
        if (dictionary.source, dictionary.target) == pair
    ]
    if not rows:
        raise unknown("there is no such dictionary")
    return {"dictionaries": rows}


async def pairs(service: Service, call: ApiRequest) -> Any:
    languages = dict.fromkeys(model.languages for model in service.models)
    listed = [
        {"source_lang": source.language, "target_lang": target.language}
        for source, target in languages
    ]
    return {"supported_languages": listed}


async def segments(service: Service, call: ApiRequest) -> Any:
    """A page of a memory; its cursor is the id of its last segment."""
    fields = read(call.query, _PAGE, strict=False)
    memory = service.memories.get(call.path["id"], call.caller)

    def matching_segments() -> Iterator[Segment]:
        text, exactly = fields["filter_text"], fields["filter_case_sensitive"]
        text = text if exactly else text.lower()
        for segment in memory.index.segments():
            pair_text = f"{segment.src}\n{segment.tgt}"
            if segment.id > fields["page_cursor"] and text in (
                pair_text if exactly else pair_text.lower()
            ):
                yield segment

    page = await service.in_thread(
        lambda: list(islice(matching_segments(), fields["page_size"] + 1))
    )
    page_segments = page[: fields["page_size"]]
    answer: dict[str, Any] = {"segments": [_segment(memory, segment) for segment in page_segments]}
    answer["segment_count"] = len(page_segments)
    if len(page) > len(page_segments):
        answer["next_page_cursor"] = str(page_segments[-1].id)
    return answer


def _segment(memory: Memory, segment: Segment) -> dict[str, Any]:
    times = {"creation_time": segment.created or None, "updated_time": segment.changed or None}
    target = {
        "target_segment_id": str(segment.id),
        "target_language": memory.languages[1].code,
        "target_text": segment.tgt,
    }
    source = {"source_segment_id": str(segment.id), "source_text": segment.src}
    return source | times | {"targets": [target | times]}


async def import_(service: Service, call: ApiRequest) -> Any:
    """Into the memory of the display name, else the first that is written to: none is made."""
    fields = read(call.body, _IMPORT, strict=False)
    file = read(fields["source_file"], _FILE_NAME, strict=False)["file_name"]
    file_name = clean_name(file)[:MOST_NAME]
    memory_name = read(fields["parameters"] or fields, _MEMORY_NAME, strict=False)["display_name"]
    memories = [
        candidate
        for candidate in service.memories.visible(call.caller)
        if candidate.writable is not None
    ]
    memory = next(
        (candidate for candidate in memories if memory_name in (None, candidate.name)), None
    )
    if memory is None:
        raise Refused(403, "read_only", "there is no memory of this name that is written to")
    parameters = {"memory": memory.name, "file": file_name}
    id = await service.write(
        lambda: service.jobs.make("import", parameters, call.caller, "awaiting")
    )
    expiry = datetime.fromtimestamp(datetime.now(UTC).timestamp() + RETENTION, UTC).isoformat()
    url = f"{_address(service, call)}/deepl/v3/translation_memories/files/{id}"
    return JSONResponse({"job_id": id, "upload_url": url, "expires_at": expiry}, 201)


async def awaited(service: Service, call: ApiRequest) -> Any:
    """Raises Refused where no import awaits this file."""
    id = call.path["job"]
    if (await service.write(lambda: service.jobs.get(id, None))).state != "awaiting":
        raise _duplicate_upload()


def _duplicate_upload() -> Refused:
    return Refused(409, "taken", "the file of this import was put here before")


async def upload(service: Service, call: ApiRequest) -> Any:
    """The file of an import."""
    id = call.path["job"]

    def start() -> None:
        job = service.jobs.get(id, None)
        memory_name, name = job.parameters.get("memory"), str(job.parameters["file"])
        memory = next(
            (candidate for candidate in service.memories if candidate.name == memory_name), None
        )
        index = memory.writable if memory is not None else None
        if index is None:
            raise Refused(409, "not_served", "the memory of this import is not written to now")
        if not service.jobs.take(id):
            raise _duplicate_upload()
        document = name.partition(".")[0]

        def work(path: Path, advance: Advance) -> Steps:
            return files.read_into(index, path, document, advance, service.limits.text)

        service.jobs.start(id, ANYBODY.tenant, call.raw, name, work)  # it has no key

    await service.write(start)
    return Response(status_code=200)


async def export(service: Service, call: ApiRequest) -> Any:
    memory = service.memories.get(call.path["id"], call.caller)
    index, name = memory.index, f"{memory.name}.tmx"

    def work(path: Path, advance: Advance) -> Steps:
        languages = index.src_lang, index.tgt_lang
        return files.written_from(index.segments(), languages, path, advance)

    def start() -> str:
        id = service.jobs.make("export", {"memory": memory.name, "file": name}, call.caller)
        service.jobs.start(id, call.caller.tenant, b"", name, work)
        return id

    details = {"parameters": {"translation_memory_id": memory.name}}
    return JSONResponse({"job_id": await service.write(start), **details}, 202)


async def job(service: Service, call: ApiRequest) -> Any:
    id = call.path["job"]
    job = await service.write(lambda: service.jobs.get(id, call.caller))
    return _job(job, f"{_address(service, call)}/deepl/v3/translation_memories/files/{id}")


def _address(service: Service, call: ApiRequest) -> str:
    return service.site.address(call.headers, call.scheme, call.server)


def _job(job: Job, url: str) -> dict[str, Any]:
    result: dict[str, Any] = {"status": _STATES[job.state]}
    result["translation_memory_id"] = job.parameters.get("memory")
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
        "parameters": {"translation_memory_id": job.parameters.get("memory")},
        "creation_time": time,
        "updated_time": time,
        "results": [result],
    }


async def download(service: Service, call: ApiRequest) -> Any:
    """What an export has made."""
    id = call.path["job"]
    content = await service.write(lambda: service.jobs.file(id, None))
    return Response(content, media_type="application/octet-stream", headers=SAVED)


async def not_deleted(service: Service, call: ApiRequest) -> Any:
    service.memories.get(call.path["id"], call.caller)
    raise Refused(403, "forbidden", "memories are made and deleted where the server runs")


_MEMORIES, _FILE = "/v3/translation_memories", "/v3/translation_memories/files/{job}"
_LINES = "text/tab-separated-values"
_GLOSSARY = RouteAnswer(answers.DeeplGlossary)
ROUTES = (
    Route(
        "GET", "/v2/glossary-language-pairs", pairs, "read", answer=RouteAnswer(answers.DeeplPairs)
    ),
    Route(
        "GET",
        "/v2/glossaries",
        every_of_one,
        "read",
        answer=RouteAnswer(answers.DeeplPairGlossaries),
    ),
    Route(
        "POST",
        "/v2/glossaries",
        make_of_one,
        fields=(_NAME, *_DICTIONARY),
        keeps=True,
        answer=RouteAnswer(answers.DeeplPairGlossary, 201),
    ),
    Route(
        "GET",
        "/v2/glossaries/{id}",
        get_of_one,
        "read",
        answer=RouteAnswer(answers.DeeplPairGlossary),
    ),
    Route(
        "GET",
        "/v2/glossaries/{id}/entries",
        entries_of_one,
        "read",
        answer=RouteAnswer(str, media=_LINES),
    ),
    Route("DELETE", "/v2/glossaries/{id}", delete, answer=EMPTY),
    Route(
        "GET",
        "/v3/glossaries",
        list_glossaries,
        "read",
        answer=RouteAnswer(answers.DeeplGlossaries),
    ),
    Route(
        "POST",
        "/v3/glossaries",
        make,
        fields=(_NAME, _DICTIONARIES),
        keeps=True,
        answer=RouteAnswer(answers.DeeplGlossary, 201),
    ),
    Route("GET", "/v3/glossaries/{id}", get, "read", answer=_GLOSSARY),
    Route(
        "PATCH",
        "/v3/glossaries/{id}",
        change,
        fields=(_RENAMED, _DICTIONARIES),
        keeps=True,
        answer=_GLOSSARY,
    ),
    Route("DELETE", "/v3/glossaries/{id}", delete, answer=EMPTY),
    Route(
        "GET",
        "/v3/glossaries/{id}/entries",
        entries,
        "read",
        _LANGUAGES,
        answer=RouteAnswer(answers.DeeplDictionaries),
    ),
    Route(
        "PUT",
        "/v3/glossaries/{id}/dictionaries",
        replace_dictionary,
        fields=_DICTIONARY,
        keeps=True,
        answer=RouteAnswer(answers.DeeplDictionary),
    ),
    Route(
        "DELETE",
        "/v3/glossaries/{id}/dictionaries",
        delete_dictionary,
        fields=_LANGUAGES,
        answer=EMPTY,
    ),
    Route(
        "POST",
        f"{_MEMORIES}/import",
        import_,
        "write",
        _IMPORT,
        answer=RouteAnswer(answers.DeeplImport, 201),
    ),
    Route("PUT", _FILE, upload, None, is_file=True, check=awaited, answer=RouteAnswer(None)),
    Route("GET", _FILE, download, None, answer=FILE),
    Route("GET", f"{_MEMORIES}/jobs/{{job}}", job, "read", answer=RouteAnswer(answers.DeeplJob)),
    Route(
        "POST",
        f"{_MEMORIES}/{{id}}/export",
        export,
        "export",
        answer=RouteAnswer(answers.DeeplExport, 202),
    ),
    Route(
        "GET",
        f"{_MEMORIES}/{{id}}/segments",
        segments,
        "export",
        _PAGE,
        answer=RouteAnswer(answers.DeeplSegments),
    ),
    Route("DELETE", f"{_MEMORIES}/{{id}}", not_deleted, "write"),
)
