"""Rules about any text file. Each takes a path and a text and returns one sentence for each violation."""

from __future__ import annotations

import re

UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(?:work|home|root|Users)/[\w.-]+")
NATIVE = re.compile(r"-m(?:arch|tune|cpu)=native")
VAGUE = frozenset(("utils", "util", "helpers", "helper", "manager", "misc", "common2"))


def unfinished(path: str, text: str) -> list[str]:
    """Nothing is left for later in a file: an issue is the place for that."""
    return [f"{path}:{line}: {match}" for line, match in matches(UNFINISHED, text)]


def machine_paths(path: str, text: str) -> list[str]:
    """No path of one machine."""
    return [f"{path}:{line}: {match} is a path of one machine" for line, match in matches(MACHINE_PATH, text)]


def native_code(path: str, text: str) -> list[str]:
    """What is counted under valgrind, or elsewhere, is not built for the processor at hand."""
    return [f"{path}:{line}: {match}" for line, match in matches(NATIVE, re.sub(r"#[^\n]*", "", text))]


def vague_names(path: str, text: str) -> list[str]:
    """A file is named by what it is about."""
    stems = {part.split(".")[0].lower() for part in path.split("/")}
    return [f"{path}: name it by what it is about, not {stem}" for stem in sorted(stems & VAGUE)]


def matches(pattern: re.Pattern[str], text: str) -> list[tuple[int, str]]:
    """Return (line number, match) of each match."""
    return [
        (number, found.group(0))
        for number, line in enumerate(text.splitlines(), 1)
        for found in pattern.finditer(line)
    ]
