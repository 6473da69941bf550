"""What is recorded comes back equal, is found by every filter, and is never overwritten."""

from __future__ import annotations

import dataclasses
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from results import Attachment, Run, Sample, Store, StoreError, open_store
from store_factory import ENVIRONMENT, EPOCH, make_build, make_measurement, make_run


@pytest.fixture
def run(store: Store) -> Run:
    begun = make_run()
    store.begin_run(begun)
    return begun


def test_a_measurement_comes_back_equal(store: Store, run: Run) -> None:
    evidence = (Attachment("profile", b"fn=malloc\n" * 500), Attachment("output", b""), Attachment("output", b"2nd"))
    recorded = make_measurement(run, attachments=evidence)
    store.record(recorded)
    assert store.measurements(attachments=True) == [recorded]
    assert store.measurements() == [dataclasses.replace(recorded, attachments=())]
    assert store.measurements(samples=False) == [dataclasses.replace(recorded, attachments=(), samples=())]


def test_a_run_comes_back_equal(store: Store, run: Run) -> None:
    assert store.runs() == [run]
    assert store.environments() == [ENVIRONMENT]


def test_times_of_another_zone_are_kept_to_the_microsecond(store: Store) -> None:
    elsewhere = timezone(timedelta(hours=5, minutes=45))
    begun = make_run(started_at=datetime(2026, 1, 1, 2, 3, 4, 999999, tzinfo=elsewhere))
    store.begin_run(begun)
    (stored,) = store.runs()
    assert stored.started_at == begun.started_at
    assert stored.started_at.utcoffset() == timedelta(0)


texts = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00"), max_size=30)
figures = st.floats(allow_nan=False, allow_infinity=False, width=64)
some_samples = st.builds(
    Sample,
    metric=texts,
    unit=texts,
    value=figures,
    checkpoint=st.none() | st.integers(0, 2**31 - 1),
    label=st.none() | texts,
    time_s=st.none() | figures,
    detail=st.none() | texts,
)


def _require_round_trip(store: Store, samples: list[Sample], reason: str, modes: dict[str, str], data: bytes) -> None:
    run = make_run()
    store.begin_run(run)
    recorded = make_measurement(run, samples=0, reason=reason, modes=modes, attachments=(Attachment("raw", data),))
    recorded = dataclasses.replace(recorded, samples=tuple(samples))
    store.record(recorded)
    assert store.measurements(run_id=run.id, attachments=True) == [recorded]
    assert store.attachment(recorded.id, "raw") == data


@settings(max_examples=40, deadline=None)
@given(st.lists(some_samples, max_size=5), texts, st.dictionaries(texts, texts, max_size=3), st.binary(max_size=2000))
def test_any_record_comes_back_equal_from_sqlite(
    samples: list[Sample], reason: str, modes: dict[str, str], data: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder, open_store(str(Path(folder) / "any.sqlite")) as store:
        _require_round_trip(store, samples, reason, modes, data)


def test_any_record_comes_back_equal_from_postgresql(postgresql_url: str) -> None:
    with open_store(postgresql_url) as store:

        @settings(max_examples=40, deadline=None)
        @given(
            st.lists(some_samples, max_size=5),
            texts,
            st.dictionaries(texts, texts, max_size=3),
            st.binary(max_size=2000),
        )
        def holds(samples: list[Sample], reason: str, modes: dict[str, str], data: bytes) -> None:
            _require_round_trip(store, samples, reason, modes, data)

        holds()


def test_recording_the_same_again_changes_nothing(store: Store, run: Run) -> None:
    recorded = make_measurement(run)
    store.record(recorded)
    store.record(recorded)
    assert store.measurements(attachments=True) == [recorded]


@pytest.mark.parametrize(
    "change",
    [
        {"arm": "pin"},
        {"samples": ()},
        {"attachments": (Attachment("output", b"other"),)},
        {"build": make_build(revision="b" * 40)},
    ],
)
def test_results_are_never_overwritten(store: Store, run: Run, change: dict[str, Any]) -> None:
    recorded = make_measurement(run)
    store.record(recorded)
    with pytest.raises(StoreError, match="never overwritten"):
        store.record(dataclasses.replace(recorded, **change))
    assert store.measurements(attachments=True) == [recorded]


def test_a_run_is_never_overwritten(store: Store, run: Run) -> None:
    store.begin_run(run)
    with pytest.raises(StoreError, match="never overwritten"):
        store.begin_run(dataclasses.replace(run, kind="gate"))
    assert store.runs() == [run]


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", ["value", "time_s"])
def test_what_is_no_figure_is_refused(store: Store, run: Run, figure: float, place: str) -> None:
    sample = dataclasses.replace(Sample("wall_s", "s", 1.0, time_s=1.0), **{place: figure})
    with pytest.raises(StoreError, match="wall_s of workload teardown"):
        store.record(dataclasses.replace(make_measurement(run), samples=(sample,)))
    assert store.measurements() == []


def test_a_time_without_zone_is_refused(store: Store, run: Run) -> None:
    with pytest.raises(StoreError, match="without a time zone"):
        store.record(make_measurement(run, started_at=datetime(2026, 1, 1)))
    with pytest.raises(StoreError, match="without a time zone"):
        store.begin_run(make_run(started_at=datetime(2026, 1, 1)))
    assert len(store.runs()) == 1 and store.measurements() == []


def test_a_count_beyond_the_databases_range_is_refused_with_a_sentence(store: Store, run: Run) -> None:
    with pytest.raises(StoreError):
        store.record(make_measurement(run, operations=2**64))
    assert store.measurements() == []


def test_a_measurement_needs_its_run(store: Store) -> None:
    with pytest.raises(StoreError, match="begin_run"):
        store.record(make_measurement(make_run()))
    assert store.measurements() == []


def test_runs_end_once(store: Store, run: Run) -> None:
    store.finish_run(run.id, "interrupted")
    store.finish_run(run.id, "finished")
    (ended,) = store.runs()
    assert ended.status == "finished"
    assert ended.finished_at is not None and ended.finished_at > EPOCH
    store.finish_run(run.id, "finished")
    assert store.runs() == [ended]
    with pytest.raises(StoreError, match="ended as 'finished'"):
        store.finish_run(run.id, "failed")
    with pytest.raises(StoreError, match="no run"):
        store.finish_run("f" * 32, "finished")
    with pytest.raises(StoreError, match="can't end as 'running'"):
        store.finish_run(run.id, "running")


def test_runs_come_newest_first_and_by_kind(store: Store) -> None:
    kinds = ["bench", "gate", "bench", "compare"]
    runs = [make_run(kind=kind, started_at=EPOCH + timedelta(hours=n)) for n, kind in enumerate(kinds)]
    for run in (runs[2], runs[0], runs[3], runs[1]):
        store.begin_run(run)
    assert store.runs() == runs[::-1]
    assert store.runs(limit=2) == [runs[3], runs[2]]
    assert store.runs(kind="bench") == [runs[2], runs[0]]
    assert store.runs(kind=["gate", "compare"]) == [runs[3], runs[1]]
    assert store.runs(kind="bisect") == []


FILTERS = {
    "workload": ("teardown", "churn"),
    "variant": ("default", "small"),
    "provider": ("smaps", "callgrind"),
    "status": ("ok", "failed"),
    "arm": ("tree", "pin"),
    "profile": ("quick", "full"),
}


@pytest.mark.parametrize("name", FILTERS)
def test_each_filter_selects_what_it_names(store: Store, run: Run, name: str) -> None:
    usual, other = FILTERS[name]
    first, second = make_measurement(run, position=1), make_measurement(run, position=2, **{name: other})
    store.record(second)
    store.record(first)
    ids = {value: [m.id for m in store.measurements(**{name: value})] for value in (usual, other, "absent")}
    assert ids == {usual: [first.id], other: [second.id], "absent": []}
    assert [m.id for m in store.measurements(**{name: [usual, other]})] == [first.id, second.id]
    assert store.measurements(**{name: []}) == []
    assert set(store.samples_frame(**{name: other}).measurement_id) == {second.id}


def test_builds_and_environments_are_filters(store: Store, run: Run) -> None:
    elsewhere = make_run(environment=dataclasses.replace(ENVIRONMENT, cpu_model="Neoverse-N1"))
    store.begin_run(elsewhere)
    first = make_measurement(run)
    second = make_measurement(elsewhere, build=make_build("mimalloc", "2.0.9"))
    for recorded in (first, second):
        store.record(recorded)
    for wanted in (
        {"allocator": "mimalloc"},
        {"revision": "2.0.9"},
        {"environment_key": elsewhere.environment.key},
        {"run_id": elsewhere.id},
        {"kind": "bench", "allocator": {"mimalloc", "scudo"}},
    ):
        assert [m.id for m in store.measurements(**wanted)] == [second.id], wanted


def test_a_frame_has_a_row_a_sample_with_what_it_belongs_to(store: Store, run: Run) -> None:
    recorded = make_measurement(run, samples=5)
    store.record(recorded)
    frame = store.samples_frame(metric="rss_bytes")
    assert list(frame.value) == [sample.value for sample in recorded.samples]
    assert list(frame.checkpoint) == [0, 1, 2, 3, 4]
    (row,) = frame.head(1).to_dict("records")
    expected = {
        "measurement_id": recorded.id,
        "run_id": run.id,
        "run_command": run.command,
        "run_status": "running",
        "build_key": recorded.build.key,
        "environment_key": ENVIRONMENT.key,
        "allocator": "ebb",
        "kind": "bench",
        "command": recorded.command,
        "started_at": recorded.started_at,
        "run_started_at": run.started_at,
    }
    assert {name: row[name] for name in expected} == expected
    assert len(set(frame.columns)) == len(frame.columns)


def test_an_empty_frame_has_the_same_columns(store: Store, run: Run) -> None:
    nothing = store.samples_frame()
    store.record(make_measurement(run))
    assert len(nothing) == 0
    assert list(nothing.columns) == list(store.samples_frame().columns)


def test_attachments_are_listed_unread_and_read_by_kind(store: Store, run: Run) -> None:
    recorded = make_measurement(run, attachments=(Attachment("a", b"x" * 5000), Attachment("b", b"yy")))
    store.record(recorded)
    assert store.attachment_kinds(run.id) == [(recorded.id, "a", 5000), (recorded.id, "b", 2)]
    assert store.attachment_kinds(measurement_id="absent") == []
    assert store.attachment(recorded.id, "a") == b"x" * 5000
    assert store.attachment(recorded.id, "c") is None
    assert store.attachment("absent", "a") is None
    several = make_measurement(run, attachments=(Attachment("a", b"1"), Attachment("b", b"2"), Attachment("a", b"3")))
    store.record(several)
    assert store.attachments(several.id, "a") == [b"1", b"3"]
    assert store.attachment(several.id, "a") == b"1"
    assert store.attachments("absent", "a") == []


def test_equal_environments_and_builds_are_stored_once(sqlite_url: str) -> None:
    import sqlite3

    with open_store(sqlite_url) as store:
        for _ in range(3):
            run = make_run()
            store.begin_run(run)
            store.record(make_measurement(run))
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as raw:
        counts = [raw.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("environment", "build")]
    assert counts == [1, 1]
