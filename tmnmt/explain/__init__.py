"""Explanations of a translation: where every word came from (`provenance.py`), and how likely words
and segments are right (`confidence.py`).

Both are extensions of the pipeline, which finds them by `tmnmt.registry` alone."""

from __future__ import annotations

from tmnmt.registry import register

register("extension", "provenance", "tmnmt.explain.provenance:make_provenance")
register("extension", "confidence", "tmnmt.explain.confidence:load_confidence")
