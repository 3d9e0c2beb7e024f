"""Phrase's "bring your own engine": /phrase, the interface that Phrase Language AI asks of an
engine (BYO Engine API 1.0.6): its status, its languages, and translation of up to 500 segments, at
once or as a job that is asked for.

Codes of languages are written as in "en", "pt_br". A glossary comes with the request, and holds for
this request alone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from starlette.responses import Response

from tmnmt.codes.record import Source, Text
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.document_jobs import start_job
from tmnmt.serve.fields import ENTRIES, Field, read
from tmnmt.serve.files import AT_ONCE
from tmnmt.serve.http_error import Refused, unknown, wrong
from tmnmt.serve.in_turn import InTurn
from tmnmt.serve.jobs import Advance, Steps, Work
from tmnmt.serve.languages import Language, language
from tmnmt.serve.markup import Markup, markup
from tmnmt.serve.modelless import no_model
from tmnmt.serve.routes import Dialect, Route, RouteAnswer
from tmnmt.serve.service import Request, Service
from tmnmt.serve.storage.records import Dictionary, Job
from tmnmt.serve.terms import entries_of

MOST_SEGMENTS = 500
_KIND = "phrase"  # of jobs
_METADATA = Field("metadata", "object", "What comes back as it is.")
_SEGMENT = (
    Field("idx", "text", "The name of the segment."),
    Field("text", "text", "What to translate.", required=True),
    _METADATA,
)
_TERM = (
    Field("term", "text", "A word or words of the source language.", required=True),
    Field("translation", "text", "What stands for it.", required=True),
)
_FIELDS = (
    Field("sourceLanguage", "text", "Code of a language.", required=True),
    Field("targetLanguage", "text", "Code of a language.", required=True),
    Field(
        "segments",
        "objects",
        "What to translate, in order.",
        required=True,
        entries=MOST_SEGMENTS,
        inside=_SEGMENT,
    ),
    Field(
        "glossary",
        "objects",
        "What is kept to.",
        default=[],
        entries=ENTRIES,
        inside=_TERM,
    ),
    _METADATA,
)
_STATUSES: Mapping[str, Literal["running", "done", "failed"]] = {"done": "done", "failed": "failed"}


class EngineStatus(TypedDict):
    """The engine takes requests."""

    status: Literal["ok"]


class LanguagePair(TypedDict):
    """Two languages between which is translated."""

    sourceLanguage: str
    targetLanguage: str


class EngineLanguages(TypedDict):
    """All pairs of languages."""

    languagePairs: list[LanguagePair]


class TranslatedSegment(TypedDict):
    """A segment and its translation."""

    idx: NotRequired[str]
    text: str
    translatedText: str
    metadata: NotRequired[dict[str, Any]]


class TranslatedSegments(TypedDict):
    """The translations of segments, in order."""

    sourceLanguage: str
    targetLanguage: str
    segments: list[TranslatedSegment]
    metadata: NotRequired[dict[str, Any]]


class StartedTranslation(TypedDict):
    """The id that the translation is asked for with."""

    id: str


class TranslationStatus(TypedDict):
    """How far a translation is."""

    status: Literal["running", "done", "failed"]
    detail: str


async def status(service: Service, call: ApiRequest) -> Any:
    """Whether texts are translated here."""
    if not service.ready:
        raise Refused(503, "stopping", "the server is stopping", 5)
    if not service.models:
        raise no_model()
    return {"status": "ok"}


async def languages(service: Service, call: ApiRequest) -> Any:
    """The pairs of languages that are served."""
    pairs = dict.fromkeys(model.languages for model in service.models)
    return {
        "languagePairs": [
            {"sourceLanguage": _code(source), "targetLanguage": _code(target)}
            for source, target in pairs
        ]
    }


def _code(language: Language) -> str:
    return language.code.replace("-", "_").lower()


async def translate(service: Service, call: ApiRequest) -> Any:
    """Translates segments; this is answered when all are there."""
    fields = _fields(call)
    texts = tuple(segment["text"] for segment in fields["segments"])
    async with _glossary(service, call, fields) as terms:
        request = Request(
            texts,
            fields["sourceLanguage"],
            fields["targetLanguage"],
            "tagged",
            terms=terms,
            hard_terms=terms is not None,
        )
        answer = await service.translate(request, call.caller)
    return _answered(fields, [result.text for result in answer.texts])


def _fields(call: ApiRequest) -> dict[str, Any]:
    """Raises Refused for what is no request for a translation."""
    fields = read(call.body, _FIELDS, strict=False)
    if not fields["segments"]:
        raise wrong("segments has at least one segment")
    return fields


@asynccontextmanager
async def _glossary(
    service: Service, call: ApiRequest, fields: Mapping[str, Any]
) -> AsyncIterator[tuple[str, ...] | None]:
    """The ids of a glossary that is there as long as it is needed; None where none is sent: then
    the server's own lists are kept to. Raises Refused for what is no glossary."""
    if not fields["glossary"]:
        yield None
        return
    codes = [language(fields[side]).code for side in ("sourceLanguage", "targetLanguage")]
    entries = entries_of((entry["term"], entry["translation"]) for entry in fields["glossary"])
    dictionary = Dictionary(codes[0], codes[1], entries)
    glossary = await service.write(lambda: service.terms.make("", [dictionary], call.caller))
    try:
        yield (glossary.id,)
    finally:
        await service.write(lambda: service.terms.delete(glossary.id, call.caller))


def _answered(fields: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    segments = [
        _present(segment) | {"translatedText": text}
        for segment, text in zip(fields["segments"], texts, strict=True)
    ]
    head = {name: fields[name] for name in ("sourceLanguage", "targetLanguage", "metadata")}
    return {**_present(head), "segments": segments}


def _present(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a record has, without what is null."""
    return {name: value for name, value in record.items() if value is not None}


async def begin(service: Service, call: ApiRequest) -> Any:
    """Begins to translate segments as a job."""
    fields = _fields(call)
    model = service.model(fields["sourceLanguage"], fields["targetLanguage"])
    texts = [segment["text"] for segment in fields["segments"]]
    service.check_size(texts)
    marked = await service.in_thread(lambda: [markup(text, "tagged") for text in texts])
    async with _glossary(service, call, fields) as terms:
        setup = service.resolve_setup(model, call.caller, None, None, terms, terms is not None)
        in_turn = await service.in_turn(model, call.caller, setup)
    work = _work(fields, marked, in_turn)
    subject = {"model": model.name}
    job = await start_job(service, call.caller, _KIND, subject, "segments.json", b"", work)
    return {"id": job.id}


def _work(fields: Mapping[str, Any], marked: Sequence[Markup], in_turn: InTurn) -> Work:
    """What the job does: its file has the answer."""

    def work(path: Path, advance: Advance) -> Steps:
        sources: list[Source] = [source for text in marked for source in text.sources]
        targets = list[Text]()
        for start in range(0, len(sources), AT_ONCE):
            translations = in_turn(sources[start : start + AT_ONCE])
            targets += [Text(entry.tgt, entry.tgt_codes) for entry in translations]
            advance(len(targets), len(sources))
            yield
        remaining: Iterator[Text] = iter(targets)
        texts = [text.filled(list(islice(remaining, len(text.sources)))) for text in marked]
        answer = json.dumps(_answered(fields, texts), ensure_ascii=False)
        return {"segments": len(texts)}, answer.encode()

    return work


async def translation_status(service: Service, call: ApiRequest) -> Any:
    """How far a job is."""
    job = await _job(service, call)
    detail = f"{job.done} of {job.total or 0} segments"
    return {
        "status": _STATUSES.get(job.state, "running"),
        "detail": str(job.result.get("error", detail)),
    }


async def _job(service: Service, call: ApiRequest) -> Job:
    """Raises Refused where there is no such job."""
    job = await service.write(lambda: service.jobs.get(call.path["id"], call.caller))
    if job.kind != _KIND:
        raise unknown("there is no such translation")
    return job


async def translation_result(service: Service, call: ApiRequest) -> Any:
    """What a job has made, which is then gone from the server."""
    job = await _job(service, call)
    content = await service.write(lambda: service.jobs.file(job.id, call.caller))
    await service.write(lambda: service.jobs.delete(job.id, call.caller))
    return Response(content, media_type="application/json")


def refusal(refused: Refused) -> tuple[int, Mapping[str, Any]]:
    """What is refused, as Phrase reads it.

    refused: why it is refused."""
    return refused.status, {"error": refused.message}


_TRANSLATED = RouteAnswer(TranslatedSegments)
PHRASE = Dialect(
    "Phrase",
    ("/phrase",),
    (
        Route("POST", "/status", status, "read", (_METADATA,), answer=RouteAnswer(EngineStatus)),
        Route(
            "POST",
            "/languages",
            languages,
            "read",
            (_METADATA,),
            answer=RouteAnswer(EngineLanguages),
        ),
        Route("POST", "/translate", translate, fields=_FIELDS, answer=_TRANSLATED),
        Route(
            "POST",
            "/translateAsync",
            begin,
            fields=_FIELDS,
            keeps=True,
            answer=RouteAnswer(StartedTranslation),
        ),
        Route(
            "GET",
            "/translateAsyncStatus/{id}",
            translation_status,
            answer=RouteAnswer(TranslationStatus),
        ),
        Route("GET", "/translateAsyncResult/{id}", translation_result, answer=_TRANSLATED),
    ),
    refusal,
)
