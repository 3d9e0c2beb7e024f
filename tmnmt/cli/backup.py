"""`tmnmt backup` and `tmnmt restore`: the data of a server in one file, and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tmnmt.cli.options import CONFIG, explicit, no_stdout
from tmnmt.config.serving import KeysFile, ServedOptions
from tmnmt.quantities import quantity


def backup(
    context: typer.Context,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The new file, .tar.gz.", callback=no_stdout
        ),
    ],
    config: CONFIG = None,
    without_sessions: Annotated[
        bool,
        typer.Option("--without-sessions", help="Leave out sessions, jobs and glossaries."),
    ] = False,
    keys: KeysFile = None,
    options: ServedOptions = ServedOptions(),
) -> None:
    """Write what a server keeps to one file: sessions, jobs and glossaries, the memories that are
    written to, keys, terms and the file of options.

    Give it the same --config, or the same options, as tmnmt serve has. The server may go on
    meanwhile: all pairs that were confirmed before are in the backup. Memories that are only read
    are not."""
    from tmnmt.config.server_config import load_config
    from tmnmt.serve.backup import back_up

    overrides = explicit(context, options) | ({"keys": keys} if keys is not None else {})
    contents = back_up(output, load_config(config, overrides), config, not without_sessions)
    print(
        f"{output}: {', '.join(contents.places)}: {quantity(len(contents.files), 'file')}, "
        f"{quantity(contents.size, 'byte')}",
        file=sys.stderr,
    )


def restore(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="What tmnmt backup has written.")],
    target: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FOLDER",
            help="A new folder for all of it; not given, everything goes where it was.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only read the backup, and compare its checksums.")
    ] = False,
) -> None:
    """Put back what tmnmt backup has written. Nothing is overwritten.

    All of it is compared with its checksums first. What --to has put into a folder is served by
    tmnmt serve --config FOLDER/serve.toml."""
    from tmnmt.serve.backup import read_contents
    from tmnmt.serve.backup import restore as put_back

    contents = read_contents(path) if check else put_back(path, target)
    if check:
        print(f"{path}: {quantity(len(contents.files), 'file')}, as they were backed up")
        return
    for name, place in contents.places.items():
        print(f"{name}: {place if target is None else target / name}", file=sys.stderr)
