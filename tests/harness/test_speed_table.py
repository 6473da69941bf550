"""The speed table: what it subtracts, divides, compares and refuses to say, on made-up measurements."""

from __future__ import annotations

import dataclasses
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from harness.model.layout import Layout
from harness.model.workload import load_workloads
from harness.present.figures import Guide
from harness.present.speed_table import (
    BEST, LOOP, LOOP_ARM, OPERATION_ROWS, SINGLE_WORKLOADS, Goal, Row, SpeedTable, as_data, as_markdown, fixed_set,
    loop_workload, needed, print_speed_table, speed_table, without_loop,
)  # fmt: skip
from results.records import Build, Measurement, Sample

FIXED = (("churn", "default"), ("remote", "default"), ("park", "default"))


def made(allocator: str, workload: str, variant: str = "default", provider: str = "callgrind", arm: str = "",
         status: str = "ok", reason: str = "", operations: int = 1000, **metrics: float) -> Measurement:  # fmt: skip
    """Return a measurement; `ebb` is the tree, `null` the loop, every other allocator a reference."""
    role = arm or {"ebb": "tree", "null": LOOP_ARM}.get(allocator, "reference")
    samples = tuple(Sample(name, "count", value) for name, value in metrics.items())
    return Measurement(
        run_id="r", build=Build(allocator, "1"), workload=workload, variant=variant, profile="quick",
        provider=provider, arm=role, status=status, reason=reason, operations=operations,  # type: ignore[arg-type]
        samples=samples, duration_s=1.0,
    )  # fmt: skip


def pairs(**instructions: float) -> list[Measurement]:
    """Return counts of churn_bare for each allocator, and 64 instructions an iteration for the loop."""
    return [made(name, "churn_bare", instructions=value) for name, value in instructions.items()] + [
        made("null", LOOP, instructions=64_000.0)
    ]


def table_of(*measurements: Measurement, guide: Guide = Guide()) -> SpeedTable:
    return speed_table(measurements, FIXED, "glibc", guide)


def row_of(table: SpeedTable, key: str) -> Row:
    (row,) = [row for row in table.rows if row.key == key]
    return row


class TestGoals:
    @pytest.mark.parametrize(
        ("goal", "own", "references", "reached"),
        [
            (Goal("", 31.0), 31.0, [], True), (Goal("", 31.0), 31.1, [200.0], False), (BEST, 5.0, [6.0, 5.0], True),
            (BEST, 5.1, [6.0, 5.0], False), (BEST, 5.0, [], None), (Goal("", factor=0.95), 1.0, [1.06], True),
            (Goal("", factor=0.95), 1.0, [1.04, 2.0], False),
        ],
    )  # fmt: skip
    def test_a_limit_or_the_best_reference(
        self, goal: Goal, own: float, references: list[float], reached: bool | None
    ) -> None:
        assert goal.reached(own, references) is reached

    @given(st.floats(0.0, 1e12), st.lists(st.floats(0.0, 1e12), min_size=1))
    def test_reaching_the_best_is_being_the_least(self, own: float, references: list[float]) -> None:
        assert BEST.reached(own, references) is (own == min(own, *references))


class TestPairs:
    def test_the_loop_is_subtracted_and_the_rest_is_by_the_pair(self) -> None:
        table = table_of(*pairs(ebb=93_800.0, glibc=193_000.0))
        row = row_of(table, "churn_default")
        assert row.figures == pytest.approx({"ebb (tree)": 29.8, "glibc": 129.0})
        assert table.verdict(row) == "reached" and "64.0 instructions" in row.note

    def test_one_instruction_too_many_misses(self) -> None:
        table = table_of(*pairs(ebb=95_100.0))
        assert table.verdict(row_of(table, "churn_default")) == "missed"

    def test_without_the_loop_there_is_no_figure(self) -> None:
        table = table_of(*pairs(ebb=93_800.0)[:1])
        row = row_of(table, "churn_default")
        assert not row.figures and "churn_loop" in row.missing["ebb (tree)"]
        assert table.verdict(row) == "cannot tell"

    def test_a_failed_loop_gives_its_reason(self) -> None:
        measurements = [pairs(ebb=1.0)[0], made("null", LOOP, status="failed", reason="It was lost.")]
        assert row_of(table_of(*measurements), "churn_default").missing == {"ebb (tree)": "It was lost."}

    def test_the_loop_is_nobody_s_column(self) -> None:
        measurements = pairs(ebb=93_800.0, glibc=193_000.0)
        assert table_of(*measurements).references == ("glibc",)
        assert [m.build.allocator for m in without_loop(measurements)] == ["ebb", "glibc"]


class TestRows:
    def test_the_pin_is_no_reference(self) -> None:
        table = table_of(*pairs(ebb=93_800.0), made("ebb", "churn_bare", arm="pin", instructions=1.0))
        assert table.references == () and row_of(table, "churn_default").figures["ebb (tree)"] == pytest.approx(29.8)

    def test_remote_is_in_nanoseconds_a_block(self) -> None:
        rows = [made(name, "remote", provider="hyperfine", operations=1_000_000, wall_s=wall)
                for name, wall in (("ebb", 0.02), ("jemalloc", 0.016))]  # fmt: skip
        table = table_of(*rows)
        row = row_of(table, "remote_wall")
        assert row.figures["jemalloc"] == pytest.approx(16.0) and table.verdict(row) == "missed"

    def test_start_up_is_over_the_libc_s_which_has_no_figure_itself(self) -> None:
        rows = [made(name, "startup", instructions=value) for name, value in (("ebb", 170_001.0), ("glibc", 140_000.0))]
        table = table_of(*rows)
        row = row_of(table, "startup_instructions")
        assert row.figures == {"ebb (tree)": 30_001.0} and table.verdict(row) == "missed" and "140,000" in row.note

    def test_start_up_without_the_libc_cannot_tell(self) -> None:
        table = table_of(made("ebb", "startup", instructions=1.0))
        row = row_of(table, "startup_instructions")
        assert table.verdict(row) == "cannot tell" and "glibc has no figure" in row.missing["ebb (tree)"]

    def test_what_workloads_report_themselves(self) -> None:
        table = table_of(
            made("ebb", "idle_threads", provider="smaps", heap_bytes=32_768.0, left_bytes=4096.0),
            made("glibc", "idle_threads", provider="smaps", heap_bytes=18_432.0, left_bytes=1024.0),
            made("ebb", "waste", provider="smaps", usable_worst_ratio=1.125, resident_worst_ratio=1.2),
        )
        verdicts = {row.key: table.verdict(row) for row in table.rows}
        assert verdicts["idle_thread"] == verdicts["waste_usable"] == "reached"
        assert verdicts["idle_thread_left"] == verdicts["waste_resident"] == "missed"

    def test_operations_are_compared_in_instructions_and_in_faults(self) -> None:
        table = table_of(
            made("ebb", "realloc", "vector", instructions=50_000.0),
            made("ebb", "realloc", "vector", provider="smaps", faults_minor=70.0),
            made("glibc", "realloc", "vector", instructions=40_000.0),
            made("glibc", "realloc", "vector", provider="smaps", faults_minor=90.0),
        )
        count, faults = row_of(table, "realloc_vector_instructions"), row_of(table, "realloc_vector_faults")
        assert count.figures == {"ebb (tree)": 50.0, "glibc": 40.0} and table.verdict(count) == "missed"
        assert faults.figures == {"ebb (tree)": 70.0, "glibc": 90.0} and table.verdict(faults) == "reached"


class TestMeans:
    def walls(self, name: str, *values: float) -> list[Measurement]:
        return [made(name, workload, provider="hyperfine", wall_s=value)
                for (workload, _), value in zip(FIXED, values)]  # fmt: skip

    def test_the_mean_is_geometric_and_relative_to_the_tree(self) -> None:
        table = table_of(*self.walls("ebb", 1.0, 2.0, 4.0), *self.walls("glibc", 2.0, 4.0, 8.0))
        row = row_of(table, "fixed_wall")
        assert row.figures == pytest.approx({"ebb (tree)": 1.0, "glibc": 2.0})
        assert table.verdict(row) == "reached" and "over 3 workloads" in row.note

    def test_only_workloads_that_all_have_count_and_the_rest_is_named(self) -> None:
        broken = made("glibc", "park", provider="hyperfine", status="failed", reason="It hung.")
        table = table_of(*self.walls("ebb", 1.0, 1.0, 1.0), *self.walls("glibc", 4.0, 1.0), broken)
        row = row_of(table, "fixed_wall")
        assert row.figures["glibc"] == pytest.approx(2.0)
        assert "over 2 workloads; left out, with who has no figure: park:default (glibc)" in row.note

    def test_an_allocator_without_any_figure_shrinks_nothing(self) -> None:
        gone = [made("scudo", w, provider="hyperfine", status="skipped", reason="Not installed.") for w, _ in FIXED]
        row = row_of(table_of(*self.walls("ebb", 1.0, 1.0, 1.0), *self.walls("glibc", 2.0, 2.0, 2.0), *gone),
                     "fixed_wall")  # fmt: skip
        assert "over 3 workloads" in row.note and row.missing == {"scudo": "Not installed."}

    def test_a_workload_that_is_not_about_time_is_not_timed(self) -> None:
        guide = Guide({}, {"park": ("rss_bytes",)})
        table = table_of(*self.walls("ebb", 1.0, 1.0, 1.0), *self.walls("glibc", 2.0, 2.0, 64.0), guide=guide)
        assert row_of(table, "fixed_wall").figures["glibc"] == pytest.approx(2.0)


class TestTexts:
    def table(self) -> SpeedTable:
        gone = made("scudo", "churn_bare", status="skipped", reason="scudo is not | installed.")
        return table_of(*pairs(ebb=93_800.0, glibc=193_000.0), gone)

    def test_markdown_has_a_column_for_all_that_have_figures(self) -> None:
        lines = as_markdown(self.table()).splitlines()
        assert lines[0] == "| what | goal | ebb (tree) | glibc | verdict |"
        assert lines[2] == "| churn 16–1039 B, a pair of malloc and free | ≤ 31 | 29.8 | 129.0 | reached |"
        assert all(line.count("|") == lines[0].count("|") for line in lines[2 : lines.index("")])

    def test_what_was_not_measured_is_said(self) -> None:
        text = as_markdown(self.table())
        assert "not measured: churn 16–1039 B, a pair of malloc and free (scudo): scudo is not | installed." in text
        assert "remote:default was not measured in this run: run `./tidemark bench --set speed`." in text

    def test_what_several_lack_is_said_once(self) -> None:
        broken = [made(name, "waste", provider="smaps", status="failed", reason=f"waste under {name} hung.")
                  for name in ("ebb", "glibc")]  # fmt: skip
        (sentence,) = [text for text in table_of(*broken).not_measured() if "hung" in text]
        assert sentence.endswith("(ebb (tree), glibc): waste under ebb hung.")

    def test_the_same_for_people_and_for_machines(self) -> None:
        sink = io.StringIO()
        print_speed_table(self.table(), Console(file=sink, width=200, no_color=True))
        assert "29.8" in sink.getvalue() and "scudo is not | installed." in sink.getvalue()
        data: dict[str, Any] = json.loads(json.dumps(as_data(self.table())))
        (entry,) = [row for row in data["rows"] if row["key"] == "churn_default"]
        assert entry["figures"]["glibc"] == pytest.approx(129.0) and entry["verdict"] == "reached"
        assert entry["not_measured"] == {"scudo": "scudo is not | installed."}

    def test_a_run_of_nothing_is_a_table_that_cannot_tell(self) -> None:
        table = table_of()
        assert {table.verdict(row) for row in table.rows} == {"cannot tell"}


class TestTheCheckout:
    """The table names workloads of this repository, which may be renamed."""

    def test_every_row_s_workload_exists_and_is_measured(self) -> None:
        known = load_workloads(Layout.discover())
        labels = {(workload.name, variant.name) for workload, variant in needed(known)}
        named = [tuple(name.split(":")) for name in SINGLE_WORKLOADS]
        assert labels >= {*named, *((workload, variant) for _, workload, variant in OPERATION_ROWS)}
        assert labels >= {(workload.name, variant.name) for workload, variant in fixed_set(known)}

    def test_metrics_that_rows_show_are_asked_for(self) -> None:
        known = load_workloads(Layout.discover())
        for _, workload, _ in OPERATION_ROWS:
            assert {"instructions", "rss_bytes"} <= set(known[workload].metrics)
        assert {"heap_bytes", "left_bytes"} <= set(known["idle_threads"].metrics)
        assert {"usable_worst_ratio", "resident_worst_ratio"} <= set(known["waste"].metrics)

    def test_the_loop_has_the_variants_it_is_subtracted_from(self) -> None:
        bare = load_workloads(Layout.discover())["churn_bare"]
        loop = loop_workload({"churn_bare": bare})
        assert (loop.name, loop.binary) == (LOOP, LOOP) and loop.variants == bare.variants
        assert dataclasses.replace(loop, name=bare.name, binary=bare.binary, metrics=bare.metrics) == bare
