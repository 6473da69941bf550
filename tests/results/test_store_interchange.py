"""Exports merge by id into any store, again and again, whole or not at all."""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from results import Attachment, Store, StoreError, open_store, schema
from store_factory import ENVIRONMENT, EPOCH, make_build, make_measurement, make_run


def _fill(store: Store, runs: int = 2) -> None:
    for age in range(runs):
        environment = dataclasses.replace(ENVIRONMENT, cpu_count=age + 1)
        run = make_run(environment=environment, started_at=EPOCH + timedelta(days=age))
        store.begin_run(run)
        for position in range(3):
            store.record(make_measurement(run, position=position, build=make_build(revision=f"{position:040x}")))
        store.record(make_measurement(run, status="skipped", reason="No perf here; “apt-get install”.", samples=0))
        store.finish_run(run.id, "finished")


def _all(store: Store) -> tuple[object, object]:
    return store.runs(), store.measurements(attachments=True)


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_an_export_fills_another_store_with_the_same(store: Store, tmp_path: Path, name: str) -> None:
    _fill(store)
    path = tmp_path / name
    assert store.export(path) == 10
    assert path.read_bytes().startswith(b"\x1f\x8b" if name.endswith(".gz") else b'{"type"')
    with open_store(str(tmp_path / "other.sqlite")) as other:
        assert other.import_(path) == 10
        assert _all(other) == _all(store)
        assert other.import_(path) == 0
        assert _all(other) == _all(store)


def test_stores_of_both_kinds_merge(sqlite_url: str, postgresql_url: str, tmp_path: Path) -> None:
    with open_store(sqlite_url) as laptop, open_store(postgresql_url) as team:
        _fill(laptop)
        _fill(team)
        own, shared = laptop.runs(), team.runs()
        laptop.export(tmp_path / "laptop.jsonl.gz")
        assert team.import_(tmp_path / "laptop.jsonl.gz") == 10
        team.export(tmp_path / "team.jsonl.gz")
        assert laptop.import_(tmp_path / "team.jsonl.gz") == 10
        assert {run.id for run in laptop.runs()} == {run.id for run in own + shared}
        assert _all(laptop) == _all(team)


def test_imports_that_meet_the_same_builds_in_opposite_orders_both_end(store: Store, tmp_path: Path) -> None:
    paths = [tmp_path / "up.jsonl", tmp_path / "down.jsonl"]
    for path, step in zip(paths, (1, -1)):
        with open_store(str(path.with_suffix(".sqlite"))) as source:
            run = make_run()
            source.begin_run(run)
            for position, number in enumerate(range(60)[::step]):
                source.record(make_measurement(run, position=position, build=make_build(revision=f"{number:040x}")))
            source.export(path)
    store.begin_run(make_run())  # its environment is there before, so that only builds are waited for
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(store.import_, paths)) == [61, 61]
    assert len(store.measurements(samples=False)) == 120


def test_an_export_reads_as_json_lines(store: Store, tmp_path: Path) -> None:
    _fill(store, runs=1)
    path = tmp_path / "all.jsonl"
    store.export(path)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["type"] for line in lines] == ["tidemark-export", "run", *["measurement"] * 4, "end"]
    assert lines[0]["schema_version"] == schema.CURRENT_VERSION
    assert lines[-1] == {"type": "end", "run": 1, "measurement": 4}
    assert [sample["value"] for sample in lines[2]["samples"]] == [1000000.0, 1000001.0, 1000002.0]


def test_an_end_that_came_later_is_merged_and_never_undone(store: Store, tmp_path: Path) -> None:
    run = make_run()
    store.begin_run(run)
    store.export(tmp_path / "running.jsonl")
    store.finish_run(run.id, "finished")
    store.export(tmp_path / "finished.jsonl")
    (ended,) = store.runs()
    assert store.import_(tmp_path / "running.jsonl") == 0
    assert store.runs() == [ended]
    with open_store(str(tmp_path / "other.sqlite")) as other:
        assert other.import_(tmp_path / "running.jsonl") == 1
        assert other.import_(tmp_path / "finished.jsonl") == 1
        assert other.runs() == [ended]


def test_a_record_that_differs_is_refused_and_nothing_is_merged(store: Store, tmp_path: Path) -> None:
    _fill(store)
    path = tmp_path / "all.jsonl"
    store.export(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    changed = json.loads(lines[-2])
    changed["arm"] = "pin"
    path.write_text("\n".join([*lines[:-2], json.dumps(changed), lines[-1]]) + "\n", encoding="utf-8")
    with pytest.raises(StoreError, match="never overwritten"):
        store.import_(path)
    with open_store(str(tmp_path / "other.sqlite")) as other:
        run = store.runs(run_id=changed["run_id"])[0]
        other.begin_run(dataclasses.replace(run, status="running", finished_at=None))
        original = store.measurements(measurement_id=changed["id"], attachments=True)[0]
        other.record(original)
        before = _all(other)
        with pytest.raises(StoreError, match="never overwritten"):
            other.import_(path)
        assert _all(other) == before


def _truncate(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def _lose_a_line(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2] + lines[3:]))


def _no_json(path: Path) -> None:
    path.write_text(path.read_text().replace('"type":"run"', '"type":run'))


def _no_object(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "[1]\n", *lines[1:]]))


def _unknown_type(path: Path) -> None:
    path.write_text(path.read_text().replace('"type":"run"', '"type":"walk"'))


def _unknown_field(path: Path) -> None:
    path.write_text(path.read_text().replace('"suite_revision"', '"sweet_revision"'))


def _bad_time(path: Path) -> None:
    path.write_text(path.read_text().replace('"started_at":"2026', '"started_at":"year 2026'))


def _bad_sample(path: Path) -> None:
    path.write_text(path.read_text().replace('"samples":[{', '"samples":["x",{'))


def _newer(path: Path) -> None:
    path.write_text(path.read_text().replace(f'"schema_version":{schema.CURRENT_VERSION}', '"schema_version":999'))


def _binary(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00\x01" * 50)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "damage",
    [
        _truncate, _lose_a_line, _no_json, _no_object, _unknown_type, _unknown_field, _bad_time, _bad_sample, _newer,
        _binary, _empty,
    ],
)  # fmt: skip
def test_a_file_that_is_no_whole_export_changes_nothing(
    store: Store, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    with open_store(str(tmp_path / "source.sqlite")) as source:
        _fill(source)
        source.export(tmp_path / "all.jsonl")
    before = (tmp_path / "all.jsonl").read_bytes()
    damage(tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl").read_bytes() != before
    with pytest.raises(StoreError) as refusal:
        store.import_(tmp_path / "all.jsonl")
    assert "\n" not in str(refusal.value) and str(tmp_path / "all.jsonl") in str(refusal.value)
    assert store.runs() == [] and store.measurements() == []


def test_a_damaged_gzip_changes_nothing(store: Store, tmp_path: Path) -> None:
    with open_store(str(tmp_path / "source.sqlite")) as source:
        _fill(source)
        source.export(tmp_path / "all.jsonl.gz")
    whole = (tmp_path / "all.jsonl.gz").read_bytes()
    for damaged in (whole[:-9], whole[: len(whole) // 2], b"no gzip at all", gzip.compress(b"")):
        (tmp_path / "all.jsonl.gz").write_bytes(damaged)
        with pytest.raises(StoreError):
            store.import_(tmp_path / "all.jsonl.gz")
    assert store.runs() == []


def test_an_export_that_cannot_be_written_leaves_the_old_one(store: Store, tmp_path: Path) -> None:
    _fill(store)
    with pytest.raises(StoreError, match="can't be written"):
        store.export(tmp_path / "absent" / "all.jsonl")
    with pytest.raises(StoreError, match="no file"):
        store.import_(tmp_path / "absent.jsonl")
    path = tmp_path / "all.jsonl"
    path.write_text("old")
    run = store.runs()[0]
    store.record(make_measurement(run, attachments=(Attachment("profile", b"x" * 4096),)))
    damaged = sqlite_or_postgresql_damage(store)
    with pytest.raises(StoreError):
        store.export(path)
    damaged()
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".all")] == []


def sqlite_or_postgresql_damage(store: Store) -> Callable[[], None]:
    """Make a packed attachment unreadable; return what makes it readable again."""
    table = schema.attachment
    packed = table.c.encoding == "zlib"
    with store._writing() as connection:
        (row,) = connection.execute(table.select().where(packed)).mappings().all()
        connection.execute(table.update().where(packed).values(data=b"damaged"))

    def repair() -> None:
        with store._writing() as connection:
            connection.execute(table.update().where(packed).values(data=row["data"]))

    return repair
