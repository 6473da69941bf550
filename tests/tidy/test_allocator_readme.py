"""allocator/README.md traces the code that there is: each row names a file and a function that the file has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ALLOCATOR = Path(__file__).resolve().parents[2] / "allocator"
README = (ALLOCATOR / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([\w/.]+)` \| `(\w+)` \|", README, re.MULTILINE)


def test_traces_are_found() -> None:
    assert len(ROWS) > 30
    assert all(f"## One {word}" in README for word in ("malloc", "free", "purge"))


@pytest.mark.parametrize(("file", "function"), sorted(set(ROWS)))
def test_row_names_what_exists(file: str, function: str) -> None:
    source = (ALLOCATOR / file).read_text(encoding="utf-8")
    assert re.search(rf"\b{function}\(", source), f"allocator/{file} has no {function}: the trace is out of date"


def test_paths_exist_and_every_layer_is_listed() -> None:
    for path in re.findall(r"`((?:\w+/)+[\w.]*)`", README):
        root = ALLOCATOR.parent if path.startswith(("docs/", "build/")) else ALLOCATOR
        assert path.startswith("build/") or (root / path).exists(), f"{path} is named but does not exist"
    layers = {path.name for path in ALLOCATOR.iterdir() if path.is_dir()} - {"include", "package"}
    assert layers == set(re.findall(r"`(\w+)/`", README)) - {"package"}
