"""Models, memories and terms as the options of a server name them, opened; and what is open already
is taken again."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tmnmt.allocator import give_back
from tmnmt.compiled.steps import prepare_decoding
from tmnmt.config.option import options_of
from tmnmt.config.options import HostedBase, TranslationOptions
from tmnmt.errors import UsageError
from tmnmt.index.back_ends import prepare_search
from tmnmt.models.addresses import is_address, name_of
from tmnmt.serve.http_error import Refused
from tmnmt.serve.keys import NAME, NAMES, Keys, check_tenants
from tmnmt.serve.languages import language
from tmnmt.serve.memories import Memory, close, languages_of_indexes, open_memories
from tmnmt.serve.queue import Queue
from tmnmt.serve.served_model import Model
from tmnmt.serve.terms import Served, open_terms
from tmnmt.translator import Translator

if TYPE_CHECKING:
    from tmnmt.config.serving import ServedParts
    from tmnmt.progress import ReadProgress

log = logging.getLogger("tmnmt.serve")


@dataclass(frozen=True)
class Parts:
    """What is served.

    models: the models.
    memories: the memories.
    terms: the lists of terms."""

    models: Sequence[Model] = ()
    memories: Sequence[Memory] = ()
    terms: Sequence[Served] = ()


def open_parts(
    options: ServedParts,
    waiting: int,
    progress: ReadProgress | None = None,
    previous: Parts = Parts(),
) -> Parts:
    """Opens what the options name. Without a model, memories alone are looked up in.

    options: the options.
    waiting: how many characters of one tenant may wait for a model.
    progress: is told of units that are read; None tells nobody.
    previous: what is open already; what would be opened again is taken from there. Lists of terms
    are always read.

    Raises what `Translator.load`, `open_memories` and `open_terms` raise, and UsageError where
    nothing is to be served."""
    folders = [*map(Path, options.model)]
    if not folders and not options.memory and not options.write_to:
        raise UsageError("there is nothing to serve; give --model, --memory or --write-to")
    if folders:
        prepare_decoding()
    prepare_search(concordance=True)
    _check_names(folders)
    pairs = _languages(folders) or languages_of_indexes([*options.memory, *options.write_to])
    memories = open_memories(options.memory, options.write_to, pairs, progress, previous.memories)
    parts = Parts((), memories, ())
    try:
        lists = open_terms(options.terms, pairs)
        models = [_model(folder, memories, options, waiting, previous.models) for folder in folders]
    except BaseException:
        close_memories(parts, previous)
        raise
    give_back()  # what was read of files, and parameters that were packed
    return Parts(models, memories, lists)


def close_memories(parts: Parts, previous: Parts) -> None:
    """Closes the memories of some parts, as far as others do not have them.

    parts: the parts.
    previous: the other parts."""
    retained = {id(memory.index) for memory in previous.memories}
    for memory in parts.memories:
        if id(memory.index) not in retained:
            close(memory)


def _check_names(folders: Sequence[Path]) -> None:
    names = [name_of(folder) for folder in folders]
    for number, (folder, name) in enumerate(zip(folders, names, strict=True)):
        if not NAME.fullmatch(name):
            raise UsageError(f"{folder}: {name!r} cannot be the name of a model; allowed: {NAMES}")
        if name in names[:number]:
            raise UsageError(f"two models are called {name}: rename one of the folders")


def _languages(folders: Sequence[Path]) -> list[tuple[str, str]]:
    """The pairs of languages of models, each once."""
    if not folders:
        return []  # and torch is not imported
    from tmnmt.models.folder import languages_in

    return [*dict.fromkeys(map(languages_in, folders))]


def _model(
    folder: Path,
    memories: Sequence[Memory],
    options: ServedParts,
    waiting: int,
    previous: Iterable[Model],
) -> Model:
    from tmnmt.models.folder import languages_in

    try:
        source, target = map(language, languages_in(folder))
    except Refused as refused:
        hint = "; write them behind it, as @en-fr" if is_address(folder) else ""
        raise UsageError(f"{folder}: the languages of this model are unknown{hint}") from refused
    indexes = [memory.index for memory in memories if memory.serves((source, target))]
    settings = translation_options(options)
    origin = _version(folder), repr(settings), tuple(map(id, indexes))
    for model in previous:
        if model.origin == origin:
            return model
    name = name_of(folder)
    log.info("loading the model %s", name)
    translator = Translator.load(folder, indexes, settings)
    if translator.pipeline.writer.reads_around:
        raise UsageError(
            f"{folder}: its context network reads whole documents, and the server translates "
            "segment by segment; serve its base instead"
        )
    return Model(name, Queue(translator, waiting), origin)


def translation_options(options: ServedParts) -> TranslationOptions:
    """How models translate that a server has. Neighbours are of all memories, and those who ask a
    server may each have others, so none are read.

    options: what is served."""
    hosted = {option.name: getattr(options, option.name) for option in options_of(HostedBase)}
    return TranslationOptions(keep=options.keep, threads=options.threads, neighbours=0, **hosted)


def _version(folder: Path) -> Hashable:
    """What changes with the files of a model folder."""
    files = list[Hashable]()
    for path in sorted(folder.rglob("*")):
        with suppress(FileNotFoundError):
            status = path.stat()
            if path.is_file():
                files.append((str(path), status.st_ino, status.st_size, status.st_mtime_ns))
    return str(folder.resolve()), tuple(files)


def check_keys(keys: Keys, parts: Parts) -> None:
    """Checks that keys go with what is served.

    keys: the keys.
    parts: what is served.

    Raises UsageError for keys of what is not served, and where two tenants share a memory that is
    written to."""
    writable = {memory.name for memory in parts.memories if memory.writable is not None}
    names = {memory.name for memory in parts.memories}
    check_tenants(keys.callers, names, writable, {terms.name for terms in parts.terms})
