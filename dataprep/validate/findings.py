"""What validation found, and the four forms it is printed in."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal
from xml.etree import ElementTree

_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML 1.0 has no form for."""

OutputFormat = Literal["text", "json", "junit", "github"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong: in which file, at which utterance (empty: the file as a whole)."""

    file: str
    key: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of validating one data set."""

    path: str
    kind: str
    num_files: int
    num_utterances: int
    findings: tuple[Finding, ...]


def formatted(verdict: Verdict, form: OutputFormat) -> str:
    """The verdict as text."""
    return {"text": _text, "json": _json, "junit": _junit, "github": _github}[form](verdict)


def _text(verdict: Verdict) -> str:
    lines = [f"{f.file}{': ' + f.key if f.key else ''}: {f.message}" for f in verdict.findings]
    state = (
        "valid"
        if not verdict.findings
        else f"NOT valid: {len(verdict.findings)} finding{'s' if len(verdict.findings) > 1 else ''}"
    )
    lines.append(
        f"{verdict.path}: {verdict.kind}, {verdict.num_files} files, {verdict.num_utterances} utterances: {state}"
    )
    return "\n".join(lines)


def _json(verdict: Verdict) -> str:
    return json.dumps({**asdict(verdict), "valid": not verdict.findings}, ensure_ascii=False, indent=2)


def _junit(verdict: Verdict) -> str:
    by_file = _by_file(verdict.findings)
    good = verdict.num_files - len(by_file)
    suite = ElementTree.Element(
        "testsuite",
        name=f"dataprep validate {verdict.path}",
        tests=str(verdict.num_files),
        failures=str(len(by_file)),
    )
    if good > 0:
        name = f"{verdict.path}: {good} files without a finding"
        ElementTree.SubElement(suite, "testcase", classname=verdict.kind, name=name)
    for file, findings in by_file.items():
        case = ElementTree.SubElement(suite, "testcase", classname=verdict.kind, name=file)
        failure = ElementTree.SubElement(case, "failure", message=findings[0].message)
        failure.text = "\n".join(f"{f.key}: {f.message}" if f.key else f.message for f in findings)
    text = ElementTree.tostring(suite, encoding="unicode")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _by_file(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.file, []).append(finding)
    return by_file


def _github(verdict: Verdict) -> str:
    """Workflow commands as GitHub Actions reads them; `%`, CR and LF are escaped as its documentation says."""

    def escape(text: str) -> str:
        return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

    lines = [
        f"::error file={escape(f'{verdict.path}/{f.file}')},title=dataprep validate::"
        + escape(f"{f.key}: {f.message}" if f.key else f.message)
        for f in verdict.findings
    ]
    return "\n".join([*lines, _text(verdict).splitlines()[-1]])
