"""The nouns of a measurement: workloads, allocators, arms, plans, pins, and where things lie.

Nothing here starts a process or opens the store. Immutable after loading, so free to share between threads.
"""
