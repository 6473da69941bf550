"""The results store: what was measured, where, on what, and what came out.

Imports neither ``harness`` nor ``dashboards``.
"""
