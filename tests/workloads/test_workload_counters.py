"""The region of interest: perf's control descriptors with a fake peer, and callgrind's switch."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from pathlib import Path

import pytest

from tiny_arguments import TINY
from workload_runs import RUN_TIMEOUT_S, Finished, binary, clean_environment, run

PERF_ACKNOWLEDGES = b"ack\n\0"
"""perf sends the NUL along."""


class FakePerf:
    """Answers every command of a workload with the same bytes, and keeps the commands."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.commands: list[str] = []
        self.control_in, self.control_out = os.pipe()
        self.ack_in, self.ack_out = os.pipe()

    def run(self, name: str, *arguments: str) -> Finished:
        """Run a workload to its end beside the peer."""
        peer = threading.Thread(target=self._serve)
        peer.start()
        try:
            descriptors = f"{self.control_out},{self.ack_in}"
            fds = [self.control_out, self.ack_in]
            return run(name, *arguments, extra={"TIDEMARK_PERF_CONTROL_FDS": descriptors}, pass_fds=fds)
        finally:
            os.close(self.control_out)
            peer.join()
            os.close(self.ack_in)

    def _serve(self) -> None:
        with os.fdopen(self.control_in, encoding="ascii") as commands:
            for line in commands:
                self.commands.append(line.rstrip("\n"))
                if self.answer:
                    os.write(self.ack_out, self.answer)
                else:
                    os.close(self.ack_out)
                    self.ack_out = -1
                    break
        if self.ack_out >= 0:
            os.close(self.ack_out)


def test_the_region_is_enabled_and_disabled_once() -> None:
    perf = FakePerf(PERF_ACKNOWLEDGES)
    done = perf.run("churn", *TINY["churn"])
    assert done.code == 0 and perf.commands == ["enable", "disable"]


def test_an_acknowledgement_without_the_nul_does_as_well() -> None:
    perf = FakePerf(b"ack\n")
    assert perf.run("churn", *TINY["churn"]).code == 0 and perf.commands == ["enable", "disable"]


def test_checkpoints_inside_the_region_are_not_counted() -> None:
    perf = FakePerf(PERF_ACKNOWLEDGES)
    done = perf.run("teardown", "--live", "2", "--rounds", "3")
    assert done.code == 0
    assert perf.commands == ["enable", "disable"] * (2 * 3 + 1)


def test_startup_has_no_region() -> None:
    perf = FakePerf(PERF_ACKNOWLEDGES)
    assert perf.run("startup").code == 0 and perf.commands == []


@pytest.mark.parametrize(
    "answer,words",
    [
        (b"nak\n", "the counters' owner answered something other than ack"),
        (b"acknowledged\n", "the counters' owner answered something other than ack"),
        (b"", "the counters' owner closed its descriptor before it acknowledged"),
    ],
)
def test_a_peer_that_does_not_acknowledge_ends_the_run(answer: bytes, words: str) -> None:
    done = FakePerf(answer).run("churn", *TINY["churn"])
    assert (done.code, done.errors) == (1, f"churn: {words}.\n")


def callgrind(folder: Path, name: str, *arguments: str) -> tuple[int, str]:
    """Return the instructions collected in the region of interest, and the profile."""
    output = folder / "callgrind.out"
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--fair-sched=yes", f"--callgrind-out-file={output}",
         str(binary(name)), *arguments],
        env=clean_environment(), capture_output=True, text=True, timeout=10 * RUN_TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    profile = output.read_text(encoding="utf-8")
    total = re.search(r"^(?:summary|totals): (\d+)", profile, re.MULTILINE)
    assert total is not None
    return int(total.group(1)), profile


def test_callgrind_counts_the_region_alone_and_repeatably(tmp_path: Path) -> None:
    few, profile = callgrind(tmp_path, "churn", "--iterations", "2000")
    again, _ = callgrind(tmp_path, "churn", "--iterations", "2000")
    more, _ = callgrind(tmp_path, "churn", "--iterations", "4000")
    assert few == again
    assert 1.8 * few < more < 2.2 * few
    assert "malloc" in profile
    for outside in ("fill_and_check", "find_adapter", "parse_arguments"):
        assert outside not in profile


def test_callgrind_counts_in_worker_threads(tmp_path: Path) -> None:
    few, profile = callgrind(tmp_path, "remote", "--blocks", "1000")
    more, _ = callgrind(tmp_path, "remote", "--blocks", "20000")
    assert "malloc" in profile and "free" in profile
    assert more > 5 * few


def test_the_loop_of_churn_is_a_part_of_what_churn_costs(tmp_path: Path) -> None:
    arguments = ("--check", "no", "--iterations", "2000")
    loop, _ = callgrind(tmp_path, "churn_loop", *arguments)
    longer, _ = callgrind(tmp_path, "churn_loop", "--check", "no", "--iterations", "4000")
    bare, profile = callgrind(tmp_path, "churn_bare", *arguments)
    assert abs(longer / loop - 2) < 0.02
    assert "malloc" in profile
    assert bare > 1.5 * loop
