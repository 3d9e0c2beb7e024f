"""Retrieval: the pairs of a memory that are most similar to a sentence, exactly."""

from tmnmt.index.base import Index
from tmnmt.index.build import build
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.index.manifest import Manifest
from tmnmt.index.memory_index import MemoryIndex

__all__ = ["Index", "Manifest", "MemoryIndex", "build", "fuzzy_score"]
