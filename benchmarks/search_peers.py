"""What one would search a memory with instead, for `search_speed.py`.

Each gets the same sources and queries as lists of match tokens, and one thread; what it returns are
the numbers of the sources, best first."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from tmnmt.index.fuzzy import SLACK

BM25_HITS = 100  # that are rescored
SCANNED_TOGETHER = 20  # queries


class Characters(dict[str, str]):
    """A character for every token, so that rapidfuzz compares tokens as it compares characters
    fastest."""

    def __missing__(self, token: str) -> str:
        self[token] = character = chr(1 + len(self))
        return character

    def write(self, tokens: Sequence[str]) -> str:
        return "".join(map(self.__getitem__, tokens))


class FuzzyMatch:
    """SYSTRAN's FuzzyMatch-cli (C++): of the segments that share three tokens in a row with the
    query, found in a suffix array, the best by edit distance. Every query goes through a pipe and
    back, which is counted.

    share: so much of the query those tokens have to be too; by default 0.3, and with 0 it misses
    least."""

    def __init__(self, binary: Path, index: Path, share: float) -> None:
        self.name = f"fuzzy-match {share:g}"
        self._command = [
            str(binary),
            "-p",
            "none",
            "-i",
            str(index),
            "-a",
            "match",
            "-N",
            "1",
            "--mr",
            str(share),
        ]
        self._asked: tuple[int, float] | None = None
        self._running: subprocess.Popen[bytes]
        self._input: IO[bytes]
        self._output: IO[bytes]

    @staticmethod
    def build(binary: Path, folder: Path, sources: Sequence[Sequence[str]]) -> Path:
        """Its index of the sources."""
        corpus = folder / "sources.txt"
        corpus.write_text("".join(" ".join(tokens) + "\n" for tokens in sources), encoding="utf-8")
        subprocess.run(
            [str(binary), "-p", "none", "-c", str(corpus)], check=True, capture_output=True
        )
        return folder / "sources.txt.fmi"

    def search(self, tokens: Sequence[str], k: int, threshold: float) -> list[int]:
        if (k, threshold) != self._asked:
            self._start(k, threshold)
        self._input.write((" ".join(tokens) + "\n").encode())
        self._input.flush()
        fields = self._output.readline().decode().split()
        return [int(number) - 1 for number in fields[1::2]]  # score, number of the line, score, ...

    def cpu_seconds(self) -> float:
        """The processor's time until now, in steps of some milliseconds."""
        fields = Path(f"/proc/{self._running.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _start(self, k: int, threshold: float) -> None:
        command = [*self._command, "-n", str(k), "-f", str(threshold - SLACK)]
        if self._asked:
            self._input.close()  # ends the one before
            self._running.wait()
        self._running = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._input = cast(IO[bytes], self._running.stdin)
        self._output = cast(IO[bytes], self._running.stdout)
        self._asked = (k, threshold)
        self.search(["warm"], k, threshold)  # answers when the index is loaded


class Tantivy:
    """BM25 in Rust (`pip install tantivy`): of the 100 best by any of the query's tokens, the best
    by edit distance."""

    name = "tantivy"

    def __init__(self, sources: Sequence[Sequence[str]]) -> None:
        import tantivy

        self._tantivy = tantivy
        self._schema = tantivy.SchemaBuilder().add_text_field("tokens").build()
        self._characters = Characters()
        self._sources = [self._characters.write(tokens) for tokens in sources]
        index = tantivy.Index(self._schema)
        writer = index.writer(
            1 << 30, 1
        )  # so much memory that there is one segment, numbered as the sources are
        for source in self._sources:
            writer.add_document(tantivy.Document(tokens=self._terms(source)))
        writer.commit()
        index.reload()
        self._searcher: Any = index.searcher()
        if self._searcher.num_segments != 1:
            raise RuntimeError("tantivy made several segments")

    def search(self, tokens: Sequence[str], k: int, threshold: float) -> list[int]:
        query = self._characters.write(tokens)
        some, term = self._tantivy.Occur.Should, self._tantivy.Query.term_query
        terms = [(some, term(self._schema, "tokens", word)) for word in self._terms(query).split()]
        hits = self._searcher.search(
            self._tantivy.Query.boolean_query(terms), BM25_HITS, count=False
        ).hits
        found = {address.doc: self._sources[address.doc] for _, address in hits}
        best = process.extract(
            query,
            found,
            scorer=Levenshtein.normalized_similarity,
            score_cutoff=threshold - 1e-3,
            limit=k,
        )
        return [number for _, score, number in best if score >= threshold - SLACK]

    def cpu_seconds(self) -> float:
        return time.process_time()

    @staticmethod
    def _terms(written: str) -> str:
        return " ".join(f"t{ord(character)}" for character in written)


class EverySource:
    """OmegaT's way, to scan every entry, in the fastest form there is of it: rapidfuzz, in C++,
    many queries at once, every token a character. It misses nothing."""

    def __init__(self, sources: Sequence[Sequence[str]]) -> None:
        self._characters = Characters()
        self._sources = [self._characters.write(tokens) for tokens in sources]
        self._lengths = np.array([len(tokens) for tokens in sources])

    def scores(self, queries: Sequence[Sequence[str]]) -> np.ndarray[Any, Any]:
        """(queries, sources) fuzzy scores."""
        written = [self._characters.write(tokens) for tokens in queries]
        edits = process.cdist(written, self._sources, scorer=Levenshtein.distance, dtype=np.uint16)
        return 1.0 - edits / np.maximum(
            self._lengths, np.array([[len(tokens)] for tokens in queries])
        )
