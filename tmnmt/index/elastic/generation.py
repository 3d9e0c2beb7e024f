"""The generation of an index that answers on a server, and reading all of it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from typing import Any

from tmnmt.errors import MemoryIndexError
from tmnmt.index.elastic.layout import ElasticManifest, exclusive_alias, read, read_meta
from tmnmt.index.elastic.server import NOT_FOUND, Server, Waiting
from tmnmt.segments import Segment

HITS_A_PAGE = 1000
KEPT_OPEN = "10m"  # between two pages: whoever reads them may be slow
SECONDS_TO_CLOSE = 2.0  # that a server is asked to forget a moment, which it does by itself
HOLDS_PAIRS = {"exists": {"field": "ids"}}
# documents with pairs that are about to become pairs of another one
MOVING = {"exists": {"field": "moving"}}
BY_ID = ({"ids": "asc"},)  # a document has the place of its smallest id
# A segment stands in two documents while it moves from one to the other, and only in the one it
# leaves as moving. Should all be read while it moves twice, the places in a shard still differ.
UNEQUAL = ({"ids": "asc"}, {"moving": {"order": "asc", "unmapped_type": "long"}}, {"_doc": "asc"})

Hit = Mapping[str, Any]


@dataclass(frozen=True)
class ElasticGeneration:
    """What a name on a server stands for at one moment.

    concrete: the name of the generation's index.
    manifest: what it held when it was built."""

    concrete: str
    manifest: ElasticManifest

    @property
    def exclusive_alias(self) -> str:
        """The alias that changes of this generation are written to."""
        return exclusive_alias(self.concrete)

    @property
    def number(self) -> int:
        return int(self.concrete.rpartition("-")[2])


class GenerationGone(MemoryIndexError):
    """The generation that was being read has been replaced."""


def read_generation(server: Server) -> ElasticGeneration:
    """The generation that answers now.

    server: the server.

    Raises MemoryIndexError where there is no index, or it is not one of tmnmt, or of another
    format."""
    from elastic_transport import ApiError

    name, location = server.address.name, str(server.address)
    waiting = Waiting(server)
    mapping: dict[str, Any] | None = None
    while mapping is None:
        try:
            mapping = server.ask_of_indexes(f"/{name}/_mapping", "mappings", expected=(NOT_FOUND,))
        except ApiError as error:
            _check_there(server)
            waiting.pause("does not know its indexes yet", error)
    if len(mapping) != 1 or name in mapping:
        raise MemoryIndexError(f"{location}: an index that tmnmt did not make")
    ((concrete, content),) = mapping.items()
    return ElasticGeneration(concrete, read_meta(content.get("_meta"), location))


def _check_there(server: Server) -> None:
    """Raises MemoryIndexError where there is no index. A node that has just started names none of
    its indexes. A search it refuses as long as it does not know them, and that is waited for."""
    from elastic_transport import ApiError

    try:
        server.ask("POST", f"/{server.address.name}/_search", {"size": 0}, expected=(NOT_FOUND,))
    except ApiError as error:
        raise MemoryIndexError(
            f"{server.address}: no such index; make one with tmnmt build-index"
        ) from error


def pages(
    server: Server,
    query: Mapping[str, Any],
    sort: Sequence[Mapping[str, Any]],
    size_of_page: int | None = None,
    **options: Any,
) -> Iterator[list[Hit]]:
    """All hits of a query in order, as of one moment, page by page.

    server: the server.
    query: the query, which finds documents with pairs alone.
    sort: the fields that the hits are sorted by; of equal ones an order is made.
    size_of_page: how many hits a page has at most; None takes a size that suits most.
    options: what the search is told besides.

    Raises GenerationGone where the index is replaced meanwhile."""
    from elastic_transport import ApiError

    engine = server.address.engine
    opened = server.ask(
        "POST",
        f"/{server.address.name}{engine.point_path}",
        keep_alive=KEPT_OPEN,
        **dict(engine.point_options),
    )
    point = opened[engine.point_key]
    page_size = size_of_page or HITS_A_PAGE
    search = {
        "query": query,
        "sort": [*sort, *UNEQUAL],
        "size": page_size,
        "track_total_hits": False,
        **options,
    }
    try:
        while True:
            search["pit"] = {"id": point, "keep_alive": KEPT_OPEN}
            answer = server.ask(
                "POST",
                "/_search",
                search,
                expected=(NOT_FOUND,),
                allow_partial_search_results=False,
            )
            point = answer["pit_id"]
            hits = answer["hits"]["hits"]
            yield hits
            if len(hits) < page_size:
                return
            search["search_after"] = hits[-1]["sort"]
    except ApiError as error:
        raise GenerationGone(
            f"{server.address}: was built anew while it was read; ask again"
        ) from error
    finally:  # else the server forgets the moment by itself, after a while
        closing = {engine.point_key: point}
        server.try_once("DELETE", engine.point_path, closing, SECONDS_TO_CLOSE)


def every_segment(server: Server) -> Iterator[Segment]:
    """All segments in the order of their ids, each once, also where one is moving from a document
    to another. The documents come in the order of their smallest id; the other segments wait for
    their turn.

    server: the server."""
    waiting: list[tuple[int, int, Segment]] = []
    number = count()  # segments have no order
    for page in pages(server, HOLDS_PAIRS, BY_ID):
        for hit in page:
            for pair in map(read, hit["_source"]["pairs"]):
                heapq.heappush(waiting, (pair.id, next(number), pair))
            yield from _pop_smaller(hit["sort"][0], waiting)
    yield from _pop_smaller(None, waiting)


def _pop_smaller(
    smallest: int | None, waiting: list[tuple[int, int, Segment]]
) -> Iterator[Segment]:
    """Takes those with ids below this one out of the heap; of two versions the later one."""
    while waiting and (smallest is None or waiting[0][0] < smallest):
        segment = heapq.heappop(waiting)[2]
        while waiting and waiting[0][0] == segment.id:
            segment = max(segment, heapq.heappop(waiting)[2], key=attrgetter("changed"))
        yield segment
