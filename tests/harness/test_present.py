"""Tables, figures and progress: what a reader sees must be what was measured."""

from __future__ import annotations

import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from harness.present.figures import COLUMNS, Guide, cell, ratio, show
from harness.present.matrix import as_data, as_markdown, as_table, matrix, spread_note
from harness.present.outcome import exit_code, outcome_data, print_outcome
from harness.present.progress import EstimatedTime, PlainProgress, TerminalProgress
from harness.present.summary import geometric_means
from results.records import Build, Measurement, Sample

INSTRUCTIONS, WALL = COLUMNS[0], COLUMNS[1]


def row(allocator="glibc", arm="reference", workload="churn", variant="default", provider="callgrind", status="ok",
        reason="", position=0, modes=None, **metrics):  # fmt: skip
    """Return a measurement with one sample a metric."""
    samples = tuple(Sample(name, "count", value) for name, value in metrics.items())
    return Measurement(
        run_id="r", build=Build(allocator, "1"), workload=workload, variant=variant, profile="quick",
        provider=provider, arm=arm, status=status, reason=reason, position=position, samples=samples,
        modes=modes or {}, duration_s=1.0,
    )  # fmt: skip


class TestCells:
    def test_repeats_are_their_median(self):
        rows = [row(instructions=value) for value in (10.0, 30.0, 11.0)]
        assert cell(rows, INSTRUCTIONS).value == 11.0

    def test_the_better_provider_comes_first_and_they_never_mix(self):
        rows = [row(provider="smaps", region_s=9.0), row(provider="hyperfine", wall_s=2.0)]
        assert cell(rows, WALL).value == 2.0
        assert cell(rows[:1], WALL).value == 9.0

    def test_several_operations_are_their_geometric_mean(self):
        samples = tuple(Sample("latency_ns", "ns", value, detail=name) for name, value in (("a", 10.0), ("b", 1000.0)))
        measurement = row(provider="gbench")
        rows = [Measurement(**{**measurement.__dict__, "samples": samples})]
        assert cell(rows, COLUMNS[-1]).value == pytest.approx(100.0)

    def test_a_time_says_how_far_its_runs_lie_apart(self):
        runs = tuple(Sample("wall_s", "s", v, checkpoint=i, label="run") for i, v in enumerate((1.0, 1.1, 1.4)))
        rows = [Measurement(**{**row(provider="hyperfine").__dict__, "samples": runs})]
        assert cell(rows, WALL).spread == pytest.approx(0.2 / 1.1)
        (block,) = matrix(rows, Guide({}, {}, {"churn": "One line."}))
        assert "1.100 s ±18 %" in as_markdown([block]) and block.summary == "One line."
        assert "not told apart" in spread_note([block]) and spread_note(matrix([row(instructions=1.0)])) == ""

    def test_a_missing_figure_keeps_its_reason(self):
        found = cell([row(status="failed", reason="it broke")], INSTRUCTIONS)
        assert found.value is None and found.reason == "it broke"

    @pytest.mark.parametrize(
        ("value", "unit", "text"),
        [
            (None, "s", "–"), (512, "byte", "512 B"), (1536, "byte", "1.50 KiB"), (3 << 20, "byte", "3.00 MiB"),
            (0.0123, "s", "12.30 ms"), (2.5, "s", "2.500 s"), (20.54, "ns", "20.5 ns"),
            (25000.0, "ns", "25.0 µs"), (4.2e7, "ns", "42.0 ms"), (1.1234, "ratio", "1.123"),
            (9999999, "count", "9,999,999"), (12345678, "count", "12,345,678"),
            (1.2345e10, "count", "12.35 G"), (652.0, "ns", "652 ns"), (1333800.0, "ns", "1.33 ms"),
        ],
    )  # fmt: skip
    def test_figures_carry_their_unit(self, value, unit, text):
        assert show(value, unit) == text

    @given(st.floats(1, 1e15), st.floats(1, 1e15))
    def test_a_ratio_is_a_ratio(self, value, base):
        assert float(ratio(value, base).rstrip("×").lstrip("<")) == pytest.approx(value / base, abs=0.0006)

    def test_a_small_ratio_is_not_nothing(self):
        assert (ratio(652.0, 1.666e6), ratio(1.0, 1e9), ratio(0.0, 5.0)) == ("0.000391×", "<0.0001×", "0.000×")

    def test_no_ratio_to_nothing(self):
        assert ratio(1.0, None) == ratio(None, 1.0) == ratio(1.0, 0.0) == "–"


class TestMatrix:
    def rows(self):
        """Return a run of two workloads with tree, pin and two references, one of them not there."""
        rows = []
        for workload, factor in (("churn", 1.0), ("remote", 2.0)):
            rows.append(row("glibc", "reference", workload, instructions=400.0 * factor))
            rows.append(row("ebb", "pin", workload, instructions=200.0 * factor))
            rows.append(row("ebb", "tree", workload, instructions=100.0 * factor, modes={"heap": "emulated"}))
            rows.append(row("scudo", "reference", workload, status="skipped", reason="scudo is not installed."))
        return rows

    def test_tree_and_pin_come_first_and_ratios_refer_to_the_tree(self):
        block = matrix(self.rows())[0]
        assert [r.arm for r in block.rows] == ["ebb (tree)", "ebb (pin)", "glibc", "scudo"]
        text = as_markdown([block])
        assert "| ebb (pin) | 200 | 2.000× |" in text and "| glibc | 400 | 4.000× |" in text

    def test_nothing_is_dropped_silently(self):
        text = as_markdown(matrix(self.rows()))
        assert text.count("scudo is not installed.") == 2 and "heap emulated" in text

    def test_data_for_machines_is_in_base_units(self):
        data = as_data(matrix(self.rows()))
        assert data[1]["workload"] == "remote" and data[1]["arms"][0]["figures"] == {"instructions": 200.0}

    def test_the_bare_name_is_the_manifest_s_first_variant(self):
        rows = [row(variant="medium", instructions=1.0), row(variant="default", instructions=1.0, position=1)]
        assert [b.workload for b in matrix(rows, Guide({"churn": "medium"}))] == ["churn", "churn:default"]
        assert [b.workload for b in matrix(rows[:1])] == ["churn:medium"]

    def test_a_workload_s_own_metrics_have_columns_and_time_only_where_it_is_about_time(self):
        rows = [row(provider="smaps", region_s=2.0, peak_rss_bytes=3.0, handover_ns_p50=7.0)]
        (block,) = matrix(rows, Guide({}, {"churn": ("rss_bytes", "handover_ns_p50")}))
        assert [column.title for column in block.columns] == ["peak RSS", "handover_ns_p50"]
        (silent,) = matrix(rows)
        assert [column.title for column in silent.columns] == ["wall", "peak RSS"]

    def test_of_a_series_the_last_checkpoint_is_shown(self):
        samples = tuple(Sample("floor_bytes", "byte", value, checkpoint=i) for i, value in enumerate((9.0, 5.0, 6.0)))
        rows = [Measurement(**{**row(provider="smaps").__dict__, "samples": samples})]
        (block,) = matrix(rows, Guide({}, {"churn": ("floor_bytes",)}))
        assert block.rows[0].cells["floor_bytes"].value == 6.0

    def test_geometric_means_over_the_workloads_both_have(self):
        means = {m["arm"]: m for m in geometric_means(matrix(self.rows()))}
        assert means["glibc"]["ratios"]["instructions"] == pytest.approx(4.0)
        assert means["glibc"]["workloads"]["instructions"] == 2 and "scudo" not in means

    def test_means_never_mix_two_arms_to_compare_with(self):
        rows = [row("ebb", "tree", "churn", instructions=100.0), row("glibc", workload="churn", instructions=400.0),
                row("ebb", "tree", "remote", status="failed", reason="it broke"),
                row("jemalloc", workload="remote", instructions=1.0), row("glibc", workload="remote", instructions=9.0)]  # fmt: skip
        means = {m["arm"]: m for m in geometric_means(matrix(rows))}
        assert means["glibc"] == {"arm": "glibc", "ratios": {"instructions": pytest.approx(4.0)}, "workloads": {"instructions": 1}}

    @given(st.lists(st.floats(1, 1e9), min_size=2, max_size=6))
    def test_the_mean_of_ratios_to_itself_is_one(self, values):
        rows = [row("ebb", "tree", f"w{i}", instructions=v) for i, v in enumerate(values)]
        (mean,) = geometric_means(matrix(rows))
        assert math.isclose(mean["ratios"]["instructions"], 1.0)

    def test_a_table_on_a_console_without_colour_has_no_control_characters(self):
        sink = io.StringIO()
        as_table(matrix(self.rows()), Console(file=sink, width=120, no_color=True, force_terminal=False))
        assert "ebb (tree)" in sink.getvalue() and "\x1b" not in sink.getvalue()


class TestOutcome:
    def test_exit_codes(self):
        good, failed, skipped = row(), row(status="failed"), row(status="skipped")
        assert exit_code([good, skipped], skipped_fails=False) == 0
        assert exit_code([good, skipped], skipped_fails=True) == 2
        assert exit_code([good, failed], skipped_fails=False) == 2
        assert exit_code([skipped], skipped_fails=False) == exit_code([], skipped_fails=False) == 2

    def test_every_reason_is_printed_once(self):
        sink = io.StringIO()
        rows = [row(instructions=1.0), *(row(status="skipped", reason="[no] such thing.", position=i) for i in (1, 2))]
        print_outcome(rows, 12.0, Console(file=sink, width=160, no_color=True))
        assert sink.getvalue().count("not measured: [no] such thing.") == 1
        assert "1 measured, 0 failed, 2 skipped; 12 s spent measuring" in sink.getvalue()

    def test_what_was_not_measured_is_data_too(self):
        (entry,) = outcome_data([row(status="failed", reason="x.")], "r", 1.0)["not_measured"]
        assert (entry["status"], entry["reason"], entry["provider"]) == ("failed", "x.", "callgrind")


class TestProgress:
    def test_time_left_follows_each_kind_of_job(self, bench):
        import dataclasses

        quick, slow = bench.job(provider="smaps"), bench.job(provider="callgrind")
        estimate = EstimatedTime()
        estimate.begin([quick, quick, slow, slow])
        assert estimate.left_s() is None
        estimate.ended(quick, 1.0)
        assert estimate.left_s() == pytest.approx(3.0)
        estimate.ended(slow, 9.0)
        assert estimate.left_s() == pytest.approx(10.0)
        estimate.ended(dataclasses.replace(quick, position=3), 1.0)
        assert estimate.left_s() == pytest.approx(9.0)

    def test_what_may_follow_is_told_apart_from_what_is_left(self, bench):
        job = bench.job(provider="smaps")
        estimate = EstimatedTime()
        estimate.begin([job])
        estimate.ahead([job] * 8)
        estimate.ended(job, 2.0)
        assert (estimate.left_s(), estimate.more_s_max()) == (0.0, pytest.approx(16.0))
        assert estimate.words() == "about 0 s left, then at most 16 s"
        estimate.ahead([])
        assert estimate.words() == "about 0 s left"

    def test_plain_lines_name_failures_and_the_end(self, bench):
        sink = io.StringIO()
        progress = PlainProgress(sink)
        progress.begin([bench.job(), bench.job()])
        progress.ended(bench.job(), row(status="failed", reason="it broke."))
        progress.ended(bench.job(), row())
        progress.close()
        assert "measuring: 2 executions" in sink.getvalue() and "failed: it broke." in sink.getvalue()
        assert "measuring: 2 of 2" in sink.getvalue()

    def test_a_terminal_gets_a_bar_that_goes_away(self, bench):
        sink = io.StringIO()
        progress = TerminalProgress(Console(file=sink, force_terminal=True, width=100))
        progress.begin([bench.job()])
        progress.started(bench.job())
        progress.ended(bench.job(), row(status="failed", reason="[it] broke."))
        progress.begin([bench.job()])  # a gate asks for more jobs once it has seen the first
        progress.ended(bench.job(), row())
        progress.close()
        assert "failed: [it] broke." in sink.getvalue()
