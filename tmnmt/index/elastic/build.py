"""Building an index on a server: a new generation beside the old one, valid from one atomic change
of the alias on."""

from __future__ import annotations

import mmap
import re
import tempfile
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import accumulate, chain
from pathlib import Path
from typing import Any
from uuid import uuid4

from tmnmt.errors import LockedError, MemoryIndexError, ServerError
from tmnmt.index.elastic.address import ElasticAddress
from tmnmt.index.elastic.generation import read_generation
from tmnmt.index.elastic.layout import (
    COUNTER,
    ElasticManifest,
    document,
    encode_segment,
    exclusive_alias,
    key,
    mappings,
)
from tmnmt.index.elastic.server import (
    BAD_REQUEST,
    BUSY,
    NOT_FOUND,
    PATIENCE,
    SECONDS_TO_ANSWER,
    Server,
    Waiting,
    reason,
    reason_in,
)
from tmnmt.index.embedded.build import IndexExistsError, in_runs
from tmnmt.index.embedded.inversion import Inversion
from tmnmt.index.embedded.postings import Postings
from tmnmt.progress import ReadProgress
from tmnmt.quantities import quantity
from tmnmt.segments import Segment

DOCUMENTS_A_REQUEST = 1000
CHARACTERS_A_REQUEST = 4_000_000
TOO_LARGE = 413  # HTTP
RESPONSE_FIELDS = "items.*.status,items.*.error"  # of the answer to a request
REQUESTS_AT_ONCE = 2  # the server works on one while the next is being made
REFRESH = "200ms"  # so long an addition waits until it can be found


def build_elastic(
    address: ElasticAddress,
    segments: Iterable[Segment],
    src_lang: str,
    tgt_lang: str,
    *,
    force: bool = False,
    shards: int = 1,
    replicas: int = 0,
    patience: float = PATIENCE,
    seconds_to_answer: float = SECONDS_TO_ANSWER,
    progress: ReadProgress | None = None,
) -> ElasticManifest:
    """Builds an index as a whole, or not at all, and returns its manifest. Until the end the index
    that was there answers.

    address: where the index lies.
    segments: the segments, whose ids count from 1 in their order. An error of theirs leaves
    everything as it was.
    src_lang: the code of their source language.
    tgt_lang: the code of their target language.
    force: whether an index that is there is replaced, and a build that is under way or was stopped.
    shards: how many shards the index has.
    replicas: how many copies of every shard there are besides.
    patience: how many seconds lost connections and a busy server are waited for, in all.
    seconds_to_answer: how many seconds the server has for an answer.
    progress: is told of the segments that the server has taken.

    Raises IndexExistsError where there is an index. Raises LockedError where a build is under way
    or was stopped. Raises MemoryIndexError where the name belongs to something else. Raises
    ServerError with what was done and how to go on."""
    with (
        closing(Server(address, patience, seconds_to_answer)) as server,
        tempfile.TemporaryDirectory(prefix="tmnmt-") as folder,
        closing(_Groups(Path(folder))) as groups,
    ):
        server.check_engine()
        _check_place(server, force)
        groups.add(segments)
        try:
            return _build(server, groups, (src_lang, tgt_lang), force, (shards, replicas), progress)
        except ServerError as error:
            advice = (
                "the build is unfinished, what answered before still does: build again with --force"
            )
            raise ServerError(f"{error}; {advice}") from error


def _build(
    server: Server,
    groups: _Groups,
    languages: tuple[str, str],
    force: bool,
    copies: tuple[int, int],
    progress: ReadProgress | None,
) -> ElasticManifest:
    shards, replicas = copies
    concrete, previous = _make_generation(server, force, shards)
    try:
        manifest = _fill(server, concrete, groups, languages, progress)
        _switch(server, concrete, previous, manifest, replicas)
    except ServerError:
        raise  # and what is unfinished stays until the next build: the server does not answer
    except BaseException:
        with suppress(ServerError):
            server.ask("DELETE", f"/{concrete}", ignore_unavailable=True)
        raise
    return manifest


class _Groups:
    """Segments on disk, read back by token sequence as an embedded index groups them, those of one
    newest first."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._inversion = folder, Inversion(folder)
        self._pairs = (folder / "pairs").open("w+b")
        self._ends = array("q", [0])
        self.sources = self.tokens = self.accepted_count = 0

    @property
    def segments(self) -> int:
        return len(self._ends) - 1

    def add(self, segments: Iterable[Segment]) -> None:
        for run in in_runs(segments):
            numbers = range(self.segments + 1, self.segments + 1 + len(run))
            pairs = [
                encode_segment(segment, number)
                for segment, number in zip(run, numbers, strict=True)
            ]
            self._inversion.add(numbers, run)
            self._pairs.write(b"".join(pairs))
            self._ends.extend(accumulate(map(len, pairs), initial=self._ends.pop()))

    def __iter__(self) -> Iterator[tuple[str, bytes, int]]:
        """(key, document, number of pairs) of every distinct token sequence; of those without
        tokens, each its own."""
        if not self.segments:
            return  # an empty file cannot be mapped
        folder = self._folder / "postings"
        self.sources, self.tokens = self._inversion.write(folder, positions=False)
        self._pairs.flush()
        with mmap.mmap(self._pairs.fileno(), 0, access=mmap.ACCESS_READ) as pairs:
            for tokens, ids in chain(
                Postings.open(folder, with_words=False).groups(),
                (((), [number]) for number in self._inversion.without_tokens),
            ):
                records = [
                    (number, pairs[self._ends[number - 1] : self._ends[number]]) for number in ids
                ]
                yield key(" ".join(tokens), ids[0]), document(tokens, records), len(ids)

    def close(self) -> None:
        self._pairs.close()
        self._inversion.close()


def _check_place(server: Server, force: bool) -> dict[str, list[str]]:
    """The concrete indexes of this name with their aliases. Raises as `build_elastic` says."""
    from elastic_transport import ApiError

    name = server.address.name
    try:
        entries = server.ask_of_indexes(
            f"/{name},{name}-*/_alias",
            "aliases",
            expected=(NOT_FOUND,),
            ignore_unavailable=True,
        )
    except ApiError:
        return {}
    aliases = {index: list(entry) for index, entry in entries.items()}
    ours = {
        index: names
        for index, names in aliases.items()
        if re.fullmatch(rf"{re.escape(name)}-\d+", index)
    }
    if name in entries or any(
        name in names for index, names in aliases.items() if index not in ours
    ):
        raise MemoryIndexError(
            f"{server.address}: {name} is there, but not made by tmnmt; use another name"
        )
    if not force:
        if any(name in aliases for aliases in ours.values()):
            raise IndexExistsError(
                f"{server.address}: there is an index already; --force replaces it"
            )
        if ours:
            problem = f"{min(ours)} is being built, or a build was stopped"
            raise LockedError(f"{server.address}: {problem}; --force starts again without it")
    return ours


def _make_generation(server: Server, force: bool, shards: int) -> tuple[str, list[str]]:
    """The new, empty concrete index, and those that answer now. Unfinished ones are removed."""
    from elastic_transport import ApiError

    name = server.address.name
    ours = _check_place(server, force)
    previous = [index for index, aliases in ours.items() if name in aliases]
    for unfinished in ours.keys() - set(previous):
        server.ask("DELETE", f"/{unfinished}", ignore_unavailable=True)
    concrete = f"{name}-{max((int(index.rpartition('-')[2]) for index in ours), default=0) + 1}"
    settings = {
        "number_of_shards": shards,
        "number_of_replicas": 0,
        "refresh_interval": "-1",
        "translog.durability": "async",
    }
    aliases = {exclusive_alias(concrete): {"is_hidden": True}}
    mark = {"build": uuid4().hex}  # until the manifest takes its place
    content = mappings() | {"_meta": mark}
    index = {"settings": settings, "mappings": content, "aliases": aliases}
    try:
        server.ask("PUT", f"/{concrete}", index, expected=(BAD_REQUEST,))
    except ApiError as error:
        if "resource_already_exists_exception" not in reason(error):
            raise server.error(f"{concrete} cannot be made: {reason(error)}") from error
        existing = server.ask_of_indexes(f"/{concrete}/_mapping", "mappings")[concrete]
        if existing.get("_meta") != mark:  # else it was made, and the answer was lost
            raise LockedError(
                f"{server.address}: somebody else has just begun to build {concrete}"
            ) from error
    return concrete, previous


def _fill(
    server: Server,
    concrete: str,
    groups: _Groups,
    languages: tuple[str, str],
    progress: ReadProgress | None,
) -> ElasticManifest:
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        under_way: deque[tuple[Future[None], int]] = deque()
        try:
            for operations, segments in _requests(groups):
                if len(under_way) > REQUESTS_AT_ONCE:
                    _finish(under_way, groups, progress)
                under_way.append(
                    (pool.submit(send, server, exclusive_alias(concrete), operations), segments)
                )
            while under_way:
                _finish(under_way, groups, progress)
        finally:
            for future, _ in under_way:
                future.cancel()
    send(
        server,
        exclusive_alias(concrete),
        [(f'{{"index":{{"_id":"{COUNTER}"}}}}', b'{"last_id":%d}' % groups.segments)],
    )
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return ElasticManifest(*languages, groups.segments, groups.sources, groups.tokens, now)


def _finish(
    under_way: deque[tuple[Future[None], int]], groups: _Groups, progress: ReadProgress | None
) -> None:
    future, segments = under_way.popleft()
    future.result()
    groups.accepted_count += segments
    if progress:
        progress(segments, groups.accepted_count / groups.segments)


def _requests(groups: _Groups) -> Iterator[tuple[list[tuple[str, bytes]], int]]:
    """Operations of a request of a good size, and how many segments they hold."""
    operations: list[tuple[str, bytes]] = []
    segments = characters = 0
    for name, content, pairs in groups:
        operations.append((f'{{"index":{{"_id":"{name}"}}}}', content))
        segments, characters = segments + pairs, characters + len(content)
        if len(operations) >= DOCUMENTS_A_REQUEST or characters >= CHARACTERS_A_REQUEST:
            yield operations, segments
            operations = []
            segments = 0
            characters = 0
    if operations:
        yield operations, segments


def send(server: Server, index: str, operations: list[tuple[str, bytes]]) -> None:
    """Lets the server do some operations. What it refuses because it is busy is sent again, slower
    and slower.

    server: the server.
    index: the name of the index.
    operations: every operation with its lines: the action, and what is written."""
    from elastic_transport import ApiError

    waiting = Waiting(server)
    while operations:
        lines = [line for operation in operations for line in operation]
        try:
            answer = server.ask(
                "POST",
                f"/{index}/_bulk",
                lines,
                expected=(TOO_LARGE,),
                require_alias=True,
                filter_path=RESPONSE_FIELDS,
            )
        except ApiError as error:
            half = len(operations) // 2
            if not half:
                raise server.error(
                    f"a source with its pairs is larger than a request may be: {operations[0][0]}"
                ) from error
            send(server, index, operations[:half])
            return send(server, index, operations[half:])
        results = [next(iter(item.values())) for item in answer["items"]]
        for (operation, _), result in zip(operations, results, strict=True):
            if result["status"] >= 300 and result["status"] not in BUSY:
                raise server.error(f"{operation} was refused: {reason_in(result['error'])}")
        refused = [
            operation
            for operation, result in zip(operations, results, strict=True)
            if result["status"] in BUSY
        ]
        if refused:
            waiting.pause(
                f"is too busy: {len(refused):,} of {quantity(len(operations), 'document')} refused"
            )
        operations = refused


def _switch(
    server: Server, concrete: str, previous: list[str], manifest: ElasticManifest, replicas: int
) -> None:
    """From here on the new generation answers, and the old one is gone: one change of the cluster's
    state."""
    from elastic_transport import ApiError

    settings = {
        "refresh_interval": REFRESH,
        "translog.durability": "request",
        "number_of_replicas": replicas,
    }
    server.ask("PUT", f"/{concrete}/_mapping", {"_meta": manifest.meta()})
    server.ask("PUT", f"/{concrete}/_settings", settings)
    server.ask("POST", f"/{concrete}/_flush")
    server.ask("POST", f"/{concrete}/_refresh")
    actions: list[dict[str, Any]] = [
        {"add": {"index": concrete, "alias": server.address.name}},
        *({"remove_index": {"index": index}} for index in previous),
    ]
    try:
        server.ask("POST", "/_aliases", {"actions": actions}, expected=(NOT_FOUND,))
    except ApiError as error:  # the previous one is gone: was this done, and the answer lost?
        if read_generation(server).concrete != concrete:
            raise server.error(f"the alias cannot be changed: {reason(error)}") from error
