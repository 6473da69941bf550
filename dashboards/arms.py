"""The columns of every table and the lines of every chart: which builds stand side by side.

Who calls it: every page's data module. Pure, safe from any thread.

Invariant: an arm keeps its colour, dash and place on every page of a site.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle

from results.records import Build, Measurement

REFERENCE = "reference"
_ROLE_ORDER = {"tree": 0, "pin": 1}

STYLES = 10
"""How many styles style.css tells apart by colour and dash; the first two belong to the tree and the pin."""
LIVE_STYLE = STYLES
"""The style of what a workload holds itself: no arm has it."""


@dataclass(frozen=True)
class Arm:
    """One allocator in one role."""

    allocator: str
    role: str
    style: int = 0

    @property
    def name(self) -> str:
        """The allocator, with the role where it is not an ordinary reference."""
        return self.allocator if self.role == REFERENCE else f"{self.allocator} ({self.role})"

    @property
    def key(self) -> tuple[str, str]:
        """What tells arms apart."""
        return self.allocator, self.role


def arm_key(measurement: Measurement) -> tuple[str, str]:
    """Return the key of the arm that a measurement belongs to."""
    return measurement.build.allocator, measurement.arm


def arms_of(measurements: Iterable[Measurement]) -> list[Arm]:
    """Return the arms in the order of tables: the tree, the pin, other revisions as measured, then references."""
    seen: dict[tuple[str, str], int] = {}
    for measurement in measurements:
        seen.setdefault(arm_key(measurement), len(seen))

    def place(key: tuple[str, str]) -> tuple[int, int, str]:
        if key[1] == REFERENCE:
            return 3, 0, key[0]
        return _ROLE_ORDER.get(key[1], 2), seen[key], key[0]

    styles = cycle(range(len(_ROLE_ORDER), STYLES))
    ordered = sorted(seen, key=place)
    return [
        Arm(allocator, role, _ROLE_ORDER[role] if role in _ROLE_ORDER else next(styles)) for allocator, role in ordered
    ]


def builds_of(measurements: Iterable[Measurement]) -> dict[tuple[str, str], list[Build]]:
    """Return the distinct builds behind each arm, in the order they were measured."""
    builds: dict[tuple[str, str], list[Build]] = {}
    for measurement in measurements:
        known = builds.setdefault(arm_key(measurement), [])
        if measurement.build not in known:
            known.append(measurement.build)
    return builds
