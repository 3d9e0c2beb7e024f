"""What an operator asks of a running server, and what a tenant asks of its limits."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from tmnmt.errors import TmnmtError
from tmnmt.serve import answers
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.http_error import Refused
from tmnmt.serve.routes import Route, RouteAnswer
from tmnmt.serve.service import Service

log = logging.getLogger("tmnmt.serve")


async def reload(service: Service, call: ApiRequest) -> Any:
    """Reads keys, terms, memories and models again, as at SIGHUP; what was taken ends as it began.
    Says what is served then, and what a restart alone takes. Where something is wrong, everything
    stays as it was, and the answer is 409 and says why, with the path of the file."""
    if service.reload is None:
        raise Refused(501, "no_reload", "this server reads nothing again")
    try:
        return await asyncio.to_thread(service.reload)
    except (TmnmtError, OSError) as error:
        log.error("everything stays as it was: %s", error)
        raise Refused(409, "not_reloaded", f"everything stays as it was: {error}") from error


async def usage(service: Service, call: ApiRequest) -> Any:
    """How much the tenant of the key has had today of what it may have."""
    tenant = call.caller.tenant

    def record() -> dict[str, Any]:
        size = {
            "limit": service.tenants.limits(tenant).tenant_bytes,
            "count": service.quota.size(tenant),
        }
        return {"tenant": tenant, **service.usage.record(tenant), "bytes": size}

    return await service.write(record)


ADMIN = (
    Route("GET", "/v1/usage", usage, "read", answer=RouteAnswer(answers.TenantUsage)),
    Route(
        "POST",
        "/v1/admin/reload",
        reload,
        "admin",
        answer=RouteAnswer(answers.Reloaded),
    ),
)
