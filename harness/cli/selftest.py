"""`tidemark selftest`: the suite measures itself: false alarms on A/A pairs, detection of planted changes."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.analyze.docket import Docket, fill, stored_history
from harness.analyze.planted import PLANTS, PlantedCheckout
from harness.analyze.rehearsal import SILENT, Rehearsal, Trial, false_alarms
from harness.analyze.reports import figure_text
from harness.analyze.simulate import WARM_UP, WARM_UP_BEYOND_WINDOW, Rate, error_rates
from harness.analyze.thresholds import load_thresholds
from harness.analyze.trial import measure
from harness.analyze.verdict import Outcome, Verdict
from harness.build.arms import tree_arm
from harness.cli.context import Context, command_line, console, json_option, pass_context, print_json
from harness.cli.gate import exit_code as gate_exit_code
from harness.collect.environment import read_environment
from harness.collect.providers import instruction_counter
from harness.collect.session import Session
from harness.model.arm import PIN, TREE
from harness.model.errors import EXIT_FINE, EXIT_REGRESSION
from harness.model.workload import select_set
from harness.present.progress import progress_for
from results import open_store

GATED_COMMAND = "./tidemark gate --quick --workload {}"
COUNTED, REMEMBERED = "pairs", "rounds"
VERDICTS_FULL = 200
VERDICTS_SHORT = {COUNTED: 4, REMEMBERED: 4}
ALARMS_MAX_PER_200 = {COUNTED: 0, REMEMBERED: 2}
"""What the suite promises: none on exact counts, at most two in 200 on memory."""

FALSE_POSITIVES_PERCENT_MAX = 1.5
WARM_UP_ALARMS_PERCENT_MAX = 5.0
"""A warm-up in one arm only is a change, though not growth: more slack than where nothing changed."""

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
@click.option(
    "--gated",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Only A/A: judge this checkout's own build against itself over the gated set, N times.",
)
@json_option
@pass_context
def command(
    context: Context, short: bool, simulate: bool, verdicts: int | None, trials: int, gated: int | None, as_json: bool
) -> int:
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
    if gated is not None:
        return _judge_itself(context, gated, as_json)
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


def _judge_itself(context: Context, times: int, as_json: bool) -> int:
    """Gate the own build against itself; exit 1 if any of the gates would not have passed."""
    own = tree_arm(context.layout, context.own_allocator())
    arms = replace(own, role=PIN), replace(own, role=TREE)
    thresholds = load_thresholds(context.layout.pin_file.parent / "thresholds.toml")
    selection = select_set(context.workloads(), "gated")
    positions = itertools.count()
    gates: list[list[Verdict]] = []
    with Session(context.layout, context.store(), "selftest", command_line(), progress_for()) as session:
        history = stored_history(context.store(), read_environment().key)
        for _ in range(times):
            docket = Docket(*arms, "quick", positions)
            fill(
                docket,
                selection,
                thresholds,
                counter=instruction_counter(),
                history=history,
                command=GATED_COMMAND.format,
            )
            gates.append(measure(docket, session))
    alarms = [verdict for gate in gates for verdict in gate if verdict.is_regression]
    undecided = [v for gate in gates for v in gate if v.outcome in (Outcome.CANNOT_TELL, Outcome.NOT_MEASURED)]
    passed = sum(gate_exit_code(gate, True) == EXIT_FINE for gate in gates)
    if as_json:
        print_json(
            {
                "gates": len(gates),
                "passed": passed,
                "verdicts": sum(map(len, gates)),
                "false_alarms": [verdict.as_dict() for verdict in alarms],
                "undecided": [verdict.as_dict() for verdict in undecided],
            }
        )
    else:
        for verdict in (*alarms, *undecided):
            console().print(verdict.sentence(), markup=False, highlight=False, emoji=False, soft_wrap=True)
        console().print(
            f"{passed} of {len(gates)} gates passed; {len(alarms)} false alarms and {len(undecided)} undecided "
            f"in {sum(map(len, gates))} A/A verdicts"
        )
    return EXIT_FINE if passed == len(gates) else EXIT_REGRESSION


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
        alarms_max = WARM_UP_ALARMS_PERCENT_MAX if rate.scenario == WARM_UP else FALSE_POSITIVES_PERCENT_MAX
        nothing_to_find = rate.truth in ("plateau", "unchanged")
        kept = rate.convicted_percent <= alarms_max if nothing_to_find else rate.named_percent >= DETECTION_PERCENT_MIN
        if not kept:
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
        table.add_row(
            trial.name,
            trial.workload,
            trial.expected,
            str(trial.verdict.outcome),
            figure_text(trial.verdict),
            Text(says),
            style="" if trial.right else "red",
        )
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
        percents = (rate.convicted_percent, rate.named_percent, rate.undecided_percent)
        table.add_row(
            rate.rule,
            rate.scenario,
            rate.truth,
            *(f"{percent:.2f} %" for percent in percents),
            style="red" if rate in broken else "",
        )
    target.print(table)
    target.print(f"{rates[0].trials} verdicts a row; {len(broken)} promises broken")
