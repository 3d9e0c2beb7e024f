"""Which process runs which files, where several run the tests (`--dist loadfile`).

All tests of a file are run by one process. So are all files that need Elasticsearch, because each
process that has one of them starts a server of its own. What takes longest is begun first. Without
that, xdist begins with the files that have the most tests, which are quick ones, and at the end
every process waits for the one that has a long file.
"""

from __future__ import annotations

from functools import cache

from places import ROOT
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

ELASTIC = "Elasticsearch"
# by the seconds that they take
LONGEST = (
    ELASTIC,
    "tests/test_fuzz_folders.py",
)


@cache
def scope_of(file: str) -> str:
    """What is run by one process together with a file.

    file: its path in the repository."""
    content = (ROOT / file).read_text(encoding="utf-8")
    return ELASTIC if "from elastic_server import" in content else file


def rank_of(scope: str) -> tuple[int, int]:
    """Where a scope stands in the order in which they are begun; among those that are not named
    here, larger files are begun first."""
    if scope in LONGEST:
        return LONGEST.index(scope), 0
    return len(LONGEST), -(ROOT / scope).stat().st_size


class LongestFirst(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives a process that is free the scope that takes longest."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(super()._split_scope(nodeid))

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=rank_of), last=False)
        super()._assign_work_unit(node)
