"""The debug and the secure library report a misuse with a message and stop the program, or go on where asked to."""

from __future__ import annotations

import signal

import pytest

from case_programs import CaseCompiler, expect_success, library_file, run_case

LIBRARIES = ("libebb-debug.so", "libebb-secure.so")
KINDS = ("small_interior", "large_interior", "huge_interior", "stack", "static", "mapped", "number")
SIZES = (24, 1000, 40_000, 700_000, 20_000_000)
SUSPICIOUS = ("-Wno-free-nonheap-object", "-Wno-use-after-free", "-Wno-dangling-pointer", "-Wno-return-local-addr")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("operation", ["free", "realloc", "usable"])
@pytest.mark.parametrize("kind", KINDS)
def test_pointer_that_is_no_block(kind: str, operation: str, library: str, compiler: CaseCompiler) -> None:
    program = compiler.program("112_free_of_no_block.c", *SUSPICIOUS)
    ended = run_case(program, operation, kind, preloads=[str(library_file(library))])
    assert ended.status == -signal.SIGABRT, f"status {ended.status}: {ended.complaint}"
    assert "ebb: " in ended.complaint and "which is not a live block: " in ended.complaint


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("size", SIZES)
def test_double_free(size: int, library: str, compiler: CaseCompiler) -> None:
    program = compiler.program("112_double_free.c", *SUSPICIOUS)
    ended = run_case(program, str(size), preloads=[str(library_file(library))])
    assert ended.status == -signal.SIGABRT, f"status {ended.status}: {ended.complaint}"
    assert "ebb: " in ended.complaint and "freed before" in ended.complaint


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_program_may_ask_to_go_on(library: str, compiler: CaseCompiler) -> None:
    program = compiler.program("112_double_free.c", *SUSPICIOUS)
    go_on = {"EBB_CONTINUE_ON_MISUSE": "1"}
    ended = run_case(program, "1000", preloads=[str(library_file(library))], variables=go_on)
    expect_success(ended)
    assert ended.complaint.count("freed before") == 1 and "; it is ignored" in ended.complaint
