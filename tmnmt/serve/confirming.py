"""What is looked at before a pair is confirmed: the tags of its translation, and what the checks
find in it. Sessions and documents both use this."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from tmnmt.checks import Check, ChecksError, OnChecks, limit_checks
from tmnmt.codes.record import Source
from tmnmt.engine.confirmation import Confirmation
from tmnmt.errors import UsageError
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.markup import check_tags, single_text
from tmnmt.session import Session

Findings = Collection[tuple[str, str]]  # the name of a check, and what it found


def confirmation_of(
    session: Session,
    source: Source,
    target: Source,
    on_checks: OnChecks,
    ignored: Findings = (),
    max_length: int | None = None,
) -> Confirmation:
    """A pair as it is confirmed, with what the checks find in it. Nothing is confirmed yet.

    session: the session.
    source: the source.
    target: its translation.
    on_checks: "refuse" refuses a pair in which the checks find something.
    ignored: what they may find all the same.
    max_length: how many characters the translation may have; None where nothing says it.

    Raises Refused for what cannot be confirmed, and for what the checks find."""
    check_tags(source, target)
    try:
        confirmation = session.confirmation(source, target)
        over = limit_checks(confirmation.tgt.plain, max_length)
        confirmation = replace(confirmation, checks=(*confirmation.checks, *over))
        checks = tuple(check for check in confirmation.checks if tuple(check) not in ignored)
        replace(confirmation, checks=checks).check(on_checks)
    except ChecksError as error:
        names = ", ".join(check.name for check in error.checks)
        raise Refused(
            409,
            "checks",
            "not confirmed: these checks found something: {checks}",
            details=checks_record(error.checks),
            values={"checks": names},
        ) from error
    except UsageError as error:
        raise wrong(str(error)) from error
    return confirmation


def draft_checks(
    session: Session, source: str, target: str | None, max_length: int | None = None
) -> list[dict[str, str]]:
    """What the checks find in a draft, which may be of any form.

    session: the session.
    source: the source, of XML.
    target: the draft, of XML; None where there is none.
    max_length: how many characters it may have; None where nothing says it."""
    if target is None or not target.strip():
        return []
    try:
        texts = single_text(source, "xml"), single_text(target, "xml")
        results = confirmation_of(session, *texts, "tell", max_length=max_length).checks
    except Refused as refused:
        results = (Check("codes", refused.message),)
    return [check._asdict() for check in results]


def checks_record(checks: Sequence[Check]) -> dict[str, Any]:
    """Checks as an answer has them.

    checks: the checks."""
    return {"checks": [check._asdict() for check in checks]}
