"""Who may do what: keys, their file, and what a server without any answers."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from power_cut import Disk
from serving import Server, tiny_server

from tmnmt.cli import run
from tmnmt.errors import DataError, UsageError
from tmnmt.serve.http_error import Refused
from tmnmt.serve.keys import Caller, Keys, check_tenants, new_key
from tmnmt.serve.running import check_host


def test_a_new_key_is_known_and_the_file_has_its_hash_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    first = new_key(path, "one", "translate", "agency", ["law"])
    second = new_key(path, "two", "admin", None, [])
    keys = Keys.load(path)
    assert keys.caller(first) == Caller("one", "agency", "translate", frozenset({"law"}))
    assert keys.caller(second) == Caller("two", "two", "admin", frozenset())
    written = path.read_text(encoding="utf-8")
    assert first not in written and hashlib.sha256(first.encode()).hexdigest() in written
    assert path.stat().st_mode & 0o077 == 0 and len(first) >= 43
    for wrong in ("", first[:-1], first + "x", first.lower(), "é\udcff"):
        with pytest.raises(Refused) as refused:
            keys.caller(wrong)
        assert refused.value.status == 401


def test_the_command_prints_the_key_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "keys.toml")
    assert run(["serve-key", "cat", "--keys", path, "--role", "write", "--memory", "law"]) == 0
    key = capsys.readouterr().out.strip()
    assert Keys.load(Path(path)).caller(key).role == "write"
    assert run(["serve-key", "cat", "--keys", path]) == 1
    assert "there is a key cat already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "holds no key"),
        ("key = 1", "tables [[key]]"),
        ("x = 1", "tables [[key]]"),
        ("[[key]]", "key 1: name"),
        ('[[key]]\nname="a/b"', "key 1: name"),
        ('[[key]]\nname="a"\nsha256="00"', "64 digits"),
        (f'[[key]]\nname="a"\nsha256="{"0" * 64}"\nrole="root"', "read, translate, write, admin"),
        (f'[[key]]\nname="a"\nsha256="{"0" * 64}"\nrole="read"\nmemories="x"', "list of names"),
        ('[[key]]\nname="a"\nkey="secret"', "allowed are"),
        (f'[[key]]\nname="a"\nsha256="{"0" * 64}"\nrole="read"\n' * 2, "same name"),
        (f'[[key]]\nname="a"\nsha256="{"0" * 64}"\nrole="read"\nrights=["all"]', "export"),
        ("[[", "is no TOML"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        Keys.load(path)
    assert what in str(error.value) and "secret" not in str(error.value)


def test_tenants_do_not_share_what_is_written_to() -> None:
    one = Caller("one", "a", "write", frozenset({"law", "own"}))
    other = Caller("other", "b", "read", frozenset({"law", "own"}))
    check_tenants([one, other], {"law", "own"}, set())
    check_tenants([one, Caller("again", "a", "read", frozenset({"own"}))], {"law", "own"}, {"own"})
    with pytest.raises(UsageError, match=r"tenants a \(key one\) and b \(key other\) share it"):
        check_tenants([one, other], {"law", "own"}, {"own"})
    admin = Caller("boss", "boss", "admin", frozenset({"own"}))
    for callers in ([one, admin], [admin, one]):
        with pytest.raises(UsageError) as error:
            check_tenants(callers, {"law", "own"}, {"own"})
        assert "take own out of the memories of key boss" in str(error.value)
        assert 'or give that key tenant = "a"' in str(error.value)
    check_tenants([one, replace(admin, tenant="a")], {"law", "own"}, {"own"})
    check_tenants([one, replace(admin, memories=frozenset())], {"law", "own"}, {"own"})
    with pytest.raises(UsageError, match=r"memory own is not served; served: law"):
        check_tenants([one], {"law"}, set())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org", "10.0.0.1", ""])
def test_without_keys_nothing_but_loopback_is_listened_at(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", "--model", "there-is-none", "--host", host]) == 2
    assert "needs --keys" in capsys.readouterr().err
    check_host(host, Path("keys.toml"))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.1.2.3"])
def test_loopback_needs_no_keys(host: str) -> None:
    check_host(host, None)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:9"}, 200),
        ({"Host": "[::1]:9"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "moz-extension://1"}, 403),
        ({"Origin": "file://"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Host": "localhost:9", "Origin": "http://localhost:9"}, 200),
        ({"Host": "localhost@evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
    ],
)
def test_without_keys_no_page_of_another_site_is_answered(
    served: Server, headers: dict[str, str], status: int
) -> None:
    assert served.ask("GET", "/v1/models", headers=headers).status == status


ROLES: list[tuple[str, str, dict[str, Any] | None, str]] = [
    ("GET", "/v1/memories", None, "read"),
    ("POST", "/v1/memories/law/search", {"texts": ["No."]}, "read"),
    ("GET", "/tmserver/en/fr/unit/No.", None, "read"),
    ("POST", "/v1/translate", {"texts": ["No."]}, "translate"),
    ("POST", "/v1/sessions", {}, "translate"),
    ("GET", "/apertium/translate?langpair=en%7Cfr&q=No.", None, "translate"),
    ("POST", "/v1/sessions", {"write_to": "own"}, "write"),
    ("POST", "/v1/memories/own/segments", {"segments": []}, "write"),
    ("PUT", "/tmserver/en/fr/unit/No.", {"source": "No.", "target": "Non."}, "write"),
    ("GET", "/metrics", None, "admin"),
]


def test_every_role_may_what_those_before_it_may(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    order = ["read", "translate", "write", "admin"]
    keys = {
        role: new_key(path, role, role, "us", ["law", "own"])  # type: ignore[arg-type]
        for role in order
    }
    read, written = ("law=law",), ("own=own-of-keys",)
    with tiny_server(folder, read, written, Keys.load(path)) as server:
        for method, address, body, needed in ROLES:
            assert server.ask(method, address, body).status == 401, address
            assert server.ask(method, address, body, key="wrong").status == 401, address
            for role in order:
                may = order.index(role) >= order.index(needed)
                found = server.ask(method, address, body, key=keys[role]).status
                assert found == (200 if may else 403), (address, role)
        for address in ("/health", "/ready", "/v1/openapi.json"):
            assert server.ask("GET", address).status == 200


def test_to_read_a_whole_memory_needs_a_right_to_it(folder: Path, tmp_path: Path) -> None:
    """A key that reads looks up; what it may not read whole, it may not have as a file either."""
    path = tmp_path / "keys.toml"
    reads = new_key(path, "reads", "read", "us", ["law"])
    translates = new_key(path, "translates", "translate", "us", ["law"])
    exports = new_key(path, "exports", "read", "us", ["law"], rights=["export"])
    writes = new_key(path, "writes", "write", "us", ["law"])
    with tiny_server(folder, ("law=law",), keys=Keys.load(path)) as server:
        for method, address in (
            ("POST", "/v1/memories/law/export"),
            ("POST", "/deepl/v3/translation_memories/law/export"),
            ("GET", "/deepl/v3/translation_memories/law/segments"),
            ("GET", "/v1/memories/law/segments/1"),
        ):
            body: dict[str, str] | None = {} if method == "POST" else None
            for key in (reads, translates):
                assert server.ask(method, address, body, key=key).status == 403
            for key in (exports, writes):
                assert server.ask(method, address, body, key=key).status in (200, 202)
        id = server.ask("POST", "/v1/memories/law/export", {}, key=writes).json["id"]
        while server.ask("GET", f"/v1/jobs/{id}", key=reads).json["state"] != "done":
            time.sleep(0.01)
        assert server.ask("GET", f"/v1/jobs/{id}/file", key=reads).status == 403
        assert server.ask("GET", f"/v1/jobs/{id}/file", key=exports).status == 200


def test_a_file_of_keys_is_not_made_where_a_link_leads(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "keys.toml").symlink_to(elsewhere)
    with pytest.raises(FileExistsError):
        new_key(tmp_path / "keys.toml", "one", "read", None, [])
    assert not elsewhere.exists()


def test_a_key_is_found_where_each_tool_has_it(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    key = new_key(path, "one", "read", None, [])
    with tiny_server(folder, keys=Keys.load(path)) as server:
        import base64

        basic = base64.b64encode(f"any:{key}".encode()).decode()
        for headers in (
            {"Authorization": f"Bearer {key}"},
            {"Authorization": f"DeepL-Auth-Key {key}"},
            {"Authorization": f"Basic {basic}"},
            {"X-API-Key": key},
            {"MMT-ApiKey": key},
        ):
            assert server.ask("GET", "/v1/models", headers=headers).status == 200
        assert server.ask("GET", f"/apertium/listPairs?key={key}").status == 200
        assert server.ask("GET", "/libretranslate/languages", form={"api_key": key}).status == 200
        assert server.ask("GET", "/v1/models", headers={"Authorization": "Basic !"}).status == 401
        refused = server.ask("GET", "/libretranslate/languages")
        assert (refused.status, list(refused.json)) == (403, ["error"])


def test_a_key_is_on_disk_when_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, syncs in (("kept.toml", True), ("lost.toml", False)):
        path = tmp_path / name
        for key in ("one", "two"):  # a new file, and one that is there
            with monkeypatch.context() as patch:
                disk = Disk(tmp_path, patch, sync=syncs)
                new_key(path, key, "read", None, [])
                assert bool(disk.lost(path)) != syncs
