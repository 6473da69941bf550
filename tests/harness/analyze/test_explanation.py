"""Explanations of profiles made here: entry counts, aliases, words and the stored record."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from harness.analyze.disassembly import function_starts
from harness.analyze.evidence import sentences_of
from harness.analyze.explanation import CountExplanation, Side, explain_counts
from harness.analyze.explanation_text import print_explanation
from harness.analyze.profile_diff import Change, Function, Symbols, difference
from harness.collect.callgrind_profile import Call, Profile
from harness.collect.callgrind_profile import Function as Recorded

SOURCE = """
int ebb_free(int x) {{ {extra} return x + 1; }}
int free_one(int x) __attribute__((alias("ebb_free")));
{alias}
"""


def library(folder: Path, extra: str = "", alias: str = "") -> Path:
    folder.mkdir()
    source, target = folder / "heap.c", folder / "libtest.so"
    source.write_text(SOURCE.format(extra=extra, alias=alias))
    subprocess.run(["gcc", "-O2", "-g", "-shared", "-fPIC", "-o", str(target), str(source)], check=True)
    return target


def profile_of(binary: Path, name: str, cost: int, entered: int) -> Profile:
    made = Profile()
    function = Recorded(str(binary), "heap.c", name)
    made.functions[function] = cost
    made.total = cost
    made.addresses[(str(binary), function_starts(binary)[name])] = entered
    # Callgrind counted more calls than were charged: some lay outside the region.
    made.calls[Call(Recorded("/bin/main", "main.c", "main"), function)] = 3 * entered
    return made


@pytest.fixture
def explanation(tmp_path: Path) -> CountExplanation:
    before = library(tmp_path / "before")
    after = library(
        tmp_path / "after", '__asm__ volatile("nop");', 'int give(int x) __attribute__((alias("ebb_free")));'
    )
    sides = (
        Side("before", "a", profile_of(before, "free_one", 2000, 1000), 1000, before),
        Side("after", "b", profile_of(after, "ebb_free", 3000, 1000), 1000, after),
    )
    return explain_counts("churn", *sides)


def test_calls_are_entries_and_not_what_was_called_outside_the_region(tmp_path: Path) -> None:
    binary = library(tmp_path / "only")
    side = Side("x", "a", profile_of(binary, "free_one", 2000, 1000), 1000, binary)
    (entered,) = side.symbols().entered.values()
    assert entered == 1000


def test_another_alias_in_one_build_does_not_rename_the_function(tmp_path: Path) -> None:
    one, other = Function("l.so", "ebb_free"), Function("l.so", "free")
    before, after = Profile(), Profile()
    before.functions[Recorded("l.so", "", "ebb_free")] = 100
    after.functions[Recorded("l.so", "", "free")] = 200
    symbols = Symbols(names={one: other}), Symbols(names={one: other})
    (found,) = difference(before, after, (100, 100), symbols=symbols).functions
    assert (found.function, found.change) == (other, Change.DEARER)


def test_the_record_is_json_and_its_parts_add_up(explanation: CountExplanation) -> None:
    record = json.loads(json.dumps(explanation.as_dict()))
    assert record["delta_per_operation"] == pytest.approx(1.0)
    assert sum(item["delta"] for item in record["functions"]) == pytest.approx(1.0)
    assert record["before"] == {"name": "before", "per_operation": 2.0, "operations": 1000}


def test_everything_is_printed_with_names_as_they_are(explanation: CountExplanation) -> None:
    console = Console(width=160, no_color=True, record=True, file=io.StringIO())
    print_explanation(explanation, console, listings=True)
    text = console.export_text()
    assert "churn: before → after" in text
    assert "own instructions per operation" in text and "libtest.so" in text


def test_workloads_that_moved_for_one_reason_say_it_once(explanation: CountExplanation) -> None:
    sentences = sentences_of([explanation, explanation])
    assert len(sentences) == len(explanation.sentences) + 1
    assert sentences[-1].startswith("churn: +1.000 instructions per operation")
