"""Building: where the site goes, what it takes from the store, and what its pieces compute."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

import dashboards
from dashboards import figures
from dashboards.arms import STYLES, arms_of
from dashboards.line_chart import Line, LineChart, Point, nice_ticks, render
from dashboards.matrix import matrices
from dashboards.summary import is_smaller_better, summarize
from results import Build, Measurement, Sample, Store

ROOT = Path(__file__).resolve().parents[2]


def test_a_new_site_takes_the_place_of_the_old_one(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "site"
    dashboards.build(store, out)
    (out / "workload-gone.html").write_text("from an earlier build")
    before = {path.name for path in out.iterdir()}
    assert dashboards.build(store, out) == out
    assert {path.name for path in out.iterdir()} == before - {"workload-gone.html"}
    assert [path.name for path in out.parent.iterdir()] == ["site"]


def test_a_folder_of_somebody_else_is_refused_and_kept(store: Store, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("ten years")
    with pytest.raises(dashboards.DashboardError, match="holds other files"):
        dashboards.build(store, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(dashboards.DashboardError, match="is a file"):
        dashboards.build(store, tmp_path / "thesis.txt")
    with pytest.raises(dashboards.DashboardError, match="can't be written"):
        dashboards.build(store, tmp_path / "thesis.txt" / "site")


def test_an_empty_folder_is_used(store: Store, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    dashboards.build(store, tmp_path / "site")
    assert (tmp_path / "site" / "index.html").is_file()


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dashboards", *arguments], cwd=ROOT, capture_output=True, text=True)


def test_the_command_builds_and_says_where(store: Store, tmp_path: Path) -> None:
    done = _run("--out", str(tmp_path / "site"), "--store", store.location)
    assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / "site" / "index.html")), done.stderr
    assert (tmp_path / "site" / "index.html").is_file()


def test_the_command_takes_the_history_from_a_file(store: Store, tmp_path: Path) -> None:
    revisions = list(dict.fromkeys(each.build.revision for each in store.measurements(allocator="ebb", samples=False)))
    (tmp_path / "history").write_text("\n".join(revisions[::-1]))
    done = _run("--out", str(tmp_path / "site"), "--store", store.location, "--history", str(tmp_path / "history"))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "site" / "timeline.html").read_text(encoding="utf-8")
    table = text.split("<tbody>")[1].split("</tbody>")[0]
    assert [table.index(revision[:10]) for revision in revisions] == sorted(
        (table.index(revision[:10]) for revision in revisions), reverse=True
    )


def test_the_command_says_in_one_sentence_what_is_wrong(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a database, and long enough to be read as one")
    for arguments in (
        ("--out", str(tmp_path / "file"), "--store", store.location),
        ("--out", str(tmp_path / "site"), "--store", str(tmp_path / "file")),
        ("--out", str(tmp_path / "site"), "--store", store.location, "--run", "absent"),
    ):
        done = _run(*arguments)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.startswith("dashboards: ") and done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "site").exists()


def test_the_same_store_gives_the_same_site(store: Store, tmp_path: Path) -> None:
    def pages(folder: Path) -> dict[str, str]:
        built = dashboards.build(store, folder)
        texts = {path.name: path.read_text(encoding="utf-8") for path in built.glob("*.html")}
        return {name: text.split("<footer>")[0] for name, text in texts.items()}

    assert pages(tmp_path / "one") == pages(tmp_path / "two")


def test_building_sends_a_number_of_statements_that_depends_on_comparisons_only(store: Store, tmp_path: Path) -> None:
    sent = []

    def note(connection, cursor, statement, parameters, context, executemany) -> None:  # type: ignore[no-untyped-def]
        sent.append(statement)

    sa.event.listen(store._engine, "before_cursor_execute", note)
    try:
        dashboards.build(store, tmp_path / "site")
    finally:
        sa.event.remove(store._engine, "before_cursor_execute", note)
    selects = [statement for statement in sent if statement.startswith("SELECT")]
    explained = len(store.attachment_kinds(store.runs(kind="compare")[0].id))
    assert len(selects) <= 15 + explained


def test_dashboards_reads_only_results() -> None:
    for path in (ROOT / "dashboards").glob("**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] == "harness"], path.name


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("byte", 0, "0 B"), ("byte", 1023, "1023 B"), ("byte", 1536, "1.500 KiB"), ("bytes", 3 << 30, "3 GiB"),
        ("s", 0.25, "250 ms"), ("s", 90, "90 s"), ("s", 3.5e-6, "3.500 µs"), ("ns", 12.34, "12.34 ns"),
        ("ns", 4567.8, "4.568 µs"), ("count", 31_200_000, "31.20 M"), ("instructions", 1234, "1.234 k"),
        ("count", 7, "7"), ("", -2500, "−2.500 k"), ("page", 12, "12 page"),
    ],
)  # fmt: skip
def test_figures_are_written_in_the_unit_that_reads_best(unit: str, value: float, text: str) -> None:
    assert figures.format_value(unit, value) == text


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (100, 100, "unchanged"),
        (0, 5, "new"),
        (100, 101.5, "+1.50 %"),
        (200, 100, "−50.0 %"),
        (1e6, 1e6 + 1, "+0.0001 %"),
    ],
)
def test_changes_have_a_sign_and_enough_decimals(before: float, after: float, text: str) -> None:
    assert figures.format_delta(before, after) == text


def test_the_steps_of_a_ratio_are_ordered() -> None:
    ratios = [1.0, 1.001, 1.02, 1.05, 1.10, 1.2, 1.5, 2.0, 3.0, 4.0, 9.0, math.inf]
    steps = [figures.ratio_step(ratio) for ratio in ratios]
    assert steps == [0, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6, 6]
    assert figures.format_ratio(1.0004) == "×1.0004"
    assert figures.format_ratio(math.inf) == "best is 0"


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12))
def test_ticks_cover_the_range_with_few_round_numbers(low: float, span: float) -> None:
    high = low + span
    if high - low < 1e-9 * abs(low):
        return
    ticks = nice_ticks(low, high)
    step = ticks[1] - ticks[0]
    assert ticks[0] <= low + 1e-6 * step and ticks[-1] >= high - 1e-6 * step
    assert 2 <= len(ticks) <= 9
    assert len({figures.tick_text(tick, step) for tick in ticks}) == len(ticks)


def _chart(points: list[Point]) -> str:
    return str(render(LineChart("c", "t", "d", "x", "byte", (Line("one", 0, tuple(points)),))))


def test_a_chart_of_one_point_and_of_none_can_be_drawn() -> None:
    assert _chart([Point(3, 5.0, "only")]).count("<circle") == 1
    assert "No figure was measured" in _chart([])
    assert _chart([Point(0, 0.0, "zero"), Point(1, 0.0, "zero")]).count("<circle") == 2


@given(st.lists(st.floats(0, 1e15), min_size=1, max_size=30))
def test_every_point_of_a_chart_lies_inside_its_frame(values: list[float]) -> None:
    import re

    drawn = _chart([Point(n, value, "p") for n, value in enumerate(values)])
    places = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.-]+)" cy="([\d.-]+)"', drawn)]
    assert len(places) == len(values)
    assert all(67.9 <= x <= 702.1 and 29.9 <= y <= 256.1 for x, y in places)


def _measured(allocator: str, workload: str, value: float | None, arm: str = "reference") -> Measurement:
    samples = () if value is None else (Sample("instructions", "count", value),)
    return Measurement(
        "r", Build(allocator, "1"), workload, "default", "quick", "callgrind", arm,
        "ok" if value is not None else "skipped", samples=samples,
    )  # fmt: skip


def test_the_geometric_mean_is_taken_over_rows_that_all_measured_arms_have() -> None:
    measurements = [
        _measured("a", "w1", 10), _measured("b", "w1", 40), _measured("c", "w1", None),
        _measured("a", "w2", 90), _measured("b", "w2", 10), _measured("c", "w2", None),
        _measured("a", "w3", 10), _measured("b", "w3", None), _measured("c", "w3", None),
    ]  # fmt: skip
    (matrix,) = matrices(summarize(measurements), arms_of(measurements))
    assert matrix.mean_rows == 2
    assert [mean.value and round(mean.value, 9) for mean in matrix.means] == [3.0, 2.0, None]
    assert [arm.name for _, arm in matrix.ranking] == ["b", "a"]


def test_one_common_row_is_no_mean() -> None:
    measurements = [
        _measured("a", "w1", 10),
        _measured("b", "w1", 40),
        _measured("a", "w2", 10),
        _measured("b", "w2", None),
    ]
    (matrix,) = matrices(summarize(measurements), arms_of(measurements))
    assert matrix.means == () and matrix.ranking == []


def test_a_region_is_timed_in_the_matrix_only_where_nothing_else_is() -> None:
    def timed(workload: str, provider: str, **figures: float) -> Measurement:
        samples = tuple(Sample(metric, "s", value) for metric, value in figures.items())
        return Measurement(
            "r", Build("a", "1"), workload, "default", "quick", provider, "reference", "ok", samples=samples
        )

    measurements = [
        timed("w1", "hyperfine", wall_s=2.0, region_s=1.0),
        timed("w1", "smaps", region_s=1.5),
        timed("w2", "smaps", region_s=3.0),
    ]
    tables = matrices(summarize(measurements), arms_of(measurements))
    shown = {(table.key.metric, table.key.provider): [row.label for row in table.rows] for table in tables}
    assert shown == {("wall_s", "hyperfine"): ["w1"], ("region_s", "smaps"): ["w2"]}


def test_a_row_of_zeros_has_no_best() -> None:
    measurements = [_measured("a", "w1", 0), _measured("b", "w1", 0)]
    (matrix,) = matrices(summarize(measurements), arms_of(measurements))
    assert [(cell.is_best, cell.step, cell.text) for cell in matrix.rows[0].cells] == [(False, None, "0")] * 2


def test_a_best_of_zero_ranks_the_others_last() -> None:
    measurements = [_measured("a", "w1", 0), _measured("b", "w1", 40)]
    (matrix,) = matrices(summarize(measurements), arms_of(measurements))
    assert [(cell.is_best, cell.step) for cell in matrix.rows[0].cells] == [(True, 0), (False, 6)]


def test_repeats_that_failed_are_counted_beside_those_that_did_not() -> None:
    measurements = [_measured("a", "w1", 10), _measured("a", "w1", None), _measured("a", "w1", 30)]
    (matrix,) = matrices(summarize(measurements), arms_of(measurements))
    cell = matrix.rows[0].cells[0]
    assert (cell.value, cell.broken) == (20.0, 1) and "1 more failed" in cell.title


def test_arms_keep_their_styles_apart() -> None:
    references = [_measured(f"a{n}", "w", 1.0) for n in range(STYLES - 2)]
    own = [_measured("ebb", "w", 1.0, arm) for arm in ("pin", "tree")]
    styles = {arm.name: arm.style for arm in arms_of(references + own)}
    assert len(set(styles.values())) == STYLES
    assert (styles["ebb (tree)"], styles["ebb (pin)"]) == (0, 1)
    assert {arm.name: arm.style for arm in arms_of(references)}.items() <= styles.items()


@pytest.mark.parametrize(
    ("metric", "smaller"),
    [("peak_rss_bytes", True), ("handover_ns_p999", True), ("faults_minor", True), ("wall_s", True),
     ("operations_per_s", False), ("operations", False), ("hit_rate", False)],
)  # fmt: skip
def test_only_metrics_that_are_better_when_smaller_are_ranked(metric: str, smaller: bool) -> None:
    assert is_smaller_better(metric) is smaller
