"""Checks the Promela models of Ebb's concurrent protocols with spin, exhaustively for the sizes given here.

Each model holds as it stands, and fails with each of the mistakes that its BREAK_ macros plant: a model that cannot
fail proves nothing. The verifier is compiled and run in a folder of the test's own. EBB_FULL_MODELS=1 adds sizes
that take minutes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

MODELS = Path(__file__).parent
ALLOCATOR = MODELS.parent.parent / "allocator"
MEMORY_LIMIT_MIB = 1800
TIME_LIMIT_S = 240
DEPTH = 100_000

MODELLED_AROUND = {
    "purge.pml": {"flip_locked", "operate", "worker", "forced", "forker", "run_thread", "run_thread_in_child"},
    "park.pml": {"fast_path", "slow_path", "handler", "operate", "owner", "forker", "run_thread", "run_thread_in_child"},
    "remote.pml": {"load", "live_blocks", "use", "owner", "adopter", "freer"},
    "holes.pml": {"user", "forced", "forker", "run_thread", "run_thread_in_child"},
}
"""Processes and inlines that stand for programs, not for a function of the allocator."""


@dataclass(frozen=True)
class Check:
    """A model with its sizes, as preprocessor definitions."""

    model: str
    defines: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the name that pytest shows."""
        return " ".join((self.model, *self.defines))

    def broken(self, mistake: str) -> Check:
        """Return the check with a planted mistake."""
        return Check(self.model, (*self.defines, f"BREAK_{mistake}"))


PURGE = Check("purge.pml", ("ARENAS=2",))
PURGE_FORCED = Check("purge.pml", ("FORCED=1",))
PURGE_REFUSED = Check("purge.pml", ("FORCED=1", "OPERATIONS=2", "REFUSALS"))
PURGE_TWICE_FORCED = Check("purge.pml", ("FORCED=2", "OPERATIONS=1"))
PURGE_INLINE = Check("purge.pml", ("INLINE", "WORKERS=2", "OPERATIONS=2"))
PURGE_FORK = Check("purge.pml", ("FORK", "OPERATIONS=2"))
PARK = Check("park.pml", ("OPERATIONS=3",))
PARK_FORK = Check("park.pml", ("FORK", "OPERATIONS=0"))
REMOTE = Check("remote.pml", ("BLOCKS=2",))
HOLES = Check("holes.pml")
HOLES_FORCED = Check("holes.pml", ("FORCED=1", "USES=1"))
HOLES_FORK = Check("holes.pml", ("FORK", "USES=1"))

HOLD = [
    PURGE,
    Check("purge.pml", ("WORKERS=2", "OPERATIONS=2")),
    PURGE_FORCED,
    PURGE_REFUSED,
    PURGE_TWICE_FORCED,
    PURGE_INLINE,
    PURGE_FORK,
    PARK,
    PARK_FORK,
    REMOTE,
    Check("remote.pml", ("BLOCKS=3", "FREES=1")),
    HOLES,
    HOLES_FORCED,
    HOLES_FORK,
]
HOLD_IN_FULL = [
    Check("remote.pml", ("BLOCKS=3",)),
    Check("purge.pml", ("FORCED=2", "OPERATIONS=2")),
    Check("purge.pml", ("FORK", "FORCED=1", "OPERATIONS=1")),
    Check("purge.pml", ("FORK", "OPERATIONS=2", "IN_CHILD=2")),
]
if os.environ.get("EBB_FULL_MODELS") == "1":
    HOLD += HOLD_IN_FULL

BREAKS = {
    "DISARM_LATE": PURGE,
    "REPUBLISH_SKIPPED": PURGE,
    "LISTENS_LATE": PURGE,
    "SLEEPS_BLINDLY": PURGE,
    "FORCED_DROPPED": PURGE_FORCED,
    "FORCED_ONE_LIST": PURGE_FORCED,
    "FORCED_LEAVES_KEPT": PURGE_REFUSED,
    "FORCED_LEAVES_STEP": PURGE_TWICE_FORCED,
    "FORCED_ENDS_OTHERS": PURGE_TWICE_FORCED,
    "FORGETS_BEHIND_PASS": PURGE_INLINE,
    "FORK_WITHOUT_GUARD": PURGE_FORK,
    "FORK_STAYS_ARMED": PURGE_FORK,
    "FORK_TELLS_LATE": PURGE_FORK,
    "UNPARKS_BLINDLY": PARK,
    "OWNS_WHILE_PARKED": PARK,
    "READS_TOUCHED_EARLY": PARK,
    "WAKES_SLEEPERS_ONLY": PARK,
    "SWEEPS_WITHOUT_REGISTRY": PARK,
    "TOUCHED_RESET_LATE": PARK,
    "WAKE_SKIPPED": PARK,
    "FORK_WITHOUT_REGISTRY": PARK_FORK,
    "FREEZE_SKIPPED": PARK_FORK,
    "LAST_PUSH_CLAIMS_NOT": REMOTE,
    "TAKES_WITHOUT_EXCHANGE": REMOTE,
    "CLAIMS_WITHOUT_SWAP": REMOTE,
    "RELEASES_BY_STALE_COUNT": REMOTE,
    "WAITS_FOR_ONE_TOO_MANY": REMOTE,
    "RELEASES_WITHOUT_REREADING": REMOTE,
    "COUNTS_BEFORE_RELEASE": HOLES,
    "COUNTS_FIRST_TIME_ONLY": HOLES,
    "LOOKS_BEFORE_ZERO": HOLES,
    "FORCED_GOES_BY_COUNT": HOLES_FORCED,
    "CLAIMS_OUTSIDE_STEP": HOLES_FORCED,
    "FORK_TRUSTS_COUNT": HOLES_FORK,
}
"""Each planted mistake, with the smallest check that must find it."""


@dataclass(frozen=True)
class Verdict:
    """What the verifier found: the number of errors, the first failed assertion, and whether it saw all states."""

    errors: int
    failure: str
    is_complete: bool
    output: str


def verify(check: Check, folder: Path) -> Verdict:
    """Generate, compile and run the verifier of a check. Fails the test when one of them does not run."""
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            pytest.fail(f"{tool} is not installed; the Debian package is of the same name")
    run(["spin", "-a", *(f"-D{define}" for define in check.defines), str(MODELS / check.model)], folder)
    # Processes end at a fork by a `provided` clause, which partial order reduction does not see through.
    reduction = ["-DNOREDUCE"] if "FORK" in check.defines else []
    # A mistake is found early: compiling well would take longer than searching slowly.
    optimisation = "-O0" if any(define.startswith("BREAK_") for define in check.defines) else "-O1"
    compile_ = ["gcc", optimisation, "-w", "-DSAFETY", "-DNOFAIR", f"-DMEMLIM={MEMORY_LIMIT_MIB}", *reduction]
    run([*compile_, "-o", "pan", "pan.c"], folder)
    # -E: a process that waits for ever is judged by the model's own assertion, which knows who may.
    output = run(["./pan", f"-m{DEPTH}", "-E", "-n"], folder)
    found = re.search(r"errors: (\d+)", output)
    if found is None:
        pytest.fail(f"the verifier of {check.name} ended without a verdict:\n{output}")
    failure = re.search(r"pan:\d+: (.*)", output)
    incomplete = ("Search not completed", "max search depth too small", "reached -DMEMLIM bound")
    return Verdict(
        int(found.group(1)),
        failure.group(1) if failure else "",
        not any(words in output for words in incomplete),
        output,
    )


def run(command: list[str], folder: Path) -> str:
    """Run a command to its end and return what it printed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIME_LIMIT_S)
    output = done.stdout + done.stderr
    # spin prints what it rejects and exits with 0 nevertheless.
    if done.returncode != 0 or re.search(r"^spin: .*Error|^error: proctype", output, re.MULTILINE):
        pytest.fail(f"{' '.join(command)} failed:\n{output}")
    return output


@pytest.mark.parametrize("check", HOLD, ids=lambda check: check.name)
def test_protocol_holds_in_every_interleaving(check: Check, tmp_path: Path) -> None:
    """No reachable state breaks a promise, and all states were seen."""
    verdict = verify(check, tmp_path)
    assert verdict.errors == 0, verdict.failure
    assert verdict.is_complete, verdict.output


@pytest.mark.parametrize("mistake", BREAKS)
def test_planted_mistake_is_found(mistake: str, tmp_path: Path) -> None:
    """With the mistake an assertion of the model fails: not the search, nor the model's syntax."""
    verdict = verify(BREAKS[mistake].broken(mistake), tmp_path)
    assert verdict.errors > 0, f"the model holds although {mistake} is planted"
    assert verdict.failure.startswith("assertion violated"), verdict.failure


def test_every_planted_mistake_is_tried() -> None:
    """The models plant exactly the mistakes that are tried, each in the model it is tried on."""
    planted = {
        (model.name, mistake)
        for model in MODELS.glob("*.pml")
        for mistake in re.findall(r"\bBREAK_([A-Z_]+)\b", model.read_text())
    }
    assert planted == {(check.model, mistake) for mistake, check in BREAKS.items()}


@pytest.mark.parametrize("model", sorted(MODELLED_AROUND))
def test_steps_carry_names_of_functions(model: str) -> None:
    """Each inline and process stands for a function that the allocator has, or is known to stand for a program."""
    text = (MODELS / model).read_text()
    steps = set(re.findall(r"^(?:inline|proctype)\s+(\w+)", text, re.MULTILINE)) - MODELLED_AROUND[model]
    source = "\n".join(file.read_text() for file in ALLOCATOR.rglob("*.cc")) + "\n".join(
        file.read_text() for file in ALLOCATOR.rglob("*.h")
    )
    missing = sorted(step for step in steps if not re.search(rf"\b{step.rstrip('_')}\(", source))
    assert not missing, f"{model} has steps that no function of the allocator is called: {missing}"
