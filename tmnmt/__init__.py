"""Translation that remembers: translation-memory retrieval and a neural decoder with memories.

    from tmnmt import Translator
    translator = Translator.load(...)

docs/design.md tells how a sentence travels and where things live.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tmnmt.engine.session import Session
    from tmnmt.engine.translator import Translator
    from tmnmt.errors import TmnmtError

__version__ = "0.1.0"
__all__ = ["Session", "TmnmtError", "Translator", "__version__"]


def __getattr__(name: str) -> Any:
    # `import tmnmt` is part of every command's start: torch comes in only with the first use of
    # these names.
    if name in ("Session", "Translator"):
        from tmnmt.engine import translator as engine

        return getattr(engine, name)
    if name == "TmnmtError":
        from tmnmt.errors import TmnmtError

        return TmnmtError
    raise AttributeError(f"module 'tmnmt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
