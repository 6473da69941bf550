"""Provider `statistics`: what the allocator itself says of its memory, at every checkpoint.

Explanations of memory put these figures beside the resident ones. They come from an execution of their own: asking
brings code and books of the allocator into memory, which an execution whose resident memory is judged must not have.
A small object preloaded behind the allocator (`statistics_probe.c`) answers a signal while the workload waits.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from dataclasses import replace

from harness.build.launcher import statistics_probe_path
from harness.collect.events import Checkpoint, Start
from harness.collect.execution import execute, pipe_with_long_names
from harness.collect.launch import prepare
from harness.collect.providers.base import Context, Probe, Reading, checkpoint_sample
from harness.collect.validity import Void, check, repeat_command
from harness.model.plan import Job
from harness.model.workload import Workload
from results.records import Sample

SIGNAL = signal.SIGRTMIN + 7
"""As in statistics_probe.c; no workload uses it."""
ANSWER_S = 30.0
"""How long an answer may take: statistics walk pages, a busy machine stretches it."""
PREFIX = "allocator_"


class StatisticsProvider:
    """The allocator's own figures."""

    name = "statistics"
    alone = True

    def probe(self) -> Probe:
        """Say that it works: it needs the C compiler that the launcher needs anyway."""
        return Probe(True, "what the allocator says of its own memory at checkpoints (no resident memory is judged)")

    def accepts(self, workload: Workload) -> str:
        """Refuse what has no process that waits at checkpoints."""
        return "" if workload.kind == "binary" else "its allocator runs in a process that waits at no checkpoint."

    def measure(self, job: Job, context: Context) -> Reading:
        """Run the job natively and ask at each checkpoint."""
        launch = prepare(job, context.layout, context.launcher, counting=False)
        reader, writer = pipe_with_long_names()
        asked = _Asked(reader, job)
        preload = " ".join(filter(None, (launch.environment.get("LD_PRELOAD"),
                                         str(statistics_probe_path(context.layout)))))  # fmt: skip
        environment = {**launch.environment, "LD_PRELOAD": preload,
                       "TIDEMARK_STATISTICS": f"{writer},{job.arm.config.statistics}"}  # fmt: skip
        try:
            execution = execute(
                replace(launch, environment=environment, kept_fds=(writer,)), context.scratch, context.stop,
                on_checkpoint=asked.at_checkpoint,
            )  # fmt: skip
        finally:
            os.close(reader)
            os.close(writer)
        outcome = check(execution, job)
        if asked.broken:
            raise Void(f"{job.workload.label(job.variant)} under {job.arm.name} {asked.broken}: "
                       f"repeat it with `{repeat_command(job)}`.")  # fmt: skip
        return Reading(execution.command, outcome, tuple(asked.samples))


class _Asked:
    """The answers of one execution."""

    def __init__(self, reader: int, job: Job) -> None:
        self.samples: list[Sample] = []
        self.broken = ""
        self._reader = reader
        self._buffer = b""

    def at_checkpoint(self, start: Start, event: Checkpoint) -> None:
        """Ask the waiting workload and take its answer; what goes wrong is kept as a clause."""
        if self.broken:
            return
        try:
            os.kill(start.pid, SIGNAL)
        except ProcessLookupError:
            return  # its end shows in the report
        line = self._line()
        try:
            fields = json.loads(line)
            for name, value in fields.items():
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    self.samples.append(checkpoint_sample(event, PREFIX + name, value))
        except (ValueError, AttributeError):
            self.broken = f"answered {line[:60]!r} when asked for its statistics" if line else (
                "did not answer when asked for its allocator's statistics")  # fmt: skip

    def _line(self) -> bytes:
        deadline = time.monotonic() + ANSWER_S
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._reader], [], [], left)[0]:
                return b""
            self._buffer += os.read(self._reader, 1 << 16)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line
