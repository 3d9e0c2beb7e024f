"""`tmnmt align`: two documents, or two folders of documents, become a memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli.options import check_server_installed, interruption_note, no_stdout
from tmnmt.config.options import Threads
from tmnmt.errors import UsageError
from tmnmt.progress import Progress
from tmnmt.quantities import quantity

if TYPE_CHECKING:
    from tmnmt.alignment.folder import AlignedMemory
    from tmnmt.alignment.memory import AlignedDocument
    from tmnmt.translator import Translator


def align(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help="Document, or folder of documents, in the source language."
        ),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="Its translation, or a folder of these.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help=".tmx or .tsv, also with .gz or .xz.", callback=no_stdout
        ),
    ],
    src_lang: Annotated[
        str, typer.Option(help="Language of the sources, as en; not given, that of the model.")
    ] = "",
    tgt_lang: Annotated[
        str, typer.Option(help="Language of the targets, as fr; not given, that of the model.")
    ] = "",
    model: Annotated[
        Path | None,
        typer.Option(
            help="Model folder, which translates the sources to compare them with the targets; "
            "not given, the documents themselves show which words belong together."
        ),
    ] = None,
    min_probability: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="Leave out pairs that are less sure than this."),
    ] = 0.0,
    review: Annotated[
        bool,
        typer.Option(
            "--review",
            help="Then serve a page to a browser of this machine, to mend what is wrong.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One line of JSON for every pair of documents.")
    ] = False,
    threads: Threads = None,
) -> None:
    """Make a memory of a document and its translation.

    Sentences are aligned by what they say and by their lengths: one with one, one with several, or
    two in the other order; a sentence without a translation is left out. Every pair of the memory
    carries its probability as the property x-alignment-probability, and the origin "alignment", for
    which matches can lose points (--penalty-alignment). What a person should look at comes on
    standard error, with its place; --review shows it on a page.

    Any file that tmnmt translates can be aligned, and plain text. Of two folders, files with the
    same name are aligned, but for the languages in it, as contract.en.docx and contract.fr.docx.
    What is aligned is kept in OUTPUT.alignment: the same command goes on where it was, and what was
    mended stays."""
    from tmnmt.alignment.documents import pairs_of_folders
    from tmnmt.alignment.folder import AlignedMemory, AlignmentFolder
    from tmnmt.formats import check_writable
    from tmnmt.formats.languages import check_pair

    check_writable(output)
    if source.is_dir() != target.is_dir():
        raise UsageError(f"{source} and {target}: give two files, or two folders")
    if review:
        check_server_installed("tmnmt align --review")
    languages = _languages(model, (src_lang, tgt_lang))
    check_pair(*languages)
    paths = [(source, target)]
    if source.is_dir():
        paths = pairs_of_folders(source, target, languages)
    folder = AlignmentFolder(output.with_name(f"{output.name}.alignment"))
    memory = AlignedMemory(output, languages, folder, min_probability)
    with interruption_note("the same command goes on behind the documents that are aligned"):
        _align(memory, paths, _Comparison(model, threads) if model else None, as_json)
        _write(memory)
    if review:
        from tmnmt.serve.alignment import serve_review

        serve_review(memory, lambda address: typer.echo(f"review at {address}", err=True))
        _write(memory)


def _write(memory: AlignedMemory) -> None:
    typer.echo(f"{memory.path}: {quantity(memory.write(), 'segment')}", err=True)


def _languages(model: Path | None, languages: tuple[str, str]) -> tuple[str, str]:
    """The languages of the documents: those that are given, else those of the model. Raises
    UsageError where the model has others."""
    if model is None:
        if not all(languages):
            raise UsageError("give --src-lang and --tgt-lang, or a --model that has both")
        return languages
    from tmnmt.formats.languages import is_same_language
    from tmnmt.models.folder import languages_in

    of_model = languages_in(model)
    for requested, language in zip(languages, of_model, strict=True):
        if requested and not is_same_language(requested, language):
            raise UsageError(
                f"{model}: translates from {of_model[0]} to {of_model[1]}, {requested} was "
                "asked for"
            )
    return languages[0] or of_model[0], languages[1] or of_model[1]


class _Comparison:
    """Translates the sentences that are compared. The model is loaded with the first of them: where
    everything is aligned already, it is not."""

    def __init__(self, model: Path, threads: int | None) -> None:
        self._model, self._threads = model, threads

    @property
    def name(self) -> str:
        """Which model it is: by its configuration, which has the checksums of its files."""
        from tmnmt.models.folder import CONFIG_FILE

        return sha256((self._model / CONFIG_FILE).read_bytes()).hexdigest()

    @cached_property
    def _translator(self) -> Translator:
        from tmnmt.config.options import TranslationOptions
        from tmnmt.translator import Translator

        options = TranslationOptions(
            mode="off",
            beam=1,
            batch=32,
            headings=False,
            lost_sentences=False,
            threads=self._threads,
        )
        return Translator.load(self._model, [], options)

    def translations(
        self, progress: Progress, shares: tuple[float, float], texts: Sequence[str]
    ) -> Iterator[str]:
        """The translations, in order. `shares`: of all work, what is done before and after them."""
        first, last = shares
        for position, translation in enumerate(self._translator.stream([texts]), 1):
            progress.advance(1, first + (last - first) * position / len(texts))
            yield translation.tgt


def _align(
    memory: AlignedMemory,
    paths: Sequence[tuple[Path, Path]],
    comparison: _Comparison | None,
    as_json: bool,
) -> None:
    """Aligns the documents that are not aligned yet, and tells of each."""
    from tmnmt.alignment.folder import name_of
    from tmnmt.alignment.memory import aligned_document

    with Progress("aligning", "sentences") as progress:
        for number, (source, target) in enumerate(paths):
            name = name_of(source, target, memory.languages, comparison.name if comparison else "")
            document = memory.load(name)
            if document is None:
                shares = number / len(paths), (number + 1) / len(paths)
                translate = None
                if comparison is not None:
                    translate = partial(comparison.translations, progress, shares)
                document = aligned_document(source, target, memory.languages, translate)
                memory.put(name, document)
                if comparison is None:
                    progress.advance(len(document.sources), shares[1])
            memory.entries.append((source.as_posix(), name))
            _tell(document, source, as_json)


def _tell(document: AlignedDocument, path: Path, as_json: bool) -> None:
    """What became of a document, and the stretches that a person should look at. `path`: of its
    source."""
    alignment = document.alignment
    doubtful = [pair for pair in alignment.pairs if pair.is_doubtful]
    if as_json:
        record = {"document": path.as_posix()} | document.record()
        print(json.dumps(record, ensure_ascii=False))
    typer.echo(
        f"{path.as_posix()}: {quantity(len(document.sources), 'sentence')} and "
        f"{len(document.targets):,}; {quantity(len(alignment.pairs), 'pair')}; "
        f"doubtful: {len(doubtful):,}; without a translation: {len(alignment.lone_sources):,} "
        f"and {len(alignment.lone_targets):,}",
        err=True,
    )
    for pair in doubtful:
        source, target = document.texts(pair)
        typer.echo(
            f"  {pair.probability:.2f}  sentence {pair.sources[0] + 1}: {_cut(source)}  |  "
            f"{pair.targets[0] + 1}: {_cut(target)}",
            err=True,
        )


def _cut(text: str) -> str:
    from tmnmt.formats.clean import excerpt

    return excerpt(text, 50)
