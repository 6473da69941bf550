"""The providers, one file each, and the table of them."""

from __future__ import annotations

import functools

from harness.collect.providers.base import Provider
from harness.collect.providers.callgrind import CallgrindProvider
from harness.collect.providers.gbench import GbenchProvider
from harness.collect.providers.hyperfine import HyperfineProvider
from harness.collect.providers.perf import PerfProvider, require_hardware
from harness.collect.providers.smaps import SmapsProvider
from harness.collect.providers.statistics import StatisticsProvider
from harness.model.errors import CannotMeasure


@functools.lru_cache(maxsize=1)
def all_providers() -> dict[str, Provider]:
    """Return every provider by name; made once, so that each probes once."""
    made: list[Provider] = [
        PerfProvider(), CallgrindProvider(), SmapsProvider(), HyperfineProvider(), GbenchProvider(),
        StatisticsProvider(),
    ]  # fmt: skip
    return {provider.name: provider for provider in made}


def provider_named(name: str) -> Provider:
    """Return a provider; CannotMeasure when the name is unknown."""
    try:
        return all_providers()[name]
    except KeyError:
        known = ", ".join(all_providers())
        raise CannotMeasure(f"There is no provider {name}: choose one of {known}.") from None


def instruction_counter(asked: str | None = None) -> str:
    """Return the provider of instruction counts: the one `asked` for, else `perf` with a PMU and `callgrind` without.

    CannotMeasure when `perf` is asked for and there is no PMU: it would find nothing out after minutes.
    """
    perf = all_providers()["perf"]
    assert isinstance(perf, PerfProvider)
    if asked == "perf":
        require_hardware(perf)
    return asked or ("perf" if perf.capability().hardware else "callgrind")
