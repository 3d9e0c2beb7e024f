"""What Weblate does before it takes an address as a service: it has "test" translated from English
to German, whatever the server says that it serves, and refuses the address where that fails."""

from __future__ import annotations

from dataclasses import replace

from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.http_error import Refused
from tmnmt.serve.languages import language
from tmnmt.serve.service import Answer, Request, Service

_AGENTS = ("Weblate/", "OpenAI/")  # the second is of the package by which it asks OpenAI
_TEXTS = ("test",)
_PAIR = ("en", "de")


async def answer_of(service: Service, call: ApiRequest, request: Request) -> Answer:
    """The translation that is asked for. Weblate's trial is one by the first model where its
    languages are not served, so that it goes well if a translation would. Raises Refused."""
    try:
        service.model(request.source, request.target)
    except Refused:
        if not service.models or not _is_trial(call, request):
            raise
        source, target = service.models[0].languages
        request = replace(request, source=source.code, target=target.code)
    return await service.translate(request, call.caller)


def _is_trial(call: ApiRequest, request: Request) -> bool:
    """Raises Refused for what is no language."""
    if not call.headers.get("user-agent", "").startswith(_AGENTS) or request.texts != _TEXTS:
        return False
    return (language(request.source).code, language(request.target).code) == _PAIR
