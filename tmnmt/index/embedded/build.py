"""Building an index: a new generation beside the old one, valid from one atomic rename on."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path

from tmnmt.durable import make_folder, rename
from tmnmt.errors import MemoryIndexError, UsageError
from tmnmt.index.embedded.checkpoint import CHECKPOINT_FILE, Checkpoint
from tmnmt.index.embedded.journal import JOURNAL_FILE
from tmnmt.index.embedded.lock import LOCK_FILE, writing
from tmnmt.index.embedded.manifest import (
    FIRST_BUILD_FILE,
    KEYS_DIR,
    MANIFEST_FILE,
    Manifest,
    describe_store,
    half_index,
    note_first_build,
    read_manifest,
    write_manifest,
)
from tmnmt.index.embedded.new_parts import NewParts
from tmnmt.index.embedded.rows import OtherSegmentsError
from tmnmt.index.embedded.store import START, NewStore
from tmnmt.segments import Segment
from tmnmt.system import flush_file
from tmnmt.text import MAX_TOKEN_CHARS

SEGMENTS_A_WRITE = 2000
log = logging.getLogger(__name__)


class IndexExistsError(UsageError):
    """There is an index already, and `force` was not given."""


class HalfIndexError(UsageError):
    """There is an index without its manifest, and `force` was not given."""


def build(
    index_dir: Path,
    segments: Iterable[Segment],
    src_lang: str,
    tgt_lang: str,
    *,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
    seconds_to_wait: float = 0.0,
    resumes: bool = False,
) -> Manifest:
    """Builds an index as a whole, or not at all, and returns its manifest. Where the build ends at
    any moment, even by SIGKILL, the index that was there before still answers. The next build
    begins anew, or goes on behind the last part that is whole.

    index_dir: the folder of the index.
    segments: the segments, whose ids count from 1 in their order. An error of theirs leaves
    everything as it was, but for finished parts where `resumes` says so.
    src_lang: the code of their source language.
    tgt_lang: the code of their target language.
    force: whether an index that is there is replaced.
    progress: is called after every part with the number of its segments; None tells nobody.
    seconds_to_wait: how long another writer is waited for.
    resumes: whether the build goes on with what an interrupted one of the same segments has left,
    and leaves its finished parts where it ends with any other error than that of other segments.

    Raises OtherSegmentsError where the interrupted build was of other segments; what it has left is
    gone then. Raises IndexExistsError where there is an index and `force` is false. Raises
    HalfIndexError where there is one without its manifest and `force` is false. Raises
    MemoryIndexError where the folder holds something else. Raises LockedError where another process
    still writes."""
    _check_place(index_dir, force)
    runs = in_runs(segments)
    first = next(runs, [])  # before anything is made: most errors of a memory file show here
    is_new = _make(index_dir)
    with writing(index_dir, seconds_to_wait):
        try:
            _check_place(index_dir, force)
            # here: until the lock is ours it may be one that is being built
            _check_whole(index_dir, force)
            return write_generation(
                index_dir, chain([first], runs), (src_lang, tgt_lang), progress, resumes=resumes
            )
        except BaseException:
            if is_new and not any(index_dir.glob("generation-*")):
                _unmake(index_dir)
            raise


def write_generation(
    index_dir: Path,
    runs: Iterable[list[Segment]],
    languages: tuple[str, str],
    progress: Callable[[int], None] | None = None,
    last_id: int | None = None,
    *,
    resumes: bool = False,
) -> Manifest:
    """Makes segments the valid generation of an index whose lock the caller holds.

    index_dir: the folder of the index.
    runs: the segments, in lists that are written at once.
    languages: the codes of the source and the target language.
    progress: is called after every list with the number of its segments; None tells nobody.
    last_id: the greatest id that was ever given, with which the segments keep their ids. None
    numbers them from 1.
    resumes: as in `build`.

    Raises OtherSegmentsError as `build` does. Raises MemoryIndexError where they cannot be written
    (disk full); the generation before stays."""
    checkpoints = unfinished(index_dir)
    # only a build may remove what a build has left
    keep = () if last_id is None else tuple(checkpoints)
    number, checkpoint = _next_generation(
        index_dir, checkpoints, languages if resumes else None, keep
    )
    folder = index_dir / f"generation-{number}"
    if not (index_dir / MANIFEST_FILE).exists():
        note_first_build(index_dir)
    with _telling_of(index_dir, number):
        try:
            manifest = _build_generation(
                folder, number, runs, languages, progress, last_id, checkpoint, resumes
            )
            write_manifest(manifest, index_dir)
        except BaseException as error:
            stays = resumes and (folder / CHECKPOINT_FILE).exists()
            stays = stays and not isinstance(error, OtherSegmentsError)
            # the valid one: it was interrupted when all was done
            if not stays and _valid_generation(index_dir) != number:
                shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                message = (
                    f"{index_dir}: not written, what was there before is as it was: "
                    f"{error.strerror or error}"
                )
            elif isinstance(error, MemoryIndexError) and stays:
                message = str(error)
            else:
                raise
            note = "; the same command goes on behind the parts that are finished" if stays else ""
            raise MemoryIndexError(message + note) from error
        remove_leftovers(index_dir, number, *keep)
        return manifest


@contextmanager
def _telling_of(index_dir: Path, number: int) -> Iterator[None]:
    """Has an interruption say so where the generation that is built is the valid one already."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if _valid_generation(index_dir) == number:
            stop.add_note(f"{index_dir} is whole all the same")
        raise


def unfinished(index_dir: Path) -> dict[int, Checkpoint]:
    """What interrupted builds have left that can go on, by the numbers of their generations.

    index_dir: the folder of the index."""
    checkpoints = {_number(path): Checkpoint.load(path) for path in index_dir.glob("generation-*")}
    return {
        number: checkpoint for number, checkpoint in checkpoints.items() if checkpoint is not None
    }


def remove_leftovers(index_dir: Path, *keep: int) -> None:
    """Removes what was replaced, or left by a writer that was killed. The caller holds the index's
    lock. What cannot be removed stays for the next call.

    index_dir: the folder of the index.
    keep: the numbers of the generations that stay."""
    for path in index_dir.glob("generation-*"):
        if _number(path) not in keep:
            shutil.rmtree(path, ignore_errors=True)
    for path in index_dir.glob(MANIFEST_FILE + ".*"):
        path.unlink(missing_ok=True)


def _build_generation(
    folder: Path,
    generation: int,
    runs: Iterable[list[Segment]],
    languages: tuple[str, str],
    progress: Callable[[int], None] | None,
    last_id: int | None,
    checkpoint: Checkpoint | None,
    resumes: bool,
) -> Manifest:
    make_folder(folder)
    size = 0 if checkpoint is None else checkpoint.rows
    with (
        closing(NewStore(folder, size)) as store,
        closing(NewParts(folder, checkpoint)) as parts,
    ):
        for run in runs:
            number = parts.number
            parts.add(store.add(run, keep_ids=last_id is not None), run)
            if resumes and parts.number > number:
                _save_checkpoint(folder, languages, store, parts)
            if progress:
                progress(len(run))
        if checkpoint is not None and parts.segments < checkpoint.segments:
            raise OtherSegmentsError(f"{folder}: holds more segments")
        store.seal()
        parts.end()
    (folder / CHECKPOINT_FILE).unlink(missing_ok=True)
    (folder / JOURNAL_FILE).touch()
    flush_file(folder / JOURNAL_FILE)
    return Manifest(
        *languages,
        segments=parts.segments,
        sources=parts.sources,
        tokens=parts.tokens,
        last_id=parts.segments if last_id is None else last_id,
        generation=generation,
        postings=parts.number,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        files=describe_store(folder) | parts.files,
        settings={"max_token_chars": MAX_TOKEN_CHARS},
    )


def _save_checkpoint(
    folder: Path, languages: tuple[str, str], store: NewStore, parts: NewParts
) -> None:
    counts = store.flush(), parts.number, parts.segments, parts.sources, parts.tokens
    Checkpoint(*languages, *counts, parts.files).save(folder)


def in_runs(segments: Iterable[Segment]) -> Iterator[list[Segment]]:
    """Segments in lists, as they are written.

    segments: the segments."""
    rest = iter(segments)
    while run := list(islice(rest, SEGMENTS_A_WRITE)):
        yield run


def _check_place(index_dir: Path, force: bool) -> None:
    if index_dir.exists() and not index_dir.is_dir():
        raise MemoryIndexError(f"{index_dir}: an index is a folder; this is a file")
    foreign = [p.name for p in index_dir.iterdir() if not _ours(p)] if index_dir.exists() else []
    if foreign:
        raise MemoryIndexError(
            f"{index_dir}: holds {foreign[0]}, which is no part of an index; give an empty folder"
        )
    if (index_dir / MANIFEST_FILE).exists() and not force:
        raise IndexExistsError(f"{index_dir}: there is an index already; --force replaces it")


def _check_whole(index_dir: Path, force: bool) -> None:
    half = None if force else half_index(index_dir)
    if half:
        raise HalfIndexError(f"{half}; --force replaces all of it")


def _ours(path: Path) -> bool:
    return path.name.startswith((MANIFEST_FILE, "generation-")) or path.name in (
        LOCK_FILE,
        KEYS_DIR,
    )


def _make(index_dir: Path) -> bool:
    """Makes the folder; whether it was not there."""
    return make_folder(index_dir)


def _unmake(index_dir: Path) -> None:
    with suppress(OSError):
        (index_dir / FIRST_BUILD_FILE).unlink(missing_ok=True)
        (index_dir / LOCK_FILE).unlink()
        index_dir.rmdir()


def _next_generation(
    index_dir: Path,
    checkpoints: Mapping[int, Checkpoint],
    languages: tuple[str, str] | None,
    keep: Sequence[int],
) -> tuple[int, Checkpoint | None]:
    """The number of the generation that is built, and what is there already of it. Makes room
    first: of the others, only the valid generation stays; where the manifest is damaged or of
    another format, the latest that was finished.

    checkpoints: what interrupted builds have left, by the numbers of their generations.
    languages: the codes of the languages of a build that may go on; None begins one anew.
    keep: the numbers of generations that stay besides."""
    valid = _valid_generation(index_dir)
    if valid is None:
        valid = _latest(index_dir, checkpoints) if (index_dir / MANIFEST_FILE).exists() else 0
    alike = [
        number
        for number, checkpoint in checkpoints.items()
        if number != valid and (checkpoint.src_lang, checkpoint.tgt_lang) == languages
    ]
    if not alike:
        remove_leftovers(index_dir, valid, *keep)
        return max(valid, _latest(index_dir)) + 1, None
    number = max(alike)
    checkpoint = checkpoints[number]
    log.info("%s: going on after %d segments", index_dir, checkpoint.segments)
    remove_leftovers(index_dir, valid, number)
    folder = index_dir / f"generation-{number}"
    _remove_open_part(folder, checkpoint)
    if number < valid:  # the index was compacted since
        number = _latest(index_dir) + 1
        rename(folder, index_dir / f"generation-{number}")
    return number, checkpoint


def _remove_open_part(folder: Path, checkpoint: Checkpoint) -> None:
    """Removes what was begun of the part behind those that are whole, and of what is made last."""
    shutil.rmtree(folder / f"postings-{checkpoint.parts + 1}", ignore_errors=True)
    (folder / START).unlink(missing_ok=True)


def _latest(index_dir: Path, ignored_numbers: Container[int] = ()) -> int:
    numbers = map(_number, index_dir.glob("generation-*"))
    return max((number for number in numbers if number not in ignored_numbers), default=0)


def _valid_generation(index_dir: Path) -> int | None:
    try:
        return read_manifest(index_dir).generation
    except MemoryIndexError:
        return None


def _number(path: Path) -> int:
    digits = path.name.removeprefix("generation-")
    return int(digits) if digits.isdecimal() else -1
