"""Reads callgrind's profile format (version 1) into counts by function, line, instruction and call.

A parser of our own, because callgrind_annotate gives rounded text for people and cannot add up the files of a
process tree. Understood: name compression in its three spaces (object, file, function), position compression
(`+n`, `-n`, `*`) for one or two position columns, inlined code (`fi=`, `fe=`), calls with their inclusive cost,
jumps, several parts, threads, and several files one after the other (one of each process).

Costs are of the first event (Ir). Pure functions; a `Profile` is filled by one thread.

Invariant (checked by the tests on live profiles): the self costs of all functions add up to the total.
"""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import dataclass, field
from typing import Iterable, NamedTuple


UNKNOWN = "???"
"""What callgrind writes for an object or file that it does not know."""


class BrokenProfile(Exception):
    """The text is no callgrind profile. The message says which line."""


class Function(NamedTuple):
    """A function as callgrind knows it."""

    object: str
    """Path of the object file it lies in."""
    file: str
    """Source file of its definition; `???` without debug information."""
    name: str


class Line(NamedTuple):
    """A source line on behalf of a function: with inlining its file may be another than the function's."""

    function: Function
    file: str
    line: int


class Call(NamedTuple):
    """A call edge."""

    caller: Function
    callee: Function


@dataclass
class Profile:
    """Instruction counts of one execution, all its processes together."""

    total: int = 0
    functions: Counter[Function] = field(default_factory=Counter)
    """Self cost."""
    lines: Counter[Line] = field(default_factory=Counter)
    """Self cost."""
    addresses: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Self cost by (object, address), when the profile was taken by instruction."""
    calls: Counter[Call] = field(default_factory=Counter)
    """How often."""
    inclusive: Counter[Call] = field(default_factory=Counter)
    """Cost spent below the calls."""
    unplaced: dict[Function, set[int]] = field(default_factory=dict)
    """By function whose object callgrind did not know: the addresses that ran, absolute. It takes an object for its
    section `.text` alone; `harness.analyze.placement` finds where the code of its other sections belongs."""
    processes: int = 0

    def by_name(self) -> Counter[str]:
        """Return self cost by function name; the same name in several files is added up."""
        names: Counter[str] = Counter()
        for function, cost in self.functions.items():
            names[function.name] += cost
        return names

    def in_object(self, path: str) -> int:
        """Return the self cost of all functions of one object."""
        return sum(cost for function, cost in self.functions.items() if function.object == path)


def parse(data: bytes) -> Profile:
    """Return the profile in `data` (text or its gzip); BrokenProfile when it is none."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return parse_lines(data.decode("utf-8", errors="replace").splitlines())


def pack(files: Iterable[bytes]) -> bytes:
    """Return several profiles as one, compressed reproducibly; `parse` reads it."""
    return gzip.compress(b"\n".join(files), compresslevel=6, mtime=0)


def parse_lines(lines: Iterable[str]) -> Profile:
    """Return the profile in `lines`; BrokenProfile when it is none."""
    reader = _Reader()
    for number, line in enumerate(lines, start=1):
        try:
            reader.take(line)
        except (ValueError, KeyError, IndexError) as error:
            raise BrokenProfile(f"line {number} of the profile cannot be read: {line[:80]!r}") from error
    if not reader.profile.processes:
        raise BrokenProfile("the file holds no callgrind profile (no `events:` line)")
    return reader.profile


class _Names:
    """One space of compressed names: `(3) name` defines, `(3)` refers."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def resolve(self, text: str) -> str:
        """Return the name that `text` stands for; KeyError when it was never defined."""
        if not text.startswith("("):
            return text
        key, _, name = text.partition(")")
        name = name.strip()
        if name:
            self._known[key] = name
            return name
        return self._known[key]


class _Reader:
    """The state of a pass over the lines."""

    def __init__(self) -> None:
        self.profile = Profile()
        self._begin_file()

    def _begin_file(self) -> None:
        self.names = {"object": _Names(), "file": _Names(), "function": _Names()}
        self.by_address = False
        self._begin_part()

    def _begin_part(self) -> None:
        self.object = self.file = UNKNOWN
        self.function: Function | None = None
        self.callee_object = self.callee_file = ""
        self.callee: Function | None = None
        self.pending_calls: int | None = None
        self.address = self.line = 0

    def take(self, text: str) -> None:
        """Take one line."""
        if not text:
            return
        first = text[0]
        if first.isdigit() or first in "+-*":
            self._cost(text)
            return
        if first == "#":
            return
        key, equals, rest = text.partition("=")
        if equals and key in _SPECIFICATIONS:
            _SPECIFICATIONS[key](self, rest)
            return
        key, colon, rest = text.partition(":")
        if colon:
            self._header(key, rest.strip())
            return
        raise ValueError(text)

    def _header(self, key: str, rest: str) -> None:
        if key == "version":
            self._begin_file()
        elif key == "positions":
            self.by_address = "instr" in rest.split()
            self._begin_part()
        elif key == "events":
            if rest.split()[0] != "Ir":
                raise ValueError(f"the first event is {rest}, not Ir")
            self.profile.processes += 1
        elif key == "totals":
            self.profile.total += int(rest.split()[0])

    def _set_object(self, rest: str) -> None:
        self.object = self.names["object"].resolve(rest)

    def _set_file(self, rest: str) -> None:
        self.file = self.names["file"].resolve(rest)

    def _set_function(self, rest: str) -> None:
        self.function = Function(self.object, self.file, self.names["function"].resolve(rest))
        self.callee_object = self.callee_file = ""

    def _set_callee_object(self, rest: str) -> None:
        self.callee_object = self.names["object"].resolve(rest)

    def _set_callee_file(self, rest: str) -> None:
        self.callee_file = self.names["file"].resolve(rest)

    def _set_callee(self, rest: str) -> None:
        name = self.names["function"].resolve(rest)
        assert self.function is not None
        self.callee = Function(self.callee_object or self.object, self.callee_file or self.file, name)
        self.callee_object = self.callee_file = ""

    def _set_calls(self, rest: str) -> None:
        # The target's position is absolute to callgrind's reader too: it does not move the position.
        self.pending_calls = int(rest.split()[0])

    def _skip_jump(self, rest: str) -> None:
        """A jump line is followed by no cost; its position is the next cost line's own matter."""

    def _cost(self, text: str) -> None:
        words = text.split()
        if self.by_address:
            self.address = _position(words[0], self.address)
            words = words[1:]
        self.line = _position(words[0], self.line)
        cost = int(words[1]) if len(words) > 1 else 0
        if self.function is None:
            raise ValueError("a cost outside any function")
        # Zero calls are real: the call was made before this part began and its cost fell into it.
        if self.pending_calls is not None:
            assert self.callee is not None
            edge = Call(self.function, self.callee)
            self.profile.calls[edge] += self.pending_calls
            self.profile.inclusive[edge] += cost
            self.pending_calls = None
            return
        self.profile.functions[self.function] += cost
        self.profile.lines[Line(self.function, self.file, self.line)] += cost
        if self.by_address:
            self.profile.addresses[(self.function.object, self.address)] += cost
            if self.function.object == UNKNOWN:
                self.profile.unplaced.setdefault(self.function, set()).add(self.address)


def _position(text: str, previous: int) -> int:
    if text == "*":
        return previous
    if text[0] in "+-":
        return previous + int(text, 0) if not text[1:].startswith("0x") else previous + int(text, 16)
    return int(text, 16) if text.startswith("0x") else int(text)


_SPECIFICATIONS = {
    "ob": _Reader._set_object,
    "fl": _Reader._set_file,
    "fi": _Reader._set_file,
    "fe": _Reader._set_file,
    "fn": _Reader._set_function,
    "cob": _Reader._set_callee_object,
    "cfi": _Reader._set_callee_file,
    "cfl": _Reader._set_callee_file,
    "cfn": _Reader._set_callee,
    "calls": _Reader._set_calls,
    "jump": _Reader._skip_jump,
    "jcnd": _Reader._skip_jump,
}
