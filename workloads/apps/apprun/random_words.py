"""The pseudo-random words that the script workloads make, computed as their sources do.

A 31-bit congruential generator: it needs no more than 62-bit products, so that Lua, Perl and Python
agree on every value. Pure functions.
"""

from __future__ import annotations


def next_random(state: int) -> int:
    """Return the state after `state`; use its bits from 8 up, the low ones repeat soon."""
    return (state * 1103515245 + 12345) & 0x7FFFFFFF


def make_vocabulary(state: int, count: int) -> tuple[list[str], int]:
    """Return `count` words of 3 to 14 lower-case letters and the state after them."""
    vocabulary = []
    for _ in range(count):
        state = next_random(state)
        letters = []
        for _ in range(3 + (state >> 8) % 12):
            state = next_random(state)
            letters.append(chr(97 + (state >> 8) % 26))
        vocabulary.append("".join(letters))
    return vocabulary, state


def make_text(vocabulary: list[str], state: int, count: int) -> str:
    """Return `count` random words of `vocabulary`, separated by single spaces."""
    words = []
    for _ in range(count):
        state = next_random(state)
        words.append(vocabulary[(state >> 8) % len(vocabulary)])
    return " ".join(words)
