"""libebb.so as a file: what it needs, what it exports, how short its fast paths are, what its statistics say."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
from pathlib import Path

import pytest

from api_programs import REPOSITORY, library, succeed

LIBC = re.compile(r"lib(c|ld-linux-x86-64|ld-linux-aarch64)\.so|ld-linux")
OPERATORS = re.compile(r"_Z(nw|na)m|_Z(dl|da)Pv")
LIBC_FAMILY = re.compile(
    r"^(__libc_)?(malloc|calloc|realloc|reallocarray|free|memalign|valloc|pvalloc|aligned_alloc|posix_memalign|"
    r"cfree|mallinfo2?|mallopt|malloc_(usable_size|trim|stats|info))$"
)
FAST_PATHS = {"_Znwm": 13, "_ZnwmRKSt9nothrow_t": 13, "_ZdlPv": 18, "_ZdlPvm": 18, "_ZdlPvSt11align_val_t": 18}
"""The most instructions of an operator from its entry to its return when no slow path is taken: those of malloc and
free, whose own are in tests/allocator/census/."""


def dynamic_symbols(path: Path, kinds: str) -> set[str]:
    """Return the dynamic symbols of `path` whose kind, a letter of nm's, is in `kinds`, without their versions."""
    names = set()
    for line in succeed(["nm", "-D", path]).splitlines():
        fields = line.split()
        if fields[-2] in kinds:
            names.add(fields[-1].split("@")[0])
    return names


def libc_path() -> Path:
    """Return the libc that programs here load."""
    return Path(subprocess.run(["gcc", "-print-file-name=libc.so.6"], capture_output=True, text=True).stdout.strip())


def test_needs_libc_alone() -> None:
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", succeed(["readelf", "-d", library()]))
    assert "libc.so.6" in needed
    assert all(LIBC.match(name) for name in needed), needed


def test_what_may_be_missing_is_of_the_cxx_runtime() -> None:
    """Every undefined symbol that is not weak has a version of the libc's."""
    undefined = [line.split()[-1] for line in succeed(["nm", "-D", library()]).splitlines() if line.split()[-2] == "U"]
    assert undefined and all("@GLIBC_" in name for name in undefined), undefined
    weak = dynamic_symbols(library(), "wv")
    assert {"_ZSt15get_new_handlerv", "_ZSt17__throw_bad_allocv", "__gxx_personality_v0"} <= weak


def test_exports_what_the_libc_exports_of_malloc() -> None:
    libc = {name for name in dynamic_symbols(libc_path(), "TWi") if LIBC_FAMILY.match(name)}
    assert {"malloc", "pvalloc", "mallinfo2", "__libc_memalign"} <= libc
    assert libc <= dynamic_symbols(library(), "T"), "a program that calls these gets the libc's heap"


def test_exports_every_operator_of_libstdcxx() -> None:
    runtime = Path(succeed(["g++", "-print-file-name=libstdc++.so.6"]).strip())
    operators = {name for name in dynamic_symbols(runtime, "TW") if OPERATORS.match(name)}
    assert len(operators) == 20
    assert operators <= dynamic_symbols(library(), "T")


def test_exports_nothing_but_its_interface() -> None:
    header = (REPOSITORY / "allocator" / "include" / "ebb" / "ebb.h").read_text()
    exported = dynamic_symbols(library(), "TDBRVW")
    ours = {name for name in exported if name.startswith("ebb_")}
    declared = set(re.findall(r"^EBB_API\b[^;(]*?\b(ebb_\w+)\(", header, re.MULTILINE))
    assert ours == declared
    standard = {"free_sized", "free_aligned_sized", "__posix_memalign"}
    others = {name for name in exported - ours - standard if not OPERATORS.match(name) and not LIBC_FAMILY.match(name)}
    assert others == set()


def fast_path(symbol: str) -> list[str]:
    """Return the instructions of `symbol` up to its return, when no conditional jump is taken."""
    listing = succeed(["nm", "-S", "--defined-only", library()])
    found = re.search(rf"^([0-9a-f]+) ([0-9a-f]+) \w {re.escape(symbol)}$", listing, re.MULTILINE)
    assert found, f"no symbol {symbol}"
    start, size = int(found[1], 16), int(found[2], 16)
    span = [f"--start-address={start:#x}", f"--stop-address={start + size:#x}"]
    text = succeed(["objdump", "-d", "--no-show-raw-insn", *span, library()])
    path = []
    for instruction in re.findall(r"^ *[0-9a-f]+:\t(.*)$", text, re.MULTILINE):
        path.append(instruction)
        if instruction.startswith("ret"):
            return path
    raise AssertionError(f"{symbol} has no return")


@pytest.mark.parametrize("symbol", FAST_PATHS)
def test_fast_path_is_short(symbol: str) -> None:
    path = fast_path(symbol)
    assert len(path) <= FAST_PATHS[symbol], "\n".join(path)
    assert not any(re.match(r"call|push|jmp", instruction) for instruction in path), "\n".join(path)


def test_statistics_are_json_with_every_counter_and_option() -> None:
    ebb = ctypes.CDLL(str(library()))
    ebb.ebb_stats_json.restype = ctypes.c_size_t
    buffer = ctypes.create_string_buffer(200_000)
    length = ebb.ebb_stats_json(buffer, ctypes.c_size_t(len(buffer)))
    assert length == len(buffer.value)
    figures = json.loads(buffer.value)
    sources = REPOSITORY / "allocator"
    counters = re.findall(r"^EBB_COUNTER\((\w+),", (sources / "stats" / "counters.def").read_text(), re.MULTILINE)
    options = re.findall(r"^EBB_OPTION\((\w+),", (sources / "config" / "options.def").read_text(), re.MULTILINE)
    assert list(figures["counters"]) == counters and list(figures["options"]) == options
    header = (sources / "include" / "ebb" / "ebb.h").read_text()
    structure = header[header.index("typedef struct ebb_stats") : header.index("} ebb_stats_t")]
    assert set(re.findall(r"size_t (\w+);", structure)) <= set(figures)
    values = [value for value in figures.values() if isinstance(value, int)] + list(figures["counters"].values())
    assert all(0 <= value < 2**60 for value in values)
