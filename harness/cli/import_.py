"""`tidemark import`: merges an exported file into the store, by id."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.context import Context, json_option, pass_context, print_json


@click.command(name="import")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@json_option
@pass_context
def command(context: Context, path: Path, as_json: bool) -> int:
    """Merge the runs in PATH into the store; what is there already stays as it is."""
    store = context.store()
    count = store.import_(path)
    if as_json:
        print_json({"path": str(path), "new_records": count})
    else:
        click.echo(f"{count} new records from {path} merged into {store.location}")
    return 0
