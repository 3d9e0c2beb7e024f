"""Servers that are busy, slow, away, or that want to know who asks: a proxy misbehaves in front of
a real one."""

from __future__ import annotations

import base64
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from brute_force import brute_force, pairs, queries, real_segments
from elastic_proxy import Fault, Proxy, proxy
from elastic_server import Running
from required import absent

from tmnmt.errors import MemoryIndexError, ServerError
from tmnmt.index.elastic.build import build_elastic
from tmnmt.index.elastic.hosts import only_reads
from tmnmt.index.elastic.index import ElasticIndex, _Question
from tmnmt.segments import Segment
from tmnmt.text import match_tokens

PASSING: tuple[Fault, ...] = (429, "cut", 503, "lost", 502, "some", 504)

HANGS = 1000.0  # seconds without an answer
SECONDS = 4.0  # that a slow server is waited for: a busy machine needs some for any answer


@pytest.fixture
def between(server: Running) -> Iterator[Proxy]:
    with proxy(server) as made:
        yield made


@pytest.fixture(scope="module")
def built(server: Running) -> str:
    build_elastic(server.address("faults"), real_segments()[:300], "en", "fr")
    return "faults"


def test_a_build_gets_through_what_passes(server: Running, between: Proxy) -> None:
    for count in (9, 300):  # into an empty place, and over what is there
        between.fail("_bulk", *PASSING, 413)
        between.fail("_aliases", 503, "cut", "lost")
        between.fail(
            "/busy-build", 503, "lost", "cut", "lost", "lost"
        )  # looked for, made, and what else names it
        manifest = build_elastic(
            between.address("busy-build"), real_segments()[:count], "en", "fr", force=True
        )
        assert manifest.segments == count and not any(between.faults.values())
        with ElasticIndex.open(server.address("busy-build")) as index:
            assert list(index.segments()) == list(real_segments()[:count])


def test_a_search_gets_through_what_passes(server: Running, between: Proxy, built: str) -> None:
    asked = queries(9, 3)
    with (
        ElasticIndex.open(server.address(built)) as there,
        ElasticIndex.open(between.address(built)) as here,
    ):
        between.fail("_msearch", *PASSING)
        assert here.search(asked, 3, 0.4) == there.search(asked, 3, 0.4)
        between.fail(between.engine.point_path, *PASSING[:5])
        between.fail("_search", *PASSING[:5])
        assert list(here.segments()) == list(there.segments())
    assert not any(between.faults.values())


@pytest.mark.parametrize("path", ["counter", "_mget", "_bulk"])
def test_a_change_whose_answer_was_lost_is_made_once(
    server: Running, between: Proxy, path: str
) -> None:
    address = server.address(f"once-{path.strip('_')}")
    build_elastic(address, real_segments()[:9], "en", "fr")
    with ElasticIndex.open(between.address(address.name)) as index:
        between.fail(path, *PASSING[:5])
        new = index.add(
            [Segment("one more", "un"), Segment("one more", "deux"), Segment("another", "trois")]
        )
        assert not any(between.faults.values())
        if path != "counter":  # only additions need new ids
            between.fail(path, *PASSING[:5])
        index.edit(new[:1], lambda segment: Segment("quite another", "un"))
        assert not any(between.faults.values())
        if path != "counter":
            between.fail(path, *PASSING[:5])
        index.delete(new[1:2])
        assert not any(between.faults.values())
        assert [segment.tgt for segment in index.segments()][9:] == ["un", "trois"] and len(
            set(new)
        ) == 3
        assert index.changes() == (2, 0, 0) and index.verify() == 11


@pytest.mark.parametrize(
    ("other", "left"),
    [
        (lambda index, number: index.delete([number]), []),
        (
            lambda index, number: index.edit([number], lambda s: replace(s, src="elsewhere")),
            [("elsewhere", "un")],
        ),
        (
            lambda index, number: index.edit([number], lambda s: replace(s, tgt="deux")),
            [("one more", "deux")],
        ),
    ],
)
def test_what_others_make_of_an_addition_whose_answer_was_lost_stays(
    server: Running,
    between: Proxy,
    other: Callable[[ElasticIndex, int], object],
    left: list[tuple[str, str]],
) -> None:
    address = server.address("lost-addition")
    build_elastic(address, real_segments()[:9], "en", "fr", force=True, shards=2)
    with (
        ElasticIndex.open(between.address(address.name)) as index,
        ElasticIndex.open(address) as others,
    ):
        between.fail("_bulk", lambda: other(others, 10))
        assert index.add([Segment("one more", "un")]) == [10]
        assert [(segment.src, segment.tgt) for segment in index.segments()][9:] == left
        assert index.verify() == len(index) == 9 + len(left) and not any(between.faults.values())


def test_where_too_many_have_changed_a_pair_since_it_is_not_known_what_was_done(
    server: Running, between: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("change", "document"):
        monkeypatch.setattr(f"tmnmt.index.elastic.{module}.REQUESTS_KEPT", 3)
    address = server.address("too-many")
    build_elastic(address, real_segments()[:9], "en", "fr", force=True)

    def follow(changes: int) -> Callable[[], object]:
        return lambda: [others.add([Segment("one more", "of others")]) for _ in range(changes)]

    with (
        ElasticIndex.open(between.address(address.name)) as index,
        ElasticIndex.open(address) as others,
    ):
        between.fail("_bulk", follow(2))
        index.add([Segment("one more", "mine")])
        between.fail("_bulk", follow(3))
        with pytest.raises(
            ServerError,
            match=r"unknown what was done \(0 of 1 segment added for certain, the next 1 perha",
        ):
            index.add([Segment("one more", "mine too")])
        assert (
            sum(segment.tgt.startswith("mine") for segment in others.segments()) == 2
            and others.verify() == 16
        )


@pytest.mark.parametrize("step", range(7))
def test_a_correction_is_made_once_whatever_others_do_before_the_next_try(
    server: Running, between: Proxy, step: int
) -> None:
    address = server.address("lost-correction")
    build_elastic(address, real_segments()[:9], "en", "fr", force=True, shards=2)

    def say(name: str) -> Callable[[Segment], Segment]:
        return lambda segment: replace(
            segment, src=f"{name} {segment.src}", tgt=f"{name} {segment.tgt}"
        )

    with (
        ElasticIndex.open(between.address(address.name)) as index,
        ElasticIndex.open(address) as others,
    ):
        between.fail("_bulk", *[0.0] * step, lambda: others.edit([1, 2], say("then")))
        index.edit([1, 2], say("first"))
        assert not any(between.faults.values())
        for now, before in zip(index.get([1, 2]), real_segments(), strict=False):
            assert (now.src, now.tgt) == (f"then first {before.src}", f"then first {before.tgt}")
        assert index.verify() == len(index) == 9 and index.changes() == (0, 2, 0)


def test_what_does_not_pass_is_an_error_that_says_so(between: Proxy, built: str) -> None:
    with ElasticIndex.open(between.address(built), patience=0.3) as index:
        for fault, said in (
            (429, r"is too busy \(HTTP 429\): .*queue full"),
            ("cut", "cannot be reached"),
        ):
            between.fail("_msearch", *[fault] * 50)
            with pytest.raises(ServerError, match=said + r".*\(tried for 0 s\); try again later"):
                index.search(["Article 1"])
        between.fail("_msearch", *["some"] * 50)
        with pytest.raises(ServerError, match=r"is too busy: es_rejected.*queue full"):
            index.search(["Article 1"])
        between.fail("_msearch")
        assert index.search(["Article 1"])[0]


def test_a_batch_says_how_many_were_answered_before_the_server_was_slow(
    between: Proxy, built: str
) -> None:
    asked = [f"Article {i}" for i in range(70)]
    with ElasticIndex.open(between.address(built), seconds_to_answer=SECONDS) as index:
        index.search(asked[:1])  # so that the server is warm
        between.fail("_msearch", 0.0, 2 * SECONDS)
        said = (
            r"no answer within 4 s; ask again when the server is less busy \(32 of 70 queries "
            r"had been answered\)"
        )
        with pytest.raises(ServerError, match=said):
            index.search(asked, 3)
    with ElasticIndex.open(between.address(built)) as index:
        assert len(index.search(asked, 3)) == 70


def test_a_slow_server_leaves_the_old_index_and_building_again_works(
    server: Running, between: Proxy
) -> None:
    address = between.address("slow-build")
    build_elastic(address, real_segments()[:9], "en", "fr")
    between.fail("_bulk", 2 * SECONDS)
    said = (
        r"no answer within 4 s.*; the build is unfinished, what answered before still does: "
        r"build again with --force"
    )
    with pytest.raises(ServerError, match=said):
        build_elastic(address, real_segments(), "en", "fr", force=True, seconds_to_answer=SECONDS)
    with ElasticIndex.open(address) as index:
        assert len(index) == 9
        assert build_elastic(address, real_segments()[:20], "en", "fr", force=True).segments == 20
        assert len(index) == 20


def test_an_addition_that_is_broken_off_says_what_is_there(between: Proxy) -> None:
    address = between.address("broken-off")
    build_elastic(address, real_segments()[:9], "en", "fr")
    many = [Segment(f"sentence {i}", str(i)) for i in range(1200)]
    with ElasticIndex.open(address, patience=0.3) as index:
        between.fail("_bulk", 0.0, *["cut"] * 50)
        with pytest.raises(
            ServerError, match=r"\(500 of 1,200 segments added for certain, the next 500 perhaps\)"
        ):
            index.add(many)
        between.fail("_bulk")
        ids = index.add(many[500:])
        assert (
            len(index) == 1209 and ids[0] > 1209
        )  # those that were reserved for the first try are given to nobody
        assert index.search(["sentence 3", "sentence 1199"], 1, 1.0)[1][0].segment.id == ids[-1]
        between.fail("_refresh", *["cut"] * 50)
        with pytest.raises(
            ServerError, match=r"\(all 1,200 segments are added, but perhaps not found yet\)"
        ):
            index.add(many)


@pytest.mark.parametrize(
    ("done", "source", "going_on"),
    [
        (1, "first", "edit"),  # the move is decided
        (3, "first", "delete"),  # there is an empty document for it
        (5, "first", "compact"),  # all was read again
        (6, "second", "edit"),  # the new version is there, the old one not gone
        (6, "second", "delete"),
        (6, "second", "compact"),
    ],
)
def test_a_correction_that_is_broken_off_loses_nothing_and_goes_on(
    between: Proxy, done: int, source: str, going_on: str
) -> None:
    address = between.address(f"moving-{done}-{going_on}")
    build_elastic(
        address,
        [*real_segments()[:8], Segment("the first of my own sources", "un")],
        "en",
        "fr",
        shards=2,
    )

    def change(segment: Segment) -> Segment:
        return replace(segment, src="the second of my own sources")

    with ElasticIndex.open(address, patience=0.3) as index:
        before = list(index.segments())
        between.fail("_bulk", *[0.0] * done, *["cut"] * 50)
        with pytest.raises(
            ServerError, match=r"\(0 of 1 segment corrected for certain, the next 1 perhaps\)"
        ):
            index.edit([9], change)
        between.fail("_bulk")
        index._server.ask("POST", f"/{address.name}/_refresh")
        now = list(index.segments())
        assert now[:8] == before[:8] and [segment.src.split()[1] for segment in now[8:]] == [source]
        assert index.verify() == len(index) == 9 and index.changes() == (0, int(done == 6), 0)
        for query in (before[8].src, "the second of my own sources"):
            for k in (1, 2, 9):
                assert pairs(index.search([query], k, 0.0)[0]) == brute_force(query, now, k, 0.0)
        index.add([Segment("the first of my own sources", "deux")])  # beside one that is on its way
        changes: dict[str, Callable[[], object]] = {
            "compact": index.compact,
            "edit": lambda: index.edit([9], change),
            "delete": lambda: index.delete([9]),
        }
        changes[going_on]()
        now = list(index.segments())
        left = [("the second of my own sources", 9)] if going_on != "delete" else []
        assert [(s.src, s.id) for s in now[8:]] == [*left, ("the first of my own sources", 10)]
        assert index.verify() == len(index) == len(now)
        assert index.changes() == (1, int(going_on != "delete"), int(going_on == "delete"))


def test_where_a_host_is_away_the_next_is_asked(server: Running, built: str) -> None:
    with proxy(server) as first, proxy(server) as second:
        nobody = "http://127.0.0.1:9"  # nothing listens there
        address = first.address(built, second.url, nobody)
        with ElasticIndex.open(address, patience=5.0) as index:
            expected = index.search(["Article 1"], 3)
            first.fail("/", *["cut"] * 1000)
            assert [index.search(["Article 1"], 3) for _ in range(4)] == [expected] * 4
            first.fail("/")
            second.fail("/", *["cut"] * 1000)
            assert [index.search(["Article 1"], 3) for _ in range(4)] == [expected] * 4
            first.fail("/", *["cut"] * 1000)
            index.close()
        with pytest.raises(ServerError, match="cannot be reached"):
            ElasticIndex.open(address, patience=0.2)


def test_where_a_host_hangs_the_next_is_asked_and_goes_on_being_asked(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.index.elastic.hosts.SECONDS_BEFORE_THE_NEXT", (1.0, 20.0))
    build_elastic(server.address("hanging"), real_segments()[:99], "en", "fr")
    with proxy(server) as one, proxy(server) as two:
        with ElasticIndex.open(one.address("hanging", two.url)) as index:
            expected = index.search(["Article 1"], 3)
            first, second = (one, two) if one.requests else (two, one)
            assert not second.requests  # who answers is asked again
            first.fail("/", *[HANGS] * 1000)
            assert index.search(["Article 1"], 3) == expected
            asked = first.requests
            (number,) = index.add([Segment("one more", "un")])
            index.edit([number], lambda segment: replace(segment, src="quite another"))
            index.delete([number])
            assert index.verify() == len(index) == 99 == len(list(index.segments()))
            assert first.requests == asked  # a change goes where what it needs was read
            first.fail("/")
            second.fail("/", *[HANGS] * 1000)
            assert index.search(["Article 1"], 3) == expected
        second.fail("/")
        first.fail("/", *[HANGS] * 1000)
        for _ in range(3):  # whichever of them is the first
            ElasticIndex.open(one.address("hanging", two.url)).close()


def test_a_change_that_is_under_way_on_a_host_that_hangs_is_not_asked_of_another(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.index.elastic.hosts.SECONDS_BEFORE_THE_NEXT", (1.0, 20.0))
    build_elastic(server.address("under-way"), real_segments()[:9], "en", "fr")
    with proxy(server) as one, proxy(server) as two:
        hosts = one.address("under-way", two.url)
        with ElasticIndex.open(hosts, seconds_to_answer=SECONDS) as index:
            for made in (one, two):
                made.fail("_bulk", HANGS)
            with pytest.raises(
                ServerError,
                match=r"no answer within 4 s.*\(0 of 1 segment added for certain, the next 1",
            ):
                index.add([Segment("one more", "un")])
            assert sum(bool(made.faults["_bulk"]) for made in (one, two)) == 1
            assert len(index) == 9


def test_that_there_is_no_index_is_asked_of_all_hosts(server: Running, built: str) -> None:
    build_elastic(server.address("known-to-one"), real_segments()[:9], "en", "fr")
    with proxy(server) as one, proxy(server) as two:
        hosts = one.address("known-to-one", two.url)
        with ElasticIndex.open(hosts) as index:
            for new, (started, other) in enumerate([(one, two), (two, one)], 10):
                other.fail("/")
                started.fail("/", *["unknown"] * 1000)
                ElasticIndex.open(hosts).close()
                assert index.search([real_segments()[0].src], 1, 1.0)[0]
                assert index.add([Segment("one more", "un")]) == [new]
                index.edit([new], lambda segment: replace(segment, src="quite another"))
                assert index.verify() == len(index) == new == len(list(index.segments()))
        other.fail("/", *["unknown"] * 1000)
        with pytest.raises(MemoryIndexError, match="no such index"):
            ElasticIndex.open(hosts)


def test_that_there_is_no_index_is_not_believed_of_a_node_that_refuses_to_search(
    between: Proxy, built: str
) -> None:
    between.fail("_mapping", "unknown", "unknown")
    between.fail("_search", 503, 503)
    with ElasticIndex.open(between.address(built)) as index:
        assert len(index) == 300 and not any(between.faults.values())
    between.fail("_mapping", *["unknown"] * 1000)
    between.fail("_search", *[503] * 1000)
    with pytest.raises(ServerError, match=r"is too busy \(HTTP 503\)"):
        ElasticIndex.open(between.address(built), patience=0.3)
    between.fail("_search", *["unknown"] * 1000)
    with pytest.raises(MemoryIndexError, match="no such index"):
        ElasticIndex.open(between.address(built))


def test_a_change_that_a_node_does_not_know_the_index_for_is_made_again(
    server: Running, between: Proxy
) -> None:
    address = between.address("not-yet-known")
    build_elastic(address, real_segments()[:9], "en", "fr")
    with ElasticIndex.open(address) as index:
        for path in ("counter", "_mget", "_bulk", "_refresh"):
            between.fail(path, "unknown", "unknown")
            index.add(
                [Segment(f"one more for {path} {i}", "un") for i in range(501)]
            )  # so many refresh at the end
            assert not any(between.faults.values())
        assert index.verify() == len(index) == 9 + 4 * 501


@pytest.mark.parametrize(
    ("method", "target", "reads"),
    [
        ("GET", "/n/_mapping", True),
        ("GET", "/n/_doc/counter", True),
        ("HEAD", "/n", True),
        ("POST", "/_msearch?filter_path=responses", True),
        ("POST", "/n/_search", True),
        ("POST", "/n-1/_mget", True),
        ("POST", "/n/_pit?keep_alive=10m", True),
        ("POST", "/n/_search/point_in_time?keep_alive=10m", True),
        ("DELETE", "/_pit", False),
        ("POST", "/n/_bulk", False),
        ("PUT", "/n/_bulk?refresh=wait_for", False),
        ("POST", "/n/_doc/_search/x", False),
        ("PUT", "/n/_mapping", False),
        ("POST", "/n/_refresh", False),
        ("POST", "/_aliases", False),
    ],
)
def test_what_changes_nothing_may_be_asked_twice(method: str, target: str, reads: bool) -> None:
    assert only_reads(method, target) is reads


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for loopback, signed by itself, with its key beside it."""
    if not shutil.which("openssl"):
        absent("openssl", "openssl is needed to make a certificate: install it")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=tmnmt",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            str(folder / "key.pem"),
            "-out",
            str(folder / "ca.pem"),
        ],
        check=True,
        capture_output=True,
    )
    return folder / "ca.pem"


def test_tls_and_a_password_or_key_are_used_and_checked(
    server: Running, built: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, certificate.with_name("key.pem"))
    password = "Basic " + base64.b64encode(b"me:hidden").decode()
    with proxy(server, tls, password) as made:
        address = made.address(built)
        with pytest.raises(
            ServerError, match=r"the certificate is not trusted: .*TMNMT_ES_CA names"
        ):
            ElasticIndex.open(address, patience=0.2)
        monkeypatch.setenv("TMNMT_ES_CA", str(certificate))
        with pytest.raises(
            ServerError, match="HTTP 401: access refused; set TMNMT_ES_USER and TMNMT_ES_PASSWORD"
        ):
            ElasticIndex.open(address)
        monkeypatch.setenv("TMNMT_ES_USER", "me")
        monkeypatch.setenv("TMNMT_ES_PASSWORD", "wrong-one")
        with pytest.raises(ServerError, match="HTTP 401") as refused:
            ElasticIndex.open(address)
        assert "wrong-one" not in str(refused.value)
        monkeypatch.setenv("TMNMT_ES_PASSWORD", "hidden")
        with ElasticIndex.open(address) as index:
            assert index.search(["Article 1"])[0]
        monkeypatch.delenv("TMNMT_ES_USER")
        monkeypatch.delenv("TMNMT_ES_PASSWORD")
        monkeypatch.setenv("TMNMT_ES_API_KEY", "a-key")
        made.authorization = "ApiKey a-key"
        with ElasticIndex.open(address) as index:
            assert len(index) == 300


def test_a_rebuild_is_one_moment_for_those_who_search(server: Running) -> None:
    address = server.address("switched")
    some, text = real_segments()[:300], real_segments()[0].src

    def build(version: str) -> None:
        build_elastic(address, [Segment(s.src, version) for s in some], "en", "fr", force=True)

    build("0")
    seen: list[set[str]] = []
    ended = threading.Event()

    def search() -> None:
        with ElasticIndex.open(address) as index:
            while not ended.is_set():
                found = index.search([text, *(s.src for s in some[1:30])], 1, 1.0)
                seen.append(
                    {match.segment.tgt for matches in found for match in matches}
                    if all(found)
                    else {"?"}
                )

    thread = threading.Thread(target=search)
    thread.start()
    for version in ("1", "2", "3"):
        build(version)
    while thread.is_alive() and (not seen or seen[-1] != {"3"}):
        ended.wait(0.05)
    ended.set()
    thread.join()
    versions = [max(versions) for versions in seen]
    assert versions == sorted(versions) and set(versions) <= set("0123") and versions[-1] == "3"


def test_a_search_that_pages_begins_again_where_the_index_is_replaced(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = server.address("paged")
    some = real_segments()[:300]
    read = _Question.read
    calls = list[int]()

    def build(version: str) -> None:
        build_elastic(address, [replace(s, tgt=version) for s in some], "en", "fr", force=True)

    def rebuilding(question: _Question, hits: Iterable[Mapping[str, Any]]) -> None:
        calls.append(1)
        if len(calls) == 3:  # the first page, the first of one moment, the second
            build("1")
        read(question, hits)

    build("0")
    monkeypatch.setattr("tmnmt.index.elastic.generation.HITS_A_PAGE", 100)
    monkeypatch.setattr(_Question, "read", rebuilding)
    with ElasticIndex.open(address) as index:
        found = index.search([some[0].src], 300, 0.0)[0]
        assert len(found) == sum(bool(match_tokens(s.src)) for s in some)
        assert {match.segment.tgt for match in found} == {"1"} and len(calls) > 3
        every = index.segments()
        next(every)
        build("2")
        with pytest.raises(MemoryIndexError, match="was built anew while it was read; ask again"):
            list(every)
