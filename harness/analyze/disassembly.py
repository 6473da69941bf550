"""The machine code of one function in two builds, side by side, with how often each instruction ran.

Called by explain. Runs objdump; everything after that is pure. Executed counts come from a callgrind
profile taken with `--dump-instr=yes`, whose addresses are relative to the object as objdump's are.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from harness.model.errors import CannotMeasure

_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(.*)$")
_TARGET = re.compile(r"\b[0-9a-f]+ <([^>+]+)(\+0x[0-9a-f]+)?>")
_PADDING = re.compile(r"^((data16 |cs )*nop[lw] |xchg %ax,%ax)")
_COMMENT = re.compile(r"\s+#.*$")
_RELATIVE = re.compile(r"-?0x[0-9a-f]+\(%rip\)")


@dataclass(frozen=True)
class Instruction:
    """One machine instruction as objdump prints it."""

    address: int
    text: str

    @property
    def shape(self) -> str:
        """The text without what moves though the code did not: jump targets within a function, data addresses."""
        if _PADDING.match(self.text):
            return "(padding)"
        shape = _TARGET.sub(lambda match: f"<{match.group(1)}>", self.text)
        return _RELATIVE.sub("(%rip)", _COMMENT.sub("", shape))


@dataclass(frozen=True)
class Side:
    """One instruction in one build, and its executions per operation."""

    address: int
    text: str
    executed: float


@dataclass(frozen=True)
class Row:
    """A line of the side-by-side view; a side is None where the other build has no counterpart."""

    before: Side | None
    after: Side | None
    mark: str
    """` ` the same, `<` only before, `>` only after, `|` rewritten."""


def disassemble(binary: Path, symbol: str) -> tuple[Instruction, ...]:
    """Return the instructions of `symbol`, none if the binary has no such function.

    Found by address, since one function often has several names (`free`, `ebb_free`, `cfree`).
    CannotMeasure when binutils is missing or refuses the file.
    """
    place = _extent(binary, symbol)
    if place is None:
        return ()
    start, size = place
    listing = _binutils("objdump", "-d", "-C", "--no-show-raw-insn", f"--start-address={start:#x}",
                        f"--stop-address={start + size:#x}", str(binary), binary=binary)  # fmt: skip
    found = (_INSTRUCTION.match(line) for line in listing.splitlines())
    return tuple(
        Instruction(int(match.group(1), 16), " ".join(match.group(2).split())) for match in found if match is not None
    )


def function_starts(binary: Path) -> dict[str, int]:
    """Return the address of every named function of a binary; aliases each have their own name."""
    starts: dict[str, int] = {}
    for table in ((), ("-D",)):
        for name, address, _ in _symbols(binary, table):
            starts.setdefault(name, address)
    return starts


def function_extents(binary: Path) -> dict[str, set[tuple[int, int]]]:
    """Return (address, size) of every named function of a binary; a static function's name may stand for several."""
    extents: dict[str, set[tuple[int, int]]] = {}
    for table in ((), ("-D",)):
        for name, address, size in _symbols(binary, table):
            extents.setdefault(name, set()).add((address, size))
    return extents


def _extent(binary: Path, symbol: str) -> tuple[int, int] | None:
    """Return (address, size) of a function, from the full symbol table or, when stripped, the dynamic one."""
    for table in ((), ("-D",)):
        for name, address, size in _symbols(binary, table):
            if name == symbol:
                return address, size
    return None


def _symbols(binary: Path, table: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    """Return (name, address, size) of the functions in one symbol table."""
    listing = _binutils("nm", "-S", "-C", "--defined-only", *table, str(binary), binary=binary)
    for line in listing.splitlines():
        words = line.split(maxsplit=3)
        if len(words) == 4 and words[2] in "tTwWiu":
            yield words[3].split("@")[0], int(words[0], 16), int(words[1], 16)


def _binutils(tool: str, *arguments: str, binary: Path) -> str:
    path = shutil.which(tool)
    if path is None:
        raise CannotMeasure(f"{tool} is missing: run `apt-get install binutils`.")
    done = subprocess.run(
        [path, *arguments], capture_output=True, text=True, errors="replace", env={**os.environ, "LC_ALL": "C"}
    )
    if done.returncode != 0:
        words = done.stderr.strip().splitlines()
        raise CannotMeasure(f"{tool} cannot read {binary.name}: {words[-1] if words else 'no message'}.")
    return done.stdout


def side_by_side(
    before: Sequence[Instruction],
    after: Sequence[Instruction],
    executed_before: Mapping[int, int],
    executed_after: Mapping[int, int],
    operations: tuple[int, int],
) -> tuple[Row, ...]:
    """Align two listings by the shape of their instructions; counts become executions per operation."""
    old = [Side(item.address, item.text, executed_before.get(item.address, 0) / operations[0]) for item in before]
    new = [Side(item.address, item.text, executed_after.get(item.address, 0) / operations[1]) for item in after]
    matcher = SequenceMatcher(None, [item.shape for item in before], [item.shape for item in after], autojunk=False)
    rows: list[Row] = []
    for tag, low, high, new_low, new_high in matcher.get_opcodes():
        left: list[Side | None] = list(old[low:high])
        right: list[Side | None] = list(new[new_low:new_high])
        longest = max(len(left), len(right))
        left += [None] * (longest - len(left))
        right += [None] * (longest - len(right))
        rows += [Row(one, other, _mark(tag, one, other)) for one, other in zip(left, right)]
    return tuple(rows)


def _mark(tag: str, one: Side | None, other: Side | None) -> str:
    if tag == "equal":
        return " "
    if one is None:
        return ">"
    return "<" if other is None else "|"


def executed_instructions(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the executed instructions per operation of both sides."""
    return (
        sum(row.before.executed for row in rows if row.before),
        sum(row.after.executed for row in rows if row.after),
    )
