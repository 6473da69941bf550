"""The dashboard: a static site of a store's results, that opens from a file and asks for nothing.

Reads only ``results``.
"""

from dashboards.errors import DashboardError
from dashboards.site import build

__all__ = ["DashboardError", "build"]
