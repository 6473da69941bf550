"""Builds of libebb.so for the census: the release build, one by clang, and one with an instruction too many."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
JOBS = "2"
OBJECT_FOLDERS = ("ebb_objects.dir", "ebb_operators.dir")


def release_folder() -> Path:
    """Return the build folder under test."""
    return Path(os.environ.get("TIDEMARK_BUILD", REPOSITORY / "build" / "release")).resolve()


def release_library() -> Path:
    """Return libebb.so of the build folder under test."""
    path = release_folder() / "libebb.so"
    assert path.is_file(), f"{path} is missing: run `make` first, or name a build in TIDEMARK_BUILD"
    return path


def build_with(compiler: str) -> Path:
    """Build the library alone with another compiler, in a folder that is kept, and return it."""
    found = shutil.which(compiler)
    assert found, f"{compiler} is missing: run `sh harness/setup/install`"
    folder = REPOSITORY / "build" / f"census-{compiler}"
    folder.parent.mkdir(exist_ok=True)
    # Tests run side by side, and cmake must not set up one folder twice at the same time.
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run("cmake", "-S", str(REPOSITORY), "-B", str(folder), f"-DCMAKE_CXX_COMPILER={found}",
            f"-DCMAKE_C_COMPILER={found.replace('clang++', 'clang')}", "-DCMAKE_BUILD_TYPE=Release",
            "-DEBB_ONLY_ALLOCATOR=ON")  # fmt: skip
        run("cmake", "--build", str(folder), "-j", JOBS, "--target", "ebb_shared")
    return folder / "libebb.so"


def build_with_one_more_instruction(work: Path) -> Path:
    """Return a library as the release build makes it, but for one `nop` in malloc and one in free."""
    header = REPOSITORY / "allocator" / "heap" / "alloc.h"
    text = header.read_text(encoding="utf-8")
    for anchor in ("heap->free[cls] = block->next;", "block->next = page->free;"):
        assert anchor in text, f"{header} has no line `{anchor}` any more: plant the instruction somewhere else"
        text = text.replace(anchor, '__asm__ volatile("nop"); ' + anchor, 1)
    (work / "heap").mkdir()
    (work / "heap" / "alloc.h").write_text(text, encoding="utf-8")
    database = json.loads((release_folder() / "compile_commands.json").read_text(encoding="utf-8"))
    source = str(REPOSITORY / "allocator" / "api" / "ebb.cc")
    entry = next(e for e in database if e["file"] == source and "ebb_objects" in e["command"])
    words = shlex.split(entry["command"])
    replaced = words[words.index("-o") + 1]
    planted = work / "planted.o"
    words[words.index("-o") + 1] = str(planted)
    run(words[0], f"-I{work}", *words[1:], folder=Path(entry["directory"]))
    objects = [
        path
        for folder in OBJECT_FOLDERS
        for path in sorted((release_folder() / "allocator" / "CMakeFiles" / folder).rglob("*.o"))
        if not path.samefile(Path(entry["directory"]) / replaced)
    ]
    library = work / "libplanted.so"
    run("gcc", "-shared", "-o", str(library), str(planted), *map(str, objects))
    return library


def run(*command: str, folder: Path = REPOSITORY) -> None:
    """Run a command; its output is the test's failure when it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
