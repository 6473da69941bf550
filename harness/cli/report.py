"""`tidemark report`: prints a stored run again, as table, Markdown or JSON."""

from __future__ import annotations

import click

from harness.cli.context import Context, console, json_option, pass_context, print_json
from harness.model.errors import CannotMeasure
from harness.present import speed_table as speed
from harness.present.matrix import as_markdown, matrix
from harness.present.outcome import outcome_data, print_outcome
from results.records import Run


@click.command()
@click.option("--run", "run_id", metavar="ID", help="A run, by the begin of its id; default: the last that measured.")
@click.option("--format", "form", type=click.Choice(["table", "markdown", "speed"]), default="table", show_default=True,
              help="`speed`: the speed table of `bench --set speed`, as Markdown.")  # fmt: skip
@json_option
@pass_context
def command(context: Context, run_id: str | None, form: str, as_json: bool) -> int:
    """Print a stored run again."""
    run = find_run(context, run_id)
    measurements = context.store().measurements(run_id=run.id)
    guide = context.guide()
    spent_s = sum(m.duration_s for m in measurements)
    if as_json:
        print_json({**outcome_data(measurements, run.id, spent_s, guide), "status": run.status, "command": run.command})
    elif form == "markdown":
        click.echo(as_markdown(matrix(measurements, guide)))
    elif form == "speed":
        click.echo(speed.as_markdown(context.speed_table(measurements)), nl=False)
    else:
        click.echo(f"run {run.id[:12]} of {run.started_at:%Y-%m-%d %H:%M} UTC, {run.status}: {run.command}")
        print_outcome(measurements, spent_s, console(), guide)
    return 0


def find_run(context: Context, run_id: str | None) -> Run:
    """Return the run whose id begins with `run_id`, or the last one that has measurements."""
    runs = context.store().runs()
    if run_id is None:
        for run in runs:
            if context.store().measurements(run_id=run.id, samples=False):
                return run
        raise CannotMeasure("Nothing has been measured yet: run `./tidemark bench --quick`.")
    matching = [run for run in runs if run.id.startswith(run_id)]
    if len(matching) != 1:
        count = "no run" if not matching else f"{len(matching)} runs"
        raise CannotMeasure(f"There is {count} whose id begins with {run_id}: `./tidemark list runs` shows them.")
    return matching[0]
