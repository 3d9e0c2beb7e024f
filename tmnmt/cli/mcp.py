"""`tmnmt mcp`: models and memories as tools of an assistant on this machine."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from tmnmt.cli.options import check_server_installed
from tmnmt.config.serving import ServedParts
from tmnmt.errors import UsageError
from tmnmt.progress import Progress


def mcp(options: ServedParts = ServedParts()) -> None:
    """Give an assistant models and memories as tools, over standard input and output.

    The assistant starts this command itself, by the Model Context Protocol, and ends it. The tools
    translate texts and files, search, look up words, and confirm in a session what you have
    approved. A running tmnmt serve has the same tools at /mcp. Nothing leaves this machine but what
    the assistant is told."""
    check_server_installed("tmnmt mcp")
    if find_spec("mcp") is None:
        raise UsageError("tmnmt mcp needs the package mcp: pip install 'tmnmt[mcp]'")
    import asyncio

    from tmnmt.serve.mcp_server import serve_standard_streams
    from tmnmt.serve.running import service_of

    with Progress("indexing", "segments", lazy=True) as progress:
        service = service_of(
            [*map(Path, options.model)],
            options.memory,
            options.write_to,
            threads=options.threads,
            progress=progress.advance,
            terms=options.terms,
            sessions=options.sessions,
            keep=options.keep,
            hosted=options,
        )
    service.start()
    try:
        asyncio.run(serve_standard_streams(service))
    finally:
        service.stop()
