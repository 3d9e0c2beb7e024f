"""A client of the own interface that is generated from its description, and a check of that and of
the descriptions of all dialects.

    python generated.py URL FOLDER TEXT      # TEXT: a source text of the memory

Prints JSON: what came of it."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from openapi_spec_validator import validate

PO = b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "No."\nmsgstr ""\n'


def generated(description: Path, folder: Path) -> tuple[Any, list[str]]:
    """The package of a client, and what its generator could not read."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client"),
            *("generate", f"--path={description}", f"--output-path={folder / 'tmnmt_client'}"),
            *("--meta=none", f"--config={folder / 'config.json'}"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    sys.path.insert(0, str(folder))
    lines = (done.stdout + done.stderr).splitlines()
    return importlib.import_module("tmnmt_client"), [line for line in lines if "WARNING" in line]


def main(url: str, folder: Path, text: str) -> None:
    description = httpx.get(f"{url}/v1/openapi.json").json()
    validate(description)
    described = []
    for dialect in httpx.get(f"{url}/v1/dialects").json()["dialects"]:
        validate(httpx.get(url + dialect["description"]).json())
        described.append(dialect["name"])
    (folder / "openapi.json").write_text(json.dumps(description), encoding="utf-8")
    kinds = {"application/x-tmx+xml": "application/octet-stream"}
    config = json.dumps({"content_type_overrides": kinds, "post_hooks": []})
    (folder / "config.json").write_text(config, encoding="utf-8")
    package, warnings = generated(folder / "openapi.json", folder)
    client = package.Client(base_url=url)

    def call(name: str, /, *path: str, **query: Any) -> Any:
        module = importlib.import_module(f"tmnmt_client.api.default.{name}")
        if isinstance(body := query.get("body"), dict):
            models = importlib.import_module("tmnmt_client.models")
            kind = next(k for k in vars(models) if k.lower() == f"{name}body".replace("_", ""))
            query["body"] = getattr(models, kind).from_dict(body)
        return module.sync(*path, client=client, **query)

    answer = call("post_v1_translate", body={"texts": [text]})
    session = call("post_v1_sessions", body={"write_to": ""})
    pair = {"src": "It is void.", "tgt": "Il est nul."}
    confirmed = call("post_v1_sessions_session_confirm", session.id, body=pair)
    pairs = call("get_v1_sessions_session_confirmed", session.id)
    types = importlib.import_module("tmnmt_client.types")
    file = types.File(payload=io.BytesIO(PO), file_name="a.po")
    job = call("post_v1_documents", body=file, name="a.po")
    while (job := call("get_v1_jobs_job", job.id)).state not in ("done", "failed"):
        time.sleep(0.05)
    content = call("get_v1_jobs_job_file", job.id).payload.read().decode()
    result = {
        "warnings": warnings,
        "described": described,
        "text": answer.translations[0].text,
        "origin": answer.translations[0].segments[0].origin,
        "match": answer.translations[0].segments[0].matches[0].src,
        "confirmed": confirmed.confirmed,
        "pairs": [entry.tgt for entry in pairs.pairs],
        "job": str(job.state),
        "file": content,
        "error": call("get_v1_jobs_job", "none").error.code,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
