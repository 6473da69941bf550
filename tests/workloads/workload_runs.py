"""Runs the built workloads for the tests, and knows the smallest useful run of each.

The binaries are those of the build folder that TIDEMARK_BUILD names, `build/release` by default.
"""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiny_arguments import TINY

REPOSITORY = Path(__file__).resolve().parents[2]
WORKLOADS = REPOSITORY / "workloads"
RUN_TIMEOUT_S = 60
"""After this a workload hangs; none of the tiny runs needs a hundredth of it."""

REFERENCES = {
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc2.0"),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    "tbbmalloc": ("libtbbmalloc_proxy.so.2", "libtbbmalloc2"),
}
"""Shared object and Debian package of the reference allocators that are swapped by preload, by adapter name."""

Event = dict[str, Any]


@dataclass(frozen=True)
class Finished:
    """A workload that has ended."""

    code: int
    events: list[Event]
    output: str
    errors: str

    @property
    def start(self) -> Event:
        """The first event."""
        return self.events[0]

    @property
    def end(self) -> Event:
        """The last event."""
        return self.events[-1]

    @property
    def checkpoints(self) -> list[Event]:
        """The events between start and end."""
        return self.events[1:-1]


def build_folder() -> Path:
    """Return the build folder under test."""
    return Path(os.environ.get("TIDEMARK_BUILD", REPOSITORY / "build" / "release")).resolve()


def binary(name: str) -> Path:
    """Return the path of a built file in the workloads' output; fails the test when it is missing."""
    path = build_folder() / "workloads" / name
    assert path.is_file(), f"{path} is missing: run `make` first, or name a build in TIDEMARK_BUILD"
    return path


def manifests() -> dict[str, dict[str, Any]]:
    """Return every manifest of a binary that speaks the protocol, by name."""
    found = {}
    for path in sorted(WORKLOADS.glob("*/workload.toml")):
        manifest = tomllib.loads(path.read_text(encoding="utf-8"))
        if manifest["kind"] == "binary":
            found[manifest["name"]] = manifest
    return found


def reference_library(name: str) -> Path:
    """Return the shared object of a reference allocator; fails the test when its package is not installed."""
    file, package = REFERENCES[name]
    found = sorted(Path("/usr/lib").glob(f"*/{file}"))
    assert found, f"{file} is missing: run `apt-get install {package}`"
    return found[0]


def scudo_library() -> Path:
    """Return Scudo's shared object, which lies in a compiler's folder."""
    found = sorted(Path("/usr/lib").glob("llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-*.so"))
    native = [path for path in found if path.stem.endswith(os.uname().machine)]
    assert native, "Scudo is missing: run `apt-get install libclang-rt-14-dev`"
    return native[0]


def clean_environment(preload: Sequence[Path] = (), extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment that holds only what a run needs."""
    environment = {"PATH": "/usr/bin:/bin", **(extra or {})}
    if preload:
        environment["LD_PRELOAD"] = ":".join(str(path) for path in preload)
    return environment


def run(
    name: str,
    *arguments: str,
    preload: Sequence[Path] = (),
    extra: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> Finished:
    """Run a workload to its end and return what it said on standard output."""
    done = subprocess.run(
        [binary(name), *arguments],
        env=clean_environment(preload, extra),
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        pass_fds=pass_fds,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return Finished(done.returncode, [json.loads(line) for line in lines], done.stdout, done.stderr)


def run_tiny(name: str, *more: str, preload: Sequence[Path] = ()) -> Finished:
    """Run a workload with its smallest useful arguments; the test fails when it does not end well."""
    done = run(name, *TINY[name], *more, preload=preload)
    assert done.code == 0, f"{name} ended with {done.code}: {done.errors}"
    return done


def compile_shared(source: Path, target: Path, *flags: str) -> Path:
    """Compile a C file to a shared object and return its path; fails the test with the compiler's words."""
    common = ("-std=gnu17", "-O1", "-g", "-fPIC", "-shared", "-Wall", "-Wextra")
    command = ["cc", *common, *flags, "-o", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return target
