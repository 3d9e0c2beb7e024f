"""What a server of memories needs: the dependencies of tmnmt without torch, with those of extras.

python3 deploy/requirements.py pyproject.toml [EXTRA...] | pip install -r /dev/stdin
pip install --no-deps ."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

FOR_MODELS = ("torch", "safetensors", "sacrebleu")


def requirements(project: Path, extras: list[str]) -> list[str]:
    """The requirements, as pip reads them.

    project: a pyproject.toml.
    extras: the extras whose requirements are needed, too."""
    content = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    of_extras = content["optional-dependencies"]
    rows = [*content["dependencies"], *(row for extra in extras for row in of_extras[extra])]
    return [row for row in dict.fromkeys(rows) if not row.startswith(FOR_MODELS)]


if __name__ == "__main__":
    print("\n".join(requirements(Path(sys.argv[1]), sys.argv[2:])))
