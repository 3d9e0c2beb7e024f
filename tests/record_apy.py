"""What Apertium APy itself answers, noted for the tests, which hold our answers to it.

    apt-get install apertium-apy apertium-eo-en
    apertium-apy --port 2737 /usr/share/apertium/modes &
    python tests/record_apy.py http://127.0.0.1:2737       # into tests/data/apy.jsonl

A `{source}` and a `{target}` stand for the codes of a pair that is served."""

from __future__ import annotations

import http.client
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

TO = Path(__file__).resolve().parent / "data" / "apy.jsonl"
PAIR = "{source}|{target}"
REQUESTS: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("GET", "listPairs", []),
    ("GET", "list", [("q", "pairs")]),
    ("GET", "listLanguageNames", [("locale", "en"), ("languages", "{source} {target}")]),
    ("GET", "identifyLang", [("q", "No.")]),
    ("GET", "identifyLang", []),
    ("GET", "translate", [("langpair", PAIR), ("q", "No.")]),
    ("GET", "translate", [("langpair", PAIR), ("q", "No."), ("markUnknown", "yes")]),
    ("GET", "translate", [("langpair", PAIR), ("q", "<b>No.</b>"), ("format", "html")]),
    ("GET", "translate", [("langpair", PAIR), ("q", "")]),
    ("GET", "translate", [("langpair", PAIR)]),
    ("GET", "translate", [("langpair", "{source}"), ("q", "No.")]),
    ("GET", "translate", [("langpair", "{source}|tlh"), ("q", "No.")]),
    ("GET", "translate", [("langpair", "|"), ("q", "No.")]),
    ("GET", "translate", [("q", "No.")]),
    ("GET", "translate", []),
    ("POST", "translate", [("langpair", PAIR), ("q", "No.")]),
    ("POST", "translate", [("langpair", PAIR)]),
    ("PUT", "translate", []),
]
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def filled(fields: list[tuple[str, str]], source: str, target: str) -> str:
    """A query, or a form, with the codes of this pair."""
    named = {"source": source, "target": target}
    return urlencode([(name, value.format(**named)) for name, value in fields])


def main() -> None:
    connection = http.client.HTTPConnection(urlsplit(sys.argv[1]).netloc, timeout=60)
    noted = list[dict[str, Any]]()
    for method, path, fields in REQUESTS:
        sent = filled(fields, "eo", "en")
        query = f"?{sent}" if sent and method == "GET" else ""
        body = sent if method == "POST" else None
        connection.request(method, f"/{path}{query}", body, FORM if body is not None else {})
        reply = connection.getresponse()
        said = {"status": reply.status, "body": json.loads(reply.read())}
        noted.append({"method": method, "path": path, "fields": fields, **said})
    TO.write_text("".join(json.dumps(one) + "\n" for one in noted), encoding="utf-8")


if __name__ == "__main__":
    main()
