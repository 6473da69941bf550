#!/usr/bin/python3
"""Writes docs/options.md from allocator/config/options.def: `/usr/bin/python3 docs/generate_options.py`.

A test compares the page with what this would write.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from definitions import REPOSITORY, calls

SOURCE = REPOSITORY / "allocator" / "config" / "options.def"
PAGE = REPOSITORY / "docs" / "options.md"

HEAD = """\
# Options

<!-- Written by docs/generate_options.py from allocator/config/options.def: change that, then run this. -->

An option is set for a process from outside by an environment variable, `EBB_` and its name in capitals, or from
inside by `ebb_option_set("<name>", value)`, which works at any time and takes effect at the next decision. What is
decided when the process starts (marked *start*) can only be set from outside.

Values are decimal numbers or, where an option has words, one of these. A value that cannot be used is reported in one
line on standard error and the default is kept. A set-user-ID program ignores the environment.
"""

AT_START = frozenset({"profile_interval_kib", "reserve_gib", "thp", "verbose"})
"""Options that are read once, when the address space is reserved."""


@dataclass(frozen=True)
class Option:
    """One declaration. All values are in the unit that the name ends with."""

    name: str
    default: int
    minimum: int
    maximum: int
    doc: str
    words: tuple[tuple[str, int], ...]

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"EBB_{self.name.upper()}"

    def shown(self, value: int) -> str:
        """Return a value as the page writes it: by its word where it has one."""
        return next((f"`{word}`" for word, number in self.words if number == value), str(value))


def read_options(source: Path = SOURCE) -> list[Option]:
    """Return every declared option, in order."""
    words: dict[str, list[tuple[str, int]]] = {}
    for option, word, value in calls(source, "EBB_OPTION_WORD"):
        words.setdefault(option, []).append((word, int(value)))
    return [
        Option(name, int(default), int(minimum), int(maximum), doc, tuple(words.get(name, ())))
        for name, default, minimum, maximum, doc in calls(source, "EBB_OPTION")
    ]


def values_of(option: Option) -> str:
    """Return what may be given."""
    if not option.words:
        return f"{option.minimum} to {option.maximum}"
    return ", ".join(f"`{word}` ({value})" for word, value in option.words)


def page(options: list[Option]) -> str:
    """Return the whole page."""
    rows = ["| variable | default | values | meaning |", "| --- | --- | --- | --- |"]
    for option in options:
        meaning = f"{option.doc} *start*" if option.name in AT_START else option.doc
        rows.append(f"| `{option.variable}` | {option.shown(option.default)} | {values_of(option)} | {meaning} |")
    return HEAD + "\n" + "\n".join(rows) + "\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(read_options()), encoding="utf-8")


if __name__ == "__main__":
    main()
