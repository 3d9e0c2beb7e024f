"""Libraries that ask several services, each of which may be a server of tmnmt: deep-translator and
translate.

    python libraries.py URL TEXT [KEY]

Prints JSON: by library and service, the translation of a text, and what is said of a language that
is not served. Addresses that a library keeps to itself are set in its objects."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from deep_translator import DeeplTranslator, LibreTranslator, MyMemoryTranslator

translate: Any = import_module("translate")  # not the toolkit of that name
Make = Callable[[str], Callable[[str], str]]  # of a target language, what translates a text


def libraries(url: str, key: str) -> dict[str, Make]:
    """What translates to a target language, by library and service."""

    def deep_libre(target: str) -> Callable[[str], str]:
        address = f"{url}/libretranslate/"
        return LibreTranslator("en", target, key, custom_url=address).translate

    def deep_deepl(target: str) -> Callable[[str], str]:
        translator = DeeplTranslator("en", target, key)
        translator._base_url = f"{url}/deepl/v2/"
        return translator.translate

    def deep_mymemory(target: str) -> Callable[[str], str]:
        translator = MyMemoryTranslator("en-GB", {"fr": "fr-FR", "de": "de-DE"}[target])
        translator._base_url = f"{url}/mymemory/get"
        translator._url_params["key"] = key
        return translator.translate

    def libre(target: str) -> Callable[[str], str]:
        address = f"{url}/libretranslate"
        return translate.Translator(
            target, "en", "libre", secret_access_key=key, base_url=address
        ).translate

    def deepl(target: str) -> Callable[[str], str]:
        translator = translate.Translator(target, "en", "deepl", secret_access_key=key)
        translator.provider.base_url = f"{url}/deepl/v2/translate"
        return translator.translate

    def mymemory(target: str) -> Callable[[str], str]:
        translator = translate.Translator(target, "en", "mymemory")
        translator.provider.base_url = f"{url}/mymemory/get?key={key}"
        return translator.translate

    return {
        "deep-translator libretranslate": deep_libre,
        "deep-translator deepl": deep_deepl,
        "deep-translator mymemory": deep_mymemory,
        "translate libretranslate": libre,
        "translate deepl": deepl,
        "translate mymemory": mymemory,
    }


def main(url: str, text: str, key: str = "any") -> None:
    results: dict[str, Any] = {}
    for name, make in libraries(url, key).items():
        try:
            refused = make("de")("Not served.")
        except Exception as error:
            refused = type(error).__name__
        results[name] = {"text": make("fr")(text), "refused": refused}
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
