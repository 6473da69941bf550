"""Builds the C programs of the harness, each once per content: the launcher that starts every measured program, and the
object that asks an allocator for its statistics."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from harness.build.commands import run_logged
from harness.model.errors import CannotMeasure
from harness.model.layout import Layout

_COLLECT = Path(__file__).resolve().parents[1] / "collect"


def launcher_path(layout: Layout) -> Path:
    """Return the compiled launcher, building it when its source changed; CannotMeasure without a C compiler."""
    # Static, because a small address space of its own is the launcher's purpose.
    return _built(layout, _COLLECT / "launcher.c", "launch", ("-static",))


def statistics_probe_path(layout: Layout) -> Path:
    """Return the compiled object that is preloaded to ask for statistics; CannotMeasure without a C compiler."""
    return _built(layout, _COLLECT / "statistics_probe.c", "libstatistics.so", ("-shared", "-fPIC"))


def _built(layout: Layout, source: Path, name: str, flags: tuple[str, ...]) -> Path:
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    target = layout.build / "launcher" / digest / name
    if target.is_file():
        return target
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise CannotMeasure("There is no C compiler for the launcher: run `apt-get install gcc libc6-dev`.")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{name}.{os.getpid()}")
    command = [compiler, "-O1", *flags, "-Wall", "-Wextra", "-o", str(temporary), str(source), "-ldl"]
    run_logged(command, target.parent / "build.log", source.name, layout.root)
    temporary.rename(target)
    return target
