"""Memories of ModernMT: by their places, filled from files, and which of them are near a text.

A memory has its place among those of the server, from 1, as its id."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tmnmt.segments import Match, Segment
from tmnmt.serve import files
from tmnmt.serve import memories as memories_
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.api_resources import pair_of
from tmnmt.serve.document_jobs import start_job
from tmnmt.serve.fields import NAMES, Field, read
from tmnmt.serve.http_error import Refused, unknown, wrong
from tmnmt.serve.jobs import Advance, Steps
from tmnmt.serve.languages import language
from tmnmt.serve.markup import markup
from tmnmt.serve.memories import Memory
from tmnmt.serve.service import Service
from tmnmt.serve.storage.records import Job

COMPRESSION = Field("compression", "text", "Of the file.", choices=("gzip",))
CONTEXT = (
    Field("source", "text", "Code of a language.", default=""),
    Field("targets", "names", "Codes of languages.", required=True, entries=NAMES),
    Field("text", "text", "The text, where no file has it.", default=""),
    Field("hints", "names", "Ids of memories; others are left out.", default=[], entries=NAMES),
    Field("limit", "whole", "Memories of a vector.", default=10, minimum=1, maximum=NAMES),
    COMPRESSION,
)
PAIR = (
    Field("source", "text", "Code of a language.", required=True),
    Field("target", "text", "Code of a language.", required=True),
    Field("sentence", "text", "The source text.", required=True),
    Field("translation", "text", "Its translation.", required=True),
    Field("tuid", "text", "The id that adding a pair gave; others are not served."),
)
_LOWEST = 0.3  # fuzzy score of what counts as near
_DIGITS = 4  # of the scores of a vector
ID = re.compile(r"\d{1,6}")
PAIR_ID = re.compile(r"(\d{1,6})-(\d{1,15})")


def memory_of(service: Service, id: str, call: ApiRequest) -> tuple[int, Memory]:
    """A memory and its place.

    service: what the server serves.
    id: the id that the client gives.
    call: the request.

    Raises Refused for one that is not there, or not for this key."""
    numbered = dict(enumerate(service.memories, 1))
    memory = numbered.get(int(id)) if ID.fullmatch(id) else None
    if memory is None or not call.caller.sees(memory.name):
        raise unknown("there is no such memory")
    return int(id), memory


async def add(service: Service, call: ApiRequest) -> dict[str, Any]:
    """Adds a pair, or begins to read a TMX file."""
    if call.file is not None:
        return await _import(service, call, call.file.content)
    fields = read(call.values, PAIR, strict=False)
    if fields["tuid"] is not None:
        raise wrong("tuid is not served: pairs have ids that the memory gives")
    number, memory = memory_of(service, call.path["id"], call)
    pair = language(fields["source"]), language(fields["target"])
    destination = service.memories.writable(memory.name, pair, call.caller)
    segment = pair_of(fields["sentence"], fields["translation"], "")
    (id,) = await service.add(destination, [segment])
    return _added(number, id)


async def replace_pair(service: Service, call: ApiRequest) -> dict[str, Any]:
    """Corrects a pair that was added; its `tuid` is the id that this gave."""
    fields = read(call.values, PAIR, strict=False)
    number, memory = memory_of(service, call.path["id"], call)
    match = PAIR_ID.fullmatch(fields["tuid"] or "")
    if match is None or int(match[1]) != number:
        raise wrong("tuid is to be the id that was given when the pair was added")
    service.check_lengths((fields["sentence"], fields["translation"]))
    new = pair_of(fields["sentence"], fields["translation"], "")

    def changed(old: Segment) -> Segment:
        return replace(old, src=new.src, tgt=new.tgt)

    await service.write(lambda: memories_.edited(memory, int(match[2]), changed))
    return _added(number, int(match[2]))


def _added(number: int, id: int) -> dict[str, Any]:
    """The job that has added a pair, which is done at once."""
    return {"id": f"{number}-{id}", "memory": number, "size": 1, "progress": 1}


async def _import(service: Service, call: ApiRequest, content: bytes) -> dict[str, Any]:
    number, memory = memory_of(service, call.path["id"], call)
    index = memory.writable
    if index is None:
        raise Refused(403, "forbidden", "this memory is not written to")
    content = unpacked(service, call, content)

    def work(path: Path, advance: Advance) -> Steps:
        return files.read_into(index, path, "ModernMT", advance, service.limits.text)

    subject = {"memory": memory.name}
    name = "memory.tmx"
    job = await start_job(service, call.caller, "import", subject, name, content, work)
    return import_record(job, number)


def import_record(job: Job, number: int) -> dict[str, Any]:
    """How far an import is.

    job: the job. That it has failed is told by `import_status`, however early it does.
    number: the place of the memory."""
    is_done = job.state == "done"
    progress = 1.0 if is_done else min(job.done / (job.total or 1), 0.99)
    size = job.result.get("added", 0)
    return {"id": job.id, "memory": number, "size": size, "progress": progress}


async def import_status(service: Service, call: ApiRequest) -> dict[str, Any]:
    """How far the import of a file is. Raises Refused where it has failed."""
    job = await service.write(lambda: service.jobs.get(call.path["id"], call.caller))
    names = [memory.name for memory in service.memories]
    if job.kind != "import" or job.parameters.get("memory") not in names:
        raise unknown("there is no such job")
    if job.state == "failed":
        raise wrong(str(job.result["error"]))
    return import_record(job, 1 + names.index(str(job.parameters["memory"])))


def unpacked(service: Service, call: ApiRequest, content: bytes) -> bytes:
    """A file as it was before it was packed, where the request says that it is.

    service: what the server serves.
    call: the request.
    content: the file.

    Raises Refused for what is not packed, or is too large."""
    if not read(call.values, (COMPRESSION,), strict=False)["compression"]:
        return content
    reader, limit = zlib.decompressobj(16 + zlib.MAX_WBITS), service.limits.file
    try:
        plain = reader.decompress(content, limit)
    except zlib.error as error:
        raise wrong("the file is not packed by gzip") from error
    if reader.unconsumed_tail:
        raise Refused(413, "too_large", f"the file may have {limit:,} bytes")
    if not reader.eof:
        raise wrong("the file does not come to its end")
    return plain


async def context_vector(service: Service, call: ApiRequest) -> dict[str, Any]:
    """How near each memory is to a text, by target language: the mean fuzzy score of the best match
    of each line, from 0 to 1."""
    fields = read(call.values, CONTEXT, strict=False)
    text = fields["text"]
    if call.file is not None:
        content = await service.in_thread(lambda: unpacked(service, call, _content(call)))
        text = _decoded(content)
    lines = [str(line) for line in markup(text, "text").sources]
    if not lines:
        raise wrong("text or content is needed: a text that is compared with the memories")
    service.check_size(lines)
    vectors = {}
    for code in fields["targets"]:
        memories = _memories(service, call, fields["source"], code, fields["hints"])
        scores = [(await _nearness(service, memory, lines), id) for id, memory in memories]
        best = sorted((score, -id) for score, id in scores if score > 0)[::-1]
        vectors[code] = ",".join(f"{-id}:{score}" for score, id in best[: fields["limit"]])
    return {"source": fields["source"], "vectors": vectors}


def _content(call: ApiRequest) -> bytes:
    return call.file.content if call.file is not None else b""


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong("content is no UTF-8") from error


def _memories(
    service: Service, call: ApiRequest, source: str, target: str, hints: Sequence[str]
) -> list[tuple[int, Memory]]:
    """The memories of a pair of languages with their ids. Raises Refused for a hint that is none,
    and for languages that are not served."""
    languages = service.model(source, target).languages
    selected = service.memories.select(None, languages, call.caller)
    hinted = {memory_of(service, id, call)[0] for id in hints}
    return [
        (number, memory)
        for number, memory in enumerate(service.memories, 1)
        if memory in selected and (not hinted or number in hinted)
    ]


async def _nearness(service: Service, memory: Memory, lines: Sequence[str]) -> float:
    results: Sequence[Sequence[Match]] = await service.search([memory], lines, 1, _LOWEST)
    best = [max((match.score for match in matches), default=0.0) for matches in results]
    return round(sum(best) / len(best), _DIGITS)
