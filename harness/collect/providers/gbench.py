"""Provider `gbench`: latency by operation, from Google Benchmark's JSON output.

A benchmark program does not speak the workload protocol. The active allocator is proved from outside: the shared
object must be mapped in the running process, and for the libc's own allocator none of the preloaded kind may be.
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

from harness.collect.environment import tool_version
from harness.collect.execution import Execution, execute
from harness.collect.launch import prepare
from harness.collect.memory import descendants
from harness.collect.providers.base import Context, Probe, Reading
from harness.collect.validity import Void, check_exit, repeat_command
from harness.model.plan import Job
from harness.model.workload import Workload
from results.records import Attachment, Sample

REPETITIONS = {"quick": 1, "full": 3}
MIN_TIME_S = {"quick": 0.01, "full": 0.02}
"""Of one benchmark: enough for ten thousand calls of the slowest; the repetitions show the spread."""
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_MAPS_POLL_S = 0.01


class GbenchProvider:
    """Latency of single operations."""

    name = "gbench"
    alone = True

    def probe(self) -> Probe:
        """Say that it works: the library is linked into the benchmark programs when they are built."""
        version = tool_version("benchmark")
        if not version:
            return Probe(False, "gbench needs Google Benchmark: run `apt-get install libbenchmark-dev`, then `make`.")
        return Probe(True, f"latency by operation and size class (Google Benchmark {version})")

    def accepts(self, workload: Workload) -> str:
        """Accept benchmark programs only."""
        return "" if workload.kind == "gbench" else "it is no Google Benchmark program."

    def measure(self, job: Job, context: Context) -> Reading:
        """Run the benchmark program and read its JSON."""
        export = context.scratch / "gbench.json"
        launch = prepare(job, context.layout, context.launcher, counting=False)
        options: tuple[str, ...] = (
            f"--benchmark_out={export}", "--benchmark_out_format=json",
            f"--benchmark_repetitions={REPETITIONS[job.profile]}", f"--benchmark_min_time={MIN_TIME_S[job.profile]}",
        )  # fmt: skip
        given = {word.split("=")[0] for word in launch.command}
        options = tuple(word for word in options if word.split("=")[0] not in given)
        watcher = _MapsWatcher(Path(launch.command[0]).name)
        watcher.start()
        try:
            execution = execute(
                replace(launch, command=(*launch.command, *options)), context.scratch, context.stop, checkpoints=False
            )
        finally:
            watcher.end()
        _check(execution, job)
        active = _active(watcher.objects, job)
        text = export.read_text(encoding="utf-8", errors="replace") if export.exists() else ""
        return Reading(
            execution.command, None, tuple(read_benchmarks(text, job)), (Attachment("gbench", text.encode()),), active
        )


def read_benchmarks(text: str, job: Job) -> list[Sample]:
    """Return every benchmark's time as `latency_ns`, one sample a repetition; Void when the export is broken."""
    repeat = f"run `{repeat_command(job)}`"
    try:
        benchmarks = json.loads(text)["benchmarks"]
    except (ValueError, KeyError, TypeError) as error:
        raise Void(f"{job.workload.name} left no Google Benchmark output ({error}): {repeat}.") from error
    samples: list[Sample] = []
    for entry in benchmarks:
        name = str(entry.get("name", "?"))
        if entry.get("error_occurred"):
            raise Void(
                f"Benchmark {name} failed under {job.arm.name}: {entry.get('error_message', 'no message')}; {repeat}."
            )
        if entry.get("run_type") == "aggregate":
            continue
        scale = _NANOSECONDS[str(entry.get("time_unit", "ns"))]
        index = int(entry.get("repetition_index", 0))
        for key, metric in (("real_time", "latency_ns"), ("cpu_time", "latency_cpu_ns")):
            samples.append(
                Sample(metric, "ns", float(entry[key]) * scale, checkpoint=index, label="repetition", detail=name)
            )
    if not samples:
        raise Void(f"{job.workload.name} ran no benchmark: correct the filter in its arguments, then {repeat}.")
    return samples


def _check(execution: Execution, job: Job) -> None:
    if execution.timed_out:
        raise Void(f"{job.workload.name} did not end in its time: raise timeout_s or filter its benchmarks.")
    check_exit(execution, job)


def _active(objects: set[str], job: Job) -> str:
    """Return the object that provides malloc; Void when it is not the arm's."""
    if job.arm.preload is None:
        return next((path for path in sorted(objects) if Path(path).name.startswith("libc.so")), "")
    wanted = job.arm.preload.resolve()
    for path in objects:
        if Path(path).resolve() == wanted:
            return path
    raise Void(
        f"{job.workload.name} ran without {job.arm.preload.name}: the allocator was not loaded; "
        "check its section in allocators.toml."
    )


class _MapsWatcher:
    """Collects the shared objects that the benchmark program has mapped, while it runs."""

    def __init__(self, program: str) -> None:
        self.objects: set[str] = set()
        self._program = program
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def end(self) -> None:
        """Stop watching."""
        self._ended.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._ended.wait(_MAPS_POLL_S):
            for pid in descendants(os.getpid())[1:]:
                try:
                    text = Path(f"/proc/{pid}/maps").read_text()
                except OSError:
                    continue
                paths = {line.split(maxsplit=5)[5].strip() for line in text.splitlines() if line.count("/") > 0}
                if any(Path(path).name == self._program for path in paths):
                    self.objects |= {path for path in paths if ".so" in path}
