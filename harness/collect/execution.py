"""Runs one program to its end and serves its checkpoints.

Owns the pipes, the process group and the deadline. `execute` is the only entry; it is called from several threads at
once (one execution each) and shares nothing between them.

Invariants:
1. When `execute` returns or raises, the program and all that it started are gone.
2. The workload is never kept waiting at a checkpoint once its memory is read.
3. A stop request (Ctrl-C) ends every execution within STOP_POLL_S.
"""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from harness.collect.events import BrokenProtocol, Checkpoint, Event, Start, parse_event, parse_free_run
from harness.collect.launch import Launch
from harness.model.errors import Interrupted

STOP_POLL_S = 0.2
LAUNCHER_END_S = 10.0
"""How long the launcher may take to kill and reap what it started."""
_LOWEST_PASSED_FD = 100
"""Passed descriptors have three digits, so that their names in the environment have one length."""


@dataclass(frozen=True)
class Usage:
    """What the launcher saw of the program: resources of the program and all children it waited for."""

    exit: int
    """Exit code, or -1 when a signal ended it."""
    signal: int
    wall_s: float
    user_s: float
    system_s: float
    max_rss_bytes: int
    """Of its largest process."""
    minor_faults: int
    major_faults: int
    voluntary_switches: int
    involuntary_switches: int
    leftovers: int
    """Descendants that had to be killed after it ended."""


@dataclass
class Execution:
    """What an execution left behind."""

    command: str
    events: list[Event] = field(default_factory=list)
    usage: Usage | None = None
    timed_out: bool = False
    broken: str = ""
    """What the workload said against the protocol, as a clause; empty when nothing."""
    errors: str = ""
    """The last lines on its standard error."""
    output: str = ""
    """Its standard output, as far as kept."""


class StopRequest:
    """Shared by all executions of a session: set once, every execution ends."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask every running and future execution to end."""
        self._event.set()

    def check(self) -> None:
        """Raise Interrupted if the stop was asked for."""
        if self._event.is_set():
            raise Interrupted("The run was stopped: what was measured before is stored.")


def execute(
    launch: Launch,
    scratch: Path,
    stop: StopRequest,
    checkpoints: bool = True,
    on_start: Callable[[Start], None] | None = None,
    on_checkpoint: Callable[[Start, Checkpoint], None] | None = None,
    added_environment: dict[str, str] | None = None,
) -> Execution:
    """Run `launch` in the folder `scratch` (for its output) and return what it left.

    With `checkpoints` the workload gets its descriptors and waits at each checkpoint until `on_checkpoint` returned;
    otherwise it runs free and its events are read from its output. Raises Interrupted when `stop` was set.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    server = _Server(launch, scratch, stop, on_start, on_checkpoint)
    try:
        server.start(checkpoints, added_environment or {})
        server.serve()
    finally:
        server.close()
    return server.finish(checkpoints)


class _Server:
    """One execution in progress."""

    def __init__(
        self,
        launch: Launch,
        scratch: Path,
        stop: StopRequest,
        on_start: Callable[[Start], None] | None,
        on_checkpoint: Callable[[Start, Checkpoint], None] | None,
    ) -> None:
        self.launch = launch
        self.stop = stop
        self.on_start = on_start
        self.on_checkpoint = on_checkpoint
        self.stdout = scratch / "stdout"
        self.stderr = scratch / "stderr"
        self.process: subprocess.Popen[bytes] | None = None
        self.execution = Execution("")
        self.events_fd = self.go_fd = self.report_fd = -1
        self.buffer = b""
        self.report = b""
        self.begun: Start | None = None

    def start(self, checkpoints: bool, added: dict[str, str]) -> None:
        """Start the launcher with its pipes."""
        passed = list(self.launch.kept_fds)
        report_read, report_write = pipe_with_long_names()
        self.report_fd = report_read
        closing = [report_write]
        variables, nothing = dict(added), dict[str, str]()
        if checkpoints:
            self.events_fd, events_write = pipe_with_long_names()
            go_read, self.go_fd = pipe_with_long_names()
            closing += [events_write, go_read]
            variables["TIDEMARK_CHECKPOINT_FDS"] = f"{events_write},{go_read}"
        argv = self.launch.argv(report_write, variables)
        self.execution.command = " ".join([*self.launch.wrapper, *self.launch.command])
        try:
            with self.stdout.open("wb") as out, self.stderr.open("wb") as err:
                self.process = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd="/", env=nothing,
                    pass_fds=[*passed, *closing], start_new_session=True,
                )  # fmt: skip
        finally:
            for descriptor in closing:
                os.close(descriptor)

    def serve(self) -> None:
        """Serve events until the launcher has reported the end, or the deadline or a stop ends it."""
        deadline = time.monotonic() + self.launch.timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(self.report_fd, selectors.EVENT_READ)
            if self.events_fd >= 0:
                selector.register(self.events_fd, selectors.EVENT_READ)
            while True:
                self.stop.check()
                left = deadline - time.monotonic()
                if left <= 0:
                    self.execution.timed_out = True
                    return
                ready = {key.fd for key, _ in selector.select(min(left, STOP_POLL_S))}
                if self.events_fd in ready and not self._take_events():
                    selector.unregister(self.events_fd)
                    os.close(self.events_fd)
                    self.events_fd = -1
                if self.execution.broken:
                    return
                if self.report_fd in ready:
                    chunk = os.read(self.report_fd, 4096)
                    self.report += chunk
                    if not chunk:
                        self._drain()
                        return

    def _take_events(self) -> bool:
        """Handle what the workload wrote; False at the end of its stream."""
        chunk = os.read(self.events_fd, 65536)
        self.buffer += chunk
        while b"\n" in self.buffer and not self.execution.broken:
            line, _, self.buffer = self.buffer.partition(b"\n")
            if line.strip():
                self._take_line(line.decode("utf-8", errors="replace"))
        return bool(chunk)

    def _take_line(self, line: str) -> None:
        try:
            event = parse_event(line)
        except BrokenProtocol as error:
            self.execution.broken = str(error)
            return
        self.execution.events.append(event)
        if isinstance(event, Start):
            self.begun = event
            if self.on_start is not None:
                self.on_start(event)
        elif isinstance(event, Checkpoint):
            try:
                if self.on_checkpoint is not None and self.begun is not None:
                    self.on_checkpoint(self.begun, event)
            finally:
                self._let_go()

    def _let_go(self) -> None:
        try:
            os.write(self.go_fd, b"\n")
        except BrokenPipeError:
            pass  # it is gone already; its end shows in the report

    def _drain(self) -> None:
        """Take what the workload wrote just before it ended. A leftover may still hold the pipe: do not wait."""
        if self.events_fd < 0:
            return
        os.set_blocking(self.events_fd, False)
        try:
            while self._take_events():
                continue
        except BlockingIOError:
            pass

    def close(self) -> None:
        """End what still runs and close the pipes. Safe to call in any state."""
        if self.process is not None:
            if not self.report:
                _end(self.process)
            self.process.wait()
            _kill_group(self.process.pid)
        for descriptor in (self.events_fd, self.go_fd, self.report_fd):
            if descriptor >= 0:
                os.close(descriptor)
        self.events_fd = self.go_fd = self.report_fd = -1

    def finish(self, checkpoints: bool) -> Execution:
        """Return the execution with its report and output."""
        done = self.execution
        try:
            done.usage = Usage(**json.loads(self.report)) if self.report else None
        except (ValueError, TypeError):
            done.usage = None
        done.output = _read_end(self.stdout, 1 << 20)
        done.errors = "\n".join(_read_end(self.stderr, 4096).strip().splitlines()[-5:])
        if not checkpoints and not done.broken:
            try:
                done.events = parse_free_run(done.output)
            except BrokenProtocol as error:
                done.broken = str(error)
        return done


def pipe_with_long_names() -> tuple[int, int]:
    """Return a pipe whose descriptors have three digits and do not survive an exec unless passed."""
    pair = os.pipe2(os.O_CLOEXEC)
    high = tuple(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST_PASSED_FD) for fd in pair)
    for fd in pair:
        os.close(fd)
    return high[0], high[1]


def _end(launcher: subprocess.Popen[bytes]) -> None:
    """Have the launcher end and reap all it started; if it cannot, end its process group."""
    launcher.terminate()
    try:
        launcher.wait(LAUNCHER_END_S)
    except subprocess.TimeoutExpired:
        _kill_group(launcher.pid)


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _read_end(path: Path, limit: int) -> str:
    with path.open("rb") as handle:
        handle.seek(0, os.SEEK_END)
        handle.seek(max(0, handle.tell() - limit))
        return handle.read().decode("utf-8", errors="replace")
