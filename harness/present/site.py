"""Draws the dashboard from a store, with the order of commits that the store itself cannot know.

Called by `bench` and `report --dashboard`. Writes one folder.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from harness.build.commands import git
from harness.model.errors import CannotMeasure
from harness.model.layout import Layout
from results.store import Store


def draw(layout: Layout, store: Store, folder: Path, run_id: str | None = None) -> Path:
    """Write the static site of `store` into `folder` and return its first page.

    `run_id` is the run to show; without it the newest bench. The package is imported here: who only measures does
    not wait for the templates' engine. CannotMeasure for a folder that can't be used; StoreError passes through.
    """
    dashboards = importlib.import_module("dashboards")
    try:
        dashboards.build(store, folder, run_id=run_id, history=commits(layout))
    except dashboards.DashboardError as error:
        raise CannotMeasure(str(error)) from error
    return folder / "index.html"


def commits(layout: Layout) -> list[str]:
    """Return the full ids of the checkout's commits, oldest first; none where there is no git history."""
    try:
        return git(layout.root, "rev-list", "--reverse", "--topo-order", "HEAD").split()
    except CannotMeasure:
        return []
