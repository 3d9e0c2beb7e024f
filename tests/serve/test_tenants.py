"""Two tenants of one server never meet, whatever both do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import Server, tiny_server

from tmnmt.serve.keys import Keys, new_key

TENANTS = ("alpha", "beta")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(TENANTS),
        st.sampled_from(
            [
                "begin",
                "begin to own",
                "confirm",
                "add",
                "put",
                "translate",
                "in session",
                "complete",
                "search",
                "look up",
                "undo",
                "libre",
                "foreign",
            ]
        ),
        st.integers(0, 3),
    ),
    min_size=4,
    max_size=14,
)


@pytest.fixture(scope="module")
def shared(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Each tenant with a memory of its own, and one that both read."""
    path = tmp_path_factory.mktemp("tenants") / "keys.toml"
    keys = {one: new_key(path, one, "write", one, ["law", f"of-{one}"]) for one in TENANTS}
    written = tuple(f"of-{one}=tenant-{one}" for one in TENANTS)
    with tiny_server(folder, ("law=law",), written, Keys.load(path)) as server:
        server.keys.update(keys)
        yield server


class Tenant:
    """What one does. Its words have its name, so that nobody else can say them."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name
        self.other = TENANTS[1 - TENANTS.index(name)]
        self.key = server.keys[name]
        self.sessions: list[str] = []

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> str:
        reply = self.server.ask(method, path, body, key=self.key)
        assert reply.status in (200, 204, 409), reply.body
        if path == "/v1/sessions":
            self.sessions.append(reply.json["id"])
        return reply.body.decode()

    def do(self, what: str, number: int) -> str:
        """What the server says to it."""
        src = f"The notice of number {'x' * number} is void."
        tgt = f"Avis {'x' * number} {self.name}"
        session = f"/v1/sessions/{self.sessions[-1]}" if self.sessions else ""
        match what:
            case "begin":
                return self.ask("POST", "/v1/sessions", {})
            case "begin to own":
                return self.ask("POST", "/v1/sessions", {"write_to": f"of-{self.name}"})
            case "confirm" if session:
                return self.ask("POST", f"{session}/confirm", {"src": src, "tgt": tgt})
            case "undo" if session:
                return self.ask("POST", f"{session}/undo")
            case "in session" if session:
                return self.ask("POST", f"{session}/translate", {"texts": [src]})
            case "complete":
                typed = {"text": src, "prefix": "Avis"}
                return self.ask("POST", "/v1/complete", typed)
            case "add":
                pairs = {"segments": [{"src": src, "tgt": tgt}]}
                return self.ask("POST", f"/v1/memories/of-{self.name}/segments", pairs)
            case "put":
                return self.ask(
                    "PUT", f"/tmserver/en/fr/unit/x{number}", {"source": src, "target": tgt}
                )
            case "translate":
                return self.ask("POST", "/v1/translate", {"texts": [src], "explain": True})
            case "libre":
                body = {"q": [src], "source": "en", "target": "fr"}
                return self.ask("POST", "/libretranslate/translate", body)
            case "search":
                asked = {"texts": [src], "threshold": 0.3}
                return self.ask("POST", f"/v1/memories/of-{self.name}/search", asked)
            case "look up":
                path = src.replace(" ", "%20")
                return self.ask("GET", f"/tmserver/en/fr/unit/{path}?min_similarity=30")
        return self.ask("GET", "/v1/memories")

    def is_kept_out(self, sessions: list[str]) -> None:
        """The other's memory and sessions are not there."""
        memory = f"/v1/memories/of-{self.other}"
        asked: list[tuple[str, str, Mapping[str, Any] | None]] = [
            ("POST", f"{memory}/search", {"texts": ["a"]}),
            ("POST", f"{memory}/segments", {"segments": [{"src": "a", "tgt": "b"}]}),
            ("POST", "/v1/translate", {"texts": ["a"], "memories": [f"of-{self.other}"]}),
            ("POST", "/v1/complete", {"text": "a", "memories": [f"of-{self.other}"]}),
            *(("POST", "/v1/complete", {"text": "a", "session": id}) for id in sessions),
            ("POST", "/v1/sessions", {"write_to": f"of-{self.other}"}),
            *(("GET", f"/v1/sessions/{id}", None) for id in sessions),
            *(("POST", f"/v1/sessions/{id}/undo", {}) for id in sessions),
            *(("DELETE", f"/v1/sessions/{id}", None) for id in sessions),
        ]
        for method, path, body in asked:
            assert self.server.ask(method, path, body, key=self.key).status == 404, path


@given(STEPS)
@settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_nobody_hears_what_the_other_said(
    shared: Server, steps: list[tuple[str, str, int]]
) -> None:
    tenants = {name: Tenant(shared, name) for name in TENANTS}
    for name, what, number in steps:
        said = tenants[name].do(what, number)
        assert tenants[name].other not in said, (name, what)
        if what == "foreign":
            tenants[name].is_kept_out(tenants[tenants[name].other].sessions)
    for tenant in tenants.values():
        tenant.is_kept_out(tenants[tenant.other].sessions)
        for id in tenant.sessions:
            assert tenant.ask("DELETE", f"/v1/sessions/{id}") == ""


def test_requests_at_the_same_time_do_not_meet_either(shared: Server) -> None:
    """Decoded in one batch, each reads its own memories."""
    from concurrent.futures import ThreadPoolExecutor

    src = "What both of them have is not the same."
    tenants = [Tenant(shared, name) for name in TENANTS]
    for tenant in tenants:
        pair = {"segments": [{"src": src, "tgt": f"Ce qu'a {tenant.name}."}]}
        tenant.ask("POST", f"/v1/memories/of-{tenant.name}/segments", pair)
    near = "What both of them had is not the same."
    asked = [(tenant, text) for _ in range(12) for tenant in tenants for text in (src, near)]
    with ThreadPoolExecutor(16) as pool:
        said = list(
            pool.map(lambda each: each[0].ask("POST", "/v1/translate", {"texts": [each[1]]}), asked)
        )
    for (tenant, _), one in zip(asked, said, strict=True):
        assert f"Ce qu'a {tenant.name}." in one and tenant.other not in one
