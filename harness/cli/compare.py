"""`tidemark compare A B`: instruction counts and memory of two builds, interleaved, and why they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from harness.analyze import trial
from harness.analyze.comparison import Comparison
from harness.analyze.control import ControlFinding, judge_control, voided
from harness.analyze.docket import EXACT_PROVIDERS, Docket, Entry, fill, stored_history, unchanged_code
from harness.analyze.sides import side
from harness.analyze.thresholds import MEMORY_METRIC, Thresholds, load_thresholds
from harness.analyze.verdict import Outcome, Verdict
from harness.build.arms import reference_arm
from harness.build.commands import git
from harness.build.revision import repository_of
from harness.cli.context import Context, command_line, console, json_option, pass_context, print_json, resume_option
from harness.cli.gate import counter_option
from harness.collect.environment import read_environment
from harness.collect.providers import instruction_counter
from harness.collect.session import Session
from harness.model.allocator import AllocatorConfig, select_allocators
from harness.model.arm import Arm
from harness.model.errors import EXIT_CANNOT_MEASURE, EXIT_FINE, EXIT_REGRESSION, CannotMeasure
from harness.model.plan import Job
from harness.model.workload import Profile, Variant, Workload, select_set, select_workloads
from harness.present.progress import progress_for
from results.records import Measurement

METRICS = ("instructions", MEMORY_METRIC, "wall_s")
DEFAULT_METRICS = METRICS[:2]
DEFAULT_CONTROL = "glibc"


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--quick", is_flag=True, help="Small executions.")
@click.option(
    "--workload", "-w", "workloads", multiple=True, metavar="NAME[:VARIANT]", help="Repeatable; default: the gated set."
)
@click.option(
    "--metric",
    "-m",
    "metrics",
    multiple=True,
    type=click.Choice(METRICS),
    help="Repeatable; default: instructions and rss_bytes.",
)
@click.option(
    "--allocator",
    "-a",
    "allocator",
    metavar="NAME",
    help="A git allocator of allocators.toml; default: this repository's.",
)
@click.option("--control", "controls", multiple=True, metavar="NAME", help="Control arms; default: glibc.")
@counter_option
@resume_option
@click.option("--explain/--no-explain", default=True, show_default=True, help="Say where the difference lies.")
@json_option
@pass_context
def command(
    context: Context, a: str, b: str, quick: bool, workloads: tuple[str, ...], metrics: tuple[str, ...],
    allocator: str | None, controls: tuple[str, ...], counter: str | None, resume: bool, explain: bool, as_json: bool,
) -> int:  # fmt: skip
    """Compare two builds: A and B are commits, `tree`, allocators of allocators.toml, or NAME@COMMIT.

    Counts are compared exactly, memory by the rules of docs/measuring.md. Exit 1 when B regressed against A.
    """
    config = select_allocators(context.allocators(), [allocator])[0] if allocator else context.own_allocator()
    control_configs = _controls(context, controls)
    before, after = (side(context.layout, context.allocators(), config, text) for text in (a, b))
    known = context.workloads()
    selection = select_workloads(known, workloads) if workloads else select_set(known, "gated")
    thresholds = load_thresholds(context.layout.pin_file.parent / "thresholds.toml")
    profile: Profile = "quick" if quick else "full"
    docket = Docket(before, after, profile)
    options = (" --quick" if quick else "") + (f" --allocator {allocator}" if allocator else "")
    options += "".join(f" --metric {metric}" for metric in metrics) + (f" --counter {counter}" if counter else "")
    fill(
        docket, selection, thresholds, counter=instruction_counter(counter), metrics=metrics or DEFAULT_METRICS,
        history=stored_history(context.store(), read_environment().key), complete=not quick,
        command=lambda name: f"./tidemark compare {a} {b}{options} --workload {name}",
    )  # fmt: skip
    if not docket.entries:
        raise CannotMeasure(
            "None of the selected workloads has one of these metrics: choose others with --workload or --metric."
        )
    comparison = Comparison(
        before, after, unchanged_code(docket) or [], notes=_workload_changes(context, config, before, after)
    )
    if not comparison.verdicts:
        stopped = context.stopped_run("compare") if resume else None
        control_arms = [reference_arm(context.layout, control) for control in control_configs]
        with Session(
            context.layout, context.store(), "compare", command_line(), progress_for(), resume=stopped
        ) as session:
            _measure(context, docket, control_arms, session, comparison, thresholds)
            if explain:
                explained = trial.explain(docket, comparison.verdicts, session, trial.moved_at_all)
                comparison.explanations = explained.by_case
                comparison.notes += explained.missing
            comparison.notes += trial.advice(docket)
            trial.record_verdicts(docket, comparison.verdicts, comparison.explanations, session)
    if as_json:
        print_json(comparison.as_dict())
    else:
        comparison.print_to(console())
    return _exit_code(comparison.verdicts)


def _controls(context: Context, names: Sequence[str]) -> list[AllocatorConfig]:
    known = context.allocators()
    if names:
        return select_allocators(known, names)
    return [known[DEFAULT_CONTROL]] if DEFAULT_CONTROL in known else []


def _measure(
    context: Context,
    docket: Docket,
    control_arms: Sequence[Arm],
    session: Session,
    comparison: Comparison,
    thresholds: Thresholds,
) -> None:
    """Measure until every case is decided, with the controls at the begin and at the end."""
    first = _control_jobs(docket, control_arms, 0)
    jobs = [*first, *docket.wanted()]
    session.progress.ahead(docket.ahead(jobs))
    measured = session.execute(jobs)
    begin = measured[: len(first)]
    docket.take(jobs[len(first) :], measured[len(first) :])
    verdicts = trial.measure(docket, session)
    end = session.execute(_control_jobs(docket, control_arms, 1))
    comparison.controls = _judge_controls(context, docket, begin, end, thresholds)
    comparison.verdicts = [_beside_controls(verdict, comparison.controls) for verdict in verdicts]


def _control_jobs(docket: Docket, control_arms: Sequence[Arm], repeat: int) -> list[Job]:
    """Return one counting job a workload and control: the counts are what a changed workload shows in at once.

    `repeat` is 0 at the begin and 1 at the end, so that a resumed comparison never takes one for the other.
    """
    jobs = []
    for workload, variant, provider in _counted(docket.entries):
        jobs += [
            Job(arm, workload, variant, provider, docket.profile, repeat, docket.next_position())
            for arm in control_arms
        ]
    return jobs


def _counted(entries: Sequence[Entry]) -> Iterator[tuple[Workload, Variant, str]]:
    seen = set()
    for entry in entries:
        if entry.provider in EXACT_PROVIDERS and (entry.workload.name, entry.variant.name) not in seen:
            seen.add((entry.workload.name, entry.variant.name))
            yield entry.workload, entry.variant, entry.provider


def _judge_controls(
    context: Context, docket: Docket, begin: Sequence[Measurement], end: Sequence[Measurement], thresholds: Thresholds
) -> list[ControlFinding]:
    known = context.workloads()
    key = read_environment().key
    findings = []
    for first, last in zip(begin, end, strict=True):
        workload = known[first.workload]
        if workload.threads > 1:
            continue  # two runs of a noisy count cannot tell; the A/A noise of the rule for noisy counts does
        stored = context.store().measurements(
            workload=first.workload, variant=first.variant, provider=first.provider, status="ok", environment_key=key,
            allocator=first.build.allocator,
        )  # fmt: skip
        label = workload.label(first.variant)
        findings.append(
            judge_control(label, "instructions", first, last, stored, thresholds.limit("instructions", workload.name))
        )
    return findings


def _beside_controls(verdict: Verdict, findings: Sequence[ControlFinding]) -> Verdict:
    for finding in findings:
        if finding.label == verdict.name and finding.metric == verdict.metric:
            verdict = voided(verdict, finding)
    return verdict


def _workload_changes(context: Context, config: AllocatorConfig, before: Arm, after: Arm) -> list[str]:
    """Say which workloads differ between the commits: both arms run the working tree's, so that is left out."""
    if config.repository != "self":
        return []
    try:
        changed = git(repository_of(context.layout, config), "diff", "--name-only", before.build.revision,
                      after.build.revision, "--", "workloads").splitlines()  # fmt: skip
    except CannotMeasure:
        return []
    folders = sorted({path.split("/")[1] for path in changed if path.count("/") >= 2})
    if not folders:
        return []
    return [f"both arms ran the working tree's workloads; between the commits these changed: {', '.join(folders)}"]


def _exit_code(verdicts: Sequence[Verdict]) -> int:
    if any(verdict.is_regression for verdict in verdicts):
        return EXIT_REGRESSION
    if any(verdict.outcome in (Outcome.NOT_MEASURED, Outcome.CANNOT_TELL) for verdict in verdicts):
        return EXIT_CANNOT_MEASURE
    return EXIT_FINE
