"""`tmnmt get-model`: a published model for a pair of languages, fetched and imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli.options import folder
from tmnmt.errors import UsageError

if TYPE_CHECKING:
    from tmnmt.model_import.published import Registry


def get_model(
    src_lang: Annotated[
        str, typer.Argument(metavar="[SOURCE]", help="Language of its sources, as en.")
    ] = "",
    tgt_lang: Annotated[
        str, typer.Argument(metavar="[TARGET]", help="Language of its targets, as es.")
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Model folder to make; must not exist yet. Not given, models/SOURCE-TARGET.",
        ),
    ] = None,
    registry: Annotated[
        str,
        typer.Option(
            help="Address or file of the list of models: a mirror, or a copy on this machine. "
            "Not given, Mozilla's."
        ),
    ] = "",
    architecture: Annotated[
        str,
        typer.Option(
            help="base-memory, base or tiny; not given, the best that is released. tiny is faster."
        ),
    ] = "",
    via: Annotated[
        str,
        typer.Option(
            help="Get two models and join them: into this language, as en, and from it. For a "
            "pair that has none of its own."
        ),
    ] = "",
    list_models: Annotated[
        bool, typer.Option("--list", help="Show what is published, of this pair or all.")
    ] = False,
) -> None:
    """Get a small model that Mozilla publishes, for some fifty languages to and from English.

    This is the one command that fetches anything, and it does so only when you type it. It reads
    the list of models, fetches the files of one, compares their sizes and sha256, and makes a model
    folder of them. Typed again after a break it goes on. It asks no other host than the list's; a
    proxy is taken from the environment (HTTPS_PROXY). Prints the model folder."""
    from tmnmt.model_import.download import read_registry
    from tmnmt.model_import.published import ADDRESS

    if not list_models and not (src_lang and tgt_lang):
        raise UsageError("which languages? tmnmt get-model en es; --list shows what there is")
    place = folder(output or Path("models") / f"{src_lang}-{tgt_lang}")
    if via and via in (src_lang, tgt_lang):
        raise UsageError(f"--via {via}: name another language than those of the pair")
    if not list_models and place.exists():
        raise UsageError(f"{place}: exists; name another folder")
    if list_models:
        _show(read_registry(registry or ADDRESS), src_lang, tgt_lang)
        return
    obtain(registry, src_lang, tgt_lang, architecture, place, via)
    print(place)


def _show(registry: Registry, src_lang: str, tgt_lang: str) -> None:
    models = [
        model
        for model in registry.models
        if src_lang in ("", model.src_lang) and tgt_lang in ("", model.tgt_lang)
    ]
    for model in sorted(models, key=lambda m: (m.src_lang, m.tgt_lang, m.size)):
        print(
            f"{model.src_lang} {model.tgt_lang}\t{model.architecture}\t"
            f"{model.size / 1e6:.0f} MB\t{model.status}"
        )


def obtain(
    registry: str, src_lang: str, tgt_lang: str, architecture: str, place: Path, pivot: str = ""
) -> None:
    """Makes the model folder `place` of the best model that the list `registry` (not given,
    Mozilla's) has of the pair; with `pivot` of two, into that language and from it. Fetches their
    files, and goes on with what is there of them. Raises as `read_registry`, `fetch` and
    `import_marian` do, and UsageError where no model is published."""
    if not pivot:
        _obtain(registry, src_lang, tgt_lang, architecture, place)
        return
    import shutil

    from tmnmt.model_import.pivot_folder import join_models

    pairs = (src_lang, pivot), (pivot, tgt_lang)
    parts = [place.with_name(f"{place.name}.{a}-{b}") for a, b in pairs]
    for part, pair in zip(parts, pairs, strict=True):
        if not part.exists():
            _obtain(registry, *pair, architecture, part)
    join_models(parts[0], parts[1], place, (src_lang, tgt_lang))
    for part in parts:
        shutil.rmtree(part)


def _obtain(registry: str, src_lang: str, tgt_lang: str, architecture: str, place: Path) -> None:
    import shutil
    import sys

    from tmnmt.model_import.download import fetch, read_registry
    from tmnmt.model_import.marian import import_marian
    from tmnmt.model_import.published import ADDRESS, LICENCE
    from tmnmt.progress import Progress

    published = read_registry(registry or ADDRESS)
    model = published.best(src_lang, tgt_lang, architecture)
    print(
        f"{model.src_lang} to {model.tgt_lang}: {model.architecture}, "
        f"{model.size / 1e6:.0f} MB unpacked, {LICENCE} where Mozilla publishes it",
        file=sys.stderr,
    )
    fetched = place.with_name(f"{place.name}.download")
    fetched.mkdir(parents=True, exist_ok=True)
    with Progress("fetching", "bytes") as progress:
        for file in model.files:
            fetch(published, file, fetched, progress.advance)
    import_marian(fetched, place, model.src_lang, model.tgt_lang)
    shutil.rmtree(fetched)
