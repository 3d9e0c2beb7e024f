"""What is wrong in a memory: pairs to look at before anything learns from them."""

from __future__ import annotations

from tmnmt.eval.faults.find import KINDS, Fault, find_faults

__all__ = ["KINDS", "Fault", "find_faults"]
