"""The smallest useful arguments of each workload: every code path, a few milliseconds."""

from __future__ import annotations

TINY: dict[str, tuple[str, ...]] = {
    "aging": ("--generations", "4", "--blocks", "50", "--replaced", "100"),
    "aligned": ("--iterations", "2000"),
    "buffers": ("--workers", "2", "--size-max-kib", "1200", "--replacements", "20", "--idle-ms", "250"),
    "buffers_rounds": ("--workers", "2", "--size-max-kib", "1200", "--replacements", "2", "--rounds", "3", "--settle-ms", "1"),
    "calloc_large": ("--rounds", "2", "--blocks", "3", "--size-max-kib", "512"),
    "churn": ("--iterations", "4000"),
    "churn_loop": ("--iterations", "4000", "--check", "no"),
    "churn_sizes": ("--iterations", "500", "--size-min", "65536", "--size-range", "100000", "--slots", "16"),
    "classes": ("--iterations", "2000"),
    "exchange": ("--threads", "3", "--iterations", "2000", "--places", "64"),
    "false_sharing": ("--threads", "3", "--rounds", "4", "--writes", "100"),
    "fork_parked": ("--threads", "2", "--kept", "100", "--forks", "5"),
    "fragment": ("--live-mib", "1", "--rounds", "6"),
    "free_only": ("--producers", "2", "--live", "100", "--replaced", "200", "--rounds", "4", "--depth", "64"),
    "heaps": ("--shape", "alive", "--heaps", "20", "--blocks", "3"),
    "idle": ("--fill-mib", "2", "--idle-ms", "250"),
    "idle_rounds": ("--fill-mib", "2", "--rounds", "4", "--settle-ms", "1"),
    "idle_threads": ("--threads", "4"),
    "park": ("--wakeups", "60"),
    "realloc": ("--iterations", "2000"),
    "remote": ("--blocks", "5000", "--producers", "2", "--consumers", "2", "--size-max", "256"),
    "server": ("--requests", "20", "--rounds", "3", "--cache", "10"),
    "short_threads": ("--waves", "5", "--left-percent", "50"),
    "square_wave": ("--waves", "3", "--fill-mib", "2", "--rest-ms", "1"),
    "startup": (),
    "teardown": ("--live", "20", "--rounds", "3"),
    "waste": ("--steps", "2", "--size-max", "65536", "--sample-kib", "64"),
    "waves": ("--threads", "3", "--waves", "3", "--fill-kib", "1024", "--settle-ms", "1"),
}
