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
from tmnmt.serve import answers, documents
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.api_resources import MODEL, SAVED, SOURCE, TARGET
from tmnmt.serve.fields import DOCUMENT as SEGMENTS_OF_DOCUMENT
from tmnmt.serve.fields import Field, read
from tmnmt.serve.http_error import wrong
from tmnmt.serve.memories import standing
from tmnmt.serve.routes import FILE, Route, RouteAnswer
from tmnmt.serve.service import Service

_TMX = "application/x-tmx+xml"
LARGE = 10  # times as many bytes as another request, a document may have

CONCORDANCE = (
    Field("text", "text", "The phrase; a star behind a word stands for any ending.", required=True),
    Field("in", "text", "Where it is looked for.", default="source", choices=("source", "target")),
    Field("k", "whole", "At most so many pairs.", default=20, minimum=1, maximum=100),
)
FILE_NAME = Field("name", "text", "Of the file; its end says of which kind it may be.", default="")
CONTENT = Field("content", "text", "The file's bytes as base64.", required=True)
SENTENCES = Field(
    "sentences",
    "flag",
    "Cut text into sentences; not given, where it is running text and no list.",
)
FORMAT = Field("format", "text", "text: it is plain text.", choices=get_args(Format))
DOCUMENT = (FILE_NAME, CONTENT, SOURCE, TARGET, MODEL, SENTENCES, FORMAT)
FILL = (
    *DOCUMENT,
    Field(
        "targets",
        "texts",
        "One for each segment; empty leaves it as it is.",
        required=True,
        entries=SEGMENTS_OF_DOCUMENT,
    ),
)


async def concordance(service: Service, call: ApiRequest) -> Any:
    """The newest pairs of a memory that have a phrase, and where in them it stands."""
    fields = read(call.body, CONCORDANCE)
    memory = service.memories.get(call.path["memory"], call.caller)
    service.check_size([fields["text"]])
    try:
        phrase = Phrase(fields["text"], fields["in"])
    except UsageError as error:
        raise wrong(str(error)) from error
    service.counts["searches",] += 1
    occurrences = await service.in_thread(lambda: standing(memory, phrase, fields["k"]))
    return {"query": phrase.text, "in": phrase.side, "matches": list(map(_occurrence, occurrences))}


def _occurrence(occurrence: Occurrence) -> dict[str, Any]:
    names = ("id", "src", "tgt", "document", "user", "changed")
    return {name: getattr(occurrence.segment, name) for name in names} | {
        "places": occurrence.places
    }


async def sessions(service: Service, call: ApiRequest) -> Any:
    """The sessions that this key may use, the latest first."""
    return {"sessions": await service.write(lambda: service.sessions.summaries(call.caller))}


async def review(service: Service, call: ApiRequest) -> Any:
    """What was confirmed in a session against what was suggested before, in order."""
    open_session = await service.session(call.path["session"], call.caller)
    pairs = await service.write(lambda: service.sessions.reviewed(open_session))
    source, target = open_session.model.languages
    languages = {"source": source.code, "target": target.code}
    return {"id": open_session.id, **languages, "segments": [pair.record() for pair in pairs]}


async def tmx(service: Service, call: ApiRequest) -> Any:
    """What was confirmed in a session as TMX."""
    open_session = await service.session(call.path["session"], call.caller)
    confirmed_pairs = await service.write(lambda: service.sessions.confirmed_pairs(open_session))
    pairs = [
        replace(entry.segment, document=open_session.setup.name)
        for entry in confirmed_pairs
        if entry.tgt
    ]
    languages = open_session.model.translator.src_lang, open_session.model.translator.tgt_lang
    content = await service.in_thread(lambda: documents.tmx(pairs, *languages))
    return Response(content, media_type=_TMX, headers=SAVED)


async def segments(service: Service, call: ApiRequest) -> Any:
    """The segments of a file, of any kind that `tmnmt translate` fills, or text. Codes
    are short tags of XML, such as <g1>…</g1> and <x2/>."""
    upload = _parse_upload(service, read(call.body, DOCUMENT))
    return await service.in_thread(lambda: documents.segments(upload))


async def fill(service: Service, call: ApiRequest) -> Any:
    """The same file with targets, one for every segment, empty where it stays as it is."""
    fields = read(call.body, FILL)
    upload = _parse_upload(service, fields)
    content = await service.in_thread(lambda: documents.filled(upload, fields["targets"]))
    return Response(content, media_type="application/octet-stream", headers=SAVED)


def _parse_upload(service: Service, fields: Mapping[str, Any]) -> documents.Upload:
    translator = service.model(fields["source"], fields["target"], fields["model"]).translator
    languages = translator.src_lang, translator.tgt_lang
    options = (fields[name] for name in ("sentences", "format"))
    return documents.Upload(fields["name"], fields["content"], *languages, *options)


DESK = (
    Route(
        "POST",
        "/v1/memories/{memory}/concordance",
        concordance,
        "read",
        CONCORDANCE,
        answer=RouteAnswer(answers.Concordance),
    ),
    Route("GET", "/v1/sessions", sessions, "translate", answer=RouteAnswer(answers.Sessions)),
    Route(
        "GET",
        "/v1/sessions/{session}/review",
        review,
        "translate",
        answer=RouteAnswer(answers.Review),
    ),
    Route(
        "GET",
        "/v1/sessions/{session}/tmx",
        tmx,
        "translate",
        answer=RouteAnswer(bytes, media=_TMX),
    ),
    Route(
        "POST",
        "/v1/documents/segments",
        segments,
        "translate",
        DOCUMENT,
        room=LARGE,
        answer=RouteAnswer(answers.FileSegments),
    ),
    Route("POST", "/v1/documents/fill", fill, "translate", FILL, room=LARGE, answer=FILE),
)
