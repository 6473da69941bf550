"""Builds the static site: which run is shown, which pages there are, and what each template is given.

Who calls it: `./tidemark report --dashboard` and `python -m dashboards`. Reads the store and writes one folder;
not for two builders of the same folder at once.

Invariants
1. Every page stands alone: style, script and charts are inside it, and it asks for nothing, so it opens from
   a file and can be sent as it is.
2. A page shows what its data module returns; no figure is computed in a template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jinja2

from dashboards import figures
from dashboards.arms import Arm, arms_of, builds_of
from dashboards.comparison import comparisons
from dashboards.coverage import gaps
from dashboards.errors import DashboardError
from dashboards.line_chart import render
from dashboards.matrix import matrices
from dashboards.memory import memory_curves
from dashboards.publish import publish
from dashboards.summary import summarize
from dashboards.timeline import timelines
from dashboards.workload_page import file_name, workload_pages
from results import Store
from results.records import Measurement, Run, utc_now

_HERE = Path(__file__).resolve().parent

COMPARISONS_SHOWN = 20
"""Older comparisons stay in the store; a site with all of them would only be larger, not clearer."""

RUNS_LISTED = 40

_SHOWN_KINDS = ("bench", "run", "gate", "selftest", "bisect", "compare", "pin")
"""Which kind of run the matrix shows, by preference: a whole bench before a part of it."""


@dataclass(frozen=True)
class Shown:
    """The run that the matrix, the curves and the workload pages are about."""

    run: Run | None
    measurements: tuple[Measurement, ...]
    arms: tuple[Arm, ...]


def build(store: Store, out_dir: str | Path, run_id: str | None = None, history: Sequence[str] = ()) -> Path:
    """Write the site of a store into `out_dir`, in place of an older one, and return that folder.

    `run_id` is the run to show; without it, the newest bench that measured something. `history` are the full ids
    of commits, the oldest first, for the order of the timeline; commits that it does not name follow as they were
    measured. Raises DashboardError for an unknown run or a folder that can't be used, StoreError for a store that
    can't be read.
    """
    shown = choose(store, run_id)
    return publish(render_pages(store, shown, history), Path(out_dir))


def choose(store: Store, run_id: str | None = None) -> Shown:
    """Return the run to show with its measurements. Raises DashboardError for an unknown `run_id`."""
    if run_id is not None:
        runs = store.runs(run_id=run_id)
        if not runs:
            raise DashboardError(f"There is no run {run_id} in {store.location}; `./tidemark list runs` shows them.")
    else:
        runs = [run for kind in _SHOWN_KINDS for run in store.runs(kind=kind)]
    for run in runs:
        measurements = store.measurements(run_id=run.id)
        if measurements or run_id is not None:
            return Shown(run, tuple(measurements), tuple(arms_of(measurements)))
    return Shown(None, (), ())


def render_pages(store: Store, shown: Shown, history: Sequence[str] = ()) -> dict[str, str]:
    """Return every page of the site: file name to HTML."""
    cells = summarize(shown.measurements)
    curves = memory_curves(shown.measurements, shown.arms)
    pages = workload_pages(shown.measurements, cells, curves, shown.arms)
    missing = gaps(shown.measurements, shown.arms)
    compared = comparisons(store, COMPARISONS_SHOWN)
    templates = _environment()
    shared = {
        "run": shown.run,
        "arms": shown.arms,
        "workloads": pages,
        "gaps": missing,
        "location": Path(store.location).name if "://" not in store.location else store.location,
        "built_at": utc_now(),
    }

    def page(template: str, **context: Any) -> str:
        return templates.get_template(template).render(**shared, **context)

    site = {
        "index.html": page(
            "index.html", here="index", matrices=matrices(cells, shown.arms), runs=store.runs(limit=RUNS_LISTED)
        ),
        "memory.html": page("memory.html", here="memory", curves=curves),
        "timeline.html": page("timeline.html", here="timeline", timelines=timelines(store, history)),
        "compare.html": page("compare.html", here="compare", comparisons=compared),
        "environment.html": page(
            "environment.html", here="environment", builds=builds_of(shown.measurements),
            facts=asdict(shown.run.environment) if shown.run else {},
        ),
    }  # fmt: skip
    for comparison in compared:
        site[f"compare-{comparison.run.id}.html"] = page("comparison.html", here="compare", comparison=comparison)
    for workload in pages:
        site[workload.file] = page("workload.html", here="workload", page=workload)
    return site


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_HERE / "templates", _HERE / "inline"]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        chart=render,
        exact_of=lambda value, unit: figures.format_exact(unit, value),
        number=figures.significant,
        revision=figures.short_revision,
        time=figures.format_time,
        value_of=lambda value, unit: figures.format_value(unit, value),
        workload_file=file_name,
    )
    return environment
