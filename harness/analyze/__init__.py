"""Judging and explaining: from samples to verdicts, from two profiles to the reason they differ.

Everything here is a pure function of its arguments: no module of this package starts a process,
opens the store or reads a clock, except `disassembly` (which runs objdump) and `inlining` (which runs
addr2line). The commands in `harness.cli` feed it. docs/measuring.md explains every rule.
"""
