"""`tmnmt import-model`: a Marian model, or a student of one, as a model folder; or two models that
translate one after another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tmnmt.cli.options import NEW_MODEL
from tmnmt.errors import UsageError


def import_model(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR",
            help="Folder of Mozilla or translateLocally (model.*.bin, vocab.*.spm), of Hugging "
            "Face (config.json, model.safetensors or pytorch_model.bin, source.spm, target.spm, "
            "vocab.json), or an unpacked archive of OPUS-MT (decoder.yml). Two: the second "
            "translates what the first has written; they may be model folders.",
        ),
    ],
    output: NEW_MODEL,
    src_lang: Annotated[
        str,
        typer.Option(help="Language of its sources, as en; not given, as its files are called."),
    ] = "",
    tgt_lang: Annotated[
        str,
        typer.Option(help="Language of its targets, as de; not given, as its files are called."),
    ] = "",
    tag: Annotated[
        str,
        typer.Option(
            help="What sources begin with, >>TAG<<, in a model with several target languages; "
            "not given, the target language itself."
        ),
    ] = "",
    via: Annotated[
        str,
        typer.Option(
            help="Of two models the language between them, as en; not given, as their files are "
            "called."
        ),
    ] = "",
) -> None:
    """Make a model folder of a Marian model, such as those of Mozilla and of OPUS-MT.

    Nothing is fetched, and nothing is run that stands in its files. What cannot be represented is
    an error. Afterwards `tmnmt translate` translates with it, and `tmnmt adapt` teaches it to use
    a memory. Two folders make one model, for a pair of languages that has none of its own: from
    Portuguese into English, and from there into Spanish. It reads memories of the outer languages.
    Prints the model folder."""
    if output.exists():
        raise UsageError(f"{output}: exists; name another folder")
    if len(sources) == 1 and not via:
        _import_one(sources[0], output, src_lang, tgt_lang, tag)
    elif len(sources) == 2:
        _import_two(sources, output, src_lang, tgt_lang, via, tag)
    else:
        raise UsageError("name one folder, or two that translate one after another (--via)")
    print(output)


def _import_one(source: Path, output: Path, src_lang: str, tgt_lang: str, tag: str) -> None:
    from tmnmt.formats.languages import check_pair
    from tmnmt.model_import.marian import import_marian
    from tmnmt.model_import.marian_files import languages_of
    from tmnmt.models.foreign import check_path

    check_path(source)
    if not (src_lang and tgt_lang):
        languages = languages_of(source)
        src_lang, tgt_lang = src_lang or languages[0], tgt_lang or languages[1]
    check_pair(src_lang, tgt_lang)
    import_marian(source, output, src_lang, tgt_lang, tag)


def _import_two(
    sources: list[Path], output: Path, src_lang: str, tgt_lang: str, pivot: str, tag: str
) -> None:
    """Each is imported first where it is no model folder yet. `tag`: of the second."""
    from tempfile import TemporaryDirectory

    from tmnmt.formats.languages import check_pair
    from tmnmt.model_import.pivot_folder import join_models
    from tmnmt.models.folder import languages_in
    from tmnmt.models.foreign import is_model_folder

    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=output.parent, prefix=f"{output.name}.") as work:
        folders = []
        languages = (src_lang, pivot, ""), (pivot, tgt_lang, tag)
        for number, (source, (first_lang, second_lang, own_tag)) in enumerate(
            zip(sources, languages, strict=True)
        ):
            folders.append(source)
            if not is_model_folder(source):
                folders[-1] = Path(work) / str(number)
                _import_one(source, folders[-1], first_lang, second_lang, own_tag)
        ends = languages_in(folders[0])[0], languages_in(folders[1])[1]
        pair = src_lang or ends[0], tgt_lang or ends[1]
        check_pair(*pair)
        join_models(folders[0], folders[1], output, pair)
