"""Builds the launcher (`harness/collect/launcher.c`) once per content; every measured program is started by it."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from harness.build.commands import run_logged
from harness.model.errors import CannotMeasure
from harness.model.layout import Layout

_SOURCE = Path(__file__).resolve().parents[1] / "collect" / "launcher.c"


def launcher_path(layout: Layout) -> Path:
    """Return the compiled launcher, building it when its source changed; CannotMeasure without a C compiler."""
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    target = layout.build / "launcher" / digest / "launch"
    if target.is_file():
        return target
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise CannotMeasure("There is no C compiler for the launcher: run `apt-get install gcc libc6-dev`.")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"launch.{os.getpid()}")
    # Static, because a small address space of its own is the launcher's purpose.
    command = [compiler, "-O1", "-static", "-Wall", "-Wextra", "-o", str(temporary), str(_SOURCE)]
    run_logged(command, target.parent / "build.log", "The launcher", layout.root)
    temporary.rename(target)
    return target
