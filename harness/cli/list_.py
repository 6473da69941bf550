"""`tidemark list`: the workloads, allocators, providers and runs there are."""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table

from harness.build.arms import package_version
from harness.cli.context import Context, console, json_option, pass_context, print_json
from harness.collect.providers import all_providers
from harness.model.allocator import AllocatorConfig

KINDS = ("workloads", "allocators", "providers", "runs")


@click.command(name="list")
@click.argument("what", type=click.Choice(KINDS))
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Runs shown, newest first.")
@json_option
@pass_context
def command(context: Context, what: str, limit: int, as_json: bool) -> int:
    """List the workloads, allocators, providers or runs."""
    if what == "workloads":
        rows = _workloads(context)
    elif what == "allocators":
        rows = [_allocator(context, config) for config in context.allocators().values()]
    elif what == "providers":
        rows = _providers()
    else:
        rows = _runs(context, limit)
    if as_json:
        print_json(rows)
        return 0
    table = Table(show_edge=False, pad_edge=False)
    for name in rows[0] if rows else ():
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(", ".join(value) if isinstance(value, list) else str(value) for value in row.values()))
    if rows:
        console().print(table)
    else:
        click.echo(f"There are no {what} yet.")
    return 0


def _workloads(context: Context) -> list[dict[str, Any]]:
    return [
        {
            "workload": workload.label(variant),
            "kind": workload.kind,
            "tags": sorted(workload.tags),
            "metrics": list(workload.metrics),
            "summary": workload.summary,
        }
        for workload in context.workloads().values()
        for variant in workload.variants
    ]


def _allocator(context: Context, config: AllocatorConfig) -> dict[str, Any]:
    if config.kind == "libc":
        state = f"present ({package_version('libc6') or 'version unknown'})"
    elif config.kind == "preload":
        path = config.object_path()
        version = package_version(config.package)
        state = f"present ({version or path})" if path else config.missing_sentence()
    elif config.repository == "self":
        built = (context.layout.root / config.working_tree).is_file()
        state = "built" if built else "not built: run `make`"
    else:
        state = f"built when measured, from {config.repository} at {config.revision or 'HEAD'}"
    return {
        "allocator": config.name,
        "kind": config.kind,
        "state": state,
        "native": list(config.capabilities),
        "summary": config.summary,
    }


def _providers() -> list[dict[str, Any]]:
    rows = []
    for name, provider in all_providers().items():
        probe = provider.probe()
        rows.append({"provider": name, "available": "yes" if probe.available else "no", "what": probe.sentence})
    return rows


def _runs(context: Context, limit: int) -> list[dict[str, Any]]:
    return [
        {
            "run": run.id,
            "started": run.started_at.strftime("%Y-%m-%d %H:%M:%S"),
            "kind": run.kind,
            "status": run.status,
            "suite": run.suite_revision[:12],
            "command": run.command,
        }
        for run in context.store().runs(limit=limit)
    ]
