"""An arm: one allocator build in the role it plays in a run.

Arms are made by `harness.build.arms`; an arm that could not be made is kept with the sentence why, so that its
place in every table is a row that says so.
"""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass
from pathlib import Path

from harness.model.allocator import AllocatorConfig
from results.records import Build

TREE = "tree"
PIN = "pin"
REFERENCE = "reference"


@dataclass(frozen=True)
class Arm:
    """One column of a comparison."""

    role: str
    """`tree`, `pin`, `reference`, or a revision as the user named it."""
    config: AllocatorConfig
    build: Build
    preload: Path | None
    """What LD_PRELOAD names; None for the libc's own allocator."""
    missing: str = ""
    """Why this arm cannot be measured and what to do; empty when it can."""

    @property
    def name(self) -> str:
        """Name in tables: the allocator, with the role where several arms share it."""
        return self.build.allocator if self.role == REFERENCE else f"{self.build.allocator} ({self.role})"

    def environment(self, counting: bool) -> dict[str, str]:
        """Return the tunables of this arm; `counting` adds those that stop clock-driven work."""
        return {**self.config.environment, **(self.config.counting_environment if counting else {})}

    def expects(self, malloc_object: str) -> bool:
        """Say whether `malloc_object`, as the workload saw it, is this arm's allocator."""
        base = os.path.basename(malloc_object)
        if self.config.provides:
            return fnmatch.fnmatch(base, self.config.provides)
        if self.preload is None:
            return fnmatch.fnmatch(base, "libc.so*") or fnmatch.fnmatch(base, "libc-*.so")
        return os.path.realpath(malloc_object) == os.path.realpath(self.preload)
