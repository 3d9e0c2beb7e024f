"""The model folder of two models that translate one after another (`tmnmt.models.pivot`)."""

from __future__ import annotations

import shutil
from pathlib import Path

from tmnmt.durable import make_folder, rename, sync_tree, write
from tmnmt.errors import ModelError, UsageError
from tmnmt.index.base import primary
from tmnmt.models.folder import PARTS, PIVOT, Model, load_model, write_config
from tmnmt.models.injected import Injected
from tmnmt.vocab import PairVocabulary


def join_models(
    first: Path, second: Path, output: Path, languages: tuple[str, str] | None = None
) -> None:
    """Makes a model folder of two, which are copied into it, as a whole or not at all.

    first: the folder of the first model.
    second: the folder of the second model.
    output: the new folder.
    languages: the codes of the languages of the two together; None takes what the models say.

    Raises ModelError for what is no model, or is two already. Raises UsageError where the second
    does not read the language that the first writes."""
    parts = [_single(folder) for folder in (first, second)]
    src_lang, tgt_lang = languages or (parts[0].config["src_lang"], parts[1].config["tgt_lang"])
    _check_chain(parts, (src_lang, tgt_lang))
    new_folder = output.with_name(output.name + ".new")
    shutil.rmtree(new_folder, ignore_errors=True)
    try:
        make_folder(new_folder)
        for name, folder in zip(PARTS, (first, second), strict=True):
            shutil.copytree(folder, new_folder / name)
        _write_own(new_folder, parts, src_lang, tgt_lang)
        load_model(new_folder)
        sync_tree(new_folder)
        rename(new_folder, output)
    finally:
        shutil.rmtree(new_folder, ignore_errors=True)


def _single(folder: Path) -> Model:
    model = load_model(folder)
    if model.config["model"].get("kind") == PIVOT:
        raise ModelError(f"{folder}: is two models already; one model is wanted")
    if isinstance(model.backbone, Injected):
        raise ModelError(f"{folder}: has a network beside its base, which is not read here")
    return model


def _check_chain(parts: list[Model], languages: tuple[str, str]) -> None:
    (a, b), (c, d) = ((part.config["src_lang"], part.config["tgt_lang"]) for part in parts)
    if primary(b) != primary(c):
        raise UsageError(
            f"{parts[0].folder} is from {a} to {b}, and {parts[1].folder} from {c} to {d}; the "
            "second must read the language that the first writes"
        )
    if [*map(primary, languages)] != [*map(primary, (a, d))]:
        raise UsageError(
            f"the two models are from {a} to {d}, not from {languages[0]} to {languages[1]}"
        )


def _write_own(folder: Path, parts: list[Model], src_lang: str, tgt_lang: str) -> None:
    """What the folder has beside the two: a vocabulary of the outer sides, and config.toml."""
    configs = [part.config for part in parts]
    prefix = configs[0].get("prefix", "")
    vocab = PairVocabulary.combine(parts[0].vocab, parts[1].vocab, prefix)
    for name, content in vocab.files.items():
        write(folder / name, content)
    lengths = [config["max_subwords"] for config in configs if "max_subwords" in config]
    config = {
        "src_lang": src_lang,
        "tgt_lang": tgt_lang,
        "via": configs[0]["tgt_lang"],
        **({"prefix": prefix} if prefix else {}),
        **({"max_subwords": min(lengths)} if lengths else {}),
        **({"precision": configs[1]["precision"]} if "precision" in configs[1] else {}),
        "model": {"kind": PIVOT},
    }
    write_config(folder, config)
