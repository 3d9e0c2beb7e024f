"""What a file of 100,000 segments costs, by its kind: processor seconds and the most memory of
`tmnmt analyse` and of `tmnmt translate` with an index and no model.

    python benchmarks/large_files.py MEMORY... [--columns src=5,tgt=6,doc=1] [--segments 100000]

The segments have distinct sources of 1 to 80 words and come from the memories, in their order. The
index has every second one of them. Each command runs in a process of its own, and each kind in
turn."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO
from xml.sax.saxutils import escape, quoteattr

from search_speed import conditions

from tmnmt.formats import parse_columns, read_memories
from tmnmt.segments import Segment

LONGEST = 80  # words of a source
MIB = 1 << 20


class Usage(NamedTuple):
    """What a command took.

    seconds: of the processor.
    peak: bytes of memory at most."""

    seconds: float
    peak: int


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("memories", nargs="+", type=Path, metavar="MEMORY")
    parser.add_argument("--columns")
    parser.add_argument("--languages", nargs=2, default=("en", "fr"))
    parser.add_argument("--segments", type=int, default=100_000)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--output", type=Path, help="JSON")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in measure(options, Path(folder)):
            rows.append(row)
            print(json.dumps(row), flush=True)
    if options.output:
        results = {**conditions(), "rows": rows}
        options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def measure(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, object]]:
    """One row for each kind and command."""
    segments = distinct(options)
    index = build_index(segments[::2], folder, options.languages)
    for kind in options.kinds:
        path = folder / f"large{kind}"
        with path.open("w", encoding="utf-8") as stream:
            KINDS[kind](segments, stream, options.languages)
        output = folder / f"output{kind}"
        translate = ("translate", "--no-drafts", "--output", str(output))
        for command in (("analyse",), translate):
            usage = run([*command, "--memory", str(index), str(path)])
            yield {
                "kind": kind,
                "command": command[0],
                "segments": len(segments),
                "MiB": round(path.stat().st_size / MIB, 1),
                "seconds": round(usage.seconds, 1),
                "peak MiB": round(usage.peak / MIB),
            }


def distinct(options: argparse.Namespace) -> list[Segment]:
    columns = parse_columns(options.columns) if options.columns else None
    reader = read_memories(options.memories, *options.languages, columns=columns)
    found: dict[str, Segment] = {}
    for segment in reader:
        if 0 < len(segment.src.split()) <= LONGEST:
            found.setdefault(segment.src, segment)
        if len(found) == options.segments:
            break
    return [*found.values()]


def build_index(segments: Sequence[Segment], folder: Path, languages: Sequence[str]) -> Path:
    memory, index = folder / "memory.tsv", folder / "index"
    with memory.open("w", encoding="utf-8") as stream:
        stream.write("src\ttgt\n")
        for segment in segments:
            stream.write(f"{' '.join(segment.src.split())}\t{' '.join(segment.tgt.split())}\n")
    source, target = languages
    places = (str(memory), "--index", str(index))
    run(["build-index", *places, "--src-lang", source, "--tgt-lang", target])
    return index


def run(arguments: Sequence[str]) -> Usage:
    """Runs a command of tmnmt; its output is discarded."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tmnmt", *arguments], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"tmnmt {' '.join(arguments)}: exit code {process.returncode}")
    return Usage(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def write_po(segments: Sequence[Segment], stream: TextIO, languages: Sequence[str]) -> None:
    header = f"Content-Type: text/plain; charset=UTF-8\\nLanguage: {languages[1]}\\n"
    stream.write(f'msgid ""\nmsgstr "{header}"\n')
    for segment in segments:
        stream.write(f'\nmsgid {json.dumps(segment.src, ensure_ascii=False)}\nmsgstr ""\n')


def write_xliff1(segments: Sequence[Segment], stream: TextIO, languages: Sequence[str]) -> None:
    source, target = map(quoteattr, languages)
    stream.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        f'<file original="large.txt" source-language={source} target-language={target} '
        'datatype="plaintext"><body>\n'
    )
    for number, segment in enumerate(segments):
        stream.write(
            f'<trans-unit id="{number}">\n<source>{escape(segment.src)}</source>\n</trans-unit>\n'
        )
    stream.write("</body></file></xliff>\n")


def write_xliff2(segments: Sequence[Segment], stream: TextIO, languages: Sequence[str]) -> None:
    source, target = map(quoteattr, languages)
    stream.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" '
        f'srcLang={source} trgLang={target}>\n<file id="f1">\n'
    )
    for number, segment in enumerate(segments):
        stream.write(
            f'<unit id="u{number}"><segment>\n<source>{escape(segment.src)}</source>\n'
            "</segment></unit>\n"
        )
    stream.write("</file></xliff>\n")


def write_tmx(segments: Sequence[Segment], stream: TextIO, languages: Sequence[str]) -> None:
    source = quoteattr(languages[0])
    stream.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header creationtool="x" '
        'creationtoolversion="1" segtype="sentence" o-tmf="x" adminlang="en" '
        f'srclang={source} datatype="plaintext"/><body>\n'
    )
    for segment in segments:
        stream.write(
            f"<tu>\n<tuv xml:lang={source}><seg>{escape(segment.src)}</seg></tuv>\n</tu>\n"
        )
    stream.write("</body></tmx>\n")


Writer = Callable[[Sequence[Segment], TextIO, Sequence[str]], None]
KINDS: dict[str, Writer] = {
    ".po": write_po,
    ".xlf": write_xliff1,
    ".xliff": write_xliff2,
    ".tmx": write_tmx,
}

if __name__ == "__main__":
    main()
