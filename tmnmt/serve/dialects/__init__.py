"""The interfaces of other servers that this one speaks, each in a thin module: routes, and pure
functions between its JSON and the service's records."""

from __future__ import annotations

from tmnmt.registry import Registry
from tmnmt.serve.dialects.apertium import APERTIUM
from tmnmt.serve.dialects.deepl import DEEPL, OLDER
from tmnmt.serve.dialects.libretranslate import LIBRETRANSLATE
from tmnmt.serve.dialects.modernmt import MODERNMT
from tmnmt.serve.dialects.mymemory import MYMEMORY
from tmnmt.serve.dialects.openai import OPENAI
from tmnmt.serve.dialects.phrase import PHRASE
from tmnmt.serve.dialects.simple import SIMPLE
from tmnmt.serve.dialects.tmserver import TMSERVER
from tmnmt.serve.routes import Dialect

DIALECTS: Registry[Dialect] = Registry(
    "dialect",
    {
        dialect.name: dialect
        for dialect in (
            LIBRETRANSLATE,
            APERTIUM,
            TMSERVER,
            DEEPL,
            OLDER,
            MODERNMT,
            MYMEMORY,
            OPENAI,
            PHRASE,
            *SIMPLE,
        )
    },
)
