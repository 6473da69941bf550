"""What every command gets: where things lie, the store, and how to print.

Made once by the group (or by a test) and passed as click's object. Shared options are declared here once.
"""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Sequence, TypeVar

import click
from rich.console import Console

from harness.collect.machine import load
from harness.model.allocator import AllocatorConfig, load_allocators
from harness.model.errors import CannotMeasure
from harness.model.layout import Layout
from harness.model.pin import Pin, load_pin
from harness.model.workload import Workload, load_workloads
from harness.present.figures import Guide
from harness.present.speed_table import SpeedTable, fixed_set, speed_table
from results.records import Measurement, Run
from results.store import Store, open_store

PLAIN_WIDTH = 160
"""Columns of a table that goes into a file or a pipe."""
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass
class Context:
    """The state of one invocation."""

    layout: Layout
    _store: Store | None = field(default=None, repr=False)

    def store(self) -> Store:
        """Open the store once; StoreError says what is wrong with it."""
        if self._store is None:
            self._store = open_store()
        return self._store

    def close(self) -> None:
        """Close the store if it was opened: its file is whole then, and may be copied."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def workloads(self) -> dict[str, Workload]:
        """Return every workload; CannotMeasure when there is none or a manifest is wrong."""
        found = load_workloads(self.layout)
        if not found:
            raise CannotMeasure(f"There are no workloads below {self.layout.workloads}: is this a whole checkout?")
        return found

    def guide(self) -> Guide:
        """Return what the manifests say about tables."""
        known = load_workloads(self.layout).values()
        return Guide(
            {w.name: w.variants[0].name for w in known},
            {w.name: w.metrics for w in known},
            {w.name: w.summary for w in known},
        )

    def speed_table(self, measurements: Sequence[Measurement]) -> SpeedTable:
        """Return the speed table of a run's measurements."""
        fixed = [(workload.name, variant.name) for workload, variant in fixed_set(self.workloads())]
        libc = next((c.name for c in self.allocators().values() if c.kind == "libc"), "")
        return speed_table(measurements, fixed, libc, self.guide())

    def stopped_run(self, kind: str) -> Run:
        """Return the last run of a kind if it was stopped; CannotMeasure when it was not."""
        runs = self.store().runs(kind=kind, limit=1)
        if not runs or runs[0].status not in ("interrupted", "running"):
            raise CannotMeasure("There is no stopped run to go on with: leave --resume out.")
        return runs[0]

    def allocators(self) -> dict[str, AllocatorConfig]:
        """Return every configured allocator; CannotMeasure when the file is wrong."""
        return load_allocators(self.layout.allocators_file)

    def own_allocator(self) -> AllocatorConfig:
        """Return the allocator that this repository builds."""
        for config in self.allocators().values():
            if config.kind == "git" and config.repository == "self":
                return config
        raise CannotMeasure(
            'No allocator has repository = "self" in allocators.toml: add the one this repository builds.'
        )

    def pin_path(self, config: AllocatorConfig) -> Path:
        """Return the file that pins an allocator."""
        own = self.layout.pin_file
        return own if config.repository == "self" else own.with_name(f"pin-{config.name}.toml")

    def pin(self, config: AllocatorConfig) -> Pin:
        """Return an allocator's pin; CannotMeasure when there is none or its file is wrong."""
        words = ("HEAD" if config.kind == "git" else "") + pin_options(config)
        return load_pin(self.pin_path(config), words.lstrip())


def pin_options(config: AllocatorConfig) -> str:
    """Return the option, behind a space, by which the `pin` commands know an allocator; nothing for the own one."""
    return "" if config.repository == "self" else f" --allocator {config.name}"


pass_context = click.make_pass_decorator(Context)


def json_option(function: Function) -> Function:
    """Add `--json`: the result for machines on standard output, everything for people on standard error."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")(
        function
    )


def resume_option(function: Function) -> Function:
    """Add `--resume`: what the last run of the same kind measured before it was stopped is not measured again."""
    return click.option(
        "--resume", is_flag=True, help="Go on with the last one if it was stopped, same options assumed."
    )(function)


def print_json(value: object) -> None:
    """Print a result for machines."""
    json.dump(value, sys.stdout, indent=1, default=str)
    sys.stdout.write("\n")


def warn_of_load() -> None:
    """Say on standard error when other work would blur what is about to be measured."""
    found = load()
    if found.level != "good":
        print(f"note: load {found.state}; counts are not affected", file=sys.stderr)


def console() -> Console:
    """Return where tables go: standard output, wide enough for a file when it is no terminal.

    Text is shown as it is: names of variants and functions may hold what would be markup (`[b]`, `:one:`).
    """
    if sys.stdout.isatty():
        return Console(markup=False, emoji=False)
    return Console(width=PLAIN_WIDTH, no_color=True, markup=False, emoji=False)


def command_line() -> str:
    """Return the command as the user typed it, for the store."""
    return shlex.join(["./tidemark", *sys.argv[1:]])
