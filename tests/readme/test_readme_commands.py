"""Every command that README shows is run: `sh` blocks as they stand, the make targets with small arguments."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHELL_BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)

HELLO = """
#include <ebb/ebb.h>
#include <stdio.h>
int main(void) {
  void* p = ebb_malloc(100);
  printf("%zu bytes from Ebb %s\\n", ebb_usable_size(p), ebb_version());
  ebb_free(p);
  return p == NULL;
}
"""


def run(command: str, directory: Path, scratch: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command in `directory` with a store and a prefix of its own; it must succeed."""
    environment = {
        **os.environ,
        "PREFIX": str(scratch / "prefix"),
        "LD_LIBRARY_PATH": str(scratch / "prefix" / "lib"),
        "TIDEMARK_DB": f"sqlite:///{scratch / 'readme.sqlite'}",
        **extra,
    }
    ended = subprocess.run(
        ["sh", "-e", "-c", command], cwd=directory, env=environment, capture_output=True, text=True, timeout=600
    )
    assert ended.returncode == 0, f"{command}\nexit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended


@pytest.mark.parametrize("block", SHELL_BLOCKS)
def test_shell_block_runs(block: str, tmp_path: Path) -> None:
    (tmp_path / "hello.c").write_text(HELLO, encoding="utf-8")
    # The program that is linked is compiled beside the scratch prefix; all else runs at the project's root.
    script = block.replace("cc -o hello hello.c", f"cd {tmp_path} && cc -o hello hello.c")
    ended = run(script, ROOT, tmp_path)
    assert ended.stdout.strip()


def test_preload_block_is_under_ebb(tmp_path: Path) -> None:
    block = next(block for block in SHELL_BLOCKS if "LD_PRELOAD" in block)
    ended = run(block.replace('print("under Ebb")', 'print(open("/proc/self/maps").read())'), ROOT, tmp_path)
    assert "libebb.so" in ended.stdout


def test_make_bench_measures_and_draws(tmp_path: Path) -> None:
    ended = run("make bench", ROOT, tmp_path, QUICK="1", BENCH_ARGUMENTS="--set gated --no-dashboard")
    assert "ebb (tree)" in ended.stdout and "glibc" in ended.stdout


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"make (bench|test|gate|compare|install)\b", README))
    assert {"bench", "test", "gate", "compare", "install"} <= targets
    for target in targets:
        ended = subprocess.run(["make", "-n", target, "A=HEAD", "B=HEAD"], cwd=ROOT, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr


def test_every_tidemark_command_of_the_readme_exists() -> None:
    names = set(re.findall(r"\./tidemark (\w+)", README))
    assert {"bisect", "pin", "selftest", "doctor", "run", "report", "list"} <= names
    for name in names:
        ended = subprocess.run([ROOT / "tidemark", name, "--help"], capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), f"README links to {target}, which does not exist"
