"""`tmnmt serve`: the service that tools speak to; `tmnmt serve-key`: a key for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt import __version__
from tmnmt.cli.options import CONFIG, check_server_installed, explicit
from tmnmt.config.serving import ServerOptions
from tmnmt.errors import UsageError
from tmnmt.progress import Progress
from tmnmt.serve.roles import Role

log = logging.getLogger("tmnmt.serve")
if TYPE_CHECKING:
    from tmnmt.config.server_config import ServerConfig


def serve(
    context: typer.Context,
    config: CONFIG = None,
    print_config: Annotated[
        bool,
        typer.Option(
            "--print-config", help="Print what the server would be told, without secrets; no more."
        ),
    ] = False,
    options: ServerOptions = ServerOptions(),
) -> None:
    """Serve models and memories to the tools that people have, over HTTP.

    Its own interface is under /v1. It also speaks those of LibreTranslate, Apertium APy, tmserver,
    amaGama, DeepL, OpenAI, ModernMT, MyMemory, IBM Watson and OPUS-CAT. docs/serve.md says how
    much of each, and which address a tool takes. Assistants have it as tools at /mcp. Ctrl-C or
    SIGTERM stops it: what was taken is finished."""
    from tmnmt.config.server_config import config_lines, load_config

    overrides = explicit(context, options)
    if print_config:
        print("\n".join(config_lines(load_config(config, overrides))))
        return
    check_server_installed("tmnmt serve")
    _run(lambda: load_config(config, overrides))


def _run(read_config: Callable[[], ServerConfig]) -> None:
    """Serves what the configuration says until it is stopped. Raises what is wrong with it."""
    from tmnmt.serve.request_log import use_format

    config = read_config()
    options = config.options
    use_format(options.log)
    log.info("starting tmnmt %s: libraries are loaded first", __version__)
    certificate, private_key = options.certificate, options.private_key
    if (certificate is None) != (private_key is None):
        raise UsageError("--certificate and --private-key go together")
    from tmnmt.serve.keys import Keys
    from tmnmt.serve.reloading import Reloader, tenant_table
    from tmnmt.serve.running import (
        check_certificate,
        check_host,
        limits_of,
        listening,
        run,
        service_of,
    )
    from tmnmt.serve.site import site_of

    check_host(options.host, options.keys)
    if certificate is not None and private_key is not None:
        check_certificate(certificate, private_key)
    site = site_of(options.public_url, options.extension)
    allowed = Keys.load(options.keys) if options.keys is not None else None
    with listening(options.host, options.port) as socket:
        with Progress("indexing", "segments", lazy=True) as progress:
            service = service_of(
                [*map(Path, options.model)],
                options.memory,
                options.write_to,
                allowed,
                limits_of(options),
                options.threads,
                progress.advance,
                options.terms,
                options.sessions,
                site,
                options.keep,
            )
        address = _address(options.host, socket.getsockname()[1], certificate is not None)

        def announce() -> None:
            log.info("serving at %s", address)

        service.tenants = tenant_table(config)
        reloader = Reloader(service, config, read_config)
        run(
            service,
            [socket],
            announce,
            certificate,
            private_key,
            reloader,
            drain=options.drain,
        )
    log.info("stopped: what was taken is finished")


def _address(host: str, port: int, is_encrypted: bool) -> str:
    """Where the server is reached."""
    name = f"[{host.strip('[]')}]" if ":" in host else host
    return f"{'https' if is_encrypted else 'http'}://{name}:{port}"


def serve_key(
    name: Annotated[str, typer.Argument(help="What the key is called, in logs.")],
    keys: Annotated[Path, typer.Option(metavar="FILE", help="The file of keys; made at need.")],
    role: Annotated[
        Role,
        typer.Option(
            help="What it may do: read memories; translate, too; write to memories, too; admin: "
            "see counters, too."
        ),
    ] = "translate",
    tenant: Annotated[
        str | None,
        typer.Option(help="Whose key it is: keys of a tenant share sessions; not given, NAME."),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option("--memory", metavar="NAME", help="A memory that it sees; may be repeated."),
    ] = None,
    terms: Annotated[
        list[str] | None,
        typer.Option("--terms", metavar="NAME", help="Terms that it uses; may be repeated."),
    ] = None,
    export: Annotated[
        bool,
        typer.Option(
            "--export", help="It may read whole memories, too, as a key of the role write may."
        ),
    ] = False,
) -> None:
    """Make a key for tmnmt serve. It is printed once; the file has its hash alone."""
    from tmnmt.serve.keys import new_key

    print(
        new_key(keys, name, role, tenant, memory or [], terms or [], ["export"] if export else [])
    )
