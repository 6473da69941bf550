"""Case programs that need nothing but the preload: each must exit with 0.

The case's first lines say what is tried and what is right. Cases that need libraries, limits or a
particular start are in the other files of this folder.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from case_programs import CASES, MISMATCHED, CaseCompiler, expect_success, is_ebb, run_case

PLAIN_CASES = (
    # fork, vfork, clone
    "025_setenv_before_exec.c",
    "028_fork_from_thread_exit.c",
    "029_helper_thread_after_daemon.c",
    "034_children_without_handlers.c",
    "035_starts_in_vfork_child.c",
    "035_vfork_child_allocates.c",
    # thread exit and thread-specific data
    "037_key_destructors_allocate.c",
    "038_thread_local_owner.cc",
    "043_short_threads_realloc.c",
    "044_thread_identity_reused.c",
    # the loader
    "053_before_main.c",
    # alignment
    "062_small_alignment.c",
    "064_large_alignment.c",
    "065_size_below_alignment.c",
    "070_aligned_blocks_are_reused.c",
    "071_satisfied_alignment_is_free.c",
    # sizes and errors
    "073_sizes_above_ptrdiff_max.c",
    "074_negative_sizes.c",
    "076_sixteen_tebibytes.c",
    "077_realloc_past_2_gib.c",
    "079_realloc_to_zero.c",
    "082_realloc_keeps_usable_bytes.c",
    # C++ operators
    "085_new_handler.cc",
    "088_one_heap_for_c_and_cxx.cc",
    # what the kernel sees
    "098_freed_memory_leaves_rss.c",
    "100_one_byte_a_mebibyte.c",
    "101_children_keep_huge_pages.c",
    # statistics
    "119_mallinfo.c",
    # cliffs
    "124_vector_by_eight_bytes.c",
    "125_doubling_keeps_the_peak.c",
    "128_large_calloc_is_lazy.c",
    "134_internal_waste.c",
)
# What the compiler rightly finds suspicious, because the case does it on purpose.
WARNINGS_OFF = {
    "073_sizes_above_ptrdiff_max.c": ("-Wno-alloc-size-larger-than", "-Wno-use-after-free"),
    "074_negative_sizes.c": ("-Wno-use-after-free",),
    "088_one_heap_for_c_and_cxx.cc": (MISMATCHED, "-Wno-mismatched-new-delete"),
    "119_mallinfo.c": ("-Wno-deprecated-declarations",),
}


@pytest.mark.parametrize("source", PLAIN_CASES)
def test_case(source: str, compiler: CaseCompiler) -> None:
    expect_success(run_case(compiler.program(source, *WARNINGS_OFF.get(source, ()))))


@pytest.mark.parametrize("mode", ["plain", "locked", "filtered"])
def test_free_keeps_errno(mode: str, compiler: CaseCompiler) -> None:
    expect_success(run_case(compiler.program("080_free_keeps_errno.cc", MISMATCHED), mode))


@pytest.mark.parametrize("mode", ["locked", "refused", "exhausted"])
def test_calloc_is_zero_after_a_failed_purge(mode: str, compiler: CaseCompiler) -> None:
    expect_success(run_case(compiler.program("083_calloc_after_failed_purge.c"), mode))


@pytest.mark.skipif(not is_ebb(), reason="reads Ebb's statistics")
@pytest.mark.parametrize("mode", ["locked", "refused"])
def test_an_idle_process_rests_after_a_failed_purge(mode: str, compiler: CaseCompiler) -> None:
    expect_success(run_case(compiler.program("083_refused_purge_rests.c"), mode))


@pytest.mark.parametrize("mode", ["plain", "exhausted"])
def test_mappings_stay_few(mode: str, compiler: CaseCompiler) -> None:
    expect_success(run_case(compiler.program("091_few_mappings.c"), mode))


@pytest.mark.parametrize("mode", ["all", "onfault", "limited"])
def test_locked_memory_follows_use(mode: str, compiler: CaseCompiler) -> None:
    expect_success(run_case(compiler.program("095_mlockall.c"), mode))


@pytest.mark.parametrize("limit_mib", [64, 512, 1024, 8192])
def test_address_space_limit(limit_mib: int, compiler: CaseCompiler) -> None:
    program = compiler.program("089_address_space_limit.c")
    limit = ("prlimit", f"--as={limit_mib << 20}")
    expect_success(run_case(program, str(limit_mib), prefix=limit))


def test_fork_that_races_with_the_first_allocation(compiler: CaseCompiler) -> None:
    """Each start is a new chance for the race."""
    program = compiler.program("026_fork_races_first_allocation.c")
    for _ in range(150):
        expect_success(run_case(program))


@pytest.mark.parametrize("threads", ["0", "4"])
@pytest.mark.parametrize("scavenger", ["off", "on", "eager"])
def test_fork_handlers_of_a_library_allocate(threads: str, scavenger: str, compiler: CaseCompiler) -> None:
    library = compiler.library("026_early_handlers.c", "handlers026")
    program = compiler.program(
        "026_early_handlers_allocate.c", "-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}"
    )
    expect_success(run_case(program, threads, variables={"EBB_SCAVENGER": scavenger}))


def test_every_case_says_what_it_tries() -> None:
    for path in CASES.glob("[0-9]*"):
        first = path.read_text().splitlines()[0]
        assert first.startswith("// ") and len(first) > 40, path.name


def test_core_dump_is_as_large_as_what_is_live(compiler: CaseCompiler, tmp_path: Path) -> None:
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="ascii").strip()
    if "/" in pattern or pattern.startswith("|"):
        pytest.skip(f"cores go elsewhere here (kernel.core_pattern is {pattern}): set it to `core`")
    program = compiler.program("116_core_dump.c")
    ended = run_case(program, prefix=("/usr/bin/env", f"--chdir={tmp_path}"))
    assert ended.status == -signal.SIGABRT, ended.complaint
    cores = list(tmp_path.glob("core*"))
    assert len(cores) == 1, f"no core beside {list(tmp_path.iterdir())}"
    resident = int(ended.output)
    written = cores[0].stat().st_blocks * 512
    apparent = cores[0].stat().st_size
    print(f"{resident >> 20} MiB resident, core of {written >> 20} MiB written, {apparent >> 20} MiB apparent")
    assert written <= resident + (4 << 20)
    # What was accessible at the peak is in the file as holes; address space that is reserved only is not in it at all.
    assert apparent <= 1 << 30


@pytest.fixture
def memory_group() -> Iterator[Path]:
    """Yield the directory of a control group that may have 640 MiB; needs a privilege, or says what is missing."""
    parent = Path("/sys/fs/cgroup/memory" if Path("/sys/fs/cgroup/memory").is_dir() else "/sys/fs/cgroup")
    group = parent / f"ebb-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made in {parent} ({error.strerror}): run the tests as root")
    limits = [group / name for name in ("memory.limit_in_bytes", "memory.max") if (group / name).exists()]
    try:
        if not limits:
            pytest.skip(f"the control groups of {parent} have no limit of memory: enable the memory controller")
        limits[0].write_text(str(640 << 20), encoding="ascii")
        yield group
    finally:
        group.rmdir()


@pytest.mark.parametrize("scavenger", ["on", "off"])
def test_burst_before_a_huge_request_stays_within_a_limit(
    scavenger: str, memory_group: Path, compiler: CaseCompiler
) -> None:
    program = compiler.program("019_burst_before_huge_request.c")
    join = str(memory_group / "cgroup.procs")
    expect_success(run_case(program, join, variables={"EBB_SCAVENGER": scavenger}))
