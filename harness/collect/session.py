"""Runs a plan: every job becomes exactly one stored measurement, whatever happens to it.

Called by the commands that measure. The session owns the run in the store, the scratch folder and the order: jobs
that measure time or memory run alone, in the plan's order; jobs that only count run afterwards, as many at a time as
there are processors, each on one of its own. The store is written from the calling thread only.

Invariants:
1. A job that was planned has a row: `ok`, `failed` (it broke) or `skipped` (it never started), with the reason.
2. On Ctrl-C every child ends, the run is marked `interrupted`, and what was stored stays. `resume` goes on there.
3. A run whose process was killed is marked `interrupted` by the next session here.
4. Nothing that goes wrong with one job stops the others; only the store, the disk or the user do.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Iterator, Protocol, Sequence

from harness.build.arms import tree_revision
from harness.build.launcher import launcher_path
from harness.collect.environment import read_environment
from harness.collect.execution import StopRequest
from harness.collect.providers import provider_named
from harness.collect.providers.base import Context, Reading
from harness.collect.scratch import Scratch
from harness.collect.validity import Void
from harness.model.errors import CannotMeasure, Interrupted
from harness.model.layout import Layout
from harness.model.plan import Job
from harness.model.workload import Workload
from results.records import Measurement, Run, utc_now
from results.store import Store


RESUMABLE = dict.fromkeys(
    ("run", "bench", "gate", "compare"), "; the same command with --resume goes on where it stopped"
) | {"bisect": "; the same command takes them from there"}
"""What an interrupted run of each kind can do; the others begin again."""


class Progress(Protocol):
    """Who is told how far a session is."""

    def begin(self, jobs: Sequence[Job]) -> None:
        """The jobs that will run."""

    def started(self, job: Job) -> None:
        """A job begins."""

    def ended(self, job: Job, measurement: Measurement) -> None:
        """A job has its measurement, which is stored."""

    def ahead(self, jobs: Sequence[Job]) -> None:
        """What may follow the jobs that were begun, at most: a job stands for all of its kind."""

    def close(self) -> None:
        """The session is over, whether all jobs ended or not."""


class Silent:
    """Progress for nobody."""

    def begin(self, jobs: Sequence[Job]) -> None:
        """Say nothing."""

    def started(self, job: Job) -> None:
        """Say nothing."""

    def ended(self, job: Job, measurement: Measurement) -> None:
        """Say nothing."""

    def ahead(self, jobs: Sequence[Job]) -> None:
        """Say nothing."""

    def close(self) -> None:
        """Say nothing."""


class UnchangedFiles:
    """The workload binaries of a run: all arms must run the same file. Used from several threads.

    A build that runs beside a measurement replaces them; figures from before and after do not compare.
    """

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[int, int, int]] = {}
        self._lock = threading.Lock()

    def require(self, workload: Workload, layout: Layout) -> None:
        """Remember a workload's binary when it is new, else raise Void if it is another than at its first use.

        CannotMeasure when it was never built. An app's programs are installed, not built.
        """
        if workload.kind == "app":
            return
        path = Path(workload.program(layout)[0][0])
        try:
            status = path.stat()
        except OSError as error:
            raise Void(f"The binary of {workload.name} vanished: run `make`, then measure again.") from error
        identity = (status.st_ino, status.st_mtime_ns, status.st_size)
        with self._lock:
            known = self._seen.setdefault(path, identity)
        if known != identity:
            raise Void(
                f"The binary of {workload.name} was rebuilt during the run: measure again when no build is running."
            )


@contextmanager
def interrupt_sets(stop: StopRequest) -> Iterator[None]:
    """Let Ctrl-C set `stop` instead of raising wherever the main thread happens to be.

    An exception between the start of a process and the note of its id would leave that process running. A second
    Ctrl-C raises as usual. Outside the main thread nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Session:
    """One run in the store. Use it in a `with`; leave it by an exception and the run is `failed` or `interrupted`."""

    def __init__(
        self, layout: Layout, store: Store, kind: str, command: str, progress: Progress | None = None,
        resume: Run | None = None,
    ) -> None:  # fmt: skip
        self.layout = layout
        self.store = store
        self.progress: Progress = progress or Silent()
        self.stop = StopRequest()
        self.spent_s = 0.0
        """Seconds spent measuring, all plans of this session together."""
        self._resumed = resume is not None
        self.run = resume or Run(
            kind=kind, command=command, suite_revision=tree_revision(layout)[0], environment=read_environment()
        )
        self._scratch = Scratch(layout.scratch, self.run.id)
        self._binaries = UnchangedFiles()
        self._launcher: Path | None = None

    def __enter__(self) -> Session:
        self._launcher = launcher_path(self.layout)
        if self._resumed:
            self._refuse_other_machine()
        dead = self._scratch.open()
        for run in self.store.runs(run_id=dead) if dead else ():
            if run.status == "running" and run.id != self.run.id:
                self.store.finish_run(run.id, "interrupted")
        if not self._resumed:
            self.store.begin_run(self.run)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.close()
        self._scratch.close()
        if kind is None:
            self.store.finish_run(self.run.id, "finished")
            return
        stopped = issubclass(kind, (KeyboardInterrupt, Interrupted))
        try:
            self.store.finish_run(self.run.id, "interrupted" if stopped else "failed")
        except Exception:  # noqa: BLE001 - the first error is the one to report; the store may be what broke
            return

    def execute(self, plan: Sequence[Job]) -> list[Measurement]:
        """Run every job of `plan` and return the measurements in the plan's order.

        Jobs that a resumed run has measured already are taken from the store. Raises Interrupted on Ctrl-C and
        CannotMeasure when the disk is full; StoreError passes through.
        """
        done = self._measured_before(plan)
        todo = [job for job in plan if job.position not in done]
        self.progress.begin(todo)
        began = time.monotonic()
        try:
            with interrupt_sets(self.stop):
                for job, measurement in self._run_all(todo):
                    self.store.record(measurement)
                    done[job.position] = measurement
                    self.progress.ended(job, measurement)
        except (KeyboardInterrupt, Interrupted) as interrupt:
            self.stop.set()
            raise Interrupted(
                f"Stopped: the {len(done)} of {len(plan)} measurements made so far are stored"
                f"{RESUMABLE.get(self.run.kind, '')}."
            ) from interrupt
        except OSError as error:
            self.stop.set()
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise CannotMeasure(
                    f"The disk of {self.layout.build} is full: free some space and run again; "
                    f"the {len(done)} measurements made so far are stored."
                ) from error
            raise
        finally:
            self.spent_s += time.monotonic() - began
        return [done[job.position] for job in plan]

    def _run_all(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Measurement]]:
        alone = [job for job in jobs if self._must_run_alone(job)]
        together = [job for job in jobs if not self._must_run_alone(job)]
        for job in alone:
            self.progress.started(job)
            self.stop.check()
            yield job, self._measure(job, None)
        yield from self._run_together(together)

    def _run_together(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Measurement]]:
        processors = sorted(os.sched_getaffinity(0))
        free = list(processors)
        pending: dict[Future[Measurement], tuple[Job, int]] = {}
        waiting = list(jobs)
        pool = ThreadPoolExecutor(max_workers=len(processors), thread_name_prefix="counting")
        try:
            while waiting or pending:
                while waiting and free:
                    self.stop.check()
                    job, cpu = waiting.pop(0), free.pop()
                    self.progress.started(job)
                    pending[pool.submit(self._measure, job, cpu)] = (job, cpu)
                ready, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in ready:
                    job, cpu = pending.pop(future)
                    free.append(cpu)
                    yield job, future.result()
        except BaseException:
            self.stop.set()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _must_run_alone(self, job: Job) -> bool:
        return provider_named(job.provider).alone

    def _measure(self, job: Job, cpu: int | None) -> Measurement:
        """Run one job and return its measurement; only the disk and a stop raise."""
        began, started_at = time.monotonic(), utc_now()

        def row(status: str, reason: str = "", reading: Reading | None = None) -> Measurement:
            outcome = reading.outcome if reading else None
            return Measurement(
                run_id=self.run.id, build=job.arm.build, workload=job.workload.name, variant=job.variant.name,
                profile=job.profile, provider=job.provider, arm=job.arm.role,
                status=status, reason=reason,  # type: ignore[arg-type]
                repeat=job.repeat, position=job.position, command=reading.command if reading else "",
                active_allocator=_active(reading),
                modes=dict(outcome.start.modes) if outcome else {},
                checksum=outcome.end.checksum if outcome else "",
                operations=outcome.end.operations if outcome else None,
                started_at=started_at, duration_s=time.monotonic() - began,
                samples=reading.samples if reading else (), attachments=reading.attachments if reading else (),
            )  # fmt: skip

        reason = self._obstacle(job)
        if reason:
            return row("skipped", reason)
        assert self._launcher is not None
        try:
            folder, temporary = self._scratch.job(job.position), self._scratch.temporary(job.position)
            context = Context(self.layout, self._launcher, folder, self.stop, cpu, temporary)
            self._binaries.require(job.workload, self.layout)
            reading = provider_named(job.provider).measure(job, context)
            self._binaries.require(job.workload, self.layout)
            return row("ok", reading=reading)
        except Void as void:
            return row("failed", str(void))
        except Interrupted:
            raise
        except CannotMeasure as error:
            return row("skipped", error.sentence)
        finally:
            self._scratch.forget(job.position)

    def _obstacle(self, job: Job) -> str:
        """Return why a job cannot even start, or an empty string."""
        if job.arm.missing:
            return job.arm.missing
        provider = provider_named(job.provider)
        probe = provider.probe()
        if not probe.available:
            return probe.sentence
        refusal = provider.accepts(job.workload)
        if refusal:
            return f"{job.provider} does not measure {job.workload.name}: {refusal}"
        excluded = job.arm.config.excluded.get(job.provider)
        if excluded:
            return f"{job.provider} cannot measure {job.arm.config.name}: {excluded}."
        reason = job.arm.config.incomparable_on(job.workload.name, job.variant.name, job.arm.build.version)
        if reason:
            return f"{job.workload.label(job.variant)} is not comparable under {job.arm.config.name}: {reason}."
        missing = [program for program in job.workload.requires if shutil.which(program) is None]
        if missing:
            return f"{job.workload.name} needs {missing[0]}: run `sh harness/setup/install`."
        return ""

    def _measured_before(self, plan: Sequence[Job]) -> dict[int, Measurement]:
        if not self._resumed:
            return {}
        stored = {_identity(m): m for m in self.store.measurements(run_id=self.run.id) if m.status == "ok"}
        found: dict[int, Measurement] = {}
        for job in plan:
            measurement = stored.get(_identity_of_job(job))
            if measurement is not None:
                found[job.position] = measurement
        return found

    def _refuse_other_machine(self) -> None:
        if self.run.environment.key != read_environment().key:
            raise CannotMeasure("The stopped run was made in another environment: start a new one here.")


def _active(reading: Reading | None) -> str:
    if reading is None:
        return ""
    return reading.outcome.start.malloc_object if reading.outcome else reading.active_allocator


def _identity(measurement: Measurement) -> tuple[object, ...]:
    return (
        measurement.build.key, measurement.arm, measurement.workload, measurement.variant, measurement.profile,
        measurement.provider, measurement.repeat,
    )  # fmt: skip


def _identity_of_job(job: Job) -> tuple[object, ...]:
    return (
        job.arm.build.key, job.arm.role, job.workload.name, job.variant.name, job.profile, job.provider, job.repeat,
    )  # fmt: skip
