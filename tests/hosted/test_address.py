"""Addresses of bases, and which of them may be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmnmt.errors import UsageError
from tmnmt.hosted.address import Address, check_address, parse_address
from tmnmt.models.addresses import is_address, name_of, with_languages
from tmnmt.models.folder import languages_in, load_model


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("http://127.0.0.1:11434/v1#llama3", Address("http://127.0.0.1:11434/v1", "llama3")),
        ("http:/localhost:80/v1/#m", Address("http://localhost:80/v1", "m")),  # as a Path has it
        (
            "https://a.example/v1#org/model:8b@en-pt_BR",
            Address("https://a.example/v1", "org/model:8b", "en", "pt-BR"),
        ),
        ("https://a.example#m@rev", Address("https://a.example", "m@rev")),
    ],
)
def test_an_address_is_read(place: str, expected: Address) -> None:
    assert parse_address(place) == expected
    assert parse_address(str(Path(place))) == expected


@pytest.mark.parametrize(
    "place",
    ["", "127.0.0.1#m", "http://#m", "http://a.example/v1", "http://a.example:x/v1#m", "ftp://a#m"],
)
def test_what_is_no_address_is_told(place: str) -> None:
    with pytest.raises(UsageError, match="no address of a base; wanted: openai:URL#NAME"):
        parse_address(place)


def test_a_key_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="--key-file") as raised:
        parse_address("https://user:s3cret@a.example/v1#m")
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://localhost/v1", True),
        ("https://a.example/v1", True),
        ("http://a.example/v1", False),
        ("http://127.0.0.1.a.example/v1", False),
        ("http://192.168.0.2/v1", False),
    ],
)
def test_plain_http_goes_to_this_machine_alone(url: str, allowed: bool) -> None:
    address = parse_address(f"{url}#m")
    check_address(address, allows_plain=True)
    if allowed:
        check_address(address, allows_plain=False)
    else:
        with pytest.raises(UsageError, match="--plain-http"):
            check_address(address, allows_plain=False)


def test_a_base_behind_an_address_is_a_model() -> None:
    folder = Path("openai:https://a.example/v1#org/model:8b@en-pt")
    assert is_address(folder) and languages_in(folder) == ("en", "pt")
    assert name_of(folder) == "org-model-8b"
    other = load_model(Path("openai:https://a.example/v1#other@en-pt"))
    assert load_model(folder).hash != other.hash


def test_languages_that_the_address_says_stay(tmp_path: Path) -> None:
    bare = Path("openai:https://a.example/v1#m")
    assert languages_in(bare) == ("", "")
    assert languages_in(with_languages(bare, "en", "pt-BR")) == ("en", "pt-BR")
    assert languages_in(with_languages(Path(f"{bare}@de-fr"), "en", "pt")) == ("de", "fr")
    assert with_languages(tmp_path, "en", "pt") == tmp_path
