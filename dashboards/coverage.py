"""What a run could not measure, and why: every failed and every skipped measurement, none left out.

Who calls it: site.py. Pure, safe from any thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dashboards.arms import Arm, arm_key
from dashboards.summary import label
from results.records import Measurement


@dataclass(frozen=True)
class Gap:
    """Measurements of one arm that broke in the same way."""

    label: str
    workload: str
    arm: str
    provider: str
    status: str
    reason: str
    count: int
    command: str


def gaps(measurements: Iterable[Measurement], arms: Iterable[Arm]) -> list[Gap]:
    """Return what was not measured, failures first; equal ones are counted."""
    names = {arm.key: arm.name for arm in arms}
    grouped: dict[tuple[str, str, str, str, str, str], list[Measurement]] = {}
    for each in measurements:
        if each.status != "ok":
            case = label((each.workload, each.variant))
            key = (each.status, case, names[arm_key(each)], each.provider, each.reason, each.workload)
            grouped.setdefault(key, []).append(each)
    return [
        Gap(case, workload, arm, provider, status, reason or "No reason was recorded.", len(found), found[0].command)
        for (status, case, arm, provider, reason, workload), found in sorted(grouped.items())
    ]
