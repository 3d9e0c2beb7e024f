"""`tmnmt keys`: the keys of all pairs of an index, computed ahead; and a search in them."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli.options import MODEL, interruption_note, readable, use_threads
from tmnmt.config.options import Device, Threads
from tmnmt.errors import UsageError
from tmnmt.quantities import quantity

if TYPE_CHECKING:
    from tmnmt.index import MemoryIndex
    from tmnmt.keys.compute import Plan, Shard
    from tmnmt.models.folder import Model

MOST_SHARDS = 100_000
MOST_KEYS = 10_000  # for a subword


class KindName(StrEnum):
    """Of the search over all keys."""

    auto = "auto"
    flat = "flat"
    ivf = "ivf"
    ivfpq = "ivfpq"
    hnsw = "hnsw"


def keys(
    index: Annotated[str, typer.Option("--index", help="Folder of the index.")],
    model: MODEL,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Compute only part I of N, on one of N machines; see above."
        ),
    ] = None,
    faiss: Annotated[
        KindName,
        typer.Option(
            help="Search over all keys: flat is exact; auto is flat, ivf or ivfpq by their number."
        ),
    ] = KindName.auto,
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
    """Compute the keys of all pairs ahead, for one model, so that translating reads them; some
    400 bytes a target subword.

    The size is said before it starts. Run it again after changes, or when it was interrupted: only
    what is missing is computed. Keys lie in INDEX/keys/MODEL-HASH.

    On N machines with a copy of the index each: run it with --shard 1/N ... N/N, copy the folders
    part-I-of-N from every INDEX/keys/MODEL-HASH into that of one machine, and run it there without
    --shard, which joins them."""
    from tmnmt.index.back_ends import local_path

    if local_path(index) is None:
        raise UsageError("keys can be computed for an index in a folder only")
    if (src is None) != (tgt is None):
        raise UsageError("a search needs both --src and --tgt")
    if src is not None and tgt is not None and not (src.strip() and tgt.strip()):
        raise UsageError("--src and --tgt are the texts to search for; neither may be empty")
    if shard is not None and (src is not None or faiss != KindName.auto):
        raise UsageError(
            "--shard computes keys only; run it without --shard for --faiss and for a search"
        )

    from tmnmt.engine.loading import device_named, load_on
    from tmnmt.index import MemoryIndex
    from tmnmt.index.base import check_languages
    from tmnmt.keys.compute import read_shard

    part = read_shard(shard) if shard is not None else None
    if part is not None and part[1] > MOST_SHARDS:
        raise UsageError(f"--shard {shard}: at most {MOST_SHARDS:,} parts")
    use_threads(threads)
    device = device_named(device)
    loaded = load_on(model, device)
    with MemoryIndex.open(Path(index)) as memory:
        languages = memory.src_lang, memory.tgt_lang
        check_languages(index, languages, loaded.config["src_lang"], loaded.config["tgt_lang"])
        if src is not None and tgt is not None:
            _search(memory, loaded, src, tgt, k, device)
        else:
            _compute(memory, loaded, part, faiss, device)


def _compute(
    index: MemoryIndex, model: Model, shard: Shard | None, faiss: KindName, device: str
) -> None:
    from tmnmt.keys.compute import check_disk, compute, header_of, plan
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
    with interruption_note("what was computed is kept; the same command goes on from there"):
        with Progress("computing keys", "positions", work.positions) as progress:
            files = compute(index, model, work, shard, device, progress.advance)
        if shard is None:
            with Progress("FAISS", "keys") as progress:
                update_faiss(files, kind, progress.advance)
    print(f"{files.folder}: keys of {quantity(files.positions, 'position')}", file=sys.stderr)


def _size(work: Plan) -> str:
    missing = (
        f"{quantity(len(work.missing), 'pair')}, {quantity(work.positions, 'target position')}"
    )
    copies = ""
    if work.part_positions or work.rewritten:
        copies = f", {work.part_positions + work.rewritten:,} to copy"
    return (
        f"{missing} to compute{copies}: {work.bytes / 1e6:,.1f} MB, "
        f"{work.header.position_bytes:,} bytes each"
    )


def _search(index: MemoryIndex, model: Model, src: str, tgt: str, k: int, device: str) -> None:
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
