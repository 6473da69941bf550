"""What parking costs its thread: exact instructions by callgrind, system calls by strace.

A pair of ebb_park_begin and ebb_park_end with nothing to hand over may take 60 instructions and no system call. With
100 MB to hand over the thread tells the scavenger, which may sleep: one system call, and as few instructions.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("TIDEMARK_BUILD", Path(__file__).resolve().parents[3] / "build" / "release"))
REPOSITORY = Path(__file__).resolve().parents[3]
SOURCE = Path(__file__).parent / "programs" / "park_pairs.c"
MOST_INSTRUCTIONS = 60
MOST_HANDOVER_INSTRUCTIONS = 1000
"""Much less than the 5 µs that the owner may spend on it; counted without what the kernel does."""
TIMEOUT_S = 30


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compiled program, linked with the library under test."""
    library = BUILD.resolve() / "libebb.so"
    assert library.is_file(), f"{library} is missing: run `make` first, or name a build in TIDEMARK_BUILD"
    output = tmp_path_factory.mktemp("park") / "park_pairs"
    include = REPOSITORY / "allocator" / "include"
    succeed("gcc", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{include}", "-pthread", str(SOURCE), "-o", str(output), str(library),
            f"-Wl,-rpath,{library.parent}")  # fmt: skip
    return output


def succeed(*command: str) -> str:
    """Run a command; its complaint is the test's failure when it fails. Returns what it said on standard error."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert ran.returncode == 0, f"{command}: {ran.stderr or ran.stdout}"
    return ran.stderr


def count_instructions(program: Path, *arguments: str) -> int:
    """Return the instructions of both functions, with what they call, as callgrind counts them."""
    complaint = succeed("valgrind", "--tool=callgrind", "--toggle-collect=ebb_park_begin",
                        "--toggle-collect=ebb_park_end", "--callgrind-out-file=/dev/null", str(program),
                        *arguments)  # fmt: skip
    collected = re.search(r"Collected : (\d+)", complaint)
    assert collected is not None, f"callgrind collected nothing: {complaint}"
    return int(collected[1])


def calls_between_marks(program: Path, log: Path, *arguments: str) -> list[str]:
    """Return the main thread's system calls between the program's two marks."""
    succeed("strace", "-f", "-o", str(log), str(program), *arguments)
    lines = [line.split(maxsplit=1) for line in log.read_text(encoding="utf-8").splitlines()]
    main = lines[0][0]
    # A call that another thread's line came between ends on a line of its own.
    calls = [text for thread, text in lines if thread == main and "resumed>" not in text]
    begin = next(i for i, text in enumerate(calls) if text.startswith("getppid"))
    end = next(i for i, text in enumerate(calls) if text.startswith("getuid"))
    assert begin < end
    return calls[begin + 1 : end]


def test_a_pair_with_nothing_to_hand_over_takes_few_instructions(program: Path) -> None:
    pairs = 2000
    taken = (count_instructions(program, str(2 * pairs)) - count_instructions(program, str(pairs))) / pairs
    print(f"{taken:.1f} instructions a pair")
    # The thread parks until it is idle a few times more or less: some thousandths of a pair.
    assert 10 <= taken <= MOST_INSTRUCTIONS


def test_a_pair_with_nothing_to_hand_over_makes_no_system_call(program: Path, tmp_path: Path) -> None:
    assert calls_between_marks(program, tmp_path / "calls", "1000") == []


def test_handing_much_over_takes_few_instructions(program: Path) -> None:
    taken = count_instructions(program, "1", "100")
    print(f"{taken} instructions to hand 100 MB over and take them back")
    assert taken <= MOST_HANDOVER_INSTRUCTIONS


def test_handing_much_over_makes_one_system_call(program: Path, tmp_path: Path) -> None:
    calls = calls_between_marks(program, tmp_path / "calls", "1", "100")
    assert len(calls) <= 1 and all("FUTEX_WAKE" in call for call in calls), calls
