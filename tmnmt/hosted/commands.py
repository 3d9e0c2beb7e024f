"""`tmnmt prompt`: what a base behind an address is told."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tmnmt.config.options import TranslationOptions
from tmnmt.errors import UsageError


def prompt(
    text: Annotated[
        str | None, typer.Argument(help="A text, whose prompt is shown; not given, the template.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="ADDRESS", help="The base: openai:URL#NAME.")
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option("--memory", metavar="PLACE", help="A memory to read; may be repeated."),
    ] = None,
    options: TranslationOptions = TranslationOptions(),
) -> None:
    """Show what a base behind an address is told, without asking it.

    Without TEXT, this is the template: write it to a file, change it, and give the file as
    --prompt. With TEXT and --model, these are the messages for that text."""
    if text is None:
        from tmnmt.hosted.prompt import load_template

        sys.stdout.write(load_template(Path(options.prompt) if options.prompt else None).text)
        return
    if model is None:
        raise UsageError("the prompt of a text needs a --model: openai:URL#NAME")
    from tmnmt.hosted.writer import ChatWriter
    from tmnmt.translator import Translator

    translator = Translator.load(model, memory or [], replace(options, keep_answers=False))
    pipeline, writer = translator.pipeline, translator.pipeline.writer
    if not isinstance(writer, ChatWriter):
        raise UsageError(f"{model}: a model folder gets no prompt")
    session = translator.session()
    pieces = pipeline.retrieve(pipeline.passage().open(text), [])
    for piece in pieces:
        for message in writer.messages(piece, session):
            print(f"[{message['role']}]\n{message['content']}\n")
