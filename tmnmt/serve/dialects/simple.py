"""Three that have one address each: the plain GET of FakeMT and of Wordfast's own template; IBM
Watson's Language Translator v3 as OmegaT asks it; and OPUS-CAT's MTRestService, of which Wordfast
asks TranslateJson."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.dialects import dialect_answers as answers
from tmnmt.serve.fields import TEXTS, Field, read
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.routes import Dialect, Route, RouteAnswer
from tmnmt.serve.service import Answer, Request, Service

_GET = (
    Field("text", "text", "What to translate.", required=True),
    Field("source", "text", "Code of a language.", default=""),
    Field("target", "text", "Code of a language.", required=True),
)
_WATSON = (
    Field("text", "texts", "What to translate.", required=True, entries=TEXTS, is_single=True),
    Field("source", "text", "Code of a language.", default=""),
    Field("target", "text", "Code of a language.", default=""),
    Field("model_id", "text", "Name of a model, or two codes with - between them.", default=""),
)
_OPUS_CAT = (
    Field("input", "text", "What to translate.", required=True),
    Field("srcLangCode", "text", "Code of a language.", required=True),
    Field("trgLangCode", "text", "Code of a language.", required=True),
    Field("modelTag", "text", "Name of a model; another one counts as none.", default=""),
)


def request_by_get(values: Mapping[str, Any]) -> Request:
    """Raises Refused."""
    fields = read(values, _GET, strict=False)
    return Request((fields["text"],), fields["source"], fields["target"], "tagged")


def request_by_watson(values: Mapping[str, Any], models: Collection[str] = ()) -> Request:
    """Its texts are HTML, and OmegaT makes characters of the references in them. `models`: the
    names that model_id may say. Raises Refused."""
    fields = read(values, _WATSON, strict=False)
    texts = tuple(fields["text"])
    source, target, model = fields["source"], fields["target"], fields["model_id"]
    if model in models:
        return Request(texts, source, target, "html", model=model)
    if not target:
        source, _, target = model.partition("-")
    if not target:
        raise wrong("target is needed, or model_id")
    return Request(texts, source, target, "html")


def request_by_opus_cat(values: Mapping[str, Any], models: Collection[str] = ()) -> Request:
    """`models`: the names that modelTag may say. Raises Refused."""
    fields = read(values, _OPUS_CAT, strict=False)
    languages = fields["srcLangCode"], fields["trgLangCode"]
    model = fields["modelTag"] if fields["modelTag"] in models else ""
    return Request((fields["input"],), *languages, model=model)


def answered(answer: Answer) -> dict[str, Any]:
    return {"translation": answer.texts[0].text}


def answered_by_watson(request: Request, answer: Answer) -> dict[str, Any]:
    return {
        "translations": [{"translation": result.text} for result in answer.texts],
        "word_count": sum(len(text.split()) for text in request.texts),
        "character_count": sum(map(len, request.texts)),
    }


async def get(service: Service, call: ApiRequest) -> Any:
    return answered(await service.translate(request_by_get(call.query), call.caller))


async def watson(service: Service, call: ApiRequest) -> Any:
    asks = request_by_watson(call.body, service.names)
    return answered_by_watson(asks, await service.translate(asks, call.caller))


async def opus_cat(service: Service, call: ApiRequest) -> Any:
    request = request_by_opus_cat(call.query, service.names)
    return answered(await service.translate(request, call.caller))


def refusal(refused: Refused) -> tuple[int, Mapping[str, Any]]:
    return refused.status, {"error": refused.message}


def refusal_of_watson(refused: Refused) -> tuple[int, Mapping[str, Any]]:
    return refused.status, {"code": refused.status, "error": refused.message}


_TRANSLATION = RouteAnswer(answers.PlainTranslation)
_OF_WATSON = RouteAnswer(answers.WatsonTranslations)
SIMPLE = (
    Dialect(
        "generic GET",
        ("/get",),
        (Route("GET", "/translate", get, fields=_GET, answer=_TRANSLATION),),
        refusal,
    ),
    Dialect(
        "IBM Watson",
        ("/watson",),
        (Route("POST", "/v3/translate", watson, fields=_WATSON, answer=_OF_WATSON),),
        refusal_of_watson,
    ),
    Dialect(
        "OPUS-CAT",
        ("/MTRestService",),
        (Route("GET", "/TranslateJson", opus_cat, fields=_OPUS_CAT, answer=_TRANSLATION),),
        refusal,
    ),
)
