"""What a prompt says of a translation."""

from __future__ import annotations

import json
import time

import pytest

from tmnmt.serve.dialects.prompts import Message, languages_of, languages_of_model, parsed
from tmnmt.serve.http_error import Refused

WEBLATE = (
    "translating text\nfrom language 'en'\nto language 'fr'\n"
    "You receive an input as strings separated by \n==WEBLATE_PART==\n and\nyour answer, too."
)


@pytest.mark.parametrize(
    ("instruction", "languages"),
    [
        ("Translate from English to French.", ("en", "fr")),
        ("You translate English into French (Canada).", ("en", "fr")),
        ("from language 'en'\nto language 'pt_BR'", ("en", "pt_BR")),
        (
            "You are an expert in French. Translate the user's German text into English.",
            ("de", "en"),
        ),
        ("Target language: pt-BR. Source language: en.", ("en", "pt-BR")),
        ("source_lang=en target_lang=fr", ("en", "fr")),
        ("en -> fr", ("en", "fr")),
        ("English→French", ("en", "fr")),
        ("Translate the text below into french.", ("", "fr")),
        ("Translate to Polish. Polish the style.", ("", "pl")),
        ("Translate it to me in a nice way, with no lies.", ("", "")),
        ("You are a translator.", ("", "")),
    ],
)
def test_languages_of_instructions(instruction: str, languages: tuple[str, str]) -> None:
    assert languages_of(instruction) == languages


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("en-fr", ("en", "fr")),
        ("en-pt-BR", ("en", "pt-BR")),
        ("en-GB-fr", ("en-GB", "fr")),
        ("tmnmt/eng>fra", ("eng", "fra")),
        ("gpt-4o-mini", ("", "")),
        ("law.en-fr", ("", "")),
    ],
)
def test_languages_of_names_of_models(name: str, languages: tuple[str, str]) -> None:
    assert languages_of_model(name) == languages


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('Translate the text below into french.\nText: "Hello world"', "Hello world"),
        ("Translate the following English text to French: Hi: you", "Hi: you"),
        ("Translate to French:\n\nFirst line.\nSecond line.", "First line.\nSecond line."),
        ("Hello: world", "Hello: world"),
        ("Translate the agreement: the fee is due.", "Translate the agreement: the fee is due."),
        ('{"a": 1e400}', '{"a": 1e400}'),
        ('He said "yes" and "no"', 'He said "yes" and "no"'),
    ],
)
def test_an_instruction_may_stand_before_the_text(text: str, found: str) -> None:
    assert parsed([Message("user", text)]).texts == (found,)


def test_answers_have_the_form_of_what_was_sent() -> None:
    value = {"id": "a.b", "texts": ["One.", {"note": "Two.", "size": 3, "none": None}]}
    chat = [Message("system", "To French."), Message("user", json.dumps(value))]
    prompt = parsed(chat)
    assert prompt.texts == ("One.", "Two.")
    assert json.loads(prompt.answer(["Un.", "Deux."])) == {
        "id": "a.b",
        "texts": ["Un.", {"note": "Deux.", "size": 3, "none": None}],
    }
    prompt = parsed([Message("system", WEBLATE), Message("user", "One.\n==WEBLATE_PART==\nTwo.")])
    assert prompt.texts == ("One.", "Two.")
    assert prompt.answer(["Un.", "Deux."]) == "Un.\n==WEBLATE_PART==\nDeux."
    prompt = parsed(
        [Message("system", "To French."), Message("user", '```json\n{"a": "One."}\n```')]
    )
    assert prompt.texts == ("One.",) and prompt.answer(["Un."]) == '```json\n{"a": "Un."}\n```'


@pytest.mark.parametrize(
    ("messages", "texts", "answer"),
    [
        (
            [Message("user", 'Translate to French:\n```json\n{"a": "One.", "n": 1}\n```')],
            ("One.",),
            '```json\n{"a": "1", "n": 1}\n```',
        ),
        (
            [
                Message("system", "To French."),
                Message("user", 'Say:\n\n```JSON\n["a", "b"]\n```\n'),
            ],
            ("Say:", "a", "b"),
            '1\n\n```JSON\n["2", "3"]\n```\n',
        ),
        (
            [Message("user", "Translate to French:\n```\nOne.\n```")],
            ("One.",),
            "1",
        ),
        (
            [Message("system", "To French."), Message("user", '```json\n{"a": }\n```')],
            ('```json\n{"a": }\n```',),
            "1",
        ),
    ],
)
def test_json_in_fences_keeps_its_form(
    messages: list[Message], texts: tuple[str, ...], answer: str
) -> None:
    prompt = parsed(messages)
    assert prompt.texts == texts
    assert prompt.answer([str(number + 1) for number in range(len(texts))]) == answer
    # a line that the instruction does not name is text
    assert parsed([Message("system", "To French."), Message("user", "A\n====\nB")]).texts == (
        "A\n====\nB",
    )


def test_an_object_with_one_field_is_written_where_it_is_wanted() -> None:
    chat = [Message("system", "To French."), Message("user", "One.")]
    assert parsed(chat, ["text"]).answer(["Un."]) == '{"text": "Un."}'
    with pytest.raises(Refused, match="one field"):
        parsed(chat, ["text", "score"])
    with pytest.raises(Refused, match="of a user"):
        parsed(chat[:1])


def test_of_a_translation_that_is_to_be_said_otherwise_the_source_is_translated() -> None:
    instruction = WEBLATE.replace("your answer", "you answer three rephrased translation strings")
    chat = [Message("system", instruction), Message("user", "One.\n==WEBLATE_PART==\nUn.")]
    prompt = parsed(chat)
    assert prompt.texts == ("One.",) and prompt.answer(["Un."]) == "Un."


@pytest.mark.parametrize(
    "text", ["=" * 10**6 + "x", " " * 10**6 + "x", "[" * 10**6, "translate " * 10**5]
)
def test_long_texts_are_read_in_linear_time(text: str) -> None:
    start = time.process_time()
    assert parsed([Message("user", text)]).texts == (text,)
    parsed([Message("system", text), Message("user", text)])
    assert time.process_time() - start < 2
