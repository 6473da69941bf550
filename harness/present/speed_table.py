"""The speed table: what a release of Ebb must reach in instructions, time and memory, beside every reference.

`bench --set speed` measures what `needed` and `loop_jobs` name, `speed_table` makes plain data of the measurements,
the `as_` functions print it for a terminal, for Markdown and for JSON. One row a goal, one column an allocator: the
working tree first, then the references that have figures. Pure but for the console that is passed in.

Invariants
1. All figures of a row come from one run and one provider, and every row names its goal.
2. What was not measured has a reason in `Row.missing`; a row without an own figure is never "reached".
3. A mean over the fixed set covers the workloads that the tree and all compared references have; the rest is named.
"""

from __future__ import annotations

import dataclasses
import statistics
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from harness.model.arm import REFERENCE, TREE
from harness.model.errors import CannotMeasure
from harness.model.plan import unit_of
from harness.model.workload import Variant, Workload, select_set, select_workloads
from harness.present.figures import COLUMNS, Cell, Column, Guide, cell
from results.records import Measurement

BARE, LOOP = "churn_bare", "churn_loop"
"""The workload whose loop costs what LOOP, the same program over an allocator that does nothing, needs."""
LOOP_ARM = "loop"
"""The role of that allocator."""
OPERATION_ROWS = (
    ("medium churn, 4–64 KiB", "churn_sizes", "medium"), ("large churn, 64 KiB–4 MiB", "churn_sizes", "large"),
    ("huge churn, 4–32 MiB", "churn_sizes", "huge"), ("realloc, random sizes", "realloc", "default"),
    ("realloc, grown 8 B at a time", "realloc", "vector"), ("realloc, doubled and shrunk", "realloc", "doubling"),
    ("aligned, 16 B–4 KiB", "aligned", "default"), ("aligned, 4 KiB–1 MiB", "aligned", "wide"),
    ("calloc of large blocks", "calloc_large", "default"),
)  # fmt: skip
"""Title, workload, variant: compared in instructions an operation and in page faults."""
SINGLE_WORKLOADS = (f"{BARE}:default", f"{BARE}:small", "remote:default", "idle_threads:default", "startup:default",
                    "waste:default")  # fmt: skip
_BY_KEY = {column.key: column for column in COLUMNS}


@dataclass(frozen=True)
class Goal:
    """At most `limit` (in the row's unit), or at most `factor` times the best reference."""

    text: str
    limit: float | None = None
    factor: float = 1.0

    def reached(self, own: float, references: Sequence[float]) -> bool | None:
        """Say whether a figure reaches it; None where there is nothing to compare with."""
        if self.limit is not None:
            return own <= self.limit
        return own <= self.factor * min(references) if references else None


BEST = Goal("≤ the best")


@dataclass(frozen=True)
class Row:
    """One goal and everybody's figure in base units; smaller is better in every row."""

    key: str
    title: str
    unit: str
    """`instructions`, `ns`, `byte`, `ratio` or `count`."""
    goal: Goal
    figures: Mapping[str, float]
    """By allocator."""
    missing: Mapping[str, str]
    """By allocator: why there is no figure."""
    note: str = ""


@dataclass(frozen=True)
class SpeedTable:
    """The rows, and the allocators in the order of their columns."""

    own: str
    references: tuple[str, ...]
    rows: tuple[Row, ...]

    def verdict(self, row: Row) -> str:
        """Return `reached`, `missed` or `cannot tell`."""
        if self.own not in row.figures:
            return "cannot tell"
        known = [row.figures[name] for name in self.references if name in row.figures]
        reached = row.goal.reached(row.figures[self.own], known)
        return "cannot tell" if reached is None else "reached" if reached else "missed"

    def not_measured(self) -> list[str]:
        """Return a sentence for everything that has no figure: one for each group of rows and reason."""
        rows: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            for name, reason in row.missing.items():
                rows.setdefault((name, reason), []).append(row.title)
        alike: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for who, lacking in rows.items():
            alike.setdefault(tuple(lacking), []).append(who)
        sentences: list[str] = []
        for titles, whose in alike.items():
            names = ", ".join(dict.fromkeys(name for name, _ in whose))
            what = "everything" if len(titles) == len(self.rows) else "; ".join(titles)
            sentences.append(f"{what} ({names}): {whose[0][1]}")
        return sentences


@dataclass(frozen=True)
class _Found:
    """The measurements of a run by allocator, then by (workload, variant)."""

    own: str
    by_name: Mapping[str, Mapping[tuple[str, str], list[Measurement]]]
    loop: Mapping[tuple[str, str], list[Measurement]] = field(default_factory=dict)

    def cell(self, name: str, workload: str, variant: str, column: Column) -> Cell:
        """Return a figure; one that is not there has a reason."""
        found = cell(self.by_name[name].get((workload, variant), ()), column)
        return found if found.value is not None or found.reason else _nothing(workload, variant)


def needed(known: Mapping[str, Workload]) -> list[tuple[Workload, Variant]]:
    """Return what the table is made of, whatever else the set holds; CannotMeasure if a workload is not there."""
    workloads = dict(known)
    names = [*SINGLE_WORKLOADS, *(f"{workload}:{variant}" for _, workload, variant in OPERATION_ROWS)]
    return list(dict.fromkeys([*select_workloads(workloads, names), *fixed_set(workloads)]))


def fixed_set(known: Mapping[str, Workload]) -> list[tuple[Workload, Variant]]:
    """Return the variants that the means over the fixed set cover: those that every bench measures."""
    return select_set(dict(known), "fixed", quick=True)


def loop_workload(known: Mapping[str, Workload]) -> Workload:
    """Return the loop of churn_bare as a workload; its binary is built beside, its figures are no goal's."""
    if BARE not in known:
        raise CannotMeasure(f"There is no workload {BARE}, whose loop the speed table subtracts: restore its folder.")
    return dataclasses.replace(known[BARE], name=LOOP, binary=LOOP, metrics=("instructions",))


def without_loop(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return what compares allocators: everything but the loop over none."""
    return [m for m in measurements if m.arm != LOOP_ARM]


def speed_table(
    measurements: Sequence[Measurement], fixed: Sequence[tuple[str, str]], libc: str, guide: Guide = Guide()
) -> SpeedTable:
    """Return the table of a run.

    `fixed` names the (workload, variant) pairs of the fixed set, `libc` the allocator that start-up is compared with.
    """
    found = _found(measurements)
    rows = [
        _pair(found, "default", "churn 16–1039 B, a pair of malloc and free", Goal("≤ 31", 31.0)),
        _pair(found, "small", "churn 16–127 B, a pair of malloc and free", Goal("≤ 29.5", 29.5)),
        _per_operation(found, "remote_wall", "remote, wall a block", ("remote", "default"), _wall(), "ns", 1e9, BEST),
        _mean(found, "fixed_wall", "wall over the fixed set, geometric mean", _BY_KEY["wall_s"], fixed, guide,
              Goal("≤ 0.95 × the best", factor=0.95)),
        _mean(found, "fixed_peak_rss", "peak RSS over the fixed set, geometric mean", _BY_KEY["peak_rss_bytes"], fixed,
              guide, Goal("≤ the smallest")),
        _own(found, "idle_thread", "idle thread with 16 small blocks", "idle_threads", "heap_bytes",
             Goal("≤ 32 KiB", 32 * 1024.0)),
        _own(found, "idle_thread_left", "left of a thread after its exit", "idle_threads", "left_bytes", BEST),
        _over_libc(found, "startup_instructions", "start-up over the libc's", "instructions", "instructions", libc,
                   Goal("≤ 30,000", 30_000.0)),
        _over_libc(found, "startup_rss", "RSS of start-up over the libc's", "peak_rss_bytes", "byte", libc,
                   Goal("≤ 48 KiB", 48 * 1024.0)),
        _own(found, "waste_usable", "worst usable size over request", "waste", "usable_worst_ratio",
             Goal("≤ 1.125", 1.125)),
        _own(found, "waste_resident", "worst RSS over request", "waste", "resident_worst_ratio",
             Goal("≤ 1.125", 1.125)),
    ]  # fmt: skip
    for title, workload, variant in OPERATION_ROWS:
        label, key = (workload, variant), f"{workload}_{variant}"
        rows.append(
            _per_operation(
                found, f"{key}_instructions", title, label, _BY_KEY["instructions"], "instructions", 1.0, BEST
            )
        )
        rows.append(_plain(found, f"{key}_faults", f"{title}: page faults", label, _BY_KEY["page_faults"], BEST))
    return SpeedTable(found.own, tuple(name for name in found.by_name if name != found.own), tuple(rows))


def as_data(table: SpeedTable) -> dict[str, Any]:
    """Return the table for JSON: every figure in its base unit."""
    return {
        "own": table.own,
        "references": list(table.references),
        "rows": [
            {"key": row.key, "title": row.title, "unit": row.unit, "goal": row.goal.text, "note": row.note,
             "figures": dict(row.figures), "not_measured": dict(row.missing), "verdict": table.verdict(row)}
            for row in table.rows
        ],
    }  # fmt: skip


def as_markdown(table: SpeedTable) -> str:
    """Return the table for a README, with what has no figure below it."""
    names = _shown(table)
    lines = [
        "| what | goal | " + " | ".join(names) + " | verdict |",
        "| --- | --- |" + " ---: |" * len(names) + " --- |",
    ]
    lines += ["| " + " | ".join(text.replace("|", "\\|") for text in _texts(table, row, names)) + " |"
              for row in table.rows]  # fmt: skip
    lines += ["", *(f"- {sentence}" for sentence in _remarks(table))]
    return "\n".join(lines) + "\n"


def print_speed_table(table: SpeedTable, console: Console) -> None:
    """Print the table for people."""
    names = _shown(table)
    grid = Table(title="speed table", title_justify="left", title_style="bold", show_edge=False, pad_edge=False)
    grid.add_column("what", overflow="fold")
    grid.add_column("goal", no_wrap=True)
    for name in names:
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    for row in table.rows:
        grid.add_row(*_texts(table, row, names))
    console.print(grid)
    for sentence in _remarks(table):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    console.print()


def _found(measurements: Sequence[Measurement]) -> _Found:
    by_name: dict[str, dict[tuple[str, str], list[Measurement]]] = {}
    loop: dict[tuple[str, str], list[Measurement]] = {}
    own = "ebb (tree)"
    for measurement in sorted(measurements, key=lambda m: (m.arm != TREE, m.position)):
        label = (measurement.workload, measurement.variant)
        if measurement.arm == LOOP_ARM:
            loop.setdefault(label, []).append(measurement)
        elif measurement.arm in (TREE, REFERENCE):
            name = measurement.build.allocator
            if measurement.arm == TREE:
                own = name = f"{name} (tree)"
            by_name.setdefault(name, {}).setdefault(label, []).append(measurement)
    return _Found(own, {own: by_name.pop(own, {}), **by_name}, loop)


def _row(key: str, title: str, unit: str, goal: Goal, cells: Mapping[str, Cell], note: str = "") -> Row:
    figures = {name: c.value for name, c in cells.items() if c.value is not None}
    missing = {name: c.reason for name, c in cells.items() if c.value is None}
    return Row(key, title, unit, goal, figures, missing, note)


def _pair(found: _Found, variant: str, title: str, goal: Goal) -> Row:
    """What a malloc and a free cost: instructions an iteration, less the loop's. One provider counts both."""
    column = _BY_KEY["instructions"]
    loop = cell(found.loop.get((LOOP, variant), ()), column)
    loop_pair = loop.value / loop.operations if loop.value is not None and loop.operations else None
    cells = {}
    for name in found.by_name:
        whole = found.cell(name, BARE, variant, column)
        if whole.value is None or not whole.operations:
            cells[name] = whole if whole.value is None else _nothing(BARE, variant)
        elif loop_pair is None:
            cells[name] = Cell(None, reason=loop.reason or _nothing(LOOP, variant).reason)
        else:
            cells[name] = Cell(whole.value / whole.operations - loop_pair)
    note = "" if loop_pair is None else f"less {loop_pair:.1f} instructions of the loop itself"
    return _row(f"churn_{variant}", title, "instructions", goal, cells, note)


def _per_operation(
    found: _Found, key: str, title: str, label: tuple[str, str], column: Column, unit: str, scale: float, goal: Goal
) -> Row:
    cells = {}
    for name in found.by_name:
        whole = found.cell(name, *label, column)
        known = whole.value is not None and whole.operations
        cells[name] = Cell(whole.value * scale / whole.operations) if known else (  # type: ignore[operator]
            whole if whole.value is None else _nothing(*label))  # fmt: skip
    return _row(key, title, unit, goal, cells)


def _plain(found: _Found, key: str, title: str, label: tuple[str, str], column: Column, goal: Goal) -> Row:
    cells = {name: found.cell(name, *label, column) for name in found.by_name}
    return _row(key, title, column.unit, goal, cells)


def _own(found: _Found, key: str, title: str, workload: str, metric: str, goal: Goal) -> Row:
    """A figure that a workload reports itself."""
    column = Column(metric, title, (("smaps", metric),), unit_of(metric))
    return _plain(found, key, title, (workload, "default"), column, goal)


def _over_libc(found: _Found, key: str, title: str, column_key: str, unit: str, libc: str, goal: Goal) -> Row:
    column, label = _BY_KEY[column_key], ("startup", "default")
    base = found.cell(libc, *label, column) if libc in found.by_name else _nothing(*label)
    cells = {}
    for name in found.by_name:
        whole = found.cell(name, *label, column)
        if whole.value is not None and base.value is None:
            cells[name] = Cell(None, reason=f"{libc} has no figure to compare with: {base.reason}")
        elif name != libc:
            cells[name] = whole if whole.value is None or base.value is None else Cell(whole.value - base.value)
    note = "" if base.value is None else f"{libc} itself: {_show(base.value, unit)}"
    return _row(key, title, unit, goal, cells, note)


def _mean(
    found: _Found, key: str, title: str, column: Column, fixed: Sequence[tuple[str, str]], guide: Guide, goal: Goal
) -> Row:
    """The geometric mean of each one's ratio to the tree, over the workloads that all have."""
    about = [label for label in fixed if any(c.key == column.key for c in guide.columns(label[0]))]
    values = {name: {label: found.cell(name, *label, column) for label in about} for name in found.by_name}
    compared = [name for name, cells in values.items() if any(c.value for c in cells.values())]
    common = [label for label in about if all(values[name][label].value for name in compared)]
    cells = {}
    for name in found.by_name:
        if name not in compared or not common or found.own not in compared:
            reasons = [c.reason for c in values[name].values() if c.reason]
            cells[name] = Cell(None, reason=reasons[0] if reasons else "no workload of the fixed set has all figures.")
            continue
        ratios = [values[name][label].value / values[found.own][label].value for label in common]  # type: ignore
        cells[name] = Cell(statistics.geometric_mean(ratios))
    lacking = [
        f"{workload}:{variant} ({', '.join(n for n in compared if not values[n][(workload, variant)].value)})"
        for workload, variant in about if (workload, variant) not in common
    ]  # fmt: skip
    note = f"ratio to {found.own} over {len(common)} workloads" + (
        f"; left out, with who has no figure: {', '.join(lacking)}" if lacking else ""
    )
    return _row(key, title, "ratio", goal, cells, note)


def _wall() -> Column:
    return Column("wall_s", "wall", (("hyperfine", "wall_s"),), "s")


def _nothing(workload: str, variant: str) -> Cell:
    return Cell(None, reason=f"{workload}:{variant} was not measured in this run: run `./tidemark bench --set speed`.")


def _shown(table: SpeedTable) -> list[str]:
    """Return the columns: the own one, and every reference that has a figure."""
    return [table.own, *(name for name in table.references if any(name in row.figures for row in table.rows))]


def _texts(table: SpeedTable, row: Row, names: Sequence[str]) -> list[str]:
    figures = [_show(row.figures[name], row.unit) if name in row.figures else "–" for name in names]
    return [row.title, row.goal.text, *figures, table.verdict(row)]


def _remarks(table: SpeedTable) -> list[str]:
    notes = [f"{row.title}: {row.note}." for row in table.rows if row.note]
    return [*notes, *(f"not measured: {sentence}" for sentence in table.not_measured())]


def _show(value: float, unit: str) -> str:
    if unit == "instructions":
        return f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"
    if unit == "byte":
        return f"{value / 1024:,.1f} KiB"
    if unit == "ns":
        return f"{value:,.1f} ns"
    return f"{value:.3f}" if unit == "ratio" else f"{value:,.0f}"
