"""Weblate's own machinery classes against a server, in an environment of Weblate's.

    python weblate_machinery.py URL TEXTS    # TEXTS: source texts, as JSON

Prints JSON: what came of each service. Units, languages and projects are the stand-ins of Weblate's
own tests, so that no database is asked. cairo and gi, which draw fonts there, are left out: they
have no wheels."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from unittest.mock import MagicMock

import django
from django.conf import settings

OF_WEBLATE = (  # in the order of its own settings: they import each other
    *("addons", "auth", "checks", "formats", "glossary", "machinery", "trans", "lang", "memory"),
    *("screenshots", "fonts", "accounts", "configuration", "utils", "vcs", "wladmin", "metrics"),
)
OF_OTHERS = (
    *("django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes"),
    *("django.contrib.messages", "django.contrib.sessions", "django_celery_beat", "django_otp"),
    *("django_otp.plugins.otp_static", "django_otp.plugins.otp_totp", "django_otp_webauthn"),
    *("rest_framework", "rest_framework.authtoken", "social_django"),
)
CHECKS = ("format.PythonFormatCheck", "markup.XMLTagsCheck")  # which know what a placeholder is
SERVICES = {
    "apertium-apy": "/apertium",
    "deepl": "/deepl/v2/",
    "libretranslate": "/libretranslate",
    "modernmt": "/modernmt",
    "openai": "/openai/v1",
    "tmserver": "/tmserver",
}
CODED = "The %(name)s of the <b>State</b> is <br/> void."


def set_up(folder: str) -> None:
    """As little of Weblate as its machinery needs."""
    sys.modules.update({name: MagicMock() for name in ("cairo", "gi", "gi.repository")})
    settings.configure(
        INSTALLED_APPS=[*(f"weblate.{app}" for app in OF_WEBLATE), *OF_OTHERS],
        AUTH_USER_MODEL="weblate_auth.User",
        CHECK_LIST=[f"weblate.checks.{check}" for check in CHECKS],
        CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
        DATA_DIR=folder,
        CACHE_DIR=folder,
        SITE_DOMAIN="weblate.example",
        ENABLE_HTTPS=False,
        USE_I18N=False,
    )
    django.setup()


class Asked:
    """A service as somebody sets it up in Weblate. `errors`: what its form says then."""

    def __init__(self, name: str, url: str) -> None:
        from weblate.machinery.models import validate_service_configuration

        given = {"url": url, "key": "any"}
        if name == "openai":
            of_model = {"model": "custom", "custom_model": "en-fr", "persona": "", "style": ""}
            given = {"base_url": url, "key": "any", **of_model}
        service, configuration, self.errors = validate_service_configuration(name, given)
        self.machine = service(configuration)
        self.uses_terms("")

    def uses_terms(self, lines: str) -> None:
        """The glossary of the project is this one from now on."""
        from django.core.cache import cache

        unit = self.unit("")
        project, source = unit.translation.component.project, unit.translation.component
        languages = source.source_language, unit.translation.language
        cache.set(project.get_glossary_tsv_cache_key(*languages), lines)

    @staticmethod
    def unit(text: str, code: str = "fr") -> Any:
        from weblate.checks.tests.test_checks import MockUnit

        return MockUnit(code=code, source=text, flags="python-format, xml-text")

    def batch(self, texts: Sequence[str], code: str = "fr") -> list[str]:
        """What Weblate's automatic translation puts in; "": nothing, also where it is refused."""
        from weblate.machinery.base import MachineTranslationError

        units = [self.unit(text, code) for text in texts]
        with suppress(MachineTranslationError):
            self.machine.batch_translate(units)
        return [(unit.machinery or {}).get("translation", [""])[0] for unit in units]


def tried(name: str, url: str, texts: Sequence[str]) -> dict[str, Any]:
    """What comes of a batch, of a text with placeholders, and of a language that is not served."""
    asked, start = Asked(name, url), time.monotonic()
    return {
        "errors": asked.errors,
        "texts": asked.batch(texts),
        "seconds": time.monotonic() - start,
        "coded": asked.batch([CODED])[0],
        "not served": asked.batch(texts[:1], "de")[0],
    }


def with_terms(name: str, url: str) -> tuple[list[str], int]:
    """The same text with a glossary, and with another in its place; and how many the server has
    then. They are deleted."""
    asked, said = Asked(name, url), list[str]()
    for target in ("Kanton", "Bundesland"):
        asked.uses_terms(f"State\t{target}")
        said += asked.batch(["The State."])
    kept = [id for name, id in asked.machine.list_glossaries().items() if "weblate:" in name]
    for id in kept:
        asked.machine.delete_glossary(id)
    return said, len(kept)


def main() -> None:
    url, texts = sys.argv[1], json.loads(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        set_up(folder)
        found: dict[str, Any] = {
            name: tried(name, url + at, texts) for name, at in SERVICES.items()
        }
        for name in ("deepl", "modernmt"):
            found[f"{name} with terms"] = with_terms(name, url + SERVICES[name])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
