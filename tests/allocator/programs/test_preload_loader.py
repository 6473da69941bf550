"""The allocator in the hands of the dynamic linker: dlopen, dlmopen, audit, interposers, setuid, static."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from case_programs import (
    MISMATCHED,
    CaseCompiler,
    allocator_library,
    entry_points,
    expect_success,
    is_ebb,
    library_file,
    run_case,
)

PRODUCERS = (
    "malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign", "valloc",
    "pvalloc", "strdup", "strndup", "wcsdup", "asprintf", "getline", "realpath", "getcwd", "scandir",
    "open_memstream", "__libc_malloc", "__libc_calloc", "__libc_memalign",
)  # fmt: skip
NOBODY = 65534


def _library_or_libc() -> str:
    """The library under test as a file that can be linked or loaded by path."""
    return allocator_library() or "/lib/x86_64-linux-gnu/libc.so.6"


def _linked_with_allocator() -> list[str]:
    """Compiler arguments that link the library under test, found again at run time where it was built."""
    library = allocator_library()
    return ["-Wl,--no-as-needed", library, f"-Wl,-rpath,{Path(library).parent}"] if library else []


@pytest.mark.parametrize("when", ["first", "later"])
@pytest.mark.parametrize("producer", PRODUCERS)
def test_every_producer_is_served(producer: str, when: str, compiler: CaseCompiler) -> None:
    expect_success(run_case(compiler.program("055_producers.c"), producer, when))


def test_library_loaded_and_unloaded_in_a_loop(compiler: CaseCompiler) -> None:
    plugin = compiler.library("040_plugin.c", "plugin040")
    expect_success(run_case(compiler.program("040_dlclose_loop.c"), str(plugin)))


def test_allocator_loaded_and_unloaded_in_a_loop(compiler: CaseCompiler) -> None:
    program = compiler.program("040_dlclose_loop.c")
    expect_success(run_case(program, _library_or_libc(), *entry_points(), preloads=()))


def test_allocator_is_loaded_by_dlopen(compiler: CaseCompiler) -> None:
    program = compiler.program("046_dlopen_allocator.c")
    expect_success(run_case(program, _library_or_libc(), *entry_points(), preloads=()))


def test_allocator_is_loaded_after_others_took_static_tls(compiler: CaseCompiler) -> None:
    libraries = [
        str(compiler.library("046_tls_library.c", f"tls{i}", f"-DTLS_BYTES={100 + 10 * i}")) for i in range(10)
    ]
    program = compiler.program("046_dlopen_allocator.c")
    expect_success(run_case(program, *libraries, _library_or_libc(), *entry_points(), preloads=()))


def test_allocator_is_loaded_by_ctypes() -> None:
    allocate, release = entry_points()
    script = (
        "import ctypes, sys\n"
        "library = ctypes.CDLL(sys.argv[1])\n"
        f"allocate, release = library.{allocate}, library.{release}\n"
        "allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]\n"
        "release.argtypes = [ctypes.c_void_p]\n"
        "for size in (1, 100, 10_000, 1_000_000):\n"
        "    block = allocate(size)\n"
        "    ctypes.memset(block, 1, size)\n"
        "    release(block)\n"
    )
    expect_success(run_case("/usr/bin/python3", "-c", script, _library_or_libc(), preloads=()))


def test_thread_variables_need_no_dynamic_tls() -> None:
    listed = subprocess.run(["readelf", "-rW", _library_or_libc()], capture_output=True, text=True, check=True)
    assert "R_X86_64" in listed.stdout
    assert re.search("DTPMOD64|TLSDESC", listed.stdout) is None


@pytest.mark.parametrize("order", ["hook first", "allocator first"])
@pytest.mark.parametrize("hook", ["049_mmap_hook.c", "050_unmap_hooks.c"])
def test_interposed_memory_calls(hook: str, order: str, compiler: CaseCompiler) -> None:
    library = str(compiler.library(hook, f"hook{hook[:3]}"))
    preloads = [library, allocator_library()] if order == "hook first" else [allocator_library(), library]
    expect_success(run_case(compiler.program("050_mixed_sizes.c"), preloads=preloads))


@pytest.mark.parametrize("order", ["interposer first", "allocator first"])
def test_interposed_thread_creation(order: str, compiler: CaseCompiler) -> None:
    library = str(compiler.library("052_interposer.c", "interposer"))
    preloads = [library, allocator_library()] if order == "interposer first" else [allocator_library(), library]
    program = compiler.program("052_threads_and_exceptions.cc")
    expect_success(run_case(program, preloads=preloads, variables={"EBB_VERBOSE": "1"}))


def test_global_destructors_of_program_and_libraries(compiler: CaseCompiler) -> None:
    """One library is linked before the allocator and one after it, so one ends before it and one after."""
    first = compiler.library("041_library.cc", "first041", "-DLIBRARY_USE=use_first")
    second = compiler.library("041_library.cc", "second041", "-DLIBRARY_USE=use_second")
    linked = ["-Wl,--no-as-needed", str(first), *_linked_with_allocator(), str(second)]
    program = compiler.program("041_global_destructors.cc", *linked)
    for _ in range(10):
        expect_success(run_case(program, preloads=()))
        expect_success(run_case(program))


def test_preload_with_an_audit_library(compiler: CaseCompiler) -> None:
    audit = compiler.library("056_audit.c", "audit")
    ended = run_case("/bin/ls", "/", variables={"LD_AUDIT": str(audit)})
    expect_success(ended)
    assert "proc" in ended.output and ended.complaint == ""


def test_address_sanitizer_program(compiler: CaseCompiler) -> None:
    """ASan refuses to run behind another allocator, and says so; a crash before it can is wrong."""
    program = compiler.program("058_linked_program.c", "-fsanitize=address", name="sanitized")
    ended = run_case(program)
    assert ended.status == 0 or "ASan runtime does not come first" in ended.complaint, f"status {ended.status}"


def test_program_with_an_allocator_of_its_own(compiler: CaseCompiler) -> None:
    expect_success(run_case(compiler.program("059_own_allocator.c", "-fno-builtin")))


def test_blocks_of_another_allocator(compiler: CaseCompiler) -> None:
    ended = run_case(compiler.program("059_foreign_blocks.c", "-Wno-free-nonheap-object"))
    expect_success(ended)


def test_second_namespace(compiler: CaseCompiler) -> None:
    library = compiler.library("061_namespace_library.c", "namespace", *_linked_with_allocator())
    expect_success(run_case(compiler.program("061_dlmopen.c"), str(library)))


def test_aligned_new_across_libraries(compiler: CaseCompiler) -> None:
    shared = compiler.library("086_factory.cc", "shared086", "-DFACTORY=shared")
    embedded = compiler.library("086_factory.cc", "embedded086", "-DFACTORY=embedded", "-static-libstdc++")
    program = compiler.program("086_aligned_new_across_libraries.cc", str(shared), str(embedded))
    expect_success(run_case(program))


@pytest.mark.parametrize("source", ["053_before_main.c", "080_free_keeps_errno.cc", "088_one_heap_for_c_and_cxx.cc"])
def test_static_program(source: str, compiler: CaseCompiler, tmp_path: Path) -> None:
    """Linked with the archive and no shared library at all; IFUNC resolvers run before TLS exists there."""
    archive = [str(library_file("libebb.a"))] if is_ebb() else []
    static = CaseCompiler(tmp_path)
    flags = (MISMATCHED, "-Wno-mismatched-new-delete") if source.endswith(".cc") else ("-DNO_IFUNC",)
    program = static.program(source, *flags, "-static", *archive)
    arguments = ("plain",) if source.startswith("080") else ()
    expect_success(run_case(program, *arguments, preloads=()))


def test_options_are_ignored_in_a_setuid_program(compiler: CaseCompiler, tmp_path: Path) -> None:
    """Verbose start-up shows that the option works at all, and is silent in the setuid copy."""
    assert os.geteuid() == 0, "making a program setuid for another user needs root: run the tests as root"
    program = compiler.program("058_linked_program.c", *_linked_with_allocator())
    options = {"EBB_VERBOSE": "1"}
    usual = run_case(program, preloads=(), variables=options)
    expect_success(usual)
    if is_ebb():
        assert usual.complaint != "", "EBB_VERBOSE=1 prints nothing, so nothing could be ignored"
    # Under /usr/local, which every user may read and which is not mounted nosuid as /tmp may be.
    raised = Path("/usr/local/bin") / f"tidemark-setuid-case-{os.getpid()}"
    try:
        shutil.copy(program, raised)
        raised.chmod(0o4755)
        as_nobody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
        secure = run_case(raised, preloads=(), variables=options, prefix=as_nobody)
    finally:
        raised.unlink(missing_ok=True)
    expect_success(secure)
    assert secure.complaint == "" and secure.output == ""
