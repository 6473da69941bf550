"""The builds that the tests run in, and how each is made.

Sanitizer builds link Ebb by its ebb_ names and hold the tests of the layers and the stress program alone.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from runner.execution import PROCESSORS, Task

BUILD_TIMEOUT_S = 2400
"""Against hangs alone, as the limits of suites and programs: a build takes a minute where the machine is free."""
TARGET = "allocator_tests"
"""Everything of tests/allocator that is a program; tests/allocator/CMakeLists.txt defines it."""
LABEL = "allocator"
"""CTest's label of the programs that a variant runs; an empty one means all."""


@dataclass(frozen=True)
class Variant:
    """One build directory. `options` are CMake's; `environment` is what its programs run with."""

    name: str
    options: tuple[str, ...]
    targets: tuple[str, ...] = (TARGET,)
    in_quick: bool = False
    label: str = LABEL
    environment: tuple[tuple[str, str], ...] = ()
    prefix: tuple[str, ...] = ()

    def folder(self, root: Path) -> Path:
        """Return the build directory."""
        return root / "build" / self.name


def without_address_randomisation() -> tuple[str, ...]:
    """Return what runs a program at fixed addresses, or nothing where that is not allowed (some containers).

    ThreadSanitizer of this compiler's age finds no room for its shadow in some layouts of newer kernels.
    """
    command = ("setarch", platform.machine(), "-R")
    if shutil.which("setarch") is None:
        return ()
    return command if subprocess.run([*command, "true"], capture_output=True).returncode == 0 else ()


VARIANTS = (
    Variant("release", ("-DCMAKE_BUILD_TYPE=Release",), ("all", TARGET), in_quick=True, label=""),
    Variant(
        "debug",
        ("-DCMAKE_BUILD_TYPE=Debug", "-DEBB_DEBUG=ON", "-DEBB_TEST_POINTS=ON", "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1"),
        in_quick=True,
    ),
    Variant(
        "address_undefined",
        (
            "-DCMAKE_BUILD_TYPE=Debug", "-DEBB_SANITIZE=address,undefined",
            "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1 -fno-sanitize-recover=undefined",
        ),  # fmt: skip
        environment=(
            ("ASAN_OPTIONS", "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1"),
            ("UBSAN_OPTIONS", "print_stacktrace=1"),
        ),
    ),
    Variant(
        "thread",
        ("-DCMAKE_BUILD_TYPE=Debug", "-DEBB_SANITIZE=thread", "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1"),
        environment=(("TSAN_OPTIONS", "halt_on_error=0:die_after_fork=0:second_deadlock_stack=1"),),
        prefix=without_address_randomisation(),
    ),
    Variant(
        "fuzzer",
        (
            "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_COMPILER=clang++-14", "-DCMAKE_C_COMPILER=clang-14",
            "-DEBB_SANITIZE=fuzzer-no-link,address", "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1",
        ),  # fmt: skip
        ("allocator_fuzzers",),
        label="fuzzer",
    ),
)
"""-O1: the tests spend their time in the allocator, and sanitizers cost enough. -g1: lines for reports, small files.

Leaks are Ebb's own business (its blocks are no malloc blocks); forked children of threaded programs go on under
ThreadSanitizer, as they are what is tested."""


def build_tasks(variant: Variant, root: Path, logs: Path) -> list[Task]:
    """Return the steps that make a variant, in order: each takes all processors, so they run one after another."""
    folder = variant.folder(root)
    configure = ("cmake", "-S", ".", "-B", str(folder), *variant.options)
    compile_ = ("cmake", "--build", str(folder), "-j", str(PROCESSORS), "--target", *variant.targets)
    return [
        Task(f"build {variant.name} {step}", command, root, BUILD_TIMEOUT_S, PROCESSORS).logged_in(logs)
        for step, command in (("configure", configure), ("compile", compile_))
    ]
