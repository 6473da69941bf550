"""`tidemark selftest`: the suite measures itself: false alarms on A/A pairs, detection of planted changes."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.analyze.planted import PLANTS, PlantedCheckout
from harness.analyze.rehearsal import SILENT, Rehearsal, Trial, false_alarms
from harness.analyze.reports import figure_text
from harness.analyze.simulate import WARM_UP_BEYOND_WINDOW, Rate, error_rates
from harness.cli.context import Context, command_line, console, json_option, pass_context, print_json
from harness.collect.environment import read_environment
from harness.collect.session import Session
from harness.model.errors import EXIT_FINE, EXIT_REGRESSION
from harness.present.progress import progress_for
from results import open_store

COUNTED, REMEMBERED = "pairs", "rounds"
VERDICTS_FULL = 200
VERDICTS_SHORT = {COUNTED: 5, REMEMBERED: 10}
ALARMS_MAX_PER_200 = {COUNTED: 0, REMEMBERED: 2}
"""What the suite promises: none on exact counts, at most two in 200 on memory."""

FALSE_POSITIVES_PERCENT_MAX = 1.5
DETECTION_PERCENT_MIN = 95.0
"""What the simulated two-arm and count rules promise; rates of the one-arm rule, which only advises, are shown."""


@click.command()
@click.option("--short", is_flag=True, help="Few A/A verdicts: under a minute, for CI.")
@click.option("--simulate", is_flag=True, help="Only the rules on simulated series: error rates of docs/measuring.md.")
@click.option("--verdicts", type=click.IntRange(1, 10000), metavar="N", help="A/A verdicts a workload; default 200.")
@click.option(
    "--trials",
    type=click.IntRange(10, 100000),
    default=1000,
    show_default=True,
    help="With --simulate: verdicts a scenario.",
)
@json_option
@pass_context
def command(context: Context, short: bool, simulate: bool, verdicts: int | None, trials: int, as_json: bool) -> int:
    """Measure the suite's own error rates; exit 1 when it does not keep its promises.

    Runs in a temporary checkout with an allocator whose faults are known, and in a store of its own.
    """
    if simulate:
        rates = error_rates(trials)
        if as_json:
            print_json(
                [
                    {**asdict(r), "convicted_percent": r.convicted_percent, "named_percent": r.named_percent}
                    for r in rates
                ]
            )
        else:
            _print_rates(rates, console())
        return EXIT_REGRESSION if broken_promises(rates) else EXIT_FINE
    times = {name: verdicts or (VERDICTS_SHORT[name] if short else VERDICTS_FULL) for name in VERDICTS_SHORT}
    with tempfile.TemporaryDirectory(prefix="tidemark-selftest-") as folder:
        planted, against_itself = _rehearse(Path(folder), times)
    promises = {name: _kept(name, trials_) for name, trials_ in against_itself.items()}
    missed = [trial for trial in planted if not trial.right]
    if as_json:
        print_json(_data(planted, against_itself, promises))
    else:
        _print(planted, against_itself, console())
    return EXIT_FINE if not missed and all(promises.values()) else EXIT_REGRESSION


def _rehearse(folder: Path, times: dict[str, int]) -> tuple[list[Trial], dict[str, list[Trial]]]:
    checkout = PlantedCheckout(folder / "checkout")
    with open_store(str(folder / "selftest.sqlite")) as store:
        with Session(checkout.layout, store, "selftest", command_line(), progress_for()) as session:
            rehearsal = Rehearsal(checkout, session, read_environment().key)
            planted = [rehearsal.plant(plant) for plant in (*PLANTS, SILENT)]
            against_itself = {name: rehearsal.against_itself([name], count) for name, count in times.items()}
    return planted, against_itself


def _kept(workload: str, trials: Sequence[Trial]) -> bool:
    """Say whether A/A verdicts raised no more alarms than promised, in proportion to 200."""
    return false_alarms(trials) <= ALARMS_MAX_PER_200[workload] * max(1.0, len(trials) / 200.0)


def broken_promises(rates: Sequence[Rate]) -> list[Rate]:
    """Return the simulated rates that the gating rules do not keep."""
    broken = []
    for rate in rates:
        if rate.rule.startswith("one arm") or rate.scenario == WARM_UP_BEYOND_WINDOW:
            continue
        quiet = rate.truth in ("plateau", "unchanged")
        if (
            rate.convicted_percent > FALSE_POSITIVES_PERCENT_MAX
            if quiet
            else rate.named_percent < DETECTION_PERCENT_MIN
        ):
            broken.append(rate)
    return broken


def _data(
    planted: Sequence[Trial], against_itself: dict[str, list[Trial]], promises: dict[str, bool]
) -> dict[str, object]:
    return {
        "planted": [{"name": trial.name, "workload": trial.workload, "expected": trial.expected, "right": trial.right,
                     "why": trial.why, "verdict": trial.verdict.as_dict()} for trial in planted],
        "detected": sum(trial.right for trial in planted),
        "against_itself": {
            name: {"verdicts": len(trials), "false_alarms": false_alarms(trials), "promise_kept": promises[name]}
            for name, trials in against_itself.items()
        },
    }  # fmt: skip


def _print(planted: Sequence[Trial], against_itself: dict[str, list[Trial]], target: Console) -> None:
    table = Table("planted", "workload", "expected", "verdict", "figure", "says", box=None, pad_edge=False)
    for trial in planted:
        says = trial.why[0] if trial.why else trial.verdict.reason
        table.add_row(trial.name, trial.workload, trial.expected, str(trial.verdict.outcome), figure_text(trial.verdict),
                      Text(says), style="" if trial.right else "red")  # fmt: skip
    target.print(table)
    named = sum(trial.right for trial in planted)
    target.print(f"detection: {named} of {len(planted)} planted changes named for what they are")
    for name, trials in against_itself.items():
        alarms, open_verdicts = false_alarms(trials), sum(not trial.right for trial in trials) - false_alarms(trials)
        target.print(f"false alarms: {alarms} of {len(trials)} A/A verdicts on {name}, {open_verdicts} undecided")


def _print_rates(rates: Sequence[Rate], target: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for title, justify in (
        ("rule", "left"),
        ("series", "left"),
        ("truth", "left"),
        ("called a regression", "right"),
        ("named right", "right"),
        ("cannot tell", "right"),
    ):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    broken = broken_promises(rates)
    for rate in rates:
        table.add_row(rate.rule, rate.scenario, rate.truth, f"{rate.convicted_percent:.2f} %", f"{rate.named_percent:.2f} %",
                      f"{rate.undecided_percent:.2f} %", style="red" if rate in broken else "")  # fmt: skip
    target.print(table)
    target.print(f"{rates[0].trials} verdicts a row; {len(broken)} promises broken")
