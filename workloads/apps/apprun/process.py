"""Runs programs under test and measures them, so that nothing outlives the driver.

Two shapes: `Conversation`, a program that lives through the run and answers one request a round, and
`run_step`, a command that ends by itself. Every process is a leader of its own group, dies with its
parent (setpriv) and is killed with its group when the driver leaves the `with` block or the call.

Peak memory: a child starts with its parent's `ru_maxrss`, kept over exec, so waiting for a child of
this Python would report Python's own peak. A living program is read from /proc/<pid>/status; one that
ends by itself is waited for by time(1), which is smaller than anything it measures.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from apprun.arm import SETPRIV, Arm
from apprun.faults import CannotMeasure, WrongOutput

TIME = "/usr/bin/time"
ANSWER_TIMEOUT_S = 60
"""A program that says nothing for this long hangs. Wrapped programs get WRAPPED_SLOWDOWN times more."""
WRAPPED_SLOWDOWN = 60
END_OF_ANSWER = b"=== done"
"""Last line of each answer of a conversing program."""
_READ_BYTES = 1 << 16


@dataclass(frozen=True)
class Usage:
    """What a process used so far: seconds of CPU, minor faults, and its peak resident memory."""

    user_s: float
    faults_minor: int
    peak_rss_bytes: int


def deadline_s(arm: Arm) -> float:
    """Return the seconds that one answer or step may take under `arm`."""
    return ANSWER_TIMEOUT_S * (WRAPPED_SLOWDOWN if arm.wrap else 1)


def describe_exit(status: int) -> str:
    """Say how a process ended, from a status as subprocess reports it."""
    if status < 0:
        return f"died of signal {-status} ({signal.Signals(-status).name})"
    return f"exited with status {status}"


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the group that `process` leads and reap its leader; fine when both are gone."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def usage_of(pid: int) -> Usage:
    """Return the usage of the living process `pid`; raises OSError or KeyError when it has ended."""
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
    )
    # Fields are counted from behind the command's name, which may hold spaces: state is field 3 of stat(5).
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return Usage(
        user_s=int(fields[11]) / os.sysconf("SC_CLK_TCK"),
        faults_minor=int(fields[7]),
        peak_rss_bytes=int(status["VmHWM"].split()[0]) * 1024,
    )


class Conversation:
    """A living program under test that answers requests on its standard input and output."""

    def __init__(
        self, arm: Arm, argv: Sequence[str], home: Path, variables: Mapping[str, str] | None = None
    ) -> None:
        """Start `argv` under `arm` in directory `home`, with `variables` added to the fixed environment."""
        self.name = Path(argv[0]).name
        self._deadline_s = deadline_s(arm)
        self._complaints = home / "stderr"
        self._pending = b""
        with self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(
                arm.command(argv, arm.variables(home, variables or {})),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                cwd=home,
                start_new_session=True,
                bufsize=0,
            )
        self._end_handle = os.pidfd_open(self._process.pid)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *exception: object) -> None:
        kill_group(self._process)
        os.close(self._end_handle)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    @property
    def pid(self) -> int:
        """Return the process id of the program: launchers exec in place."""
        return self._process.pid

    def ask(self, request: str) -> bytes:
        """Send one line and return the answer up to END_OF_ANSWER, without that line.

        Raises WrongOutput when the program ends or says nothing for its deadline.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request.encode() + b"\n")
        except BrokenPipeError:
            raise self._ended() from None
        marker = END_OF_ANSWER + b"\n"
        answer = self._pending
        # Only the tail can complete the marker: rescanning everything at each read would be quadratic.
        searched = 0
        while (at := answer.find(marker, max(0, searched - len(marker)))) < 0:
            searched = len(answer)
            answer += self._read_some()
        self._pending = answer[at + len(marker) :]
        return answer[:at]

    def usage(self) -> Usage:
        """Return the program's usage so far; raises WrongOutput when it has ended."""
        try:
            return usage_of(self.pid)
        except (OSError, KeyError):
            raise self._ended() from None

    def output(self) -> str:
        """Return what the program has said so far without being asked."""
        assert self._process.stdout is not None
        said = self._pending
        while select.select([self._process.stdout], [], [], 0)[0]:
            data = os.read(self._process.stdout.fileno(), _READ_BYTES)
            if not data:
                break
            said += data
        return said.decode(errors="replace")

    def has_ended(self) -> bool:
        """Say whether the program has ended by itself."""
        return self._process.poll() is not None

    def finish(self) -> None:
        """End the input and wait; raises WrongOutput unless the program exits with status 0 in time."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._await_good_end("its input's end")

    def terminate(self) -> None:
        """Ask a server to end; raises WrongOutput unless it exits with status 0 in time."""
        self._process.terminate()
        self._await_good_end("being told to")

    def _await_good_end(self, cause: str) -> None:
        try:
            status = self._process.wait(self._deadline_s)
        except subprocess.TimeoutExpired:
            raise WrongOutput(f"{self.name} did not end within {self._deadline_s:g} s of {cause}.") from None
        if status != 0:
            raise self._ended()

    def _read_some(self) -> bytes:
        assert self._process.stdout is not None
        # A child of the program may hold the pipe open, so that its end alone would go unnoticed.
        readable, _, _ = select.select([self._process.stdout, self._end_handle], [], [], self._deadline_s)
        if not readable:
            raise WrongOutput(f"{self.name} said nothing for {self._deadline_s:g} s.")
        if self._process.stdout not in readable:
            raise self._ended()
        data = os.read(self._process.stdout.fileno(), _READ_BYTES)
        if not data:
            raise self._ended()
        return data

    def _ended(self) -> WrongOutput:
        try:
            how = describe_exit(self._process.wait(self._deadline_s))
        except subprocess.TimeoutExpired:
            how = "closed its output"
        return WrongOutput(f"{self.name} {how} before its work was done{last_complaint(self._complaints)}.")


def last_complaint(path: Path) -> str:
    """Return the last line of a standard-error file as a clause, or nothing when it is empty."""
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    return f": {lines[-1]}" if lines else ""


@dataclass(frozen=True)
class Step:
    """One command that ended well: its output and what it and its children used."""

    output: bytes
    wall_s: float
    usage: Usage


def time_prefix(record: Path) -> list[str]:
    """Return the prefix that appends `<peak KiB> <user s> <minor faults> <command>` to `record`."""
    if not os.access(TIME, os.X_OK):
        raise CannotMeasure(f"{TIME} is missing: run 'apt-get install time'.")
    return [SETPRIV, "--pdeathsig", "KILL", TIME, "--append", "--output", str(record), "--format", "%M %U %R %C"]


def read_usages(record: Path) -> list[tuple[str, Usage]]:
    """Return the command and usage of each line that `time_prefix` appended to `record`."""
    usages = []
    for line in record.read_text().splitlines():
        fields = line.split(" ", 3)
        # time(1) puts a sentence of its own before the figures of a command that failed.
        if len(fields) == 4 and fields[0].isdigit():
            usage = Usage(float(fields[1]), int(fields[2]), int(fields[0]) * 1024)
            usages.append((fields[3], usage))
    return usages


def run_step(
    arm: Arm,
    argv: Sequence[str],
    home: Path,
    variables: Mapping[str, str] | None = None,
    input_path: Path | None = None,
    wrapped: bool = True,
) -> Step:
    """Run `argv` under `arm` in directory `home` to its end.

    `wrapped` false leaves the arm's wrap out, for a program that passes it on to others itself.
    Raises WrongOutput unless it exits with status 0 in time.
    """
    record, output, complaints = home / "time", home / "stdout", home / "stderr"
    record.unlink(missing_ok=True)
    name = " ".join([Path(argv[0]).name, *argv[1:2]])
    command = time_prefix(record) + arm.command(argv, arm.variables(home, variables or {}), wrapped)
    began = time.monotonic()
    with open(input_path or os.devnull, "rb") as source, output.open("wb") as out, complaints.open("wb") as err:
        process = subprocess.Popen(
            command, stdin=source, stdout=out, stderr=err, cwd=home, start_new_session=True
        )
    try:
        status = process.wait(deadline_s(arm))
        wall_s = time.monotonic() - began
    except subprocess.TimeoutExpired:
        raise WrongOutput(f"{name} did not end within {deadline_s(arm):g} s.") from None
    finally:
        kill_group(process)
    if status != 0:
        # time(1) passes a signal on as 128 + its number.
        how = describe_exit(128 - status if status > 128 else status)
        raise WrongOutput(f"{name} {how}{last_complaint(complaints)}.")
    return Step(output.read_bytes(), wall_s, read_usages(record)[-1][1])
