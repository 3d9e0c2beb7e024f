"""The part of the own interface that the page works with: files as segments and filled, phrases in
memories, and sessions listed, reviewed and written as TMX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from starlette.responses import Response

from tmnmt.config.options import Format
from tmnmt.errors import UsageError
from tmnmt.index.concordance import Occurrence, Phrase
from tmnmt.serve import documents
from tmnmt.serve.asked import Asked
from tmnmt.serve.fields import DOCUMENT as SEGMENTS_OF_DOCUMENT
from tmnmt.serve.fields import Field, read
from tmnmt.serve.managed import MODEL, SAVED, SOURCE, TARGET
from tmnmt.serve.memories import standing
from tmnmt.serve.refused import wrong
from tmnmt.serve.routes import Route
from tmnmt.serve.service import Service

LARGE = 10  # times as many bytes as another request, a document may have

CONCORDANCE = (
    Field("text", "text", "The phrase; a star behind a word stands for any ending.", needed=True),
    Field("in", "text", "Where it is looked for.", default="source", choices=("source", "target")),
    Field("k", "whole", "At most so many pairs.", default=20, least=1, most=100),
)
DOCUMENT = (
    Field("name", "text", "Of the file; its end says of which kind it may be.", default=""),
    Field("content", "text", "The file's bytes as base64.", needed=True),
    SOURCE,
    TARGET,
    MODEL,
    Field(
        "sentences",
        "flag",
        "Cut text into sentences; not given, where it is running text and no list.",
    ),
    Field("format", "text", "text: it is plain text.", choices=get_args(Format)),
)
FILL = (
    *DOCUMENT,
    Field(
        "targets",
        "texts",
        "One for each segment; empty leaves it as it is.",
        needed=True,
        entries=SEGMENTS_OF_DOCUMENT,
    ),
)


async def concordance(service: Service, asked: Asked) -> Any:
    """The newest pairs of a memory that have a phrase, and where in them it stands."""
    fields = read(asked.body, CONCORDANCE)
    memory = service.memories.get(asked.path["memory"], asked.caller)
    service.check_size([fields["text"]])
    try:
        phrase = Phrase(fields["text"], fields["in"])
    except UsageError as error:
        raise wrong(str(error)) from error
    service.counts["searches",] += 1
    occurrences = await service.in_thread(lambda: standing(memory, phrase, fields["k"]))
    return {"query": phrase.text, "in": phrase.side, "matches": list(map(_occurrence, occurrences))}


def _occurrence(one: Occurrence) -> dict[str, Any]:
    names = ("id", "src", "tgt", "document", "changed")
    return {name: getattr(one.segment, name) for name in names} | {"places": one.places}


async def sessions(service: Service, asked: Asked) -> Any:
    """The sessions that this key may use, the latest first."""
    return {"sessions": await service.written(lambda: service.sessions.of(asked.caller))}


async def review(service: Service, asked: Asked) -> Any:
    """What was confirmed in a session against what was suggested before, in order."""
    one = await service.session(asked.path["session"], asked.caller)
    pairs = await service.written(lambda: service.sessions.reviewed(one))
    source, target = one.model.languages
    languages = {"source": source.code, "target": target.code}
    return {"id": one.id, **languages, "segments": [pair.record() for pair in pairs]}


async def tmx(service: Service, asked: Asked) -> Any:
    """What was confirmed in a session as TMX."""
    one = await service.session(asked.path["session"], asked.caller)
    done = await service.written(lambda: service.sessions.done(one))
    pairs = [replace(entry.segment, document=one.given.name) for entry in done if entry.tgt]
    languages = one.model.translator.src_lang, one.model.translator.tgt_lang
    content = await service.in_thread(lambda: documents.tmx(pairs, *languages))
    return Response(content, media_type="application/x-tmx+xml", headers=SAVED)


async def segments(service: Service, asked: Asked) -> Any:
    """The segments of a file: XLIFF, PO, TMX, HTML, Markdown, JSON, Java properties, or text. Codes
    are short tags of XML, such as <g1>…</g1> and <x2/>."""
    sent = _sent(service, read(asked.body, DOCUMENT))
    return await service.in_thread(lambda: documents.segments(sent))


async def fill(service: Service, asked: Asked) -> Any:
    """The same file with targets, one for every segment, empty where it stays as it is."""
    fields = read(asked.body, FILL)
    sent = _sent(service, fields)
    content = await service.in_thread(lambda: documents.filled(sent, fields["targets"]))
    return Response(content, media_type="application/octet-stream", headers=SAVED)


def _sent(service: Service, fields: Mapping[str, Any]) -> documents.Sent:
    translator = service.model(fields["source"], fields["target"], fields["model"]).translator
    languages = translator.src_lang, translator.tgt_lang
    given = (fields[name] for name in ("sentences", "format"))
    return documents.Sent(fields["name"], fields["content"], *languages, *given)


DESK = (
    Route("POST", "/v1/memories/{memory}/concordance", concordance, "read", CONCORDANCE),
    Route("GET", "/v1/sessions", sessions, "translate"),
    Route("GET", "/v1/sessions/{session}/review", review, "translate"),
    Route("GET", "/v1/sessions/{session}/tmx", tmx, "translate"),
    Route("POST", "/v1/documents/segments", segments, "translate", DOCUMENT, room=LARGE),
    Route("POST", "/v1/documents/fill", fill, "translate", FILL, room=LARGE),
)
