"""The matrix: workloads down, allocators across, one table a metric, each cell with its ratio to the best.

Who calls it: site.py. Pure, safe from any thread.

Invariant: the geometric mean of an arm is taken over the rows that every measured arm has, and the
table says how many those are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dashboards.arms import Arm
from dashboards.figures import format_exact, format_ratio, format_value, ratio_step
from dashboards.summary import REGION, TITLES, WALL, Case, Cell, Cells, MetricKey, label, metric_order


@dataclass(frozen=True)
class MatrixCell:
    """One cell, ready to be shown."""

    text: str
    """The figure with its unit, or `failed`, `skipped`, `not run`."""
    value: float | None = None
    ratio: float | None = None
    step: int | None = None
    title: str = ""
    is_best: bool = False
    emulated: str = ""
    broken: int = 0

    @property
    def ratio_text(self) -> str:
        """The ratio to the best, or the word itself."""
        if self.ratio is None:
            return ""
        return "best" if self.is_best else format_ratio(self.ratio)


@dataclass(frozen=True)
class MatrixRow:
    """One workload variant."""

    case: Case
    label: str
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True)
class Matrix:
    """One table."""

    key: MetricKey
    arms: tuple[Arm, ...]
    rows: tuple[MatrixRow, ...]
    means: tuple[MatrixCell, ...]
    mean_rows: int
    """How many rows the geometric mean is taken over."""

    @property
    def ranking(self) -> list[tuple[MatrixCell, Arm]]:
        """The arms that have a geometric mean, the best first."""
        ranked = [(mean, arm) for mean, arm in zip(self.means, self.arms) if mean.value is not None]
        return sorted(ranked, key=lambda each: each[0].value or 0.0)


def matrices(cells: Cells, arms: Sequence[Arm]) -> list[Matrix]:
    """Return the matrices of the metrics that the index shows, in order."""
    shown = sorted((key for key in cells if key.metric in TITLES), key=metric_order)
    timed = {case for key in shown if key.metric == WALL for case in cells[key]}
    tables = []
    for key in shown:
        by_case = cells[key]
        if key.metric == REGION:
            # What times a workload's region stands in only where nothing has timed the whole process.
            by_case = {case: by_arm for case, by_arm in by_case.items() if case not in timed}
        if by_case:
            tables.append(_matrix(key, by_case, arms))
    return tables


def _matrix(key: MetricKey, by_case: dict[Case, dict[tuple[str, str], Cell]], arms: Sequence[Arm]) -> Matrix:
    rows = []
    for case in sorted(by_case):
        found = [by_case[case].get(arm.key) for arm in arms]
        best = best_of(found)
        rows.append(MatrixRow(case, label(case), tuple(shown_cell(cell, best) for cell in found)))
    means, count = _means(rows, len(arms))
    return Matrix(key, tuple(arms), tuple(rows), means, count)


def best_of(cells: Sequence[Cell | None]) -> float | None:
    """Return the smallest median, for a metric that is better when smaller; None where none is or all are zero."""
    medians = [cell.median for cell in cells if cell is not None and cell.median is not None]
    return min(medians) if any(medians) else None


def shown_cell(cell: Cell | None, best: float | None) -> MatrixCell:
    """Return a cell as the table shows it; without a best it is a figure that is not ranked."""
    if cell is None:
        return MatrixCell("not run", title="This run did not measure it.")
    value = cell.median
    if value is None:
        reasons = "; ".join(dict.fromkeys(measurement.reason for measurement in cell.broken))
        words = {measurement.status for measurement in cell.broken}
        return MatrixCell("failed" if "failed" in words else "skipped", title=reasons, broken=len(cell.broken))
    ratio = None if best is None else value / best if best else 1.0 if value == best else math.inf
    details = [f"{format_exact(cell.unit, value)}, median of {len(cell.values)}"]
    if len(cell.values) > 1:
        low, high = (format_value(cell.unit, end) for end in (min(cell.values), max(cell.values)))
        details.append(f"from {low} to {high}")
    if cell.broken:
        details.append(f"{len(cell.broken)} more failed: {cell.broken[0].reason}")
    return MatrixCell(
        text=format_value(cell.unit, value),
        value=value,
        ratio=ratio,
        step=None if ratio is None else ratio_step(ratio),
        title="; ".join(details),
        is_best=best is not None and value == best,
        emulated=", ".join(sorted(cell.emulated)),
        broken=len(cell.broken),
    )


def _is_ranked(cell: MatrixCell) -> bool:
    return cell.ratio is not None and math.isfinite(cell.ratio)


def _means(rows: Sequence[MatrixRow], arms: int) -> tuple[tuple[MatrixCell, ...], int]:
    """Return each arm's geometric mean of its ratios over the rows that all arms have, and how many those are.

    An arm without any figure has no mean and does not keep the others from theirs.
    """
    measured = [column for column in range(arms) if any(row.cells[column].ratio is not None for row in rows)]
    complete = [row for row in rows if all(_is_ranked(row.cells[column]) for column in measured)]
    if not measured or len(complete) < 2:
        return (), 0
    means = {
        column: math.exp(math.fsum(math.log(row.cells[column].ratio or 1.0) for row in complete) / len(complete))
        for column in measured
    }
    best = min(means.values())
    absent = MatrixCell("none", title="Nothing was measured, see the rows above.")
    title = f"Geometric mean of the ratio to the best in each of {len(complete)} rows"
    return tuple(
        MatrixCell(f"{mean:.3f}", mean, mean / best, ratio_step(mean / best), title, mean == best)
        if (mean := means.get(column)) is not None
        else absent
        for column in range(arms)
    ), len(complete)
