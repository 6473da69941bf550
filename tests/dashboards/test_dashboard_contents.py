"""What the pages show is what the store holds: figures, points, deltas, and above all what failed."""

from __future__ import annotations

import dataclasses
import json
import statistics
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import dashboards
from browser import Browser
from dashboards.explanation import read_explanation, read_verdicts
from results import Attachment, Build, Measurement, Run, Sample, Store, open_store
from sample_results import ALLOCATORS, ENVIRONMENT, EPOCH, REVISIONS, ROUNDS, VERDICTS, WORKLOADS

TABLE = """(() => {
  const table = document.querySelector(arguments[0]);
  return [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => ({
    text: cell.innerText.trim(), title: cell.title, kind: cell.className,
    value: cell.dataset.value === undefined ? null : Number(cell.dataset.value),
  })));
})()"""


def table_of(browser: Browser, selector: str) -> list[list[dict[str, Any]]]:
    """Return a table's cells as the browser has them."""
    return list(browser.evaluate(TABLE, selector))


def matrix_selector(metric: str, provider: str) -> str:
    return f'table.matrix[data-metric="{metric}"][data-provider="{provider}"]'


MATRICES = [
    ("instructions", "callgrind", "instructions", 1),
    ("wall_s", "hyperfine", "wall_s", 5),
    ("peak_rss_bytes", "smaps", "peak_rss_bytes", 3),
    ("end_rss_bytes", "smaps", "end_rss_bytes", 3),
]


@pytest.mark.parametrize(("metric", "provider", "sample", "count"), MATRICES)
def test_the_matrix_shows_the_medians_of_the_store(
    site: Path, browser: Browser, store: Store, bench: Run, metric: str, provider: str, sample: str, count: int
) -> None:
    browser.open(site / "index.html")
    rows = table_of(browser, matrix_selector(metric, provider))
    assert len(rows) == len(WORKLOADS)
    frame = store.samples_frame(run_id=bench.id, provider=provider, metric=sample)
    frame = frame[frame.detail.isna()]
    checked = 0
    for row in rows:
        workload, _, variant = row[0]["text"].partition(":")
        found = []
        for allocator, cell in zip(ALLOCATORS, row[1:]):
            own = frame[
                (frame.workload == workload) & (frame.variant == (variant or "default"))
                & (frame.allocator == allocator.name) & (frame.arm == allocator.arm)
            ]  # fmt: skip
            if own.empty:
                assert cell["value"] is None and cell["text"] in ("failed", "skipped") and cell["title"]
                continue
            assert len(own) == count
            assert cell["value"] == statistics.median(own.value)
            found.append(cell)
            checked += 1
        best = min(cell["value"] for cell in found)
        for cell in found:
            ratio = cell["value"] / best
            assert ("best" in cell["text"]) == (cell["value"] == best)
            assert ("step0" in cell["kind"]) == (cell["value"] == best)
            if ratio >= 1.01:
                assert f"×{ratio:.2f}" in cell["text"] or ratio >= 10
    assert checked >= len(WORKLOADS) * (len(ALLOCATORS) - 1) - 1


def test_arms_stand_in_order_with_their_roles(site: Path, browser: Browser) -> None:
    browser.open(site / "index.html")
    heads = browser.evaluate(
        "[...document.querySelector('table.matrix').tHead.rows[0].cells].map((each) => each.innerText)"
    )
    assert [head.split("\n")[0].strip() for head in heads[1:]] == [allocator.name for allocator in ALLOCATORS]
    assert "tree" in heads[1] and "pin" in heads[2]


def _column(browser: Browser, selector: str, column: int) -> list[float | None]:
    return [row[column]["value"] for row in table_of(browser, selector)]


def test_tables_sort_by_figures_and_by_names(site: Path, browser: Browser) -> None:
    browser.open(site / "index.html")
    selector = matrix_selector("peak_rss_bytes", "smaps")
    scudo = 1 + [allocator.name for allocator in ALLOCATORS].index("scudo")
    click = "document.querySelector(arguments[0]).tHead.rows[0].cells[arguments[1]].querySelector('button').click()"
    state = "document.querySelector(arguments[0]).tHead.rows[0].cells[arguments[1]].getAttribute('aria-sort')"
    figures = _column(browser, selector, scudo)
    assert figures.count(None) == 1
    known = sorted(figure for figure in figures if figure is not None)
    assert known != [figure for figure in figures if figure is not None]

    browser.evaluate(click, selector, scudo)
    assert _column(browser, selector, scudo) == [*known, None]
    assert browser.evaluate(state, selector, scudo) == "ascending"
    browser.evaluate(click, selector, scudo)
    assert _column(browser, selector, scudo) == [*known[::-1], None]
    assert browser.evaluate(state, selector, scudo) == "descending"
    browser.evaluate(click, selector, 0)
    names = [row[0]["text"] for row in table_of(browser, selector)]
    assert names == sorted(names) and browser.evaluate(state, selector, scudo) is None
    foot = browser.evaluate("document.querySelector(arguments[0]).tFoot.innerText", selector)
    assert foot.startswith("geometric mean")


def test_tables_can_be_sorted_with_the_keyboard(site: Path, browser: Browser) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.open(site / "environment.html")
    button = browser.driver.find_element(By.CSS_SELECTOR, "table.gaps th button")
    button.send_keys(Keys.ENTER)
    assert button.find_element(By.XPATH, "..").get_attribute("aria-sort") == "ascending"


def test_a_failed_measurement_is_seen_on_every_page_it_concerns(site: Path, browser: Browser, bench: Run) -> None:
    reason = "The workload ended by signal 11 after checkpoint 4; run it again under gdb."
    browser.open(site / "index.html")
    rows = {row[0]["text"]: row for row in table_of(browser, matrix_selector("peak_rss_bytes", "smaps"))}
    scudo = 1 + [allocator.name for allocator in ALLOCATORS].index("scudo")
    cell = rows["buffers"][scudo]
    assert (cell["text"], cell["title"]) == ("failed", reason) and "failed" in cell["kind"]
    notice = browser.evaluate("document.querySelector('.notice').innerText")
    assert notice.startswith(f"3 failed and {len(WORKLOADS)} skipped")

    for page in ("environment.html", "workload-buffers.html"):
        browser.open(site / page)
        gaps = table_of(browser, "table.gaps")
        (failure,) = [row for row in gaps if row[3]["text"] == "failed"]
        assert [failure[column]["text"] for column in (0, 1, 2, 4)] == ["buffers", "scudo", "smaps", "3"]
        assert failure[5]["text"].startswith(reason)
    browser.open(site / "environment.html")
    assert len(table_of(browser, "table.gaps")) == 1 + len(WORKLOADS)


def test_the_curves_have_each_point_at_the_median_of_the_repeats(
    site: Path, browser: Browser, store: Store, bench: Run
) -> None:
    browser.open(site / "memory.html")
    read = """[...document.querySelectorAll('figure[data-case]')].map((figure) => [figure.dataset.case,
      Object.fromEntries([...figure.querySelectorAll('g.series')].map((series) => [series.dataset.series,
        [...series.querySelectorAll('circle')].map((point) => [Number(point.dataset.x), Number(point.dataset.value)])]))])"""
    charts = dict(browser.evaluate(read))
    assert set(charts) == {w if v == "default" else f"{w}:{v}" for w, v, *_ in WORKLOADS}
    frame = store.samples_frame(run_id=bench.id, metric="rss_bytes")
    for name, lines in charts.items():
        workload, _, variant = name.partition(":")
        live = lines.pop("live bytes")
        assert len(live) == ROUNDS and live[-1][1] == 0
        expected_arms = len(ALLOCATORS) - (workload == "buffers")
        assert len(lines) == expected_arms
        for line, points in lines.items():
            allocator, _, role = line.partition(" (")
            own = frame[
                (frame.workload == workload) & (frame.variant == (variant or "default"))
                & (frame.allocator == allocator) & (frame.arm == (role.rstrip(")") or "reference"))
            ]  # fmt: skip
            assert len(own) == 3 * ROUNDS
            medians = own.groupby("checkpoint").value.median()
            assert points == [[checkpoint, value] for checkpoint, value in medians.items()]


def test_points_are_drawn_where_their_figures_are(site: Path, browser: Browser) -> None:
    """The drawing itself is to scale: y falls linearly with the figure, x grows linearly with the checkpoint."""
    browser.open(site / "memory.html")
    read = """[...document.querySelector('svg.chart').querySelectorAll('circle')].map((each) =>
      [Number(each.dataset.x), Number(each.dataset.value), Number(each.getAttribute('cx')), Number(each.getAttribute('cy'))])"""
    points = browser.evaluate(read)
    low, high = min(points, key=lambda each: each[1]), max(points, key=lambda each: each[1])
    slope = (high[3] - low[3]) / (high[1] - low[1])
    assert slope < 0
    for x, value, cx, cy in points:
        assert cy == pytest.approx(low[3] + slope * (value - low[1]), abs=0.11)
        assert cx == pytest.approx(68 + x * (720 - 68 - 18) / (ROUNDS - 1), abs=0.06)


def test_each_chart_has_its_figures_in_a_table(site: Path, browser: Browser) -> None:
    browser.open(site / "memory.html")
    shapes = browser.evaluate(
        "[...document.querySelectorAll('figure')].map((each) => [each.querySelector('table').tBodies[0].rows.length, "
        "each.querySelector('table').tHead.rows[0].cells.length - 1, each.querySelectorAll('g.series').length])"
    )
    assert all(rows == ROUNDS and columns == lines for rows, columns, lines in shapes)


def test_a_line_is_lit_when_its_name_is_focused(site: Path, browser: Browser) -> None:
    browser.open(site / "memory.html")
    browser.evaluate("document.querySelector('.legend button[data-series=glibc]').focus()")
    lit = "[...document.querySelectorAll('svg.dimmed .lit')].map((each) => each.dataset.series)"
    assert browser.evaluate(lit) == ["glibc"]
    browser.evaluate("document.querySelector('.legend button[data-series=glibc]').blur()")
    assert browser.evaluate("document.querySelectorAll('svg.dimmed').length") == 0


def test_pages_given_up_lazily_are_pointed_out(site: Path, browser: Browser) -> None:
    browser.open(site / "memory.html")
    note = browser.evaluate("document.querySelector('figure .note:not(figcaption *)').innerText")
    assert note.startswith("jemalloc: up to") and "MADV_FREE" in note


def test_the_timeline_has_a_point_a_commit_and_marks_the_pin(site: Path, browser: Browser, store: Store) -> None:
    browser.open(site / "timeline.html")
    read = """[...document.querySelectorAll('figure[data-metric]')].map((each) => [each.dataset.metric, each.dataset.case,
      [...each.querySelectorAll('circle')].map((point) => Number(point.dataset.value)),
      [...each.querySelectorAll('.mark title')].map((title) => title.textContent)])"""
    charts = {(metric, case): (values, marks) for metric, case, values, marks in browser.evaluate(read)}
    values, marks = charts["instructions", "churn"]
    frame = store.samples_frame(workload="churn", variant="default", metric="instructions", allocator="ebb")
    expected = [frame[frame.revision == revision].value.median() for revision in REVISIONS]
    assert values == expected
    assert marks == [f"pin {REVISIONS[2][:10]}"]
    assert len(charts["peak_rss_bytes", "idle"][0]) == len(REVISIONS)
    assert len(charts["wall_s", "idle"][0]) == 2


def test_commits_stand_in_the_order_of_history_whenever_they_were_measured(tmp_path: Path, browser: Browser) -> None:
    first, second, third, unknown = ("1" * 40, "2" * 40, "3" * 40, "9" * 40)
    with open_store(str(tmp_path / "s.sqlite")) as store:
        measured = [(third, False), (second, True), (unknown, False), (first, False), (second, False)]
        for day, (revision, dirty) in enumerate(measured):
            run = Run("bench", "make bench", revision, ENVIRONMENT, EPOCH + timedelta(days=day))
            store.begin_run(run)
            build = Build("ebb", revision, dirty)
            store.record(_measurement(run, build=build, samples=(Sample("instructions", "count", 1.0 + day),)))
        ordered = dashboards.build(store, tmp_path / "ordered", history=[first, second, third])
        measured_order = dashboards.build(store, tmp_path / "measured")
    read = "[...document.querySelectorAll('figure tbody th')].map((each) => each.innerText)"
    names = {revision: revision[:10] for revision in (first, second, third, unknown)}
    browser.open(ordered / "timeline.html")
    browser.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    expected = [names[first], names[second], f"{names[second]} + changes", names[third], names[unknown]]
    assert browser.evaluate(read) == expected
    values = (
        "[...document.querySelectorAll('circle')].map((each) => [Number(each.dataset.x), Number(each.dataset.value)])"
    )
    assert browser.evaluate(values) == [[0, 4.0], [1, 5.0], [2, 2.0], [3, 1.0], [4, 3.0]]
    browser.open(measured_order / "timeline.html")
    assert [y for _, y in browser.evaluate(values)] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_line_joins_only_what_can_be_compared(tmp_path: Path, browser: Browser) -> None:
    """Two profiles, two providers, two machines and two allocators: each has a chart of its own."""
    elsewhere = dataclasses.replace(ENVIRONMENT, cpu_model="Neoverse-N1")
    with open_store(str(tmp_path / "s.sqlite")) as store:
        for day, revision in enumerate(("a" * 40, "b" * 40)):
            for environment in (ENVIRONMENT, elsewhere):
                run = Run("bench", "make bench", revision, environment, EPOCH + timedelta(days=day))
                store.begin_run(run)
                for name, profile, provider in (
                    ("ebb", "quick", "callgrind"), ("ebb", "full", "callgrind"), ("ebb", "quick", "perf"),
                    ("mine", "quick", "callgrind"),
                ):  # fmt: skip
                    fields = {"profile": profile, "provider": provider, "build": Build(name, revision)}
                    store.record(_measurement(run, samples=(Sample("instructions", "count", 9.0 + day),), **fields))
        site = dashboards.build(store, tmp_path / "site")
    browser.open(site / "timeline.html")
    assert len(browser.evaluate("[...document.querySelectorAll('main h2')].map((each) => each.innerText)")) == 4
    read = "[...document.querySelectorAll('svg.chart')].map((each) => [...each.querySelectorAll('circle')].map((p) => p.dataset.value))"
    assert browser.evaluate(read) == [["9.0", "10.0"]] * 8
    ids = browser.evaluate("[...document.querySelectorAll('svg.chart')].map((each) => each.id)")
    assert len(set(ids)) == 8


def test_one_commit_alone_is_a_table(tmp_path: Path, browser: Browser) -> None:
    with open_store(str(tmp_path / "s.sqlite")) as store:
        run = Run("bench", "make bench", "a" * 40, ENVIRONMENT)
        store.begin_run(run)
        store.record(_measurement(run, samples=(Sample("instructions", "count", 31e6),)))
        site = dashboards.build(store, tmp_path / "site")
    browser.open(site / "timeline.html")
    assert browser.evaluate("document.querySelectorAll('svg.chart').length") == 0
    (row,) = table_of(browser, "main table")
    assert row[3]["value"] == 31e6


def test_the_comparison_shows_both_arms_and_their_deltas(site: Path, browser: Browser, store: Store) -> None:
    (run,) = store.runs(kind="compare")
    browser.open(site / f"compare-{run.id}.html")
    title = browser.evaluate("document.querySelector('h1').innerText")
    assert title == f"{REVISIONS[2][:12]} → tree {REVISIONS[4][:10]}"
    rows = {(row[0]["text"], row[1]["text"]): row for row in table_of(browser, "table.changes")}
    frame = store.samples_frame(run_id=run.id, workload="churn", variant="default", metric="instructions")
    before, after, control = (
        float(frame[frame.arm == arm].value.iloc[0]) for arm in (REVISIONS[2][:12], "tree", "reference")
    )
    row = rows["churn", "instructions"]
    assert [row[column]["value"] for column in (3, 4, 6)] == [before, after, control]
    assert row[5]["text"] == f"▼ −{100 * (before - after) / before:.2f} %" and "better" in row[5]["kind"]
    assert len(rows) == 4 * 3
    cards = browser.evaluate("[...document.querySelectorAll('.pair > .card')].map((each) => each.innerText)")
    assert [card.split("\n")[0] for card in cards] == [f"Before: ebb {REVISIONS[2][:12]}", "After: ebb tree"]
    assert all(revision in card for revision, card in zip((REVISIONS[2], REVISIONS[4]), cards))


def test_the_comparison_shows_its_verdicts(site: Path, browser: Browser, store: Store) -> None:
    (run,) = store.runs(kind="compare")
    browser.open(site / f"compare-{run.id}.html")
    improved, growing, untold = table_of(browser, "table.verdicts")
    assert [cell["text"] for cell in improved[:5]] == [
        "churn", "instructions\ncallgrind", "✓ improved", "31\u202f790\u202f000 → 31\u202f195\u202f000\n−1.87 %, 1 / 1 samples", "−1.87 %",
    ]  # fmt: skip
    assert improved[5]["text"] == f"0.05 %: {VERDICTS[0]['threshold']['origin']}\n{VERDICTS[0]['command']}"
    assert growing[2]["text"] == "✗ growing"
    assert growing[4]["text"] == "14.65 KiB/round\n11.72 KiB/round to 17.97 KiB/round"
    assert growing[5]["text"].startswith("4 KiB/round: 0.1 % of the pin a round")
    assert [untold[2]["text"], untold[3]["text"]] == ["? cannot tell", "–"]
    assert untold[5]["text"].startswith(VERDICTS[2]["reason"])
    browser.open(site / "compare.html")
    (row,) = table_of(browser, "main table")
    assert (row[2]["text"], row[2]["value"]) == ("1 of 3", 1)


def test_the_comparison_explains_itself(site: Path, browser: Browser, store: Store) -> None:
    (run,) = store.runs(kind="compare")
    browser.open(site / f"compare-{run.id}.html")
    browser.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    texts = browser.evaluate(
        "[...document.querySelectorAll('.explanation')].map((each) => [each.dataset.kind, each.innerText])"
    )
    assert [kind for kind, _ in texts] == ["instructions", "memory", "data"]
    counts, memory, unknown = (text for _, text in texts)
    for expected in ("31 → 30 an operation", "nothing else moved", "libebb.so", "page_push", "free.cc:40 (gone)"):
        assert expected in counts
    functions = table_of(browser, "[data-kind=instructions] table.moved")
    assert [cell["value"] for cell in functions[0][2:5]] == [18.0, 17.0, -1.0]
    code = table_of(browser, "table.listing")
    assert [[cell["text"] for cell in row] for row in code] == [
        ["1", "test %rdi,%rdi", "<", "", ""], ["1", "mov (%rip),%rax", "", "1", "mov (%rip),%rax"],
    ]  # fmt: skip
    assert "steps by +0.80 MiB" in memory and "819.2 KiB" in memory
    assert "joules" in unknown and "3.25" in unknown and "performance" in unknown


@pytest.mark.parametrize(
    "text", [b"[]", b"{}", b"7", b"null", b'{"kind": "instructions"}', b'{"kind": "memory", "sentences": 3}']
)
def test_an_explanation_of_unknown_form_is_kept_as_data(text: bytes) -> None:
    explanation = read_explanation(text, "churn")
    assert (explanation.kind, explanation.data) == ("data", json.loads(text))
    assert read_verdicts(b'[{"outcome": "fine"}]') is None


def test_a_gate_compares_the_pin_with_the_tree(tmp_path: Path, browser: Browser) -> None:
    with open_store(str(tmp_path / "s.sqlite")) as store:
        run = Run("gate", "make gate", "a" * 40, ENVIRONMENT)
        store.begin_run(run)
        for position, (arm, value) in enumerate((("tree", 33.0), ("pin", 30.0))):
            store.record(
                _measurement(run, arm=arm, position=position, samples=(Sample("instructions", "count", value),))
            )
        abandoned = Run("gate", "make gate", "a" * 40, ENVIRONMENT)
        store.begin_run(abandoned)
        site = dashboards.build(store, tmp_path / "site")
    assert [page.name for page in site.glob("compare-*.html")] == [f"compare-{run.id}.html"]
    browser.open(site / f"compare-{run.id}.html")
    (row,) = table_of(browser, "table.changes")
    assert [row[3]["value"], row[4]["value"], row[5]["text"]] == [30.0, 33.0, "▲ +10.0 %"]
    assert browser.evaluate("document.querySelector('.notice').innerText").startswith("Both arms are the same binary")


def test_a_comparison_with_an_arm_missing_shows_what_there_is(tmp_path: Path, browser: Browser) -> None:
    with open_store(str(tmp_path / "s.sqlite")) as store:
        run = Run("compare", "make compare A=a B=b", "a" * 40, ENVIRONMENT)
        store.begin_run(run)
        broken = Attachment("explanation", b"\xff not JSON")
        store.record(
            _measurement(run, arm="a", samples=(Sample("instructions", "count", 31.0),), attachments=(broken,))
        )
        store.record(_measurement(run, arm="b", position=1, status="failed", reason="Commit b does not build."))
        site = dashboards.build(store, tmp_path / "site")
    browser.open(site / f"compare-{run.id}.html")
    (row,) = table_of(browser, "table.changes")
    assert (row[3]["text"], row[4]["text"], row[4]["title"]) == ("31", "failed", "Commit b does not build.")
    assert "not JSON" in browser.evaluate("document.querySelector('.explanation').innerText")


def test_the_workload_page_has_operations_functions_and_each_measurement(
    site: Path, browser: Browser, store: Store, bench: Run
) -> None:
    browser.open(site / "workload-micro.html")
    operations = table_of(browser, "table.operations")
    assert sorted(row[1]["text"] for row in operations) == sorted(f"malloc_free/{n}" for n in (16, 64, 1024, 65536))
    frame = store.samples_frame(run_id=bench.id, metric="latency_ns", allocator="glibc")
    for row in operations:
        assert row[3 + 2]["value"] == frame[frame.detail == row[1]["text"]].value.median()

    browser.open(site / "workload-teardown.html")
    browser.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    functions = {row[1]["text"] for row in table_of(browser, "table.functions")}
    assert {"main", "ebb_malloc", "glibc_free"} <= functions
    measurements = store.measurements(run_id=bench.id, workload="teardown", samples=False)
    rows = table_of(browser, "table.measurements")
    assert [row[0]["value"] for row in rows] == [measurement.position for measurement in measurements]
    emulated = table_of(browser, "table.figures")[0][3]
    assert "emulated: heap" in emulated["title"] and emulated["text"].startswith("12")


def test_the_machine_and_the_builds_are_named(site: Path, browser: Browser) -> None:
    browser.open(site / "environment.html")
    text = browser.evaluate("document.querySelector('main').innerText")
    for fact in (ENVIRONMENT.cpu_model, ENVIRONMENT.kernel, ENVIRONMENT.tunables, ENVIRONMENT.key, "3.19.0", "2.36-9"):
        assert fact in text
    builds = table_of(browser, "table.builds")
    assert [row[0]["text"].split(" ")[0] for row in builds] == [allocator.name for allocator in ALLOCATORS]


def _measurement(run: Run, **fields: Any) -> Measurement:
    return Measurement(
        **{
            "run_id": run.id, "build": Build("ebb", "a" * 40), "workload": "churn", "variant": "default",
            "profile": "quick", "provider": "callgrind", "arm": "tree", "status": "ok", **fields,
        }
    )  # fmt: skip


HOSTILE = "<script>document.title='taken'</script>\"'&../x"


def test_what_the_store_holds_is_text_and_never_markup(tmp_path: Path, browser: Browser) -> None:
    with open_store(str(tmp_path / "s.sqlite")) as store:
        run = Run("bench", HOSTILE, "a" * 40, dataclasses.replace(ENVIRONMENT, cpu_model=HOSTILE))
        store.begin_run(run)
        series = tuple(Sample("rss_bytes", "byte", n, n, HOSTILE) for n in range(3))
        build = Build(HOSTILE, HOSTILE, compiler=HOSTILE)
        common = {"workload": HOSTILE, "variant": HOSTILE, "build": build, "command": HOSTILE}
        store.record(_measurement(run, provider="smaps", samples=series, arm=HOSTILE, **common))
        store.record(_measurement(run, status="failed", reason=HOSTILE, **common))
        compare = Run("compare", HOSTILE, HOSTILE, ENVIRONMENT)
        store.begin_run(compare)
        evidence = Attachment("explanation", ('{"a": ["' + HOSTILE.replace('"', '\\"') + '"]}').encode())
        store.record(_measurement(compare, attachments=(evidence,), samples=(Sample(HOSTILE, HOSTILE, 1.0),), **common))
        site = dashboards.build(store, tmp_path / "site")
    assert all(page.parent == site for page in site.glob("**/*"))
    for page in sorted(site.glob("*.html")):
        browser.open(page)
        assert browser.evaluate("document.title").endswith("· Tidemark"), page.name
        assert browser.complaints() == []
        assert browser.evaluate("document.scripts.length") == 1


def test_no_measurement_of_the_run_is_left_out_of_its_workloads_page(site: Path, store: Store, bench: Run) -> None:
    shown = 0
    for page in site.glob("workload-*.html"):
        text = page.read_text(encoding="utf-8")
        shown += text.split('class="sortable measurements"')[1].count("<tr><td data-value=")
    assert shown == len(store.measurements(run_id=bench.id, samples=False))


def test_another_run_can_be_shown(store: Store, tmp_path: Path, browser: Browser) -> None:
    oldest = store.runs(kind="bench")[-1]
    site = dashboards.build(store, tmp_path / "site", run_id=oldest.id)
    browser.open(site / "index.html")
    assert oldest.id[:12] in browser.evaluate("document.querySelector('footer').textContent")
    with pytest.raises(dashboards.DashboardError, match="no run absent"):
        dashboards.build(store, tmp_path / "site", run_id="absent")
