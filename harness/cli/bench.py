"""`tidemark bench`: Ebb's tree and pin beside every reference allocator, over a set; stored, printed, drawn."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from harness.build.arms import loop_arm, missing_pin_arm, pin_arm, reference_arm, tree_arm
from harness.cli.context import (
    Context,
    command_line,
    console,
    json_option,
    pass_context,
    print_json,
    resume_option,
    warn_of_load,
)
from harness.collect.providers import instruction_counter
from harness.collect.session import Session
from harness.model.arm import Arm
from harness.model.errors import CannotMeasure
from harness.model.plan import Job, build_plan
from harness.model.workload import SETS, Profile, Workload, select_set
from harness.present import speed_table as speed
from harness.present.outcome import exit_code, outcome_data, print_outcome
from harness.present.progress import progress_for
from harness.present.site import draw
from results.store import Store

REPEATS: dict[Profile, dict[str, int]] = {"quick": {}, "full": {"hyperfine": 3}}
"""How often each noisy provider looks, interleaved ABBA; once where it does not say. Time needs it, memory does not."""


@click.command()
@click.option("--quick", is_flag=True, help="Small executions: under two minutes of measuring on two processors.")
@click.option("--set", "set_name", type=click.Choice(SETS), default="fixed", show_default=True, help="Which workloads.")
@click.option(
    "--all-variants", is_flag=True, help="Every variant; default for the fixed set: the first of each workload."
)
@click.option("--dashboard/--no-dashboard", default=True, show_default=True, help="Draw the static site afterwards.")
@resume_option
@json_option
@pass_context
def command(
    context: Context, quick: bool, set_name: str, all_variants: bool, dashboard: bool, resume: bool, as_json: bool
) -> int:  # fmt: skip
    """Measure Ebb (tree and pin) and every reference allocator over a set of workloads.

    The fixed set takes under ten minutes on two processors, with --quick under two. The speed set ends with the
    speed table, Ebb's goals beside every reference; what the table needs of the fixed set is measured in the same run.
    """
    profile: Profile = "quick" if quick else "full"
    known = context.workloads()
    selection = select_set(known, set_name, (quick or set_name == "fixed") and not all_variants)
    if set_name == "speed":
        selection = list(dict.fromkeys([*selection, *speed.needed(known)]))
    left_out = [pair for pair in select_set(known, set_name) if pair not in selection]
    arms = bench_arms(context)
    counter = instruction_counter()
    plan = build_plan(arms, selection, None, profile, REPEATS[profile], counter)
    if set_name == "speed":
        plan += loop_jobs(context, known, profile, counter, len(plan))
    warn_of_load()
    store = context.store()
    stopped = context.stopped_run("bench") if resume else None
    with Session(context.layout, store, "bench", command_line(), progress_for(), resume=stopped) as session:
        measurements = session.execute(plan)
    names = [workload.label(variant) for workload, variant in left_out]
    compared = speed.without_loop(measurements)
    table = context.speed_table(measurements) if set_name == "speed" else None
    if as_json:
        data = outcome_data(compared, session.run.id, session.spent_s, context.guide())
        data["left_out"] = names
        if table:
            data["speed_table"] = speed.as_data(table)
        print_json(data)
    else:
        print_outcome(compared, session.spent_s, console(), context.guide())
        if table:
            speed.print_speed_table(table, console())
        if names:
            click.echo(f"left out (--all-variants measures them, `./tidemark run -w NAME` one): {', '.join(names)}")
    code = exit_code(measurements, skipped_fails=False)
    if dashboard and not draw_dashboard(context, store):
        code = 2
    return code


def bench_arms(context: Context) -> list[Arm]:
    """Return Ebb's tree, its pin and the references; what is missing is an arm that says why."""
    configs = context.allocators()
    own = context.own_allocator()
    arms = [tree_arm(context.layout, own)]
    try:
        arms.append(pin_arm(context.layout, own, context.pin(own).commit))
    except CannotMeasure as error:
        arms.append(missing_pin_arm(own, error.sentence))
    arms += [reference_arm(context.layout, config) for config in configs.values() if config.name != own.name]
    return arms


def loop_jobs(
    context: Context, known: dict[str, Workload], profile: Profile, counter: str, first_position: int
) -> list[Job]:
    """Return the jobs that count the loop of churn_bare by itself, to run after `first_position` others."""
    workload = speed.loop_workload(known)
    selection = [(workload, variant) for variant in workload.variants]
    plan = build_plan([loop_arm(context.layout, speed.LOOP_ARM)], selection, None, profile, counter=counter)
    return [replace(job, position=first_position + job.position) for job in plan]


def draw_dashboard(context: Context, store: Store) -> bool:
    """Write the static site and say where; False, with the reason on standard error, when that fails."""
    target = context.layout.dashboard
    try:
        page = draw(context.layout, store, target)
    except Exception as error:  # noqa: BLE001 - figures are stored and printed: drawing them must not undo that
        print(
            f"tidemark: the dashboard could not be drawn ({type(error).__name__}: {error}); the figures are stored, "
            "`./tidemark report` prints them.",
            file=sys.stderr,
        )
        return False
    print(f"dashboard: {page}", file=sys.stderr)
    return True
