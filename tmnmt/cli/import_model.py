"""`tmnmt import-model`: a Marian model, or a student of one, as a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tmnmt.cli.options import folder
from tmnmt.errors import UsageError


def import_model(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder of Mozilla or translateLocally (model.*.bin, vocab.*.spm), of Hugging "
            "Face (config.json, model.safetensors or pytorch_model.bin, source.spm, target.spm, "
            "vocab.json), or an unpacked archive of OPUS-MT (decoder.yml).",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Model folder to make; must not exist yet.", callback=folder
        ),
    ],
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
) -> None:
    """Make a model folder of a Marian model, such as those of Mozilla and of OPUS-MT.

    Nothing is fetched, and nothing is run that stands in its files. What cannot be represented is
    an error. Afterwards `tmnmt translate` translates with it, and `tmnmt adapt` teaches it to use
    a memory. Prints the model folder."""
    from tmnmt.formats.iso639 import check_language
    from tmnmt.formats.languages import check_pair
    from tmnmt.models.foreign import check_path
    from tmnmt.models.marian import import_marian
    from tmnmt.models.marian_files import languages_of

    if output.exists():
        raise UsageError(f"{output}: exists; name another folder")
    check_path(source)
    if not (src_lang and tgt_lang):
        named = languages_of(source)
        src_lang, tgt_lang = src_lang or named[0], tgt_lang or named[1]
    check_pair(src_lang, tgt_lang)
    for code in (src_lang, tgt_lang):
        check_language(code)
    import_marian(source, output, src_lang, tgt_lang, tag)
    print(output)
