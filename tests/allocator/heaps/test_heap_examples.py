"""The examples of docs/heaps.md are compiled without warnings and print what the page says they print."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
INCLUDE = REPOSITORY / "allocator" / "include"
PAGE = (REPOSITORY / "docs" / "heaps.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```(c|cpp)\n(.*?)```\n\nprints\n\n```text\n(.*?)```", PAGE, re.DOTALL)
COMPILERS = {"c": ["gcc", "-std=gnu11"], "cpp": ["g++", "-std=c++17"]}
TIMEOUT_S = 120


def library() -> Path:
    """Return the built library; fails the test, with what to do, when there is none."""
    build = Path(os.environ.get("TIDEMARK_BUILD", REPOSITORY / "build" / "release"))
    path = build / "libebb.so"
    assert path.is_file(), f"{path} is missing: run 'make' first, or name a build in TIDEMARK_BUILD"
    return path


def test_every_block_of_code_is_an_example() -> None:
    assert len(EXAMPLES) == len(re.findall(r"^```c(?:pp)?$", PAGE, re.MULTILINE)) > 0


@pytest.mark.parametrize(("language", "code", "output"), EXAMPLES)
def test_example_prints_what_the_page_says(language: str, code: str, output: str, tmp_path: Path) -> None:
    source = tmp_path / f"example.{language}"
    source.write_text(code, encoding="utf-8")
    program = tmp_path / "example"
    command = [*COMPILERS[language], "-O1", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", str(source), "-o", str(program)]
    command += [str(library()), f"-Wl,-rpath,{library().parent}"]
    compiled = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert compiled.returncode == 0, compiled.stderr
    ended = subprocess.run([str(program)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (ended.returncode, ended.stdout) == (0, output), ended.stderr
