"""The matrix of a run: one block a workload, one row an arm, Ebb's tree and pin first, the references below.

`matrix` makes plain data from measurements; the `as_` functions print it for a terminal, for Markdown and for JSON.
Pure but for the console that is passed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.present.figures import Cell, Column, Guide, cell, ratio, show
from results.records import Measurement

NOTE_WIDTH_MIN = 24
"""Columns of a note: narrower ones fold into a tower of syllables."""
_TIMES = frozenset({"s", "ns"})
_ROLE_ORDER = {"tree": 0, "pin": 1}


@dataclass(frozen=True)
class Row:
    """One arm of one workload."""

    arm: str
    version: str
    cells: dict[str, Cell]
    modes: str
    """What the workload had to emulate, such as `heap emulated`."""
    reason: str
    """Why a figure is missing."""


@dataclass(frozen=True)
class Block:
    """One workload variant."""

    workload: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    summary: str = ""
    """The workload's one line."""

    @property
    def base(self) -> Row | None:
        """The row that ratios refer to: the tree if it has figures, else the first that has."""
        return next((row for row in self.rows if any(c.value is not None for c in row.cells.values())), None)


def matrix(measurements: Sequence[Measurement], guide: Guide = Guide()) -> list[Block]:
    """Return the blocks of a run, in the order in which their workloads were first measured.

    `guide` says which variant is shown as the bare workload (`default` where it is silent) and which columns.
    """
    blocks: dict[str, dict[tuple[str, str], list[Measurement]]] = {}
    columns: dict[str, tuple[Column, ...]] = {}
    for row in sorted(measurements, key=lambda m: m.position):
        shown_bare = guide.bare.get(row.workload, "default")
        label = row.workload if row.variant == shown_bare else f"{row.workload}:{row.variant}"
        columns[label] = guide.columns(row.workload)
        blocks.setdefault(label, {}).setdefault((row.arm, row.build.allocator), []).append(row)
    return [
        _block(label, arms, columns[label], guide.summaries.get(label.partition(":")[0], ""))
        for label, arms in blocks.items()
    ]


def as_table(blocks: Sequence[Block], console: Console) -> None:
    """Print the matrix for people: figures, and beside each its ratio to the first row."""
    for block in blocks:
        title = f"{block.workload}: {block.summary}" if block.summary else block.workload
        console.print(Text(title, style="bold"), soft_wrap=True)
        table = Table(show_edge=False, pad_edge=False)
        table.add_column("allocator", no_wrap=True)
        for column in block.columns:
            table.add_column(column.title, justify="right", no_wrap=True)
            table.add_column("ratio", justify="right", no_wrap=True, style="dim")
        texts = [_texts(row, block) for row in block.rows]
        noted = any(cells[-1] for cells in texts)
        if noted:
            table.add_column("note", overflow="fold", min_width=NOTE_WIDTH_MIN)
        for cells in texts:
            table.add_row(*(cells if noted else cells[:-1]))
        console.print(table)
        console.print()


def spread_note(blocks: Sequence[Block]) -> str:
    """Return what the ± in the tables means; nothing when there is none."""
    cells = ((row.cells[c.key], c) for block in blocks for row in block.rows for c in block.columns)
    if not any(found.spread is not None and column.unit in _TIMES for found, column in cells):
        return ""
    return "±: half the range of the runs behind a time; arms that differ by less are not told apart by it"


def as_markdown(blocks: Sequence[Block]) -> str:
    """Return the matrix as Markdown tables."""
    lines: list[str] = []
    for block in blocks:
        titles = ["allocator"]
        for column in block.columns:
            titles += [column.title, "ratio"]
        titles.append("note")
        lines += [f"### {block.workload}", "", "| " + " | ".join(titles) + " |"]
        lines.append("|" + " --- |" + " ---: |" * (2 * len(block.columns)) + " --- |")
        for row in block.rows:
            lines.append("| " + " | ".join(text.replace("|", "\\|") for text in _texts(row, block)) + " |")
        lines.append("")
    return "\n".join(lines)


def as_data(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return the matrix as plain data for JSON: every value in its base unit (count, seconds, bytes)."""
    return [
        {
            "workload": block.workload,
            "arms": [
                {
                    "arm": row.arm, "version": row.version, "emulated": row.modes, "reason": row.reason,
                    "figures": {key: c.value for key, c in row.cells.items() if c.value is not None},
                }
                for row in block.rows
            ],
        }
        for block in blocks
    ]  # fmt: skip


def _block(
    label: str, arms: dict[tuple[str, str], list[Measurement]], columns: tuple[Column, ...], summary: str
) -> Block:
    ordered = sorted(arms.items(), key=lambda item: _ROLE_ORDER.get(item[0][0], 2))
    cells = {key: {column.key: cell(rows, column) for column in columns} for key, rows in ordered}
    shown = tuple(c for c in columns if any(by_key[c.key].value is not None for by_key in cells.values()))
    rows = tuple(_row(role, allocator, found, cells[(role, allocator)], shown) for (role, allocator), found in ordered)
    return Block(label, rows, shown or columns[:1], summary)


def _row(role: str, allocator: str, found: list[Measurement], cells: dict[str, Cell], shown: tuple[Column, ...]) -> Row:
    emulated: set[str] = set()
    for measurement in found:
        emulated |= {name for name, mode in measurement.modes.items() if mode == "emulated"}
    reasons = [m.reason for m in found if m.reason and any(cells[c.key].value is None for c in shown)]
    if not reasons and all(cells[c.key].value is None for c in shown):
        reasons = [m.reason for m in found if m.reason]
    build = found[0].build
    name = allocator if role == "reference" else f"{allocator} ({role})"
    return Row(
        arm=name, version=build.version or build.revision[:12], cells=cells,
        modes=f"{', '.join(sorted(emulated))} emulated" if emulated else "", reason=reasons[0] if reasons else "",
    )  # fmt: skip


def _texts(row: Row, block: Block) -> list[str]:
    texts = [row.arm]
    base = block.base
    for column in block.columns:
        found = row.cells[column.key]
        value, text = found.value, show(found.value, column.unit)
        if found.spread is not None and column.unit in _TIMES:
            text += f" ±{100.0 * found.spread:.0f} %"
        texts += [text, ratio(value, base.cells[column.key].value if base else None)]
    note = "; ".join(part for part in (row.modes, row.reason) if part)
    return [*texts, note]
