"""Heap profiles of whole processes: written at exit, read by google-pprof, also where something is missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "api"))

from api_programs import library, run, succeed  # noqa: E402

PROGRAMS = Path(__file__).resolve().parent / "programs"
PYTHON = "/usr/bin/python3"
HELD_MIB = {"hold_forty": 40.0, "hold_ten": 10.0}
INTERVAL_KIB = 64
"""So the estimate of 40 MiB has a standard error of sqrt(40 MiB * 64 KiB) = 1.6 MiB."""


@pytest.fixture(scope="module")
def holder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that holds memory, linked as an ordinary one."""
    return compiled(tmp_path_factory.mktemp("holder") / "holder", "holder.c")


def compiled(output: Path, *arguments: str | Path) -> Path:
    """Compile programs of this folder, or further compiler arguments, into `output`."""
    words = [PROGRAMS / word if str(word).endswith(".c") else word for word in arguments]
    succeed(["gcc", "-O1", "-g1", "-Wall", "-Wextra", "-Werror", *words, "-o", output])
    return output


def profiled(
    *command: str | Path, file: str | Path, interval: str = str(INTERVAL_KIB), preload: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a program that writes its profile to `file` at exit."""
    variables = {"EBB_PROFILE_INTERVAL_KIB": interval, "EBB_PROFILE_FILE": str(file)}
    if preload:
        variables["LD_PRELOAD"] = str(library())
    return run(command, variables=variables)


def stacks(profile: Path) -> list[tuple[int, list[int]]]:
    """Return the size and the addresses of each sample; the profile is whole."""
    text = profile.read_text()
    head, separator, maps = text.partition("\nMAPPED_LIBRARIES:\n")
    assert separator and "[stack]" in maps
    first, *lines = head.splitlines()
    header = re.fullmatch(r"heap profile: (\d+): (\d+) \[(\d+): (\d+)\] @ heap_v2/(\d+)", first)
    assert header is not None, first
    found = []
    for line in lines:
        sample = re.fullmatch(r"1: (\d+) \[1: \1\] @((?: 0x[0-9a-f]+)*)", line)
        assert sample is not None, line
        found.append((int(sample[1]), [int(word, 16) for word in sample[2].split()]))
    assert (len(found), sum(size for size, _ in found)) == (int(header[1]), int(header[2]))
    return found


def megabytes_by_function(program: Path, profile: Path) -> dict[str, float]:
    """Return what google-pprof says that each function holds itself, in MiB."""
    text = succeed(["google-pprof", "--text", program, profile])
    rows = re.findall(r"^ *([\d.]+) +[\d.]+% +[\d.]+% +[\d.]+ +[\d.]+% (.*)$", text, re.MULTILINE)
    assert rows, text
    return {name: float(value) for value, name in rows}


def test_pprof_names_who_holds_the_memory(holder: Path, tmp_path: Path) -> None:
    ended = profiled(holder, "exit", file=tmp_path / "heap")
    assert (ended.returncode, ended.stderr) == (0, "")
    held = megabytes_by_function(holder, tmp_path / "heap")
    for function, expected in HELD_MIB.items():
        assert held[function] == pytest.approx(expected, rel=0.25), held
    assert held.get("pass_through", 0.0) < 1


def test_a_static_program_writes_its_profile(tmp_path: Path) -> None:
    program = compiled(tmp_path / "holder", "holder.c", "-static", library("libebb.a"), "-pthread")
    ended = profiled(program, "exit", file=tmp_path / "heap", preload=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    total = subprocess.run(
        ["google-pprof", "--text", "--cum", program, tmp_path / "heap"], capture_output=True, text=True, check=True
    ).stdout
    assert re.search(r"\bhold_forty$", total, re.MULTILINE), total


def test_an_unmodified_program_writes_a_profile_at_exit(tmp_path: Path) -> None:
    """A library of the interpreter's own process leaks, so that there is something at its exit."""
    leak = "import ctypes; m = ctypes.CDLL(None).malloc; m.restype = ctypes.c_void_p; [m(5000) for _ in range(4000)]"
    ended = profiled(PYTHON, "-c", leak, file=tmp_path / "heap.%p")
    assert (ended.returncode, ended.stderr) == (0, "")
    [profile] = tmp_path.iterdir()
    assert re.fullmatch(r"heap\.\d+", profile.name)
    samples = stacks(profile)
    leaked = [addresses for size, addresses in samples if size == 5120]
    # 20 MB with a sample each 64 KiB: 305 are expected, with a standard error of 17.
    assert 220 < len(leaked) < 390
    assert all(len(addresses) > 3 for addresses in leaked)


def test_a_fork_child_does_not_write_over_its_parents_profile(holder: Path, tmp_path: Path) -> None:
    assert profiled(holder, "fork", file=tmp_path / "heap").returncode == 0
    held = megabytes_by_function(holder, tmp_path / "heap")
    assert held["hold_forty"] == pytest.approx(40, rel=0.25)


def test_a_fork_child_has_a_profile_of_its_own_by_its_number(holder: Path, tmp_path: Path) -> None:
    assert profiled(holder, "fork", file=tmp_path / "heap.%p").returncode == 0
    sizes = sorted(len(stacks(profile)) for profile in tmp_path.iterdir())
    assert len(sizes) == 2
    assert sizes[0] < 10 and sizes[1] > 400, "the child has freed all, the parent nothing"


def test_nothing_is_written_without_exit(holder: Path, tmp_path: Path) -> None:
    assert profiled(holder, "_exit", file=tmp_path / "heap").returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("interval", ["0", "-5", "many"])
def test_nothing_is_written_when_it_is_off(holder: Path, interval: str, tmp_path: Path) -> None:
    ended = profiled(holder, "exit", file=tmp_path / "heap", interval=interval)
    assert ended.returncode == 0
    assert ("EBB_profile_interval_kib" in ended.stderr) == (interval != "0")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["missing/heap", "x" * 5000])
def test_a_file_that_cannot_be_written_is_complained_of(holder: Path, name: str, tmp_path: Path) -> None:
    ended = profiled(holder, "exit", file=tmp_path / name)
    assert ended.returncode == 0
    assert ended.stderr.startswith("ebb: the heap profile can't be written to ") and ended.stderr.count("\n") == 1


def test_without_an_unwinder_a_sample_has_its_caller(holder: Path, tmp_path: Path) -> None:
    blind = compiled(tmp_path / "libblind.so", "no_unwinder.c", "-shared", "-fPIC")
    variables = {
        "EBB_PROFILE_INTERVAL_KIB": str(INTERVAL_KIB), "EBB_PROFILE_FILE": str(tmp_path / "heap"),
        "LD_PRELOAD": f"{library()}:{blind}",
    }  # fmt: skip
    assert run([holder, "exit"], variables=variables).returncode == 0
    samples = stacks(tmp_path / "heap")
    assert {len(addresses) for _, addresses in samples} == {1}
    held = megabytes_by_function(holder, tmp_path / "heap")
    assert held["hold_forty"] == pytest.approx(40, rel=0.25)


def test_the_library_of_the_unwinder_is_not_loaded_when_it_is_off(holder: Path) -> None:
    environment = {"LD_PRELOAD": str(library()), "LD_DEBUG": "files", "PATH": os.defpath}
    ended = subprocess.run([holder, "exit"], env=environment, capture_output=True, text=True, check=True)
    assert "libebb.so" in ended.stderr and "libgcc_s" not in ended.stderr
