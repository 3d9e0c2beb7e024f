"""`tmnmt align`: two documents, or two folders of documents, become a memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli.options import no_stdout
from tmnmt.config.options import Threads
from tmnmt.errors import UsageError
from tmnmt.quantities import quantity

if TYPE_CHECKING:
    from tmnmt.alignment.memory import AlignedDocument

Translate = Callable[[Sequence[str]], list[str]]


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
    standard error, with its place.

    Any file that tmnmt translates can be aligned, and plain text. Of two folders, files with the
    same name are aligned, but for the languages in it, as contract.en.docx and contract.fr.docx."""
    from tmnmt.alignment.documents import pairs_of_folders
    from tmnmt.alignment.memory import aligned_document, segments_of
    from tmnmt.formats import check_writable, write_memory
    from tmnmt.formats.languages import check_pair
    from tmnmt.progress import Progress

    check_writable(output)
    if source.is_dir() != target.is_dir():
        raise UsageError(f"{source} and {target}: give two files, or two folders")
    translate, languages = _model(model, (src_lang, tgt_lang), threads)
    check_pair(*languages)
    paths = [(source, target)]
    if source.is_dir():
        paths = pairs_of_folders(source, target, languages)
    documents = []
    with Progress("aligning", "documents", len(paths)) as progress:
        for pair in paths:
            documents.append(aligned_document(*pair, languages, translate))
            progress.advance()
    segments = [
        segment for document in documents for segment in segments_of(document, min_probability)
    ]
    write_memory(output, segments, *languages)
    for document in documents:
        _tell(document, as_json)
    typer.echo(f"{output}: {quantity(len(segments), 'segment')}", err=True)


def _model(
    model: Path | None, languages: tuple[str, str], threads: int | None
) -> tuple[Translate | None, tuple[str, str]]:
    """What translates the sources, and the languages of the documents."""
    if model is None:
        if not all(languages):
            raise UsageError("give --src-lang and --tgt-lang, or a --model that has both")
        return None, languages
    from tmnmt.config.options import TranslationOptions
    from tmnmt.formats.languages import is_same_language
    from tmnmt.translator import Translator

    options = TranslationOptions(
        mode="off", beam=1, batch=32, headings=False, lost_sentences=False, threads=threads
    )
    translator = Translator.load(model, [], options)

    def translate(texts: Sequence[str]) -> list[str]:
        from tmnmt.progress import Progress

        translations = list[str]()
        with Progress("translating", "sentences", len(texts)) as progress:
            for translation in translator.stream([texts]):
                translations.append(translation.tgt)
                progress.advance()
        return translations

    own_languages = translator.src_lang, translator.tgt_lang
    for requested, language in zip(languages, own_languages, strict=True):
        if requested and not is_same_language(requested, language):
            raise UsageError(
                f"{model}: translates from {own_languages[0]} to {own_languages[1]}, "
                f"{requested} was asked for"
            )
    return translate, (languages[0] or own_languages[0], languages[1] or own_languages[1])


def _tell(document: AlignedDocument, as_json: bool) -> None:
    """What became of a document, and the stretches that a person should look at."""
    alignment = document.alignment
    doubtful = [pair for pair in alignment.pairs if pair.is_doubtful]
    if as_json:
        print(json.dumps(document.record(), ensure_ascii=False))
    typer.echo(
        f"{document.name}: {quantity(len(document.sources), 'sentence')} and "
        f"{len(document.targets):,}; {quantity(len(alignment.pairs), 'pair')}, of which "
        f"{len(doubtful):,} are doubtful; without a translation: {len(alignment.lone_sources):,} "
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
