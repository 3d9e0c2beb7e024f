"""What Weblate does before it takes an address as a service: it has "test" translated from English
to German, whatever the server says that it serves, and refuses the address where that fails."""

from __future__ import annotations

from dataclasses import replace

from tmnmt.serve.asked import Asked
from tmnmt.serve.languages import language
from tmnmt.serve.refused import Refused
from tmnmt.serve.service import Answer, Service, Wanted

_AGENT = "Weblate/"
_TEXTS = ("test",)
_PAIR = ("en", "de")


async def answer_of(service: Service, asked: Asked, wanted: Wanted) -> Answer:
    """The translation that is wanted. Weblate's trial is one by the first model where its languages
    are not served, so that it goes well if a translation would. Raises Refused."""
    try:
        service.model(wanted.source, wanted.target)
    except Refused:
        if not _is_trial(asked, wanted):
            raise
        source, target = service.models[0].languages
        wanted = replace(wanted, source=source.code, target=target.code)
    return await service.translate(wanted, asked.caller)


def _is_trial(asked: Asked, wanted: Wanted) -> bool:
    """Raises Refused for what is no language."""
    if not asked.headers.get("user-agent", "").startswith(_AGENT) or wanted.texts != _TEXTS:
        return False
    return (language(wanted.source).code, language(wanted.target).code) == _PAIR
