"""Verdicts for machines and review pages: JUnit XML, Markdown, annotations, JSON.

Called by gate and self-test. Pure: verdicts in, text out; writing the files is the caller's work.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from harness.analyze.verdict import Outcome, Verdict, format_quantity

_MARKS = {
    Outcome.UNCHANGED: "✅", Outcome.IMPROVED: "✅", Outcome.PLATEAU: "✅",
    Outcome.REGRESSED: "❌", Outcome.HIGHER_PLATEAU: "❌", Outcome.GROWING: "❌",
    Outcome.CANNOT_TELL: "❔", Outcome.NOT_MEASURED: "⚠️",
}  # fmt: skip


def junit(verdicts: Sequence[Verdict], suite_name: str, inconclusive_fails: bool) -> str:
    """Return JUnit XML with one test case a verdict.

    A regression is a failure, what could not be measured an error; `cannot tell` is an error when
    `inconclusive_fails`, else skipped.
    """
    suite = TestSuite(suite_name)
    for verdict in verdicts:
        case = TestCase(f"{verdict.metric} ({verdict.provider})", classname=verdict.name)
        sentence = _xml_text(verdict.sentence())
        if verdict.is_regression:
            case.result = [Failure(sentence, str(verdict.outcome))]
        elif verdict.outcome is Outcome.NOT_MEASURED or (verdict.is_inconclusive and inconclusive_fails):
            case.result = [Error(sentence, str(verdict.outcome))]
        elif verdict.is_inconclusive:
            case.result = [Skipped(sentence, str(verdict.outcome))]
        case.system_out = _xml_text(f"{sentence}\nrepeat with: {verdict.command}")
        suite.add_testcase(case)
    document = JUnitXml(suite_name)
    document.add_testsuite(suite)
    document.update_statistics()
    text = document.tostring()
    return text.decode() if isinstance(text, bytes) else str(text)


def markdown(verdicts: Sequence[Verdict], title: str, conclusion: str, reasons: Sequence[str] = ()) -> str:
    """Return a summary for a CI job's page: the conclusion, what failed and why, and the whole table."""
    lines = [f"## {title}", "", conclusion, ""]
    for verdict in verdicts:
        if verdict.is_regression or verdict.outcome is Outcome.NOT_MEASURED:
            lines += [
                f"- {_MARKS[verdict.outcome]} **{_cell(verdict.name)}** {_cell(verdict.sentence())}",
                f"  repeat with `{verdict.command}`",
            ]
    lines += [f"- why: {_cell(reason)}" for reason in reasons]
    lines += [
        "",
        "| | workload | metric | verdict | before | after | figure | threshold |",
        "| --- | --- | --- | --- | ---: | ---: | ---: | --- |",
    ]
    for verdict in verdicts:
        cells = (
            _MARKS[verdict.outcome],
            verdict.name,
            f"{verdict.metric} ({verdict.provider})",
            str(verdict.outcome),
            _quantity(verdict.before, verdict.unit),
            _quantity(verdict.after, verdict.unit),
            figure_text(verdict),
            "" if verdict.threshold is None else str(verdict.threshold),
        )
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def workflow_commands(verdicts: Sequence[Verdict]) -> list[str]:
    """Return workflow commands that a CI host shows beside the change: errors, and warnings for the undecided."""
    found = []
    for verdict in verdicts:
        if verdict.is_regression:
            level = "error"
        elif verdict.outcome in (Outcome.CANNOT_TELL, Outcome.NOT_MEASURED):
            level = "warning"
        else:
            continue
        title = _escaped(f"{verdict.name}: {verdict.outcome}", for_property=True)
        found.append(f"::{level} title={title}::{_escaped(verdict.sentence())}")
    return found


def as_json(verdicts: Sequence[Verdict], **facts: object) -> str:
    """Return the verdicts and the caller's facts as one JSON document."""
    return json.dumps({**facts, "verdicts": [verdict.as_dict() for verdict in verdicts]}, indent=2, default=str)


def figure_text(verdict: Verdict) -> str:
    """Return the judged figure with its interval, in the threshold's unit; empty when there is none."""
    if verdict.figure is None:
        return ""
    unit = "%" if verdict.threshold is None else verdict.threshold.unit
    text = format_quantity(verdict.figure, unit, signed=True)
    if verdict.interval is not None:
        low, high = (format_quantity(bound, unit, signed=True) for bound in verdict.interval)
        text += f" [{low}, {high}]"
    return text


def _quantity(value: float | None, unit: str) -> str:
    return "" if value is None else format_quantity(value, unit)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _escaped(text: str, for_property: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if for_property else text


def _xml_text(text: str) -> str:
    """Drop what XML 1.0 cannot hold: a crashed workload's last words may contain it."""
    return "".join(letter for letter in text if letter in "\t\n\r" or ord(letter) >= 32)
