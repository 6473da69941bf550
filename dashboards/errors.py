"""The one error that building a site raises beside the store's own. Owns no state."""

from __future__ import annotations


class DashboardError(Exception):
    """Why the site could not be built, in one sentence that says what to do about it."""
