"""Runs the application driver for the tests, and finds every process that a run left behind.

Each run carries a tag of its own: in the driver's environment, which launchers and load generators
inherit, and through TIDEMARK_TUNABLES in the environment of the programs under test.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
APPS = REPOSITORY / "workloads" / "apps"
DRIVER = APPS / "driver.py"
PYTHON = "/usr/bin/python3"
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
SMALL = {"gpp": ("3", "1"), "git": ("5", "1"), "redis": ("1", "2")}
"""`--size` and `--rounds` of the smallest useful run; 200 and 2 where not named."""
APP_NAMES = ("gpp", "git", "lua", "perl", "python", "redis", "sqlite")
LIVING = ("lua", "perl", "python", "redis", "sqlite")
"""Apps whose program lives through the run."""
RUN_TIMEOUT_S = 60
GONE_TIMEOUT_MS = 20_000


def ebb_library() -> Path:
    """Return the built libebb.so; fails the test, with what to do, when there is none."""
    build = Path(os.environ.get("TIDEMARK_BUILD", REPOSITORY / "build" / "release"))
    library = build / "libebb.so"
    assert library.is_file(), f"{library} is missing: run 'make' first, or name a build in TIDEMARK_BUILD"
    return library


def preload_path(allocator: str) -> str:
    """Return the shared object of a reference allocator's Debian package, of Ebb, or nothing for glibc."""
    if allocator == "glibc":
        return ""
    if allocator == "ebb":
        return str(ebb_library())
    return str(LIBRARIES / {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2.0"}[allocator])


@dataclass
class Invocation:
    """What a driver is started with."""

    app: str
    preload: str = ""
    programs: Mapping[str, str] = field(default_factory=dict)
    """TIDEMARK_PROGRAM_* names to paths."""
    extra: Mapping[str, str] = field(default_factory=dict)
    tag: str = field(default_factory=lambda: uuid.uuid4().hex)

    def command(self) -> list[str]:
        """Return the driver's command line."""
        size, rounds = SMALL.get(self.app, ("200", "2"))
        return [PYTHON, str(DRIVER), self.app, "--size", size, "--rounds", rounds]

    def environment(self) -> dict[str, str]:
        """Return the driver's whole environment."""
        return {
            "PATH": "/usr/bin:/bin",
            "TIDEMARK_PRELOAD": self.preload,
            "TIDEMARK_TUNABLES": f"TIDEMARK_TEST_TAG={self.tag}",
            "TIDEMARK_TEST_TAG": self.tag,
            **{f"TIDEMARK_PROGRAM_{name}": path for name, path in self.programs.items()},
            **self.extra,
        }


@dataclass(frozen=True)
class Outcome:
    """How a driver ended."""

    status: int
    events: list[dict[str, object]]
    complaint: str


def parse_events(text: str) -> list[dict[str, object]]:
    """Return the JSON object of each line."""
    return [json.loads(line) for line in text.splitlines()]


def run_driver(invocation: Invocation) -> Outcome:
    """Run the driver to its end."""
    ran = subprocess.run(
        invocation.command(), env=invocation.environment(), capture_output=True, text=True, timeout=RUN_TIMEOUT_S
    )
    return Outcome(ran.returncode, parse_events(ran.stdout), ran.stderr)


def tagged_processes(tag: str) -> list[int]:
    """Return the living processes whose environment carries `tag`."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                environment = (directory / "environ").read_bytes()
            except OSError:
                continue
            if f"TIDEMARK_TEST_TAG={tag}".encode() in environment.split(b"\0"):
                found.append(int(directory.name))
    return found


def wait_until_gone(pids: Sequence[int]) -> list[int]:
    """Wait for the processes to end; return those that have not after a generous while."""
    stubborn = []
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            if not poll.poll(GONE_TIMEOUT_MS):
                stubborn.append(pid)
        finally:
            os.close(handle)
    return stubborn


class HeldDriver:
    """A driver whose checkpoints the test answers: between them everything stands still."""

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        events_read, events_write = os.pipe()
        go_read, self._go_write = os.pipe()
        environment = invocation.environment()
        environment["TIDEMARK_CHECKPOINT_FDS"] = f"{events_write},{go_read}"
        self.process = subprocess.Popen(
            invocation.command(),
            env=environment,
            pass_fds=(events_write, go_read),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(events_write)
        os.close(go_read)
        self._events = os.fdopen(events_read)

    def __enter__(self) -> HeldDriver:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.communicate()
        self._events.close()
        os.close(self._go_write)

    def next_event(self) -> dict[str, object]:
        """Return the next event; fails the test when the driver ended instead."""
        line = self._events.readline()
        assert line, f"the driver ended early: {self.process.communicate()[1]}"
        return parse_events(line)[0]

    def go(self) -> None:
        """Answer a checkpoint."""
        os.write(self._go_write, b"g")


def stand_in(path: Path, body: str) -> str:
    """Write an executable shell script that takes a program's place, and return its path."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)
