"""The checked build (`libebb-debug.so`) reports a misuse with a message and stops the program."""

from __future__ import annotations

import signal

import pytest

from case_programs import CaseCompiler, library_file, run_case

KINDS = ("small_interior", "large_interior", "huge_interior", "stack", "static", "mapped", "number")
SUSPICIOUS = ("-Wno-free-nonheap-object", "-Wno-use-after-free", "-Wno-dangling-pointer", "-Wno-return-local-addr")


@pytest.mark.parametrize("operation", ["free", "realloc"])
@pytest.mark.parametrize("kind", KINDS)
def test_pointer_that_is_no_block(kind: str, operation: str, compiler: CaseCompiler) -> None:
    program = compiler.program("112_free_of_no_block.c", *SUSPICIOUS)
    ended = run_case(program, operation, kind, preloads=[str(library_file("libebb-debug.so"))])
    assert ended.status == -signal.SIGABRT, f"status {ended.status}: {ended.complaint}"
    assert "ebb: " in ended.complaint


@pytest.mark.parametrize("size", [24, 1000, 40_000, 700_000, 20_000_000])
def test_double_free(size: int, compiler: CaseCompiler) -> None:
    program = compiler.program("112_double_free.c", *SUSPICIOUS)
    ended = run_case(program, str(size), preloads=[str(library_file("libebb-debug.so"))])
    assert ended.status == -signal.SIGABRT, f"status {ended.status}: {ended.complaint}"
    assert "ebb: " in ended.complaint
