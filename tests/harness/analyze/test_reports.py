"""Verdicts as JUnit, Markdown, annotations and JSON, read back by what reads them."""

from __future__ import annotations

import json

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped

from harness.analyze.reports import as_json, junit, markdown, workflow_commands
from harness.analyze.verdict import Outcome, Threshold, Verdict, format_quantity

COMMAND = "./tidemark gate --workload churn"


def verdict(outcome: Outcome, **fields: object) -> Verdict:
    facts: dict[str, object] = dict(
        workload="churn", variant="default", metric="instructions", provider="callgrind", outcome=outcome,
        figure=0.5, threshold=Threshold(0.05, "%", "thresholds.toml: instructions of *"), before=1e6, after=1.005e6,
        unit="instructions", command=COMMAND,
    )  # fmt: skip
    return Verdict(**{**facts, **fields})  # type: ignore[arg-type]


def results_of(text: str) -> dict[str, list[object]]:
    document = JUnitXml.fromstring(text.encode())
    return {case.name: list(case.result) for suite in document for case in suite}


def test_junit_kinds_follow_the_outcome() -> None:
    verdicts = [
        verdict(Outcome.UNCHANGED, metric="a"), verdict(Outcome.GROWING, metric="b"),
        verdict(Outcome.NOT_MEASURED, metric="c"), verdict(Outcome.CANNOT_TELL, metric="d"),
    ]  # fmt: skip
    strict, lenient = (results_of(junit(verdicts, "gate", fails)) for fails in (True, False))
    assert strict["a (callgrind)"] == []
    assert isinstance(strict["b (callgrind)"][0], Failure)
    assert isinstance(strict["c (callgrind)"][0], Error)
    assert isinstance(strict["d (callgrind)"][0], Error)
    assert isinstance(lenient["d (callgrind)"][0], Skipped)


def test_junit_counts_and_names_the_figure_and_the_threshold() -> None:
    text = junit([verdict(Outcome.REGRESSED)], "gate", True)
    document = JUnitXml.fromstring(text.encode())
    assert (document.tests, document.failures) == (1, 1)
    assert "+0.500 %" in text and "0.050 %" in text and COMMAND in text


def test_junit_survives_control_characters_of_a_crashed_program() -> None:
    assert results_of(junit([verdict(Outcome.NOT_MEASURED, reason="it said \x1b[31m <&> \x00")], "gate", True))


def test_markdown_names_failures_first_and_lists_all() -> None:
    text = markdown([verdict(Outcome.UNCHANGED, workload="idle"), verdict(Outcome.REGRESSED)], "Gate", "1 regression")
    head, table = text.split("| | workload")
    assert "**churn**" in head and COMMAND in head and "idle" not in head
    assert "idle" in table and "churn" in table


def test_annotations_escape_and_skip_what_is_fine() -> None:
    lines = workflow_commands([verdict(Outcome.UNCHANGED), verdict(Outcome.REGRESSED, reason="100 %\nmore")])
    assert len(lines) == 1
    assert lines[0].startswith("::error title=churn%3A regressed::")
    assert "\n" not in lines[0] and "100 %25%0Amore" in lines[0]
    assert workflow_commands([verdict(Outcome.CANNOT_TELL)])[0].startswith("::warning")


def test_json_holds_every_field() -> None:
    document = json.loads(as_json([verdict(Outcome.HIGHER_PLATEAU)], exit_code=1))
    assert document["exit_code"] == 1
    assert document["verdicts"][0]["outcome"] == "higher plateau"
    assert document["verdicts"][0]["is_regression"] is True
    assert document["verdicts"][0]["threshold"]["origin"].startswith("thresholds.toml")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1536.0, "bytes", "1.50 KiB"), (12.0, "bytes", "12 B"), (2.0**31, "bytes", "2.00 GiB"),
        (4096.0, "bytes/round", "4.00 KiB/round"), (1234.0, "instructions", "1,234 instructions"),
        (0.25, "s", "250 ms"), (1.25, "s", "1.25 s"), (12.345, "%", "12.3 %"),
    ],
)  # fmt: skip
def test_quantities_for_people(value: float, unit: str, text: str) -> None:
    assert format_quantity(value, unit) == text


def test_sentence_states_figure_threshold_and_origin() -> None:
    text = verdict(Outcome.REGRESSED).sentence()
    assert text.startswith("churn instructions: regressed")
    assert "+0.500 %" in text and "0.050 % (thresholds.toml: instructions of *)" in text
