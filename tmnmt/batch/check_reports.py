"""What the checks found, as people and other programs read it: lines, JSON, SARIF 2.1.0, and the
XML of JUnit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from tmnmt.batch.check import Finding
from tmnmt.checks import FINDINGS

ReportFormat = Literal["text", "json", "sarif", "junit"]
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def place_of(finding: Finding) -> str:
    """Where a finding is, as compilers say it: file, line, and the segment's name.

    finding: the finding."""
    line = f":{finding.line}" if finding.line else ""
    return f"{finding.file}{line}: {f'segment {finding.id}: ' if finding.id else ''}"


def as_text(findings: Sequence[Finding], pairs: int) -> str:
    """A line for each finding.

    findings: the findings.
    pairs: how many translations were checked, which the lines do not say."""
    return "".join(
        f"{place_of(finding)}{finding.check.name}: {' '.join(finding.check.what.split())}\n"
        for finding in findings
    )


def as_json(findings: Sequence[Finding], pairs: int) -> str:
    """One object: how many translations were checked, and the findings.

    findings: the findings.
    pairs: how many translations were checked."""
    records = [
        finding._asdict() | {"check": finding.check.name, "what": finding.check.what}
        for finding in findings
    ]
    return json.dumps({"checked": pairs, "findings": records}, ensure_ascii=False) + "\n"


def as_sarif(findings: Sequence[Finding], pairs: int) -> str:
    """A log of SARIF, with a rule for each check.

    findings: the findings.
    pairs: how many translations were checked, which SARIF has no place for."""
    from tmnmt import __version__

    rules = [
        {"id": name, "shortDescription": {"text": f"Translations that {finding}."}}
        for name, finding in FINDINGS.items()
    ]
    driver = {"name": "tmnmt", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "results": [*map(_result, findings)]}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(finding: Finding) -> dict[str, object]:
    location: dict[str, object] = {"artifactLocation": {"uri": finding.file}}
    if finding.line:
        location["region"] = {"startLine": finding.line}
    message = f"{finding.check.what} (in: {finding.tgt})"
    return {
        "ruleId": finding.check.name,
        "level": "warning",
        "message": {"text": message},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"segment": f"{finding.id} {finding.src}"},
    }


def as_junit(findings: Sequence[Finding], pairs: int) -> str:
    """The XML of JUnit: a test case for each finding, and one for all that was checked.

    findings: the findings.
    pairs: how many translations were checked."""
    cases = [
        f"  <testcase classname={quoteattr(finding.file)} name={quoteattr(_case(finding))}>"
        f"<failure type={quoteattr(finding.check.name)} message={quoteattr(finding.check.what)}>"
        f"{escape(finding.tgt)}</failure></testcase>\n"
        for finding in findings
    ]
    checked = f'  <testcase classname="tmnmt" name="{pairs} translations checked"/>\n'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuite name="tmnmt check" tests="{len(cases) + 1}" failures="{len(cases)}">\n'
        f"{checked}{''.join(cases)}</testsuite>\n"
    )


def _case(finding: Finding) -> str:
    line = f"line {finding.line} " if finding.line else ""
    return f"{line}{finding.id} {finding.check.name}".strip()


REPORTS: Mapping[ReportFormat, Callable[[Sequence[Finding], int], str]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
    "junit": as_junit,
}
