"""`tmnmt serve`: the service that tools speak to; `tmnmt serve-key`: a key for it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli.options import check_server_installed
from tmnmt.config.bounds import Help, at_least, whole
from tmnmt.config.option import Options
from tmnmt.config.options import Keep, Threads
from tmnmt.errors import UsageError
from tmnmt.progress import Progress
from tmnmt.serve.roles import Role

if TYPE_CHECKING:
    from tmnmt.serve.service import Limits

MODELS = Annotated[
    list[Path] | None,
    typer.Option(
        "--model",
        metavar="FOLDER",
        help="A model; may be repeated; not given: memories alone are looked up in.",
    ),
]
MEMORIES = Annotated[
    list[str] | None,
    typer.Option(
        "--memory",
        metavar="[NAME=]PLACE",
        help="Index, its Elasticsearch address, or file, to read; may be repeated.",
    ),
]
WRITTEN = Annotated[
    list[str] | None,
    typer.Option(
        "--write-to",
        metavar="[NAME=]INDEX",
        help="Index to read, and to which clients may add; made at need; may be repeated.",
    ),
]
TERMS = Annotated[
    list[str] | None,
    typer.Option(
        "--terms", metavar="[NAME=]FILE", help="Terms to translate as given; may be repeated."
    ),
]

SESSIONS = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|URL",
        help="Keeps sessions; servers may share it: a file of this machine, or "
        "redis://HOST:PORT/NUMBER; not given, tmnmt/serve.db in the user's folder of states.",
    ),
]


@dataclass(frozen=True)
class RequestLimits(Options):
    """What a request may ask for, and how much is kept for a tenant."""

    title = "Limits"
    body_bytes: Annotated[int, at_least(1), Help("Largest request.")] = 2_000_000
    file_bytes: Annotated[int, at_least(1), Help("Largest document or memory file.")] = 50_000_000
    bodies_bytes: Annotated[
        int,
        at_least(1),
        Help("Of all requests together that are in memory; more is refused with 429."),
    ] = 200_000_000
    tenant_bytes: Annotated[
        int,
        at_least(1),
        Help(
            "Of all that is kept for a tenant: memories that it writes to, sessions, jobs with "
            "their files, and glossaries."
        ),
    ] = 10_000_000_000
    text_length: Annotated[int, at_least(1), Help("Characters of a text, at most.")] = 50_000
    waiting: Annotated[
        int,
        at_least(1),
        Help("Characters of one tenant that may wait for a model; more is refused with 429."),
    ] = 200_000
    seconds: Annotated[int, whole(1, 3600), Help("That a request may take.")] = 60

    @property
    def limits(self) -> Limits:
        """The same as the service takes them."""
        from tmnmt.serve.service import Limits

        return Limits(
            body=self.body_bytes,
            file=self.file_bytes,
            bodies=self.bodies_bytes,
            tenant=self.tenant_bytes,
            text=self.text_length,
            waiting=self.waiting,
            seconds=self.seconds,
        )


def serve(
    model: MODELS = None,
    memory: MEMORIES = None,
    write_to: WRITTEN = None,
    terms: TERMS = None,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, whole(0, 65535), Help("0: any that is free.", everyday=True)] = 5051,
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Who may do what; without it only this machine is answered."
        ),
    ] = None,
    sessions: SESSIONS = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For HTTPS: the chain, as PEM.")
    ] = None,
    private_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For HTTPS: its key, as PEM.")
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where clients reach the server, as through a proxy; it stands in answers that "
            "name an address.",
        ),
    ] = None,
    extension: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="A browser extension that is answered without keys, as "
            "chrome-extension://ID; may be repeated.",
        ),
    ] = None,
    limits: RequestLimits = RequestLimits(),
    keep: Keep = None,
    threads: Threads = None,
) -> None:
    """Serve models and memories to the tools that people have, over HTTP.

    Its own interface is under /v1. It also speaks those of LibreTranslate, Apertium APy, tmserver,
    amaGama, DeepL, OpenAI, ModernMT, MyMemory, IBM Watson and OPUS-CAT. docs/serve.md says how
    much of each, and which address a tool takes. Assistants have it as tools at /mcp. Ctrl-C or
    SIGTERM stops it: what was taken is finished."""
    check_server_installed("tmnmt serve")
    if (certificate is None) != (private_key is None):
        raise UsageError("--certificate and --private-key go together")
    from tmnmt.serve.keys import Keys
    from tmnmt.serve.running import check_certificate, check_host, listening, run, service_of
    from tmnmt.serve.site import site_of

    check_host(host, keys)
    if certificate is not None and private_key is not None:
        check_certificate(certificate, private_key)
    site = site_of(public_url, extension or [])
    allowed = Keys.load(keys) if keys is not None else None
    with listening(host, port) as socket:
        with Progress("indexing", "segments", lazy=True) as progress:
            service = service_of(
                model or [],
                memory or [],
                write_to or [],
                allowed,
                limits.limits,
                threads,
                progress.advance,
                terms or [],
                sessions,
                site,
                keep,
            )
        address = _address(host, socket.getsockname()[1], certificate is not None)

        def announce() -> None:
            print(f"serving at {address}", file=sys.stderr, flush=True)

        run(service, [socket], announce, certificate, private_key, keys)
    print("stopped: what was taken is finished", file=sys.stderr)


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
