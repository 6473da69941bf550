"""Reads what `perf stat -j` writes, and refuses every figure that is not a whole count.

The traps, each with a recorded output in the tests: perf exits 0 for `<not supported>`; `pcnt-running` reads 100 even
then; values are strings; a comment and a blank line come first; `<not counted>` is not `<not supported>`; multiplexed
values are scaled guesses; event names come back with or without `:u`; on hybrid processors one event comes back once
for each kind of core (`cpu_core/instructions/u/`), of which at most one may have counted. Pure.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

State = Literal["counted", "not supported", "not counted", "scaled"]

PERCENT_WHOLE = 99.995
"""perf prints two decimals: less than 100.00 means that the event shared its counter with others."""


@dataclass(frozen=True)
class Count:
    """One event of one perf run."""

    event: str
    """Without PMU and modifiers: `instructions`, `page-faults`."""
    state: State
    value: float = 0.0
    """In perf's unit; only meaningful when `counted`."""
    unit: str = ""
    pmu: str = ""
    """`cpu_core` or `cpu_atom` on hybrid processors, else empty."""


class BrokenOutput(Exception):
    """perf's output cannot be read. The message is one clause."""


def parse(text: str) -> list[Count]:
    """Return every event in perf's JSON output, in its order; BrokenOutput when a line is no JSON."""
    counts = []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            counts.append(_count(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BrokenOutput(f"perf wrote a line that is not its JSON: {line[:100]!r}") from error
    return counts


def pick(counts: list[Count], event: str) -> Count:
    """Return the one count that stands for `event`.

    On hybrid processors that is the only kind of core that counted; when both did, the workload moved between them
    and neither figure is whole, so the result is `scaled`. An event that is absent is `not counted`.
    """
    matching = [count for count in counts if count.event == event]
    counted = [count for count in matching if count.state == "counted"]
    if len(counted) == 1 and not any(count.state == "scaled" for count in matching):
        return counted[0]
    if len(counted) > 1:
        nonzero = [count for count in counted if count.value > 0]
        return nonzero[0] if len(nonzero) == 1 else Count(event, "scaled")
    for state in ("scaled", "not counted", "not supported"):
        if any(count.state == state for count in matching):
            return Count(event, state)  # type: ignore[arg-type]
    return Count(event, "not counted")


def _count(fields: dict[str, object]) -> Count:
    pmu, event = _names(str(fields["event"]))
    text = str(fields["counter-value"]).strip()
    if text.startswith("<"):
        state: State = "not supported" if "supported" in text else "not counted"
        return Count(event, state, pmu=pmu)
    value = float(text)
    if float(str(fields.get("event-runtime", 0))) <= 0:
        return Count(event, "not counted", pmu=pmu)
    if float(str(fields.get("pcnt-running", 100.0))) < PERCENT_WHOLE:
        return Count(event, "scaled", pmu=pmu)
    return Count(event, "counted", value, str(fields.get("unit", "")), pmu)


def _names(event: str) -> tuple[str, str]:
    """Split `cpu_core/instructions/u` or `instructions:u` into PMU and bare event."""
    match = re.fullmatch(r"([\w-]+)/([^/]+)/\w*", event)
    pmu, name = (match.group(1), match.group(2)) if match else ("", event)
    return pmu, name.split(":")[0]
