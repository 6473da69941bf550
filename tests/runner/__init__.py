"""The parts of tests/run.py: builds, suites, execution and tally."""
