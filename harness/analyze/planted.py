"""A small world with known changes: a checkout in a temporary folder whose allocator can be made worse on order.

Called by the self-test and the tests. Makes a git repository out of `tests/harness/fixtures/planted/`, builds its
workload, and commits one change of `plant.h` after another, so that everything Tidemark does with this
repository's own allocator can be tried on one whose faults are known. Owns the folder it is given; one thread.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.build.commands import git, run_logged
from harness.model.allocator import AllocatorConfig, load_allocators
from harness.model.layout import Layout

FIXTURE = Path(__file__).resolve().parents[2] / "tests" / "harness" / "fixtures" / "planted"
THRESHOLDS = Path(__file__).resolve().parents[2] / "results" / "baselines" / "thresholds.toml"
_ALLOCATORS = """
[allocator.planted]
kind = "git"
summary = "the fixture whose faults are known"
repository = "self"
build = [["sh", "{source}/allocator/build.sh", "{source}/allocator", "{build}"]]
artefact = "libplanted.so"
working_tree = "build/release/libplanted.so"
statistics = "planted_statistics"

[allocator.glibc]
kind = "libc"
summary = "the C library's own malloc"
"""


@dataclass(frozen=True)
class Plant:
    """One change with a known effect."""

    name: str
    switches: dict[str, int]
    workload: str
    expected: str
    """The verdict's word."""
    says: str = ""
    """What the verdict or its explanation must say, as a pattern."""


PLANTS = (
    Plant("one instruction in free", {"FREE_INSTRUCTION": 1}, "pairs", "regressed", r"free .*costs more a call"),
    Plant(
        "a call in malloc",
        {"MALLOC_CALLS": 1},
        "pairs",
        "regressed",
        r"checked_class \(libplanted\.so\) new.*planted\.c:\d+ [+]",
    ),
    Plant("+1 % of RSS", {"LEVEL_PERCENT": 1}, "rounds", "plateau", r"higher, within what the threshold allows"),
    Plant("+6 % of RSS", {"LEVEL_PERCENT": 6}, "rounds", "higher plateau", r"from the first checkpoint on"),
    Plant("a leak of 0.3 % a round", {"LEAK_ONE_IN": 33}, "rounds", "growing", r"ramps"),
    Plant("a step", {"STEP_AT": 55000}, "rounds", "higher plateau", r"steps by \+4"),
    Plant("a sawtooth", {"SAWTOOTH": 3276}, "rounds", "plateau"),
    Plant("a slow warm-up", {"SLOW_WARMUP": 3276}, "rounds", "higher plateau"),
    Plant("a crash", {"CRASH_AT": 40000}, "rounds", "not measured", r"ended by SIG"),
    Plant("a wrong result", {"WRONG_AT": 40000}, "rounds", "not measured", r"wrong byte"),
    Plant("a hang", {"HANG_AT": 40000}, "rounds", "not measured", r"did not end in its time"),
    Plant(
        "an allocator that was not loaded", {"NOT_LOADED": 1}, "rounds", "not measured", r"the allocator was not loaded"
    ),
)
"""Every planted change of an allocator. A workload that never allocates is planted as a workload, `silent`."""


class PlantedCheckout:
    """The small checkout, with its workloads built and the clean allocator committed."""

    def __init__(self, folder: Path) -> None:
        """Make the checkout in `folder`, which is created; CannotMeasure when git or gcc is missing."""
        self.layout = Layout(folder.resolve())
        root = self.layout.root
        shutil.copytree(FIXTURE, root, ignore=shutil.ignore_patterns("README.md"))
        (root / "harness").mkdir()
        self.layout.allocators_file.write_text(_ALLOCATORS, encoding="utf-8")
        self.layout.pin_file.parent.mkdir(parents=True)
        shutil.copyfile(THRESHOLDS, self.layout.pin_file.parent / THRESHOLDS.name)
        (root / ".gitignore").write_text("build/\n", encoding="utf-8")
        git(root, "init", "--quiet", "--initial-branch=main")
        self._build_workload()
        self.clean = self.plant({}, "nothing planted")

    def config(self) -> AllocatorConfig:
        """Return the allocator under test."""
        return load_allocators(self.layout.allocators_file)["planted"]

    def plant(self, switches: dict[str, int], message: str) -> str:
        """Commit the allocator with exactly these switches set, all others off, and return the commit."""
        header = self.layout.root / "allocator" / "plant.h"
        header.write_text(with_switches((FIXTURE / "allocator" / "plant.h").read_text(), switches), encoding="utf-8")
        return self.commit(message)

    def commit(self, message: str) -> str:
        """Commit the checkout as it is, also if nothing changed, and return the commit."""
        root = self.layout.root
        git(root, "add", "--all")
        git(root, "-c", "user.name=planted", "-c", "user.email=planted@localhost", "commit", "--quiet",
            "--allow-empty", "--no-gpg-sign", "-m", message)  # fmt: skip
        return git(root, "rev-parse", "HEAD")

    def build_tree(self) -> None:
        """Build the working tree's allocator, as `make` does in a real checkout."""
        root = self.layout.root
        subprocess.run(
            ["sh", str(root / "allocator" / "build.sh"), str(root / "allocator"), str(self.layout.release)], check=True
        )

    def _build_workload(self) -> None:
        source = self.layout.workloads / "planted_workload.c"
        target = self.layout.workload_binaries / "planted_workload"
        target.parent.mkdir(parents=True)
        # -fno-builtin: the compiler must not remove pairs of malloc and free.
        run_logged(
            ["gcc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fno-builtin", "-o", str(target),
             str(source)],
            self.layout.build / "workload.log", "The planted workload (it needs valgrind's headers)", self.layout.root,
        )  # fmt: skip


def with_switches(header: str, switches: dict[str, int]) -> str:
    """Return plant.h with the given switches set; ValueError for one it does not have."""
    for name, value in switches.items():
        header, count = re.subn(rf"(#define PLANT_{name}) \d+", rf"\1 {value}", header)
        if count != 1:
            raise ValueError(f"plant.h has no switch PLANT_{name}")
    return header
