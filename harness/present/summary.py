"""The summary below a matrix: geometric means over the workloads, each arm against Ebb's tree. Pure."""

from __future__ import annotations

import math
from typing import Any, Sequence

from rich.console import Console
from rich.table import Table

from harness.present.figures import COLUMNS
from harness.present.matrix import Block


def geometric_means(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return, for every arm, the geometric mean of its ratio to the first arm, over the workloads where both have
    the figure; with the number of those workloads, because a mean over fewer is another question."""
    logs: dict[str, dict[str, list[float]]] = {}
    first = blocks[0].rows[0].arm if blocks else ""
    for block in blocks:
        base = next((row for row in block.rows if row.arm == first), None)
        if base is None:
            continue
        for row in block.rows:
            for column in block.columns:
                value, other = row.cells[column.key].value, base.cells[column.key].value
                if value and other and value > 0 and other > 0:
                    logs.setdefault(row.arm, {}).setdefault(column.key, []).append(math.log(value / other))
    return [
        {
            "arm": arm,
            "ratios": {key: math.exp(sum(values) / len(values)) for key, values in by_key.items()},
            "workloads": {key: len(values) for key, values in by_key.items()},
        }
        for arm, by_key in logs.items()
    ]


def print_summary(blocks: Sequence[Block], console: Console) -> None:
    """Print the geometric means, when there is more than one workload to take them over."""
    means = geometric_means(blocks)
    if len(blocks) < 2 or not means:
        return
    keys = [column for column in COLUMNS if any(column.key in mean["ratios"] for mean in means)]
    table = Table(title="geometric mean of the ratios (workloads)", title_justify="left", title_style="bold",
                  show_edge=False, pad_edge=False)  # fmt: skip
    table.add_column("allocator", no_wrap=True)
    for column in keys:
        table.add_column(column.title, justify="right", no_wrap=True)
    for mean in means:
        texts = [mean["arm"]]
        for column in keys:
            found = mean["ratios"].get(column.key)
            texts.append("–" if found is None else f"{found:.3f}× ({mean['workloads'][column.key]})")
        table.add_row(*texts)
    console.print(table)
    console.print()
