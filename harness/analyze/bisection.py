"""Finds the first bad commit, stepping around those that cannot be judged.

Called by `tidemark bisect`. Pure: commits and a judge in, the answer out. Assumes, like every bisection, that what
became bad stays bad up to the end of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

State = Literal["good", "bad", "skip"]
"""`skip`: the commit does not build or could not be measured."""

Judge = Callable[[str], State]


@dataclass(frozen=True)
class Bisection:
    """The answer of a search."""

    first_bad: str
    """The first commit known to be bad."""
    suspects: tuple[str, ...]
    """Commits before it that could not be judged and may be the first bad one instead, oldest first."""
    judged: dict[str, State] = field(default_factory=dict)
    """Every commit that was judged."""


def first_bad(commits: Sequence[str], judge: Judge) -> Bisection:
    """Return the first bad commit of `commits`, oldest first, of which the last is known to be bad.

    The commit before the first is known to be good. Takes about log2(n) judgements, and one more for each
    commit that is skipped. ValueError for an empty list.
    """
    if not commits:
        raise ValueError("there are no commits to search")
    judged: dict[str, State] = {commits[-1]: "bad"}
    low, high = 0, len(commits) - 1
    # Invariant: everything before `low` is good or skipped beside a good one, `high` is bad.
    while True:
        candidates = [index for index in range(low, high) if judged.get(commits[index]) != "skip"]
        if not candidates:
            return Bisection(commits[high], tuple(commits[low:high]), judged)
        middle = (low + high - 1) / 2.0
        index = min(candidates, key=lambda place: (abs(place - middle), place))
        state = judged[commits[index]] = judge(commits[index])
        if state == "bad":
            high = index
        elif state == "good":
            low = index + 1
