"""Every command that README shows is run: `sh` blocks as they stand, `make bench` over the gated set.

`make test` and `make gate` are what CI runs; that all that README names exists is tested in tests/tidy.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

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


def test_every_command_runs(tmp_path: Path) -> None:
    """One after the other: several of them build in the same folder."""
    assert len(SHELL_BLOCKS) >= 3
    (tmp_path / "hello.c").write_text(HELLO, encoding="utf-8")
    for block in SHELL_BLOCKS:
        # The program that is linked is compiled beside the scratch prefix; all else runs at the project's root.
        script = block.replace("cc -o hello hello.c", f"cd {tmp_path} && cc -o hello hello.c")
        assert run(script, ROOT, tmp_path).stdout.strip(), f"{block} printed nothing"
    bench = run("make bench", ROOT, tmp_path, QUICK="1", BENCH_ARGUMENTS="--set gated --no-dashboard")
    assert "ebb (tree)" in bench.stdout and "glibc" in bench.stdout


def test_preloaded_program_runs_under_ebb(tmp_path: Path) -> None:
    block = next(block for block in SHELL_BLOCKS if "LD_PRELOAD" in block)
    ended = run(block.replace('print("under Ebb")', 'print(open("/proc/self/maps").read())'), ROOT, tmp_path)
    assert "libebb.so" in ended.stdout
