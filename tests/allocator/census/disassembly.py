"""Reads the fast path of a function out of a shared object: the instructions from its entry to its return.

Slow paths leave the function by a jump into another one or by a call, so of all ways through it that end in a return
the shortest is the fast path. Operands that move with every build (displacements of data, targets of jumps) are written as names.
"""

from __future__ import annotations

import re
import subprocess
from collections import deque
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Instruction:
    """One line of objdump's output; `target` is where a jump inside of the library goes."""

    address: int
    mnemonic: str
    operands: str
    target: int | None

    def text(self) -> str:
        """Return what stays the same when nothing but addresses change."""
        if self.mnemonic.startswith("j"):
            return f"{self.mnemonic} elsewhere"
        operands = re.sub(r"\s*#.*", "", self.operands)
        operands = re.sub(r"-?0x[0-9a-f]+\(%rip\)", "datum(%rip)", operands)
        return f"{self.mnemonic} {operands}".strip()


def extent_of(library: Path, symbol: str) -> range:
    """Return the addresses of an exported function; AssertionError when the library does not export it."""
    command = ["nm", "-D", "-S", "--defined-only", str(library)]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[3].split("@")[0] == symbol:
            return range(int(fields[0], 16), int(fields[0], 16) + int(fields[1], 16))
    raise AssertionError(f"{library} exports no {symbol}")


def disassemble(library: Path) -> dict[int, Instruction]:
    """Return all instructions of the library by address."""
    command = ["objdump", "-d", "--no-show-raw-insn", "-w", "-j", ".text", str(library)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {}
    for line in listing.stdout.splitlines():
        match = re.match(r"\s*([0-9a-f]+):\t(?:(?:bnd|notrack|rep|repz|lock|data16|cs) )*(\S+)\s*(.*)", line)
        if match is None:
            continue
        address, mnemonic, operands = int(match[1], 16), match[2], match[3].strip()
        jump = re.match(r"([0-9a-f]+) <", operands) if mnemonic.startswith("j") else None
        found[address] = Instruction(address, mnemonic, operands, int(jump[1], 16) if jump else None)
    return found


def fast_path(library: Path, symbol: str) -> list[str]:
    """Return the instructions that a call executes when nothing special has to be done."""
    code = disassemble(library)
    following = dict(zip(sorted(code), sorted(code)[1:]))
    extent = extent_of(library, symbol)
    waiting: deque[tuple[int, tuple[int, ...]]] = deque([(extent.start, ())])
    seen = set()
    while waiting:
        address, before = waiting.popleft()
        if address in seen or address not in extent or address not in code:
            continue
        seen.add(address)
        instruction = code[address]
        path = (*before, address)
        if instruction.mnemonic.startswith("ret"):
            return [code[at].text() for at in path]
        if instruction.mnemonic.startswith("call"):
            continue
        if instruction.target is not None:
            waiting.append((instruction.target, path))
        if instruction.mnemonic != "jmp" and address in following:
            waiting.append((following[address], path))
    raise AssertionError(f"{symbol} of {library} has no way to a return without a call")
