"""What may stand between a page and its server: a slow line, and a server that refuses."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

_ASIDE = ("/translate", "/complete", "/changes", "/presence")  # nobody waits for these


@dataclass
class Line:
    """`seconds`: that every request of the interface takes longer. `refusals`: statuses and bodies
    with which the next confirmations are answered instead. `confirmations`: bodies of all of them,
    in order, each with its "path". `waiting`: requests under way, but for suggestions and news of
    others. `host`: told the server in place of the browser's address, as some proxies do."""

    seconds: float = 0.0
    waiting: int = 0
    host: str = ""
    refusals: list[tuple[int, Any]] = field(default_factory=list)
    confirmations: list[dict[str, Any]] = field(default_factory=list)

    def between(self, app: Any) -> Any:
        """The application at the end of this line."""

        async def through(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and self.host:
                scope = {**scope, "headers": _headers(scope["headers"], self.host)}
            if scope["type"] != "http" or not scope["path"].startswith("/v1/"):
                await app(scope, receive, send)
                return
            is_aside = scope["path"].endswith(_ASIDE)
            self.waiting += not is_aside
            try:
                await asyncio.sleep(self.seconds)
                await answered(scope, receive, send)
            finally:
                self.waiting -= not is_aside

        async def answered(scope: Any, receive: Any, send: Any) -> None:
            if not scope["path"].endswith("/confirm"):
                await app(scope, receive, send)
                return
            message = await receive()
            self.confirmations.append(json.loads(message["body"]) | {"path": scope["path"]})
            if self.refusals:
                await _answer(send, *self.refusals.pop(0))
                return
            parts = [message]

            async def again() -> Any:
                return parts.pop() if parts else await receive()

            await app(scope, again, send)

        return through


def _headers(headers: Any, host: str) -> list[tuple[bytes, bytes]]:
    others = [(name, value) for name, value in headers if name != b"host"]
    return [*others, (b"host", host.encode())]


async def _answer(send: Any, status: int, body: Any) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
