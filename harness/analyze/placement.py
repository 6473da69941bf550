"""Finds the code that callgrind counted but did not place: what lies outside an object's section `.text`.

Called by explain, compare and the gate before they read a profile. Callgrind takes an object for the range of its
`.text` alone, so code that a linker script keeps apart (seldom used, or used at load only) is counted under the
object `???`, at absolute addresses and without lines. Its functions keep their names, and those are in the object's
symbol table: they tell where the object was loaded. Runs nm and addr2line; no state.

Invariant: only the names of places change. No count is added, lost or moved from one function to another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from harness.analyze.disassembly import function_extents
from harness.analyze.inlining import resolve
from harness.analyze.profile_diff import plain_name
from harness.collect.callgrind_profile import UNKNOWN, Call, Function, Line, Profile

_PAGE_BYTES = 4096
"""Objects are loaded at multiples of this."""

Extents = Mapping[str, set[tuple[int, int]]]
"""By name: (address, size) of the functions called that."""


def place(profile: Profile, binary: Path) -> Profile:
    """Return `profile` with the functions of `binary` that callgrind could not place where they belong.

    A profile without such functions is returned as it is, as are functions that lie in no symbol of `binary`.
    CannotMeasure when binutils is missing or cannot read `binary`.
    """
    if not profile.unplaced:
        return profile
    extents = _with_clones(function_extents(binary))
    base = _load_address(profile.unplaced, extents)
    if base is None:
        return profile
    home = {
        function: function._replace(object=str(binary))
        for function, addresses in profile.unplaced.items()
        if _lies_within(addresses, base, extents.get(plain_name(function.name), set()))
    }
    return _moved(profile, home, base, binary)


def _with_clones(extents: Extents) -> Extents:
    """Return the extents by plain name: the parts that a compiler splits off are places of their function."""
    found: dict[str, set[tuple[int, int]]] = {}
    for name, places in extents.items():
        found.setdefault(plain_name(name), set()).update(places)
    return found


def _load_address(unplaced: Mapping[Function, set[int]], extents: Extents) -> int | None:
    """Return where the binary was loaded, on the word of most functions; None when none can tell.

    A function tells when its name stands for one place and that, with what ran of it, leaves one page boundary.
    """
    votes: Counter[int] = Counter()
    for function, addresses in unplaced.items():
        places = extents.get(plain_name(function.name), set())
        if len(places) == 1:
            ((start, size),) = places
            least = max(addresses) - (start + size - 1)
            most = min(addresses) - start
            first = -(-least // _PAGE_BYTES) * _PAGE_BYTES
            if 0 <= first <= most < first + _PAGE_BYTES:
                votes[first] += 1
    return votes.most_common(1)[0][0] if votes else None


def _lies_within(addresses: set[int], base: int, places: set[tuple[int, int]]) -> bool:
    return all(any(0 <= address - base - start < size for start, size in places) for address in addresses)


def _moved(profile: Profile, home: Mapping[Function, Function], base: int, binary: Path) -> Profile:
    owner = {address: function for function in home for address in profile.unplaced[function]}
    frames = resolve(binary, (address - base for address in owner))
    lines = Counter({line: cost for line, cost in profile.lines.items() if line.function not in home})
    addresses = Counter(profile.addresses)
    for address, function in owner.items():
        cost = addresses.pop((UNKNOWN, address))
        addresses[str(binary), address - base] += cost
        chain = frames.get(address - base, ())
        file, line = (chain[0].file, chain[0].line) if chain else (UNKNOWN, 0)
        lines[Line(home[function], file, line)] += cost

    def edge(call: Call) -> Call:
        return Call(home.get(call.caller, call.caller), home.get(call.callee, call.callee))

    return replace(
        profile,
        functions=Counter({home.get(function, function): cost for function, cost in profile.functions.items()}),
        lines=lines,
        addresses=addresses,
        calls=Counter({edge(call): count for call, count in profile.calls.items()}),
        inclusive=Counter({edge(call): cost for call, cost in profile.inclusive.items()}),
        unplaced={function: places for function, places in profile.unplaced.items() if function not in home},
    )
