"""The two ways an application workload can end without a valid run.

Raised anywhere below `driver.py`, which alone turns them into one sentence and an exit code.
"""

from __future__ import annotations

EXIT_CANNOT_MEASURE = 2
EXIT_WRONG_OUTPUT = 3


class CannotMeasure(Exception):
    """The run never became valid for a reason outside the program; the text says what to do."""


class WrongOutput(Exception):
    """The program under test crashed, hung or answered wrongly; the text says where."""
