"""What a worker does: opens a model with its memories once, and translates task after task of
documents. What travels to it and back is JSON, and nothing else is made of it."""

from __future__ import annotations

import hashlib
import json
import socket
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tmnmt import errors
from tmnmt.codes.record import Placed, Source, Text
from tmnmt.config.option import groups_of, options_of
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import DataError, TmnmtError
from tmnmt.index.embedded.in_memory import InMemoryIndex
from tmnmt.index.named_memories import parse_memory
from tmnmt.index.opening import memory_digest
from tmnmt.partial_document import ConfirmedNeighbour, PartialDocument
from tmnmt.segments import Segment, Translation
from tmnmt.source_hash import source_hash
from tmnmt.translator import Translator, in_region, with_memory
from tmnmt.typed_json import dumps, loads, record_of

_ERROR = b"!"  # what an answer begins with that is an error
_PACKING = 1  # of zlib: the fastest, since most of an answer are texts of the memory


@dataclass(frozen=True)
class Setup:
    """What workers translate with: the same at each of them.

    model: the path of the model folder.
    memories: the names of the memories.
    options: the fields of `TranslationOptions`, as `options_text` writes them.
    pairs: the segments of one memory more, which the files have that are translated.
    state: what all of it was when the work began, as `state_of` gives it."""

    model: str
    memories: tuple[str, ...]
    options: str
    pairs: tuple[Segment, ...]
    state: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Way:
    """How the documents of one input are translated.

    region: the target language of the file, with or without a region; "" for lines.
    tag: the target language, as in `Translator.stream`.
    explain: whether every token comes with its origin."""

    region: str = ""
    tag: str = ""
    explain: bool = False


def options_text(options: TranslationOptions) -> str:
    """Options as JSON, with the paths of files made absolute.

    options: the options."""
    values = {
        name: str(Path(value).absolute()) if name in _files_of(options) else value
        for name, value in asdict(options).items()
    }
    return json.dumps(values, sort_keys=True, ensure_ascii=False)


def options_of_text(text: str) -> TranslationOptions:
    """The options that `options_text` wrote.

    text: their JSON.

    Raises UsageError for a value that an option may not have."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in json.loads(text).items()
    }
    return TranslationOptions(**values)


def _files_of(options: TranslationOptions) -> dict[str, Path]:
    """The files that options name, by the name of the option."""
    values = (
        (option.name, getattr(options, option.name))
        for group in groups_of(type(options))
        for option in options_of(group)
        if option.name in _FILES
    )
    return {name: Path(value) for name, value in values if value is not None}


_FILES = ("terms", "knn_adaptive")


def state_of(
    translator: Translator, setup: Setup, options: TranslationOptions
) -> tuple[tuple[str, str], ...]:
    """What translations depend on besides their texts: what it is called, and what it is now.

    translator: the translator of the setup, without its `pairs`.
    setup: the setup.
    options: its options.

    Raises MemoryIndexError and OSError as `memory_digest`."""
    layers, settings = translator.layers, translator.settings
    parameters = layers.digest(settings.mode, settings.cache > 0) if layers is not None else ""
    languages = translator.src_lang, translator.tgt_lang
    places = [str(parse_memory(name).place) for name in setup.memories]
    state = [
        ("tmnmt", source_hash()),
        (setup.model, f"{translator.model_hash} {parameters}".strip()),
        *((place, memory_digest(place, *languages)) for place in places),
        *((str(path), _digest(path)) for path in _files_of(options).values()),
    ]
    if settings.neighbours:
        state += zip(places, _keys(translator), strict=True)
    return tuple(state)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _keys(translator: Translator) -> Iterator[str]:
    from tmnmt.trained_layers.datastore import keys_state

    pipeline = translator.pipeline
    for index in pipeline.lookup.retriever.indexes:
        yield keys_state(index, pipeline.states_hash)


def task_text(documents: Sequence[Sequence[Source]], way: Way) -> bytes:
    """A task.

    documents: the texts of every document.
    way: how they are translated."""
    return dumps([way, [_document_record(document) for document in documents]])


def _document_record(document: Sequence[Source]) -> list[Any]:
    pairs = document.pairs if isinstance(document, PartialDocument) else ()
    texts = [text if isinstance(text, str) else [type(text).__name__, text] for text in document]
    return [texts, pairs]


_TEXTS = {kind.__name__: kind for kind in (Text, Placed)}


def _document(record: Any) -> PartialDocument:
    texts, pairs = record
    return PartialDocument(
        [text if isinstance(text, str) else record_of(_TEXTS[text[0]], text[1]) for text in texts],
        [record_of(ConfirmedNeighbour, pair) for pair in pairs],
    )


_loaded: dict[str, Translator] = {}  # by the name of its setup; of this process, the last one


def run(name: str, setup: bytes, task: bytes, threads: int) -> bytes:
    """Does a task, and gives the answer that `answer_of` reads. An error that a user can cause is
    an answer, too.

    name: the name of the setup; under it, this process keeps what it has opened.
    setup: the setup, as `typed_json.dumps` writes it.
    task: what `task_text` wrote.
    threads: how many threads compute."""
    try:
        if name not in _loaded:
            _loaded.clear()
            _loaded[name] = _load(record_of(Setup, loads(setup)), threads)
        return zlib.compress(dumps(_translate(_loaded[name], task)), _PACKING)
    except (TmnmtError, OSError) as error:
        kind = type(error).__name__ if isinstance(error, TmnmtError) else DataError.__name__
        return _ERROR + dumps([kind, socket.gethostname(), str(error)])


def _load(setup: Setup, threads: int) -> Translator:
    """Raises DataError where something is not what it was where the work began."""
    import torch

    from tmnmt.allocator import keep_freed
    from tmnmt.compiled.steps import prepare_decoding
    from tmnmt.index.back_ends import prepare_search

    torch.set_num_threads(threads)
    keep_freed()
    prepare_decoding()
    prepare_search(setup.memories)
    options = options_of_text(setup.options)
    translator = Translator.load(setup.model, setup.memories, options)
    for (place, digest), (_, local_digest) in zip(
        setup.state, state_of(translator, setup, options), strict=True
    ):
        if digest != local_digest:
            raise DataError(f"{place}: is not the same here as where the command was started")
    if not setup.pairs:
        return translator
    return with_memory(translator, InMemoryIndex.build(setup.pairs))


def _translate(translator: Translator, task: bytes) -> dict[str, Any]:
    record, documents = loads(task)
    way = record_of(Way, record)
    regional = in_region(translator, way.region)
    translator.tally.drained()
    stream = regional.stream(map(_document, documents), way.explain, tag=way.tag)
    translations = [*stream]
    return {"translations": translations, "counts": translator.tally.drained()}


@dataclass(frozen=True)
class Answer:
    """What became of a task: the translations of all its texts, in order, and what was counted, as
    `Tally.drained` gives it."""

    translations: tuple[Translation, ...]
    counts: dict[str, Any]


def checked_answer(answer: bytes) -> bytes:
    """Gives back an answer.

    answer: what `run` gave.

    Raises the error that the worker had, which names its machine."""
    if answer.startswith(_ERROR):
        kind, host, message = loads(answer.removeprefix(_ERROR))
        raise _error(kind)(f"worker on {host}: {message}")
    return answer


def answer_of(answer: bytes) -> Answer:
    """What a worker has answered.

    answer: what `run` gave of a task that was done.

    Raises DataError for what is no answer."""
    try:
        record = loads(zlib.decompress(answer))
        translations = (record_of(Translation, entry) for entry in record["translations"])
        return Answer(tuple(translations), record["counts"])
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise DataError(f"a worker's answer is damaged: {error}") from error


def _error(name: str) -> Callable[[str], TmnmtError]:
    """The error of this name; another one that a user can cause is a DataError."""
    kind = getattr(errors, str(name), DataError)
    return kind if isinstance(kind, type) and issubclass(kind, TmnmtError) else DataError
