"""The one way to say that something could not be measured.

Raised anywhere below the command line; `harness.cli` turns it into one sentence on standard error and exit code 2.
"""

from __future__ import annotations

EXIT_FINE = 0
EXIT_REGRESSION = 1
EXIT_CANNOT_MEASURE = 2


class CannotMeasure(Exception):
    """What was asked for could not be measured. `sentence` says why and what to do about it."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class Interrupted(CannotMeasure):
    """The user stopped the run. What was measured before is stored and stays."""
