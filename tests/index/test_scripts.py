"""Texts of every script are compared by what a reader of it takes for words and letters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from elastic_server import Running

from tmnmt.formats import read_memory
from tmnmt.index import MemoryIndex, build
from tmnmt.index.base import IndexQuery
from tmnmt.index.concordance import Phrase
from tmnmt.index.elastic.build import build_elastic
from tmnmt.index.elastic.index import ElasticIndex
from tmnmt.index.embedded.manifest import FORMER_TOKENISATION, read_manifest, write_manifest
from tmnmt.index.kernels import tokens
from tmnmt.index.skeleton import skeleton
from tmnmt.segments import Segment
from tmnmt.text import located_tokens, match_tokens, token_spans

SCRIPTS = Path(__file__).parents[1] / "data" / "scripts"
LANGUAGES = {
    **{"a2e": "ar", "h2e": "he", "t2e": "th", "hi": "hi", "tr": "tr", "shy": "de", "sr": "uk"},
    **{"j2e": "ja", "z2e": "zh-CN", "de": "de"},
}
Opened = Callable[[str], MemoryIndex | ElasticIndex]


def segments_of(name: str) -> list[Segment]:
    return [*read_memory(SCRIPTS / f"{name}.tmx", LANGUAGES[name], "en")]


@pytest.fixture(scope="module", params=["embedded", "elastic"])
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Opened]:
    """Opens an index of a memory file, in both back ends."""
    indexes: dict[str, MemoryIndex | ElasticIndex] = {}

    def built(name: str) -> MemoryIndex | ElasticIndex:
        if request.param == "embedded":
            path = tmp_path_factory.mktemp("scripts") / name
            build(path, segments_of(name), LANGUAGES[name], "en")
            return MemoryIndex.open(path)
        server: Running = request.getfixturevalue("server")
        address = server.address(f"scripts-{name}")
        build_elastic(address, segments_of(name), LANGUAGES[name], "en")
        return ElasticIndex.open(address)

    def open_one(name: str) -> MemoryIndex | ElasticIndex:
        if name not in indexes:
            indexes[name] = built(name)
        return indexes[name]

    yield open_one
    for index in indexes.values():
        index.close()


@pytest.mark.parametrize(
    ("name", "query", "score"),
    [
        ("hi", "कृपया अनुमति पत्र वहाँ भेजें!", 3 / 7),
        ("hi", "कृपया अनुमति पत्र यहाँ जमा करो।", 6 / 7),
        ("hi", "मत बोलो", 2 / 3),
        ("a2e", "أغلق جميع البرامج قبل التثبيت.", 5 / 6),
        ("a2e", "احفظ الملف.", 1.0),
        ("h2e", "שמור את הקובץ.", 1.0),
        ("t2e", "บันทึกไฟล์แล้ว", 1.0),
        ("shy", "Das Hauptventil ist zu.", 1.0),
        ("shy", "Die Pumpenleistung sinkt.", 1.0),
        ("shy", "Die finale Prüfung.", 1.0),
        ("shy", "Die U-Bahn fährt.", 1.0),
        ("sr", "Перевірте зʼєднання кабелю.", 1.0),
        ("j2e", "データを保存します。", 1.0),
        ("j2e", "123ページを参照。", 1.0),
    ],
)
def test_letters_have_their_marks_and_what_nobody_sees_does_not_count(
    opened: Opened, name: str, query: str, score: float
) -> None:
    (matches,) = opened(name).search([query], 1, 0.3)
    assert matches[0].score == pytest.approx(score)


def test_a_word_of_thai_does_not_count_for_a_whole_text(opened: Opened) -> None:
    query = "กรุณาปิดหน้าต่างทั้งหมดก่อนการติดตั้ง"
    (matches,) = opened("t2e").search([query], 1, 0.3)
    assert 0.6 < matches[0].score < 0.9


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("tr", "Dikkat: ışığı kapatın"),
        ("tr", "DOSYAYI SİL"),
        ("a2e", "اغلق جميع البرامج قبل التثبيت"),
        ("de", "Straße gesperrt"),
    ],
)
def test_case_and_vowel_signs_do_not_count_in_a_skeleton(
    opened: Opened, name: str, query: str
) -> None:
    (answer,) = opened(name).look_up([IndexQuery(query, same_skeleton=4)])
    assert len(answer.same_skeleton) == 1


@pytest.mark.parametrize(
    ("name", "phrase", "marked"),
    [
        ("tr", "ışığı", ["IŞIĞI"]),
        ("shy", "hauptventil", ["Haupt\u00adventil"]),
        ("a2e", "اغلق", ["أَغْلِقْ"]),
        ("hi", "दुकान", ["दुकान"]),
        ("t2e", "ไฟล์", ["ไฟล์"]),
    ],
)
def test_a_concordance_finds_and_marks_words_as_they_are_written(
    opened: Opened, name: str, phrase: str, marked: list[str]
) -> None:
    index = opened(name)
    (occurrence,) = index.concordance(Phrase(phrase))
    text = occurrence.segment.src
    assert [text[begin:end] for begin, end in occurrence.places] == marked


def test_greek_is_found_without_accents() -> None:
    assert skeleton("ΠΡΟΣΟΧΗ ΚΙΝΔΥΝΟΣ") == skeleton("Προσοχή κίνδυνος")


@pytest.mark.parametrize("text", ["Haupt\u00adventil\u200b ﬁn", "ﾃﾞｰﾀ e\u0301", "❤️ x", "‏احفظ"])
def test_spans_are_of_the_text_as_it_is_written(text: str) -> None:
    located = located_tokens(text)
    assert [token for token, _ in located] == match_tokens(text)
    for (begin, end), (token, _) in zip(token_spans(text), located, strict=True):
        assert match_tokens(text[begin:end]) == [token]


FORMER_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+|_|[^\w\s]")


def test_an_index_of_a_former_format_finds_what_a_new_one_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        tokens,
        "written_for_tokens",
        lambda text: ("\n".join(FORMER_TOKEN.findall(text)).encode(), True),
    )
    build(tmp_path / "hi", segments_of("hi"), "hi", "en")
    monkeypatch.undo()
    manifest = read_manifest(tmp_path / "hi")
    former = replace(manifest, format=7, tokenisation=FORMER_TOKENISATION)
    write_manifest(former, tmp_path / "hi")
    query, score = "कृपया अनुमति पत्र यहाँ जमा करो।", pytest.approx(6 / 7)
    with MemoryIndex.open(tmp_path / "hi") as index:
        assert [match.score for match in index.search([query], 1, 0.3)[0]] == [score]
        index.compact()
        assert index.manifest.tokenisation != FORMER_TOKENISATION
        assert [match.score for match in index.search([query], 1, 0.3)[0]] == [score]
