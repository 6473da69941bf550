"""Puts together why a figure moved, as a record that the terminal, `--json` and the dashboard show.

Called by explain, compare and gate. Reads the builds' binaries through binutils; everything else comes in
as arguments. The JSON of `as_dict` is stored as an attachment of kind `explanation`; its keys only grow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.analyze.disassembly import Row, disassemble, executed_instructions, function_starts, side_by_side
from harness.analyze.figures import memory_by_category
from harness.analyze.inlining import cost_by_source_function, resolve
from harness.analyze.memory_diff import SeriesDifference, by_category, grouped_sentences
from harness.analyze.profile_diff import (
    MOVED_MIN_PER_OPERATION,
    NO_SYMBOLS,
    Change,
    Function,
    FunctionDifference,
    LineDifference,
    ProfileDifference,
    SourceView,
    Symbols,
    difference,
)
from harness.collect.callgrind_profile import Profile
from results.records import Measurement

FORMAT_VERSION = 1
FAST_PATHS = ("malloc", "free")
LISTED_MAX = 20
"""Functions and lines in the text and the record; the stored profiles hold all."""

LISTINGS_MAX = 4
"""Functions disassembled beyond the fast paths: those that moved most."""

SENTENCE_MIN_PER_OPERATION = 0.005
"""Smaller movements are listed but not put in words."""


@dataclass(frozen=True)
class Side:
    """One build's run, as an explanation needs it."""

    name: str
    revision: str
    profile: Profile
    operations: int
    binary: Path | None
    """The allocator's shared object; None for the libc's own, which is not disassembled."""

    def executed(self) -> dict[int, int]:
        """Return executions by address within the allocator's object."""
        if self.binary is None:
            return {}
        return {
            address: count
            for (path, address), count in self.profile.addresses.items()
            if path.rsplit("/", 1)[-1] == self.binary.name
        }

    def symbols(self) -> Symbols:
        """Return how often each function of the allocator was entered, and the name of each that has several."""
        if self.binary is None:
            return NO_SYMBOLS
        executed = self.executed()
        at: dict[int, list[str]] = defaultdict(list)
        for name, start in function_starts(self.binary).items():
            at[start].append(name)
        entered, names = {}, {}
        for start, aliases in at.items():
            # The plainest name: an alias more in one of the builds must not rename the function.
            one = Function(self.binary.name, min(aliases, key=lambda name: (len(name), name)))
            names.update({Function(self.binary.name, alias): one for alias in aliases})
            if start in executed:
                entered[one] = executed[start]
        return Symbols(entered, names)


@dataclass(frozen=True)
class SourceFunctionDifference:
    """Instructions per operation by the function they were written in, inlining resolved."""

    function: str
    before: float
    after: float

    @property
    def delta(self) -> float:
        """Instructions per operation more than before."""
        return self.after - self.before


@dataclass(frozen=True)
class Listing:
    """The two disassemblies of one function, aligned."""

    function: str
    rows: tuple[Row, ...]
    executed_before: float
    executed_after: float


@dataclass(frozen=True)
class CountExplanation:
    """Why an instruction count moved."""

    workload: str
    before: str
    after: str
    profile: ProfileDifference
    source_functions: tuple[SourceFunctionDifference, ...] = ()
    listings: tuple[Listing, ...] = ()
    sentences: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """The record that is stored and shown; every list is cut to its largest entries."""
        return {
            "version": FORMAT_VERSION, "kind": "instructions", "workload": self.workload,
            "before": _total(self.before, self.profile.total_before, self.profile.operations[0]),
            "after": _total(self.after, self.profile.total_after, self.profile.operations[1]),
            "delta_per_operation": self.profile.delta,
            "sentences": list(self.sentences),
            "functions": [_function(item) for item in self.profile.functions[:LISTED_MAX]],
            "source_functions": [{**asdict(item), "delta": item.delta} for item in self.source_functions[:LISTED_MAX]],
            "lines": [{**asdict(item), "delta": item.delta} for item in self.profile.lines[:LISTED_MAX]],
            "listings": [asdict(item) for item in self.listings],
        }  # fmt: skip


@dataclass(frozen=True)
class MemoryExplanation:
    """Why a memory series moved."""

    workload: str
    before: str
    after: str
    categories: tuple[SeriesDifference, ...]
    sentences: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The record that is stored and shown."""
        return {
            "version": FORMAT_VERSION, "kind": "memory", "workload": self.workload,
            "before": {"name": self.before}, "after": {"name": self.after},
            "sentences": list(self.sentences), "categories": [asdict(item) for item in self.categories],
        }  # fmt: skip


def explain_counts(workload: str, before: Side, after: Side, view: SourceView = SourceView()) -> CountExplanation:
    """Return where the instructions of two runs differ, in instructions per operation.

    CannotMeasure when binutils cannot read a binary.
    """
    operations = before.operations, after.operations
    found = difference(before.profile, after.profile, operations, view, (before.symbols(), after.symbols()))
    source_functions = _source_functions(before, after)
    return CountExplanation(
        workload, before.name, after.name, found, source_functions, _listings(before, after, found),
        tuple(_count_sentences(found, source_functions)),
    )  # fmt: skip


def explain_memory(
    workload: str, before: Sequence[Measurement], after: Sequence[Measurement], floor_bytes: float
) -> MemoryExplanation:
    """Return which memory category differs, from which checkpoint on, and as what shape.

    Figures that the workload reports about its allocator (bytes in its statistics) are categories too.
    """
    categories = by_category(memory_by_category(before), memory_by_category(after), floor_bytes)
    sentences = tuple(grouped_sentences(categories)) or (
        f"no category differs by more than {floor_bytes / (1 << 20):.2f} MiB at any checkpoint",
    )
    names = (before[0].arm if before else "", after[0].arm if after else "")
    return MemoryExplanation(workload, *names, tuple(categories), sentences)


def _source_functions(before: Side, after: Side) -> tuple[SourceFunctionDifference, ...]:
    if before.binary is None or after.binary is None:
        return ()
    costs = []
    for side in (before, after):
        executed = side.executed()
        assert side.binary is not None
        costs.append(cost_by_source_function(executed, resolve(side.binary, executed)))
    found = [
        SourceFunctionDifference(name, costs[0][name] / before.operations, costs[1][name] / after.operations)
        for name in sorted({*costs[0], *costs[1]})
    ]
    moved = [item for item in found if abs(item.delta) >= MOVED_MIN_PER_OPERATION]
    return tuple(sorted(moved, key=lambda item: -abs(item.delta)))


def _listings(before: Side, after: Side, found: ProfileDifference) -> tuple[Listing, ...]:
    """Disassemble the fast paths and what moved most in the allocator."""
    if before.binary is None or after.binary is None:
        return ()
    moved = [item.function.name for item in found.functions if item.function.object == after.binary.name]
    names = dict.fromkeys([*FAST_PATHS, *moved[:LISTINGS_MAX]])
    executed = before.executed(), after.executed()
    listings: list[Listing] = []
    for name in names:
        code = disassemble(before.binary, name), disassemble(after.binary, name)
        if not code[0] and not code[1]:
            continue
        rows = side_by_side(*code, *executed, (before.operations, after.operations))
        if not _seen(listings, rows):
            listings.append(Listing(name, rows, *executed_instructions(rows)))
    return tuple(listings)


def _seen(listings: Sequence[Listing], rows: tuple[Row, ...]) -> bool:
    """Say whether the same code stands there under another of its names."""
    return any(listing.rows == rows for listing in listings)


def _count_sentences(found: ProfileDifference, source: Sequence[SourceFunctionDifference]) -> list[str]:
    totals = f"{found.total_before:.3f} → {found.total_after:.3f}"
    sentences = [f"{found.delta:+.3f} instructions per operation ({totals})"]
    sentences += [
        _function_sentence(item) for item in found.functions[:5] if abs(item.delta) >= SENTENCE_MIN_PER_OPERATION
    ]
    written = [item for item in source[:3] if abs(item.delta) >= SENTENCE_MIN_PER_OPERATION]
    if written:
        sentences.append(
            "with inlining resolved, written in " + ", ".join(f"{item.function} {item.delta:+.3f}" for item in written)
        )
    lines = [item for item in found.lines[:3] if abs(item.delta) >= SENTENCE_MIN_PER_OPERATION and item.text]
    sentences += [f"{line_place(item)} {item.delta:+.3f}: {item.text}" for item in lines]
    return sentences


def _function_sentence(item: FunctionDifference) -> str:
    text = f"{item.function} {item.change}: {item.delta:+.3f} ({item.before:.3f} → {item.after:.3f})"
    if item.change in (Change.MORE_CALLS, Change.FEWER_CALLS):
        return f"{text}, {item.calls_before:.4g} → {item.calls_after:.4g} calls an operation"
    if item.change in (Change.DEARER, Change.CHEAPER) and item.calls_before and item.calls_after:
        each = item.before / item.calls_before, item.after / item.calls_after
        return f"{text}, {each[0]:.2f} → {each[1]:.2f} instructions a call"
    return text


def line_place(item: LineDifference) -> str:
    """Return file and line: the new line, or the old one where it is gone."""
    return f"{item.file}:{item.line_after}" if item.line_after is not None else f"{item.file}:{item.line_before} (gone)"


def _total(name: str, per_operation: float, operations: int) -> dict[str, Any]:
    return {"name": name, "per_operation": per_operation, "operations": operations}


def _function(item: FunctionDifference) -> dict[str, Any]:
    function: Function = item.function
    return {
        "function": function.name, "object": function.object, "change": str(item.change), "before": item.before,
        "after": item.after, "delta": item.delta, "calls_before": item.calls_before, "calls_after": item.calls_after,
        "by_calls": item.by_calls, "by_cost": item.by_cost,
    }  # fmt: skip
