"""Machine code kept as a file: later processes run it without numba, whose import takes longer than
most searches.

A function of numbers (addresses of arrays among them) is compiled by numba at its first use on a
machine. Its machine code is kept in the folder where numba would keep it, under a name made of all
that it depends on; LLVM loads it. It must not allocate and calls nothing outside of itself.

A command that will search begins to compile at once, in another process (`begin`), while it
reads files or imports torch. Who needs the function then waits for whoever compiles it.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import importlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

from tmnmt.durable import write
from tmnmt.system import take_lock

_PACKAGE = Path(__file__).parent
_TMNMT = _PACKAGE.parent
# what compiled code is made of
SOURCES = [
    *sorted((_TMNMT / "compiled").glob("*.py")),
    *sorted((_TMNMT / "index" / "kernels").glob("*.py")),
    _TMNMT / "index" / "fuzzy.py",
    _TMNMT / "text.py",
]
CTYPES = {  # of arguments, and as what compiled code takes them
    "int64": (ctypes.c_int64, "int64"),
    "float64": (ctypes.c_double, "float64"),
    "bytes": (ctypes.c_char_p, "int64"),  # their address
}
# nobody reads them
_RESULT = ctypes.byref(ctypes.c_int64())
_ERROR = ctypes.byref(ctypes.c_void_p())
_compiling = threading.Lock()
_engines: list[object] = []  # what they hold is run to the end of the process
_announced: set[str] = set()
log = logging.getLogger(__name__)


class DamagedError(Exception):
    """What is kept is not what was written."""


class Native:
    """A function of a module of tmnmt, compiled or taken from where it is kept at its first call.
    Arguments: int64, float64 or bytes; it returns nothing (numba: an int64 that means nothing).
    Runs without Python's lock."""

    def __init__(self, module: str, name: str, label: str, *arguments: str) -> None:
        self._module, self._name, self._label, self._arguments = module, name, label, arguments
        self._function: Callable[..., int] | None = None
        self._compiler: subprocess.Popen[bytes] | None = None

    @property
    def signature(self) -> str:
        """Its module, name and arguments."""
        return " ".join([self._module, self._name, *self._arguments])

    def __call__(self, *arguments: float | bytes) -> None:
        """Raises IndexError where code that looks at bounds (NUMBA_BOUNDSCHECK) reads outside."""
        if (self._function or self._prepared())(_RESULT, _ERROR, *arguments):
            raise IndexError(f"{self._label}: compiled code reads outside of an array")

    def _prepared(self) -> Callable[..., int]:
        with _compiling:
            if self._function is None:
                symbol, code = self._cached_code() or self._compiled()
                self._function = self._loaded(symbol, code)
        return self._function

    def _cached_code(self) -> tuple[str, bytes] | None:
        name = self._file_name()
        for folder in folders():
            with suppress(OSError, DamagedError):
                return unpacked((folder / name).read_bytes())
        return None

    def _compiled(self) -> tuple[str, bytes]:
        """The symbol and the machine code, which is kept where there is a folder for it; another
        process that compiles it is waited for."""
        if self._label not in _announced:
            log.info("compiling the %s, once on this machine; some 10 s ...", self._label)
        _announced.add(self._label)
        if self._compiler is not None:
            self._compiler.wait()
        folder = _folder()
        if folder is None:
            return machine_code(self._module, self._name, self._arguments)
        with _alone(folder / f".{self._module}.{self._name}.lock"):
            if (cached := self._cached_code()) is not None:
                return cached
            symbol, code = machine_code(self._module, self._name, self._arguments)
            with suppress(OSError):  # a full disk
                write(folder / self._file_name(), packed(symbol, code))
        return symbol, code

    def _file_name(self) -> str:
        return f"{self._module}.{self._name}.{_all_it_depends_on()}.machine-code"

    def _loaded(self, symbol: str, code: bytes) -> Callable[..., int]:
        llvm = _llvm()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _engines.append(engine)
        arguments: list[Any] = [CTYPES[kind][0] for kind in self._arguments]
        # Before them stands where numba's calls put the result and the error.
        function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *arguments)
        return cast(Callable[..., int], function(engine.get_function_address(symbol)))


def begin(functions: Iterable[Native]) -> None:
    """Has another process compile those that are not kept; their first call waits for that."""
    missing = [
        function
        for function in functions
        if function._compiler is None and function._cached_code() is None
    ]
    if missing and _folder() is not None:
        compiles = [sys.executable, "-P", "-m", __name__]
        with suppress(OSError):  # no process to be had: the first call compiles it
            process = subprocess.Popen(
                compiles + [function.signature for function in missing],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for function in missing:
                function._compiler = process
            threading.Thread(target=process.wait, daemon=True).start()  # leaves no zombie


def machine_code(module: str, name: str, arguments: tuple[str, ...]) -> tuple[str, bytes]:
    """The symbol and the machine code of a function, compiled now."""
    import numba

    function = getattr(importlib.import_module(f"tmnmt.{module}"), name)
    function = getattr(function, "py_func", function)  # of a part that Python calls, too
    kind = cast(Any, numba).int64(*(getattr(numba, CTYPES[kind][1]) for kind in arguments))
    make = cast(Any, numba.njit)(
        kind,
        nogil=True,
        error_model="numpy",
        _nrt=False,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )
    with _without_collection():
        compiled = make(function)
    overload = compiled.overloads[kind.args]
    _, _, (code, _) = overload.library.serialize_using_object_code()
    return overload.fndesc.llvm_func_name, code


@contextmanager
def _without_collection() -> Iterator[None]:
    """Numba makes millions of objects and keeps most: to look for garbage among them takes a tenth
    of its time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def folders() -> Iterator[Path]:
    """Where machine code is kept: in numba's folder if one is named, else beside the sources, else
    with the user's other caches."""
    if folder_name := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(folder_name)
        return
    yield _PACKAGE / "__pycache__"
    with suppress(RuntimeError):  # no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tmnmt"


def _folder() -> Path | None:
    """The first of them that can be written to."""
    for folder in folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return None


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time; without a lock where the file system has none."""
    with lock.open("wb") as file:
        with suppress(OSError):
            take_lock(file.fileno(), waits=True)
        yield


def packed(symbol: str, code: bytes) -> bytes:
    content = symbol.encode() + b"\n" + code
    return hashlib.sha256(content).digest() + content


def unpacked(content: bytes) -> tuple[str, bytes]:
    """Raises DamagedError."""
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        raise DamagedError
    symbol, _, code = content[32:].partition(b"\n")
    return symbol.decode(), code


@cache
def _all_it_depends_on() -> str:
    llvm = _llvm()
    digest = hashlib.sha256()
    for path in SOURCES:
        digest.update(path.read_bytes())
    settings = {k: v for k, v in os.environ.items() if k.startswith("NUMBA_")}
    settings.pop("NUMBA_CACHE_DIR", None)
    features = llvm.get_host_cpu_features().flatten()
    machine = (sys.platform, llvm.get_host_cpu_name(), features, llvm.llvm_version_info)
    digest.update(repr((machine, sorted(settings.items()))).encode())
    return digest.hexdigest()[:32]


def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _target_machine() -> Any:
    """As numba has it: for this processor, to be run in this process."""
    llvm = _llvm()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="static" if target.name.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )


if __name__ == "__main__":
    for signature in sys.argv[1:]:
        module, name, *arguments = signature.split()
        Native(module, name, name, *arguments)._compiled()
