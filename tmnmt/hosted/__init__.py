"""Bases behind an address, as a plug-in: any server that speaks OpenAI's chat completions, such as
Ollama, llama.cpp or vLLM. Such a base writes whole texts. It shows no states, so pairs of a memory
reach it as examples in a prompt.

The core finds all of this by `tmnmt.registry` alone."""

from __future__ import annotations

from tmnmt.config.options import ReadingMode
from tmnmt.registry import register

register("mode", "examples", ReadingMode(), successor="off")
register("address", "openai", "tmnmt.hosted.model:open_model")
register("writer", "chat", "tmnmt.hosted.writer:make_chat_writer")
register("command", "prompt", "tmnmt.hosted.commands:prompt", successor="get-model")
