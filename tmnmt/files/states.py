"""What a file says of a new target, by where the target comes from: one table for every format.

    origin      kind      what the target is                                        left to do
    model       machine   the model's                                               review
    repetition  machine   that of an earlier unit with the same text                 review
    fuzzy       fuzzy     a match worth less than 100, as it stands                  review
    adapted     adapted   a full match that something was put into                 review
    draft       human     what a person has written and not confirmed                review
    confirmed   human     what a person confirmed for this very segment              nothing
    reviewed    human     the same, which somebody else has read                     nothing
    approved    human     the same, which a reviewer has approved                    nothing
    memory      full      a full match, as it stands                                 nothing

The state follows the kind of match, whatever option had it taken. What a person confirmed has no
qualifier of a match, since tools count and pay by these. Only what people have reviewed or approved
on the server's page is `signed-off` or `final`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Attributes = dict[str, str]

_REVIEW = "needs-review-translation"


@dataclass(frozen=True, slots=True)
class TargetState:
    """What every format says of a target of one origin. The attributes of CAT tools are written
    without their prefixes (`xliff1_tools`)."""

    is_draft: bool  # whether somebody has to look at it; PO says so by `fuzzy`
    xliff1: Attributes  # of <target>
    xliff2: Attributes  # of <segment>
    trados: Attributes
    memoq: Attributes
    phrase: Attributes
    tmx_origin: str = ""  # the value of x-origin
    is_match: bool = False  # whether tools are told what the match is worth
    is_approved: bool = False  # whether a reviewer has approved it; XLIFF 1 says so of the unit


STATES: dict[str, TargetState] = {
    "model": TargetState(
        is_draft=True,
        xliff1={"state": _REVIEW, "state-qualifier": "leveraged-mt"},
        xliff2={"state": "initial", "subState": "tmnmt:machine"},
        trados={"conf": "Draft", "origin": "mt"},
        memoq={"status": "PartiallyEdited"},
        phrase={"confirmed": "0", "trans-origin": "mt", "score": "0.0"},
        tmx_origin="model",
    ),
    "repetition": TargetState(
        is_draft=True,
        xliff1={"state": _REVIEW, "state-qualifier": "x-repetition"},
        xliff2={"state": "initial", "subState": "tmnmt:repetition"},
        trados={"conf": "Draft", "origin": "auto-propagated"},
        memoq={"status": "PartiallyEdited"},
        phrase={"confirmed": "0", "trans-origin": "mt", "score": "0.0"},
        tmx_origin="model",
    ),
    "fuzzy": TargetState(
        is_draft=True,
        xliff1={"state": _REVIEW, "state-qualifier": "fuzzy-match"},
        xliff2={"state": "initial", "subState": "tmnmt:fuzzy-match"},
        trados={"conf": "Draft", "origin": "tm"},
        memoq={"status": "Pretranslated"},
        phrase={"confirmed": "0", "trans-origin": "tm"},
        tmx_origin="fuzzy",
        is_match=True,
    ),
    "adapted": TargetState(
        is_draft=True,
        xliff1={"state": _REVIEW, "state-qualifier": "leveraged-tm"},
        xliff2={"state": "initial", "subState": "tmnmt:adapted"},
        trados={"conf": "Draft", "origin": "tm"},
        memoq={"status": "Pretranslated"},
        phrase={"confirmed": "0", "trans-origin": "tm"},
        tmx_origin="adapted",
        is_match=True,
    ),
    "draft": TargetState(
        is_draft=True,
        xliff1={"state": _REVIEW},
        xliff2={"state": "initial", "subState": "tmnmt:draft"},
        trados={"conf": "Draft", "origin": "interactive"},
        memoq={"status": "PartiallyEdited"},
        phrase={"confirmed": "0", "trans-origin": "null", "score": "0.0"},
        tmx_origin="draft",
    ),
    "confirmed": TargetState(
        is_draft=False,
        xliff1={"state": "translated"},
        xliff2={"state": "translated"},
        trados={"conf": "Translated", "origin": "interactive"},
        memoq={"status": "ManuallyConfirmed"},
        phrase={"confirmed": "1", "trans-origin": "null", "score": "0.0"},
    ),
    "reviewed": TargetState(
        is_draft=False,
        xliff1={"state": "signed-off"},
        xliff2={"state": "reviewed"},
        trados={"conf": "ApprovedTranslation", "origin": "interactive"},
        memoq={"status": "Reviewer1Confirmed"},
        phrase={"confirmed": "1", "trans-origin": "null", "score": "0.0"},
    ),
    "approved": TargetState(
        is_draft=False,
        xliff1={"state": "final"},
        xliff2={"state": "final"},
        trados={"conf": "ApprovedSignOff", "origin": "interactive"},
        memoq={"status": "Proofread"},
        phrase={"confirmed": "1", "trans-origin": "null", "score": "0.0"},
        is_approved=True,
    ),
    "memory": TargetState(
        is_draft=False,
        xliff1={"state": "translated", "state-qualifier": "exact-match"},
        xliff2={"state": "translated", "subState": "tmnmt:exact-match"},
        trados={"conf": "Translated", "origin": "tm"},
        memoq={"status": "Pretranslated"},
        phrase={"confirmed": "0", "trans-origin": "tm"},
        is_match=True,
    ),
}


_ORDER = [*STATES]  # what has most left to do is first


def state_of_all(origins: Iterable[str]) -> TargetState:
    """The state of a target that is made of several: that of the one with most left to do.

    origins: the origins of the several targets."""
    return STATES[min(origins, key=_ORDER.index)]


def repeated_origin(origin: str) -> str:
    """What a file says of a target that repeats an earlier one: that it is a repetition, where it
    is no match of a memory.

    origin: the origin of the earlier target."""
    return "repetition" if origin == "model" else origin
