"""Everything one run knows about one workload.

Who calls it: site.py. Pure, safe from any thread.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dashboards.arms import Arm, arm_key
from dashboards.coverage import Gap, gaps
from dashboards.matrix import MatrixCell, best_of, shown_cell
from dashboards.memory import MemoryCurves
from dashboards.summary import Case, Cell, Cells, MetricKey, is_smaller_better, is_whole, label, metric_order
from results.records import Measurement

FUNCTIONS = "function_instructions"
FUNCTIONS_SHOWN = 40


@dataclass(frozen=True)
class FigureRow:
    """One metric of one variant across the arms."""

    label: str
    key: MetricKey
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True)
class OperationRow:
    """One operation's figure (a function, a micro-benchmark) across the arms: medians."""

    label: str
    metric: str
    provider: str
    operation: str
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True)
class WorkloadPage:
    """What the page shows."""

    name: str
    file: str
    arms: tuple[Arm, ...]
    figures: tuple[FigureRow, ...]
    operations: tuple[OperationRow, ...]
    functions: tuple[OperationRow, ...]
    """Where the instructions went, the largest first; functions of different allocators are not compared."""
    curves: tuple[MemoryCurves, ...]
    gaps: tuple[Gap, ...]
    measurements: tuple[Measurement, ...]


def file_name(workload: str) -> str:
    """Return the page's file name; whatever a workload is called, it names a file in the site's folder."""
    return f"workload-{re.sub('[^A-Za-z0-9_-]', '_', workload)}.html"


def workload_pages(
    measurements: Sequence[Measurement], cells: Cells, curves: Sequence[MemoryCurves], arms: Sequence[Arm]
) -> list[WorkloadPage]:
    """Return a page for each workload of the run, by name."""
    by_workload: dict[str, list[Measurement]] = defaultdict(list)
    for measurement in measurements:
        by_workload[measurement.workload].append(measurement)
    return [
        WorkloadPage(
            name=name,
            file=file_name(name),
            arms=tuple(arms),
            figures=tuple(_figures(name, cells, arms)),
            operations=tuple(_by_detail(own, arms, lambda metric: metric != FUNCTIONS)),
            functions=tuple(_largest(_by_detail(own, arms, lambda metric: metric == FUNCTIONS))),
            curves=tuple(each for each in curves if each.case[0] == name),
            gaps=tuple(gaps(own, arms)),
            measurements=tuple(own),
        )
        for name, own in sorted(by_workload.items())
    ]


def _figures(workload: str, cells: Cells, arms: Sequence[Arm]) -> list[FigureRow]:
    rows = []
    cases: list[Case] = sorted({case for by_case in cells.values() for case in by_case if case[0] == workload})
    for case in cases:
        for key in sorted((key for key in cells if case in cells[key]), key=metric_order):
            found = [cells[key][case].get(arm.key) for arm in arms]
            best = best_of(found) if is_smaller_better(key.metric) else None
            rows.append(FigureRow(label(case), key, tuple(shown_cell(cell, best) for cell in found)))
    return rows


def _by_detail(
    measurements: Sequence[Measurement], arms: Sequence[Arm], wanted: Callable[[str], bool]
) -> list[OperationRow]:
    """Return the figures that name an operation or a function, for the metrics that are wanted."""
    found: dict[tuple[str, str, str, str], dict[tuple[str, str], Cell]] = defaultdict(lambda: defaultdict(Cell))
    for each in measurements:
        for sample in each.samples if each.status == "ok" else ():
            if sample.detail is not None and is_whole(sample) and wanted(sample.metric):
                row = (label((each.workload, each.variant)), sample.metric, each.provider, sample.detail)
                cell = found[row][arm_key(each)]
                cell.unit = sample.unit
                cell.values.append(sample.value)
    rows = []
    for (name, metric, provider, operation), by_arm in found.items():
        across = [by_arm.get(arm.key) for arm in arms]
        best = best_of(across) if metric != FUNCTIONS and is_smaller_better(metric) else None
        rows.append(OperationRow(name, metric, provider, operation, tuple(shown_cell(each, best) for each in across)))
    return rows


def _largest(rows: list[OperationRow]) -> list[OperationRow]:
    """Return the rows with the largest figures, by variant; the samples of all others stay in the store."""
    by_variant: dict[str, list[OperationRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda each: max(cell.value or 0.0 for cell in each.cells), reverse=True):
        by_variant[row.label].append(row)
    return [row for own in by_variant.values() for row in own[:FUNCTIONS_SHOWN]]
