"""Rehearses verdicts whose right answer is known: A/A pairs, and each planted change.

Called by `tidemark selftest` and the tests, with a `PlantedCheckout` and a session on a store of its own. Each trial
goes through the very docket that the gate uses, so what is measured here are the gate's own rates.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.analyze.docket import Docket, Entry, fill, stored_history
from harness.analyze.evidence import explain_entry
from harness.analyze.planted import Plant, PlantedCheckout
from harness.analyze.thresholds import load_thresholds
from harness.analyze.trial import measure
from harness.analyze.verdict import Outcome, Verdict
from harness.build.arms import revision_arm
from harness.collect.session import Session
from harness.model.arm import PIN, TREE, Arm
from harness.model.workload import load_workloads, select_workloads

COMMAND = "./tidemark selftest"
SILENT = Plant("a workload that never allocates", {}, "silent", "not measured", r"never allocates")


@dataclass(frozen=True)
class Trial:
    """One verdict beside the right answer."""

    name: str
    workload: str
    expected: str
    verdict: Verdict
    why: tuple[str, ...]
    right: bool
    """The word is the expected one, and the verdict or its explanation says what was planted."""


class Rehearsal:
    """Runs trials in one checkout and one session. Not thread safe."""

    def __init__(self, checkout: PlantedCheckout, session: Session, environment_key: str) -> None:
        self.checkout = checkout
        self.session = session
        self.thresholds = load_thresholds(checkout.layout.pin_file.parent / "thresholds.toml")
        self.workloads = load_workloads(checkout.layout)
        self.history = stored_history(session.store, environment_key)
        self.positions: Iterator[int] = itertools.count()
        self.clean = revision_arm(checkout.layout, checkout.config(), checkout.clean, role=PIN)

    def plant(self, plant: Plant) -> Trial:
        """Judge one planted change against the clean allocator."""
        commit = self.checkout.plant(plant.switches, plant.name) if plant.switches else self.checkout.clean
        planted = revision_arm(self.checkout.layout, self.checkout.config(), commit, role=TREE)
        docket = self._judged(planted, [plant.workload])
        (entry,) = docket.entries
        why = self._why(entry, docket)
        verdict = entry.verdict()
        said = re.search(plant.says, "\n".join((verdict.reason, *why)), re.DOTALL) is not None
        return Trial(
            plant.name, plant.workload, plant.expected, verdict, why, str(verdict.outcome) == plant.expected and said
        )

    def against_itself(self, workloads: Sequence[str], times: int) -> list[Trial]:
        """Judge the clean allocator against itself, `times` verdicts a workload."""
        again = replace(self.clean, role=TREE)
        trials = []
        for _ in range(times):
            for verdict in self._judged(again, workloads).verdicts():
                quiet = verdict.outcome in (Outcome.UNCHANGED, Outcome.PLATEAU)
                trials.append(Trial("nothing", verdict.workload, "nothing", verdict, (), quiet))
        return trials

    def _judged(self, after: Arm, workloads: Sequence[str]) -> Docket:
        docket = Docket(self.clean, after, "quick", self.positions)
        fill(docket, select_workloads(self.workloads, workloads), self.thresholds, counter="callgrind",
             command=lambda _: COMMAND, history=self.history)  # fmt: skip
        measure(docket, self.session)
        return docket

    def _why(self, entry: Entry, docket: Docket) -> tuple[str, ...]:
        explanation = explain_entry(
            self.checkout.layout, entry, (docket.before, docket.after), self.session.store.attachment
        )
        return () if explanation is None else explanation.sentences


def false_alarms(trials: Sequence[Trial]) -> int:
    """Return how many verdicts of trials in which nothing changed were regressions."""
    return sum(trial.verdict.is_regression for trial in trials)
