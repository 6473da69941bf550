"""One run of one application workload: what an `app.py` gets, and what it must leave behind.

Owns the scratch directory's path, the arm and the event stream. An app calls `open_*` once, works in
`region()`, and hands every output to `check` before it ends with `close`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from apprun.arm import Arm, Program, find_program, prove_allocator
from apprun.events import NO_PROCESS, EventStream
from apprun.faults import WrongOutput
from apprun.process import Conversation, Usage


@dataclass
class Session:
    """The state of one run."""

    folder: Path
    """The workload's folder: its sources lie beside its manifest."""
    scratch: Path
    """An empty directory, removed after the run."""
    environment: Mapping[str, str]
    arm: Arm
    events: EventStream
    rounds: int
    size: int
    """How much a round does, in the app's own unit."""
    operations: int = 0
    wall_s: float = 0.0
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def program(self, program: Program) -> str:
        """Return the path of `program` and settle the arm that provably serves its malloc."""
        path = find_program(program, self.environment)
        self.arm, self.malloc_object = prove_allocator(path, program.probe, self.arm, self.scratch)
        return path

    def start(self, pid: int = NO_PROCESS) -> None:
        """Write the start event; `pid` is the living program, if there is one."""
        self.events.start(pid, self.malloc_object)

    @contextmanager
    def region(self) -> Iterator[None]:
        """Count and time what runs inside; regions add up."""
        self.events.begin_region()
        began = time.monotonic()
        yield
        self.wall_s += time.monotonic() - began
        self.events.end_region()

    def check(self, what: str, output: bytes, expected: bytes) -> None:
        """Add `output` to the checksum; raises WrongOutput naming the first line that is not as expected."""
        if output != expected:
            raise WrongOutput(f"{what}: {first_difference(output, expected)}")
        self._digest.update(output)

    def close(self, usage: Usage) -> None:
        """Write the end event: the run was right and used `usage`."""
        metrics = {
            "wall_s": round(self.wall_s, 6),
            "user_s": round(usage.user_s, 3),
            "faults_minor": usage.faults_minor,
            "peak_rss_bytes": usage.peak_rss_bytes,
        }
        self.events.end(self._digest.hexdigest()[:16], self.operations, metrics)


def first_difference(output: bytes, expected: bytes) -> str:
    """Return one sentence about the first line in which `output` differs from `expected`."""
    got_lines, want_lines = output.split(b"\n"), expected.split(b"\n")
    for number, (got, want) in enumerate(zip(got_lines, want_lines), start=1):
        if got != want:
            return f"line {number} of the output is {_quoted(got)} and should be {_quoted(want)}."
    return f"the output has {len(got_lines)} lines and should have {len(want_lines)}."


def _quoted(line: bytes, limit: int = 60) -> str:
    text = line[:limit].decode(errors="replace")
    return f"'{text}{'…' if len(line) > limit else ''}'"


def converse(
    session: Session,
    talk: Conversation,
    requests: list[tuple[str, bytes]],
    live_bytes: int,
    operations_each: int,
) -> None:
    """Put each request to the program in a round of its own and check its answer.

    The program lives and holds what it keeps between rounds while the harness reads its memory at each
    checkpoint. `live_bytes` is the payload it still holds then.
    """
    session.start(talk.pid)
    before = talk.usage()
    for index, (request, expected) in enumerate(requests):
        with session.region():
            answer = talk.ask(request)
        session.check(f"{talk.name}, round {index}", answer, expected)
        session.operations += operations_each
        session.events.checkpoint(index, "round", live_bytes, {})
    after = talk.usage()
    talk.finish()
    session.close(
        Usage(after.user_s - before.user_s, after.faults_minor - before.faults_minor, after.peak_rss_bytes)
    )
