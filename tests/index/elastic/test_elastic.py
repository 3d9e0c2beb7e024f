"""Addresses and secrets; the query on paper; builds, errors and a server that goes away, on a real
server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from brute_force import pairs, real_segments
from elastic_server import SCRIPT, Running, at_once, script
from places import JRC

from tmnmt.cli import run
from tmnmt.errors import LockedError, MemoryIndexError, ServerError, UsageError
from tmnmt.index.elastic.address import ElasticAddress, parse_address, read_secrets
from tmnmt.index.elastic.build import build_elastic
from tmnmt.index.elastic.engine import OPENSEARCH, is_too_old
from tmnmt.index.elastic.index import ElasticIndex
from tmnmt.index.elastic.query import candidates, terms
from tmnmt.index.elastic.server import Server
from tmnmt.index.embedded.build import IndexExistsError
from tmnmt.index.named_memories import open_memories, open_to_write
from tmnmt.segments import Segment


def test_an_address_names_hosts_and_index() -> None:
    address = parse_address("elasticsearch+https://one:9201,two,[::1]:9202/law.en-fr")
    assert address.hosts == ("https://one:9201", "https://two:9200", "https://[::1]:9202")
    assert address.name == "law.en-fr"
    assert {parse_address(str(address))} == {address}
    other = parse_address("opensearch+http://one/law")
    assert (other.engine, str(other)) == (OPENSEARCH, "opensearch+http://one:9200/law")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("opensearch+http://host/Law", "'Law' must be"),
        ("opensearch+http://me:secret@host/law", r"^opensearch\+\.\.\.@host/law: no password"),
        ("elasticsearch+http://host", "''"),
        ("elasticsearch+http:///law", "has the form"),
        ("elasticsearch+ftp://host/law", "has the form"),
        ("elasticsearch+http://host/Law", "'Law' must be"),
        ("elasticsearch+http://host:x/law", "no host"),
        ("elasticsearch+http://host,/law", "no host"),
        ("opensearch+http://host:99999/law", r"is no host; the form is opensearch\+http://HOST"),
        ("elasticsearch+http://me:secret@host/law", "no password in an address"),
        (
            "elasticsearch+http://me:secret/and@more@host/law",
            r"elasticsearch\+...@host/law: no password in an address",
        ),
        ("elasticsearch+http:me:secret@host/law", "no password in an address"),
        ("elasticsearch+me:secret@https://host/law", "no password in an address"),
        ("elasticsearch+https://host:9200,me:secret@two/law", "no password in an address"),
        ("elasticsearch+https://host/me:secret@law", "no password in an address"),
        ("elasticsearch+ftp://me:secret@host/law", "no password in an address"),
        ("https://me:secret@host/law", "no password in an address"),
        ("Elasticsearch+https://host/law", "has the form"),
        (
            "elasticsearch+https://me:secret/law",
            r"https://me:\.\.\./law: 'me:\.\.\.' is no host; the form",
        ),
        ("elasticsearch+https://me:secret,[::1]:9200/law", r"https://me:\.\.\.,\[::1\]:9200/law"),
        (
            "elasticsearch+https://host:9200/law?key=secret",
            r"https://host:9200/law\.\.\.: the name",
        ),
        ("elasticsearch+https://host:9200/law:secret", r"'law:\.\.\.' must be"),
        ("elasticsearch+https:me:secret", "has the form"),
    ],
)
def test_a_wrong_address_is_a_usage_error_without_its_secrets(text: str, named: str) -> None:
    with pytest.raises(UsageError, match=named) as raised:
        parse_address(text)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        (("http://127.0.0.1:9",), ""),
        (("http://localhost:9", "http://[::1]:9"), ""),
        (("https://10.0.0.1:9",), ""),
        (
            ("http://localhost:9", "http://10.0.0.1:9"),
            "the password or key goes to http://10.0.0.1:9 unencrypted",
        ),
        (
            ("http://search.example:9",),
            "the password or key goes to http://search.example:9 unencrypted",
        ),
        (("http://127.0.0.1.example:9",), "unencrypted; use elasticsearch+https"),
    ],
)
def test_a_password_that_anybody_can_read_is_warned_of(
    hosts: tuple[str, ...],
    told: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Server(ElasticAddress(hosts, "law")).close()
    assert caplog.text == ""  # there is none yet
    monkeypatch.setenv("TMNMT_ES_API_KEY", "hidden")
    Server(ElasticAddress(hosts, "law")).close()
    assert told in caplog.text and bool(told) == bool(caplog.text) and "hidden" not in caplog.text


def test_secrets_come_whole_from_the_environment_and_are_not_shown(tmp_path: Path) -> None:
    assert read_secrets({}).basic is None
    given = read_secrets({"TMNMT_ES_USER": "me", "TMNMT_ES_PASSWORD": "hidden"})
    assert given.basic == ("me", "hidden") and "hidden" not in repr(given)
    for environment, named in [
        ({"TMNMT_ES_USER": "me"}, "both"),
        ({"TMNMT_ES_USER": "me", "TMNMT_ES_PASSWORD": "x", "TMNMT_ES_API_KEY": "y"}, "exclude"),
        ({"TMNMT_ES_CA": str(tmp_path / "absent")}, "no such file"),
    ]:
        with pytest.raises(UsageError, match=named):
            read_secrets(environment)


def test_repeated_tokens_are_numbered() -> None:
    assert terms(["a", "b", "a", "a"]) == ["a", "b", "a␟2", "a␟3"]
    long = "a" * 150
    assert terms([long, "a", long + "b"]) == ["a" * 100, "a", "a" * 100 + "␟2"]


def test_the_query_asks_for_the_overlap_and_lengths_a_score_needs() -> None:
    asked = candidates(["a"] * 100, 0.55)["function_score"]
    overlap = asked["query"]["bool"]
    (match,) = overlap["should"]
    assert (
        match["match"]["tokens"]["minimum_should_match"] == 55
    )  # not 56: .55 * 100 is a little more than 55
    assert overlap["filter"] == [{"range": {"n": {"gte": 55, "lte": 181}}}]
    assert asked["min_score"] == pytest.approx(0.55, abs=2e-5)
    longer = candidates([str(i) for i in range(1200)], 0.5)["function_score"]["query"]["bool"]
    (match,) = longer["should"]
    assert len(match["match"]["tokens"]["query"].split()) == 1000
    assert longer["must"] == [{"match_all": {"boost": 200}}]
    assert (
        match["match"]["tokens"]["minimum_should_match"] == 400
    )  # the 200 that are not asked for may all be there
    assert candidates(["a"], 0.0)["function_score"]["query"]["bool"]["minimum_should_match"] == 0


def test_where_nothing_listens_the_error_says_so() -> None:
    address = ElasticAddress(("http://127.0.0.1:9",), "law")
    with pytest.raises(ServerError, match=r"127\.0\.0\.1:9/law: cannot be reached"):
        ElasticIndex.open(address, patience=0.1)


class _Other(BaseHTTPRequestHandler):
    """Answers as another server does: `answer` is the code of HTTP and the body, and the headers
    stand in `headers_told`."""

    answer: ClassVar[tuple[int, object]]
    headers_told: ClassVar[dict[str, str]]

    def do_GET(self) -> None:
        code, body = self.answer
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(content)))
        for name, value in self.headers_told.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


OPENSEARCH_3 = {"version": {"distribution": "opensearch", "number": "3.9.0"}}
OLD = {"version": {"distribution": "opensearch", "number": "1.3.20"}}
REFUSED = {"error": {"type": "security_exception", "reason": "no permission"}}


@pytest.mark.parametrize(
    ("scheme", "answer", "headers", "told"),
    [
        (
            "elasticsearch",
            (200, OPENSEARCH_3),
            {},
            r"/law: OpenSearch 3\.9\.0 answers there, whose addresses begin with opensearch\+",
        ),
        (
            "opensearch",
            (404, REFUSED),
            {"X-Elastic-Product": "Elasticsearch"},
            r"/law: Elasticsearch answers there, whose addresses begin with elasticsearch\+",
        ),
        (
            "opensearch",
            (200, OLD),
            {},
            r"OpenSearch 1\.3\.20 answers there, and tmnmt needs OpenSearch 2\.4 or newer",
        ),
        ("elasticsearch", (200, {"version": {"number": "7.10.2"}}), {}, "is neither Elasticsearch"),
        ("opensearch", (200, "<html>"), {}, "is neither Elasticsearch 7.14 or newer nor Open"),
        ("elasticsearch", (403, REFUSED), {}, "is neither Elasticsearch"),
        # not allowed to know, it is taken for what the address says
        ("opensearch", (403, REFUSED), {}, "HTTP 403: access refused; set TMNMT_ES_USER and TMNM"),
        (
            "elasticsearch",
            (403, REFUSED),
            {"X-Elastic-Product": "Elasticsearch"},
            "HTTP 403: access refused; set TMNMT_ES_USER and TMNMT_ES_PASSWORD, or TMNMT_ES_API",
        ),
    ],
)
def test_another_server_is_refused_in_words(
    scheme: str, answer: tuple[int, object], headers: dict[str, str], told: str
) -> None:
    handler = type("Handler", (_Other,), {"answer": answer, "headers_told": headers})
    with HTTPServer(("127.0.0.1", 0), handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        address = parse_address(f"{scheme}+http://127.0.0.1:{other.server_port}/law")
        with pytest.raises(ServerError, match=told):
            ElasticIndex.open(address, patience=0.1)
        with pytest.raises(ServerError, match=told):
            build_elastic(address, [Segment("a", "b")], "en", "fr", patience=0.1)
        other.shutdown()


@pytest.mark.parametrize(
    ("version", "old"),
    [("2.3.9", True), ("2.4.0", False), ("2.19.6", False), ("10.0", False), ("", False)],
)
def test_a_version_is_too_old_by_its_numbers(version: str, old: bool) -> None:
    assert is_too_old(OPENSEARCH, version) is old


def test_the_compose_file_is_one_cluster() -> None:
    text = (SCRIPT.parent / "compose.yaml").read_text(encoding="utf-8")
    services = yaml.safe_load(text)["services"]
    assert {"setup", "es01", "es02", "es03"} == set(services)
    for name in ("es01", "es02", "es03"):
        environment = services[name]["environment"]
        assert environment["node.name"] == name and environment["xpack.security.enabled"] == "true"
        assert set(environment["cluster.initial_master_nodes"].split(",")) == {
            "es01",
            "es02",
            "es03",
        }


def test_without_the_distribution_the_command_that_gets_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = script()
    monkeypatch.setattr(server, "CACHE", SCRIPT.parents[2] / "absent")
    for name in server.ENGINES:
        command = f"python index/elasticsearch/server.py fetch --engine {name} gets it"
        assert command.replace(" --engine elasticsearch-9", "") in server.missing(name)
    monkeypatch.setenv("TMNMT_ENGINE", "solr")
    with pytest.raises(server.ServerTrouble, match="there is no engine solr; allowed: elastics"):
        server.missing()


def test_the_commands_take_an_address(server: Running, capsys: pytest.CaptureFixture[str]) -> None:
    address = str(server.address("commands"))
    built = ["build-index", str(JRC), "--index", address, "--src-lang", "en", "--tgt-lang", "fr"]
    assert run(built) == 0
    assert "1,997 segments" in capsys.readouterr().err
    assert run(["search", "--index", address, "Article 1"]) == 0
    assert "Article premier" in capsys.readouterr().out
    assert run(built) == 2 and "--force" in capsys.readouterr().err
    assert run([*built, "--force"]) == 0
    assert list(server_indexes(server, "commands")) == ["commands-2"]


def test_an_index_may_be_empty_or_have_sources_without_tokens(server: Running) -> None:
    address = server.address("empty")
    for segments in ([], [Segment("", "x")]):
        build_elastic(address, segments, "en", "fr", force=True)
        with ElasticIndex.open(address) as index:
            assert len(index) == index.verify() == len(segments)
            assert index.search(["x", ""], 1, 0.0) == [[], []]
            assert index.manifest.sources == 0


def test_a_build_tells_what_the_server_has_taken(server: Running) -> None:
    told: list[tuple[int, float]] = []
    address = server.address("told")
    build_elastic(
        address, real_segments(), "en", "fr", progress=lambda n, share: told.append((n, share))
    )
    assert sum(n for n, _ in told) == len(real_segments())
    shares = [share for _, share in told]
    assert shares == sorted(shares) and shares[-1] == 1


def test_what_is_confirmed_goes_into_the_memory_at_an_address(server: Running) -> None:
    address = server.address("confirmed")
    build_elastic(address, real_segments()[:9], "en", "fr")
    indexes = open_memories([str(address)], "en", "fr")
    writable = open_to_write(str(address), [str(address)], indexes, "en", "fr")
    assert isinstance(writable, ElasticIndex) and writable is indexes[0]
    number = writable.add([Segment("a confirmed sentence", "une phrase")])[0]
    with ElasticIndex.open(address) as index:
        assert index.search(["a confirmed sentence"], 1, 1.0)[0][0].segment.tgt == "une phrase"
        writable.delete([number])
        assert index.search(["a confirmed sentence"], 1, 1.0) == [[]]
    writable.close()


def server_indexes(server: Running, name: str) -> dict[str, object]:
    return dict(server.ask("GET", f"/{name}*/_alias"))


def test_what_is_no_index_of_ours_is_one_clear_error(server: Running) -> None:
    address = server.address("foreign")
    with pytest.raises(MemoryIndexError, match="no such index"):
        ElasticIndex.open(address)
    server.ask("PUT", "/foreign")
    with pytest.raises(MemoryIndexError, match="tmnmt did not make"):
        ElasticIndex.open(address)
    with pytest.raises(MemoryIndexError, match="not made by tmnmt"):
        build_elastic(address, [Segment("a", "b")], "en", "fr", force=True)


def test_a_failing_build_leaves_the_old_index(server: Running) -> None:
    address = server.address("failing")
    build_elastic(address, real_segments()[:9], "en", "fr")

    def failing() -> Iterator[Segment]:
        yield from real_segments()
        raise OSError("disk full")

    with pytest.raises(IndexExistsError):
        build_elastic(address, [], "en", "fr")
    with pytest.raises(OSError, match="disk full"):
        build_elastic(address, failing(), "en", "fr", force=True)
    with ElasticIndex.open(address, "en", "fr") as index:
        assert len(index) == 9
    with pytest.raises(MemoryIndexError, match="from en to fr, not en to de"):
        ElasticIndex.open(address, "en", "de")


def test_two_writers_lose_nothing(server: Running) -> None:
    address = server.address("writers")
    build_elastic(address, [Segment("the same", "0")], "en", "fr")

    def write(name: str) -> None:
        with ElasticIndex.open(address) as index:
            for i in range(3):
                index.add([Segment("the same", f"{name} {i}")])

    at_once(write, "one", "two")
    with ElasticIndex.open(address) as index:
        (found,) = index.search(["the same"], 20, 1.0)
    assert {m.segment.tgt for m in found} == {
        "0",
        *(f"{name} {i}" for name in ("one", "two") for i in range(3)),
    }
    assert len({m.segment.id for m in found}) == 7


def test_a_server_killed_during_a_build_and_a_batch_is_told_and_going_on_works(
    server: Running,
) -> None:
    address = server.address("killed")
    build_elastic(address, real_segments(), "en", "fr")
    index = ElasticIndex.open(address, patience=1.0)
    before = index.search(["Article 1"], 3)
    index.add([Segment("added just before", "x")])

    asked = [f"Article {i}" for i in range(70)]
    server.kill()
    with pytest.raises(ServerError, match=r"cannot be reached.*0 of 70 queries had been answered"):
        index.search(asked, 3)
    with pytest.raises(ServerError, match="cannot be reached"):
        build_elastic(address, real_segments(), "en", "fr", force=True, patience=1.0)
    server.start()
    assert [pairs(found) for found in index.search(["Article 1"], 3)] == [
        pairs(found) for found in before
    ]
    assert index.search(["added just before"], 1, 1.0)[0][0].segment.tgt == "x"

    with pytest.raises(
        ServerError, match=r"the build is unfinished, what answered before still does: .*--force"
    ):
        build_elastic(
            address,
            real_segments(),
            "en",
            "fr",
            force=True,
            patience=1.0,
            progress=lambda *_: server.kill(),
        )
    server.start()
    assert index.search(["added just before"], 1, 1.0)[0]
    build_elastic(address, real_segments()[:9], "en", "fr", force=True)
    assert len(index) == 9
    index.close()


def test_an_unfinished_build_is_in_the_way_until_forced(server: Running) -> None:
    address = server.address("half")
    server.ask("PUT", "/half-1", {"aliases": {"half-1-only": {}}})
    with pytest.raises(LockedError, match="half-1 is being built, or a build was stopped"):
        build_elastic(address, [Segment("a", "b")], "en", "fr")
    assert build_elastic(address, [Segment("a", "b")], "en", "fr", force=True).segments == 1
    assert list(server_indexes(server, "half")) == ["half-2"]
