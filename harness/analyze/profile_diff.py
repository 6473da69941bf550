"""The difference of two callgrind profiles, in instructions per operation.

Called by explain and compare. Pure. Tells functions that are called more often from functions that cost
more a call, new ones from vanished ones, and follows source lines that only moved. The parts of a
difference always add up to the whole: `residual` of a `ProfileDifference` is zero but for rounding.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from harness.collect.callgrind_profile import Function as RecordedFunction
from harness.collect.callgrind_profile import Profile

_CLONE = re.compile(r"(\.(part|constprop|isra|cold|lto_priv|localalias)(\.\d+)?)+$|( \[clone [^\]]*\])+$")

MOVED_MIN_PER_OPERATION = 1e-6
"""Differences below a millionth of an instruction per operation are set-up that the region did not exclude."""


@dataclass(frozen=True, order=True)
class Function:
    """A function of an object file, named so that it is the same in builds of two revisions.

    The object is its base name, since builds lie in different folders; compiler clones (`f.part.0`) count
    as the function they were split from.
    """

    object: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.object})"


class Change(str, Enum):
    """How a function differs between two profiles."""

    NEW = "new"
    VANISHED = "vanished"
    MORE_CALLS = "called more often"
    FEWER_CALLS = "called less often"
    DEARER = "costs more a call"
    CHEAPER = "costs less a call"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class FunctionDifference:
    """One function's own instructions, all figures per operation.

    `by_calls + by_cost` is `delta`: what the changed number of calls explains at the old cost a call, and
    what the changed cost explains at the new number of calls.
    """

    function: Function
    change: Change
    before: float
    after: float
    calls_before: float
    calls_after: float
    by_calls: float
    by_cost: float

    @property
    def delta(self) -> float:
        """Instructions per operation more than before."""
        return self.after - self.before


@dataclass(frozen=True)
class LineDifference:
    """One source line's instructions per operation; a line number is None where the line does not exist."""

    function: str
    file: str
    line_before: int | None
    line_after: int | None
    text: str
    before: float
    after: float

    @property
    def delta(self) -> float:
        """Instructions per operation more than before."""
        return self.after - self.before


@dataclass(frozen=True)
class ProfileDifference:
    """Two profiles of one workload held against each other, largest movement first."""

    operations: tuple[int, int]
    total_before: float
    total_after: float
    functions: tuple[FunctionDifference, ...]
    lines: tuple[LineDifference, ...]

    @property
    def delta(self) -> float:
        """Instructions per operation more than before."""
        return self.total_after - self.total_before

    @property
    def residual(self) -> float:
        """What the functions listed do not explain of `delta`."""
        return self.delta - sum(item.delta for item in self.functions)


FileName = Callable[[str], str]
"""From a path as the compiler recorded it to a name that both builds share."""
LineMap = Callable[[str, int], int | None]
"""From a file and an old line number to the new one; None where the line is gone."""
SourceText = Callable[[str, int], str]
"""From a file and a line number to that line's text; empty when unknown."""


def same_name(path: str) -> str:
    """The file names of builds made in one place."""
    return path


def same_line(file: str, line: int) -> int | None:
    """The line map of unchanged sources."""
    return line


def no_text(file: str, line: int) -> str:
    """The source text where no sources are at hand."""
    return ""


@dataclass(frozen=True)
class Symbols:
    """What a binary's symbol table adds to its profile."""

    entered: Mapping[Function, int] = field(default_factory=dict)
    """By function: how often its first instruction was executed, where that is known. It is the better count of
    calls: those that callgrind recorded include calls outside the region of interest, which it does not charge."""
    names: Mapping[Function, Function] = field(default_factory=dict)
    """From each name of a function that has several (`free`, `ebb_free`) to the one it is compared under."""


NO_SYMBOLS = Symbols()


@dataclass(frozen=True)
class SourceView:
    """How lines of the old build are found in the new one. The defaults suit builds of unchanged sources."""

    name_before: FileName = same_name
    name_after: FileName = same_name
    moved_line: LineMap = same_line
    text_before: SourceText = no_text
    text_after: SourceText = no_text
    judged: frozenset[str] | None = None
    """Base names of the objects that the two sides have of their own; None for all. Everything else, the workload
    above all, is one file for both, so that its lines are the same lines without a look at any revision."""

    def is_shared(self, function: RecordedFunction) -> bool:
        """Say whether a function belongs to a file that both sides ran."""
        return self.judged is not None and function_of(function).object not in self.judged


def difference(
    before: Profile,
    after: Profile,
    operations: tuple[int, int],
    view: SourceView = SourceView(),
    symbols: tuple[Symbols, Symbols] = (NO_SYMBOLS, NO_SYMBOLS),
) -> ProfileDifference:
    """Return what moved from `before` to `after`; ValueError when an operation count is not positive."""
    if min(operations) <= 0:
        raise ValueError("a profile per operation needs a positive number of operations")
    old, new = _merged(before, symbols[0]), _merged(after, symbols[1])
    return ProfileDifference(
        operations=operations,
        total_before=sum(before.functions.values()) / operations[0],
        total_after=sum(after.functions.values()) / operations[1],
        functions=_functions(old, new, operations),
        lines=_lines(before, after, operations, view),
    )


def function_of(recorded: RecordedFunction) -> Function:
    """Return the name under which a function is compared."""
    return Function(recorded.object.rsplit("/", 1)[-1], plain_name(recorded.name))


def plain_name(name: str) -> str:
    """Return the name of the function that a compiler's clone (`f.part.0`, `f [clone .cold]`) was split from."""
    return _CLONE.sub("", name) or name


@dataclass(frozen=True)
class _Costs:
    own: Mapping[Function, int]
    calls: Mapping[Function, int]


def _merged(profile: Profile, symbols: Symbols) -> _Costs:
    def named(recorded: RecordedFunction) -> Function:
        function = function_of(recorded)
        return symbols.names.get(function, function)

    own: dict[Function, int] = defaultdict(int)
    calls: dict[Function, int] = defaultdict(int)
    for recorded, cost in profile.functions.items():
        own[named(recorded)] += cost
    for edge, count in profile.calls.items():
        caller, callee = named(edge.caller), named(edge.callee)
        # A call from a function into its own clone is part of the function, not another call of it.
        if caller != callee or edge.caller == edge.callee:
            calls[callee] += count
    return _Costs(own, {**calls, **symbols.entered})


def _functions(old: _Costs, new: _Costs, operations: tuple[int, int]) -> tuple[FunctionDifference, ...]:
    found = []
    for function in sorted({*old.own, *new.own}):
        before, after = old.own.get(function, 0) / operations[0], new.own.get(function, 0) / operations[1]
        if abs(after - before) < MOVED_MIN_PER_OPERATION:
            continue
        calls = old.calls.get(function, 0) / operations[0], new.calls.get(function, 0) / operations[1]
        by_calls = _by_calls(before, calls)
        by_cost = after - before - by_calls
        change = _change(function, old, new, by_calls, by_cost)
        found.append(FunctionDifference(function, change, before, after, *calls, by_calls, by_cost))
    return tuple(sorted(found, key=lambda item: (-abs(item.delta), item.function)))


def _by_calls(before: float, calls: tuple[float, float]) -> float:
    """Instructions that the changed number of calls explains, at the cost a call had before."""
    return (calls[1] - calls[0]) * before / calls[0] if calls[0] > 0 else 0.0


def _change(function: Function, old: _Costs, new: _Costs, by_calls: float, by_cost: float) -> Change:
    if function not in old.own:
        return Change.NEW
    if function not in new.own:
        return Change.VANISHED
    if abs(by_calls) > abs(by_cost):
        return Change.MORE_CALLS if by_calls > 0 else Change.FEWER_CALLS
    return Change.DEARER if by_cost > 0 else Change.CHEAPER


def _lines(
    before: Profile, after: Profile, operations: tuple[int, int], view: SourceView
) -> tuple[LineDifference, ...]:
    """Sum by source line: a line inlined into several functions counts as one, as its author sees it."""
    old, new = _LineCosts(), _LineCosts()
    gone = _LineCosts()
    origin: dict[tuple[str, int], int] = {}
    for line, cost in before.lines.items():
        shared = view.is_shared(line.function)
        file = view.name_after(line.file) if shared else view.name_before(line.file)
        target = line.line if shared else view.moved_line(file, line.line)
        if target is None:
            gone.add(file, line.line, line.function.name, cost)
        else:
            old.add(file, target, line.function.name, cost)
            origin[file, target] = line.line
    for line, cost in after.lines.items():
        new.add(view.name_after(line.file), line.line, line.function.name, cost)
    found = [
        LineDifference(gone.owner[place], place[0], place[1], None, view.text_before(*place), cost / operations[0], 0.0)
        for place, cost in gone.cost.items()
    ]
    for place in {*old.cost, *new.cost}:
        owner = new.owner.get(place) or old.owner[place]
        pair = old.cost.get(place, 0) / operations[0], new.cost.get(place, 0) / operations[1]
        found.append(LineDifference(owner, place[0], origin.get(place), place[1], view.text_after(*place), *pair))
    moved = [item for item in found if abs(item.delta) >= MOVED_MIN_PER_OPERATION]
    return tuple(sorted(moved, key=lambda item: (-abs(item.delta), item.file, item.line_after or 0)))


class _LineCosts:
    """Cost by (file, line), with the function the line was first seen in."""

    def __init__(self) -> None:
        self.cost: dict[tuple[str, int], int] = defaultdict(int)
        self.owner: dict[tuple[str, int], str] = {}

    def add(self, file: str, line: int, function: str, cost: int) -> None:
        self.cost[file, line] += cost
        self.owner.setdefault((file, line), plain_name(function))
