"""Certificates for servers of tests, made by openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from required import absent


def certificate(folder: Path, names: str) -> tuple[Path, Path]:
    """A certificate that vouches for itself, and its key.

    names: for whom it holds, as openssl writes it: "DNS:localhost", "IP:127.0.0.1"."""
    if not shutil.which("openssl"):
        absent("openssl", "openssl is needed to make a certificate: install it")
    chain, key = folder / "chain.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=test", "-addext"]
    command += [f"subjectAltName={names}", "-keyout", str(key), "-out", str(chain)]
    subprocess.run(command, check=True, capture_output=True)
    return chain, key
