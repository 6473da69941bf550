"""`tidemark pin`: shows, sets and checks the commit that changes are judged against."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Sequence, cast

import click

from harness.build.arms import arm_named, pinned_arm, revision_arm
from harness.build.revision import resolve_commit
from harness.build.stage import stage
from harness.cli.context import Context, command_line, console, json_option, pass_context, pin_options, print_json
from harness.collect.environment import read_environment
from harness.collect.providers import instruction_counter
from harness.collect.session import Session
from harness.model.allocator import AllocatorConfig, select_allocators
from harness.model.arm import PIN, Arm
from harness.model.errors import CannotMeasure
from harness.model.pin import Figure, Pin, load_pin, save_pin, succeed
from harness.model.plan import build_plan
from harness.model.workload import SETS, Profile, select_set
from harness.present.figures import show
from harness.present.progress import progress_for
from results.records import Measurement, utc_now

PINNED_METRICS = ("instructions", "peak_rss_bytes", "end_rss_bytes", "wall_s")
"""What the file holds of each workload: enough for a review; every sample is in the store."""
EXACT_TOLERANCE = 1e-4
"""Counts of the same binary differ by 1 or 2 in ten million for one thread; ten times the room is for libc."""
NOISY_TOLERANCE = 0.10
"""Of several threads' counts and of memory: a figure further off was not measured on this code or machine."""

allocator_option = click.option(
    "--allocator", "-a", "allocator", metavar="NAME",
    help="Whose pin, of allocators.toml; default: this repository's.",
)  # fmt: skip


@click.group()
def command() -> None:
    """Show, set or check the pin: the commit that changes are judged against."""


@command.command("show")
@allocator_option
@json_option
@pass_context
def show_pin(context: Context, allocator: str | None, as_json: bool) -> int:
    """Show the pin, its reason, its figures and the pins before it."""
    pin = context.pin(_config(context, allocator))
    if as_json:
        print_json(_data(pin, read_environment().key))
        return 0
    out = console()
    out.print(f"{pin.commit[:12]} pinned {pin.pinned_at}: {pin.reason}", markup=False, highlight=False)
    here = "this environment" if pin.environment_key == read_environment().key else "ANOTHER environment than this"
    words = ", ".join(f"{name} {value}" for name, value in pin.environment.items())
    out.print(f"figures of {here} ({words}), profile {pin.profile}:", markup=False, highlight=False)
    for figure in pin.figures:
        out.print(f"  {figure.name}: {show(figure.value, figure.unit)}", markup=False, highlight=False)
    for past in pin.history:
        out.print(f"before: {past.commit[:12]} pinned {past.pinned_at}: {past.reason}", markup=False, highlight=False)
    return 0


@command.command("set")
@click.argument("revision", required=False)
@allocator_option
@click.option("--reason", required=True, help="Why this commit; reviewers read it.")
@click.option("--set", "set_name", type=click.Choice(SETS), default="gated", show_default=True, help="What to measure.")
@click.option(
    "--repeat", "repeats", type=click.IntRange(1, 100), default=3, show_default=True, help="Of noisy figures."
)
@json_option
@pass_context
def set_pin(
    context: Context, revision: str | None, allocator: str | None, reason: str, set_name: str, repeats: int,
    as_json: bool,
) -> int:  # fmt: skip
    """Build REVISION, measure it here and write it as the pin.

    An allocator that a package brings is pinned as it is installed: REVISION is its version then, or left out.
    """
    if not reason.strip():
        raise CannotMeasure("A pin needs a reason: say why this commit with --reason.")
    config = _config(context, allocator)
    arm = _arm_to_pin(context, config, revision)
    selection = select_set(context.workloads(), set_name)
    plan = build_plan([arm], selection, None, "quick", repeats, instruction_counter())
    with Session(context.layout, context.store(), "pin", command_line(), progress_for()) as session:
        measurements = session.execute(plan)
    broken = next((m for m in measurements if m.status != "ok"), None)
    if broken is not None:
        raise CannotMeasure(f"Nothing was pinned, because one figure is missing. {broken.reason}")
    environment = read_environment()
    new = Pin(
        commit=arm.build.revision, reason=reason.strip(), pinned_at=f"{utc_now():%Y-%m-%d}",
        environment_key=environment.key,
        environment={"cpu_model": environment.cpu_model, "libc": environment.libc, "thp_mode": environment.thp_mode,
                     "valgrind": environment.tools.get("valgrind", "none"),
                     "compiler": arm.build.compiler or "unknown"},
        profile="quick", figures=figures_of(measurements), sha256="" if config.kind == "git" else arm.build.sha256,
    )  # fmt: skip
    path = context.pin_path(config)
    save_pin(path, succeed(load_pin(path) if path.exists() else None, new))
    if as_json:
        print_json(_data(load_pin(path), environment.key))
    else:
        place = path.relative_to(context.layout.root)
        click.echo(f"{new.commit[:12]} is pinned with {len(new.figures)} figures in {place}")
    return 0


@command.command("check")
@click.option("--measure", is_flag=True, help="Also measure the pinned commit again and compare with its figures.")
@allocator_option
@json_option
@pass_context
def check_pin(context: Context, measure: bool, allocator: str | None, as_json: bool) -> int:
    """Check that the pin exists, builds, and was measured in this environment."""
    config = _config(context, allocator)
    pin = context.pin(config)
    if config.kind == "git" and resolve_commit(context.layout, config, pin.commit) != pin.commit:
        raise CannotMeasure(f"The pin names {pin.commit}, which is not a full commit id: pin again.")
    arm = pinned_arm(context.layout, config, pin)
    figures = pin.figures_for(read_environment().key, pin_options(config))
    known = context.workloads()
    gone = sorted({figure.workload for figure in figures} - set(known))
    if gone:
        raise CannotMeasure(f"The pin has figures of {gone[0]}, which is no workload any more: pin again.")
    differences = _measure_again(context, arm, pin, figures) if measure else []
    if differences:
        raise CannotMeasure(
            f"{len(differences)} of {len(figures)} figures of the pin do not repeat here, first {differences[0]}: "
            "look for what changed on this machine, then pin again with the reason."
        )
    if as_json:
        print_json({"commit": pin.commit, "figures": len(figures), "measured_again": measure, "fine": True})
    else:
        done = "and its figures repeat" if measure else "and its figures are of this environment"
        click.echo(f"pin {pin.commit[:12]} {'builds' if config.kind == 'git' else 'is here'}, {done}")
    return 0


def _config(context: Context, allocator: str | None) -> AllocatorConfig:
    return select_allocators(context.allocators(), [allocator])[0] if allocator else context.own_allocator()


def _arm_to_pin(context: Context, config: AllocatorConfig, revision: str | None) -> Arm:
    """Return the arm that is to be pinned; CannotMeasure when it is not here."""
    if config.kind == "git":
        if revision is None:
            raise CannotMeasure(f"Name the commit of {config.name} to pin: `./tidemark pin set HEAD --reason '…'`.")
        return revision_arm(context.layout, config, revision, PIN)
    arm = arm_named(context.layout, config)
    if revision not in (None, arm.build.revision):
        raise CannotMeasure(
            f"Installed is {config.name} {arm.build.revision}, not {revision}: install that version first, or leave "
            "the version out to pin what is here."
        )
    if arm.preload is not None:
        stage(context.layout, arm.preload)  # what is pinned outlives an upgrade of its package
    return replace(arm, role=PIN)


def figures_of(measurements: Sequence[Measurement]) -> tuple[Figure, ...]:
    """Return the pinned metrics of measurements, the median over their repeats."""
    values: dict[tuple[str, str, str, str, str], list[float]] = {}
    for m in measurements:
        for sample in m.samples:
            if sample.metric in PINNED_METRICS and sample.detail is None:
                values.setdefault((m.workload, m.variant, m.provider, sample.metric, sample.unit), []).append(
                    sample.value
                )
    return tuple(
        Figure(workload, variant, provider, metric, statistics.median(found), unit)
        for (workload, variant, provider, metric, unit), found in sorted(values.items())
    )


def _measure_again(context: Context, arm: Arm, pin: Pin, figures: Sequence[Figure]) -> list[str]:
    """Return the figures that do not repeat, each in words. Wall-clock times are left to `compare`."""
    known = context.workloads()
    pairs = {(figure.workload, figure.variant) for figure in figures}
    selection = [(w, v) for w in known.values() for v in w.variants if (w.name, v.name) in pairs]
    plan = build_plan([arm], selection, None, cast(Profile, pin.profile), 1, instruction_counter())
    with Session(context.layout, context.store(), "pin", command_line(), progress_for()) as session:
        again = {figure.name: figure for figure in figures_of(session.execute(plan))}
    differences = []
    for figure in figures:
        now = again.get(figure.name)
        exact = figure.metric == "instructions" and known[figure.workload].threads == 1
        room = EXACT_TOLERANCE if exact else NOISY_TOLERANCE
        if figure.metric == "wall_s":
            continue
        if now is None:
            differences.append(f"{figure.name}: not measured")
        elif abs(now.value - figure.value) > room * max(figure.value, 1.0):
            differences.append(
                f"{figure.name}: {show(now.value, figure.unit)} instead of {show(figure.value, figure.unit)}"
            )
    return differences


def _data(pin: Pin, here: str) -> dict[str, object]:
    return {
        "commit": pin.commit, "reason": pin.reason, "pinned_at": pin.pinned_at, "profile": pin.profile,
        "environment_key": pin.environment_key, "this_environment": pin.environment_key == here,
        "environment": pin.environment,
        "figures": {figure.name: {"value": figure.value, "unit": figure.unit} for figure in pin.figures},
        "history": [{"commit": p.commit, "reason": p.reason, "pinned_at": p.pinned_at} for p in pin.history],
    }  # fmt: skip
