"""What the repairs of texts know of single languages: one file of data for each, such as fr.toml.

A language needs no more than it has: what is missing is left to the model. A new language is one
new file here; `Language` says what may stand in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
Table = Mapping[str, Any]


@dataclass(frozen=True)
class Language:
    """The data of one language. Lists of words are texts with blanks between the words.

    `rare_letters`: Latin letters beyond A to Z that it has, if seldom, in words that are no names;
    None where nobody has listed them. `abbreviations`: words that a full stop does not end a
    sentence behind, in any case; `titles`: the same with their capital, before a name.
    `doubled_words`: those that may rightly stand twice, one after another. `months`: the twelve,
    without accents. `irregular_forms`: words whose forms have no endings in common.
    `before_numbers`: words that say something else before a number: No 5 is not "not any".
    `number_stems`, `cardinals`: as `NumberWords` and `Cardinals` have them. `small_words`: articles
    and the like, by the prepositions that are in them, "" for none. `endings`: what may stand for
    the longest ending that a word has. `agreement`: as `Agreement` has it. `contractions`: verbs
    before n't, their full forms, and what other endings behind an apostrophe stand for.
    `connectives`: words behind which a sentence goes on, so that no phrase ends with them.
    `double_sentence_spacing`: whether two blanks may stand between sentences.
    `sentence_marks`: what is written for . ! ? : ; , where these are not. `typography`: as
    `Typography` has it, with what is otherwise in `regions`."""

    rare_letters: str | None = None
    abbreviations: str = ""
    titles: str = ""
    doubled_words: str = ""
    before_numbers: str = ""
    months: str = ""
    irregular_forms: tuple[tuple[str, ...], ...] = ()
    number_stems: Table = field(default_factory=dict)
    cardinals: Table = field(default_factory=dict)
    small_words: Mapping[str, str] = field(default_factory=dict)
    endings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    agreement: Mapping[str, str] = field(default_factory=dict)
    contractions: Table = field(default_factory=dict)
    connectives: str = ""
    double_sentence_spacing: bool = False
    sentence_marks: Mapping[str, str] = field(default_factory=dict)
    typography: Table = field(default_factory=dict)


@cache
def languages() -> Mapping[str, Language]:
    """All languages that have a file, by their codes."""
    import tomllib

    return {
        path.stem: Language(**tomllib.loads(path.read_text(encoding="utf-8")))
        for path in sorted(FOLDER.glob("*.toml"))
    }


def data_for(code: str) -> Language:
    """The data of a language. Where there is no file of it, all is empty.

    code: the code of the language, whose region does not count: fr-CA has the data of fr."""
    return languages().get(re.split("[-_]", code.lower())[0], Language())


@cache
def listed(name: str) -> tuple[str, ...]:
    """The words that any language has in a list.

    name: the name of the list, such as "abbreviations"."""
    return tuple(
        word for language in languages().values() for word in getattr(language, name).split()
    )
