"""Where things lie in a checkout.

Every path that Tidemark reads or writes is named here once; the commands get a `Layout` and never guess.
`TIDEMARK_ROOT` points the whole suite at another checkout, which is how the tests use small ones.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """The paths of one checkout, all absolute."""

    root: Path

    @classmethod
    def discover(cls) -> Layout:
        """Return the checkout that `TIDEMARK_ROOT` names, or the one this package lies in."""
        named = os.environ.get("TIDEMARK_ROOT")
        return cls(Path(named).resolve() if named else Path(__file__).resolve().parents[2])

    @property
    def workloads(self) -> Path:
        """Folder with one folder a workload."""
        return self.root / "workloads"

    @property
    def allocators_file(self) -> Path:
        """The configuration of every allocator; `TIDEMARK_ALLOCATORS` names another file."""
        named = os.environ.get("TIDEMARK_ALLOCATORS")
        return Path(named).resolve() if named else self.root / "harness" / "allocators.toml"

    @property
    def build(self) -> Path:
        """Everything generated; never tracked."""
        return self.root / "build"

    @property
    def release(self) -> Path:
        """The build of the working tree that every measurement uses."""
        return self.build / "release"

    @property
    def workload_binaries(self) -> Path:
        """Binaries of the workloads: one set for all arms, so that all run the same file."""
        return self.release / "workloads"

    @property
    def pins(self) -> Path:
        """Builds of other revisions, one folder each."""
        return self.build / "pins"

    @property
    def stage(self) -> Path:
        """Copies of the shared objects under measurement, at paths of one length."""
        return self.build / "stage"

    @property
    def scratch(self) -> Path:
        """Temporary files of running measurements."""
        return self.build / "scratch"

    @property
    def pin_file(self) -> Path:
        """The pin, as text that a review can read."""
        return self.root / "results" / "baselines" / "pin.toml"

    @property
    def dashboard(self) -> Path:
        """Where the static site is written."""
        return self.root / "dashboards" / "site"
