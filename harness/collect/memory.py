"""Reads the memory of a process tree from /proc.

smaps_rollup is exact but walks the page tables with the map lock held: it is read at checkpoints, where the workload
waits, and by the sampler only for trees of processes. After a fork pages are shared, so a tree's figure is the sum of
Pss, never of Rss. A process that ends while it is read counts as gone. Stateless, so safe from any thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_KIB = 1024


@dataclass(frozen=True)
class MemoryReading:
    """Memory of a process tree at one instant, in bytes."""

    processes: int
    rss: int
    """Of the one process, or the sum of Pss when there are several."""
    pss: int
    anonymous: int
    lazyfree: int
    """Pages given up by MADV_FREE that the kernel has not taken yet: in Rss, but as good as free."""
    anon_huge: int
    private: int
    swap: int


def read_tree(pid: int) -> MemoryReading | None:
    """Return the memory of `pid` and its descendants; None when it is gone."""
    readings = [fields for fields in (_rollup(member) for member in descendants(pid)) if fields]
    if not readings:
        return None

    def total(*names: str) -> int:
        return sum(fields.get(name, 0) for fields in readings for name in names) * _KIB

    single = len(readings) == 1
    return MemoryReading(
        processes=len(readings),
        rss=total("Rss") if single else total("Pss"),
        pss=total("Pss"),
        anonymous=total("Anonymous") if single else total("Pss_Anon"),
        lazyfree=total("LazyFree"),
        anon_huge=total("AnonHugePages"),
        private=total("Private_Clean", "Private_Dirty"),
        swap=total("SwapPss"),
    )


def descendants(pid: int) -> list[int]:
    """Return `pid` and all processes below it, as far as they can be seen."""
    found, queue = [], [pid]
    while queue:
        current = queue.pop()
        found.append(current)
        try:
            tasks = list(Path(f"/proc/{current}/task").iterdir())
        except OSError:
            continue
        for task in tasks:
            try:
                queue += [int(word) for word in (task / "children").read_text().split()]
            except OSError:
                continue
    return found


def high_water_bytes(pid: int) -> int | None:
    """Return VmHWM: the most that was resident since the process's exec or the last reset; None when it is gone."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * _KIB
    except OSError:
        return None
    return None


def reset_high_water(pid: int) -> bool:
    """Start a new high-water mark, so that each round has a peak of its own; False where that is not allowed."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _rollup(pid: int) -> dict[str, int]:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return {}
    fields: dict[str, int] = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and len(words) == 2 and words[1] == "kB":
            fields[name] = int(words[0])
    return fields
