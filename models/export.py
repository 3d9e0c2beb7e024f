"""Makes the folder that ships out of a finished run: weights in fp16, those of memory layers too,
configuration, vocabulary, training log.

python models/export.py runs/law.en-fr models/law.en-fr
python models/export.py --stamp models/law.en-fr       a file there was replaced: its checksum anew
into config.toml
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import torch

from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import CONFIDENCE_FILE, load_model, save_model, stamp


def main(run: Path, out: Path) -> None:
    model = load_model(run)
    base = out / "base.safetensors"
    before = base.read_bytes() if base.exists() else None
    config = {key: value for key, value in model.config.items() if key != "format"}
    save_model(out, model.backbone, model.vocab, config, half=True)
    if (run / "memory.safetensors").exists():
        memories = MemoryLayers.load(run / "memory.safetensors", model.backbone)
        memories.save(out / "memory.safetensors", dtype=torch.float16)
    shutil.copyfile(run / "train.jsonl", out / "train.jsonl")
    if before != base.read_bytes():  # what was fitted to another base fits no more
        (out / CONFIDENCE_FILE).unlink(missing_ok=True)
        stamp(out)
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path}")


if __name__ == "__main__":
    if sys.argv[1] == "--stamp":
        stamp(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
