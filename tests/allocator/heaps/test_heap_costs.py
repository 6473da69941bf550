"""What a heap costs in instructions, counted by callgrind: its life, and its end against freeing each block."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("TIDEMARK_BUILD", REPOSITORY / "build" / "release")).resolve()

MOST_INSTRUCTIONS_A_LIFE = 1500
MOST_SHARE_OF_FREEING = 0.01

LIVES = 200
LIFE = """
#include <ebb/ebb.h>
#include <stdlib.h>
__attribute__((noinline)) void measured(int lives) {
  for (int i = 0; i < lives; ++i) {
    ebb_heap_t* heap = ebb_heap_new();
    if (ebb_heap_malloc(heap, 200) == NULL || !ebb_heap_destroy(heap)) abort();
  }
}
int main(void) {
  ebb_heap_destroy(ebb_heap_new()); /* what the first heap of a process costs is another question */
  measured(LIVES);
  return 0;
}
"""
END = """
#include <ebb/ebb.h>
#include <stdlib.h>
enum { kBlocks = (100 << 20) / SIZE };
static void* blocks[kBlocks];
__attribute__((noinline)) void measured(ebb_heap_t* heap) {
#ifdef AT_ONCE
  if (!ebb_heap_destroy(heap)) abort();
#else
  (void)heap;
  for (int i = 0; i < kBlocks; ++i) ebb_free(blocks[i]);
#endif
}
int main(void) {
  ebb_heap_t* heap = ebb_heap_new();
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = ebb_heap_malloc(heap, SIZE);
    if (blocks[i] == NULL) abort();
  }
  ebb_heap_destroy(ebb_heap_new()); /* what the first one costs is another question */
  ebb_free(ebb_malloc(1));
  measured(heap);
  return 0;
}
"""


def count(folder: Path, source: str, *definitions: str) -> int:
    """Return the instructions that the function `measured` of a C program takes."""
    (folder / "program.c").write_text(source, encoding="utf-8")
    command = ["gcc", "-O2", f"-I{REPOSITORY / 'allocator' / 'include'}", *(f"-D{name}" for name in definitions),
               "program.c", "-o", "program", f"-L{BUILD}", "-lebb", f"-Wl,-rpath,{BUILD}"]  # fmt: skip
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    command = ["valgrind", "--tool=callgrind", "--toggle-collect=measured", "--callgrind-out-file=/dev/null", "./program"]
    environment = {"PATH": os.defpath, "LC_ALL": "C", "EBB_SCAVENGER": "0"}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    collected = re.search(r"Collected : (\d+)", ran.stderr)
    assert collected is not None and int(collected[1]) > 0, f"callgrind collected nothing: {ran.stderr}"
    return int(collected[1])


def test_a_life_of_a_heap_with_one_block(tmp_path: Path) -> None:
    life = count(tmp_path, LIFE, f"LIVES={LIVES}") / LIVES
    print(f"{life:.0f} instructions for a heap made, a block of 200 bytes, the heap destroyed")
    assert life <= MOST_INSTRUCTIONS_A_LIFE


@pytest.mark.parametrize("size", [16, 32, 200, 512, 1024, 2048])
def test_the_end_of_a_heap_of_100_megabytes(tmp_path: Path, size: int) -> None:
    at_once = count(tmp_path, END, f"SIZE={size}", "AT_ONCE")
    one_by_one = count(tmp_path, END, f"SIZE={size}")
    print(f"blocks of {size} bytes: {at_once} instructions at once, {one_by_one} one by one: {at_once / one_by_one:.2%}")
    assert at_once <= one_by_one * MOST_SHARE_OF_FREEING
