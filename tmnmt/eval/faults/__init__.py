"""What is wrong in a memory: pairs to look at before anything learns from them."""

from __future__ import annotations

from tmnmt.eval.faults.find import KINDS, PASSES, Fault, faults_in_numbers, find_faults

__all__ = ["KINDS", "PASSES", "Fault", "faults_in_numbers", "find_faults"]
