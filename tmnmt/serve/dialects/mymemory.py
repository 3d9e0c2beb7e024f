"""MyMemory: /mymemory, get and set. Its matches are those of the memories, and the model's
translation as one more, where "mt" is not 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tmnmt.segments import Match
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.api_v1 import segments
from tmnmt.serve.dialects import dialect_answers as answers
from tmnmt.serve.fields import Field, read
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.languages import Language, language
from tmnmt.serve.routes import Dialect, Route, RouteAnswer
from tmnmt.serve.service import Request, Service

_MIN_SCORE = 0.5  # fuzzy score of a match
_OF_MODEL = 0.85  # its match, as theirs has it
_GET = (
    Field("q", "text", "What to translate.", required=True),
    Field("langpair", "text", "Two codes with | between them.", required=True),
    Field("mt", "flag", "Ask the model, too.", default=True),
    Field("numres", "whole", "Matches of memories, at most.", default=3, minimum=1, maximum=100),
    Field("conc", "flag", "Concordance, which is not served.", default=False),
)
_SET = (
    Field("seg", "text", "The source text.", required=True),
    Field("tra", "text", "Its translation.", required=True),
    Field("langpair", "text", "Two codes with | between them.", required=True),
)


def pair_of(langpair: str) -> tuple[str, str]:
    """Raises Refused."""
    source, sign, target = langpair.partition("|")
    if not sign or not target:
        raise wrong("langpair must be two codes of languages, as en|fr")
    return source, target


def match(match_: Match) -> dict[str, Any]:
    worth = match_.worth.value if match_.worth is not None else 0
    segment = match_.segment
    return _match(
        segment.id,
        segment.src,
        match_.tgt,
        min(worth, 100) / 100,
        segment.user or "memory",
        segment.changed,
        segment.document,
    )


def _match(
    id: int, src: str, tgt: str, alike: float, author: str, changed: str, reference: str
) -> dict[str, Any]:
    return {
        "id": str(id),
        "segment": src,
        "translation": tgt,
        "quality": "74" if author != "MT!" else "70",
        "reference": reference,
        "usage-count": 1,
        "subject": "",
        "created-by": author,
        "last-updated-by": author,
        "create-date": changed,
        "last-update-date": changed,
        "match": alike,
    }


def answered(matches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The best of them is the translation; of equals a memory's."""
    ordered = sorted(matches, key=lambda entry: float(entry["match"]), reverse=True)
    best = ordered[0] if ordered else {"translation": "", "match": 0}
    return {
        "responseData": {"translatedText": best["translation"], "match": best["match"]},
        "quotaFinished": False,
        "responseDetails": "",
        "responseStatus": 200,
        "matches": ordered,
    }


async def get(service: Service, call: ApiRequest) -> Any:
    fields = read(call.values, _GET, strict=False)
    if fields["conc"]:
        raise wrong("conc is not served")
    source, target = pair_of(fields["langpair"])
    text = fields["q"]
    service.check_size([text])
    languages = _languages(service, source, target)
    memories = service.memories.select(None, languages, call.caller)
    (pairs,) = await service.search(memories, [text], fields["numres"], _MIN_SCORE)
    matches = [match(pair) for pair in pairs]
    if fields["mt"] and service.models:
        answer = await service.translate(Request((text,), source, target), call.caller)
        matches.append(_match(0, text, answer.texts[0].text, _OF_MODEL, "MT!", "", ""))
    return answered(matches)


def _languages(service: Service, source: str, target: str) -> tuple[Language, Language]:
    if source.lower() == "autodetect":
        return service.model(source, target).languages
    return language(source), language(target)


async def set_(service: Service, call: ApiRequest) -> Any:
    """Adds a pair to the memory of these languages that is written to."""
    fields = read(call.values, _SET, strict=False)
    source, target = map(language, pair_of(fields["langpair"]))
    memory = service.memories.writable(None, (source, target), call.caller)
    ids = await service.add(memory, segments([{"src": fields["seg"], "tgt": fields["tra"]}]))
    return {"responseData": "OK", "responseStatus": 200, "responseDetails": [str(ids[0])]}


def refusal(refused: Refused) -> tuple[int, Mapping[str, Any]]:
    return refused.status, {
        "responseData": {"translatedText": None},
        "responseDetails": refused.message,
        "responseStatus": refused.status,
        "matches": [],
    }


_FOUND = RouteAnswer(answers.MyMemoryAnswer)
MYMEMORY = Dialect(
    "MyMemory",
    ("/mymemory",),
    (
        Route("GET", "/get", get, fields=_GET, answer=_FOUND),
        Route("POST", "/get", get, fields=_GET, answer=_FOUND),
        Route("POST", "/set", set_, "write", _SET, answer=RouteAnswer(answers.MyMemoryStored)),
    ),
    refusal,
    key_field="key",
)
