"""What a prompt for a language model says of a translation: its languages, and its texts.

Programs that translate by a chat model write the languages into an instruction, in words of their
own, and want the answer in the form of what they sent. So the languages are found by their names
and codes and by the words before them, such as "to" and "into". The texts are found by their form:
a text, an object of JSON, or strings between lines of a separator."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from tmnmt.formats.iso639 import NAMES, short
from tmnmt.serve.http_error import wrong

LONGEST = 20_000  # characters of an instruction that are read
DEEPEST = 20  # lists and objects within each other, of a text that is JSON
UNTRANSLATED = {"id", "key", "lang", "language", "source_lang", "target_lang"}  # fields of JSON
_CODE = r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,4}){0,2}"
_QUOTED_CODE = rf"(?<=['\"`(<\[])(?P<quoted>{_CODE})(?=['\"`)>\]])"
_NAMED_CODE = rf"(?:\b(?:from|to|into|code)|lang(?:uage)?|[:=>→])\s{{0,3}}(?P<bare>{_CODE})\b"
_FIRST_CODE = rf"\b(?P<first>{_CODE})(?=\s{{0,3}}(?:->|=>|→))"
_ANY_NAME = "|".join(sorted(NAMES.values(), key=len, reverse=True))
_NAME = rf"\b(?P<name>{_ANY_NAME})\b"  # "polish" is a verb, too
_SMALL_NAME = rf"\b(?:from|to|into)\s(?P<small>{_ANY_NAME.lower()})\b"
_MENTION = re.compile("|".join((_NAME, _SMALL_NAME, _QUOTED_CODE, _NAMED_CODE, _FIRST_CODE)))
_ROLES = re.compile(
    r"(?P<source>(?<![a-z])(?:from|source)(?![a-z]))"
    r"|(?P<target>(?<![a-z])(?:to|into|target)(?![a-z])|->|=>|→)",
    re.IGNORECASE,
)
_CODES_BY_NAME = {name.lower(): code for code, name in NAMES.items()}
_BETWEEN = re.compile(r"-to-|->|[->:|_]")  # the two languages that a model is named by
_INSTRUCTION = re.compile(
    r"(?P<instruction>[^\n:]{0,200}\btranslat\w+\b[^\n:]{0,300})(?::|\n)\s*(?P<text>.*)",
    re.IGNORECASE | re.DOTALL,
)
_LABEL = re.compile(r"(?:text|input|sentence)\s*:\s*(?P<text>.*)", re.IGNORECASE | re.DOTALL)
_QUOTES = ('"', '"'), ("'", "'"), ("“", "”"), ("«", "»")
_FENCE = re.compile(
    r"^(?P<start>[ \t]*```[A-Za-z0-9]{0,10}[ \t]*\r?\n)(?P<text>.*?)(?P<end>(?:\r?\n[ \t]*)?```)",
    re.DOTALL | re.MULTILINE,
)
_SEPARATOR = re.compile(r"^[ \t]*([^\w\s]{2,20}[\w -]{0,40}[^\w\s]{2,20})[ \t]*$", re.MULTILINE)


class Languages(NamedTuple):
    """The codes of two languages; "" where nothing says which one it is."""

    source: str = ""
    target: str = ""


class Message(NamedTuple):
    """A message of a chat, with the role of who wrote it, such as "system" or "user"."""

    role: str
    text: str


@dataclass(frozen=True)
class Prompt:
    """What is to be translated.

    languages: from which language into which.
    texts: the texts.
    answer: a function that writes the translations of these texts in the form of the prompt."""

    languages: Languages
    texts: tuple[str, ...]
    answer: Callable[[Sequence[str]], str]


def parsed(messages: Sequence[Message], properties: Sequence[str] = ()) -> Prompt:
    """Reads a chat. Its last message of a user has the texts; the instruction is in messages of the
    system or of a developer, or else at the beginning of that message.

    messages: the messages in order.
    properties: the fields that the answer has to have, as an object of JSON; none where the answer
    has the form of the texts.

    Raises Refused where no user says anything, and where an answer cannot have these fields."""
    instructions = [entry.text for entry in messages if entry.role in ("system", "developer")]
    texts = [entry.text for entry in messages if entry.role == "user"]
    if not texts:
        raise wrong("messages: the last one is to be of a user, with the text to translate")
    text = texts[-1]
    match = None if instructions else _INSTRUCTION.fullmatch(text.strip())
    if match is not None and languages_of(match["instruction"]).target:
        instructions, text = [match["instruction"]], _unquoted(match["text"])
    instruction = "\n".join(instructions)[:LONGEST]
    return Prompt(languages_of(instruction), *_texts_of(text, instruction, properties))


def languages_of(instruction: str) -> Languages:
    """The languages that an instruction names, by their English names or by their codes.

    instruction: the instruction."""
    found = dict[str, str]()
    end = 0
    for mention in _MENTION.finditer(instruction):
        roles = [*_ROLES.finditer(instruction, end, mention.end())]
        role = (roles[-1].lastgroup or "") if roles else "other"
        end = mention.end()
        code = _code_of(mention)
        if code and role == "other" and "target" not in found:  # the one before the target counts
            found[role] = code
        elif code:
            found.setdefault(role, code)
    target = found.get("target", "")
    source = found.get("source") or found.get("other", "")
    return Languages(source if source != target else "", target)


def languages_of_model(name: str) -> Languages:
    """The languages that the name of a model is made of, such as "en-fr"; none where it has another
    name.

    name: the name."""
    pair = name.rpartition("/")[2]
    for separator in _BETWEEN.finditer(pair):
        languages = Languages(pair[: separator.start()], pair[separator.end() :])
        if all(_is_code(code) for code in languages):
            return languages
    return Languages()


def _code_of(mention: re.Match[str]) -> str:
    """The code of a mention; "" for what is none."""
    if name := mention["name"] or mention["small"]:
        return _CODES_BY_NAME[name.lower()]
    code = mention["quoted"] or mention["bare"] or mention["first"] or ""
    return code if _is_code(code) else ""


def _is_code(code: str) -> bool:
    first = re.split("[-_]", code.lower())[0]
    return re.fullmatch(_CODE, code) is not None and short(first) in NAMES


def _unquoted(text: str) -> str:
    """A text without the label and the quotes that an instruction has put around it."""
    text = text.strip()
    if label := _LABEL.fullmatch(text):
        text = label["text"].strip()
    if (fence := _FENCE.fullmatch(text)) and _json(fence["text"]) is None:
        return fence["text"]
    for first, last in _QUOTES:
        inside = text[len(first) : -len(last)]
        if text.startswith(first) and text.endswith(last) and first not in inside:
            return inside.strip("\n")
    return text


def _texts_of(
    text: str, instruction: str, properties: Sequence[str]
) -> tuple[tuple[str, ...], Callable[[Sequence[str]], str]]:
    """The texts of a message, and what writes their translations in its form."""
    parts = _with_values(text)
    if not all(isinstance(part, str) for part in parts):
        texts = tuple(string for part in parts for string in _strings_of(part))
        return texts, partial(_join_parts, parts)
    if properties:
        if len(properties) > 1:
            raise wrong("response_format: the answer to a text is an object with one field")
        return (text,), lambda texts: _written({properties[0]: texts[0]})
    separator = next((s[1] for s in _SEPARATOR.finditer(text) if s[1] in instruction), "")
    if not separator:
        return (text,), lambda texts: texts[0]
    texts = tuple(re.split(rf"\n[ \t]*{re.escape(separator)}[ \t]*\n", text))
    if "rephras" in instruction.lower():  # the source, and the translation that it has
        return texts[:1], lambda translations: translations[0]
    return texts, f"\n{separator}\n".join


class _Value(NamedTuple):
    """A value of JSON, with what stands around it."""

    start: str
    content: Any
    end: str


def _with_values(text: str) -> list[str | _Value]:
    """A text in parts: values of JSON, which are the whole of it or stand in fences of ```, and
    what stands between."""
    whole = _json(text)
    if whole is not None:
        return [_Value("", whole, "")]
    parts, end = list[str | _Value](), 0
    for fence in _FENCE.finditer(text):
        value = _json(fence["text"])
        if value is not None:
            parts += [text[end : fence.start()], _Value(fence["start"], value, fence["end"])]
            end = fence.end()
    return [*parts, text[end:]]


def _strings_of(part: str | _Value) -> Iterator[str]:
    """What of a part is translated."""
    if isinstance(part, _Value):
        yield from _strings(part.content)
    elif part.strip():
        yield part.strip()


def _join_parts(parts: Sequence[str | _Value], texts: Sequence[str]) -> str:
    """The parts with the translations of their strings."""
    remaining = iter(texts)
    return "".join(
        part.start + _written(_filled(part.content, remaining)) + part.end
        if isinstance(part, _Value)
        else part.replace(part.strip(), next(remaining))
        if part.strip()
        else part
        for part in parts
    )


def _json(text: str) -> Any:
    """The object or list of a text of JSON; None for another text."""
    if text.strip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)  # 1e400 is no number that JSON can hold
    except (ValueError, RecursionError):
        return None
    return value if _depth_fits(value) else None


def _depth_fits(value: Any, depth: int = DEEPEST) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth > 0 and all(_depth_fits(entry, depth - 1) for entry in inside)


def _strings(value: Any) -> Iterator[str]:
    """The strings of a value of JSON that are translated, in order."""
    if isinstance(value, str):
        yield value
    for entry in value if isinstance(value, list) else ():
        yield from _strings(entry)
    for name, entry in value.items() if isinstance(value, dict) else ():
        if name not in UNTRANSLATED:
            yield from _strings(entry)


def _filled(value: Any, texts: Iterator[str]) -> Any:
    """The same value with other strings, as `_strings` gives them."""
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, list):
        return [_filled(entry, texts) for entry in value]
    if isinstance(value, dict):
        return {
            name: entry if name in UNTRANSLATED else _filled(entry, texts)
            for name, entry in value.items()
        }
    return value


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
