"""`tmnmt doctor`: what is wrong with an installation."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tmnmt.cli.options import CONFIG, explicit
from tmnmt.config.serving import ServerOptions


def doctor(
    context: typer.Context,
    config: CONFIG = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object of JSON a line.")] = False,
    options: ServerOptions = ServerOptions(),
) -> None:
    """Look for what is wrong with an installation, and say what to do.

    Give it the same --config, or the same options, as tmnmt serve has. It looks at Python and its
    packages, compiled code, models, memories, keys, sessions, ports, disks and the clock, and asks
    the servers that are named. Each line is ok, warn or fail; the exit code is 1 if one is fail."""
    from tmnmt.config.server_config import load_config
    from tmnmt.serve.doctor import examine

    has_failed = False
    for finding in examine(load_config(config, explicit(context, options)).options):
        has_failed |= finding.status == "fail"
        if as_json:
            print(json.dumps(finding.record, ensure_ascii=False), flush=True)
            continue
        advice = f"\n{'':17}{finding.advice}" if finding.advice else ""
        print(f"{finding.status:5} {finding.check:10} {finding.message}{advice}", flush=True)
    if has_failed:
        raise typer.Exit(1)
