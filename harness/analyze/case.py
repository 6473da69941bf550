"""A case: one metric of one workload under judgement, and how many more runs its verdict needs.

Called by the gate's and compare's loop: while a case `needs_pair`, the loop measures both arms once more
and hands the figures over. Cases stop as soon as their verdict is certain, which changes no error rate,
and confirm every conviction by noisy figures with a second, independent set of runs. Not thread safe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

from harness.analyze import counts, plateau
from harness.analyze.counts import judge_exact, judge_noisy, noise_of
from harness.analyze.plateau import MemoryLimits, judge_two_arms
from harness.analyze.verdict import Outcome, Threshold, Verdict, unplaced

Histories = Sequence[Sequence[float]]
"""Figures of one build each, oldest first: the noise this workload showed against itself."""

ReadHistories = Callable[[], Histories]
"""Reads them when they are needed, which for counts that repeat is never."""


def no_histories() -> Histories:
    """The histories where nothing is stored."""
    return ()


class Case(ABC):
    """One judgement in progress."""

    @property
    @abstractmethod
    def needs_pair(self) -> bool:
        """True while another run of each arm could change the verdict."""

    @property
    @abstractmethod
    def pairs_left_max(self) -> int:
        """How many more pairs it can take at most, for the progress display."""

    @property
    @abstractmethod
    def pairs_certain(self) -> int:
        """How many more pairs it takes at least, so that they can be measured in one go."""

    @abstractmethod
    def verdict(self) -> Verdict:
        """Return the verdict on the runs so far."""


class CountCase(Case):
    """Counts or times. `exact` ones are held exactly and fall back to the rule for noisy ones if they do not repeat."""

    def __init__(
        self, limit: Threshold, unit: str, exact: bool, histories: ReadHistories = no_histories, complete: bool = False
    ) -> None:
        """`complete` takes all five pairs of a noisy figure, for a table that shows intervals."""
        self.limit = limit
        self.unit = unit
        self.exact = exact
        self.histories = histories
        self.complete = complete
        self.before: list[float] = []
        self.after: list[float] = []

    def add_pair(self, before: float, after: float) -> None:
        """Take the figures of one more run of each arm."""
        self.before.append(before)
        self.after.append(after)
        if self.exact and self._exact_verdict().outcome is Outcome.CANNOT_TELL and self.before[0] != 0:
            self.exact = False

    @property
    def needs_pair(self) -> bool:
        return self.pairs_left_max > 0

    @property
    def pairs_left_max(self) -> int:
        done = len(self.before)
        if self.exact:
            # A changed count is measured twice, so that no single odd run convicts.
            wanted = 1 if done == 0 or self._exact_verdict().outcome is Outcome.UNCHANGED else 2
            return max(0, wanted - done)
        if done >= counts.SAMPLES_MIN or (self._overlaps() and not self.complete):
            return 0
        return counts.SAMPLES_MIN - done

    @property
    def pairs_certain(self) -> int:
        return self.pairs_left_max if self.complete and not self.exact else min(1, self.pairs_left_max)

    def verdict(self) -> Verdict:
        if self.exact:
            return self._exact_verdict()
        noise = noise_of(*self.histories(), self.before, self.after)
        if len(self.before) < counts.SAMPLES_MIN and self._overlaps():
            full = judge_noisy(self.before, self.after, noise, self.unit, self.limit)
            return replace(
                full,
                outcome=Outcome.UNCHANGED,
                figure=_percent(full.before, full.after),
                reason=f"decided after {len(self.before)} pairs: the arms overlap, five separated pairs are out of reach",
            )
        return judge_noisy(self.before, self.after, noise, self.unit, self.limit)

    def _exact_verdict(self) -> Verdict:
        return judge_exact(self.before, self.after, self.limit, self.unit)

    def _overlaps(self) -> bool:
        return bool(self.before) and not counts.can_still_move(self.before, self.after)


class MemoryCase(Case):
    """A memory series: five processes an arm, fewer when acquitted early, five more to confirm a conviction."""

    def __init__(
        self, warmup_rounds: int, limits: MemoryLimits, rounds_min: int = plateau.ROUNDS_MIN, complete: bool = False
    ) -> None:
        """`complete` takes all five processes an arm even when the verdict is certain before."""
        self.warmup_rounds = warmup_rounds
        self.limits = limits
        self.rounds_min = rounds_min
        self.complete = complete
        self.before: list[Sequence[float]] = []
        self.after: list[Sequence[float]] = []

    def add_pair(self, before: Sequence[float], after: Sequence[float]) -> None:
        """Take the series of one more process of each arm."""
        self.before.append(before)
        self.after.append(after)

    @property
    def needs_pair(self) -> bool:
        return self.pairs_left_max > 0

    @property
    def pairs_left_max(self) -> int:
        done = len(self.before)
        if self._too_short():
            return 0
        if done < plateau.ARM_PROCESSES:
            return 0 if self._acquitted(self.before, self.after) and not self.complete else plateau.ARM_PROCESSES - done
        if not self._judged(0).is_regression or done >= 2 * plateau.ARM_PROCESSES:
            return 0
        return 0 if self._acquitted(*self._second()) else 2 * plateau.ARM_PROCESSES - done

    @property
    def pairs_certain(self) -> int:
        left = self.pairs_left_max
        if left == 0:
            return 0
        done = len(self.before)
        if self.complete and 0 < done < plateau.ARM_PROCESSES:
            return left
        # Two pairs are the fewest that can acquit; a series that is too short shows in the first.
        return min(left, 2) if done in (1, plateau.ARM_PROCESSES) else 1

    def verdict(self) -> Verdict:
        if (
            not self._too_short()
            and len(self.before) < plateau.ARM_PROCESSES
            and self._acquitted(self.before, self.after)
        ):
            return plateau.acquitted(self.before, self.after, self.warmup_rounds, self.limits)
        first = self._judged(0)
        if not first.is_regression or len(self.before) == plateau.ARM_PROCESSES:
            return first
        second = self._second()
        if self._acquitted(*second):
            confirmation = plateau.acquitted(*second, self.warmup_rounds, self.limits)
        else:
            confirmation = self._judged(plateau.ARM_PROCESSES)
        if not confirmation.is_regression:
            return replace(
                confirmation,
                reason=f"{first.outcome} in the first {plateau.ARM_PROCESSES} processes an arm, "
                f"not confirmed by the next: {confirmation.reason}",
            )
        return replace(first, reason=f"{first.reason}; confirmed by a second set of processes ({confirmation.outcome})")

    def _second(self) -> tuple[list[Sequence[float]], list[Sequence[float]]]:
        return self.before[plateau.ARM_PROCESSES :], self.after[plateau.ARM_PROCESSES :]

    def _judged(self, start: int) -> Verdict:
        part = slice(start, start + plateau.ARM_PROCESSES)
        return judge_two_arms(self.before[part], self.after[part], self.warmup_rounds, self.limits, self.rounds_min)

    def _acquitted(self, before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> bool:
        return bool(before) and not plateau.can_still_regress(before, after, self.warmup_rounds)

    def _too_short(self) -> bool:
        return any(len(series) < self.rounds_min for series in (*self.before, *self.after))


def not_measured(reason: str) -> Verdict:
    """Return the verdict on a case whose runs failed."""
    return unplaced(Outcome.NOT_MEASURED, reason=reason)


def _percent(before: float | None, after: float | None) -> float | None:
    return 100.0 * (after - before) / abs(before) if before and after is not None else None
