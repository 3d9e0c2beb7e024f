"""Translations as a model writes them, with the ends that it gives them."""

from __future__ import annotations

import pytest

from tmnmt.filters.ends import Ends


def keep_model_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves translations as the model ends them, for tests that score or compare its own text."""
    monkeypatch.setattr(Ends, "barred", lambda self, model_text: frozenset())
    monkeypatch.setattr(Ends, "restore_piece", lambda self, output: output.text)
