"""The allocator on aarch64: cross-built by Debian's compiler, its layer tests run under qemu-user.

What fits the time is the layers' own tests and the interface. The build folder `build/aarch64` is kept, so that a second run builds what changed.
qemu translates for the host's memory model, which may be stronger than aarch64's: what a test here shows is that the
code, its system calls and its sizes are right, not its memory orders (the models in tests and ThreadSanitizer do).
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
BUILD = REPOSITORY / "build" / "aarch64"
TARGET_ROOT = Path("/usr/aarch64-linux-gnu")
GOOGLETEST_SOURCE = Path("/usr/src/googletest/googletest/CMakeLists.txt")
JOBS = "2"
BUILD_LIMIT_S = 540
RUN_LIMIT_S = 240
"""Against hangs: on two free processors the build takes under a minute and the longest program seconds."""
PROGRAMS = ("base_test", "arena_test", "page_test", "heap_test", "api_test", "override_test")
"""What is built. override_test's malloc and operator new are libebb.so's, which so runs as a whole."""
RUNS = (
    ("base_test", "*"),
    ("arena_test", "*-ArenaTable.*"),
    ("page_test", "*-PageHistory.OsPagesOf4KiB"),
    ("heap_test", "Large.*-Large.Calloc*"),
    ("heap_test", "Large.Calloc*"),
    ("heap_test", "*-Large.*"),
    ("api_test", "*"),
    ("override_test", "*"),
)
"""Program and GoogleTest's filter. heap_test runs in three: after an mremap with MREMAP_DONTUNMAP, qemu 7.2 takes
MADV_DONTNEED of the old range for done and does nothing, so what reads memory after that finds old bytes. ArenaTable asks
what is resident, which qemu does not tell. Of the page histories those with aarch64's larger OS pages run: the third takes
as long as both, and is the native build's."""


@pytest.fixture(scope="session")
def built() -> Path:
    """Return the folder of cross-built test programs; workers that run beside this one wait for its build."""
    for tool in ("aarch64-linux-gnu-g++", "aarch64-linux-gnu-gcc", "qemu-aarch64", "cmake"):
        assert shutil.which(tool), f"{tool} is missing: run `sh harness/setup/install`"
    assert GOOGLETEST_SOURCE.is_file(), f"{GOOGLETEST_SOURCE} is missing: run `sh harness/setup/install`"
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # -O1: half of -O2's time for the compiler, and qemu's translation hides the difference.
        run("cmake", "-S", str(REPOSITORY), "-B", str(BUILD), "-DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake",
            "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1", "-DCMAKE_C_FLAGS_DEBUG=-O1")  # fmt: skip
        run("cmake", "--build", str(BUILD), "-j", JOBS, "--target", "ebb_shared", *PROGRAMS)
    return BUILD / "tests"


def run(*command: str) -> str:
    """Run a step of the build and return what it printed; the test fails with the output where the step does."""
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=BUILD_LIMIT_S)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def test_the_library_is_of_aarch64_and_needs_libc_alone(built: Path) -> None:
    header = run("aarch64-linux-gnu-readelf", "--file-header", "--dynamic", str(built.parent / "libebb.so"))
    assert "AArch64" in header
    needed = [line.split("[")[1].rstrip("]") for line in header.splitlines() if "(NEEDED)" in line]
    assert "libc.so.6" in needed and set(needed) <= {"libc.so.6", "ld-linux-aarch64.so.1"}


@pytest.mark.parametrize(("program", "filter_"), RUNS)
def test_the_program_passes_under_qemu(program: str, filter_: str, built: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    command = ["qemu-aarch64", "-L", str(TARGET_ROOT), str(built / program), f"--gtest_filter={filter_}",
               "--gtest_brief=1", f"--gtest_output=xml:{report}"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT_S)
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}"
    ran = [case for case in ElementTree.parse(report).getroot().iter("testcase") if case.get("status") == "run"]
    assert ran, f"{program} ran no test of {filter_}: correct the filter"
