"""Speaks docs/workload-protocol.md for a workload whose measured program is a child process.

Owns the checkpoint and perf-control descriptors of one run. Single-threaded. Invariants: `start` comes
first and once; `end` comes last and once; region begin and end alternate.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping

PROTOCOL_VERSION = 1

NO_PROCESS = 0
"""`pid` of a `start` event when no process lives at the checkpoints: memory is in their `metrics`."""

Metrics = Mapping[str, float]


def _descriptor_pair(environment: Mapping[str, str], name: str) -> tuple[int, int] | None:
    """Return the two descriptors that variable `name` names as `<a>,<b>`, or None when it is unset.

    Raises ValueError when the variable is set to anything else.
    """
    text = environment.get(name)
    if not text:
        return None
    first, comma, second = text.partition(",")
    if not comma:
        raise ValueError(f"{name} must be two descriptors, <a>,<b>, not '{text}'")
    return int(first), int(second)


class EventStream:
    """The event lines of one run, on the harness's descriptors or on standard output."""

    def __init__(self, workload: str, environment: Mapping[str, str]) -> None:
        """Take the descriptors from `environment`; raises ValueError when they are malformed."""
        self._workload = workload
        self._checkpoint_fds = _descriptor_pair(environment, "TIDEMARK_CHECKPOINT_FDS")
        self._perf_fds = _descriptor_pair(environment, "TIDEMARK_PERF_CONTROL_FDS")
        self._checkpoints = 0
        self._started_at = 0.0

    def start(self, pid: int, malloc_object: str) -> None:
        """Announce the run: `pid` is the measured process, or NO_PROCESS."""
        self._started_at = time.monotonic()
        self._write(
            {
                "event": "start",
                "protocol": PROTOCOL_VERSION,
                "workload": self._workload,
                "pid": pid,
                "malloc_object": malloc_object,
                "adapter": "none",
                "modes": {"heap": "unused", "collect": "unused", "park": "unused"},
            }
        )

    def begin_region(self) -> None:
        """Enable counting: what follows is in the region of interest."""
        self._control(b"enable\n")

    def end_region(self) -> None:
        """Disable counting."""
        self._control(b"disable\n")

    def checkpoint(self, round_index: int, label: str, live_bytes: int, metrics: Metrics) -> None:
        """Write a checkpoint and wait for the harness to have read the measured process."""
        self._write(
            {
                "event": "checkpoint",
                "checkpoint": self._checkpoints,
                "round": round_index,
                "label": label,
                "time_s": round(time.monotonic() - self._started_at, 6),
                "live_bytes": live_bytes,
                "metrics": dict(metrics),
            }
        )
        self._checkpoints += 1
        if self._checkpoint_fds is not None:
            os.read(self._checkpoint_fds[1], 1)

    def end(self, checksum: str, operations: int, metrics: Metrics) -> None:
        """Write the sentinel line: the run is valid and its output was right."""
        self._write(
            {
                "event": "end",
                "checksum": checksum,
                "operations": operations,
                "metrics": dict(metrics),
            }
        )

    def _write(self, event: dict[str, object]) -> None:
        line = (json.dumps(event, separators=(",", ":")) + "\n").encode()
        if self._checkpoint_fds is None:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            return
        while line:
            line = line[os.write(self._checkpoint_fds[0], line) :]

    def _control(self, word: bytes) -> None:
        if self._perf_fds is None:
            return
        control, acknowledge = self._perf_fds
        os.write(control, word)
        os.read(acknowledge, len(b"ack\n"))
