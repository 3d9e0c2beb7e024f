"""When two systems are called different: one rule for the star of report.md, the marks of the page,
and `compare`."""

from __future__ import annotations

LEVEL = 0.05
# of the three tests the one that says; the table "Significance" has all
TEST = "approximate randomisation"
RULE = f"p <= {LEVEL} by {TEST}, corrected by Holm"


def differs(test: str, p_holm: float | None) -> bool:
    """Whether a test's p, after Holm's correction, is called a difference."""
    return test == TEST and p_holm is not None and p_holm <= LEVEL
