"""The handshake over TIDEMARK_CHECKPOINT_FDS: a workload waits at each checkpoint, and never for a dead reader."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tiny_arguments import TINY
from workload_runs import RUN_TIMEOUT_S, binary, clean_environment, run

ROUNDS = 3
ARGUMENTS = ("--live", "2", "--rounds", str(ROUNDS))


class Conversation:
    """A running teardown workload and this side's ends of its two pipes."""

    def __init__(self, process: subprocess.Popen[str], events: int, answers: int) -> None:
        self.process = process
        self.lines = os.fdopen(events, "r", encoding="utf-8")
        self.answers = answers

    def next_event(self) -> dict[str, object]:
        """Return the next event; blocks until the workload has written it."""
        event: dict[str, object] = json.loads(self.lines.readline())
        return event

    def answer(self) -> None:
        """Let the workload go on."""
        os.write(self.answers, b".")

    def hang_up(self) -> None:
        """Close the descriptor that answers come from."""
        os.close(self.answers)
        self.answers = -1

    def sleeps_in_a_pipe(self) -> bool:
        """Say whether the workload is blocked in reading a pipe."""
        return Path(f"/proc/{self.process.pid}/wchan").read_text(encoding="ascii") in ("pipe_read", "anon_pipe_read")


@contextmanager
def conversation() -> Iterator[Conversation]:
    """Start the workload with descriptors; whatever is left of it is ended."""
    events_in, events_out = os.pipe()
    answers_in, answers_out = os.pipe()
    process = subprocess.Popen(
        [binary("teardown"), *ARGUMENTS],
        env=clean_environment(extra={"TIDEMARK_CHECKPOINT_FDS": f"{events_out},{answers_in}"}),
        pass_fds=(events_out, answers_in),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(events_out)
    os.close(answers_in)
    talk = Conversation(process, events_in, answers_out)
    try:
        yield talk
    finally:
        talk.lines.close()
        if talk.answers >= 0:
            talk.hang_up()
        process.kill()
        process.communicate()


def test_waits_for_one_byte_at_each_checkpoint_and_only_there() -> None:
    with conversation() as talk:
        assert talk.next_event()["event"] == "start"
        for number in range(2 * ROUNDS):
            assert talk.next_event()["checkpoint"] == number
            while not talk.sleeps_in_a_pipe():
                assert talk.process.poll() is None, "the workload went on without an answer"
                os.sched_yield()
            talk.answer()
        assert talk.next_event()["event"] == "end"
        output, errors = talk.process.communicate(timeout=RUN_TIMEOUT_S)
        assert (talk.process.returncode, output, errors) == (0, "", "")


def test_end_of_file_ends_every_wait() -> None:
    with conversation() as talk:
        talk.hang_up()
        kinds = [json.loads(line)["event"] for line in talk.lines]
        assert kinds == ["start", *["checkpoint"] * (2 * ROUNDS), "end"]
        assert talk.process.wait(timeout=RUN_TIMEOUT_S) == 0


def test_a_reader_that_is_gone_ends_the_workload_with_a_sentence() -> None:
    with conversation() as talk:
        assert talk.next_event()["event"] == "start"
        talk.next_event()
        talk.lines.close()
        talk.answer()
        _, errors = talk.process.communicate(timeout=RUN_TIMEOUT_S)
        assert talk.process.returncode == 1
        assert errors == "teardown: cannot write an event: Broken pipe.\n"


def test_a_full_disk_ends_the_workload_with_a_sentence() -> None:
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run(
            [binary("churn"), *TINY["churn"]],
            env=clean_environment(), stdout=full, stderr=subprocess.PIPE, text=True, timeout=RUN_TIMEOUT_S, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "churn: cannot write an event: No space left on device.\n")


@pytest.mark.parametrize("value", ["", "3", "3,", ",4", "a,b", "3,4,5", "-1,4", "3 ,4", "77777,77778", "99999999999,1"])
@pytest.mark.parametrize("variable", ["TIDEMARK_CHECKPOINT_FDS", "TIDEMARK_PERF_CONTROL_FDS"])
def test_malformed_descriptors_are_refused(variable: str, value: str) -> None:
    done = run("churn", *TINY["churn"], extra={variable: value})
    assert done.code == 2
    assert done.errors == (
        f'churn: {variable} must name two open descriptors as in "3,4", not {json.dumps(value)}; see churn --help.\n'
    )
