"""Where a phrase stands: one text, every kind of index, and brute force over everything."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle, permutations, product
from pathlib import Path

import pytest
from brute_force import real_segments
from damaged import BYTES, damaged
from elastic_server import Running
from hypothesis import given, settings
from hypothesis import strategies as st

from tmnmt.errors import MemoryIndexError, UsageError
from tmnmt.index import MemoryIndex, build
from tmnmt.index.concordance import Occurrence, Phrase, Side, occurrences
from tmnmt.index.elastic import build as build_module
from tmnmt.index.elastic import layout
from tmnmt.index.elastic.build import build_elastic
from tmnmt.index.elastic.concordance import _query
from tmnmt.index.elastic.index import ElasticIndex
from tmnmt.index.embedded import positions
from tmnmt.index.embedded.manifest import FORMAT, read_manifest, write_manifest
from tmnmt.index.filter import Filter
from tmnmt.segments import Segment
from tmnmt.text import located_tokens, match_tokens, nfc

TEXT = "The notice of default, in writing; a Notice of  DEFAULT’s end."
SIDES: tuple[Side, Side] = ("source", "target")


def marked(text: str, asked: str, within: int | None = None, match_case: bool = False) -> list[str]:
    phrase = Phrase(asked, within=within, match_case=match_case)
    return [text[begin:end] for begin, end in phrase.places(text)]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("notice of default", ["notice of default", "Notice of  DEFAULT"]),
        ("default, in", ["default, in"]),
        ("notice default", []),
        ("not*", ["notice", "Notice"]),
        ("notice of def*", ["notice of default", "Notice of  DEFAULT"]),
        ("notice o* d*", ["notice of default", "Notice of  DEFAULT"]),
        ("notice *", []),
        ("default's", ["DEFAULT’s"]),
        ("default’s END.", ["DEFAULT’s end."]),
        ("fault", []),
    ],
)
def test_a_phrase_is_its_words_in_a_row_whatever_their_case(asked: str, found: list[str]) -> None:
    assert marked(TEXT, asked) == found


def test_case_counts_where_that_is_asked_for() -> None:
    assert marked(TEXT, "notice of default", match_case=True) == ["notice of default"]
    assert marked(TEXT, "Not*", match_case=True) == ["Notice"]
    assert marked("die Straße, DIE STRASSE", "strasse") == ["Straße", "STRASSE"]
    assert marked("die Straße, DIE STRASSE", "Straße", match_case=True) == ["Straße"]


@pytest.mark.parametrize(
    ("asked", "within", "found"),
    [
        ("default notice", 2, ["notice", "default", "Notice", "DEFAULT"]),
        ("default notice", 1, []),
        ("writing, default", 3, ["default", "writing"]),
        ("writing default", 2, []),
        ("end not* wri*", 9, ["writing", "Notice", "end"]),
        ("notice", 1, ["notice", "Notice"]),
        ("notice notice", 1, ["notice", "Notice"]),
    ],
)
def test_words_near_each_other_are_found_in_any_order(
    asked: str, within: int, found: list[str]
) -> None:
    assert marked(TEXT, asked, within) == found


def test_places_are_of_the_text_as_it_is_written() -> None:
    text = "Cafe\u0301 de\u0301ja\u0300 \u1100\u1161\u11a8 – fin"
    assert nfc(text) != text
    assert marked(text, "déjà 각") == ["de\u0301ja\u0300 \u1100\u1161\u11a8"]
    assert marked(text, "CAFÉ") == ["Cafe\u0301"]


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("ae\u0301\u0316\u1100\u1161\u11a8 .ﬁÅ\u212b"), max_size=12))
def test_tokens_stand_where_they_come_from(text: str) -> None:
    assert [token for token, _ in located_tokens(text)] == match_tokens(text)
    assert all(
        token in match_tokens(text[begin:end]) for token, (begin, end) in located_tokens(text)
    )


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"text": " "}, "no word to look for"),
        ({"text": "a", "within": 0}, "within is 0; it must be 1 to 30"),
        ({"text": "a", "side": "both"}, "source or target, not 'both'"),
    ],
)
def test_what_cannot_be_looked_for_is_told(asked: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Phrase(**asked)  # type: ignore[arg-type]


def phrases(segments: Sequence[Segment], count: int, seed: int) -> list[Phrase]:
    """Words of random segments in a row, or near each other; some cut to a beginning, some in
    capitals, some that stand nowhere."""
    draw, made = random.Random(seed), list[Phrase]()
    while len(made) < count:
        side = draw.choice(SIDES)
        tokens = match_tokens(Phrase("x", side).side_text(draw.choice(segments)))
        if not tokens:
            continue
        at, size = draw.randrange(len(tokens)), draw.randint(1, 4)
        within = draw.choice([None, None, 1, 2, 5, 30])
        words = tokens[at : at + size]
        if within:
            near = tokens[max(0, at - 4) : at + 5]
            words = [draw.choice(near) for _ in range(draw.randint(1, 3))]
        if draw.random() < 0.3:
            words[-1] = words[-1][: draw.randint(1, 4)] + "*"
        if draw.random() < 0.2:
            words[draw.randrange(len(words))] = draw.choice(["the", "de", "unheard"])
        text = " ".join(words)
        text = text.upper() if draw.random() < 0.3 else text
        made.append(Phrase(text, side, within, draw.random() < 0.3))
    return made


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryIndex]:
    path = tmp_path_factory.mktemp("index") / "real"
    build(path, real_segments(), "en", "fr")
    with MemoryIndex.open(path) as index:
        yield index


@pytest.fixture(scope="module")
def elastic(server: Running) -> Iterator[ElasticIndex]:
    address = server.address("concordance")
    build_elastic(address, real_segments(), "en", "fr", shards=2)
    with ElasticIndex.open(address) as index:
        yield index


def test_an_index_finds_what_brute_force_finds(embedded: MemoryIndex) -> None:
    for number, phrase in enumerate(phrases(real_segments(), 36, 1)):
        k = (3, 20, 5000)[number % 3]
        assert embedded.concordance(phrase, k) == occurrences(phrase, real_segments(), k), phrase


@pytest.fixture(scope="module")
def answered() -> list[tuple[Phrase, int, list[Occurrence]]]:
    """Phrases, how many segments are asked for, and what brute force finds."""
    twice = [Phrase("entry entry"), Phrase("the the"), Phrase("of, of* the THE", within=30)]
    asked = zip([*twice, *phrases(real_segments(), 15, 5)], cycle((3, 20, 5000)))
    return [(phrase, k, occurrences(phrase, real_segments(), k)) for phrase, k in asked]


@pytest.mark.parametrize("newest", [0, 40, 1 << 15])
@pytest.mark.parametrize("many", [0, 1, 16, 1 << 20])
def test_every_way_to_look_finds_the_same(
    embedded: MemoryIndex,
    answered: list[tuple[Phrase, int, list[Occurrence]]],
    monkeypatch: pytest.MonkeyPatch,
    many: int,
    newest: int,
) -> None:
    """Words of any frequency with bits and without; the newest segments first, and all in turn."""
    monkeypatch.setattr(positions, "FREQUENT", many)
    monkeypatch.setattr(positions, "NEWEST", newest)
    for phrase, k, expected in answered:
        assert embedded.concordance(phrase, k) == expected, phrase


def test_a_server_answers_alike(embedded: MemoryIndex, elastic: ElasticIndex) -> None:
    for number, phrase in enumerate(phrases(real_segments(), 30, 2)):
        k = (3, 20, 5000)[number % 3]
        assert elastic.concordance(phrase, k) == embedded.concordance(phrase, k), phrase


WORDS = st.sampled_from(["a", "b", "B", "ab", "Abc", "’", "."])
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
PAIRS = st.tuples(TEXTS, TEXTS, st.sampled_from(["", "2020", "2021"]))


@settings(max_examples=15, deadline=None)
@given(st.data(), st.lists(PAIRS, max_size=8), st.lists(PAIRS, max_size=4))
def test_small_memories_that_change_are_searched_as_by_brute_force(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    built: list[tuple[str, str, str]],
    added: list[tuple[str, str, str]],
) -> None:
    path = tmp_path_factory.mktemp("small") / "index"
    build(path, [Segment(s, t, changed=date) for s, t, date in built], "en", "fr")
    with pytest.MonkeyPatch.context() as patch, MemoryIndex.open(path) as index:
        loose = data.draw(st.sampled_from([0, 2, 512]))
        patch.setattr("tmnmt.index.embedded.generation.LOOSE", loose)
        index._now._loose = loose
        index.add([Segment(s, t, changed=date or "2019") for s, t, date in added])
        there = list(index.segments())
        if there:
            index.delete([data.draw(st.sampled_from(there)).id])
            for one in list(index.segments())[:1]:
                index.edit([one.id], lambda old: replace(old, src=old.tgt, tgt=old.src + " b"))
        alive = list(index.segments())
        words = ["a", "b", "ab", "a*", "'", "B"]
        for texts, within, side, case in product(
            [*permutations(words, 2), *permutations(words, 1)], (None, 2), SIDES, (False, True)
        ):
            phrase = Phrase(" ".join(texts), side, within, case)
            assert index.concordance(phrase, 2) == occurrences(phrase, alive, 2), phrase


def test_changes_count_at_once_on_a_server(server: Running) -> None:
    address = server.address("concordance-changes")
    build_elastic(address, [Segment("One permit", "Un permis")], "en", "fr")
    with ElasticIndex.open(address) as index:
        index.add([Segment("Two permits", "Deux permis"), Segment("three", "PERMIS")])
        index.edit([1], lambda old: replace(old, src="A licence"))
        index.delete([3])
        assert _ids(index.concordance(Phrase("permit*"))) == [2]
        assert sorted(_ids(index.concordance(Phrase("permis", "target")))) == [1, 2]
        assert _ids(index.concordance(Phrase("licence"))) == [1]


def _ids(found: list[Occurrence]) -> list[int]:
    return [one.segment.id for one in found]


def test_only_segments_that_are_meant_are_found(
    embedded: MemoryIndex, elastic: ElasticIndex
) -> None:
    meant = Filter(document=real_segments()[700].document)
    kept = [*filter(meant.keeps, real_segments())]
    assert 0 < len(kept) < len(real_segments())
    for phrase in phrases(kept, 15, 3):
        expected = occurrences(phrase, kept, 5)
        assert embedded.restricted_to(meant).concordance(phrase, 5) == expected
        assert elastic.restricted_to(meant).concordance(phrase, 5) == expected


def former(folder: Path) -> None:
    """An index as format 6 had it."""
    manifest = read_manifest(folder)
    later = [name for name in manifest.files if "/target_" in name or "/position" in name]
    for name in later:
        (manifest.generation_dir(folder) / name).unlink()
    files = {name: about for name, about in manifest.files.items() if name not in later}
    write_manifest(replace(manifest, format=6, files=files), folder)


def test_an_index_of_the_former_format_answers_alike_and_is_made_new_by_a_compaction(
    tmp_path: Path,
) -> None:
    segments = real_segments()[:300]
    build(tmp_path / "m", segments, "en", "fr")
    former(tmp_path / "m")
    asked = phrases(segments, 12, 4)
    with MemoryIndex.open(tmp_path / "m") as index:
        for _ in range(2):
            assert [index.concordance(phrase, 9) for phrase in asked] == [
                occurrences(phrase, segments, 9) for phrase in asked
            ]
            index.compact()
            assert index.manifest.format == FORMAT and index.verify() == 300


FORMER_WORDS = {  # as format 8 had them
    "type": "text",
    "analyzer": "whitespace",
    "similarity": "boolean",
    "norms": False,
    "index_options": "docs",
}


@pytest.mark.parametrize("former", [layout.WORDS_SINCE - 1, layout.PLACES_SINCE - 1])
def test_a_server_index_of_a_former_format_answers_alike(
    server: Running, monkeypatch: pytest.MonkeyPatch, former: int
) -> None:
    mappings, has_words = layout.mappings(), former >= layout.WORDS_SINCE
    for name in ("src_words", "tgt_words", "newest", "newest_id"):
        if not has_words:
            del mappings["properties"][name]
        elif name.endswith("words"):
            mappings["properties"][name] = FORMER_WORDS
    monkeypatch.setattr(build_module, "mappings", lambda: mappings)
    monkeypatch.setattr(build_module, "document", partial(layout.document, has_words=has_words))
    old = partial(layout.ElasticManifest, format=former)
    monkeypatch.setattr(build_module, "ElasticManifest", old)
    address = server.address(f"former-words-{former}")
    build_elastic(address, [Segment("Page 3", "Page trois")], "en", "fr")
    with ElasticIndex.open(address) as index:
        index.add([Segment("Page 4", "Page quatre"), Segment("4, page", "4, page")])
        assert _ids(index.concordance(Phrase("PAGE", within=1))) == [2, 3, 1]
        assert _ids(index.concordance(Phrase("PAG*"))) == [2, 3, 1]
        assert _ids(index.concordance(Phrase("page 4"))) == [2]
        assert _ids(index.concordance(Phrase("page tr*", "target"))) == [1]


def test_a_server_names_only_texts_that_have_the_phrase(server: Running) -> None:
    """However many others have its words, and its words stand in targets of one source."""
    address = server.address("named")
    others = [Segment(f"the owner of ship {i}", f"navire {i} de le") for i in range(300)]
    there = [Segment("The the", "de l'eau"), Segment("The the", "eau de")]
    build_elastic(address, [*there, *others], "en", "fr")
    with ElasticIndex.open(address) as index:
        for phrase, found in (
            (Phrase("the the"), [1, 2]),
            (Phrase("ow* ship", within=1), []),
            (Phrase("ship ow*", within=2), None),
            (Phrase("eau eau", "target"), []),
            (Phrase("a" * 30 + "*"), []),
        ):
            answer = server.find("named", _query(phrase, True))
            ids = sorted(n for hit in answer for n in hit["_source"]["ids"])
            assert ids == (found if found is not None else [*range(3, 303)]), phrase
            assert sorted(_ids(index.concordance(phrase, 400))) == ids
        assert _ids(index.concordance(Phrase("e* d*", "target"))) == [2]
        assert _ids(index.concordance(Phrase("d* l", "target"))) == [1]


def test_a_damaged_list_of_positions_is_told(tmp_path: Path) -> None:
    build(tmp_path / "m", real_segments()[:50], "en", "fr")
    path = tmp_path / "m/generation-1/postings-1/target_positions.npy"
    content = path.read_bytes()
    path.write_bytes(content[:128] + b"\xff\xff\xff\x7f" * ((len(content) - 128) // 4))
    with (
        MemoryIndex.open(tmp_path / "m") as index,
        pytest.raises(MemoryIndexError, match=r"target_positions\.npy: damaged"),
    ):
        index.concordance(Phrase("de", "target"))


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("undamaged") / "index"
    build(path, real_segments()[:200], "en", "fr")
    return path


OF_WORDS = (
    *("positions", "position_start", "position_first", "position_header"),
    *("target_positions", "target_position_first", "target_position_header"),
    *("target_members", "target_ids"),
    *("target_position_start", "target_length_start", "target_token_start"),
    *("target_member_offsets", "target_vocabulary", "vocabulary"),
)


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("name", OF_WORDS)
def test_no_damage_ends_in_more_than_one_clear_error(
    undamaged: Path, tmp_path: Path, name: str, kind: str
) -> None:
    path = tmp_path / "index"
    damaged(undamaged, path, name, kind)
    asked = [
        Phrase(text, side, within)
        for text in ("the", "of the", "a*", "de la", "l'*")
        for side in SIDES
        for within in (None, 5)
    ]
    for phrase in asked:
        try:
            with MemoryIndex.open(path) as index:
                index.concordance(phrase, 9)
                index.restricted_to(Filter(origin="x")).concordance(phrase, 9)
        except MemoryIndexError as error:
            assert "\n" not in str(error)
