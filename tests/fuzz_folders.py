"""Index and model folders that somebody changed on purpose: each works, or is refused in one line
that names its file.

    python tests/fuzz_folders.py ROUNDS [SEED]

A round changes one file of an index, a model or a saved session, mostly with right checksums, and
uses the folder in every way. A traceback, a message of several lines or without the file, a crash,
more than 20 seconds of the processor or 300 MB more memory are failures. The rounds run in a
process that is started anew where it dies. What a round changes follows from seed and number alone.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import logging
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt import Translator
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import TmnmtError
from tmnmt.index import MemoryIndex, build
from tmnmt.index.embedded import journal as journals
from tmnmt.keys import files as key_files
from tmnmt.keys.compute import compute, header_of, plan
from tmnmt.keys.derived import verify
from tmnmt.models.folder import load_model, stamp
from tmnmt.segments import Segment

MOST_SECONDS, MOST_MB = 20, 300
FINDING = ((3, 0.5), (400, 0))  # k and threshold
TOLD_EVERY = 25  # rounds
ENDED_AFTER = 200  # seconds: a round that does not end
Draw = random.Random
Change = Callable[[Path, Draw], None]

HOSTILE: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2.5,
    1e400,
    2**31,
    2**63,
    -(2**63),
    10**4000,
    "",
    "x",
    "\ud800",
    "a\nb",
    "../../x",
    "/etc/passwd",
    "1/../generation-1",
    "x" * 5000,
    [],
    {},
    [[]],
    [None],
    [1, 2],
    ["a", None],
    {"a": None},
    {"a": [1]},
    {"": {}},
]
TOML = [
    "0",
    "-1",
    "16384",
    "16385",
    "9" * 4299,
    "9" * 5000,
    "0x" + "f" * 5000,
    "1e400",
    "nan",
    "true",
    '""',
    '"x"',
    '"a\\nb"',
    "[]",
    "[" * 3000,
    "{a=" * 2000,
    "1979-05-27",
    "'''\n'''",
    '"\\u0000"',
    "{}",
]


def value(draw: Draw) -> str:
    """A hostile value as JSON."""
    if draw.random() < 0.1:
        return draw.choice(["[" * 100_000, "9" * 5000, '{"a":' * 50_000, "nul", "NaN", "-Infinity"])
    return json.dumps(draw.choice(HOSTILE))


def somewhere(text: str, draw: Draw) -> str:
    """JSON with one value of it, however deep, replaced."""
    content = json.loads(text)
    places = list(_places(content))
    inside, key = draw.choice(places)
    inside[key] = "<here>"
    return json.dumps(content).replace('"<here>"', value(draw), 1)


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    items = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    for key, inner in list(items):
        yield content, key
        yield from _places(inner)


def mutated(content: bytes, draw: Draw) -> bytes:
    """Some bytes changed, put in, taken away."""
    held = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 8, 64])):
        at = draw.randrange(len(held) + 1)
        kind = draw.randrange(6)
        if kind == 0 and held:
            held[min(at, len(held) - 1)] ^= 1 << draw.randrange(8)
        elif kind == 1:
            held[at : at + draw.choice([1, 4, 8])] = draw.choice(
                [b"\xff", b"\0", b"\x7f"]
            ) * draw.choice([1, 4, 8])
        elif kind == 2:
            del held[at : at + draw.choice([1, 8, 1000])]
        elif kind == 3:
            held[at:at] = draw.randbytes(draw.choice([1, 8, 100]))
        elif kind == 4:
            other = draw.randrange(len(held) + 1)
            held[at : at + 16] = held[other : other + 16]
        elif draw.random() < 0.1:
            del held[at:]
    return bytes(held)


# An index


def any_byte(folder: Path, draw: Draw) -> None:
    path = draw.choice(
        sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    )
    path.write_bytes(mutated(path.read_bytes(), draw))


def any_byte_sealed(index: Path, draw: Draw) -> None:
    """With the checksums of the manifest put right."""
    any_byte(index / "generation-1", draw)
    reseal(index)


def file_of_another_kind(folder: Path, draw: Draw) -> None:
    path = draw.choice(
        sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    )
    path.unlink()
    kind = draw.randrange(7)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        path.symlink_to(draw.choice(["/dev/null", "/etc/passwd", "nowhere"]))
    elif kind == 2:
        path.write_bytes(b"")
    elif kind == 3:
        os.mkfifo(path)
    elif kind == 4:
        path.symlink_to("/dev/zero")
    elif kind == 5:
        path.symlink_to(path.name)


def reseal(index: Path, text: str | None = None) -> None:
    """The manifest with sizes and checksums as they are now."""
    path = index / "manifest.json"
    content = json.loads(path.read_text())
    content.pop("checksum")
    for name in content["files"] if text is None else ():
        data = (index / "generation-1" / name).read_bytes()
        content["files"][name] = [len(data), hashlib.sha256(data).hexdigest()]
    text = text or json.dumps(content, ensure_ascii=False, indent=1)
    checksum = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    sealed = text.removesuffix("\n}") + f',\n "checksum": "{checksum}"\n}}'
    path.write_bytes(sealed.encode("utf-8", "surrogatepass"))


def manifest(index: Path, draw: Draw) -> None:
    content = json.loads((index / "manifest.json").read_text())
    content.pop("checksum")
    inside, key = draw.choice(list(_places(content)))
    if inside is content["files"] and draw.random() < 0.5:
        content["files"][draw.choice(["../../x", "/etc/passwd", "a\0b", "segments.db/x", ""])] = (
            inside.pop(key)
        )
    else:
        inside[key] = "<here>"
    text = json.dumps(content, ensure_ascii=False, indent=1).replace('"<here>"', value(draw), 1)
    reseal(index, text)


def rows(index: Path, draw: Draw) -> None:
    """A record with a right checksum and other fields, and where it begins."""
    folder = index / "generation-1"
    start = np.fromfile(folder / "segments.start", "<i8")
    content = (folder / "segments.rows").read_bytes()
    number = draw.randrange(1, len(start) - 1)
    fields: list[Any] = content[start[number] : start[number + 1] - 4].split(b"\x1f")
    at = draw.randrange(len(fields))
    fields[at] = draw.choice(
        [
            value(draw).encode(),
            b"\xff",
            b"",
            b"9" * 5000,
            b"\x1e",
            b'[["a",1]]',
            b'[["\\ud800","x"]]',
        ]
    )
    if draw.random() < 0.2:
        fields = fields[:at]
    made = b"\x1f".join(fields)
    made += zlib.crc32(made, number).to_bytes(4, "little")
    (folder / "segments.rows").write_bytes(
        content[: start[number]] + made + content[start[number + 1] :]
    )
    start[number + 1 :] += len(made) - (start[number + 1] - start[number])
    if draw.random() < 0.2:
        start[draw.randrange(len(start))] = draw.choice([-1, 0, 2**62, -(2**63), len(content)])
    start.tofile(folder / "segments.start")
    reseal(index)


def journal(index: Path, draw: Draw) -> None:
    """A frame with right checksums."""
    path = index / "generation-1" / "changes.log"
    content = path.read_bytes()
    line = journals._line(
        draw.choice([1, 500]), replace(segments()[0], properties=(("a", "b"),))
    ).decode()
    whole = draw.random() < 0.2
    body = (value(draw) if whole else somewhere(line, draw)).encode(
        "utf-8", "surrogatepass"
    ) + b"\n"
    path.write_bytes(content + journals._header(len(body), zlib.crc32(body), len(content)) + body)


ENDLESS = (
    "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + {0} FROM n) "
    "SELECT id, '' document, '' origin, '' changed, '' user FROM n"
)
SCHEMAS = (
    "UPDATE sqlite_schema SET rootpage = 1",
    "UPDATE sqlite_schema SET rootpage = 99",
    "UPDATE sqlite_schema SET sql = 'x'",
    "DELETE FROM sqlite_schema",
)


def database(index: Path, draw: Draw) -> None:
    path = index / "generation-1" / "segments.db"
    kind = draw.randrange(5)
    if kind < 2:
        path.write_bytes(mutated(path.read_bytes(), draw))
    else:
        db = sqlite3.connect(path)
        with suppress(sqlite3.Error):
            if kind == 2:
                db.execute("DROP TABLE segments")
                db.execute("CREATE VIEW segments AS " + ENDLESS.format(draw.choice([0, 1])))
            elif kind == 3:
                db.execute("UPDATE segments SET id = id + 7000 WHERE id > 3")
            else:
                db.execute("PRAGMA writable_schema = ON")
                db.execute(draw.choice(SCHEMAS))
            db.commit()
        db.close()
    reseal(index)


def postings(index: Path, draw: Draw) -> None:
    path = draw.choice(sorted((index / "generation-1").glob("postings-*/*.npy")))
    content = path.read_bytes()
    kind = draw.randrange(4)
    if kind == 0:
        path.write_bytes(mutated(content[:128], draw) + content[128:])
    elif kind == 1:
        path.write_bytes(content[:128] + mutated(content[128:], draw))
    elif kind == 2:
        header = b"\x93NUMPY\x01\x00v\x00" + draw.choice(
            [
                b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
                b"{" * 90,
                b"[" * 100,
                b"1L",
                b"exit()",
                b"{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999,), }",
                b"{'descr': '<i4', 'fortran_order': True, 'shape': (1, 1), }",
            ]
        )
        path.write_bytes(header.ljust(127) + b"\n" + content[128:])
    else:
        array = np.load(path)
        if array.size:
            flat = array.reshape(-1)
            for _ in range(draw.choice([1, 5, array.size])):
                flat[draw.randrange(array.size)] = np.array(
                    draw.choice([0, 1, -1, 2**15, 2**31 - 1, 2**62])
                ).astype(flat.dtype)
        np.save(path, array)
    reseal(index)


def keys(index: Path, draw: Draw) -> None:
    folder = next((index / "keys").iterdir())
    kind = draw.randrange(4)
    if kind == 0:
        content = json.loads((folder / "keys.json").read_text())
        content.pop("checksum")
        content[draw.choice(list(content))] = "<here>"
        text = json.dumps(content).replace('"<here>"', value(draw), 1)
        with suppress(ValueError, RecursionError):
            text = json.dumps(
                json.loads(text) | {"checksum": zlib.crc32(json.dumps(json.loads(text)).encode())}
            )
        (folder / "keys.json").write_text(text)
    elif kind == 1:
        (folder / "offsets").write_bytes(mutated((folder / "offsets").read_bytes(), draw))
    else:
        records, _ = key_files._read_records(folder)
        records = records.copy()
        if kind == 2:
            name = draw.choice(["id", "start", "length", "content"])
            hostile = draw.choice([-1, 0, 10**9, 2**31 - 1, 2**40, 2**62])
            records[name][draw.randrange(len(records))] = np.array(hostile).astype(
                records[name].dtype
            )
        else:
            words = np.fromfile(folder / "y.i32", "<i4")
            words[draw.randrange(len(words))] = draw.choice([-1, 10**9, 420, 0])
            words.tofile(folder / "y.i32")
            contexts, hiddens = (
                np.fromfile(folder / name, "u1").reshape(len(words), -1)
                for name in ("c.u8", "z.u8")
            )
            for i, record in enumerate(records):
                at = slice(record["start"], record["start"] + record["length"])
                records["content"][i] = key_files._content((contexts[at], hiddens[at], words[at]))
        body = records.tobytes()
        frame = key_files._frame_of(len(records), zlib.crc32(body)) + body + b"\n"
        (folder / "offsets").write_bytes(frame)


# A model


def configuration(model: Path, draw: Draw) -> None:
    path = model / "config.toml"
    lines = path.read_text().splitlines()
    at = draw.choice([i for i, line in enumerate(lines) if "=" in line])
    name, _, _ = lines[at].partition(" = ")
    lines[at] = f"{name} = {draw.choice(TOML)}"
    if draw.random() < 0.2:
        lines[at] = draw.choice(
            ["", "[", "[model.a]", "a" + ".a" * 4000 + " = 1", lines[at] + "\n" + lines[at]]
        )
    if draw.random() < 0.1:
        lines = [
            line if "=" not in line or "sha" in line else line.partition("=")[0] + "= 16384"
            for line in lines
        ]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))


def header(path: Path, draw: Draw) -> None:
    """The header of a safetensors file."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    text, numbers = content[8:end].decode(), content[end:]
    about = json.loads(text)
    kind = draw.randrange(5)
    if kind == 0:
        text = somewhere(text, draw)
    elif kind == 1 and "__metadata__" in about:
        notes = about["__metadata__"]
        name = draw.choice(list(notes))
        with suppress(ValueError, IndexError):
            notes[name] = somewhere(notes[name], draw)
        text = json.dumps(about)
    elif kind == 2:
        name = draw.choice([name for name in about if name != "__metadata__"])
        about[name]["dtype"] = draw.choice(
            ["F64", "I64", "BOOL", "F8_E4M3", "F4", "C64", "U8", "BF16", "F16", "X"]
        )
        text = json.dumps(about)
    elif kind == 3:
        numbers = mutated(numbers, draw)
    else:
        name = draw.choice([name for name in about if name != "__metadata__"])
        about[name]["shape"] = draw.choice(
            [[], [0], [2**62, 4], [-1], [1] * 1000, about[name]["shape"][::-1]]
        )
        text = json.dumps(about)
    written = text.encode("utf-8", "surrogatepass")
    size = draw.choice([len(written)] * 12 + [0, 2**32, 2**63, 100_000_001])
    path.write_bytes(size.to_bytes(8, "little") + written + numbers)


def weights(model: Path, draw: Draw) -> None:
    header(model / draw.choice(["base.safetensors", "memory.safetensors"]), draw)
    stamp(model)


def vocabulary(model: Path, draw: Draw) -> None:
    path = model / "spm.model"
    path.write_bytes(mutated(path.read_bytes(), draw))
    stamp(model)


def session(model: Path, draw: Draw) -> None:
    header(model / "saved.session", draw)


INDEX: list[Change] = [
    any_byte,
    any_byte_sealed,
    file_of_another_kind,
    manifest,
    rows,
    journal,
    database,
    postings,
    keys,
]
MODEL: list[Change] = [any_byte, file_of_another_kind, configuration, weights, vocabulary, session]
CHANGES = {
    **{f"index: {c.__name__}": c for c in INDEX},
    **{f"model: {c.__name__}": c for c in MODEL},
}


class Tried:
    """The folders as they were made, and what is done with changed ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index, self.model = folder / "whole" / "index", folder / "whole" / "model"

    def make(self) -> None:
        write_tiny_model(self.model)
        model = load_model(self.model)
        some = [
            replace(
                segment,
                src=f"{segment.src} {i}",
                document=f"d{i % 7}",
                properties=(("n", str(i)),) * (i % 2),
            )
            for i in range(40)
            for segment in segments()
        ]
        build(self.index, some, "en", "fr")
        with MemoryIndex.open(self.index) as index:
            compute(index, model, plan(index, header_of(model), model.vocab))
            index.add([Segment("A new sentence.", "Une phrase nouvelle.")])
            index.delete([3])
        talk = Translator.load(self.model, options=TranslationOptions(cache=4)).session()
        talk.confirm(*PAIRS[1])
        talk.translate(PAIRS[0][0])
        talk.save(self.model / "saved.session")

    def round(self, seed: int, number: int) -> dict[str, Any]:
        draw = random.Random(f"{seed} {number}")
        name = draw.choice(list(CHANGES))
        kind = name.partition(":")[0]
        whole = self.index if kind == "index" else self.model
        changed = self.folder / "changed"
        shutil.copytree(whole, changed, symlinks=True)
        began, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({"number": number, "name": name}), flush=True)
        try:
            CHANGES[name](changed, draw)
            uses = self.uses_of_index(changed) if kind == "index" else self.uses_of_model(changed)
            said = [said for use in uses if (said := outcome(use, self.folder))]
        finally:
            shutil.rmtree(changed)
        seconds = time.process_time() - began
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
        failures = [one for one in said if one.startswith("FAILED")]
        if seconds > MOST_SECONDS or grown > MOST_MB:
            failures.append(f"FAILED: {seconds:.1f} s, {grown:.0f} MB")
        outcome_ = "failed" if failures else "refused" if said else "fine"
        return {
            "number": number,
            "name": name,
            "outcome": outcome_,
            "said": (failures or said)[:1],
            "seconds": seconds,
        }

    def uses_of_index(self, path: Path) -> list[Callable[[], object]]:
        def opened(use: Callable[[MemoryIndex], object]) -> Callable[[], object]:
            def run() -> None:
                with MemoryIndex.open(path) as index:
                    use(index)

            return run

        texts = [PAIRS[0][0], "This Decision is addressed to nobody 7.", "A new sentence", "é"]
        return [
            opened(
                lambda index: [
                    index.search(texts, k, t, exclude_documents=["d1"] * 4)
                    for k, t in ((3, 0.5), (400, 0))
                ]
            ),
            opened(
                lambda index: (
                    list(index.segments()),
                    len(index),
                    index.changes(),
                    index.get([5]),
                    index.size(),
                )
            ),
            self.translated(path),
            opened(verify),
            opened(
                lambda index: (index.add([Segment("b", "c")]), index.delete([9]), index.compact())
            ),
        ]

    def translated(self, index: Path) -> Callable[[], object]:
        def run() -> None:
            Translator.load(self.model, [index], TranslationOptions(cache=0, beam=2)).translate(
                [PAIRS[0][0]], explain=True
            )
            Translator.load(
                self.model, [index], TranslationOptions(cache=0, neighbours=3, beam=2)
            ).translate([PAIRS[0][0]])

        return run

    def uses_of_model(self, path: Path) -> list[Callable[[], object]]:
        def run() -> None:
            translator = Translator.load(path, [self.index], TranslationOptions(cache=4, beam=2))
            translator.translate([PAIRS[0][0]])
            translator.session(path / "saved.session").translate(PAIRS[1][0])

        return [run]


def outcome(use: Callable[[], object], folder: Path) -> str:
    """ "" where all was well, else what was said."""
    try:
        use()
    except TmnmtError as error:
        said = str(error)
        if not said.isprintable() or len(said) > 1500:
            return f"FAILED: not one line: {said[:300]!r}"
        return said if str(folder) in said else f"FAILED: names no file: {said}"
    except Exception:
        return "FAILED: " + traceback.format_exc()[-1500:]
    return ""


def work(folder: Path, seed: int, first: int, end: int) -> None:
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    tried = Tried(folder)
    if not tried.model.exists():
        tried.make()
    tried.uses_of_model(tried.model)[
        0
    ]()  # imported and compiled, so that the first round is as long as the others
    for use in tried.uses_of_index(Path(shutil.copytree(tried.index, folder / "warm"))):
        use()
    shutil.rmtree(folder / "warm")
    for number in range(first, end):
        faulthandler.dump_traceback_later(ENDED_AFTER, exit=True)
        print(json.dumps(tried.round(seed, number)), flush=True)
    faulthandler.cancel_dump_traceback_later()


def _tell(done: int, rounds: int, failed: int) -> None:
    if done % TOLD_EVERY == 0 or done == rounds:
        print(f"{done:,} of {rounds:,} rounds, {failed:,} failed", file=sys.stderr, flush=True)


def fuzz(rounds: int, seed: int) -> dict[str, Any]:
    """How many rounds there were of every kind and outcome, and all that failed."""
    counts: Counter[str] = Counter()
    failed: list[dict[str, Any]] = []
    longest, first = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        while first < rounds:
            command = [
                sys.executable,
                "-W",
                "error",
                __file__,
                "--work",
                folder,
                str(seed),
                str(first),
                str(rounds),
            ]
            last: dict[str, Any] = {}
            with (Path(folder) / "stderr").open("w+", encoding="utf-8", errors="replace") as errors:
                with subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=errors, text=True
                ) as worker:
                    assert worker.stdout is not None
                    for last in map(json.loads, worker.stdout):
                        if "outcome" in last:
                            counts[f"{last['name']}: {last['outcome']}"] += 1
                            longest = max(longest, last["seconds"])
                            failed += [last] * (last["outcome"] == "failed")
                            _tell(last["number"] + 1, rounds, len(failed))
                errors.seek(0)
                said = errors.read()
            if not last:
                raise RuntimeError(said)
            first = last["number"] + 1
            if "outcome" not in last:
                failed.append(last | {"said": [f"ended with {worker.returncode}: {said[-1500:]}"]})
            shutil.rmtree(Path(folder) / "changed", ignore_errors=True)
            shutil.rmtree(Path(folder) / "warm", ignore_errors=True)
    return {
        "rounds": rounds,
        "longest": longest,
        "counts": dict(sorted(counts.items())),
        "failed": failed,
    }


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        work(Path(sys.argv[2]), *map(int, sys.argv[3:]))
    else:
        found = fuzz(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
        print(json.dumps(found, indent=1))
        sys.exit(bool(found["failed"]))
