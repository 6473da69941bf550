"""Progress of a session: a bar with the time left on a terminal, plain lines elsewhere.

Always on standard error, so that `--json` and tables on standard output stay clean. Called from the session's own
thread only.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import Mapping, Sequence, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from harness.model.plan import Job
from results.records import Measurement

PLAIN_INTERVAL_S = 5.0
"""Seconds between lines where there is no terminal: enough to see life in a CI log, few enough to read it."""


class EstimatedTime:
    """Time left, from how long the jobs of each workload and provider took so far.

    A plan holds short and long jobs; counting jobs done would be wrong by minutes. Unknown kinds take the mean.
    """

    def __init__(self) -> None:
        self._left: dict[tuple[str, str], int] = {}
        self._ahead: dict[tuple[str, str], int] = {}
        self._seen: dict[tuple[str, str], list[float]] = {}

    def begin(self, jobs: Sequence[Job]) -> None:
        """Take in the jobs to come."""
        for job in jobs:
            self._left[_kind(job)] = self._left.get(_kind(job), 0) + 1

    def ended(self, job: Job, duration_s: float) -> None:
        """Take in one job's duration."""
        self._left[_kind(job)] -= 1
        self._seen.setdefault(_kind(job), []).append(duration_s)

    def ahead(self, jobs: Sequence[Job]) -> None:
        """Take in the jobs that may follow those begun, instead of what was known of them before."""
        self._ahead = dict(Counter(_kind(job) for job in jobs))

    def left_s(self) -> float | None:
        """Return the seconds left of the jobs begun, or None before anything is known."""
        return self._expected_s(self._left)

    def more_s_max(self) -> float:
        """Return the seconds that may follow, at most; 0 before anything is known."""
        return self._expected_s(self._ahead) or 0.0

    def words(self) -> str:
        """Return both in words."""
        left, more = self.left_s() or 0.0, self.more_s_max()
        return f"about {left:.0f} s left" + (f", then at most {more:.0f} s" if more >= 1 else "")

    def _expected_s(self, counts: Mapping[tuple[str, str], int]) -> float | None:
        every = [duration for durations in self._seen.values() for duration in durations]
        if not every:
            return None
        mean = sum(every) / len(every)

        def expected(kind: tuple[str, str]) -> float:
            seen = self._seen.get(kind)
            return sum(seen) / len(seen) if seen else mean

        return sum(count * expected(kind) for kind, count in counts.items())


def _kind(job: Job) -> tuple[str, str]:
    return job.workload.label(job.variant), job.provider


class PlainProgress:
    """A line now and then, and one for every job that failed."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._estimate = EstimatedTime()
        self._done = self._total = 0
        self._spoken = time.monotonic()

    def begin(self, jobs: Sequence[Job]) -> None:
        """Say how much there is to do."""
        self._total += len(jobs)
        self._estimate.begin(jobs)
        if jobs:
            self._say(f"measuring: {len(jobs)} execution{'' if len(jobs) == 1 else 's'}")

    def started(self, job: Job) -> None:
        """Say nothing: the end of a job is the news."""

    def ended(self, job: Job, measurement: Measurement) -> None:
        """Say how far it is, at most every few seconds."""
        self._done += 1
        self._estimate.ended(job, measurement.duration_s)
        if measurement.status == "failed":
            self._say(f"failed: {measurement.reason}")
        if time.monotonic() - self._spoken >= PLAIN_INTERVAL_S or self._done == self._total:
            self._say(f"measuring: {self._done} of {self._total}, {self._estimate.words()}")

    def ahead(self, jobs: Sequence[Job]) -> None:
        """Count what may follow into the time left."""
        self._estimate.ahead(jobs)

    def close(self) -> None:
        """Say nothing: what was said stands."""

    def _say(self, text: str) -> None:
        self._spoken = time.monotonic()
        print(text, file=self._stream, flush=True)


class TerminalProgress:
    """A bar with what runs now and the time left."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, markup=False, emoji=False)
        self._bar = Progress(
            SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"), console=self._console, transient=True,
        )  # fmt: skip
        self._estimate = EstimatedTime()
        self._task = self._bar.add_task("measuring", total=0, left="")
        self._total = self._done = 0

    def begin(self, jobs: Sequence[Job]) -> None:
        """Show the bar."""
        self._total += len(jobs)
        self._estimate.begin(jobs)
        self._bar.update(self._task, total=self._total)
        self._bar.start()

    def started(self, job: Job) -> None:
        """Show what runs."""
        self._bar.update(self._task, description=job.describe())

    def ended(self, job: Job, measurement: Measurement) -> None:
        """Advance; a failure stays visible above the bar."""
        self._done += 1
        self._estimate.ended(job, measurement.duration_s)
        self._bar.update(self._task, advance=1, left=self._estimate.words())
        if measurement.status == "failed":
            self._console.print(f"failed: {measurement.reason}", style="red", markup=False, highlight=False)
        if self._done == self._total:
            self._bar.stop()

    def ahead(self, jobs: Sequence[Job]) -> None:
        """Count what may follow into the time left."""
        self._estimate.ahead(jobs)

    def close(self) -> None:
        """Take the bar away, also in the middle of a run."""
        self._bar.stop()


def progress_for(stream: TextIO | None = None) -> PlainProgress | TerminalProgress:
    """Return the progress that suits standard error."""
    return TerminalProgress() if (stream or sys.stderr).isatty() else PlainProgress(stream)
