"""Provider `perf`: the processor's own counters, and the kernel's software events where there is no PMU.

The workload switches counting on and off around its region of interest: it speaks with this provider over two pipes,
and a relay passes its words to perf's fifos (perf ends its answer with a NUL that the protocol does not have, and the
relay sees whether the region was ever opened). perf's exit code is not believed; `validity` decides.
"""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Sequence

from harness.collect import perf_output
from harness.collect.environment import system_setting, tool_version
from harness.collect.execution import Execution, execute, pipe_with_long_names
from harness.collect.launch import Launch, prepare
from harness.collect.providers.base import Context, Probe, Reading, own_samples
from harness.collect.validity import Void, check, repeat_command, require_nobody_left
from harness.model.errors import CannotMeasure
from harness.model.plan import Job
from harness.model.workload import Workload
from results.records import Attachment, Sample

HARDWARE_EVENTS = {"instructions:u": "instructions", "cycles:u": "cycles"}
SOFTWARE_EVENTS = {
    "page-faults": "page_faults",
    "task-clock": "task_clock_s",
    "context-switches": "context_switches",
    "cpu-migrations": "cpu_migrations",
}
_MILLISECONDS_A_SECOND = 1000.0
_RELAY_POLL_S = 0.1


@dataclass(frozen=True)
class Capability:
    """What perf can count here."""

    software: bool
    hardware: bool
    sentence: str


def probe_counters(perf: str | None = None, paranoid: str | None = None) -> Capability:
    """Try a software event, then a hardware event on a process of our own, and say which step failed."""
    perf = perf or shutil.which("perf")
    if perf is None:
        return Capability(False, False, "perf is missing: run `apt-get install linux-perf`.")
    paranoid = system_setting("kernel/perf_event_paranoid") if paranoid is None else paranoid
    software = _try_event(perf, "page-faults")
    if software != "counted":
        return Capability(
            False, False,
            f"perf cannot count even page faults (perf_event_paranoid is {paranoid or 'unknown'}): run "
            "`sysctl kernel.perf_event_paranoid=2`, or give the container CAP_PERFMON.",
        )  # fmt: skip
    hardware = _try_event(perf, "instructions:u")
    if hardware == "counted":
        return Capability(True, True, "instructions and cycles in user mode by the PMU, software events")
    return Capability(
        True, False,
        f"software events only: instructions:u is {hardware}, this machine shows no PMU; use the callgrind provider, "
        "or bare metal or a virtual machine with a virtual PMU.",
    )  # fmt: skip


def _try_event(perf: str, event: str) -> str:
    command = [perf, "stat", "-j", "-e", event, "--", "/bin/true"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=20, env={**os.environ, "LC_ALL": "C"}, cwd="/"
        )
        count = perf_output.pick(perf_output.parse(done.stderr), event.split(":")[0])
    except (OSError, subprocess.TimeoutExpired):
        return "not started"
    except perf_output.BrokenOutput:
        return "refused"
    return count.state


class PerfProvider:
    """Counts by the kernel's perf events."""

    name = "perf"
    alone = True

    def __init__(self) -> None:
        self._capability: Capability | None = None
        self._lock = threading.Lock()

    def capability(self) -> Capability:
        """Return what perf can count here; asked once."""
        with self._lock:
            if self._capability is None:
                self._capability = probe_counters()
            return self._capability

    def probe(self) -> Probe:
        """Say what perf can count here."""
        capability = self.capability()
        return Probe(capability.software, capability.sentence)

    def accepts(self, workload: Workload) -> str:
        """Refuse what has no program of its own to count."""
        if workload.kind == "gbench":
            return "gbench programs repeat by the clock; use --provider gbench."
        if workload.kind == "app":
            return "an app's driver would be counted with its program; use --provider callgrind or smaps."
        return ""

    def measure(self, job: Job, context: Context) -> Reading:
        """Run the job under perf stat; Void when a counter was shared, absent, or never switched on."""
        events = {**(HARDWARE_EVENTS if self.capability().hardware else {}), **SOFTWARE_EVENTS}
        output = context.scratch / "perf.json"
        launch = prepare(job, context.layout, context.launcher, counting=True, temporary=context.temporary)
        launch = replace(launch, cpus=processors_of_one_kind())
        execution, opened = _run(launch, context, list(events), output, job.workload.region == "marked")
        outcome = check(execution, job)
        require_nobody_left(execution, job)
        if not opened:
            raise Void(
                f"{job.workload.name} never opened its region of interest, so nothing was counted: it must write "
                "enable and disable to TIDEMARK_PERF_CONTROL_FDS."
            )
        text = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
        samples = read_samples(text, events, job)
        samples += [sample for sample in own_samples(execution.events, outcome) if sample.unit != "s"]
        return Reading(execution.command, outcome, tuple(samples), (Attachment("perf", text.encode()),))


def processors_of_one_kind(core_list: Path = Path("/sys/devices/cpu_core/cpus")) -> str:
    """Return the performance cores of a hybrid processor, else nothing.

    Each kind of core has a PMU of its own: a workload that moves between them is counted whole by neither.
    """
    try:
        return core_list.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def read_samples(text: str, events: dict[str, str], job: Job) -> list[Sample]:
    """Return perf's output as samples; Void when one of `events` was not counted as a whole."""
    who = f"{job.workload.label(job.variant)} under {job.arm.name}"
    try:
        counts = perf_output.parse(text)
    except perf_output.BrokenOutput as error:
        raise Void(f"{who}: {error}; check the version of perf, then `{repeat_command(job)}`.") from error
    samples = []
    for event, metric in events.items():
        count = perf_output.pick(counts, event.split(":")[0])
        if count.state != "counted":
            raise Void(f"{who}: {event} was {_meaning(count.state)}; {_remedy(count.state, job)}")
        if metric == "task_clock_s":
            scale = 1.0 / _MILLISECONDS_A_SECOND if count.unit in ("msec", "") else 1.0
            samples.append(Sample(metric, "s", count.value * scale))
        else:
            samples.append(Sample(metric, "count", count.value))
    return samples


def _meaning(state: str) -> str:
    return {
        "scaled": "shared its counter with other events, so that its value is a guess",
        "not counted": "not counted, the counter was never scheduled",
        "not supported": "not supported here",
    }[state]


def _remedy(state: str, job: Job) -> str:
    if state == "scaled":
        return f"stop other users of the PMU (or pin to one kind of core), then `{repeat_command(job)}`."
    if state == "not counted":
        return f"lengthen the region of interest, then `{repeat_command(job)}`."
    return "use the callgrind provider."


def _run(launch: Launch, context: Context, events: Sequence[str], output: Path, marked: bool) -> tuple[Execution, bool]:
    """Run under perf stat and say whether the region of interest was opened."""
    perf = shutil.which("perf") or "perf"
    tool: tuple[str, ...] = (perf, "stat", "-j", "-o", str(output), "-e", ",".join(events))
    if not marked:
        return execute(launch.wrapped((*tool, "--"), inner=True), context.scratch, context.stop), True
    relay = ControlRelay(context.scratch)
    try:
        relay.start()
        tool = (*tool, "-D", "-1", "--control", f"fifo:{relay.control_fifo},{relay.answer_fifo}", "--")
        counted = replace(launch.wrapped(tool, inner=True), kept_fds=relay.workload_fds)
        words = {"TIDEMARK_PERF_CONTROL_FDS": ",".join(str(fd) for fd in relay.workload_fds)}
        execution = execute(counted, context.scratch, context.stop, added_environment=words)
    finally:
        relay.close()
    return execution, relay.enables > 0


class ControlRelay:
    """Passes `enable` and `disable` from the workload to perf and the answer back, in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.control_fifo = folder / "perf.control"
        self.answer_fifo = folder / "perf.answer"
        self.enables = 0
        self.workload_fds: tuple[int, int] = (-1, -1)
        self._fds: list[int] = []
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Make the fifos and pipes and start relaying."""
        for fifo in (self.control_fifo, self.answer_fifo):
            fifo.unlink(missing_ok=True)
            os.mkfifo(fifo)
        # Read-write, so that opening waits for nobody.
        self._perf_control = os.open(self.control_fifo, os.O_RDWR | os.O_CLOEXEC)
        self._perf_answer = os.open(self.answer_fifo, os.O_RDWR | os.O_CLOEXEC)
        self._from_workload, workload_control = pipe_with_long_names()
        workload_answer, self._to_workload = pipe_with_long_names()
        self.workload_fds = (workload_control, workload_answer)
        self._fds = [self._perf_control, self._perf_answer, self._from_workload, self._to_workload, *self.workload_fds]
        self._thread = threading.Thread(target=self._relay, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and close everything."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        for descriptor in self._fds:
            os.close(descriptor)
        self._fds = []

    def _relay(self) -> None:
        while True:
            word = self._line_from(self._from_workload)
            if word is None:
                return
            self.enables += word == b"enable"
            os.write(self._perf_control, word + b"\n")
            if self._line_from(self._perf_answer) is None:
                return
            os.write(self._to_workload, b"ack\n")

    def _line_from(self, descriptor: int) -> bytes | None:
        """Return the next line without NULs, or None when the relay closes."""
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while not self._closing.is_set():
                if not selector.select(_RELAY_POLL_S):
                    continue
                byte = os.read(descriptor, 1)
                if not byte:
                    return None
                if byte == b"\n":
                    return line
                line += byte.replace(b"\0", b"")
        return None


def require_hardware(provider: PerfProvider) -> None:
    """Raise CannotMeasure with the way out when there is no PMU."""
    capability = provider.capability()
    if not capability.hardware:
        raise CannotMeasure(f"perf cannot count instructions here: {capability.sentence}")
