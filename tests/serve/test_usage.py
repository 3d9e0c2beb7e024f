"""What a tenant may have: characters and documents of a day, requests of a minute."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from serving import tiny_server

from tmnmt.config.server_config import config_lines, load_config
from tmnmt.config.serving import TenantLimits
from tmnmt.errors import UsageError
from tmnmt.serve.http_error import Refused
from tmnmt.serve.keys import Keys, new_key
from tmnmt.serve.reloading import tenant_table
from tmnmt.serve.storage.opening import open_storage, place_of
from tmnmt.serve.usage import TenantTable, Usage

NOON = 1_764_244_800.0  # of 27 November 2025, in seconds since 1970


def test_servers_of_one_storage_count_together_and_each_day_anew(states: str) -> None:
    one, other = (open_storage(place_of(states)) for _ in range(2))
    now = [NOON]
    limits = {"a": TenantLimits(tenant_characters=100), "b": TenantLimits()}
    first, second = (Usage(s.usage, limits.__getitem__, lambda: now[0]) for s in (one, other))
    first.take("a", "characters", 60)
    second.take("a", "characters", 40)
    with pytest.raises(Refused, match="100 characters a day") as refused:
        first.take("a", "characters", 1)
    assert (refused.value.status, refused.value.code) == (429, "quota")
    assert refused.value.retry_after == 43_200
    assert second.record("a")["characters"] == {"limit": 100, "count": 100, "resets": 43_200}
    second.take("b", "characters", 1000)
    assert first.record("b")["characters"]["count"] is None
    now[0] += 86_400
    assert first.record("a")["characters"]["count"] == 0
    with pytest.raises(Refused):  # what is refused is not counted
        first.take("a", "characters", 101)
    second.take("a", "characters", 100)
    one.close()
    other.close()


def test_requests_count_in_any_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(tmp_path / "s.db")
    limited = Usage(storage.usage, lambda _: TenantLimits(tenant_requests=2))
    now = [1000.0]
    monkeypatch.setattr("tmnmt.serve.usage.time.monotonic", lambda: now[0])

    def told(tenant: str) -> dict[str, str]:
        limited.take_request(tenant, headers)
        return headers

    headers = dict[str, str]()
    assert told("a")["X-RateLimit-Remaining"] == "1"
    now[0] += 20
    assert told("a")["X-RateLimit-Remaining"] == "0"
    headers.clear()
    with pytest.raises(Refused, match="2 requests a minute") as refused:
        told("a")
    assert refused.value.retry_after == 40
    assert (headers["X-RateLimit-Remaining"], headers["X-RateLimit-Reset"]) == ("0", "40")
    assert told("b")["X-RateLimit-Limit"] == "2"
    now[0] += 40
    told("a")
    storage.close()


def test_a_tenant_has_what_its_table_says_and_another_goes_on(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    agency = new_key(path, "agency", "translate", None, ["law"])
    house = new_key(path, "house", "translate", None, ["law"])
    with tiny_server(folder, ("law=law",), keys=Keys.load(path)) as server:
        limits = TenantLimits(tenant_characters=50, tenant_documents=1, tenant_requests=9)
        server.service.tenants = TenantTable(TenantLimits(), {"agency": limits})
        texts = {"texts": ["x" * 25, "y" * 20]}
        reply = server.ask("POST", "/v1/translate", texts, key=agency)
        assert (reply.status, reply.headers["x-ratelimit-remaining"]) == (200, "8")
        reply = server.ask("POST", "/v1/translate/stream", texts, key=agency)
        assert (reply.status, reply.json["error"]["code"]) == (429, "quota")
        assert 0 < int(reply.headers["retry-after"]) <= 86_400
        body = {"text": ["abcdefgh"], "target_lang": "FR"}
        reply = server.ask("POST", "/deepl/v2/translate", body, key=agency)
        assert (reply.status, "characters a day" in reply.json["message"]) == (429, True)
        document = b"# No.\n"
        made = server.ask("POST", "/v1/documents?name=a.md", document, key=agency)
        assert made.status == 202
        assert server.ask("POST", "/v1/documents?name=a.md", document, key=agency).status == 429
        told = server.ask("GET", "/v1/usage", key=agency).json
        assert told["characters"]["limit"] == 50 and 45 <= told["characters"]["count"] <= 50
        assert told["documents"]["count"] == told["documents"]["limit"] == 1
        assert told["requests"]["count"] == 6 and told["bytes"]["count"] > 0
        for _ in range(3):
            reply = server.ask("GET", "/v1/models", key=agency)
        assert (reply.status, reply.headers["x-ratelimit-remaining"]) == (200, "0")
        reply = server.ask("GET", "/v1/models", key=agency)
        assert reply.status == 429 and 0 < int(reply.headers["retry-after"]) <= 60
        assert server.ask("GET", "/health").status == 200
        for _ in range(3):
            reply = server.ask("POST", "/v1/translate", texts, key=house)
            assert reply.status == 200 and "x-ratelimit-limit" not in reply.headers


def test_a_document_ends_where_the_characters_do(folder: Path) -> None:
    with tiny_server(folder, ("law=law",)) as server:
        server.service.tenants = TenantTable(TenantLimits(tenant_characters=1000))
        document = "\n\n".join(f"The permit number {n} is void." for n in range(200)).encode()
        id = server.ask("POST", "/v1/documents?name=a.md", document).json["id"]
        deadline = time.monotonic() + 60
        while (job := server.get(f"/v1/jobs/{id}"))["state"] not in ("done", "failed"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert job["state"] == "failed"
        assert job["error"] == "this tenant may have 1,000 characters a day"


def test_a_table_of_a_tenant_leaves_out_what_is_as_for_others(tmp_path: Path) -> None:
    path = tmp_path / "serve.toml"
    path.write_text(
        "tenant_requests = 600\ntenant_bytes = 5\n[tenant.agency]\ntenant_characters = 7\n",
        encoding="utf-8",
    )
    config = load_config(path, {"tenant_bytes": 6})
    table = tenant_table(config)
    assert table.limits("agency") == TenantLimits(6, 7, None, 600)
    assert table.limits("anybody") == TenantLimits(6, None, None, 600)
    path.write_text("\n".join(config_lines(config)), encoding="utf-8")
    assert load_config(path) == config
    for text, what in (
        ("[tenant]\na = 1", "tenant: must be tables"),
        ("[tenant.a]\nbytes = 1", "tenant.a: unknown key `bytes`"),
        ("[tenant.a]\ntenant_bytes = 0", "tenant.a: tenant_bytes: 0; it must be"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError) as error:
            load_config(path)
        assert what in str(error.value)
