"""Two arms of one run, held side by side: figures, deltas, and the explanation if one is stored.

Who calls it: site.py. Reads the store; safe from any thread that may use the store.

Invariants
1. The first arm measured is `before`, the second `after`; references of the run stand beside them as controls.
2. A row with an arm missing is shown with what is there and why the other is not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.arms import REFERENCE, Arm, arms_of, builds_of
from dashboards.figures import format_delta, format_exact, format_value, short_revision
from dashboards.summary import Cell, MetricKey, label, metric_order, summarize
from results import Store
from results.records import Build, Measurement, Run

SHOWN_KINDS = ("explanation", "verdicts", "verdict")
"""Attachments that are JSON for people to read."""


@dataclass(frozen=True)
class Side:
    """One of the two arms of a row."""

    text: str
    title: str = ""
    value: float | None = None


@dataclass(frozen=True)
class Change:
    """One metric of one workload variant."""

    key: MetricKey
    label: str
    before: Side
    after: Side
    delta: str
    direction: str
    """`better`, `worse`, `same`, or `unknown` where an arm is missing."""
    controls: tuple[Side, ...]

    @property
    def ratio(self) -> float | None:
        """After over before; None where it can't be told."""
        if self.before.value is None or self.after.value is None or self.before.value == 0:
            return None
        return self.after.value / self.before.value


@dataclass(frozen=True)
class Explanation:
    """A JSON attachment of one measurement."""

    kind: str
    label: str
    content: Any


@dataclass(frozen=True)
class Comparison:
    """A run of `compare`."""

    run: Run
    before: Arm | None
    after: Arm | None
    before_builds: tuple[Build, ...]
    after_builds: tuple[Build, ...]
    controls: tuple[Arm, ...]
    changes: tuple[Change, ...]
    explanations: tuple[Explanation, ...]
    identical: bool
    """The two arms were the same binary."""

    @property
    def title(self) -> str:
        """The two arms in a few words."""
        if self.before is None or self.after is None:
            return f"Comparison {self.run.id[:8]}"
        return f"{short_revision(self.before.role)} → {short_revision(self.after.role)}"


def comparisons(store: Store, limit: int) -> list[Comparison]:
    """Return the newest runs of `compare`, at most `limit`."""
    return [comparison(store, run) for run in store.runs(kind="compare", limit=limit)]


def comparison(store: Store, run: Run) -> Comparison:
    """Return one run's two arms side by side."""
    measurements = store.measurements(run_id=run.id)
    arms = arms_of(measurements)
    sides = [arm for arm in arms if arm.role != REFERENCE]
    before, after = (sides + [None, None])[:2]
    builds = builds_of(measurements)
    sides_builds = [tuple(builds.get(arm.key, ())) if arm else () for arm in (before, after)]
    keys = [{build.key for build in each} for each in sides_builds]
    controls = tuple(arm for arm in arms if arm.role == REFERENCE)
    return Comparison(
        run=run,
        before=before,
        after=after,
        before_builds=sides_builds[0],
        after_builds=sides_builds[1],
        controls=controls,
        changes=tuple(_changes(measurements, before, after, controls)),
        explanations=tuple(_explanations(store, run, measurements)),
        identical=bool(keys[0]) and keys[0] == keys[1],
    )


def _changes(
    measurements: Sequence[Measurement], before: Arm | None, after: Arm | None, controls: Sequence[Arm]
) -> list[Change]:
    cells = summarize(measurements)
    changes = []
    for key in sorted(cells, key=metric_order):
        for case, by_arm in sorted(cells[key].items()):
            found = [by_arm.get(arm.key) if arm else None for arm in (before, after)]
            if not any(found):
                continue
            sides = [_side(cell) for cell in found]
            changes.append(
                Change(
                    key=key,
                    label=label(case),
                    before=sides[0],
                    after=sides[1],
                    delta=_delta(sides[0], sides[1]),
                    direction=_direction(sides[0], sides[1]),
                    controls=tuple(_side(by_arm.get(arm.key)) for arm in controls),
                )
            )
    return changes


def _side(cell: Cell | None) -> Side:
    if cell is None:
        return Side("not run", "This run did not measure it.")
    value = cell.median
    if value is None:
        return Side(cell.broken[0].status, cell.broken[0].reason)
    spread = f", from {format_value(cell.unit, min(cell.values))} to {format_value(cell.unit, max(cell.values))}"
    several = len(cell.values) > 1
    title = f"{format_exact(cell.unit, value)}, median of {len(cell.values)}{spread if several else ''}"
    return Side(format_value(cell.unit, value), title, value)


def _delta(before: Side, after: Side) -> str:
    return "" if before.value is None or after.value is None else format_delta(before.value, after.value)


def _direction(before: Side, after: Side) -> str:
    if before.value is None or after.value is None:
        return "unknown"
    if before.value == after.value:
        return "same"
    return "better" if after.value < before.value else "worse"


def _explanations(store: Store, run: Run, measurements: Sequence[Measurement]) -> list[Explanation]:
    by_id = {measurement.id: measurement for measurement in measurements}
    explanations = []
    for measurement_id, kind, _ in store.attachment_kinds(run.id):
        if kind not in SHOWN_KINDS:
            continue
        data = store.attachment(measurement_id, kind) or b""
        try:
            content = json.loads(data)
        except ValueError:
            content = data.decode("utf-8", "replace")
        measurement = by_id[measurement_id]
        name = f"{label((measurement.workload, measurement.variant))}, {measurement.provider}"
        explanations.append(Explanation(kind, name, content))
    return explanations
