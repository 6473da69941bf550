"""`tidemark doctor`: what this machine can measure, what it cannot, and what would help."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from harness.cli.context import Context, console, json_option, pass_context, print_json
from harness.collect.environment import describe_interpreter, read_environment
from harness.collect.machine import findings
from harness.model.errors import EXIT_CANNOT_MEASURE, EXIT_FINE

_STYLES = {"good": "green", "note": "yellow", "bad": "red"}


@click.command()
@json_option
@pass_context
def command(context: Context, as_json: bool) -> int:
    """Say what this machine can measure, what it cannot, and what would help.

    Exits with 2 when something that measuring needs is missing.
    """
    found = findings(context.allocators(), context.layout.build)
    environment = read_environment()
    code = EXIT_CANNOT_MEASURE if any(finding.level == "bad" for finding in found) else EXIT_FINE
    if as_json:
        described: dict[str, Any] = {**asdict(environment), "key": environment.key}
        print_json({"environment": described, "findings": [asdict(f) for f in found]})
        return code
    out = console()
    out.print(
        f"{environment.machine}, {environment.cpu_model}, {environment.cpu_count} processors, "
        f"{environment.memory_bytes / (1 << 30):.1f} GiB, Linux {environment.kernel}; {describe_interpreter()}; "
        f"environment {environment.key}",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip
    table = Table(show_edge=False, pad_edge=False)
    for title in ("", "what", "state", "what would help"):
        table.add_column(title, overflow="fold")
    for finding in found:
        table.add_row(Text(finding.level, style=_STYLES[finding.level]), finding.subject, finding.state, finding.help)
    out.print(table)
    return code
