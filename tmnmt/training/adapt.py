"""`tmnmt adapt`: memory parameters for a finished base, learned from a translation memory alone.

The base does not change. Memory layers that the model has go on from what they are. A part of the
memory's documents is held out, by the sha256 of their ids; where there are too few of them, as in a
memory file that names none, stretches of consecutive segments, by that of their place. A new layer
that makes these worse than the plain model is refused; one that the model had stays as it was where
it gains nothing."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from tmnmt.durable import rename, sync_tree, write
from tmnmt.engine.loading import load_layers
from tmnmt.errors import DataError, UsageError
from tmnmt.formats.splits import STRETCH, point_of, stretches
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import SHORTLIST_FILE, VOCABULARY_FILES, Model, network_files
from tmnmt.models.pivot import Pivot
from tmnmt.quantities import quantity
from tmnmt.segments import Segment
from tmnmt.text import normalise
from tmnmt.training.data import Document, split_of
from tmnmt.training.log import LOG_FILE
from tmnmt.training.memory import Reached, train_layers
from tmnmt.training.memory_config import MemoryConfig
from tmnmt.training.tm import IRRELEVANT

log = logging.getLogger(__name__)

# of the plain loss: the figure with irrelevant pairs moves by nearly as much between two
# validations
NOISE = 0.01
FILES = (
    "config.toml",
    "base.safetensors",
    SHORTLIST_FILE,
    *VOCABULARY_FILES,
)  # that stay as they are, but for a checksum
MEMORY_FILE = "memory.safetensors"
SETTINGS_FILE = "adapt.json"  # of an interrupted run
# settings on which depends what is learned, and where they come from
OPTIONS = {
    "max_pairs": "--sentences",
    "tm_epochs": "--epochs",
    "k": "--top-k",
    "select": "--select",
    "similarity": "--similarity",
    "alpha": "--alpha",
    "seed": "--seed",
    "dev_share": "--dev-share",
}


def work_beside(output: Path, resume: bool, kind: str = "folder") -> Path:
    """OUTPUT.partial, where the work goes on. Raises UsageError where `output` is there, or where
    an interrupted run is not to be taken up."""
    work = output.with_name(output.name + ".partial")
    if output.exists():
        raise UsageError(f"{output}: exists; name another {kind}")
    if work.exists() and not resume:
        raise UsageError(
            f"{work}: is there from an interrupted run; go on with --resume, or delete it"
        )
    return work


def adapt(
    model: Model,
    segments: Iterable[Segment],
    output: Path,
    config: MemoryConfig,
    dev_share: float,
    resume: bool = False,
) -> list[str]:
    """Trains what `config` asks for on `segments` and writes the model folder `output`, whole or
    not at all.

    Returns for every part that was trained what dev says of it, as a line to be told. The work goes
    on in OUTPUT.partial, where an interrupted run is taken up with `resume`. Raises UsageError
    where `output` or, without `resume`, OUTPUT.partial is there; DataError where there is nothing
    to learn from, or a part that the model had not makes dev worse."""
    if isinstance(model.backbone, Pivot):
        raise UsageError(
            f"{model.folder}: is two models one after another, which learn nothing together; "
            "they read a memory by its nearest positions"
        )
    work = work_beside(output, resume)
    train, dev = split(segments, dev_share)
    if not train or not dev:
        raise DataError(
            "the memory is too small: nothing is left to learn from, or nothing to hold out"
        )
    _check_settings(work, asdict(config) | {"dev_share": dev_share})
    languages = model.config["src_lang"], model.config["tgt_lang"]
    initial = load_layers(model, str(next(model.backbone.parameters()).device)) or MemoryLayers()
    try:
        layers, reached = train_layers(
            model.backbone, model.vocab, train, dev, work, config, resume, languages, initial
        )
    except (UsageError, DataError):
        if [path.name for path in work.iterdir()] == [SETTINGS_FILE]:  # nothing was begun
            shutil.rmtree(work)
        raise
    refuse_worse(reached, work)
    unchanged = unimproved(reached)
    if layers.tm is None or unchanged & {"copy", "fusion"}:
        layers.tm = initial.tm
    if layers.cache is None or "cache" in unchanged:
        layers.cache = initial.cache
    _put_out(model, layers, work, output)
    return list(_summary(reached, unchanged))


def _check_settings(work: Path, settings: Mapping[str, Any]) -> None:
    """Notes the settings of a run in its folder. Raises UsageError where an interrupted run had
    others; which parts are trained may change."""
    path = work / SETTINGS_FILE
    if not path.exists():
        work.mkdir(parents=True, exist_ok=True)
        write(path, json.dumps(settings).encode())
        return
    had = json.loads(path.read_text(encoding="utf-8"))
    for name, option in OPTIONS.items():
        if had[name] != settings[name]:
            raise UsageError(
                f"{work}: was begun with {option} {had[name]}, not {settings[name]}; give the same "
                "with --resume, or delete it"
            )


def _put_out(model: Model, layers: MemoryLayers, work: Path, output: Path) -> None:
    """The model folder from what lies in `work`, which is there until the whole folder
    is on disk."""
    folder = work / "made"
    shutil.rmtree(folder, ignore_errors=True)  # what a killed run left
    folder.mkdir()
    for name in (*FILES, *network_files()):
        if (model.folder / name).exists():
            shutil.copyfile(model.folder / name, folder / name)
    layers.save(folder / MEMORY_FILE)  # last: its checksum goes into config.toml
    shutil.copyfile(work / LOG_FILE, folder / LOG_FILE)
    sync_tree(folder)
    rename(folder, output)
    shutil.rmtree(work)


def unimproved(reached: Mapping[str, Reached]) -> set[str]:
    """The parts that stay as the model had them. Copy and fusion share most of their parameters, so
    both stay, or neither: they go on where their losses fall together, and neither is worse by more
    than `NOISE`, nor with irrelevant pairs than it was and the plain model is."""
    unchanged = set[str]()
    for names in ({"copy", "fusion"}, {"cache"}):
        parts = {name: reached[name] for name in names & reached.keys()}
        if all(part.initial is None for part in parts.values()):
            continue
        gain = sum(part.start - part.final for part in parts.values())
        worse = [part.final > (1 + NOISE) * part.start for part in parts.values()]
        worse += [
            pairs.final > max((1 + NOISE) * pairs.plain, pairs.start)
            for name in parts
            if (pairs := reached.get(name + IRRELEVANT)) is not None
        ]
        if gain <= 0 or any(worse):
            unchanged |= parts.keys()
    return unchanged


def _summary(reached: Mapping[str, Reached], unchanged: set[str]) -> Iterator[str]:
    """A line for every part: what was gained on dev, and whether it was kept."""
    for name, part in reached.items():
        if name.endswith(IRRELEVANT):
            continue
        plain = "" if part.initial is None else f" (plain {part.plain:.4f})"
        end = "kept" if name not in unchanged else "not kept: it stays as the model had it"
        yield f"{name}: dev {part.start:.4f} to {part.final:.4f} nats a subword{plain}, {end}"


def refuse_worse(reached: Mapping[str, Reached], work: Path) -> None:
    """Raises DataError where a part that the model had not is no better than the plain model, or
    with irrelevant pairs worse by more than `NOISE`; it says what each of these reached, and how
    the others are had."""
    worse = {
        name: f"{name} {part.final:.4f}, plain {part.plain:.4f}"
        for name, part in reached.items()
        if part.initial is None
        and part.final >= part.plain * (1 + NOISE if name.endswith(IRRELEVANT) else 1)
    }
    if not worse:
        return
    parts, bad = (
        [*dict.fromkeys(name.removesuffix(IRRELEVANT) for name in names)]
        for names in (reached, worse)
    )
    rest = [part for part in parts if part not in bad]
    flags = " ".join(f"--no-{part}" for part in bad)
    keep = (
        f"; for {' and '.join(rest)} alone, give the same command with --resume {flags}"
        if rest
        else ""
    )
    raise DataError(
        "nothing is saved, since dev is worse than the plain model, or no better, in nats a "
        "subword: "
        f"{'; '.join(worse.values())}; more --sentences or --epochs may help, with another -o "
        f"(or {work} deleted){keep}"
    )


def split(segments: Iterable[Segment], dev_share: float) -> tuple[list[Document], list[Document]]:
    """Documents to learn from and held-out ones; a source that stands in both is left out of the
    first.

    A segment without a document is one by itself. The hash is salted: a memory may be a sample by
    the plain one. Where one side would stay empty, documents are cut into stretches of `STRETCH`
    segments, and some of them are held out, at least one; the log says so. A side may be empty all
    the same: there are not two stretches."""
    segments = list(segments)
    documents = [
        (name, list(part)) for name, part in groupby(segments, key=lambda s: s.document or s.src)
    ]
    total = f"{len(documents):,} documents"
    dev = {name for name, _ in documents if split_of(f"adapt {name}", dev_share, 0) == "dev"}
    train, held_out = _parted(documents, dev)
    if not train or not held_out:
        of_documents = quantity(len(documents), "document")
        log.info(
            "%s: too few to hold some out, so stretches of %d segments are split instead",
            of_documents,
            STRETCH,
        )
        stretches = list(_stretches(segments))
        total = f"{len(stretches):,} stretches"
        train, held_out = _parted(stretches, _lowest([name for name, _ in stretches], dev_share))
    shares = [quantity(sum(map(len, part)), "segment") for part in (train, held_out)]
    log.info("%s to learn from, %s held out: %d of %s", *shares, len(held_out), total)
    return train, held_out


def _stretches(segments: list[Segment]) -> Iterator[tuple[str, Document]]:
    """Consecutive segments of one document, at most `STRETCH` each, named by their place."""
    for name, group in groupby(segments, key=lambda s: s.document):
        document = list(group)
        for part, first, last in stretches(name, len(document)):
            yield part, document[first:last]


def _lowest(names: list[str], share: float) -> set[str]:
    """Those whose hash is within `share`; at least one, and at least one other is left, of two or
    more."""
    order = sorted(names, key=lambda name: point_of(f"adapt {name}"))
    count = sum(point_of(f"adapt {name}") < share for name in names)
    return set(order[: max(1, min(count, len(order) - 1))])


def _parted(
    documents: list[tuple[str, Document]], dev: set[str]
) -> tuple[list[Document], list[Document]]:
    """Those not in `dev`, without the sources of the others, and the others."""
    held_out = [document for name, document in documents if name in dev]
    kept_out = {normalise(s.src) for document in held_out for s in document}
    remaining = (document for name, document in documents if name not in dev)
    filtered = ([s for s in document if normalise(s.src) not in kept_out] for document in remaining)
    return [document for document in filtered if document], held_out
