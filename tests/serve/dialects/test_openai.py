"""OpenAI's chat completions as its own package speaks them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError, OpenAI
from serving import Server
from tiny_model import PAIRS

INSTRUCTION = "Translate from English to French. Answer with the translation only."


@pytest.fixture
def client(served: Server) -> OpenAI:
    return OpenAI(base_url=f"{served.url}/openai/v1", api_key="any", max_retries=0)


def chat(text: str, instruction: str = INSTRUCTION) -> list[Any]:
    return [{"role": "system", "content": instruction}, {"role": "user", "content": text}]


def answer(client: OpenAI, text: str, model: str = "en-fr", **options: Any) -> str:
    result = client.chat.completions.create(model=model, messages=chat(text), **options)
    assert result.usage is not None and result.usage.total_tokens > 0
    return result.choices[0].message.content or ""


def test_the_real_client(client: OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names[0] == "en-fr" and len(names) == 2
    assert client.models.retrieve(names[1]).owned_by == "tmnmt"
    for name in (*names, "gpt-4o-mini"):
        assert answer(client, PAIRS[0][0], name) == PAIRS[0][1]
    with pytest.raises(NotFoundError):
        client.models.retrieve("no-such")


def test_the_answer_in_events(client: OpenAI) -> None:
    events = client.chat.completions.create(
        model="en-fr",
        messages=chat(PAIRS[0][0]),
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [*events]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == PAIRS[0][1]
    assert chunks[-2].choices[0].finish_reason == "stop" and chunks[-1].usage is not None


def test_several_texts_come_back_in_their_form(client: OpenAI) -> None:
    texts = {f"t{number}": src for number, (src, _) in enumerate(PAIRS[:3])}
    found = json.loads(answer(client, json.dumps(texts)))
    assert found == {f"t{number}": tgt for number, (_, tgt) in enumerate(PAIRS[:3])}
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert json.loads(answer(client, PAIRS[0][0], response_format=form)) == {"text": PAIRS[0][1]}


def test_what_cannot_be_translated_is_refused_with_the_reason(client: OpenAI) -> None:
    german = chat("No.", "Translate from English to German.")
    with pytest.raises(BadRequestError, match="en to de is not served"):
        client.chat.completions.create(model="gpt-4o", messages=german)
    for name in [model.id for model in client.models.list()]:
        with pytest.raises(BadRequestError, match=r"de is not served|other languages"):
            client.chat.completions.create(model=name, messages=german)
    picture: Any = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    wrong: list[Any] = [
        [{"role": "user", "content": picture}],
        [{"role": "system", "content": "x"}],
    ]
    for messages in wrong:
        with pytest.raises(BadRequestError, match="messages"):
            client.chat.completions.create(model="en-fr", messages=messages)
    with pytest.raises(BadRequestError, match="one answer"):
        client.chat.completions.create(model="en-fr", messages=chat("No."), n=2)
