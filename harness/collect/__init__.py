"""Turns jobs into measurements: environment, launching, the checkpoint protocol, providers, the session of a run."""
