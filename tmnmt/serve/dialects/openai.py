"""OpenAI's chat completions: /openai/v1, for programs that translate by a chat model.

The languages come from the name of the model, such as "en-fr", or from the instruction. A program
that has to name one of OpenAI's models may name it: another name counts as none."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.responses import StreamingResponse

from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.dialects import dialect_answers as answers
from tmnmt.serve.dialects.prompts import Message, Prompt, languages_of_model, parsed
from tmnmt.serve.dialects.weblate import answer_of
from tmnmt.serve.fields import Field, read
from tmnmt.serve.http_error import Refused, unknown, wrong
from tmnmt.serve.routes import EVENTS, Dialect, Route, RouteAnswer
from tmnmt.serve.service import Request, Service
from tmnmt.text import match_tokens

_MESSAGES = 200
_OWNER = "tmnmt"
_FIELDS = (
    Field("model", "text", "Two languages, as in en-fr, or a model by its name.", required=True),
    Field("messages", "objects", "The chat.", required=True, entries=_MESSAGES),
    Field("stream", "flag", "Whether the answer comes as server-sent events.", default=False),
    Field("stream_options", "object", "include_usage: whether the last event counts.", {}),
    Field("response_format", "object", "text, json_object or json_schema.", {}),
    Field("n", "whole", "How many answers, of which there is one.", default=1),
)
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def prompt_of(values: Mapping[str, Any]) -> Prompt:
    """What a request wants to have translated.

    values: its fields.

    Raises Refused for a request that is none."""
    fields = read(values, _FIELDS, strict=False)
    if fields["n"] != 1:
        raise wrong("n: there is one answer")
    return parsed([*map(_message, fields["messages"])], _properties(fields["response_format"]))


def request_of(model: str, prompt: Prompt, service: Service) -> Request:
    """The request for the texts of a prompt. The target language is that of the instruction, where
    it names one, so that a model of another language is refused.

    model: the name that the client gives the model.
    prompt: the prompt.
    service: what serves the models."""
    if model in service.names:
        return Request(prompt.texts, "", prompt.languages.target, "tagged", model=model)
    of_model = languages_of_model(model)
    source = of_model.source or prompt.languages.source
    return Request(prompt.texts, source, prompt.languages.target or of_model.target, "tagged")


async def complete(service: Service, call: ApiRequest) -> Any:
    """Translates the text of the last message."""
    prompt, name = prompt_of(call.body), str(call.body["model"])
    request = request_of(name, prompt, service)
    answer = await answer_of(service, call, request)
    text = prompt.answer([result.text for result in answer.texts])
    record = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": name}
    usage = _usage(prompt.texts, text)
    if not call.body.get("stream"):
        return {
            **record,
            "object": "chat.completion",
            "choices": [_choice(message={"role": "assistant", "content": text, "refusal": None})],
            "usage": usage,
        }
    options = call.body.get("stream_options") or {}
    return _streamed(record, text, usage if options.get("include_usage") else None)


async def models(service: Service, call: ApiRequest) -> Any:
    """The models, by their languages and by their names."""
    return {"object": "list", "data": [_model_record(name) for name in _model_names(service)]}


async def model(service: Service, call: ApiRequest) -> Any:
    """One of the models."""
    if call.path["model"] not in _model_names(service):
        raise unknown("there is no such model")
    return _model_record(call.path["model"])


def refusal(refused: Refused) -> tuple[int, Mapping[str, Any]]:
    """What was refused, as OpenAI writes it.

    refused: what was refused."""
    kind = _TYPES.get(refused.status, "invalid_request_error")
    kind = "server_error" if refused.status >= 500 else kind
    error = {"message": refused.message, "type": kind, "param": None, "code": refused.code}
    return refused.status, {"error": error}


def _message(record: Mapping[str, Any]) -> Message:
    """Raises Refused for what is no message of text."""
    role, content = record.get("role"), record.get("content")
    if isinstance(content, list):
        content = "\n".join(map(_text_of_part, content))
    if not isinstance(role, str) or not isinstance(content, str):
        raise wrong("messages: each has a role and a content, which are texts")
    return Message(role, content)


def _text_of_part(part: Any) -> str:
    """Raises Refused for a part of a message that is no text."""
    text = part.get("text") if isinstance(part, dict) else part
    if not isinstance(text, str):
        raise wrong("messages: only text can be translated")
    return text


def _properties(response_format: Mapping[str, Any]) -> list[str]:
    """The fields that an answer has to have; none where it may have any form."""
    kind = response_format.get("type", "text")
    if kind == "json_object":
        return ["translation"]
    if kind != "json_schema":
        return []
    schema = response_format.get("json_schema")
    schema = schema.get("schema") if isinstance(schema, dict) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not properties:
        raise wrong("response_format: json_schema is to have the properties of an object")
    return [*properties]


def _usage(texts: tuple[str, ...], answer: str) -> dict[str, int]:
    """Words and marks of the texts and of the answer, which stand for tokens."""
    prompt, completion = sum(len(match_tokens(text)) for text in texts), len(match_tokens(answer))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _choice(**entries: Any) -> dict[str, Any]:
    return {"index": 0, "finish_reason": "stop", "logprobs": None, **entries}


def _streamed(
    record: Mapping[str, Any], text: str, usage: Mapping[str, int] | None
) -> StreamingResponse:
    """The answer in events, the last of which is [DONE]."""
    chunk = {**record, "object": "chat.completion.chunk"}
    delta = {"role": "assistant", "content": text}
    chunks: list[dict[str, Any]] = [
        {**chunk, "choices": [_choice(delta=delta, finish_reason=None)]},
        {**chunk, "choices": [_choice(delta={})]},
    ]
    chunks += [{**chunk, "choices": [], "usage": usage}] if usage is not None else []

    async def frames() -> AsyncIterator[str]:
        for entry in chunks:
            yield f"data: {json.dumps(entry, ensure_ascii=False)}\n\n"
        yield "data: [DONE]\n\n"

    return StreamingResponse(frames(), media_type=EVENTS, headers={"Cache-Control": "no-store"})


def _model_names(service: Service) -> list[str]:
    pairs = ["-".join(language.code for language in model.languages) for model in service.models]
    return [*dict.fromkeys([*pairs, *service.names])]


def _model_record(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": _OWNER}


OPENAI = Dialect(
    "OpenAI",
    ("/openai/v1", "/openai"),
    (
        Route("GET", "/models", models, "read", answer=RouteAnswer(answers.ModelCards)),
        Route("GET", "/models/{model}", model, "read", answer=RouteAnswer(answers.ModelCard)),
        Route(
            "POST",
            "/chat/completions",
            complete,
            fields=_FIELDS,
            answer=RouteAnswer(answers.ChatCompletion),
        ),
    ),
    refusal,
)
