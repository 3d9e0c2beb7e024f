"""What each tenant has had, and how much it may have: characters and documents of a day, requests
of a minute. Days are those of UTC, and all servers that share a storage count together. Requests
are counted by each server for itself."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Literal

from tmnmt.config.serving import TenantLimits
from tmnmt.serve.http_error import Refused
from tmnmt.serve.storage.base import UsageStorage

Kind = Literal["characters", "documents"]
KINDS: Mapping[Kind, str] = {"characters": "tenant_characters", "documents": "tenant_documents"}
MINUTE, DAY = 60.0, 86_400.0  # seconds


@dataclass(frozen=True)
class TenantTable:
    """What each tenant may have.

    default: what a tenant may have that is not named.
    exceptions: what others may have, by their names."""

    default: TenantLimits
    exceptions: Mapping[str, TenantLimits] = field(default_factory=dict)

    def limits(self, tenant: str) -> TenantLimits:
        """What a tenant may have.

        tenant: the tenant."""
        return self.exceptions.get(tenant, self.default)


class Usage:
    """For any thread."""

    def __init__(
        self,
        storage: UsageStorage,
        limits: Callable[[str], TenantLimits],
        wall: Callable[[], float] | None = None,
    ) -> None:
        """storage: where what was had is counted.
        limits: gives what a tenant may have.
        wall: gives the seconds since 1970; None takes the machine's clock."""
        self._storage, self._limits, self._wall = storage, limits, wall or (lambda: time.time())
        self._requests = defaultdict[str, deque[float]](deque)  # when they came, by tenant
        self._lock = threading.Lock()

    def take_request(self, tenant: str, headers: dict[str, str]) -> None:
        """Counts a request.

        tenant: the tenant that sends it.
        headers: those of the answer; it gets those that tell how many more requests may come.

        Raises Refused where it has sent as many in the last minute as it may."""
        limit = self._limits(tenant).tenant_requests
        if limit is None:
            return
        now = time.monotonic()
        with self._lock:
            requests = self._requests[tenant]
            while requests and requests[0] <= now - MINUTE:
                requests.popleft()
            seconds = ceil(requests[0] + MINUTE - now) if requests else int(MINUTE)
            remaining = max(0, limit - len(requests) - 1)
            headers |= {
                "X-RateLimit-Limit": str(limit),
                "X-RateLimit-Remaining": str(remaining),
                "X-RateLimit-Reset": str(seconds),
            }
            if len(requests) >= limit:
                why = "this tenant may send {limit} requests a minute"
                raise Refused(429, "quota", why, seconds, values={"limit": limit})
            requests.append(now)

    def take(self, tenant: str, kind: Kind, amount: int) -> None:
        """Counts what a tenant has. What is refused is not counted.

        tenant: the tenant.
        kind: what it has.
        amount: how much.

        Raises Refused where it would be more than the tenant may have on a day. Raises ServerError
        where this cannot be counted."""
        limit = self.limit(tenant, kind)
        if limit is None or not amount:
            return
        day = self._day()
        if self._storage.add(day, tenant, kind, amount) > limit:
            self._storage.add(day, tenant, kind, -amount)
            why = "this tenant may have {limit} characters a day"
            if kind == "documents":
                why = "this tenant may have {limit} documents a day"
            raise Refused(429, "quota", why, self._seconds_left(), values={"limit": limit})

    def limit(self, tenant: str, kind: Kind) -> int | None:
        """How much a tenant may have on a day; None for any.

        tenant: the tenant.
        kind: what it has."""
        value: int | None = getattr(self._limits(tenant), KINDS[kind])
        return value

    def record(self, tenant: str) -> dict[str, Any]:
        """How much a tenant has had today and may have, as JSON has it. What has no limit is not
        counted.

        tenant: the tenant.

        Raises ServerError where this cannot be read."""
        rows = dict[str, Any]()
        for kind in KINDS:
            limit = self.limit(tenant, kind)
            count = self._storage.add(self._day(), tenant, kind, 0) if limit is not None else None
            rows[kind] = {"limit": limit, "count": count, "resets": self._seconds_left()}
        limit = self._limits(tenant).tenant_requests
        with self._lock:
            now = time.monotonic()
            count = sum(moment > now - MINUTE for moment in self._requests.get(tenant, ()))
        rows["requests"] = {
            "limit": limit,
            "count": count if limit is not None else None,
            "resets": int(MINUTE),
        }
        return rows

    def _day(self) -> str:
        return time.strftime("%Y-%m-%d", time.gmtime(self._wall()))

    def _seconds_left(self) -> int:
        return ceil(DAY - self._wall() % DAY)
