"""The gate on an allocator whose faults are known: exit codes, names, reports."""

from __future__ import annotations

import json
from pathlib import Path

from junitparser import Failure, JUnitXml

from harness.analyze.planted import PlantedCheckout
from results import open_store
from tests.harness.analyze.conftest import Tidemark


def test_an_instruction_in_free_fails_and_is_explained(
    tidemark: Tidemark, checkout: PlantedCheckout, slower_free: str, tmp_path: Path
) -> None:
    junit, markdown = tmp_path / "gate.xml", tmp_path / "gate.md"
    answer = tidemark("gate", "--quick", "--pin", checkout.clean, "--revision", slower_free, "-w", "pairs",
                      "--junit", str(junit), "--markdown", str(markdown), "--annotations")  # fmt: skip
    assert answer.code == 1
    assert "pairs instructions: regressed" in answer.out
    assert "+0.797 %" in answer.out and "threshold 0.050 % (thresholds.toml: instructions of *)" in answer.out
    assert "free (libplanted.so) costs more a call: +0.499" in answer.out
    assert "::error title=pairs%3A regressed::" in answer.out
    (case,) = [case for suite in JUnitXml.fromfile(str(junit)) for case in suite]
    assert case.classname == "pairs" and isinstance(case.result[0], Failure)
    assert "**pairs**" in markdown.read_text() and "costs more a call" in markdown.read_text()


def test_a_leak_fails_naming_the_memory_workload(tidemark: Tidemark, checkout: PlantedCheckout, leak: str) -> None:
    answer = tidemark("gate", "--quick", "--pin", checkout.clean, "--revision", leak, "-w", "rounds", "--json")
    document = json.loads(answer.out)
    (verdict,) = document["verdicts"]
    assert (answer.code, verdict["workload"], verdict["outcome"]) == (1, "rounds", "growing")
    assert verdict["figure"] > verdict["threshold"]["value"] > 0
    assert verdict["command"].startswith("./tidemark gate --quick --workload rounds:default")
    assert any("ramps" in reason and "rss_bytes" in reason for reason in document["why"])
    assert any("ramps" in reason and "allocator_carved_bytes" in reason for reason in document["why"]), "its own words"


def test_the_same_code_is_unchanged_without_measuring(tidemark: Tidemark, checkout: PlantedCheckout) -> None:
    again = checkout.plant({}, "the same code in another commit")
    answer = tidemark("gate", "--quick", "--pin", checkout.clean, "--revision", again, "--json")
    verdicts = json.loads(answer.out)["verdicts"]
    assert answer.code == 0
    assert {verdict["outcome"] for verdict in verdicts} == {"unchanged"}
    assert all("nothing was measured" in verdict["reason"] for verdict in verdicts)
    with open_store() as store:
        assert store.runs(kind="gate") == []


def test_a_crash_is_not_measured_and_keeps_its_row(tidemark: Tidemark, checkout: PlantedCheckout) -> None:
    crash = checkout.plant({"CRASH_AT": 40000}, "a crash")
    answer = tidemark(
        "gate", "--quick", "--pin", checkout.clean, "--revision", crash, "-w", "rounds", "--inconclusive", "pass"
    )
    assert answer.code == 2
    assert "ended by SIGILL" in answer.out
    with open_store() as store:
        assert [m.status for m in store.measurements(provider="smaps", arm=crash[:12])] == ["failed"]


def test_the_working_tree_is_judged_against_the_pin_file(tidemark: Tidemark, checkout: PlantedCheckout) -> None:
    pin = checkout.layout.pin_file
    pin.write_text(
        f'format = 1\ncommit = "{checkout.clean}"\nreason = "a first pin"\npinned_at = "2026-01-01"\n'
        'profile = "quick"\n\n[environment]\nkey = "0000000000000000"\n'
    )
    checkout.plant({"MALLOC_CALLS": 1}, "a call in malloc")
    checkout.build_tree()
    try:
        answer = tidemark("gate", "--quick", "-w", "pairs")
    finally:
        pin.unlink()
    assert answer.code == 1
    assert "checked_class (libplanted.so) new" in answer.out
    assert f"against the pin {checkout.clean[:12]}" in answer.out


def test_bad_input_is_one_sentence_and_exit_2(tidemark: Tidemark, checkout: PlantedCheckout, tmp_path: Path) -> None:
    for arguments, sentence in (
        (["--pin", "nowhere"], "There is no commit nowhere"),
        (["--pin", checkout.clean, "--workload", "nothing"], "There is no workload nothing"),
        (["--allocator", "nobody"], "There is no allocator nobody"),
        (
            ["--pin", checkout.clean, "--revision", checkout.clean, "--junit", str(tmp_path / "no" / "file")],
            "There is no folder",
        ),
        (["--revision", checkout.clean], "Nothing is pinned"),
        (["--pin", checkout.clean, "--revision", checkout.clean, "-w", "silent", "--inconclusive", "maybe"], "maybe"),
    ):
        answer = tidemark("gate", "--quick", *arguments)
        assert answer.code == 2, arguments
        assert sentence in answer.err and len(answer.err.strip().splitlines()) == 1, answer.err
