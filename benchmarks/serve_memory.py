"""MB of memory that a process of `tmnmt serve` has for itself, above those of `import torch` in the
same interpreter, with models and memories.

    python benchmarks/serve_memory.py models/law.en-fr models/law-transformer.en-fr --threads 1
    --memory law=INDEX --texts memories/held-out/jrc32002L0085.en.txt

It starts a server with the first model alone, then one with all of them, and looks four times:
when it serves, after one text of each model, after all texts, and when it has had nothing to do
for a while. What a process has for itself is
the sum of Private_Clean and Private_Dirty in /proc/PID/smaps_rollup. Beside it stand the pages that
no file has (Anonymous), and Pss, in which a page that several processes share counts in parts; both
are above those of `import torch`, too. Run it where no other process has the same libraries open:
Pss depends on that."""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from serve_load import Client, Server

READ = "print(open('/proc/self/smaps_rollup').read())"
PAUSE = 15  # seconds, of which the server waits some before it gives memory back
KB = 1024 / 1e6  # MB of a kB, as the kernel counts


def parts(rollup: str) -> dict[str, float]:
    """MB of each part.

    rollup: the content of a file smaps_rollup."""
    rows = [line.split() for line in rollup.splitlines() if line.endswith(" kB")]
    sizes = {row[0].removesuffix(":"): int(row[1]) * KB for row in rows}
    return {
        "private": sizes["Private_Clean"] + sizes["Private_Dirty"],
        "anonymous": sizes["Anonymous"],
        "pss": sizes["Pss"],
    }


async def translate(server: Server, models: Sequence[Path], texts: Sequence[str]) -> None:
    """Every text by every model, one after another."""
    client = Client(server.port)
    for text in texts:
        for model in models:
            status, answer = await client.ask(
                "POST", "/v1/translate", {"texts": [text], "model": model.name}
            )
            if status != 200:
                raise SystemExit(f"{model.name}: status {status}: {answer}")
    await client.close()


def main() -> None:
    """Prints a table, and writes all of it as JSON where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--texts", type=Path, required=True, help="one a line")
    parser.add_argument("--json", type=Path)
    given, options = parser.parse_known_args()  # others are options of tmnmt serve
    texts = [line for line in given.texts.read_text(encoding="utf-8").splitlines() if line.strip()]
    torch = parts(
        subprocess.run(
            [sys.executable, "-c", f"import torch; {READ}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    report: dict[str, dict[str, float]] = {"import torch": torch}
    for count in sorted({1, len(given.models)}):
        models = given.models[:count]
        with tempfile.TemporaryDirectory() as folder:
            others = [word for model in models[1:] for word in ("--model", str(model))]
            server = Server(models[0], Path(folder), [*others, *options], written=False)
            rollup = Path(f"/proc/{server.process.pid}/smaps_rollup")
            try:
                for what, some, pause in (
                    ("serving", texts[:0], 0),
                    ("one text", texts[:1], 0),
                    ("all texts", texts, 0),
                    ("idle", texts[:0], PAUSE),
                ):
                    asyncio.run(translate(server, models, some))
                    time.sleep(pause)
                    found = parts(rollup.read_text())
                    above = {name: size - torch[name] for name, size in found.items()}
                    report[f"{count} models, {what}"] = above
            finally:
                server.stop()
    print(f"{'MB':<24}" + "".join(f"{name:>11}" for name in torch))
    for what, sizes in report.items():
        print(f"{what:<24}" + "".join(f"{size:>11.1f}" for size in sizes.values()))
    if given.json is not None:
        given.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
