"""Two arms of one run, held side by side: verdicts, figures, deltas, and the explanations that are stored.

Who calls it: site.py. Reads the store; safe from any thread that may use the store.

Invariants
1. `before` is the pin if there is one, else the arm that was measured first; references of the run stand beside
   both as controls.
2. A row with an arm missing is shown with what is there and why the other is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboards.arms import REFERENCE, Arm, arm_key, arms_of, builds_of
from dashboards.explanation import Explanation, VerdictRow, read_explanation, read_verdicts
from dashboards.figures import format_compared, format_delta, format_exact, format_value, short_revision
from dashboards.summary import Cell, MetricKey, is_smaller_better, label, metric_order, summarize
from results import Store
from results.records import Build, Measurement, Run

KINDS = ("compare", "gate")
"""Runs that hold one build against another."""


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
    """`better`, `worse`, `same`, `moved` where less is not better, or `unknown` where an arm is missing."""
    controls: tuple[Side, ...]

    @property
    def ratio(self) -> float | None:
        """After over before; None where it can't be told."""
        if self.before.value is None or self.after.value is None or self.before.value == 0:
            return None
        return self.after.value / self.before.value


@dataclass(frozen=True)
class Comparison:
    """A run of `compare` or of the gate."""

    run: Run
    before: Arm | None
    after: Arm | None
    before_builds: tuple[Build, ...]
    after_builds: tuple[Build, ...]
    controls: tuple[Arm, ...]
    verdicts: tuple[VerdictRow, ...]
    changes: tuple[Change, ...]
    explanations: tuple[Explanation, ...]
    identical: bool
    """The two arms were the same binary."""

    @property
    def title(self) -> str:
        """The two arms in a few words."""
        if self.before is None or self.after is None:
            return f"Comparison {self.run.id[:8]}"
        return f"{_side_name(self.before, self.before_builds)} → {_side_name(self.after, self.after_builds)}"


def comparisons(store: Store, limit: int) -> list[Comparison]:
    """Return the newest runs that compare, at most `limit`; what was given up before it measured is left out."""
    runs = store.runs(kind=KINDS, limit=limit)
    ids = [run.id for run in runs]
    measured: dict[str, list[Measurement]] = {run_id: [] for run_id in ids}
    for each in store.measurements(run_id=ids):
        measured[each.run_id].append(each)
    attached: dict[str, list[str]] = {}
    for owner, kind, _ in store.attachment_kinds(ids):
        attached.setdefault(owner, []).append(kind)
    return [each for each in (_comparison(store, run, measured[run.id], attached) for run in runs) if each.before]


def _comparison(
    store: Store, run: Run, measurements: Sequence[Measurement], attached: Mapping[str, Sequence[str]]
) -> Comparison:
    """Return one run's two arms side by side; `attached` are the kinds of attachments by measurement."""
    controls = tuple(arm for arm in arms_of(measurements) if arm.role == REFERENCE)
    before, after = (_sides(measurements) + [None, None])[:2]
    builds = builds_of(measurements)
    sides_builds = [tuple(builds.get(arm.key, ())) if arm else () for arm in (before, after)]
    keys = [{build.key for build in each} for each in sides_builds]
    verdicts, explanations = _read_attachments(store, measurements, attached)
    return Comparison(
        run=run,
        before=before,
        after=after,
        before_builds=sides_builds[0],
        after_builds=sides_builds[1],
        controls=controls,
        verdicts=tuple(verdicts),
        changes=tuple(_changes(measurements, before, after, controls)),
        explanations=tuple(explanations),
        identical=bool(keys[0]) and keys[0] == keys[1],
    )


def _sides(measurements: Sequence[Measurement]) -> list[Arm | None]:
    """Return the arms that are compared, the one that is judged against first."""
    keys = dict.fromkeys(arm_key(each) for each in sorted(measurements, key=lambda each: each.position))
    sides = sorted((key for key in keys if key[1] != REFERENCE), key=lambda key: key[1] != "pin")
    return [Arm(allocator, role) for allocator, role in sides]


def _side_name(arm: Arm, builds: Sequence[Build]) -> str:
    """Return an arm's revision; a role that is none stands before that of its build."""
    role = short_revision(arm.role)
    if not builds or builds[0].revision.startswith(arm.role):
        return role
    return f"{role} {short_revision(builds[0].revision)}"


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
                    direction=_direction(key.metric, sides[0], sides[1]),
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
    return Side(format_compared(cell.unit, value), title, value)


def _delta(before: Side, after: Side) -> str:
    return "" if before.value is None or after.value is None else format_delta(before.value, after.value)


def _direction(metric: str, before: Side, after: Side) -> str:
    if before.value is None or after.value is None:
        return "unknown"
    if before.value == after.value:
        return "same"
    if not is_smaller_better(metric):
        return "moved"
    return "better" if after.value < before.value else "worse"


def _read_attachments(
    store: Store, measurements: Sequence[Measurement], attached: Mapping[str, Sequence[str]]
) -> tuple[list[VerdictRow], list[Explanation]]:
    """Return the verdicts and the explanations stored with a run; a form that is not known is shown as it is."""
    verdicts: list[VerdictRow] = []
    explanations: list[Explanation] = []
    for owner in measurements:
        name = label((owner.workload, owner.variant))
        for kind in dict.fromkeys(attached.get(owner.id, ())):
            if kind not in ("verdicts", "explanation"):
                continue
            for data in store.attachments(owner.id, kind):
                rows = read_verdicts(data) if kind == "verdicts" else None
                if rows is not None:
                    verdicts += rows
                else:
                    explanations.append(read_explanation(data, name))
    return verdicts, explanations
