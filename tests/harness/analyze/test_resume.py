"""What is left of a command that was killed: its rows, its mark, and that --resume measures nothing twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.analyze.planted import PlantedCheckout
from results import Store, open_store
from tests.harness.analyze.conftest import Tidemark

ROOT = Path(__file__).resolve().parents[3]


def start_and_wait_for_a_row(store: Store, words: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a command beside this process; it is in the middle of its measurements then."""
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    while not store.measurements(samples=False):
        assert process.poll() is None, "it ended before it could be killed"
        os.sched_yield()
    return process


@pytest.mark.parametrize("command", ["gate", "compare"])
def test_a_killed_judgement_goes_on_without_measuring_twice(
    command: str, tidemark: Tidemark, checkout: PlantedCheckout, slower_free: str
) -> None:
    sides = {"compare": (checkout.clean, slower_free), "gate": ("--pin", checkout.clean, "--revision", slower_free)}
    words = (command, *sides[command], "--quick", "-w", "pairs")
    with open_store() as store:
        process = start_and_wait_for_a_row(store, words)
        process.kill()
        process.wait()
        stored = {row.id: row for row in store.measurements()}
        again = tidemark(*words, "--resume", "--json")
        assert again.code == 1, again.err
        after = store.measurements()
        assert stored.items() <= {row.id: row for row in after}.items()
        made = [(row.arm, row.workload, row.provider, row.repeat) for row in after if row.provider != "judge"]
        assert len(made) == len(set(made)), "nothing is measured twice"
        assert [run.status for run in store.runs()] == ["finished"]


def test_a_run_that_was_killed_is_marked_by_the_next(tidemark: Tidemark, checkout: PlantedCheckout) -> None:
    words = ("run", "-w", "pairs", "-a", "glibc", "-p", "smaps", "--repeat", "50")
    with open_store() as store:
        process = start_and_wait_for_a_row(store, words)
        assert tidemark("run", "-w", "pairs", "-a", "glibc", "-p", "smaps").code == 0
        assert [run.status for run in store.runs()] == ["finished", "running"], "that one lives"
        process.kill()
        process.wait()
        assert tidemark("run", "-w", "pairs", "-a", "glibc", "-p", "smaps").code == 0
        assert [run.status for run in store.runs()] == ["finished", "finished", "interrupted"]
