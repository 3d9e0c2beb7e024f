"""tmserver of the Translate Toolkit, and amaGama: /tmserver and /api/v1. They look up in memories;
no model is asked. `quality` is what a match is worth in per cent, at most 100, as a number with a
point, and the best comes first: Okapi wants both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response

from tmnmt.segments import Match, Segment
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.api_v1 import segments
from tmnmt.serve.dialects import dialect_answers as answers
from tmnmt.serve.fields import LISTED, SEGMENTS, Field, read
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.languages import Language, language
from tmnmt.serve.routes import Dialect, Route, RouteAnswer
from tmnmt.serve.service import Service

LOWEST = 30  # as theirs: a lower similarity is taken for this one
_QUERY = (
    Field("source", "text", "The text, where the address does not have it."),
    Field("min_similarity", "whole", "In per cent.", default=70, minimum=0, maximum=100),
    Field("max_candidates", "whole", "At most so many.", default=5, minimum=1, maximum=100),
    Field("jsoncallback", "text", "A function of a script, which is not served."),
)
_UNIT = (
    Field("source", "text", "The source text.", required=True),
    Field("target", "text", "Its translation.", required=True),
)
_UNITS = Field(LISTED, "objects", "A list of units.", default=[], entries=SEGMENTS)
_CACHED = {"Cache-Control": "no-cache"}  # what is confirmed now is found at once


def candidates(text: str, matches: list[Match], minimum: int) -> list[dict[str, Any]]:
    """Matches of a text that are worth at least `minimum`, best first. The source of an adapted
    match is the text, which its target translates."""
    worth = [(min(m.worth.value if m.worth is not None else 0, 100), m) for m in matches]
    return [
        {
            "source": match.segment.src if match.tgt == match.segment.tgt else text,
            "target": match.tgt,
            "quality": float(value),
            "rank": float(value),
        }
        for value, match in worth
        if value >= minimum
    ]


async def look_up(service: Service, call: ApiRequest) -> Any:
    fields = read(call.query, _QUERY, strict=False)
    text = call.path.get("text") or fields["source"]
    if not text:
        raise wrong("a text is needed, in the address or as source")
    if fields["jsoncallback"] is not None:
        raise wrong("jsoncallback is not served: a script of another site could read answers")
    service.check_size([text])
    memories = service.memories.select(None, _pair(call), call.caller)
    minimum, limit = max(fields["min_similarity"], LOWEST), fields["max_candidates"]
    (matches,) = await service.search(memories, [text], limit, minimum / 100)
    return JSONResponse(candidates(text, matches, minimum), headers=_CACHED)


async def put(service: Service, call: ApiRequest) -> Any:
    """Adds a unit to the memory of the pair that is written to."""
    unit = read(call.body, _UNIT, strict=False)
    memory = service.memories.writable(None, _pair(call), call.caller)
    await service.add(memory, segments([{"src": unit["source"], "tgt": unit["target"]}]))
    return Response(status_code=200)


async def store(service: Service, call: ApiRequest) -> Any:
    """Adds a list of units, as of one document."""
    memory = service.memories.writable(None, _pair(call), call.caller)
    pairs = await service.in_thread(lambda: _units(call.body, call.path["name"]))
    await service.add(memory, pairs)
    return Response(status_code=200)


def _units(body: Mapping[str, Any], name: str) -> list[Segment]:
    """The units of a list, or the one that the body is. Raises Refused."""
    units = read(body, (_UNITS,), strict=False)[LISTED] or [body]
    fields = [read(unit, _UNIT, strict=False) for unit in units]
    return segments(
        [{"src": unit["source"], "tgt": unit["target"], "document": name} for unit in fields]
    )


async def languages(service: Service, call: ApiRequest) -> Any:
    pairs = [memory.languages for memory in service.memories.visible(call.caller)]
    sources, targets = ({_code(pair[side]) for pair in pairs} for side in (0, 1))
    return {"sourceLanguages": sorted(sources), "targetLanguages": sorted(targets)}


def _code(language: Language) -> str:
    return language.code.replace("-", "_")


def _pair(call: ApiRequest) -> tuple[Language, Language]:
    return language(call.path["source"]), language(call.path["target"])


def refusal(refused: Refused) -> tuple[int, Mapping[str, Any]]:
    return refused.status, {"error": refused.message}


_LANGUAGES = RouteAnswer(answers.MemoryLanguages)
_CANDIDATES = RouteAnswer(list[answers.MemoryCandidate])
_STORED = RouteAnswer(None)
TMSERVER = Dialect(
    "tmserver and amaGama",
    ("/tmserver", "/api/v1"),
    (
        Route("GET", "/languages/", languages, "read", answer=_LANGUAGES),
        Route("GET", "/languages", languages, "read", answer=_LANGUAGES),
        Route("GET", "/{source}/{target}/unit/", look_up, "read", _QUERY, answer=_CANDIDATES),
        Route(
            "GET",
            "/{source}/{target}/unit/{text:text}",
            look_up,
            "read",
            _QUERY,
            answer=_CANDIDATES,
        ),
        Route("PUT", "/{source}/{target}/unit/{text:text}", put, "write", _UNIT, answer=_STORED),
        Route("POST", "/{source}/{target}/unit/{text:text}", put, "write", _UNIT, answer=_STORED),
        Route(
            "POST",
            "/{source}/{target}/store/{name}",
            store,
            "write",
            (*_UNIT, _UNITS),
            answer=_STORED,
        ),
    ),
    refusal,
)
