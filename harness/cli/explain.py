"""`tidemark explain`: where a difference lies, from stored measurements or from two commits measured now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from harness.analyze.evidence import MEMORY_FLOOR_BYTES, Explanation, explain_pair
from harness.analyze.explanation import explain_memory
from harness.analyze.explanation_text import print_explanation
from harness.build.arms import revision_arm, tree_arm
from harness.cli.context import Context, command_line, console, json_option, pass_context, print_json
from harness.cli.report import find_run
from harness.collect.session import Session
from harness.model.allocator import AllocatorConfig, select_allocators
from harness.model.arm import REFERENCE, TREE, Arm
from harness.model.errors import CannotMeasure
from harness.model.plan import build_plan
from harness.model.workload import select_set, select_workloads
from harness.present.progress import progress_for
from results.records import Measurement

EXPLAINED_KINDS = ("compare", "gate", "bisect")
METRICS = {"callgrind": "instructions", "smaps": "rss_bytes"}
PROVIDERS = tuple(METRICS)
BESIDE = {"statistics": "smaps"}
"""Providers that are not explained by themselves, but beside another."""


@dataclass(frozen=True)
class Pair:
    """The measurements of one workload by one provider on both sides."""

    label: str
    provider: str
    before: tuple[Measurement, ...]
    after: tuple[Measurement, ...]


@click.command()
@click.argument("revisions", nargs=-1, metavar="[A B]")
@click.option(
    "--run", "run_id", metavar="ID", help="A stored run with two arms, by the begin of its id; default: the newest."
)
@click.option(
    "--workload",
    "-w",
    "workloads",
    multiple=True,
    metavar="NAME[:VARIANT]",
    help="Repeatable; default: all that were measured.",
)
@click.option(
    "--provider", "-p", "providers", multiple=True, type=click.Choice(PROVIDERS), help="Repeatable; default: both."
)
@click.option(
    "--allocator", "-a", "allocator", metavar="NAME", help="With A and B: a git allocator; default: this repository's."
)
@click.option(
    "--listings/--no-listings", default=True, show_default=True, help="Disassemble the fast paths side by side."
)
@json_option
@pass_context
def command(
    context: Context, revisions: tuple[str, ...], run_id: str | None, workloads: tuple[str, ...],
    providers: tuple[str, ...], allocator: str | None, listings: bool, as_json: bool,
) -> int:  # fmt: skip
    """Explain where two builds differ: functions, source lines, machine instructions, memory by category.

    With A and B, measures both commits once; without, explains the newest stored comparison.
    """
    if len(revisions) not in (0, 2) or (revisions and run_id):
        raise CannotMeasure("Give two revisions to measure and explain, or none to explain a stored run.")
    wanted = providers or PROVIDERS
    if revisions:
        arms, measurements = _measure(context, revisions, workloads, wanted, allocator)
    else:
        arms, measurements = _stored(context, run_id)
    pairs = [pair for pair in _pairs(context, measurements, arms, workloads) if pair.provider in wanted]
    if not pairs:
        raise CannotMeasure(
            "Nothing of that selection was measured on both sides: leave --workload and --provider out."
        )
    explanations = [_explain(context, pair, arms) for pair in pairs]
    if as_json:
        print_json([{"provider": pair.provider, **item.as_dict()} for pair, item in zip(pairs, explanations)])
    else:
        for item in explanations:
            print_explanation(item, console(), listings)
    return 0


def _measure(
    context: Context,
    revisions: Sequence[str],
    workloads: Sequence[str],
    providers: Sequence[str],
    allocator: str | None,
) -> tuple[tuple[Arm, Arm], list[Measurement]]:
    config = select_allocators(context.allocators(), [allocator])[0] if allocator else context.own_allocator()
    arms = tuple(_arm(context, config, revision) for revision in revisions)
    if arms[0].role == arms[1].role:
        raise CannotMeasure(f"{revisions[0]} and {revisions[1]} are the same commit, so there is nothing to explain.")
    known = context.workloads()
    selection = select_workloads(known, workloads) if workloads else select_set(known, "gated")
    jobs = [
        job
        for provider in providers
        for job in build_plan(
            arms, [(w, v) for w, v in selection if METRICS[provider] in w.metrics], _with_beside(provider), "quick"
        )
    ]
    plan = [replace(job, position=position) for position, job in enumerate(jobs)]
    with Session(context.layout, context.store(), "compare", command_line(), progress_for()) as session:
        return (arms[0], arms[1]), session.execute(plan)


def _with_beside(provider: str) -> tuple[str, ...]:
    return (provider, *(name for name, main in BESIDE.items() if main == provider))


def _arm(context: Context, config: AllocatorConfig, revision: str) -> Arm:
    if revision == TREE and config.repository == "self":
        return tree_arm(context.layout, config)
    arm = revision_arm(context.layout, config, revision)
    return replace(arm, role=arm.build.revision[:12])


def _stored(context: Context, run_id: str | None) -> tuple[tuple[Arm, Arm], list[Measurement]]:
    store = context.store()
    if run_id is None and not (newest := store.runs(kind=EXPLAINED_KINDS, limit=1)):
        raise CannotMeasure("No comparison is stored yet: run `./tidemark compare A B` first.")
    run = newest[0] if run_id is None else find_run(context, run_id)
    measurements = [
        m for m in store.measurements(run_id=run.id, provider=(*PROVIDERS, *BESIDE), status="ok") if m.arm != REFERENCE
    ]
    builds = {m.arm: m.build for m in measurements}
    if len(builds) < 2:
        raise CannotMeasure(f"Run {run.id[:8]} ({run.kind}) did not measure two arms: name another with --run.")
    known = context.allocators()
    arms = []
    for role in list(builds)[:2]:
        build = builds[role]
        config = select_allocators(known, [build.allocator])[0]
        path = Path(build.path)
        arms.append(
            Arm(role, config, build, path) if path.is_file() else _rebuilt(context, config, build.revision, role)
        )
    # The arm judged against comes first: by name for a gate, by order of measuring for a comparison.
    first, second = sorted(arms, key=lambda arm: arm.role != "pin")
    return (first, second), measurements


def _rebuilt(context: Context, config: AllocatorConfig, revision: str, role: str) -> Arm:
    return revision_arm(context.layout, config, revision, role=role)


def _pairs(
    context: Context, measurements: Sequence[Measurement], arms: tuple[Arm, Arm], workloads: Sequence[str]
) -> list[Pair]:
    known = context.workloads()
    chosen = {(w.name, v.name) for w, v in select_workloads(known, workloads)} if workloads else None
    by_key: dict[tuple[str, str, str], tuple[list[Measurement], list[Measurement]]] = {}
    for m in measurements:
        if m.status == "ok" and (chosen is None or (m.workload, m.variant) in chosen) and m.workload in known:
            main = BESIDE.get(m.provider, m.provider)
            sides = by_key.setdefault((m.workload, m.variant, main), ([], []))
            for side, arm in zip(sides, arms, strict=True):
                if m.arm == arm.role:
                    side.append(m)
    return [
        Pair(known[workload].label(variant), provider, tuple(before), tuple(after))
        for (workload, variant, provider), (before, after) in by_key.items()
        if before and after
    ]


def _explain(context: Context, pair: Pair, arms: tuple[Arm, Arm]) -> Explanation:
    if pair.provider == "smaps":
        return explain_memory(pair.label, pair.before, pair.after, MEMORY_FLOOR_BYTES)
    latest = pair.before[-1], pair.after[-1]
    return explain_pair(context.layout, pair.label, arms, latest, context.store().attachment)
