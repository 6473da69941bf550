"""Resolves inlining: which source function each machine instruction was written in.

Called by explain. Runs addr2line once a binary. The compiler's choice of what to inline moves cost from
symbol to symbol though nobody touched the code; summed by source function it stays where it was written.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.model.errors import CannotMeasure

_PLACE = re.compile(r"^(.*):(\d+|\?)(?: \(discriminator \d+\))?$")


@dataclass(frozen=True)
class Frame:
    """One level of inlining, innermost first in a chain."""

    function: str
    file: str
    line: int
    """0 where the compiler recorded none."""


def resolve(binary: Path, addresses: Iterable[int]) -> dict[int, tuple[Frame, ...]]:
    """Return the chain of frames of each address; an address without line information has none.

    CannotMeasure when addr2line is missing or fails.
    """
    wanted = sorted(set(addresses))
    if not wanted:
        return {}
    tool = shutil.which("addr2line")
    if tool is None:
        raise CannotMeasure("addr2line is missing: run `apt-get install binutils`.")
    done = subprocess.run(
        [tool, "-a", "-i", "-f", "-C", "-e", str(binary)], input="\n".join(f"{address:#x}" for address in wanted),
        capture_output=True, text=True, errors="replace", env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    if done.returncode != 0:
        words = done.stderr.strip().splitlines()
        raise CannotMeasure(f"addr2line cannot read {binary.name}: {words[-1] if words else 'no message'}.")
    return parse_frames(done.stdout)


def parse_frames(output: str) -> dict[int, tuple[Frame, ...]]:
    """Return the frames by address in what `addr2line -a -i -f` printed."""
    chains: dict[int, list[Frame]] = {}
    current: list[Frame] = []
    function: str | None = None
    for line in output.splitlines():
        if function is None and re.fullmatch(r"0x[0-9a-f]+", line):
            current = chains.setdefault(int(line, 16), [])
        elif function is None:
            function = line
        else:
            match = _PLACE.match(line)
            if match is not None and function != "??":
                number = match.group(2)
                current.append(Frame(function, match.group(1), int(number) if number != "?" else 0))
            function = None
    return {address: tuple(frames) for address, frames in chains.items()}


def cost_by_source_function(executed: Mapping[int, int], frames: Mapping[int, tuple[Frame, ...]]) -> Counter[str]:
    """Return executions by the function each instruction was written in; `???` holds what has no line information."""
    totals: Counter[str] = Counter()
    for address, count in executed.items():
        chain = frames.get(address, ())
        totals[chain[0].function if chain else "???"] += count
    return totals
