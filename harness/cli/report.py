"""`tidemark report`: shows a stored run again, as table, Markdown or JSON, or draws the dashboard of the store."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.context import Context, console, json_option, pass_context, print_json
from harness.model.errors import CannotMeasure
from harness.present import speed_table as speed
from harness.present.matrix import as_markdown, matrix
from harness.present.outcome import outcome_data, print_outcome
from harness.present.site import draw
from results.records import Run


@click.command()
@click.option("--run", "run_id", metavar="ID", help="A run, by the begin of its id; default: the last that measured.")
@click.option("--format", "form", type=click.Choice(["table", "markdown", "speed"]), default="table", show_default=True,
              help="`speed`: the speed table of `bench --set speed`, as Markdown.")  # fmt: skip
@click.option("--dashboard", is_flag=True, help="Draw the static site instead: of --run, else of the newest bench.")
@click.option("--out", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="With --dashboard: the folder to write; default: dashboards/site.")  # fmt: skip
@json_option
@pass_context
def command(
    context: Context, run_id: str | None, form: str, dashboard: bool, folder: Path | None, as_json: bool
) -> int:
    """Show a stored run again, or draw the dashboard."""
    if folder is not None and not dashboard:
        raise CannotMeasure("--out names the dashboard's folder: give --dashboard, too.")
    if dashboard:
        return _draw(context, run_id, folder or context.layout.dashboard, as_json)
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


def _draw(context: Context, run_id: str | None, folder: Path, as_json: bool) -> int:
    run = find_run(context, run_id).id if run_id is not None else None
    page = draw(context.layout, context.store(), folder, run)
    if as_json:
        print_json({"dashboard": str(page)})
    else:
        click.echo(f"dashboard: {page}")
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
