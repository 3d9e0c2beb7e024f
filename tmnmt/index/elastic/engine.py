"""The kinds of servers that can have an index, and all that they are asked differently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Engine:
    """A kind of server.

    name: what it is called.
    least_version: the first version that has all that is asked of it, its header included, by its
    two first numbers.
    point_path: where a point in time is opened, below the path of an index, and closed.
    point_key: the name of a point's id where it is opened and closed.
    point_options: what an opening is told besides, so that a point without some shards is an error.
    header: the header that all its answers have; "" for none."""

    name: str
    least_version: tuple[int, int]
    point_path: str
    point_key: str
    point_options: tuple[tuple[str, Any], ...] = ()
    header: str = ""

    @property
    def prefix(self) -> str:
        """How its addresses begin."""
        return f"{self.name.lower()}+"

    def __str__(self) -> str:
        major, minor = self.least_version
        return f"{self.name} {major}{f'.{minor}' if minor else ''} or newer"


ELASTICSEARCH = Engine("Elasticsearch", (7, 14), "/_pit", "id", header="x-elastic-product")
OPENSEARCH = Engine(
    "OpenSearch",
    (2, 4),
    "/_search/point_in_time",
    "pit_id",
    (("allow_partial_pit_creation", False),),
)
ENGINES = (ELASTICSEARCH, OPENSEARCH)


def engine_in(headers: Mapping[str, str], content: Any) -> tuple[Engine | None, str]:
    """Which engine has answered a request for `/`, and its version; None and "" for what the answer
    does not tell. An answer that refuses the request may still tell the engine.

    headers: the headers of the answer.
    content: the JSON of the answer."""
    told = content.get("version") if isinstance(content, Mapping) else None
    version = told if isinstance(told, Mapping) else {}
    number = str(version.get("number", ""))
    if ELASTICSEARCH.header in headers:
        return ELASTICSEARCH, number
    return OPENSEARCH if version.get("distribution") == "opensearch" else None, number


def is_too_old(engine: Engine, version: str) -> bool:
    """Whether a version lacks what is needed. One that cannot be read does not.

    engine: the engine.
    version: its version, as it says it."""
    numbers = version.split(".")[:2]
    if len(numbers) < 2 or not all(part.isdecimal() for part in numbers):
        return False
    return (int(numbers[0]), int(numbers[1])) < engine.least_version
