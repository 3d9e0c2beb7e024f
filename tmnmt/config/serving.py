"""What a server is told: every option of `tmnmt serve`, which the command line, the file of
`--config` and the tables of the docs are made from.

No torch: what is wrong is told before anything heavy is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tmnmt.config.bounds import Fixed, Help, Location, at_least, whole
from tmnmt.config.option import Options
from tmnmt.config.options import MEMORY_PLACES, HostedBase, Keep, Threads

Places = tuple[str, ...]
KeysFile = Annotated[
    Path | None,
    Location(),
    Help(
        "Who may do what; without it only this machine is answered.", metavar="FILE", everyday=True
    ),
]


@dataclass(frozen=True)
class ServedOptions(Options):
    """What is served."""

    title = "What is served"
    model: Annotated[
        Places,
        Location(),
        Help(
            "A model, or openai:URL#NAME@en-fr; may be repeated; not given: memories alone are "
            "looked up in.",
            metavar="FOLDER",
            everyday=True,
        ),
    ] = ()
    memory: Annotated[
        Places,
        Location(is_named=True),
        Help(f"{MEMORY_PLACES}, to read; may be repeated.", metavar="[NAME=]PLACE", everyday=True),
    ] = ()
    write_to: Annotated[
        Places,
        Location(is_named=True),
        Help(
            "Index to read, and to which clients may add; made at need; may be repeated.",
            metavar="[NAME=]INDEX",
            everyday=True,
        ),
    ] = ()
    terms: Annotated[
        Places,
        Location(is_named=True),
        Help("Terms to translate as given; may be repeated.", metavar="[NAME=]FILE", everyday=True),
    ] = ()
    sessions: Annotated[
        str | None,
        Location(),
        Fixed(),
        Help(
            "Keeps sessions; servers may share it: a file of this machine, or "
            "redis://HOST:PORT/NUMBER; not given, tmnmt/serve.db in the user's folder of states.",
            metavar="FILE|URL",
            everyday=True,
        ),
    ] = None
    keep: Keep = None
    threads: Threads = None


@dataclass(frozen=True)
class ServedParts(HostedBase, ServedOptions):
    """What is served, with how bases behind an address are asked."""


@dataclass(frozen=True)
class ListeningOptions(Options):
    """Where a server listens, and whom it answers."""

    title = "Where it listens, and whom it answers"
    host: Annotated[str, Fixed(), Help("Where to listen.", everyday=True)] = "127.0.0.1"
    port: Annotated[int, whole(0, 65535), Fixed(), Help("0: any that is free.", everyday=True)] = (
        5051
    )
    keys: KeysFile = None
    certificate: Annotated[
        Path | None,
        Location(),
        Fixed(),
        Help("For HTTPS: the chain, as PEM.", metavar="FILE"),
    ] = None
    private_key: Annotated[
        Path | None, Location(), Fixed(), Help("For HTTPS: its key, as PEM.", metavar="FILE")
    ] = None
    public_url: Annotated[
        str | None,
        Fixed(),
        Help(
            "Where clients reach the server, as through a proxy; it stands in answers that "
            "name an address.",
            metavar="URL",
        ),
    ] = None
    extension: Annotated[
        Places,
        Fixed(),
        Help(
            "A browser extension that is answered without keys, as "
            "chrome-extension://ID; may be repeated.",
            metavar="ORIGIN",
        ),
    ] = ()
    drain: Annotated[
        int,
        whole(0, 3600),
        Fixed(),
        Help(
            "Seconds for which it goes on when it is told to stop, while /ready says no, so that a "
            "proxy sends it nothing more."
        ),
    ] = 0
    log: Annotated[
        Literal["text", "json"],
        Fixed(),
        Help("How the log is written: {choices}. Lines of requests are JSON in both."),
    ] = "text"


@dataclass(frozen=True)
class RequestLimits(Options):
    """What a request may ask for."""

    title = "Limits of requests"
    body_bytes: Annotated[int, at_least(1), Fixed(), Help("Largest request.")] = 2_000_000
    file_bytes: Annotated[int, at_least(1), Fixed(), Help("Largest document or memory file.")] = (
        50_000_000
    )
    bodies_bytes: Annotated[
        int,
        at_least(1),
        Fixed(),
        Help("Of all requests together that are in memory; more is refused with 429."),
    ] = 200_000_000
    text_length: Annotated[int, at_least(1), Fixed(), Help("Characters of a text, at most.")] = (
        50_000
    )
    waiting: Annotated[
        int,
        at_least(1),
        Fixed(),
        Help("Characters of one tenant that may wait for a model; more is refused with 429."),
    ] = 200_000
    seconds: Annotated[int, whole(1, 3600), Fixed(), Help("That a request may take.")] = 60


@dataclass(frozen=True)
class TenantLimits(Options):
    """What a tenant may have."""

    title = "Limits of each tenant"
    tenant_bytes: Annotated[
        int,
        at_least(1),
        Help(
            "Of all that is kept for a tenant: memories that it writes to, sessions, jobs with "
            "their files, and glossaries."
        ),
    ] = 10_000_000_000
    tenant_characters: Annotated[
        int | None,
        at_least(0),
        Help("Characters of texts that are translated in a day; not given, any number."),
    ] = None
    tenant_documents: Annotated[
        int | None,
        at_least(0),
        Help("Documents that are translated in a day; not given, any number."),
    ] = None
    tenant_requests: Annotated[
        int | None,
        at_least(1),
        Help("Requests in a minute, at each server; not given, any number."),
    ] = None


@dataclass(frozen=True)
class ServerOptions(TenantLimits, RequestLimits, ListeningOptions, ServedParts):
    """All that a server is told."""
