"""Apertium APy: /apertium. `responseStatus` is in every answer: OmegaT takes none without it."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from tmnmt.formats.iso639 import THREE
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.dialects import dialect_answers as answers
from tmnmt.serve.fields import Field, read
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.markup import Form
from tmnmt.serve.routes import Dialect, Route, RouteAnswer
from tmnmt.serve.service import Answer, Request, Service

# "markUnknown" is none of ours: unknown words are copied, and nothing marks them
_TEXT = Field("q", "text", "What to translate.", required=True)
_FIELDS = (
    Field("langpair", "text", "Two codes with | between them.", required=True),
    _TEXT,
    Field("format", "text", "What it is.", default="txt", choices=("txt", "html")),
)
_LIST = (Field("q", "text", "What to list.", required=True, choices=("pairs",)),)


def request_of(values: Mapping[str, Any]) -> Request:
    """Raises Refused."""
    fields = read(values, _FIELDS, strict=False)
    source, sign, target = fields["langpair"].partition("|")
    if not sign or not source.strip() or not target.strip():
        raise wrong("langpair must be two codes of languages, as en|fr")
    form: Form = "html" if fields["format"] == "html" else "tagged"
    return Request((fields["q"],), source, target, form)


def answered(answer: Answer) -> dict[str, Any]:
    return _envelope({"translatedText": answer.texts[0].text})


def _envelope(data: Any) -> dict[str, Any]:
    return {"responseData": data, "responseDetails": None, "responseStatus": 200}


async def translate(service: Service, call: ApiRequest) -> Any:
    return answered(await service.translate(request_of(call.values), call.caller))


async def pairs(service: Service, call: ApiRequest) -> Any:
    """The pairs that are served, in two letters and in three, as programs ask for either."""
    listed = dict.fromkeys(
        (code(source.language), code(target.language))
        for code in (lambda short: short, lambda short: THREE.get(short, short))
        for source, target in (model.languages for model in service.models)
    )
    return _envelope(
        [{"sourceLanguage": source, "targetLanguage": target} for source, target in listed]
    )


async def listed(service: Service, call: ApiRequest) -> Any:
    """The older address of the pairs. Raises Refused for what else could be listed."""
    read(call.values, _LIST, strict=False)
    return await pairs(service, call)


async def identified(service: Service, call: ApiRequest) -> Any:
    """The share of the words that is known, by language, of languages that can be identified. Here
    that is none, and an APy without analysers and CLD2 answers the same: nothing, with 200."""
    read(call.values, (_TEXT,), strict=False)
    return {}


async def names(service: Service, call: ApiRequest) -> Any:
    """The names of languages by their codes, in English."""
    languages = [language for model in service.models for language in model.languages]
    return {language.code: language.name for language in languages}


def refusal(refused: Refused) -> tuple[int, Mapping[str, Any]]:
    return refused.status, {
        "status": "error",
        "code": refused.status,
        "message": HTTPStatus(refused.status).phrase,
        "explanation": refused.message,
        "responseData": None,
        "responseDetails": refused.message,
        "responseStatus": refused.status,
    }


_PAIRS = RouteAnswer(answers.ApertiumPairs)
_TRANSLATION = RouteAnswer(answers.ApertiumTranslation)
APERTIUM = Dialect(
    "Apertium APy",
    ("/apertium",),
    (
        Route("GET", "/listPairs", pairs, "read", answer=_PAIRS),
        Route("GET", "/list", listed, "read", _LIST, answer=_PAIRS),
        Route("GET", "/listLanguageNames", names, "read", answer=RouteAnswer(dict[str, str])),
        Route(
            "GET",
            "/identifyLang",
            identified,
            "read",
            (_TEXT,),
            answer=RouteAnswer(dict[str, float]),
        ),
        Route("GET", "/translate", translate, fields=_FIELDS, answer=_TRANSLATION),
        Route("POST", "/translate", translate, fields=_FIELDS, answer=_TRANSLATION),
    ),
    refusal,
    key_field="key",
)
