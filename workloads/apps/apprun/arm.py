"""The arm of a run: which allocator goes into the program under test, and how.

Reads TIDEMARK_PRELOAD, TIDEMARK_TUNABLES, TIDEMARK_WRAP and TIDEMARK_PROGRAM_*; owns no state. Proves
with the dynamic linker's own word which object a program's `malloc` is bound to, before anything is
measured: a preload that the linker could not load is only a warning on standard error to it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from apprun.faults import CannotMeasure, WrongOutput

SETPRIV = "/usr/bin/setpriv"
ENV = "/usr/bin/env"
PROBE_TIMEOUT_S = 30

_BINDING = re.compile(
    r"binding file (?P<user>.+?) \[\d+\] to (?P<owner>.+?) \[\d+\]: normal symbol `(?P<symbol>\w+)'"
)
_ENTRY_POINTS = ("malloc", "realloc", "calloc")
"""In order of preference: some programs (lua) import `realloc` alone."""


@dataclass(frozen=True)
class Program:
    """A program under test, as the Debian package installs it."""

    name: str
    package: str
    probe: tuple[str, ...]
    """Arguments that make it exit at once without input."""


@dataclass(frozen=True)
class Arm:
    """The allocator under test, as the harness handed it over in the environment."""

    preload: str
    """Path of the shared object, or empty for the libc's own allocator."""
    tunables: Mapping[str, str]
    wrap: tuple[str, ...]
    """A prefix for the program under test, such as a valgrind command; empty for none."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Arm:
        """Read the arm; raises CannotMeasure when a variable is malformed or names no file."""
        preload = environment.get("TIDEMARK_PRELOAD", "")
        if preload and not Path(preload).is_file():
            raise CannotMeasure(
                f"TIDEMARK_PRELOAD names no file: '{preload}'; build the allocator or correct the path."
            )
        tunables: dict[str, str] = {}
        for word in shlex.split(environment.get("TIDEMARK_TUNABLES", "")):
            name, equals, value = word.partition("=")
            if not equals or not name:
                raise CannotMeasure(f"TIDEMARK_TUNABLES must be NAME=value words, not '{word}'.")
            tunables[name] = value
        wrap = tuple(shlex.split(environment.get("TIDEMARK_WRAP", "")))
        return cls(str(Path(preload).resolve()) if preload else "", tunables, wrap)

    def variables(self, home: Path, extra: Mapping[str, str]) -> dict[str, str]:
        """Return the program's whole environment: small and fixed, so that counts repeat."""
        variables = {
            "HOME": str(home),
            "LC_ALL": "C",
            "PATH": "/usr/bin:/bin",
            "TMPDIR": str(home),
            "TZ": "UTC",
            **extra,
            **self.tunables,
        }
        if self.preload:
            variables["LD_PRELOAD"] = self.preload
        return variables

    def command(self, argv: Sequence[str], variables: Mapping[str, str], wrapped: bool = True) -> list[str]:
        """Return a command that execs `argv` under the allocator and dies with its parent.

        The environment is set by env(1) at the last step, so that no launcher runs under the allocator.
        """
        assignments = [f"{name}={value}" for name, value in sorted(variables.items())]
        wrap = self.wrap if wrapped else ()
        return [SETPRIV, "--pdeathsig", "KILL", ENV, "-i", *assignments, *wrap, *argv]


def find_program(program: Program, environment: Mapping[str, str]) -> str:
    """Return the path of `program`: TIDEMARK_PROGRAM_<NAME> or Debian's place for it.

    Raises CannotMeasure, naming the Debian package, when there is no executable file.
    """
    variable = "TIDEMARK_PROGRAM_" + re.sub(r"\W", "_", program.name.replace("+", "p")).upper()
    path = environment.get(variable) or f"/usr/bin/{program.name}"
    if not (os.path.isfile(path) and os.access(path, os.X_OK)):
        raise CannotMeasure(
            f"{path} is missing: run 'apt-get install {program.package}' or set {variable} to the program."
        )
    return path


def bound_malloc(path: str, probe: Sequence[str], arm: Arm, home: Path) -> str:
    """Return the object that the allocation functions of program `path` are bound to.

    Runs the program once with the linker's binding report. Raises WrongOutput when the program does
    not survive even that, CannotMeasure when the linker reports no binding (a static program).
    """
    report = home / "bindings"
    variables = arm.variables(
        home, {"LD_BIND_NOW": "1", "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(report)}
    )
    process = subprocess.Popen(
        arm.command([path, *probe], variables, wrapped=False),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        _, complaint = process.communicate(timeout=PROBE_TIMEOUT_S)
    except subprocess.TimeoutExpired as expired:
        process.kill()
        process.communicate()
        raise WrongOutput(f"{path} did not start within {PROBE_TIMEOUT_S} s.") from expired
    if process.returncode != 0:
        said = complaint.decode(errors="replace").strip().splitlines()
        raise WrongOutput(
            f"{path} {' '.join(probe)} ended with status {process.returncode}: {said[-1] if said else 'no message'}"
        )
    written = report.with_name(f"{report.name}.{process.pid}")
    owners = _owners(written.read_text(errors="replace"), path) if written.exists() else {}
    for other in home.glob(f"{report.name}.*"):
        other.unlink()
    for symbol in _ENTRY_POINTS:
        if symbol in owners:
            return owners[symbol]
    raise CannotMeasure(f"{path} binds no malloc dynamically, so no allocator can be preloaded into it.")


def _owners(report: str, program: str) -> dict[str, str]:
    """Map allocation symbols to the object they are bound to in `program`, or in any object it loads.

    A program at a fixed address that takes malloc's address lends other objects its own jump slot; its
    binding to another object is where that slot leads, so it wins over bindings to the program.
    """
    own: dict[str, str] = {}
    any_object: dict[str, str] = {}
    for match in _BINDING.finditer(report):
        symbol, owner = match["symbol"], match["owner"]
        if symbol not in _ENTRY_POINTS:
            continue
        any_object[symbol] = owner
        if match["user"] == program and own.get(symbol, program) == program:
            own[symbol] = owner
    return own or any_object


def prove_allocator(path: str, probe: Sequence[str], arm: Arm, home: Path) -> tuple[Arm, str]:
    """Return the arm to run `path` with, and the object that provably serves its malloc.

    A program may be linked with an allocator of its own (Debian's redis-server is, with jemalloc). For
    the libc arm the libc itself is then preloaded, which puts it first in the search order. Raises
    CannotMeasure when the object bound is not the one asked for.
    """
    owner = bound_malloc(path, probe, arm, home)
    if arm.preload:
        if Path(owner).resolve() != Path(arm.preload):
            raise CannotMeasure(
                f"{path} binds malloc to {owner}, not to {arm.preload}; check that the object exports malloc."
            )
        return arm, owner
    if _is_libc(owner):
        return arm, owner
    libc_arm = replace(arm, preload="libc.so.6")
    owner = bound_malloc(path, probe, libc_arm, home)
    if not _is_libc(owner):
        raise CannotMeasure(f"{path} binds malloc to {owner} even with the libc preloaded.")
    return libc_arm, owner


def _is_libc(path: str) -> bool:
    return Path(path).name.startswith("libc.so")
