"""The one error that the store raises.

Owns no state. Callers print `str(error)` as it is and exit with code 2; nothing else that is raised
below the store's API reaches them.
"""

from __future__ import annotations


class StoreError(Exception):
    """What went wrong with the store, in one sentence that says what to do about it."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
