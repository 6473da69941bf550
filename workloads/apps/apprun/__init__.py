"""What the application workloads share: events, the arm under test, and running programs.

`workloads/apps/driver.py` is the only caller. Nothing here runs under the allocator under test: the
allocator is preloaded into the measured program alone.
"""
