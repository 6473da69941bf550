"""Control arms: tells "the workload changed" and "the machine moved" from "the allocator changed".

A reference allocator that nobody changed runs at the begin and at the end of every comparison. If its own
figure moved within the run, the machine moved; if it moved against what is stored for the same build and
environment, the workload (or a tool) changed since. Called by compare and gate. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.analyze.figures import NoFigure, count_of
from harness.analyze.verdict import Outcome, Threshold, Verdict
from results.records import Measurement


@dataclass(frozen=True)
class ControlFinding:
    """What the control arm says about one workload's count."""

    label: str
    control: str
    metric: str
    value: float | None
    within_run_percent: float | None
    """How far the control moved from the begin to the end of this run."""
    since_stored_percent: float | None
    """How far it moved since the newest stored run of the same build here; None where nothing is stored."""
    moved: bool
    """The machine moved within the run: the allocators' figures of this workload are void."""
    sentence: str
    """Empty when there is nothing to say."""


def judge_control(
    label: str, metric: str, first: Measurement, last: Measurement, stored: Sequence[Measurement], limit: Threshold
) -> ControlFinding:
    """Judge the control's two runs against each other, and against the newest of `stored` of its own build."""
    control = first.build.allocator
    try:
        values = count_of(first, metric), count_of(last, metric)
    except NoFigure:
        reason = first.reason or last.reason or "it has no figure"
        return ControlFinding(
            label,
            control,
            metric,
            None,
            None,
            None,
            False,
            f"the control {control} could not be measured ({reason}), so nothing tells a change of "
            "the workload from a change of the allocator",
        )
    within = _percent(values[0], values[1])
    if abs(within) > limit.value:
        return ControlFinding(
            label,
            control,
            metric,
            values[1],
            within,
            None,
            True,
            f"{control}, which nobody changed, moved by {within:+.3f} % between the begin and the end of "
            "this run: the machine moved, not the allocator; run it again on a quiet machine",
        )
    earlier = [
        run
        for run in stored
        if run.build.key == first.build.key and run.run_id != first.run_id and run.profile == first.profile
    ]
    since = _since(earlier, metric, values[1])
    sentence = ""
    if since is not None and abs(since) > limit.value:
        sentence = (
            f"{control}'s own count moved by {since:+.3f} % since it was last stored here: the workload changed, "
            "not the allocator; stored figures and pins of this workload are out of date"
        )
    return ControlFinding(label, control, metric, values[1], within, since, False, sentence)


def voided(verdict: Verdict, finding: ControlFinding) -> Verdict:
    """Return the verdict as it stands beside its control: nothing can be told where the machine moved."""
    if not finding.moved:
        return verdict
    return replace(verdict, outcome=Outcome.CANNOT_TELL, reason=finding.sentence)


def _since(earlier: Sequence[Measurement], metric: str, now: float) -> float | None:
    for run in sorted(earlier, key=lambda run: run.started_at, reverse=True):
        try:
            return _percent(count_of(run, metric), now)
        except NoFigure:
            continue
    return None


def _percent(before: float, after: float) -> float:
    return 100.0 * (after - before) / before if before else 0.0
