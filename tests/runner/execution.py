"""Runs commands side by side on a fixed number of processors, each with a time limit and its output in a file.

Used by tests/run.py from one thread. A command that outlives its limit, or the run, is ended with all processes of
its group, so none is left behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

PROCESSORS = 2
"""What all tasks together may use. Two, also on larger machines: the budget of the tests is meant for two, and
those that measure must not meet more neighbours elsewhere than here."""

POLL_S = 0.05


@dataclass(frozen=True)
class Task:
    """A command to run. `processors`: how many it keeps busy; PROCESSORS for one that must be alone."""

    name: str
    command: tuple[str, ...]
    directory: Path
    timeout_s: float
    processors: int = 1
    junit: Path | None = None
    log: Path = Path(os.devnull)
    environment: Mapping[str, str] = field(default_factory=dict)

    def logged_in(self, folder: Path) -> Task:
        """Return the task with its output going to a file of its name in `folder`."""
        return replace(self, log=folder / (self.name.replace("/", "-").replace(" ", "-") + ".txt"))


@dataclass(frozen=True)
class Finished:
    """How a task ended. `code` is negative for a signal; `complaint` says what kept it from ending by itself."""

    task: Task
    code: int
    seconds: float
    complaint: str = ""


@dataclass
class _Running:
    task: Task
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    started_s: float

    def poll(self) -> Finished | None:
        """Return how it ended, or None while it runs within its limit."""
        code = self.process.poll()
        seconds = time.monotonic() - self.started_s
        if code is None and seconds > self.task.timeout_s:
            self.end()
            return Finished(self.task, -signal.SIGKILL, seconds, f"it did not end within {self.task.timeout_s:.0f} s")
        if code is None:
            return None
        self.log.close()
        return Finished(self.task, code, seconds)

    def end(self) -> None:
        """End the task and what it started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.log.close()


def run_all(tasks: Sequence[Task], report: Callable[[Finished], None] | None) -> list[Finished]:
    """Run the tasks, the first that fits first; call `report` for each that ended. Returns all, as they ended."""
    waiting = list(tasks)
    running: list[_Running] = []
    ended: list[Finished] = []
    try:
        while waiting or running:
            _start_what_fits(waiting, running)
            finished = [(entry, done) for entry in running if (done := entry.poll()) is not None]
            for entry, done in finished:
                running.remove(entry)
                ended.append(done)
                if report is not None:
                    report(done)
            if not finished:
                time.sleep(POLL_S)
    finally:
        for entry in running:
            entry.end()
    return ended


def _start_what_fits(waiting: list[Task], running: list[_Running]) -> None:
    """Start tasks in order while processors are free. One that needs all of them waits, but isn't overtaken twice."""
    free = PROCESSORS - sum(entry.task.processors for entry in running)
    while waiting and min(waiting[0].processors, PROCESSORS) <= free:
        task = waiting.pop(0)
        free -= task.processors
        running.append(_start(task))


def _start(task: Task) -> _Running:
    task.log.parent.mkdir(parents=True, exist_ok=True)
    log = task.log.open("wb")
    log.write((" ".join(task.command) + "\n\n").encode())
    log.flush()
    process = subprocess.Popen(
        task.command, cwd=task.directory, env={**os.environ, **task.environment}, stdin=subprocess.DEVNULL,
        stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    return _Running(task, process, log, time.monotonic())
