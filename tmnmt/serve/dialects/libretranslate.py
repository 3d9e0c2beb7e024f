"""LibreTranslate: /libretranslate, what its API documents and its clients send.

A list of texts comes back as a list as long, one text as one. Languages are not detected: "auto" is
the one language from which is translated, where there is only one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from starlette.responses import Response

from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.api_resources import SAVED
from tmnmt.serve.dialects import dialect_answers as answers
from tmnmt.serve.dialects.weblate import answer_of
from tmnmt.serve.document_jobs import (
    SUFFIXES,
    DocumentRequest,
    document_job,
    ended_job,
    start_document,
)
from tmnmt.serve.fields import TEXTS, Field, read
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.markup import Form
from tmnmt.serve.modelless import no_model
from tmnmt.serve.routes import BINARY, FILE, Dialect, Route, RouteAnswer
from tmnmt.serve.service import Answer, Request, Service

_AUTO, _PREFIX = "auto", "/libretranslate"
_Q = Field("q", "texts", "What to translate.", required=True, entries=TEXTS, is_single=True)
_FIELDS = (
    _Q,
    Field("source", "text", "Code of a language, or auto.", required=True),
    Field("target", "text", "Code of a language.", required=True),
    Field("format", "text", "What the texts are.", default="text", choices=("text", "html")),
    Field("alternatives", "whole", "How many, of which there are none.", default=0),
)
_FILE = (
    Field("source", "text", "Code of a language, or auto.", required=True),
    Field("target", "text", "Code of a language.", required=True),
)
_DOWNLOADS = "/download_file"


class TranslatedFile(TypedDict):
    """Where the translated file is."""

    translatedFileUrl: str


def request_of(values: Mapping[str, Any]) -> Request:
    """Raises Refused."""
    fields = read(values, _FIELDS, strict=False)
    form: Form = "html" if fields["format"] == "html" else "tagged"
    return Request(tuple(fields["q"]), fields["source"], fields["target"], form)


def answered(values: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    """ "alternatives" are asked for with a number, and there are none."""
    texts = [result.text for result in answer.texts]
    listed = isinstance(values["q"], list)
    body: dict[str, Any] = {"translatedText": texts if listed else texts[0]}
    if values["source"].lower() == _AUTO:
        detected = {"confidence": 0, "language": answer.model.languages[0].code}
        body["detectedLanguage"] = [detected] * len(texts) if listed else detected
    if read(values, _FIELDS, strict=False)["alternatives"]:
        body["alternatives"] = [[] for _ in texts] if listed else []
    return body


async def translate(service: Service, call: ApiRequest) -> Any:
    answer = await answer_of(service, call, request_of(call.values))
    return answered(call.values, answer)


async def translate_file(service: Service, call: ApiRequest) -> Any:
    """Translates a file. This is answered when it is done; the file is kept for a day."""
    fields = read(call.values, _FILE, strict=False)
    if call.file is None or not call.file.content:
        raise wrong("file is needed: the file, in a form of parts (multipart/form-data)")
    suffix = Path(call.file.name).suffix.lower()
    if suffix not in SUFFIXES:
        raise wrong("the name of the file is to end as /frontend/settings lists it")
    request = DocumentRequest(call.file.name, fields["source"], fields["target"])
    job = await start_document(service, call.caller, call.file.content, request)
    job = await ended_job(service, call.caller, job)
    if job.state == "failed":
        raise wrong(str(job.result["error"]))
    address = service.site.address(call.headers, call.scheme, call.server)
    return {"translatedFileUrl": f"{address}{_PREFIX}{_DOWNLOADS}/{job.id}{suffix}"}


async def download(service: Service, call: ApiRequest) -> Any:
    """A translated file. Who knows its address has it, as LibreTranslate does it."""
    id, _, _ = call.path["name"].partition(".")
    job = await document_job(service, id, None)
    content = await service.write(lambda: service.jobs.file(job.id, None))
    return Response(content, media_type=BINARY, headers=SAVED)


async def detect(service: Service, call: ApiRequest) -> Any:
    """The only language from which is translated. Raises Refused where there are several."""
    read(call.values, (_Q,), strict=False)
    language = service.model(_AUTO, "").languages[0]
    return [{"confidence": 0, "language": language.code}]


async def languages(service: Service, call: ApiRequest) -> Any:
    targets: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for model in service.models:
        source, target = model.languages
        targets.setdefault(source.code, []).append(target.code)
        targets.setdefault(target.code, [])
        names |= {language.code: language.name for language in (source, target)}
    return [
        {"code": code, "name": names[code], "targets": list(dict.fromkeys(target_codes))}
        for code, target_codes in targets.items()
    ]


async def settings(service: Service, call: ApiRequest) -> Any:
    """What a page of LibreTranslate asks the server for."""
    languages = next((model.languages for model in service.models), None)
    if languages is None:
        raise no_model()
    source, target = ({"code": language.code, "name": language.name} for language in languages)
    return {
        "apiKeys": service.keys is not None,
        "charLimit": service.limits.text,
        "filesTranslation": True,
        "frontendTimeout": 500,
        "keyRequired": service.keys is not None,
        "language": {"source": source, "target": target},
        "suggestions": False,
        "supportedFilesFormat": [*SUFFIXES],
    }


async def health(service: Service, call: ApiRequest) -> Any:
    return {"status": "ok"}


def refusal(refused: Refused) -> tuple[int, Mapping[str, Any]]:
    status = 403 if refused.status == 401 else refused.status
    return status, {"error": refused.message}


LIBRETRANSLATE = Dialect(
    "LibreTranslate",
    (_PREFIX,),
    (
        Route(
            "GET", "/languages", languages, "read", answer=RouteAnswer(list[answers.LibreTargets])
        ),
        Route(
            "POST",
            "/translate",
            translate,
            fields=_FIELDS,
            answer=RouteAnswer(answers.LibreTranslation),
        ),
        Route(
            "POST",
            "/translate_file",
            translate_file,
            fields=_FILE,
            file_field="file",
            keeps=True,
            answer=RouteAnswer(TranslatedFile),
        ),
        Route("GET", f"{_DOWNLOADS}/{{name}}", download, None, answer=FILE),
        Route(
            "POST", "/detect", detect, fields=(_Q,), answer=RouteAnswer(list[answers.LibreLanguage])
        ),
        Route(
            "GET", "/frontend/settings", settings, None, answer=RouteAnswer(answers.LibreSettings)
        ),
        Route("GET", "/health", health, None, answer=RouteAnswer(answers.LibreHealth)),
    ),
    refusal,
    key_field="api_key",
)
