"""Figures in words: units, ratios, deltas and the steps of the ratio's colour.

Who calls it: the pages' data modules and the templates. Pure functions, safe from any thread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

_BYTE_STEPS = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
_COUNT_STEPS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_SECOND_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))

_COUNTS = ("", "1", "count", "instructions", "cycles")
"""Units that say no more than the metric's name does."""

RATIO_STEPS = (1.02, 1.10, 1.35, 2.0, 4.0)
"""Upper ends of the colour steps 1 to 5 above the best; what is worse is step 6."""


@dataclass(frozen=True)
class Scale:
    """A unit that a whole axis or column is written in."""

    divisor: float
    suffix: str


def scale_for(unit: str, magnitude: float) -> Scale:
    """Return the unit in which a figure of that magnitude is read best."""
    magnitude = abs(magnitude)
    if unit in ("byte", "bytes"):
        for size, suffix in _BYTE_STEPS:
            if magnitude >= size:
                return Scale(size, suffix)
        return Scale(1, "B")
    if unit in ("s", "seconds"):
        for size, suffix in _SECOND_STEPS:
            if magnitude >= size:
                return Scale(size, suffix)
        return Scale(1.0, "s") if magnitude == 0 else Scale(1e-9, "ns")
    if unit == "ns":
        seconds = scale_for("s", magnitude * 1e-9)
        return Scale(seconds.divisor * 1e9, seconds.suffix)
    plain = "" if unit in _COUNTS else unit
    for size, suffix in _COUNT_STEPS:
        if magnitude >= size:
            return Scale(size, f"{suffix} {plain}".strip())
    return Scale(1, plain)


def format_value(unit: str, value: float) -> str:
    """Return a figure with its unit, in four significant digits."""
    whole, slash, per = unit.partition("/")
    if slash:
        return f"{format_value(whole, value)}/{per}"
    if unit == "%":
        return f"{_typeset(f'{value:.4g}')} %"
    scale = scale_for(unit, value)
    return f"{significant(value / scale.divisor)} {scale.suffix}".strip()


def format_compared(unit: str, value: float) -> str:
    """Return a figure for a comparison: counts to the last one, because exact counts are compared exactly."""
    if unit in _COUNTS and value == int(value):
        return _typeset(f"{int(value):,}")
    return format_value(unit, value)


def significant(value: float, digits: int = 4) -> str:
    """Return a number in so many significant digits, never in scientific notation for everyday sizes."""
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return "–"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    if value == int(value) and abs(value) < 10**digits:
        return _typeset(str(int(value)))
    return _typeset(f"{value:,.{max(places, 0)}f}")


def tick_text(value: float, step: float) -> str:
    """Return a tick's number with the decimals that tell it from its neighbours, `step` apart."""
    places = next((each for each in range(12) if abs(round(step, each) - step) <= 1e-9 * step), 12)
    return _typeset(f"{value:,.{places}f}")


def _typeset(number: str) -> str:
    """Return a number with a real minus sign and with thin spaces between thousands."""
    return number.replace(",", "\u202f").replace("-", "−")


def format_exact(unit: str, value: float) -> str:
    """Return a figure in full, for titles and for tables of raw values."""
    number = f"{int(value):,}" if value == int(value) else repr(value)
    return f"{_typeset(number)} {unit}".strip()


def ratio_step(ratio: float) -> int:
    """Return the colour step of a ratio to the best: 0 for the best itself, 6 for the worst."""
    if ratio <= 1.0:
        return 0
    for step, upper in enumerate(RATIO_STEPS, start=1):
        if ratio <= upper:
            return step
    return len(RATIO_STEPS) + 1


def format_ratio(ratio: float) -> str:
    """Return a ratio to the best, with as many decimals as can be told apart."""
    if not math.isfinite(ratio):
        return "best is 0"
    if ratio >= 100:
        return f"×{ratio:.0f}"
    if ratio >= 10:
        return f"×{ratio:.1f}"
    return f"×{ratio:.2f}" if ratio >= 1.01 or ratio == 1 else f"×{ratio:.4f}"


def format_delta(before: float, after: float) -> str:
    """Return the relative change with its sign; `new` when there was nothing before."""
    if before == after:
        return "unchanged"
    if before == 0:
        return "new"
    change = 100 * (after - before) / before
    places = 1 if abs(change) >= 10 else 2 if abs(change) >= 0.01 else 4
    return _typeset(f"{change:+.{places}f} %")


def format_time(moment: datetime) -> str:
    """Return a time to the minute, in UTC."""
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def short_revision(revision: str) -> str:
    """Return the first digits of a commit id, and a package's version as it is."""
    is_commit = len(revision) == 40 and all(letter in "0123456789abcdef" for letter in revision)
    return revision[:10] if is_commit else revision
