"""The results store: what was measured, where, on what, and what came out.

Imports neither ``harness`` nor ``dashboards``.
"""

from results.errors import StoreError
from results.records import (
    Attachment,
    Build,
    Environment,
    Measurement,
    Run,
    Sample,
    Status,
    new_id,
    utc_now,
)
from results.store import Store, open_store

__all__ = [
    "Attachment",
    "Build",
    "Environment",
    "Measurement",
    "Run",
    "Sample",
    "Status",
    "Store",
    "StoreError",
    "new_id",
    "open_store",
    "utc_now",
]
