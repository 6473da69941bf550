"""What a judgement says: the outcome, the figure, the threshold, where that comes from, how to repeat it.

Owns the words of every verdict; the rules in `counts` and `plateau` make verdicts, the gate, compare and
self-test print and store them. Records are immutable and safe to share between threads.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import Enum


class Outcome(str, Enum):
    """Every word a verdict can be. docs/glossary.md fixes their meaning."""

    UNCHANGED = "unchanged"
    IMPROVED = "improved"
    REGRESSED = "regressed"
    PLATEAU = "plateau"
    HIGHER_PLATEAU = "higher plateau"
    GROWING = "growing"
    CANNOT_TELL = "cannot tell"
    NOT_MEASURED = "not measured"

    def __str__(self) -> str:
        return self.value


REGRESSIONS = frozenset({Outcome.REGRESSED, Outcome.HIGHER_PLATEAU, Outcome.GROWING})


@dataclass(frozen=True)
class Threshold:
    """The bar a figure is held against."""

    value: float
    unit: str
    """`%`, `bytes`, `bytes/round` or `instructions`."""
    origin: str
    """Where the bar comes from, as a reader can check it: a rule, a file's line, a history."""
    is_noise: bool = False
    """It is what the figure moves by itself, so that nothing smaller can be seen; else it is what was agreed on."""

    def __str__(self) -> str:
        return f"{format_quantity(self.value, self.unit)} ({self.origin})"


@dataclass(frozen=True)
class Verdict:
    """One judged figure of one workload.

    `before` and `after` are medians in `unit`; `figure` is what is compared with the threshold, in the
    threshold's unit. `interval` is the confidence interval of the figure, None where the figure is exact.
    """

    workload: str
    variant: str
    metric: str
    provider: str
    outcome: Outcome
    figure: float | None = None
    threshold: Threshold | None = None
    before: float | None = None
    after: float | None = None
    unit: str = ""
    interval: tuple[float, float] | None = None
    p_value: float | None = None
    samples: tuple[int, int] = (0, 0)
    """How many samples, or processes, stand behind `before` and `after`."""
    reason: str = ""
    command: str = ""
    """What reproduces the verdict, ready to paste."""
    label: str = ""
    """The workload with its variant, as tables show it; empty for the bare workload."""

    @property
    def is_regression(self) -> bool:
        """True when a gate must fail on it."""
        return self.outcome in REGRESSIONS

    @property
    def is_inconclusive(self) -> bool:
        """True when the samples do not suffice for a judgement."""
        return self.outcome is Outcome.CANNOT_TELL

    @property
    def name(self) -> str:
        """The workload with its variant, as tables show it."""
        return self.label or self.workload

    def named(self, workload: str, variant: str, metric: str, provider: str, command: str, label: str = "") -> Verdict:
        """Return the same verdict placed: rules judge bare numbers, callers know what they belong to."""
        return replace(
            self, workload=workload, variant=variant, metric=metric, provider=provider, command=command, label=label
        )

    def sentence(self) -> str:
        """One line: name, outcome, figure, threshold with its origin, and why."""
        parts = [f"{self.name} {self.metric}: {self.outcome}"]
        if self.before is not None and self.after is not None:
            parts.append(f"{format_quantity(self.before, self.unit)} → {format_quantity(self.after, self.unit)}")
        if self.figure is not None and self.threshold is not None:
            parts.append(
                f"figure {format_quantity(self.figure, self.threshold.unit, signed=True)}, "
                f"threshold {self.threshold}"
            )
        if self.reason:
            parts.append(self.reason)
        return "; ".join(parts)

    def as_dict(self) -> dict[str, object]:
        """The verdict for `--json`; outcome as its word."""
        fields = asdict(self)
        fields["outcome"] = str(self.outcome)
        fields["is_regression"] = self.is_regression
        return fields


def unplaced(outcome: Outcome, **fields: object) -> Verdict:
    """Return a verdict that no workload owns yet; `Verdict.named` places it."""
    return Verdict(workload="", variant="", metric="", provider="", outcome=outcome, **fields)  # type: ignore[arg-type]


def format_quantity(value: float, unit: str, signed: bool = False) -> str:
    """Return `value` for people: percent with two or three places, bytes in binary units, counts with separators.

    >>> format_quantity(1234567, "instructions")
    '1,234,567 instructions'
    >>> format_quantity(3 * 1024 * 1024, "bytes")
    '3.00 MiB'
    >>> format_quantity(0.5, "%", signed=True)
    '+0.500 %'
    >>> format_quantity(-0.01306, "s", signed=True)
    '-13.06 ms'
    """
    sign = "+" if signed and value > 0 else ""
    if unit == "%":
        places = 3 if abs(value) < 10 else 1
        return f"{sign}{value:.{places}f} %"
    if unit in ("bytes", "bytes/round"):
        suffix = "/round" if unit == "bytes/round" else ""
        for step, word in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
            if abs(value) >= step:
                return f"{sign}{value / step:.2f} {word}{suffix}"
        return f"{sign}{value:.0f} B{suffix}"
    if unit == "s" and 0 < abs(value) < 1:
        return f"{sign}{value * 1e3:,.4g} ms"
    if float(value).is_integer():
        return f"{sign}{int(value):,} {unit}".rstrip()
    return f"{sign}{value:,.4g} {unit}".rstrip()
