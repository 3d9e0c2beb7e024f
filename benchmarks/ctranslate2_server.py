"""The smallest HTTP server around a model of CTranslate2: subwords, beam search, subwords again.

    python ctranslate2_server.py MODEL SPM_MODEL BEAM THREADS

Answers POST {"q": [...]}, one request at a time, until it is terminated; prints its port. The
search is as ours: scores by length, no unknown word."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from threading import Lock
from typing import Any

from ctranslate2 import Translator
from sentencepiece import SentencePieceProcessor


def serve(model: str, subwords: str, beam: int, threads: int) -> None:
    translator = Translator(model, device="cpu", inter_threads=1, intra_threads=threads)
    pieces, lock = SentencePieceProcessor(model_file=subwords), Lock()

    def translated(texts: list[str]) -> list[str]:
        rows = pieces.encode(texts, out_type=str)
        with lock:
            found = translator.translate_batch(
                rows, beam_size=beam, length_penalty=1, disable_unk=True
            )
        return [pieces.decode_pieces(best.hypotheses[0]) for best in found]

    class Handler(BaseHTTPRequestHandler):
        protocol_version, wbufsize, disable_nagle_algorithm = "HTTP/1.1", -1, True

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            content = json.dumps({"translatedText": translated(asked["q"])}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """No log."""

    server: HTTPServer = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
