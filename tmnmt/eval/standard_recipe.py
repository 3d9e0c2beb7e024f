"""The recipe that a model, a memory and test files ask for, where nobody writes one: the model
alone, the memory alone, both, and both beside a person who confirms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tmnmt.config.options import ConfirmTo
from tmnmt.eval.recipe import OWN_MEMORY, ModelConfig, NamedPath, Recipe, SystemConfig, TestConfig
from tmnmt.index.back_ends import local_path
from tmnmt.models.addresses import name_of

BASE, PASTED, TM, CONFIRMED = "base", "pasted TM", "with the TM", "with the TM, confirmed"
CONFIRMED_ALONE = "confirmed"
FULL_MATCH = 100  # from here on matches are taken, as `tmnmt translate` takes them
NEAREST: str = "nearest"
# of reading a memory, the preferred one first; the last needs nothing learned
MODES: tuple[str, ...] = ("copy", "fusion", "examples", NEAREST)


def standard_recipe(
    model: Path,
    memory: str | None,
    files: Sequence[Path],
    languages: tuple[str, str],
    modes: Sequence[str],
    has_cache: bool,
    columns: str = "",
    allow_leaks: bool = False,
) -> Recipe:
    """The recipe of a model that serves these modes, one of `MODES` among them, with a session
    cache or without; without a memory of what needs none. Paths lead from the working folder. Each
    system
    differs from the one before in one thing."""
    folder = name_of(model)
    source = _memory_name(memory) if memory is not None else ""
    base = SystemConfig(BASE, model=folder)
    systems = [base]
    mode = next(mode for mode in MODES if mode in modes)
    if memory is not None:
        systems.append(SystemConfig(PASTED, paste=True, memories=(OWN_MEMORY,)))
    reading = base
    if memory is not None:
        options = replace(base.options, mode=mode, verbatim=FULL_MATCH)
        reading = replace(base, name=TM, memories=(OWN_MEMORY,), options=options)
        systems.append(reading)
    confirm_to = _confirm_to(reading is not base, has_cache or reading.options.mode == NEAREST)
    if confirm_to is not None:
        name = CONFIRMED if reading is not base else CONFIRMED_ALONE
        options = replace(reading.options, remember="confirmed", confirm_to=confirm_to)
        systems.append(replace(reading, name=name, options=options))
    return Recipe(
        name=folder,
        description=_described(model, memory, files, mode),
        test=(
            TestConfig(
                name=files[0].name,
                files=tuple(map(str, files)),
                columns=columns,
                memory=source,
            ),
        ),
        system=tuple(systems),
        baseline=BASE,
        src_lang=languages[0],
        tgt_lang=languages[1],
        model=(ModelConfig(folder, str(model)),),
        memory=(NamedPath(source, memory),) if memory is not None else (),
        allow_leaks=allow_leaks,
    )


def _memory_name(memory: str) -> str:
    """What a memory is called in the report: a file or folder by its name."""
    path = local_path(memory)
    name = "" if path is None else path.resolve().name
    return name if name not in ("", OWN_MEMORY) else "memory"


def _described(model: Path, memory: str | None, files: Sequence[Path], mode: str) -> str:
    listed = ", ".join(map(str, files))
    if memory is None:
        return f"The model {model} on {listed}, without a memory."
    description = f"The model {model} on {listed}, with the memory {memory}."
    if mode == NEAREST:
        description += (
            " The model copies from the nearest positions of its pairs, with nothing learned; "
            "`tmnmt adapt` makes layers that learn."
        )
    return description


def _confirm_to(reads: bool, has_positions: bool) -> ConfirmTo | None:
    """Where what is confirmed goes: wherever this model reads it from; None where that is
    nowhere."""
    if not reads and not has_positions:
        return None
    if not has_positions:
        return "memory"
    return "both" if reads else "cache"
