"""`tmnmt keys`: the keys of all pairs of an index, computed ahead; and a search in them."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli.options import MODEL, interruption_note, readable, use_threads
from tmnmt.config.bounds import Choices, Help
from tmnmt.config.options import MODES, Device, Threads
from tmnmt.errors import UsageError
from tmnmt.quantities import quantity

if TYPE_CHECKING:
    from tmnmt.index.base import FolderIndex
    from tmnmt.keys.compute import Plan, Shard
    from tmnmt.keys.files import KeyFiles
    from tmnmt.models.folder import Model

MOST_SHARDS = 100_000
GOES_ON = "what was computed is kept; the same command goes on from there"
MOST_KEYS = 10_000  # for a subword


class KindName(StrEnum):
    """Of the search over all keys."""

    auto = "auto"
    flat = "flat"
    ivf = "ivf"
    ivfpq = "ivfpq"
    hnsw = "hnsw"


KeyMode = Annotated[
    str | None,
    Choices(MODES),
    Help(
        "The mode that reads the keys: {choices}. Not given, it is the mode in which the model "
        "translates by default; but with --faiss or a search, keys for all modes but nearest.",
        metavar="MODE",
    ),
]


def keys(
    index: Annotated[str, typer.Option("--index", help="Folder or address of the index.")],
    model: MODEL,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Compute only part I of N, on one of N machines; see above."
        ),
    ] = None,
    mode: KeyMode = None,
    faiss: Annotated[
        KindName | None,
        typer.Option(
            help="Search over all keys: flat is exact; auto is flat, ivf or ivfpq by their number."
        ),
    ] = None,
    device: Device = None,
    threads: Threads = None,
    src: Annotated[
        str | None, typer.Option(help="Search instead: for this text ...", callback=readable)
    ] = None,
    tgt: Annotated[
        str | None,
        typer.Option(help="... translated so, the best keys for every subword.", callback=readable),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=MOST_KEYS, help="Keys for every subword.")] = 8,
) -> None:
    """Compute the keys of all pairs ahead, for one model, so that translating reads them.

    The mode nearest reads 132 bytes a target subword of a model of 256 numbers. All other modes,
    and the search over all keys, read some 400. The size is said before it starts. Run it again
    after changes, or when it was interrupted: only what is missing is computed. Keys lie in
    INDEX/keys/MODEL-HASH.directions for the mode nearest, in INDEX/keys/MODEL-HASH for the others.
    For an index on a server, INDEX is a folder NAME-HASH on this machine, in the folder that the
    environment variable TMNMT_KEYS names, or else in ~/.cache/tmnmt/keys; the command says which.

    On N machines that reach the index, or have a copy of it each: run it with --shard 1/N ... N/N,
    copy the folders part-I-of-N from every one of these folders into that of one machine, and run
    it there without --shard, which joins them. Where TMNMT_KEYS is a folder that all of them share,
    nothing is copied."""
    if (src is None) != (tgt is None):
        raise UsageError("a search needs both --src and --tgt")
    if src is not None and tgt is not None and not (src.strip() and tgt.strip()):
        raise UsageError("--src and --tgt are the texts to search for; neither may be empty")
    if mode == "off":
        raise UsageError("--mode off reads no keys")
    needs_pairs = src is not None or faiss is not None
    if mode == "nearest" and needs_pairs:
        raise UsageError(
            "--faiss and a search need context and state of every position, which --mode nearest "
            "does not keep; leave out --mode"
        )
    if shard is not None and needs_pairs:
        raise UsageError(
            "--shard computes keys only; run it without --shard for --faiss and for a search"
        )

    from tmnmt.engine.loading import device_named, load_on
    from tmnmt.index.back_ends import open_index
    from tmnmt.index.base import check_languages, has_folder
    from tmnmt.keys.compute import read_shard

    part = read_shard(shard) if shard is not None else None
    if part is not None and part[1] > MOST_SHARDS:
        raise UsageError(f"--shard {shard}: at most {MOST_SHARDS:,} parts")
    use_threads(threads)
    device = device_named(device)
    loaded = load_on(model, device)
    with open_index(index) as memory:
        if not has_folder(memory):
            raise UsageError(
                f"{index}: there is no home folder to keep keys in; set TMNMT_KEYS to a folder"
            )
        languages = memory.src_lang, memory.tgt_lang
        check_languages(index, languages, loaded.config["src_lang"], loaded.config["tgt_lang"])
        if src is not None and tgt is not None:
            _search(memory, loaded, src, tgt, k, device)
        elif needs_pairs or (mode or _default_mode(loaded)) != "nearest":
            _compute_pairs(memory, loaded, part, faiss or KindName.auto, device)
        else:
            _compute_directions(memory, loaded, part, device)


def _default_mode(model: Model) -> str:
    """The mode in which a model translates by default."""
    from tmnmt.engine.loading import load_layers
    from tmnmt.engine.settings import default_mode

    return default_mode(load_layers(model, "cpu"), model)


def _compute_directions(index: FolderIndex, model: Model, shard: Shard | None, device: str) -> None:
    """Computes the keys that the mode nearest reads."""
    from tmnmt.keys.compute import check_disk, header_of, plan
    from tmnmt.keys.layout import DIRECTIONS

    work = plan(index, header_of(model, DIRECTIONS), model.vocab, shard)
    free = check_disk(index.folder, work.bytes)
    print(f"{index.folder}: {_size(work)}; {free / 1e6:,.0f} MB free", file=sys.stderr)
    with interruption_note(GOES_ON):
        _print_result(_computed(index, model, work, shard, device))


def _compute_pairs(
    index: FolderIndex, model: Model, shard: Shard | None, faiss: KindName, device: str
) -> None:
    """Computes the keys that all other modes read, and the search over all of them."""
    from tmnmt.keys.compute import check_disk, header_of, plan
    from tmnmt.progress import Progress
    from tmnmt.trained_layers.faiss_index import (
        KINDS,
        bytes_a_key,
        check_kind,
        kind_for,
        update_faiss,
    )
    from tmnmt.trained_layers.key_directions import searched_size

    work = plan(index, header_of(model), model.vocab, shard)
    positions = work.all_positions
    kind = kind_for(positions) if faiss == KindName.auto else KINDS[faiss.value]
    if shard is None:
        check_kind(kind, positions)  # now, not when hours have been computed
    for_faiss = positions * bytes_a_key(kind, searched_size(work.header)) if shard is None else 0
    free = check_disk(index.folder, work.bytes + for_faiss)
    of_keys = f"{_size(work)}; {kind} {for_faiss / 1e6:,.1f} MB"
    print(
        f"{index.folder}: {of_keys}; {free / 1e6:,.0f} MB free",
        file=sys.stderr,
    )
    with interruption_note(GOES_ON):
        files = _computed(index, model, work, shard, device)
        if shard is None:
            with Progress("FAISS", "keys") as progress:
                update_faiss(files, kind, progress.advance)
    _print_result(files)


def _computed(
    index: FolderIndex, model: Model, work: Plan, shard: Shard | None, device: str
) -> KeyFiles:
    """All keys, with those that were missing. How far it is stands on stderr."""
    from tmnmt.keys.compute import compute
    from tmnmt.progress import Progress

    with Progress("computing keys", "positions", work.positions) as progress:
        return compute(index, model, work, shard, device, progress.advance)


def _print_result(files: KeyFiles) -> None:
    print(f"{files.folder}: keys of {quantity(files.positions, 'position')}", file=sys.stderr)


def _size(work: Plan) -> str:
    missing = (
        f"{quantity(len(work.missing), 'pair')}, {quantity(work.positions, 'target position')}"
    )
    copies = f", {quantity(work.outdated, 'pair')} out of date" if work.outdated else ""
    if work.part_positions or work.rewritten:
        copies += f", {work.part_positions + work.rewritten:,} to copy"
    return (
        f"{missing} to compute{copies}: {work.bytes / 1e6:,.1f} MB, "
        f"{work.header.position_bytes:,} bytes each"
    )


def _search(index: FolderIndex, model: Model, src: str, tgt: str, k: int, device: str) -> None:
    from tmnmt.keys.compute import queries_of
    from tmnmt.trained_layers.key_search import KeySearch

    queries, ids = queries_of(model, src, tgt, device)
    search = KeySearch.open(index, model.states_hash)
    scores, positions = search.search(queries, k)
    for t, subword in enumerate(ids.tolist()):
        for score, place in zip(scores[t].tolist(), search.places(positions[t]), strict=True):
            if place is not None:
                columns = place.segment, place.position, model.vocab.piece(place.id)
                print(t, model.vocab.piece(subword), f"{score:.4f}", *columns, sep="\t")
