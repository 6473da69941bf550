"""How a measuring command ends: the matrix, what could not be measured, the time spent, and the exit code."""

from __future__ import annotations

from typing import Any, Sequence

from rich.console import Console

from harness.model.errors import EXIT_CANNOT_MEASURE, EXIT_FINE
from harness.present.figures import Guide
from harness.present.matrix import as_data, as_table, matrix, spread_note
from harness.present.summary import geometric_means, print_summary
from results.records import Measurement


def outcome_data(
    measurements: Sequence[Measurement], run_id: str, spent_s: float, guide: Guide = Guide()
) -> dict[str, Any]:
    """Return a run's result for machines."""
    blocks = matrix(measurements, guide)
    return {
        "run": run_id,
        "spent_s": round(spent_s, 3),
        "matrix": as_data(blocks),
        "geometric_means": geometric_means(blocks),
        "not_measured": [
            {"workload": m.workload, "variant": m.variant, "arm": m.arm, "allocator": m.build.allocator,
             "provider": m.provider, "status": m.status, "reason": m.reason}
            for m in measurements if m.status != "ok"
        ],
    }  # fmt: skip


def print_outcome(
    measurements: Sequence[Measurement], spent_s: float, console: Console, guide: Guide = Guide()
) -> None:
    """Print a run's result for people."""
    blocks = matrix(measurements, guide)
    as_table(blocks, console)
    print_summary(blocks, console)
    note = spread_note(blocks)
    if note:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    failed = [m for m in measurements if m.status == "failed"]
    skipped = [m for m in measurements if m.status == "skipped"]
    for reason in dict.fromkeys(m.reason for m in (*failed, *skipped)):
        console.print(f"not measured: {reason}", markup=False, highlight=False, soft_wrap=True)
    counted = len(measurements) - len(failed) - len(skipped)
    console.print(
        f"{counted} measured, {len(failed)} failed, {len(skipped)} skipped; {spent_s:.0f} s spent measuring",
        markup=False, highlight=False,
    )  # fmt: skip


def exit_code(measurements: Sequence[Measurement], skipped_fails: bool) -> int:
    """Return 2 when something broke or nothing was measured; `skipped_fails`: also when something was skipped."""
    statuses = [m.status for m in measurements]
    if "failed" in statuses or "ok" not in statuses or (skipped_fails and "skipped" in statuses):
        return EXIT_CANNOT_MEASURE
    return EXIT_FINE
