"""The result of a comparison: verdicts, controls and explanations of two arms, and how it is shown.

Called by `tidemark compare`, which measures; this module only arranges. Pure but for printing to the
console it is given.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.analyze.control import ControlFinding
from harness.analyze.evidence import Explanation
from harness.analyze.explanation import CountExplanation
from harness.analyze.reports import figure_text
from harness.analyze.verdict import Outcome, Verdict, format_quantity
from harness.model.arm import Arm


@dataclass
class Comparison:
    """Everything a comparison of two arms found."""

    before: Arm
    after: Arm
    verdicts: list[Verdict]
    controls: list[ControlFinding] = field(default_factory=list)
    explanations: dict[tuple[str, str], Explanation] = field(default_factory=dict)
    """By (workload with variant, metric)."""
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """The comparison for `--json`."""
        return {
            "a": _arm(self.before), "b": _arm(self.after),
            "verdicts": [verdict.as_dict() for verdict in self.verdicts],
            "controls": [asdict(finding) for finding in self.controls],
            "explanations": [{"label": label, "metric": metric, **explanation.as_dict()}
                             for (label, metric), explanation in self.explanations.items()],
            "notes": self.notes,
        }  # fmt: skip

    def print_to(self, target: Console) -> None:
        """Print the exact table, what explains it, and what the controls say."""
        target.print(f"A = {_words(self.before)}", markup=False, highlight=False, emoji=False)
        target.print(f"B = {_words(self.after)}", markup=False, highlight=False, emoji=False)
        target.print(self._table())
        for (label, metric), explanation in self.explanations.items():
            target.print(f"why {label} {metric} moved:", markup=False, highlight=False, emoji=False)
            for sentence in explanation.sentences:
                target.print(f"  {sentence}", markup=False, highlight=False, emoji=False, soft_wrap=True)
        spoken = [f"{finding.label}: {finding.sentence}" for finding in self.controls if finding.sentence]
        for note in (*spoken, *self.notes, self._controls_note()):
            if note:
                target.print(f"note: {note}", markup=False, highlight=False, emoji=False, soft_wrap=True)

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False)
        for title, justify in (
            ("workload", "left"),
            ("metric", "left"),
            ("A", "right"),
            ("B", "right"),
            ("B − A", "right"),
            ("change", "right"),
            ("per operation", "right"),
            ("verdict", "left"),
        ):
            table.add_column(title, justify=justify)  # type: ignore[arg-type]
        for verdict in self.verdicts:
            style = {True: "red"}.get(verdict.is_regression, "green" if verdict.outcome is Outcome.IMPROVED else "")
            table.add_row(
                Text(verdict.name),
                verdict.metric,
                *_figures(verdict),
                self._per_operation(verdict),
                outcome_words(verdict),
                style=style,
            )
        return table

    def _per_operation(self, verdict: Verdict) -> str:
        explanation = self.explanations.get((verdict.name, verdict.metric))
        return f"{explanation.profile.delta:+.3f}" if isinstance(explanation, CountExplanation) else ""

    def _controls_note(self) -> str:
        quiet = [
            finding for finding in self.controls if not finding.sentence and finding.within_run_percent is not None
        ]
        if not quiet:
            return ""
        names = ", ".join(sorted({finding.control for finding in quiet}))
        most = max(abs(finding.within_run_percent or 0.0) for finding in quiet)
        return (
            f"control {names}: unmoved in {len(quiet)} workloads (at most {most:.4f} %), so what moved is the allocator"
        )


def _figures(verdict: Verdict) -> tuple[str, str, str, str]:
    if verdict.before is None or verdict.after is None:
        return "", "", "", ""
    gap = verdict.after - verdict.before
    percent = f"{100.0 * gap / abs(verdict.before):+.3f} %" if verdict.before and verdict.unit != "bytes/round" else ""
    exact = f"{gap:+,.0f}" if verdict.unit == "instructions" else format_quantity(gap, verdict.unit, signed=True)
    interval = "" if verdict.interval is None else " " + figure_text(verdict).partition(" [")[2].join(("[", ""))
    return (
        format_quantity(verdict.before, verdict.unit).removesuffix(" instructions"),
        format_quantity(verdict.after, verdict.unit).removesuffix(" instructions"),
        exact + interval,
        percent,
    )


def outcome_words(verdict: Verdict) -> str:
    """Return a verdict for the table: its word, and what it was held against or why it is none."""
    if verdict.outcome in (Outcome.NOT_MEASURED, Outcome.CANNOT_TELL):
        return f"{verdict.outcome}: {verdict.reason}"
    bar = verdict.threshold
    if bar is None:
        return str(verdict.outcome)
    shown = format_quantity(bar.value, bar.unit)
    if bar.is_noise and verdict.outcome is Outcome.UNCHANGED:
        return f"{verdict.outcome}: less than {shown} is noise here"
    return f"{verdict.outcome} ({'noise' if bar.is_noise else 'threshold'} {shown})"


def _words(arm: Arm) -> str:
    changes = " with local changes" if arm.build.dirty else ""
    return f"{arm.build.allocator} {arm.role}, commit {arm.build.revision[:12]}{changes}"


def _arm(arm: Arm) -> dict[str, object]:
    return {"role": arm.role, **asdict(arm.build)}
