"""Retrieval: the pairs of a memory that are most similar to a sentence, exactly."""

from tmnmt.index.base import Index
from tmnmt.index.embedded.build import build
from tmnmt.index.embedded.index import MemoryIndex
from tmnmt.index.embedded.manifest import Manifest
from tmnmt.index.fuzzy import fuzzy_score

__all__ = ["Index", "Manifest", "MemoryIndex", "build", "fuzzy_score"]
