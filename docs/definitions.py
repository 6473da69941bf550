"""Reads the declaration files of the allocator (options.def, counters.def): lists of calls of a C macro.

Arguments are identifiers, whole numbers and string literals, which the compiler joins when they stand side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*')
_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|(-?\w+)|([(),]))')

Argument = str


class DefinitionError(ValueError):
    """A declaration file that does not consist of macro calls with simple arguments."""


def calls(path: Path, macro: str) -> list[tuple[Argument, ...]]:
    """Return the arguments of each call of `macro` in `path`, in order. Raises DefinitionError."""
    text = _COMMENT.sub(lambda found: found[1] or "", path.read_text(encoding="utf-8"))
    return [arguments for name, arguments in _all_calls(text, path) if name == macro]


def _all_calls(text: str, path: Path) -> Iterator[tuple[str, tuple[Argument, ...]]]:
    tokens = _tokens(text, path)
    for kind, name in tokens:
        if kind != "word" or next(tokens, None) != ("mark", "("):
            raise DefinitionError(f"{path.name}: expected a macro call at '{name}'")
        arguments: list[Argument] = []
        parts: list[str] = []
        for kind, value in tokens:
            if kind != "mark":
                parts.append(value)
                continue
            arguments.append("".join(parts))
            parts = []
            if value == ")":
                break
        else:
            raise DefinitionError(f"{path.name}: {name} is never closed")
        yield name, tuple(arguments)


def _tokens(text: str, path: Path) -> Iterator[tuple[str, str]]:
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise DefinitionError(f"{path.name}: cannot read '{text[at:].strip()[:40]}'")
        at = found.end()
        if found[1] is not None:
            yield "text", found[1].replace('\\"', '"')
        else:
            yield ("word", found[2]) if found[2] is not None else ("mark", found[3])
