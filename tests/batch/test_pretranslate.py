"""The memory without a model: full matches, drafts, and what is told of the rest."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_model import write_tiny_model
from ways import KINDS, MEMORY

from tmnmt.batch.analyse import Analysis, queries_of_units
from tmnmt.batch.filling import translate_file
from tmnmt.batch.pretranslate import Pretranslator, best_matches
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Code, Text
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.retrieve import Retriever
from tmnmt.files.opening import open_translatable
from tmnmt.files.texts import string_of, text_of
from tmnmt.files.unit import TranslatableFile, Unit
from tmnmt.index import MemoryIndex, build
from tmnmt.index.match_value import Query
from tmnmt.segments import Match, Segment, Translation
from tmnmt.translator import Translator

ROWS = "Returns the number of rows in the table."
USERS = "Returns the number of users in the table."
PAIRS = [
    Segment(ROWS, "Donne le nombre de lignes de la table."),
    Segment("Page 3 of 12", "Page 3 sur 12"),
    Segment("Close the file", "Fermez le fichier"),
    Segment("See <https://a.example/x> for the full list of names.", "Voir la liste."),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> MemoryIndex:
    folder = tmp_path_factory.mktemp("pretranslate") / "index"
    build(folder, PAIRS, "en", "fr")
    return MemoryIndex.open(folder)


def pretranslated(index: MemoryIndex, *texts: str | Text, drafts: int = 75) -> list[Translation]:
    return list(Pretranslator(Retriever([index], 4, 0.5), drafts=drafts).stream(texts))


def test_matches_below_100_become_drafts_and_the_rest_stays_empty(index: MemoryIndex) -> None:
    texts = (ROWS, "Page 7 of 31", USERS, "CLOSE THE FILE", "Something else altogether.")
    assert [(one.origin, one.tgt) for one in pretranslated(index, *texts)] == [
        ("memory", PAIRS[0].tgt),
        ("adapted", "Page 7 sur 31"),
        ("fuzzy", PAIRS[0].tgt),
        ("fuzzy", "FERMEZ LE FICHIER"),
        ("", ""),
    ]


def test_what_is_held_back_is_counted_and_its_match_is_there(index: MemoryIndex) -> None:
    pretranslator = Pretranslator(Retriever([index], 4, 0.5))
    users, close = pretranslator.stream([USERS, "CLOSE THE FILE"])
    assert (users.tgt, close.tgt) == ("", "")
    assert [match.tgt for match in users.matches] == [PAIRS[0].tgt]
    assert [match.tgt for match in close.matches] == ["FERMEZ LE FICHIER"]  # shares no word with it
    assert pretranslator.counts["held"] == pretranslator.counts[""] == 2


def test_a_draft_has_its_codes_where_their_places_are_sure_and_else_none(
    index: MemoryIndex,
) -> None:
    url = Text(PAIRS[3].src.replace("a.example/x", "b.example/y"))
    bold = Code(0, "open", "<b>", pair="1"), Code(len(USERS), "close", "</b>", pair="1")
    word = replace(bold[0], at=22), replace(bold[1], at=27)
    of_url, of_all, of_word = pretranslated(index, url, Text(USERS, bold), Text(USERS, word))
    assert (of_url.origin, of_url.tgt) == ("fuzzy", PAIRS[3].tgt)
    written = [Text(one.tgt, one.tgt_codes).full_text() for one in (of_all, of_word)]
    assert written == [f"<b>{PAIRS[0].tgt}</b>", PAIRS[0].tgt]


def test_a_near_match_of_a_memory_that_has_tags_as_text_is_a_draft_with_the_tags(
    tmp_path: Path,
) -> None:
    """As a memory is that was made of the catalogues of a program; also with other tags, and with
    a word that is another one, but not where most words are."""
    save = "Press <b>Save</b> to keep the file open."
    target = "Appuyez sur <b>Enregistrer</b> pour garder le fichier ouvert."
    build(tmp_path / "index", [Segment(save, target)], "en", "fr")
    with MemoryIndex.open(tmp_path / "index") as index:
        sources = [
            save,
            save.replace("open", "closed"),
            save.replace("b>", "i>"),
            save.replace("file", "old folder"),
            "Press <b>Stop</b> if you are done.",
        ]
        texts = [text_of(source) for source in sources]
        found = pretranslated(index, *texts)
        values = [value_of(one.matches[0]) for one in found[:4]]
        analysed = Analysis([index])._values([Query(one.plain, one.codes) for one in texts])
        others = [
            [replace(code, form=form, markup=markup(code)) for code in texts[1].codes]
            for form, markup in (
                ("html", lambda code: code.markup),
                ("xliff1", lambda code: "<g>" if code.kind == "open" else "</g>"),
            )
        ]
        near = pretranslated(index, *(Text(texts[1].plain, tuple(codes)) for codes in others))
    assert [one.origin for one in near] == ["fuzzy"] * 2
    assert [tuple(code.markup for code in one.tgt_codes) for one in near] == [
        ("<b>", "</b>"),
        ("<g>", "</g>"),
    ]
    assert [one.origin for one in found] == ["memory", "fuzzy", "adapted", "fuzzy", ""]
    assert [string_of(Text(one.tgt, one.tgt_codes)) for one in found[:2]] == [target] * 2
    assert string_of(Text(found[2].tgt, found[2].tgt_codes)) == target.replace("b>", "i>")
    assert values == analysed[:4] and values[1:] == [87, 99, 77] and analysed[4] < 50


def test_a_full_match_whose_codes_nobody_can_place_is_a_draft_or_counted(
    index: MemoryIndex,
) -> None:
    word = Code(22, "open", "<b>", pair="1"), Code(26, "close", "</b>", pair="1")
    (draft,) = pretranslated(index, Text(ROWS, word))
    assert (draft.origin, draft.tgt, draft.tgt_codes) == ("fuzzy", PAIRS[0].tgt, ())
    pretranslator = Pretranslator(Retriever([index], 4, 0.5))
    (tagged,) = pretranslator.stream([Text(ROWS, word)])
    assert (tagged.tgt, pretranslator.counts["unplaced"]) == ("", 1)
    assert [match.tgt for match in tagged.matches] == [PAIRS[0].tgt]


def variants(plain: str) -> list[Text]:
    """A text as a memory may not hold it: with other numbers, letters, ends and placeholders."""
    texts = [
        plain,
        re.sub(r"\d+", lambda number: str(int(number[0]) + 7), plain),
        plain.upper(),
        plain.lower(),
        plain.rstrip("."),
        f"  {plain} ",
        plain.replace("%s", "%d"),
    ]
    return [with_placeholders(Text(variant)) for variant in dict.fromkeys(texts)]


def test_a_model_does_not_change_what_becomes_of_full_matches(tmp_path: Path) -> None:
    """For all kinds of input, and for variants of what the memory holds."""
    write_tiny_model(tmp_path / "model")
    issued = "The permit %s was issued on {date}."
    targets = dict(MEMORY) | {issued: "Permis %s, le {date}."}
    texts = [text for text in (*KINDS.values(), *targets) if isinstance(text, str)]
    pairs = [Segment(src, tgt) for src, tgt in targets.items()]
    build(tmp_path / "index", pairs, "en", "fr")
    options = TranslationOptions(mode="off", beam=1, threads=1)
    with MemoryIndex.open(tmp_path / "index") as index:
        translator = Translator.load(tmp_path / "model", [index], options)
        sources = [variant for text in texts for variant in variants(text)]
        by_model = [translator.translate([source])[0] for source in sources]
        by_memory = [pretranslated(index, source, drafts=0)[0] for source in sources]
    compared = [
        (result_of(first), result_of(second))
        for first, second in zip(by_model, by_memory, strict=True)
        if first.origin in ("memory", "adapted") or second.tgt
    ]
    assert [first for first, _ in compared] == [second for _, second in compared]
    assert len(compared) > 30


def result_of(translation: Translation) -> tuple[str, str, tuple[Code, ...]]:
    return translation.tgt, translation.origin, translation.tgt_codes


WORDS = [
    "the",
    "file",
    "of",
    "a",
    "table",
    "row",
    "user",
    "list",
    "page",
    "is",
    "not",
    "new",
    "3",
    "7",
]


def sentence(rnd: random.Random) -> str:
    return " ".join(rnd.choice(WORDS) for _ in range(rnd.randint(2, 9))) + rnd.choice(["", "."])


def varied(rnd: random.Random, text: str) -> str:
    words = text.split()
    words[rnd.randrange(len(words))] = rnd.choice(WORDS)
    return " ".join(words)


def units_of(file: TranslatableFile) -> list[Unit]:
    return [unit for document in file.documents() for unit in document.units]


def test_analyse_counts_as_drafts_what_becomes_one(tmp_path: Path) -> None:
    rnd = random.Random(42)
    pairs = [Segment(text, f"t{text}") for text in dict.fromkeys(sentence(rnd) for _ in range(300))]
    build(tmp_path / "index", pairs, "en", "fr")
    texts = dict.fromkeys(varied(rnd, rnd.choice(pairs).src) for _ in range(200))
    body = "".join(f'msgid "{text}"\nmsgstr ""\n\n' for text in texts)
    (tmp_path / "a.po").write_text(f'msgid ""\nmsgstr "Language: fr\\n"\n\n{body}')
    file = open_translatable(tmp_path / "a.po")
    index = MemoryIndex.open(tmp_path / "index")
    values = Analysis([index])._values(queries_of_units(units_of(file)))
    pretranslator = Pretranslator(Retriever([index], 4, 0.5), drafts=75)
    every = list(
        translate_file(
            file, "nothing", lambda texts: pretranslator.stream(t for d in texts for t in d)
        )
    )
    with (tmp_path / "b.po").open("wb") as to:
        file.write(to, [one.filling for one in every])
    full = [one.translation.origin for one in every if one.translation is not None]
    again = units_of(open_translatable(tmp_path / "b.po"))
    assert [unit.state == "new" for unit in again] == [value < 75 for value in values]
    assert [origin == "fuzzy" for origin in full] == [75 <= value < 100 for value in values]
    assert sum(unit.state == "draft" for unit in again) > 40
    # whatever an analysis calls a match is told, too
    sources = [unit.source for unit in units_of(file)]
    best = best_matches(Retriever([index], 4, 0.5), sources)
    assert [value_of(match) for match in best] == [value if value >= 50 else 0 for value in values]


def value_of(match: Match | None) -> int:
    return match.worth.value if match is not None and match.worth is not None else 0
