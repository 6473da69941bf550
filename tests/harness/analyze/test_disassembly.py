"""Disassembly and inlining on a small object that is compiled here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.analyze.disassembly import Instruction, disassemble, executed_instructions, side_by_side
from harness.analyze.inlining import cost_by_source_function, parse_frames, resolve
from harness.model.errors import CannotMeasure

SOURCE = """
static inline __attribute__((always_inline)) long push(long *list, long value) {{
    *list += value{extra};
    return *list;
}}
long fast_free(long *list, long value) {{ return push(list, value) + 1; }}
"""


def compiled(folder: Path, name: str, extra: str = "") -> Path:
    source = folder / f"{name}.c"
    source.write_text(SOURCE.format(extra=extra))
    target = folder / f"{name}.so"
    subprocess.run(["gcc", "-O2", "-g", "-shared", "-fPIC", "-o", str(target), str(source)], check=True)
    return target


def test_one_instruction_more_stands_alone_in_its_row(tmp_path: Path) -> None:
    before = disassemble(compiled(tmp_path, "before"), "fast_free")
    after = disassemble(compiled(tmp_path, "after", " ^ 5"), "fast_free")
    executed = ({item.address: 100 for item in before}, {item.address: 100 for item in after})
    rows = side_by_side(before, after, *executed, (100, 100))
    marked = [row for row in rows if row.mark != " "]
    assert len(after) == len(before) + 1
    assert len(marked) == 1 and marked[0].mark == ">" and marked[0].after is not None
    assert "xor" in marked[0].after.text and marked[0].after.executed == 1.0
    old, new = executed_instructions(rows)
    assert new - old == pytest.approx(1.0)


def test_a_function_that_is_not_there_has_no_instructions(tmp_path: Path) -> None:
    assert disassemble(compiled(tmp_path, "before"), "nowhere") == ()


def test_a_file_that_is_no_binary_is_one_sentence(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("not a binary")
    with pytest.raises(CannotMeasure, match="nm cannot read text.so"):
        disassemble(text, "free")


def test_moved_code_has_the_same_shape() -> None:
    one = Instruction(0x10, "jne 1200 <free+0x20>")
    other = Instruction(0x90, "jne 1340 <free+0x28>")
    assert one.shape == other.shape
    assert (
        Instruction(0, "mov 0x2ec9(%rip),%rax # 3fe8 <x>").shape == Instruction(0, "mov 0x1f(%rip),%rax # 9 <x>").shape
    )
    assert Instruction(0, "mov 0x8(%rdi),%rax").shape != Instruction(0, "mov 0x10(%rdi),%rax").shape


def test_inlined_code_belongs_to_the_function_it_was_written_in(tmp_path: Path) -> None:
    binary = compiled(tmp_path, "before")
    listing = disassemble(binary, "fast_free")
    frames = resolve(binary, [item.address for item in listing])
    chains = {tuple(frame.function for frame in chain) for chain in frames.values()}
    assert ("push", "fast_free") in chains
    costs = cost_by_source_function({item.address: 7 for item in listing}, frames)
    assert costs["push"] > 0 and costs["fast_free"] > 0
    assert sum(costs.values()) == 7 * len(listing)


def test_addresses_without_line_information_have_no_frames() -> None:
    assert parse_frames("0x0000000000001000\n??\n??:0\n") == {0x1000: ()}
    assert cost_by_source_function({0x1000: 3}, {0x1000: ()}) == {"???": 3}
