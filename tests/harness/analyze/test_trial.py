"""Trials with a real session: counts without profiles are explained by a pair under callgrind; same code is seen."""

from __future__ import annotations

from pathlib import Path

from harness.analyze import trial
from harness.analyze.case import MemoryCase
from harness.analyze.docket import Docket, Entry, fill, no_history
from harness.analyze.explanation import CountExplanation
from harness.analyze.identity import code_digest
from harness.analyze.plateau import MemoryLimits
from harness.analyze.planted import PlantedCheckout
from harness.analyze.sides import side
from harness.analyze.thresholds import load_thresholds
from harness.analyze.verdict import Outcome, Verdict
from harness.collect.session import Session
from harness.model.allocator import load_allocators
from harness.model.workload import load_workloads, select_workloads
from results import open_store
from tests.harness.analyze.records import AFTER, BEFORE, CHURN, VARIANT


def test_a_count_by_perf_is_explained_by_callgrind(checkout: PlantedCheckout, slower_free: str, tmp_path: Path) -> None:
    layout = checkout.layout
    known = load_allocators(layout.allocators_file)
    before, after = (side(layout, known, checkout.config(), text) for text in (checkout.clean, slower_free))
    docket = Docket(before, after, "quick")
    thresholds = load_thresholds(layout.pin_file.parent / "thresholds.toml")
    fill(
        docket,
        select_workloads(load_workloads(layout), ["pairs"]),
        thresholds,
        counter="perf",
        command=str,
        history=no_history,
    )
    judged = Verdict("pairs", "default", "instructions", "perf", Outcome.REGRESSED)
    with open_store(str(tmp_path / "store.sqlite")) as store, Session(layout, store, "compare", "test") as session:
        explained = trial.explain(docket, [judged], session, trial.regressed)
        trial.record_verdicts(docket, [judged], explained.by_case, session)
        (row,) = store.measurements(run_id=session.run.id, provider=trial.JUDGE, attachments=True)
    explanation = explained.by_case["pairs", "instructions"]
    assert isinstance(explanation, CountExplanation)
    assert [item.function.name for item in explanation.profile.functions] == ["free"]
    assert {item.kind for item in row.attachments} == {"verdicts", "explanation"}


def test_the_same_code_on_other_lines_has_one_digest(checkout: PlantedCheckout, slower_free: str) -> None:
    layout, config = checkout.layout, checkout.config()
    known = load_allocators(layout.allocators_file)
    elsewhere = checkout.plant({}, "the same code, another commit")
    source = layout.root / "allocator" / "planted.c"
    text = source.read_text()
    try:
        source.write_text("/* Moves every line, and so the debug information. */\n" + text)
        noted = checkout.commit("the same code, a line further down")
    finally:
        source.write_text(text)
    first, same, other, slower = (
        side(layout, known, config, text) for text in (checkout.clean, elsewhere, noted, slower_free)
    )
    digests = [code_digest(arm.preload) for arm in (first, same, other, slower) if arm.preload is not None]
    assert digests[0] == digests[1] == digests[2] != digests[3]
    assert first.build.sha256 != other.build.sha256


def test_a_side_is_named_by_what_the_user_wrote(checkout: PlantedCheckout) -> None:
    known = load_allocators(checkout.layout.allocators_file)
    own = checkout.config()
    assert side(checkout.layout, known, own, checkout.clean).role == checkout.clean[:12]
    assert side(checkout.layout, known, own, f"planted@{checkout.clean}").role == f"planted@{checkout.clean[:12]}"
    assert side(checkout.layout, known, own, "glibc").role == "glibc"
    assert side(checkout.layout, known, own, "glibc").preload is None


def test_a_leak_in_both_arms_is_no_regression_but_is_said() -> None:
    docket = Docket(BEFORE, AFTER, "quick")
    case = MemoryCase(3, MemoryLimits())
    docket.add(Entry(CHURN, VARIANT, "rss_bytes", "smaps", case, "repeat"))
    while case.needs_pair:
        leak = [64.0 * (1 << 20) * (1 + 0.01 * index) for index in range(15)]
        case.add_pair(leak, leak)
    assert case.verdict().outcome is Outcome.PLATEAU
    (note,) = trial.advice(docket)
    assert note.startswith("churn rss_bytes grows in both arms; by itself: ") and "growing" in note
