"""What a person confirms, before it is learned: both texts as they are kept, and what the checks
find in them. Sessions, the server and the command line all use this module."""

from __future__ import annotations

from dataclasses import dataclass

from tmnmt.checks import Check, ChecksError, OnChecks, check_preserved, checks
from tmnmt.codes.form import BY_FORM, Copied
from tmnmt.codes.record import Text
from tmnmt.codes.tags import html_tags, with_tags
from tmnmt.engine.confirmed import confirmable
from tmnmt.engine.extension import Extensions, check_all
from tmnmt.number_words import is_written_out
from tmnmt.numbers import changed_number_words, missing_numbers


@dataclass(frozen=True)
class Confirmation:
    """A source and its translation as they are confirmed, with what the checks find in them."""

    src: Text
    tgt: Text
    checks: tuple[Check, ...]

    def check(self, on_checks: OnChecks) -> None:
        """Raises ChecksError where the checks found something and the pair is to be refused for it.

        on_checks: "refuse" refuses such a pair, and "tell" lets it pass."""
        if self.checks and on_checks == "refuse":
            raise ChecksError(self.checks)


def confirmation(
    src: object,
    tgt: object,
    src_lang: str,
    tgt_lang: str,
    extensions: Extensions,
    copied: Copied = BY_FORM,
) -> Confirmation:
    """Makes two texts ready to be confirmed.

    src: the source, with or without codes.
    tgt: its translation, with or without codes.
    src_lang: the language of the source, whose words for numbers count.
    tgt_lang: the language of the translation, whose words for numbers count.
    extensions: the features whose checks look at the translation.
    copied: what the user wants to be kept, besides what is always kept.

    Raises UsageError for a side without anything visible or of more than 1,000 tokens."""
    source, target = confirmable(src, tgt)
    results = _checks(source, target, src_lang, tgt_lang, extensions)
    return Confirmation(
        source, target, (*results, *check_preserved(source.plain, target.plain, copied))
    )


def _checks(
    src: Text, tgt: Text, src_lang: str, tgt_lang: str, extensions: Extensions
) -> list[Check]:
    words = with_tags(src, html_tags).plain, with_tags(tgt, html_tags).plain
    numbers = [
        number
        for number in missing_numbers(*words)
        if not is_written_out(number, tgt.plain, tgt_lang)
    ]
    numbers += changed_number_words(src.plain, tgt.plain, src_lang, tgt_lang)
    return [
        *([Check("numbers", ", ".join(numbers))] if numbers else []),
        *checks(src, tgt),
        *check_all(extensions, src.plain, tgt.plain),
    ]
