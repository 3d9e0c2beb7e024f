"""What asking a base behind an address costs beside the base itself: processor time a segment, kept
answers, repetitions. The base is a stand-in that knows the translations and refuses every 20th
request, so nothing is said of quality. The times are with those of the stand-in.

    python eval/hosted_mechanics.py [SEGMENTS]"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from base_server import Response, base_server

from tmnmt.config.options import TranslationOptions
from tmnmt.formats import read_memories
from tmnmt.hosted.writer import ChatWriter
from tmnmt.translator import Translator

ROOT = Path(__file__).parents[1]
MEMORY = ROOT / "memories" / "canadian-law.en-fr.tmx.gz"


def main(count: int) -> None:
    segments = [s for s in read_memories([MEMORY], "en", "fr") if "<" not in s.src]
    segments = segments[:: max(1, len(segments) // count)][:count]
    texts = [f"{segment.src} Again." for segment in segments]
    answers = {f"{segment.src} Again.": f"{segment.tgt} Encore." for segment in segments}
    asked = 0

    def respond(text: str, request: dict[str, Any]) -> Response:
        nonlocal asked
        asked += 1
        return Response(status=429) if asked % 20 == 0 else Response(answers.get(text, text))

    with tempfile.TemporaryDirectory() as folder, base_server(respond) as server:
        import os

        os.environ["XDG_CACHE_HOME"] = folder
        index = Path(folder) / "memory.tmx.gz"
        index.write_bytes(MEMORY.read_bytes())
        for name, mode in (
            ("without examples", "off"),
            ("with examples", "examples"),
            ("with examples, a second time", "examples"),
        ):
            address = server.address("@en-fr")
            translator = Translator.load(
                address, [index], TranslationOptions(verbatim=0, threads=1, mode=mode)
            )
            start, cpu = time.perf_counter(), time.process_time()
            translator.translate(texts)
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            writer = translator.pipeline.writer
            assert isinstance(writer, ChatWriter)
            print(
                f"{name}: {1000 * cpu / count:.1f} ms of processor time a segment "
                f"({1000 * seconds / count:.1f} ms by the clock), {dict(writer.connection.counts)}"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
