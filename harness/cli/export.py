"""`tidemark export`: writes the whole store to a file that another store can import."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.context import Context, json_option, pass_context, print_json


@click.command()
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@json_option
@pass_context
def command(context: Context, path: Path, as_json: bool) -> int:
    """Write every run to PATH (compressed if it ends in .gz), for `tidemark import` elsewhere."""
    store = context.store()
    count = store.export(path)
    if as_json:
        print_json({"path": str(path), "records": count})
    else:
        click.echo(f"{count} records of {store.location} written to {path}")
    return 0
