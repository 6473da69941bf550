"""Follows source lines from one revision to another, so that a line that only moved is not called changed.

Called by explain. Pure over the two texts; reading them is the caller's work.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher
from functools import lru_cache

ReadSource = Callable[[str], str | None]
"""From a file's name, as the profile has it, to its text; None when it cannot be found."""


def moved_lines(old: str, new: str) -> dict[int, int]:
    """Return for each line of `old` that lives on in `new` its number there; numbers start at 1.

    A line that was rewritten in place is no longer the same line: its cost shows as one that left and
    one that came.
    """
    matcher = SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    return {
        block.a + offset + 1: block.b + offset + 1
        for block in matcher.get_matching_blocks()
        for offset in range(block.size)
    }


class Sources:
    """The sources of both revisions, read once each. Not for use by several threads."""

    def __init__(self, read_before: ReadSource, read_after: ReadSource) -> None:
        self._before = lru_cache(maxsize=None)(read_before)
        self._after = lru_cache(maxsize=None)(read_after)
        self._maps = lru_cache(maxsize=None)(self._map)

    def moved_line(self, file: str, line: int) -> int | None:
        """Return the new number of an old line; the same number for files that cannot be read."""
        mapping = self._maps(file)
        return line if mapping is None else mapping.get(line)

    def text_before(self, file: str, line: int) -> str:
        """Return an old line's text, empty when unknown."""
        return _line_of(self._before(file), line)

    def text_after(self, file: str, line: int) -> str:
        """Return a new line's text, empty when unknown."""
        return _line_of(self._after(file), line)

    def _map(self, file: str) -> dict[int, int] | None:
        old, new = self._before(file), self._after(file)
        if old is None or new is None or old == new:
            return None
        return moved_lines(old, new)


def _line_of(text: str | None, line: int) -> str:
    if text is None:
        return ""
    lines = text.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
