"""The commands on PostgreSQL: TIDEMARK_DB names a server and nothing else changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.analyze.planted import PlantedCheckout
from results import open_store
from tests.harness.analyze.conftest import Tidemark
from tests.results.postgresql_server import PostgresqlServer

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    """A server of this module's own."""
    running = PostgresqlServer.start()
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def database(server: PostgresqlServer, tidemark: Tidemark, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database, which every command of the test uses."""
    url = server.emptied_database()
    monkeypatch.setenv("TIDEMARK_DB", url)
    return url


def test_every_command_works_as_it_does_on_a_file(
    tidemark: Tidemark, checkout: PlantedCheckout, slower_free: str, database: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    pair = ("--quick", "-w", "pairs")
    assert tidemark("run", "-w", "pairs", "-a", "glibc", "-p", "smaps").code == 0
    compared = tidemark("compare", checkout.clean, slower_free, *pair)
    assert compared.code == 1 and "free (libplanted.so) costs more a call" in compared.out
    gated = tidemark("gate", "--pin", checkout.clean, "--revision", slower_free, *pair)
    assert gated.code == 1 and "gate failed" in gated.out
    assert "costs more a call" in tidemark("explain").out
    bisected = json.loads(tidemark("bisect", checkout.clean, slower_free, "-w", "pairs", "--json").out)
    assert bisected["first_bad"] == slower_free and bisected["measured"] == 0, "all that it needs is stored"
    runs = json.loads(tidemark("list", "runs", "--json").out)
    assert [run["kind"] for run in runs] == ["bisect", "gate", "compare", "run"]
    assert all(run["status"] == "finished" for run in runs)
    assert "gate" in Path(json.loads(tidemark("report", "--dashboard", "--json", "--out",
                                              str(tmp_path / "site")).out)["dashboard"]).read_text()  # fmt: skip
    reported = tidemark("report", "--run", runs[3]["run"], "--json").out
    file = str(tmp_path / "all.jsonl.gz")
    records = json.loads(tidemark("export", file, "--json").out)["records"]

    monkeypatch.setenv("TIDEMARK_DB", str(tmp_path / "laptop.sqlite"))
    assert json.loads(tidemark("import", file, "--json").out)["new_records"] == records
    assert tidemark("report", "--run", runs[3]["run"], "--json").out == reported
    assert tidemark("run", "-w", "pairs", "-a", "glibc", "-p", "smaps").code == 0
    assert tidemark("export", file).code == 0

    monkeypatch.setenv("TIDEMARK_DB", database)
    assert json.loads(tidemark("import", file, "--json").out)["new_records"] > 0
    assert json.loads(tidemark("import", file, "--json").out)["new_records"] == 0, "what is there is not doubled"
    assert len(json.loads(tidemark("list", "runs", "--json").out)) == 5


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_killed_run_leaves_whole_rows_and_goes_on_without_measuring_twice(
    kind: str, tidemark: Tidemark, checkout: PlantedCheckout, server: PostgresqlServer, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    url = server.emptied_database() if kind == "postgresql" else str(tmp_path / "killed.sqlite")
    monkeypatch.setenv("TIDEMARK_DB", url)
    words = ("run", "-w", "pairs", "-a", "glibc", "-p", "smaps", "--repeat", "12")
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    with open_store(url) as store:
        while len(store.measurements(samples=False)) < 3:
            assert process.poll() is None, "it ended before it could be killed"
            os.sched_yield()
        process.kill()
        process.wait()
        stored = {row.id: row for row in store.measurements()}
        assert 3 <= len(stored) < 12
        assert all(row.status == "ok" and row.samples for row in stored.values()), "whole rows or none"
        again = tidemark(*words, "--resume", "--json")
        assert again.code == 0, again.err
        after = {row.id: row for row in store.measurements()}
        assert stored.items() <= after.items(), "nothing that was stored is lost or measured again"
        assert sorted(row.repeat for row in after.values()) == list(range(12))
        assert [(run.id, run.status) for run in store.runs()] == [(json.loads(again.out)["run"], "finished")]


def test_concurrent_runs_lose_nothing(tidemark: Tidemark, checkout: PlantedCheckout, database: str) -> None:
    words = [sys.executable, "-m", "harness", "run", "-w", "pairs", "-a", "glibc", "-p", "smaps", "--repeat", "4"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    processes = [
        subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment, text=True)
        for _ in range(2)
    ]
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    with open_store(database) as store:
        assert len(store.runs()) == 2
        assert all(len(store.measurements(run_id=run.id, status="ok")) == 4 for run in store.runs())
