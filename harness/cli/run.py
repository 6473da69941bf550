"""`tidemark run`: measures any part of the matrix allocators × workloads × providers."""

from __future__ import annotations

from typing import cast

import click

from harness.build.arms import arm_named, reference_arm, tree_arm
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
from harness.collect.providers import instruction_counter, provider_named
from harness.collect.session import Session
from harness.model.allocator import select_allocators
from harness.model.arm import Arm
from harness.model.errors import CannotMeasure
from harness.model.plan import build_plan
from harness.model.workload import SETS, Profile, select_set, select_workloads
from harness.present.outcome import exit_code, outcome_data, print_outcome
from harness.present.progress import progress_for


@click.command()
@click.option(
    "--workload", "-w", "workloads", multiple=True, metavar="NAME[:VARIANT]", help="Repeatable; default: the fixed set."
)
@click.option("--set", "set_name", type=click.Choice(SETS), help="Every workload with this tag.")
@click.option(
    "--allocator",
    "-a",
    "allocators",
    multiple=True,
    metavar="NAME[@REVISION]",
    help="Repeatable; default: all that are configured. ebb is the working tree, ebb@REV a commit.",
)
@click.option(
    "--provider",
    "-p",
    "providers",
    multiple=True,
    metavar="NAME",
    help="Repeatable; default: those the workload's metrics need.",
)
@click.option(
    "--profile",
    type=click.Choice(["quick", "full"]),
    default="quick",
    show_default=True,
    help="Size of each execution.",
)
@click.option(
    "--repeat",
    "repeats",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Executions of each combination, interleaved ABBA.",
)
@resume_option
@json_option
@pass_context
def command(
    context: Context, workloads: tuple[str, ...], set_name: str | None, allocators: tuple[str, ...],
    providers: tuple[str, ...], profile: str, repeats: int, resume: bool, as_json: bool,
) -> int:  # fmt: skip
    """Measure any part of the matrix and store every sample."""
    for name in providers:
        provider_named(name)
    known = context.workloads()
    if workloads and set_name:
        raise CannotMeasure("Give either --workload or --set, not both.")
    selection = select_workloads(known, workloads) if workloads else select_set(known, set_name or "fixed")
    arms = _arms(context, allocators)
    size = cast(Profile, profile)
    plan = build_plan(arms, selection, providers or None, size, repeats, instruction_counter(), exact_repeats=repeats)
    warn_of_load()
    store = context.store()
    stopped = context.stopped_run("run") if resume else None
    with Session(context.layout, store, "run", command_line(), progress_for(), resume=stopped) as session:
        measurements = session.execute(plan)
    if as_json:
        print_json(outcome_data(measurements, session.run.id, session.spent_s, context.guide()))
    else:
        print_outcome(measurements, session.spent_s, console(), context.guide())
    return exit_code(measurements, skipped_fails=bool(allocators or providers))


def _arms(context: Context, names: tuple[str, ...]) -> list[Arm]:
    configs = context.allocators()
    if not names:
        return [
            tree_arm(context.layout, config) if config.repository == "self" else reference_arm(context.layout, config)
            for config in configs.values()
        ]
    arms = []
    for name in names:
        base, _, revision = name.partition("@")
        config = select_allocators(configs, [base])[0]
        arms.append(arm_named(context.layout, config, revision or None))
    return arms
