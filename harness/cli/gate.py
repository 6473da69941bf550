"""`tidemark gate`: judges the working tree, or any commit, against the pin. The command that CI asks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.analyze import reports, trial
from harness.analyze.docket import Docket, fill, stored_history, unchanged_code
from harness.analyze.evidence import sentences_of
from harness.analyze.sides import SIDE_HELP, side
from harness.analyze.thresholds import load_thresholds
from harness.analyze.verdict import Outcome, Verdict, format_quantity
from harness.cli.context import Context, command_line, console, json_option, pass_context, resume_option
from harness.build.arms import pinned_arm
from harness.collect.environment import read_environment
from harness.collect.providers import instruction_counter
from harness.collect.session import Session
from harness.model.allocator import AllocatorConfig, select_allocators
from harness.model.arm import PIN, TREE, Arm
from harness.model.errors import EXIT_CANNOT_MEASURE, EXIT_FINE, EXIT_REGRESSION, CannotMeasure
from harness.model.workload import select_set, select_workloads
from harness.present.progress import progress_for

GATED_SET = "gated"
counter_option = click.option(
    "--counter", type=click.Choice(["callgrind", "perf"]), help="Who counts instructions; default: perf with a PMU."
)


@click.command()
@click.option("--quick", is_flag=True, help="Small executions: under two minutes on two processors.")
@click.option(
    "--workload", "-w", "workloads", multiple=True, metavar="NAME[:VARIANT]", help="Repeatable; default: the gated set."
)
@click.option(
    "--allocator",
    "-a",
    "allocator",
    metavar="NAME",
    help="An allocator of allocators.toml, judged against its own pin; default: this repository's.",
)
@click.option("--pin", "pin", metavar="BUILD", help=f"Judge against this instead of what is pinned: {SIDE_HELP}.")
@click.option(
    "--revision", "revision", metavar="BUILD", help="Judge this instead of the working tree, or of what is installed."
)
@counter_option
@resume_option
@click.option(
    "--inconclusive",
    type=click.Choice(["pass", "fail"]),
    default="fail",
    show_default=True,
    help="What `cannot tell` means for the exit code: 0, or 2.",
)
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write JUnit XML here.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Append a Markdown summary here.")
@click.option("--annotations", is_flag=True, help="Print workflow annotations for a CI host.")
@json_option
@pass_context
def command(
    context: Context, quick: bool, workloads: tuple[str, ...], allocator: str | None, pin: str | None,
    revision: str | None, counter: str | None, resume: bool, inconclusive: str, junit: Path | None, markdown: Path | None,
    annotations: bool, as_json: bool,
) -> int:  # fmt: skip
    """Judge the working tree against the pin: exit 0 pass, 1 regression, 2 could not measure."""
    for path in (junit, markdown):
        if path is not None and not path.parent.is_dir():
            raise CannotMeasure(f"There is no folder {path.parent} for {path.name}: create it first.")
    config = select_allocators(context.allocators(), [allocator])[0] if allocator else context.own_allocator()
    before, after = _arms(context, config, pin, revision)
    known = context.workloads()
    selection = select_workloads(known, workloads) if workloads else select_set(known, GATED_SET)
    thresholds = load_thresholds(context.layout.pin_file.parent / "thresholds.toml")
    docket = Docket(before, after, "quick" if quick else "full")
    store = context.store()
    fill(
        docket, selection, thresholds, counter=instruction_counter(counter),
        history=stored_history(store, read_environment().key),
        command=lambda name: _repeat(name, quick, allocator, pin, revision, counter),
    )  # fmt: skip
    if not docket.entries:
        raise CannotMeasure(
            "Nothing of that selection is gated: results/baselines/thresholds.toml has no section for it."
        )
    verdicts = unchanged_code(docket)
    reasons: list[str] = []
    notes: list[str] = []
    if verdicts is None:
        stopped = context.stopped_run("gate") if resume else None
        with Session(context.layout, store, "gate", command_line(), progress_for(), resume=stopped) as session:
            verdicts = trial.measure(docket, session)
            explained = trial.explain(docket, verdicts, session, trial.regressed)
            trial.record_verdicts(docket, verdicts, explained.by_case, session)
        notes = trial.advice(docket)
        reasons = [*sentences_of(explained.by_case.values()), *explained.missing]
    code = exit_code(verdicts, inconclusive == "fail")
    conclusion = conclude(verdicts, before, after, code)
    if junit is not None:
        junit.write_text(reports.junit(verdicts, "tidemark gate", inconclusive == "fail"), encoding="utf-8")
    if markdown is not None:
        with markdown.open("a", encoding="utf-8") as sink:
            sink.write(reports.markdown(verdicts, "Tidemark gate", conclusion, reasons))
    if as_json:
        facts = {"pin": before.build.revision, "judged": after.build.revision, "why": reasons, "notes": notes}
        print(reports.as_json(verdicts, exit_code=code, conclusion=conclusion, **facts))
    else:
        print_verdicts(verdicts, reasons, notes, conclusion, console())
    if annotations:
        print("\n".join(reports.workflow_commands(verdicts)), file=sys.stderr if as_json else sys.stdout)
    return code


def _arms(context: Context, config: AllocatorConfig, pin: str | None, revision: str | None) -> tuple[Arm, Arm]:
    """Return (pin, judged); CannotMeasure when either cannot be made, since there is then nothing to judge."""
    known = context.allocators()
    if revision is None and config.kind == "git" and config.repository != "self":
        raise CannotMeasure(f"{config.name} is not built from this checkout: name what to judge with --revision.")
    installed = TREE if config.kind == "git" else config.name
    before = (
        side(context.layout, known, config, pin) if pin else pinned_arm(context.layout, config, context.pin(config))
    )
    return replace(before, role=PIN), side(context.layout, known, config, revision or installed)


def exit_code(verdicts: Sequence[Verdict], inconclusive_fails: bool) -> int:
    """Return 1 for a judged regression, else 2 for what could not be measured or told, else 0."""
    if any(verdict.is_regression for verdict in verdicts):
        return EXIT_REGRESSION
    if any(verdict.outcome is Outcome.NOT_MEASURED for verdict in verdicts):
        return EXIT_CANNOT_MEASURE
    if inconclusive_fails and any(verdict.is_inconclusive for verdict in verdicts):
        return EXIT_CANNOT_MEASURE
    return EXIT_FINE


def conclude(verdicts: Sequence[Verdict], before: Arm, after: Arm, code: int) -> str:
    """Return the gate's last line."""
    word = {EXIT_FINE: "passed", EXIT_REGRESSION: "failed", EXIT_CANNOT_MEASURE: "could not be judged"}[code]
    regressions = sum(verdict.is_regression for verdict in verdicts)
    open_cases = sum(verdict.is_inconclusive or verdict.outcome is Outcome.NOT_MEASURED for verdict in verdicts)
    judged = f"{after.build.allocator} {after.build.revision[:12]}{' with local changes' if after.build.dirty else ''}"
    return (f"gate {word}: {judged} against the pin {before.build.revision[:12]}, {len(verdicts)} verdicts, "
            f"{regressions} regressions, {open_cases} undecided or not measured")  # fmt: skip


def print_verdicts(
    verdicts: Sequence[Verdict], reasons: Sequence[str], notes: Sequence[str], conclusion: str, target: Console
) -> None:
    """Print the table of verdicts, a sentence for each that is not fine, why, and the conclusion."""
    table = Table("workload", "metric", "verdict", "before", "after", "figure", "threshold", box=None, pad_edge=False)
    for verdict in verdicts:
        style = "red" if verdict.is_regression else "yellow" if verdict.outcome in _OPEN else ""
        table.add_row(
            Text(verdict.name), verdict.metric, str(verdict.outcome), _quantity(verdict.before, verdict.unit),
            _quantity(verdict.after, verdict.unit), reports.figure_text(verdict),
            "" if verdict.threshold is None else format_quantity(verdict.threshold.value, verdict.threshold.unit),
            style=style,
        )  # fmt: skip
    target.print(table)
    for verdict in verdicts:
        if verdict.is_regression or verdict.outcome in _OPEN:
            target.print(verdict.sentence(), markup=False, highlight=False, emoji=False, soft_wrap=True)
            target.print(
                f"  repeat with: {verdict.command}", markup=False, highlight=False, emoji=False, soft_wrap=True
            )
    for line in (*(f"why: {reason}" for reason in reasons), *(f"note: {note}" for note in notes)):
        target.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)
    target.print(conclusion, markup=False, highlight=False, emoji=False, soft_wrap=True)


_OPEN = frozenset({Outcome.CANNOT_TELL, Outcome.NOT_MEASURED})


def _quantity(value: float | None, unit: str) -> str:
    return "" if value is None else format_quantity(value, unit)


def _repeat(
    name: str, quick: bool, allocator: str | None, pin: str | None, revision: str | None, counter: str | None
) -> str:
    words = ["./tidemark gate", *(["--quick"] if quick else []), f"--workload {name}"]
    words += [f"--{option} {value}" for option, value in
              (("allocator", allocator), ("pin", pin), ("revision", revision), ("counter", counter)) if value is not None]  # fmt: skip
    return " ".join(words)
