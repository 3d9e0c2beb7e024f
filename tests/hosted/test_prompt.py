"""Templates, and what of a prompt is left out where there is no room."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmnmt.errors import FormatError
from tmnmt.hosted.prompt import Pair, PromptData, Template, load_template, tokens_of

FULL = PromptData(
    languages=("en", "pt-BR"),
    text="Press <g1>F5</g1>.",
    tags=("<g1>", "</g1>"),
    numbers=("901",),
    terms=[Pair("key", "tecla / chave")],
    examples=[Pair("Press F4.", "Prima F4."), Pair("Press it.", "Prima-o.")],
    confirmed=[Pair("Old.", "Velho."), Pair("New.", "Novo.")],
    note="Of a menu.",
    previous="Before.",
    next="After.",
)


def test_the_template_that_comes_along_says_all_that_is_known() -> None:
    system, user = load_template(None).filled(FULL)
    assert user == {"role": "user", "content": "Press <g1>F5</g1>."}
    for known in (
        "from English to Portuguese (BR)",
        "<g1> </g1>",
        "901",
        "key = tecla / chave",
        "Press F4.\n=> Prima F4.\nPress it.\n=> Prima-o.",
        "Old.\n=> Velho.\nNew.\n=> Novo.",
        "Of a menu.",
        "Before.",
        "After.",
    ):
        assert known in system["content"]


def test_what_is_not_known_leaves_no_trace() -> None:
    system, user = load_template(None).filled(PromptData(("en", "pt"), "Go."))
    assert user["content"] == "Go."
    assert system["content"].count("\n") == 1 and "{" not in system["content"]


def test_braces_of_a_text_are_no_names() -> None:
    data = PromptData(("en", "pt"), "{source_language} {?note}", note="{text}")
    system, user = Template("{note}\n=====\n{text}", "t").filled(data)
    assert (system["content"], user["content"]) == ("{text}", "{source_language} {?note}")


def test_what_is_left_out_first_is_written_down() -> None:
    template = load_template(None)
    whole = sum(tokens_of(message["content"]) for message in template.filled(FULL))
    seen = list[str]()
    for room in range(whole, 100, -1):
        prompt = template.fit(FULL, room)[0]["content"]
        known = {
            "next": "After." in prompt,
            "previous": "Before." in prompt,
            "old": "Old." in prompt,
            "new": "New." in prompt,
            "second": "Press it." in prompt,
            "first": "Press F4." in prompt,
            "note": "Of a menu." in prompt,
        }
        seen += [name for name, is_there in known.items() if not is_there and name not in seen]
        assert "key = tecla" in prompt
    assert seen == ["next", "previous", "old", "new", "second", "first", "note"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{text}", "one line ===== is wanted"),
        ("a\n===\n{wrong}{text}", r"3: \{wrong\} is unknown; allowed: source_language"),
        ("\n{?note}\n===\n{text}", r"\{\?note\} is never closed"),
        ("\n\n{/note}\n===\n{text}", r"3: \{/note\} closes nothing"),
        ("{#note}{/note}\n===\n{text}", r"1: \{#note\} is unknown; allowed: terms, examples"),
        ("{source}\n===\n{text}", r"1: \{source\} is unknown"),
        ("{text}\n===\nTranslate.", r"\{text\} is missing"),
    ],
)
def test_a_wrong_template_is_told_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text(text)
    with pytest.raises(FormatError, match=f"prompt.txt:.*{message}"):
        load_template(path)
