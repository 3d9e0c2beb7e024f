"""What an answer of a base has to be: the translation of one text and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tmnmt.checks import Check
from tmnmt.eval.faults.identify import other_language
from tmnmt.filters.contract import ModelOutput
from tmnmt.formats.clean import clean
from tmnmt.hosted.connection import Reply
from tmnmt.hosted.prompt import language_name
from tmnmt.hosted.tags import Tagged, misplaced, parse_tags
from tmnmt.numbers import missing_numbers

TIMES_LONGER, SLACK = 6, 200  # than the text, in characters: no translation is
_REASONING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)  # what some bases write first
_LABEL = re.compile(
    r"(?:sure|certainly|of course|okay|ok|here\b[^:]{0,60}|(?:the |my )?translat\w+\b[^:]{0,60}"
    r"|traduction|traducción|tradução|übersetzung|voici\b[^:]{0,60})\s?[:!]",
    re.IGNORECASE,
)
_QUOTES = (('"', '"'), ("'", "'"), ("“", "”"), ("«", "»"), ("„", "“"), ("`", "`"))
_DIGITS = re.compile("[0-9]+")


class Question(NamedTuple):
    """A text that is translated, as the base reads it.

    text: the text, with its tags.
    masks: the numbers in it that stand for something.
    tgt_lang: the code of the target language.
    checks: a function that gives what features find wrong in a translation, as terms do."""

    text: Tagged
    masks: frozenset[str]
    tgt_lang: str
    checks: Callable[[str, str], list[Check]]


@dataclass(frozen=True)
class Answer:
    """An answer.

    text: the translation, with its tags.
    broken_rules: the rules of an answer that it breaks, each as a sentence that the base
    understands, too.
    failed_checks: likewise what features find wrong in it, with words that it should have."""

    text: Tagged
    broken_rules: tuple[str, ...] = ()
    failed_checks: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        """All that is wrong with it."""
        return *self.broken_rules, *self.failed_checks

    @property
    def checks(self) -> tuple[Check, ...]:
        """What a person is told of it."""
        return (Check("answer", " ".join(self.faults)),) if self.faults else ()


def parse_answer(question: Question, reply: Reply) -> Answer:
    """An answer, with the rules that it breaks.

    question: what was asked.
    reply: what the base has answered."""
    content = _REASONING.sub("", reply.text).strip()
    lines = [line for line in content.splitlines() if line.strip()]
    text = parse_tags(clean(" ".join(lines))[0], question.text.tags)
    broken_rules = tuple(_broken_rules(question, reply, text, len(lines)))
    checks = question.checks(question.text.plain, text.plain) if text.plain.strip() else ()
    return Answer(text, broken_rules, tuple(f"{check.name}: {check.what}." for check in checks))


def _broken_rules(question: Question, reply: Reply, text: Tagged, lines: int) -> Iterator[str]:
    source, target = question.text.plain, text.plain
    if not target.strip():
        yield "It is empty."
        return
    if reply.is_cut or len(target) > TIMES_LONGER * len(source) + SLACK:
        yield "It is too long, or breaks off."
    if lines > 1:
        yield "It has several lines, and the text has one."
    if _LABEL.match(target) and not _LABEL.match(source):
        yield "It begins with words that are not of the translation."
    if any(_is_quoted(target, *quotes) for quotes in _QUOTES) and not any(
        source.startswith(first) for first, _ in _QUOTES
    ):
        yield "It has quotes around it, and the text has none."
    if wrong := misplaced(text, question.text.tags):
        yield f"These tags are missing or misplaced: {' '.join(wrong)}."
    if numbers := _lacking(question, target):
        yield f"These numbers are missing: {', '.join(numbers)}."
    if language := other_language(target, question.tgt_lang):
        name = language_name(language)
        yield f"It is not in {language_name(question.tgt_lang)}, but seems to be {name}."


def _is_quoted(text: str, first: str, last: str) -> bool:
    inside = text[len(first) : -len(last)]
    return len(text) > 2 and text.startswith(first) and text.endswith(last) and first not in inside


def _lacking(question: Question, target: str) -> Sequence[str]:
    """The numbers of a text that its translation lacks, those first that stand for something."""
    source, masks = question.text.plain, question.masks
    lost_masks = list[str]()
    if ModelOutput(target, source, masks).loses_masks:
        numbers = _DIGITS.findall(target)
        lost_masks = [mask for mask in sorted(masks) if mask in source and numbers.count(mask) != 1]
    return [*lost_masks, *(n for n in missing_numbers(source, target) if n not in masks)]
