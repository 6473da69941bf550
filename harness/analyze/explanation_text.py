"""Prints an explanation for people: functions, source functions, lines, and the disassembly side by side.

Called by `tidemark explain`. Only arranges; every figure is the explanation's.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.analyze.disassembly import Side
from harness.analyze.explanation import LISTED_MAX, CountExplanation, Listing, MemoryExplanation, line_place
from harness.analyze.memory_diff import MIB

LISTING_TEXT_MAX = 46
"""Columns of one side's instruction."""


def print_explanation(explanation: CountExplanation | MemoryExplanation, target: Console, listings: bool) -> None:
    """Print everything the explanation holds; `listings` adds the disassembly."""
    target.print(
        f"{explanation.workload}: {explanation.before} → {explanation.after}",
        markup=False,
        highlight=False,
        emoji=False,
    )
    for sentence in explanation.sentences:
        target.print(f"  {sentence}", markup=False, highlight=False, emoji=False, soft_wrap=True)
    if isinstance(explanation, MemoryExplanation):
        target.print(_categories(explanation))
        return
    target.print(_functions(explanation))
    if explanation.source_functions:
        target.print(_source_functions(explanation))
    if explanation.profile.lines:
        target.print(_lines(explanation))
    for listing in explanation.listings if listings else ():
        target.print(_listing(listing))


def _table(title: str, *columns: tuple[str, str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name, justify in columns:
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    return table


def _functions(explanation: CountExplanation) -> Table:
    table = _table("functions, own instructions per operation", ("function", "left"), ("object", "left"),
                   ("before", "right"), ("after", "right"), ("difference", "right"), ("by calls", "right"),
                   ("by cost", "right"), ("calls before", "right"), ("calls after", "right"), ("", "left"))  # fmt: skip
    for item in explanation.profile.functions[:LISTED_MAX]:
        figures = (f"{item.before:.3f}", f"{item.after:.3f}", f"{item.delta:+.3f}", f"{item.by_calls:+.3f}",
                   f"{item.by_cost:+.3f}", f"{item.calls_before:.4g}", f"{item.calls_after:.4g}")  # fmt: skip
        table.add_row(Text(item.function.name), Text(item.function.object), *figures, str(item.change))
    return table


def _source_functions(explanation: CountExplanation) -> Table:
    table = _table("where they were written, inlining resolved", ("function", "left"), ("before", "right"),
                   ("after", "right"), ("difference", "right"))  # fmt: skip
    for item in explanation.source_functions[:LISTED_MAX]:
        table.add_row(Text(item.function), f"{item.before:.3f}", f"{item.after:.3f}", f"{item.delta:+.3f}")
    return table


def _lines(explanation: CountExplanation) -> Table:
    table = _table("source lines", ("line", "left"), ("before", "right"), ("after", "right"), ("difference", "right"),
                   ("text", "left"))  # fmt: skip
    for item in explanation.profile.lines[:LISTED_MAX]:
        table.add_row(
            Text(line_place(item)), f"{item.before:.3f}", f"{item.after:.3f}", f"{item.delta:+.3f}", Text(item.text)
        )
    return table


def _listing(listing: Listing) -> Table:
    title = (
        f"{listing.function}: {listing.executed_before:.3f} → {listing.executed_after:.3f} instructions per operation"
    )
    table = _table(title, ("runs", "right"), ("before", "left"), ("", "left"), ("runs", "right"), ("after", "left"))
    for row in listing.rows:
        style = "" if row.mark == " " else "bold"
        table.add_row(*_side(row.before), row.mark, *_side(row.after), style=style)
    return table


def _side(side: Side | None) -> tuple[str, Text]:
    if side is None:
        return "", Text("")
    return (f"{side.executed:.3f}" if side.executed else "·"), Text(side.text[:LISTING_TEXT_MAX])


def _categories(explanation: MemoryExplanation) -> Table:
    table = _table(
        "memory by category", ("category", "left"), ("difference", "right"), ("at the end", "right"), ("shape", "left")
    )
    for item in explanation.categories:
        table.add_row(item.metric, f"{item.level / MIB:+.2f} MiB", f"{item.final / MIB:+.2f} MiB", item.shape_words())
    return table
