"""Where built indexes lie: in folders, or at addresses, whose beginning says which back end has
them. Everybody else asks here, and knows none."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from tmnmt.compiled.native import begin
from tmnmt.errors import UsageError
from tmnmt.index.base import BuiltIndex
from tmnmt.index.embedded.build import build
from tmnmt.index.embedded.index import MemoryIndex
from tmnmt.index.embedded.manifest import Manifest, is_to_be_built
from tmnmt.progress import ReadProgress
from tmnmt.registry import Registry
from tmnmt.segments import Segment


class BuiltCounts(Protocol):
    """How much a build has put into an index."""

    @property
    def segments(self) -> int:
        """How many segments the index has."""

    @property
    def sources(self) -> int:
        """How many distinct token sequences the sources of each part have, added up."""

    @property
    def tokens(self) -> int:
        """How many distinct match tokens there are in each part, added up."""

    @property
    def parts(self) -> int:
        """How many parts the index has."""


class BuildJob(NamedTuple):
    """An index that is to be built.

    place: its address, or its folder.
    segments: the segments.
    src_lang: the code of their source language.
    tgt_lang: the code of their target language.
    force: whether an index that is there is replaced.
    progress: is told how far the build is; None tells nobody.
    seconds_to_wait: how long another writer is waited for.
    options: options of the back end, by their names.
    resumes: whether it goes on with what an interrupted build of the same segments has left; an
    index on a server leaves nothing."""

    place: str
    segments: Iterable[Segment]
    src_lang: str
    tgt_lang: str
    force: bool
    progress: ReadProgress | None
    seconds_to_wait: float = 0.0
    options: Mapping[str, Any] = MappingProxyType({})
    resumes: bool = False


class BackEnd(Protocol):
    """A kind of place for indexes.

    options: what a build can be told besides, by the names that the options of `tmnmt build-index`
    have.
    sends: whether a build takes time after the last segment was read, of which its progress
    tells."""

    options: Sequence[str]
    sends: bool

    def location(self, place: str) -> Hashable:
        """What names an index: equal for two names of one index.

        place: the address.

        Raises UsageError for what is no address."""

    def open(self, place: str, src_lang: str | None, tgt_lang: str | None) -> BuiltIndex:
        """Opens an index.

        place: its address.
        src_lang: the source language that it must have; None takes any.
        tgt_lang: the target language that it must have; None takes any.

        Raises MemoryIndexError where there is no index, or it is of other languages. Raises
        ServerError where the server cannot be reached."""

    def build(self, job: BuildJob) -> BuiltCounts:
        """Builds an index as a whole, or not at all, and returns how much is in it.

        job: the index that is built.

        Raises what `tmnmt.index.embedded.build.build` raises, and ServerError where the server
        cannot be reached."""


class _Folders(BackEnd):
    """Indexes in folders."""

    options: Sequence[str] = ()
    sends = False

    def location(self, place: str) -> Hashable:
        return Path(place).resolve()

    def open(self, place: str, src_lang: str | None, tgt_lang: str | None) -> MemoryIndex:
        return MemoryIndex.open(Path(place), src_lang, tgt_lang)

    def build(self, job: BuildJob) -> Manifest:
        progress = job.progress
        return build(
            Path(job.place),
            job.segments,
            job.src_lang,
            job.tgt_lang,
            force=job.force,
            progress=None if progress is None else lambda count: progress(count, 0.0),
            seconds_to_wait=job.seconds_to_wait,
            resumes=job.resumes,
        )


_FOLDERS: BackEnd = _Folders()
# by how the addresses begin
BACK_ENDS: Registry[BackEnd] = Registry(
    "back end",
    dict.fromkeys(("elasticsearch+", "opensearch+"), "tmnmt.index.elastic.back_end:BACK_END"),
)


def is_address(place: object) -> bool:
    """Whether an address is meant, well or badly written; everything else is a path.

    place: what a user names."""
    return isinstance(place, str) and ("://" in place or _scheme(place) is not None)


def back_end_of(place: str | Path) -> BackEnd:
    """The back end that has an index. An address that begins like that of no back end goes to the
    first one, which refuses it.

    place: the folder or the address of the index."""
    if not is_address(place):
        return _FOLDERS
    return BACK_ENDS[_scheme(str(place)) or next(iter(BACK_ENDS))]


def _scheme(place: str) -> str | None:
    return next((name for name in BACK_ENDS if place.startswith(name)), None)


def local_path(place: str | Path) -> Path | None:
    """The path of an index on this machine; None where it is at an address.

    place: the folder or the address of the index."""
    return None if is_address(place) else Path(place)


def is_index(place: str | Path) -> bool:
    """Whether a built index is meant, and not a memory file: an address, or a folder.

    place: what a user names."""
    return is_address(place) or Path(place).is_dir()


def is_absent(place: str | Path) -> bool:
    """Whether a place is a folder without an index, which is empty or not there.

    place: a folder or an address."""
    return not is_address(place) and is_to_be_built(Path(place))


def check_address(place: str | Path) -> None:
    """Checks an address; a path is always right.

    place: a folder or an address.

    Raises UsageError for an address that is none, or that has a password in it."""
    if is_address(place):
        back_end_of(place).location(str(place))


def same_place(place: str, other_place: str) -> bool:
    """Whether two names are those of one index.

    place: a folder or an address.
    other_place: another one."""
    ends = back_end_of(place), back_end_of(other_place)
    return ends[0] is ends[1] and ends[0].location(place) == ends[1].location(other_place)


def open_index(
    place: str | Path, src_lang: str | None = None, tgt_lang: str | None = None
) -> BuiltIndex:
    """Opens the built index in a folder, or at an address.

    place: the folder or the address.
    src_lang: the source language that it must have; None takes any.
    tgt_lang: the target language that it must have; None takes any.

    Raises MemoryIndexError where there is no index, or it is of other languages. Raises ServerError
    where the server cannot be reached. Raises UsageError for what is no address."""
    return back_end_of(place).open(str(place), src_lang, tgt_lang)


def check_build_options(place: str | Path, options: Iterable[str]) -> None:
    """Checks that a back end has some options.

    place: the folder or the address, which tells the back end.
    options: the names of the options.

    Raises UsageError where the back end lacks one of them."""
    unknown = [name for name in options if name not in back_end_of(place).options]
    if not unknown:
        return
    able = [name for name, end in BACK_ENDS.items() if set(unknown) <= {*end.options}]
    names = " and ".join(f"--{name}" for name in unknown)
    raise UsageError(f"{names} are for an index at an address: {', '.join(able)}...")


def prepare_search(places: Iterable[str] | None = None, concordance: bool = False) -> None:
    """Lets another process compile the search of indexes in folders, which is done once on a
    machine. It is for commands that read files or models first, and then search.

    places: the folders and addresses that will be searched; nothing is compiled where all are
    addresses. None stands for folders.
    concordance: whether the search for phrases is compiled, too."""
    from tmnmt.index.kernels.arrays import best_of_each, newest_with

    if places is None or not all(map(is_address, places)):
        begin([best_of_each, *([newest_with] if concordance else [])])
