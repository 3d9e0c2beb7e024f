"""What is wrong with an installation, and what to do about it: one finding after another, by a
table of checks. Nothing is changed, but that missing machine code is compiled."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from tmnmt import __version__
from tmnmt.compiled.native import folders as code_folders
from tmnmt.config.serving import ServerOptions
from tmnmt.errors import TmnmtError, UsageError
from tmnmt.index.back_ends import (
    is_absent,
    is_address,
    local_path,
    open_index,
    prepare_search,
)
from tmnmt.quantities import quantity
from tmnmt.segments import Segment
from tmnmt.serve.keys import Keys, check_tenants
from tmnmt.serve.languages import distance, language
from tmnmt.serve.memories import Place
from tmnmt.serve.memories import place_of as memory_place
from tmnmt.serve.opening import translation_options
from tmnmt.serve.storage.opening import open_storage, place_of
from tmnmt.serve.storage.snapshot import Snapshot

Status = Literal["ok", "warn", "fail"]
LITTLE, TOO_LITTLE = 2_000_000_000, 200_000_000  # bytes of a disk that are free
LEAD = 300.0  # seconds that a file may be newer than the clock
MEND = "mend what the message names"
GET_TORCH = "pip install torch"
RELEASED = 1_760_000_000  # seconds since 1970: no clock that is right shows less


@dataclass(frozen=True)
class Finding:
    """What a check has found.

    check: the name of the check.
    status: "ok", "warn" where something may go wrong, "fail" where something does.
    message: what was found.
    advice: what to do; "" where nothing is to be done."""

    check: str
    status: Status
    message: str
    advice: str = ""

    @property
    def record(self) -> Mapping[str, str]:
        """The same as JSON has it."""
        return asdict(self)


@dataclass
class Installation:
    """What is looked at.

    options: what a server is told.
    languages: the pairs of languages of the models that can be loaded.
    states: the hashes to which the pair keys of these models are bound.
    memory_languages: the pairs of languages of the indexes that can be opened."""

    options: ServerOptions
    languages: dict[str, tuple[str, str]]
    states: set[str]
    memory_languages: list[tuple[str, str]]


Result = tuple[Status, str, str]
Check = Callable[[Installation], Iterator[Result]]


def examine(options: ServerOptions) -> Iterator[Finding]:
    """Finds out what is wrong. Each finding comes as soon as it is there.

    options: what a server is told."""
    installation = Installation(options, {}, set(), [])
    for name, check in CHECKS.items():
        try:
            for finding in check(installation):
                yield Finding(name, *finding)
        except TmnmtError as error:
            yield Finding(name, "fail", str(error), MEND)
        except OSError as error:
            yield Finding(name, "fail", _reason(error), MEND)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            yield Finding(name, "fail", "models need torch, which is not installed", GET_TORCH)


def _reason(error: OSError) -> str:
    """What the system says, without its number."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def _python(_: Installation) -> Iterator[Result]:
    version = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield "ok", f"tmnmt {__version__}, {version}, Unicode {unicodedata.unidata_version}", ""


def _packages(installation: Installation) -> Iterator[Result]:
    options = installation.options
    required = {"starlette": "server", "uvicorn": "server"}
    if options.sessions is not None and is_address(options.sessions):
        required["redis"] = "redis"
    for package, extra in required.items():
        if find_spec(package) is None:
            yield "fail", f"{package} is not installed", f"pip install 'tmnmt[{extra}]'"
    optional = {"mcp": "assistants", "icu": "words of Thai, Lao, Khmer and Burmese"}
    missing = [f"{name} ({use})" for name, use in optional.items() if find_spec(name) is None]
    yield "ok", f"not installed, and not needed: {', '.join(missing) or 'nothing'}", ""


def _torch(installation: Installation) -> Iterator[Result]:
    try:
        import torch
    except ModuleNotFoundError:
        if installation.options.model:
            raise
        yield "ok", "torch is not installed, and models alone need it", ""
        return
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    threads = installation.options.threads or torch.get_num_threads()
    kind = f"CUDA {torch.version.cuda}" if torch.version.cuda else "for CPUs"
    text = f"torch {torch.__version__}, {kind}; {quantity(threads, 'thread')} on {cores} cores"
    if threads > cores:
        yield "warn", text, f"give --threads {cores}: more threads than cores wait for each other"
        return
    yield "ok", text, ""


def _kernels(_: Installation) -> Iterator[Result]:
    from tmnmt.index.embedded.build import build
    from tmnmt.index.embedded.index import MemoryIndex

    prepare_search()
    with tempfile.TemporaryDirectory(prefix="tmnmt-") as temporary:
        folder = Path(temporary) / "index"
        build(folder, [Segment("The permit is void.", "Le permis est nul.")], "en", "fr")
        with MemoryIndex.open(folder) as index:
            hits = index.search("The permit is valid.", 1)
    if not hits:
        yield "fail", "a search does not find what it has to find", "report this as a fault"
    for folder in code_folders():
        if os.access(folder, os.W_OK):
            yield "ok", f"searches run; machine code is kept in {folder}", ""
            return
    advice = "set NUMBA_CACHE_DIR to a folder that can be written to"
    yield "warn", "machine code cannot be kept, and each start compiles it again", advice


def _models(installation: Installation) -> Iterator[Result]:
    from tmnmt.translator import Translator

    options = installation.options
    for folder in map(Path, options.model):
        try:
            begin = time.monotonic()
            translator = Translator.load(folder, [], translation_options(options))
            translator.translate(["1."])
        except TmnmtError as error:
            yield "fail", str(error), "get or export the model again"
            continue
        installation.languages[str(folder)] = translator.src_lang, translator.tgt_lang
        installation.states.add(translator.pipeline.states_hash)
        seconds = time.monotonic() - begin
        pair = f"{translator.src_lang}-{translator.tgt_lang}"
        yield "ok", f"{folder}: {pair}, is loaded and translates in {seconds:.1f} s", ""
    if not options.model:
        yield "warn", "no model is named: memories alone are looked up in", "give --model FOLDER"


def _memories(installation: Installation) -> Iterator[Result]:
    options = installation.options
    for place in map(memory_place, options.memory):
        yield from _memory(place, installation, is_written=False)
    for place in map(memory_place, options.write_to):
        yield from _memory(place, installation, is_written=True)
    if options.memory or options.write_to:
        yield "ok", "sizes were compared; tmnmt memory verify reads every byte of an index", ""


def _memory(place: Place, installation: Installation, is_written: bool) -> Iterator[Result]:
    folder = local_path(place.place)
    if is_written and folder is not None and (problem := _unwritable(folder)):
        yield "fail", *problem
        return
    if is_written and is_absent(place.place):
        yield "ok", f"{place.place}: is made at the start", ""
        return
    if folder is not None and folder.is_file():
        yield "ok", f"{folder}: is a file, which is indexed at the start", ""
        return
    try:
        with open_index(place.place) as index:
            pair = index.src_lang, index.tgt_lang
            count = quantity(len(index), "segment")
    except TmnmtError as error:
        yield "fail", str(error), "restore it, or build it again with tmnmt build-index"
        return
    installation.memory_languages.append(pair)
    text = f"{place.place}: {pair[0]}-{pair[1]}, {count}"
    if installation.languages and not _serves(pair, installation.languages.values()):
        yield "warn", f"{text}; no model has its languages", "name a model of its languages"
        return
    yield "ok", text, ""


def _serves(pair: tuple[str, str], served: Iterable[tuple[str, str]]) -> bool:
    """Whether some languages are those of a model, whatever their regions."""
    return any(
        distance(language(code), language(served_code)) is not None
        for languages in served
        for code, served_code in [(pair[0], languages[0])]
        if distance(language(pair[1]), language(languages[1])) is not None
    )


def _unwritable(folder: Path) -> tuple[str, str] | None:
    """What keeps the server from writing to a folder, or from making it, and what to do; None where
    nothing does. A file that is tried there has no name."""
    existing = _existing(folder)
    if not existing.is_dir():
        which = "" if existing == folder else f"{existing} "
        return f"{folder}: {which}is a file, not a folder", "name another place"
    try:
        with tempfile.TemporaryFile(dir=existing):
            return None
    except OSError as error:
        advice = f"let the user of the server write to {existing}, or name another place"
        return f"{folder}: cannot be written to: {error.strerror}", advice


def _existing(place: Path) -> Path:
    """The place itself, or the folder above it that is there. Raises OSError for a name that no
    system takes."""
    place.exists()
    return next(path for path in (place, *place.resolve().parents) if path.exists())


def _pair_keys(installation: Installation) -> Iterator[Result]:
    for location in _locations(installation.options):
        folder = local_path(location)
        if folder is None or not (folder / "keys").is_dir() or not installation.states:
            continue
        stale = [
            path
            for path in sorted((folder / "keys").iterdir())
            if path.is_dir() and not path.name.startswith(tuple(installation.states))
        ]
        if stale:
            size = sum(file.stat().st_size for path in stale for file in path.rglob("*"))
            text = f"{folder / 'keys'}: {quantity(size, 'byte')} are of models that are not served"
            yield "warn", text, f"remove {', '.join(path.name for path in stale)}"
    yield "ok", "no other keys are kept beside the memories", ""


def _terms(installation: Installation) -> Iterator[Result]:
    from tmnmt.serve.terms import open_terms

    names = installation.options.terms
    pairs = [*installation.languages.values()] or installation.memory_languages
    if not names:
        yield "ok", "no lists of terms are named", ""
    elif not pairs:
        text = "the lists are not read: no model and no memory says of which languages"
        yield "warn", text, "mend the models and memories, then look again"
    for entry in open_terms(names, pairs) if pairs else ():
        count = sum(len(terms) for terms in entry.terms.values())
        yield "ok", f"{entry.name}: {quantity(count, 'term')}", ""


def _keys(installation: Installation) -> Iterator[Result]:
    options = installation.options
    if options.keys is None:
        yield "ok", "no file of keys: this machine alone is answered", ""
        return
    keys = Keys.load(options.keys)
    readable = [place.name for place in map(memory_place, options.memory)]
    writable = [place.name for place in map(memory_place, options.write_to)]
    terms = [place.name.partition(".")[0] for place in map(memory_place, options.terms)]
    try:
        check_tenants(keys.callers, [*readable, *writable], writable, terms)
    except UsageError as error:
        yield "fail", f"{options.keys}: {error}", "change the file, or serve what it names"
        return
    if os.name == "posix" and options.keys.stat().st_mode & 0o077:
        yield "warn", f"{options.keys}: others can read it", f"chmod 600 {options.keys}"
        return
    yield "ok", f"{options.keys}: {quantity(len(keys.callers), 'key')}", ""


def _sessions(installation: Installation) -> Iterator[Result]:
    place = place_of(installation.options.sessions)
    if not isinstance(place, Path):
        with closing(open_storage(place)):
            yield "ok", f"{place}: answers", ""
        return
    if problem := _unwritable(place.parent):
        yield "fail", *problem
    elif place.is_dir():
        yield "fail", f"{place}: is a folder, not a file", "name a file for the sessions"
    elif not place.exists():
        yield "ok", f"{place}: is made at the start", ""
    else:
        with closing(Snapshot(place)) as sessions:
            damage = sessions.damage()
        status: Status = "fail" if damage else "ok"
        advice = "stop the server, and restore the file from a backup" if damage else ""
        yield status, f"{place}: {damage or 'is whole'}", advice


def _certificate(installation: Installation) -> Iterator[Result]:
    from tmnmt.serve.running import check_certificate, check_host

    options = installation.options
    check_host(options.host, options.keys)
    if options.certificate is not None and options.private_key is not None:
        check_certificate(options.certificate, options.private_key)
        yield "ok", f"{options.certificate} and its key go together", ""
    elif options.certificate is not None or options.private_key is not None:
        yield "fail", "certificate and private_key go together", "name both, or neither"


def _port(installation: Installation) -> Iterator[Result]:
    options = installation.options
    host, port = options.host.strip("[]"), options.port
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.create_server(address[:2], family=family):
            yield "ok", f"{host}, port {port}: is free", ""
    except OSError as error:
        advice = "a server that runs already? Otherwise give another --port"
        yield "warn", f"{host}, port {port}: {error.strerror}", advice


def _disk(installation: Installation) -> Iterator[Result]:
    sessions = place_of(installation.options.sessions)
    places = [
        Path(location) for location in _locations(installation.options) if not is_address(location)
    ]
    places += [sessions] if isinstance(sessions, Path) else []
    devices = set[int]()
    for place in [*places, Path(tempfile.gettempdir())]:
        existing = _existing(place)
        device = existing.stat().st_dev
        if device in devices:
            continue
        devices.add(device)
        free = shutil.disk_usage(existing).free
        status: Status = "fail" if free < TOO_LITTLE else "warn" if free < LITTLE else "ok"
        advice = "" if status == "ok" else "make room: what cannot be written is refused"
        yield status, f"{existing}: {free / 1e9:.1f} GB are free", advice


def _clock(installation: Installation) -> Iterator[Result]:
    now = time.time()
    sessions = place_of(installation.options.sessions)
    newest = sessions.stat().st_mtime if isinstance(sessions, Path) and sessions.exists() else 0.0
    text = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < RELEASED or newest > now + LEAD:
        reason = "is earlier than what was written already"
        yield "warn", f"the clock shows {text}, which {reason}", "set the clock, as by NTP"
        return
    yield "ok", f"the clock shows {text}", ""


def _locations(options: ServerOptions) -> Sequence[str]:
    return [memory_place(entry).place for entry in (*options.memory, *options.write_to)]


CHECKS: Mapping[str, Check] = {
    "python": _python,
    "packages": _packages,
    "torch": _torch,
    "kernels": _kernels,
    "models": _models,
    "memories": _memories,
    "pair keys": _pair_keys,
    "terms": _terms,
    "keys": _keys,
    "sessions": _sessions,
    "host": _certificate,
    "port": _port,
    "disk": _disk,
    "clock": _clock,
}
