#!/usr/bin/python3
"""Writes docs/statistics.md from ebb.h and counters.def: `/usr/bin/python3 docs/generate_statistics.py`.

A test compares the page with what this would write.
"""

from __future__ import annotations

import re
from pathlib import Path

from definitions import REPOSITORY, DefinitionError, calls

HEADER = REPOSITORY / "allocator" / "include" / "ebb" / "ebb.h"
COUNTERS = REPOSITORY / "allocator" / "stats" / "counters.def"
PAGE = REPOSITORY / "docs" / "statistics.md"

HEAD = """\
# Statistics

<!-- Written by docs/generate_statistics.py from ebb.h and counters.def: change these, then run this. -->

`ebb_stats_get` fills a structure, `ebb_stats_json` writes one JSON object with everything on this page, and
`ebb_stats_print` (or `malloc_stats`) prints it for people. None of them allocates, and asking costs nothing before it
is asked: levels are added up from the pages' own metadata, counters are kept where a slow path already is.

No figure is ever negative. Those of a process at rest are exact, but for the blocks that threads other than the caller
keep for their next allocations, which count as live. `resident_bytes` is an estimate from above: a large block counts
as touched.
"""

CLASSES = """\
In the JSON object, `classes` lists each size class in use: `block_bytes`, `pages`, `live_blocks`, `free_blocks`. It
also has `large_bytes` (the part of `live_bytes` in blocks with a span of their own), `span_bytes` (address space of
pages and large blocks) and `hole_bytes` (given back from inside pages), the `options` in force and the `version`.
"""


def levels(header: Path = HEADER) -> list[tuple[str, str]]:
    """Return each field of ebb_stats_t with what its comment says. Raises DefinitionError when one has none."""
    text = header.read_text(encoding="utf-8")
    found = re.search(r"typedef struct ebb_stats \{(.*?)\} ebb_stats_t;", text, re.DOTALL)
    if found is None:
        raise DefinitionError(f"{header.name} has no ebb_stats_t")
    fields = re.findall(r"\w+ (\w+);(?:\s*/\* (.*?) \*/)?", found[1], re.DOTALL)
    described = []
    for name, comment in fields:
        if not comment:
            raise DefinitionError(f"{header.name}: {name} has no comment")
        described.append((name, comment))
    return described


def page() -> str:
    """Return the whole page."""
    lines = [HEAD, "## Levels", "", "| name | what it is |", "| --- | --- |"]
    lines += [f"| `{name}` | {comment} |" for name, comment in levels()]
    lines += ["", CLASSES, "## Counters", "", "They count from the process's start and never go down.", ""]
    lines += ["| name | unit | what is counted |", "| --- | --- | --- |"]
    lines += [f"| `{name}` | {unit} | {doc} |" for name, unit, doc in calls(COUNTERS, "EBB_COUNTER")]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
