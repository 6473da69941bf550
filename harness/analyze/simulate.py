"""Simulated series with a known answer, and the error rates of each rule on them.

Called by `./tidemark selftest --simulate` and the tests. Deterministic for a seed: the generator is an
argument, never global state. docs/measuring.md quotes the table that `error_rates` returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.analyze.counts import judge_noisy, noise_of
from harness.analyze.plateau import MIB, judge_one_arm, judge_two_arms
from harness.analyze.verdict import Outcome

LEVEL = 64.0 * MIB
NOISE = 0.004 * LEVEL
"""0.4 % of the level: what 15 rounds of a memory workload show from process to process on a busy machine."""

ROUNDS = 15
Generator = np.random.Generator
Rounds = npt.NDArray[np.float64]


def flat(rng: Generator, rounds: int = ROUNDS) -> Rounds:
    """Independent noise around a level."""
    series: Rounds = LEVEL + rng.normal(0.0, NOISE, rounds)
    return series


def autocorrelated(rng: Generator, rounds: int = ROUNDS) -> Rounds:
    """First-order autoregression with coefficient 0.7: each round remembers the one before."""
    series = np.empty(rounds)
    state = rng.normal(0.0, NOISE)
    for index in range(rounds):
        state = 0.7 * state + rng.normal(0.0, NOISE * np.sqrt(1 - 0.49))
        series[index] = LEVEL + state
    return series


def warming(rng: Generator, rounds: int = ROUNDS) -> Rounds:
    """Rises by 10 % with a time constant of 1.5 rounds, then stays."""
    series: Rounds = flat(rng, rounds) - 0.10 * LEVEL * np.exp(-np.arange(rounds) / 1.5)
    return series


def slow_warming(rng: Generator, rounds: int = ROUNDS) -> Rounds:
    """Rises by 10 % with a time constant of 6 rounds: still visibly rising after fifteen."""
    series: Rounds = flat(rng, rounds) - 0.10 * LEVEL * np.exp(-np.arange(rounds) / 6.0)
    return series


def very_slow_warming(rng: Generator, rounds: int = ROUNDS) -> Rounds:
    """Rises by 10 % with a time constant of 10 rounds: almost a straight line within fifteen."""
    series: Rounds = flat(rng, rounds) - 0.10 * LEVEL * np.exp(-np.arange(rounds) / 10.0)
    return series


def dipping(rng: Generator, rounds: int = ROUNDS) -> Rounds:
    """A purge is caught in the act in one round of eight: 30 % lower there."""
    series = flat(rng, rounds)
    series[rng.random(rounds) < 0.125] *= 0.7
    return series


def sawtooth(rng: Generator, rounds: int = ROUNDS) -> Rounds:
    """Climbs 6 % over four rounds and falls back, from a random phase."""
    phase = rng.integers(4)
    series: Rounds = flat(rng, rounds) + 0.02 * LEVEL * ((np.arange(rounds) + phase) % 4)
    return series


def leaking(rng: Generator, rounds: int = ROUNDS) -> Rounds:
    """0.3 % of the level more each round."""
    series: Rounds = flat(rng, rounds) + 0.003 * LEVEL * np.arange(rounds)
    return series


def higher(rng: Generator, rounds: int = ROUNDS) -> Rounds:
    """A plateau 4 % higher."""
    series: Rounds = flat(rng, rounds) + 0.04 * LEVEL
    return series


def steady(rng: Generator, count: int) -> Rounds:
    """Counts with 0.2 % of normal noise."""
    counts: Rounds = 1e8 * (1.0 + rng.normal(0.0, 0.002, count))
    return counts


def bimodal(rng: Generator, count: int) -> Rounds:
    """Counts that fall on either of two values 1 % apart, with 0.05 % of noise."""
    counts: Rounds = 1e8 * (1.0 + 0.01 * (rng.random(count) < 0.5) + rng.normal(0.0, 0.0005, count))
    return counts


def shifted(rng: Generator, count: int) -> Rounds:
    """Steady counts, 2 % higher."""
    counts: Rounds = steady(rng, count) * 1.02
    return counts


@dataclass(frozen=True)
class Rate:
    """How often a rule convicted on one kind of series."""

    rule: str
    scenario: str
    truth: str
    """What the right answer is."""
    trials: int
    convicted: int
    undecided: int
    named: int
    """How often the verdict's word was the truth."""

    @property
    def convicted_percent(self) -> float:
        """Share of trials judged a regression, in percent."""
        return 100.0 * self.convicted / self.trials

    @property
    def undecided_percent(self) -> float:
        """Share of trials judged `cannot tell`, in percent."""
        return 100.0 * self.undecided / self.trials

    @property
    def named_percent(self) -> float:
        """Share of trials whose verdict was the truth, in percent."""
        return 100.0 * self.named / self.trials


MemorySource = Callable[[Generator], Rounds]
CountSource = Callable[[Generator, int], Rounds]

WARM_UP = "slow warm-up against flat"
"""One that the rounds show to flatten."""

WARM_UP_BEYOND_WINDOW = "very slow warm-up against flat"
"""What no rule can tell from growth within its rounds; the manifest's warm-up must cover it. Shown, not promised."""

MEMORY_SCENARIOS: tuple[tuple[str, MemorySource, MemorySource, str], ...] = (
    ("flat against flat", flat, flat, "plateau"),
    ("autocorrelated against itself", autocorrelated, autocorrelated, "plateau"),
    ("warming against itself", warming, warming, "plateau"),
    ("slow warm-up against itself", slow_warming, slow_warming, "plateau"),
    ("dipping against itself", dipping, dipping, "plateau"),
    ("sawtooth against itself", sawtooth, sawtooth, "plateau"),
    (WARM_UP, flat, slow_warming, "plateau"),
    (WARM_UP_BEYOND_WINDOW, flat, very_slow_warming, "plateau"),
    ("leak of 0.3 % a round against flat", flat, leaking, "growing"),
    ("4 % higher against flat", flat, higher, "higher plateau"),
)

ONE_ARM_SCENARIOS: tuple[tuple[str, Callable[[Generator, int], Rounds], str], ...] = (
    ("flat", flat, "plateau"),
    ("autocorrelated", autocorrelated, "plateau"),
    ("warming", warming, "plateau"),
    ("slow warm-up", slow_warming, "plateau"),
    ("dipping", dipping, "plateau"),
    ("sawtooth", sawtooth, "plateau"),
    ("leak of 0.3 % a round", leaking, "growing"),
)

COUNT_SCENARIOS: tuple[tuple[str, CountSource, CountSource, str], ...] = (
    ("steady against itself", steady, steady, "unchanged"),
    ("bimodal against itself", bimodal, bimodal, "unchanged"),
    ("2 % higher against steady", steady, shifted, "regressed"),
)

HISTORY = 20
"""Runs of history behind the simulated noise threshold."""


def error_rates(trials: int, seed: int = 1) -> list[Rate]:
    """Return the measured rates of all rules over `trials` simulated verdicts a scenario."""
    rates = [_two_arm_rate(name, old, new, truth, trials, seed) for name, old, new, truth in MEMORY_SCENARIOS]
    rates += [
        _one_arm_rate(name, source, truth, trials, seed, rounds)
        for rounds in (15, 20)
        for name, source, truth in ONE_ARM_SCENARIOS
    ]
    rates += [_count_rate(name, old, new, truth, trials, seed) for name, old, new, truth in COUNT_SCENARIOS]
    return rates


def _tally(rule: str, scenario: str, truth: str, outcomes: list[Outcome], guilty: frozenset[Outcome]) -> Rate:
    return Rate(
        rule,
        scenario,
        truth,
        len(outcomes),
        sum(outcome in guilty for outcome in outcomes),
        sum(outcome is Outcome.CANNOT_TELL for outcome in outcomes),
        sum(str(outcome) == truth for outcome in outcomes),
    )


def _two_arm_rate(name: str, old: MemorySource, new: MemorySource, truth: str, trials: int, seed: int) -> Rate:
    rng = np.random.default_rng(seed)
    outcomes = [
        judge_two_arms([list(old(rng)) for _ in range(5)], [list(new(rng)) for _ in range(5)]).outcome
        for _ in range(trials)
    ]
    return _tally("two arms", name, truth, outcomes, frozenset({Outcome.GROWING, Outcome.HIGHER_PLATEAU}))


def _one_arm_rate(
    name: str, source: Callable[[Generator, int], Rounds], truth: str, trials: int, seed: int, rounds: int
) -> Rate:
    rng = np.random.default_rng(seed)
    outcomes = [judge_one_arm(list(source(rng, rounds))).outcome for _ in range(trials)]
    return _tally(f"one arm, {rounds} rounds", name, truth, outcomes, frozenset({Outcome.GROWING}))


def _count_rate(name: str, old: CountSource, new: CountSource, truth: str, trials: int, seed: int) -> Rate:
    rng = np.random.default_rng(seed)
    outcomes = []
    for _ in range(trials):
        noise = noise_of(list(old(rng, HISTORY)))
        outcomes.append(judge_noisy(list(old(rng, 5)), list(new(rng, 5)), noise, "instructions").outcome)
    return _tally("noisy counts", name, truth, outcomes, frozenset({Outcome.REGRESSED}))
