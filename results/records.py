"""The nouns of the store, as immutable records.

Owns no state; every other part of Tidemark speaks in these records. All times are UTC, all sizes are
bytes, all durations seconds unless a name says otherwise.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Literal

Status = Literal["ok", "failed", "skipped"]
"""`ok`: samples are valid. `failed`: the workload or provider broke. `skipped`: never started; `reason` says why."""


def new_id() -> str:
    """Return a fresh identifier (32 hexadecimal digits) that is unique across stores."""
    return uuid.uuid4().hex


def utc_now() -> datetime:
    """Return the current time in UTC, aware, to the microsecond."""
    return datetime.now(timezone.utc)


def _key(fields: dict[str, object]) -> str:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Environment:
    """The machine a run was made on. Two runs compare only when their keys agree."""

    machine: str
    """Architecture, as `uname -m` says it."""
    kernel: str
    cpu_model: str
    cpu_count: int
    memory_bytes: int
    page_size_bytes: int
    thp_mode: str
    """`always`, `madvise`, `never` or `unknown`."""
    governor: str
    libc: str
    tunables: str
    """The GLIBC_TUNABLES that counting runs pin; empty for none."""
    tools: dict[str, str] = field(default_factory=dict)
    """Version by tool: perf, valgrind, hyperfine, benchmark, python."""

    @property
    def key(self) -> str:
        """What figures depend on: all fields but the kernel's build and the size of memory."""
        return _key(
            {
                "machine": self.machine,
                "cpu_model": self.cpu_model,
                "page_size_bytes": self.page_size_bytes,
                "thp_mode": self.thp_mode,
                "libc": self.libc,
                "tunables": self.tunables,
                "valgrind": self.tools.get("valgrind", ""),
            }
        )


@dataclass(frozen=True)
class Build:
    """One allocator binary: which, of which revision, made how."""

    allocator: str
    """Name in allocators.toml: `ebb`, `glibc`, `jemalloc`, …"""
    revision: str
    """Full commit id for what was built from git; the package version otherwise."""
    dirty: bool = False
    """True when the working tree differed from `revision`."""
    version: str = ""
    compiler: str = ""
    flags: str = ""
    path: str = ""
    """Where the shared object lay; informative only, never a key."""
    sha256: str = ""
    """Of the shared object; empty for the libc's own allocator."""

    @property
    def key(self) -> str:
        """Identity of the build: the binary's hash where there is one, else the revision."""
        return _key({"allocator": self.allocator, "binary": self.sha256 or self.revision})


@dataclass(frozen=True)
class Sample:
    """One figure. `checkpoint` and `label` place it in a series; `detail` names a function or operation."""

    metric: str
    """`instructions`, `cycles`, `page_faults`, `rss_bytes`, `anonymous_bytes`, `lazyfree_bytes`, `wall_s`, …"""
    unit: str
    value: float
    checkpoint: int | None = None
    label: str | None = None
    time_s: float | None = None
    """Seconds since the workload's start."""
    detail: str | None = None


@dataclass(frozen=True)
class Attachment:
    """Raw evidence behind a measurement: a callgrind profile, a provider's output."""

    kind: str
    data: bytes


@dataclass(frozen=True)
class Measurement:
    """One execution of one workload variant under one build, seen by one provider."""

    run_id: str
    build: Build
    workload: str
    variant: str
    profile: str
    """`quick` or `full`."""
    provider: str
    """`perf`, `callgrind`, `smaps`, `hyperfine` or `gbench`."""
    arm: str
    """The role of the build in this run: `tree`, `pin`, `reference`, or a revision for compare and bisect."""
    status: Status
    reason: str = ""
    """One sentence that says what to do; empty when ok."""
    repeat: int = 0
    position: int = 0
    """Place in the interleaved order of the run."""
    command: str = ""
    active_allocator: str = ""
    """The object that really provided malloc, by dladdr in the workload."""
    modes: dict[str, str] = field(default_factory=dict)
    """Capability to `native` or `emulated`: heap, collect, park."""
    checksum: str = ""
    operations: int | None = None
    started_at: datetime = field(default_factory=utc_now)
    duration_s: float = 0.0
    samples: tuple[Sample, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    id: str = field(default_factory=new_id)


@dataclass(frozen=True)
class Run:
    """One invocation of a command that measured something."""

    kind: str
    """`bench`, `gate`, `compare`, `run`, `pin`, `bisect`, `selftest`."""
    command: str
    suite_revision: str
    environment: Environment
    started_at: datetime = field(default_factory=utc_now)
    finished_at: datetime | None = None
    status: str = "running"
    """`running`, `finished`, `interrupted` or `failed`."""
    id: str = field(default_factory=new_id)
