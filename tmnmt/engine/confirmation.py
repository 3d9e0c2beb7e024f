"""What a person confirms: both texts as they are kept, what the checks find in them, and how the
pair comes into a memory and out of it. Sessions, the server and the command line all use this
module."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tmnmt.checks import Check, ChecksError, OnChecks, check_preserved, checks
from tmnmt.codes.form import BY_FORM, Copied
from tmnmt.engine.confirmed import confirmable, gives_translation, holds_pair
from tmnmt.engine.extension import Extensions, check_all
from tmnmt.engine.full_match import agreeing, commonest
from tmnmt.index.back_ends import same_place
from tmnmt.index.base import UnknownIdError, WritableIndex
from tmnmt.index.pairs import copies

if TYPE_CHECKING:
    from tmnmt.codes.record import Text
    from tmnmt.segments import ConfirmedPair

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Confirmation:
    """A source and its translation as they are confirmed.

    src: the source.
    tgt: the translation.
    checks: what the checks find in them."""

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
    results = [
        *checks(source, target, languages=(src_lang, tgt_lang)),
        *check_all(extensions, source.plain, target.plain),
    ]
    return Confirmation(
        source, target, (*results, *check_preserved(source.plain, target.plain, copied))
    )


def written_to(writable: WritableIndex, entry: ConfirmedPair) -> ConfirmedPair:
    """Writes a pair to a memory. Returns the pair with the id under which it is there from then on.

    Where the memory gives this translation of the text already, nothing is added, and the id is the
    negative of the id of that segment. Where the memory would give another translation, the pair is
    added, so that it is the newest of the most frequent.

    writable: the index of the memory.
    entry: the pair."""
    alike = copies(writable, [entry.src])[entry.src]
    match = commonest(agreeing(alike, entry.src_codes or None))
    if match is not None and gives_translation(match.segment, entry):
        return replace(entry, id=-match.segment.id, memory=writable.place)
    return replace(entry, id=writable.add([entry.segment])[0], memory=writable.place)


def deleted_from(writable: WritableIndex | None, entry: ConfirmedPair) -> None:
    """Takes a pair out of the memory that it was written to. Where that memory is not written to
    now, or holds another pair by this id, nothing is deleted, and a logged warning says so.

    writable: the index that is written to now; None where there is none.
    entry: the pair."""
    if writable is None or not same_place(writable.place, entry.memory):
        log.warning(
            "%r is taken back here and stays in %s, which is not written to now",
            entry.src[:40],
            entry.memory,
        )
        return
    with suppress(UnknownIdError):  # somebody else has deleted it
        if holds_pair(writable.get([entry.id])[0], entry):
            writable.delete([entry.id])
        else:
            log.warning(
                "segment %d stays in %s: it was changed there meanwhile", entry.id, entry.memory
            )
