"""The tiny model with a context network that does something."""

from __future__ import annotations

from pathlib import Path

import torch
from tiny_model import write_tiny_model

from tmnmt.config.options import ContextForm
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import load_model, save_model
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.papers.context_network import ContextKind, InDocument, context_network_of


def write_reading_model(folder: Path, form: ContextForm = "gated", std: float = 0.3) -> Path:
    """The model folder, with the tiny model's memory layers; that lies in `folder`-plain."""
    plain = write_tiny_model(folder.with_name(f"{folder.name}-plain"))
    model = load_model(plain)
    assert isinstance(model.backbone, RNNsearch)
    torch.manual_seed(3)
    network = context_network_of(ContextKind(form, size=6, hidden=5), model.backbone)
    with torch.no_grad():
        for value in network.state_dict().values():
            value.normal_(std=std)
    save_model(folder, InDocument(model.backbone, network), model.vocab, model.config)
    MemoryLayers.load(plain / "memory.safetensors", model.backbone).save(
        folder / "memory.safetensors"
    )
    return folder
