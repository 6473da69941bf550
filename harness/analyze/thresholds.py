"""The gate's thresholds: read from one reviewed file in which each has a reason.

Called by gate and compare. A section holds for the metric and the workloads it names; of several that
match, the last in the file holds, so the general ones stand first. Loading checks every field.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from harness.analyze.plateau import MemoryLimits
from harness.analyze.verdict import Threshold
from harness.model.errors import CannotMeasure

_COUNT_KEYS = {"metric", "workload", "reason", "limit_percent"}
_MEMORY_KEYS = {"metric", "workload", "reason", "level_percent", "level_bytes", "growth_percent", "growth_bytes"}
MEMORY_METRIC = "rss_bytes"


@dataclass(frozen=True)
class Section:
    """One `[[threshold]]` of the file."""

    metric: str
    workload: str
    """Pattern of workload names."""
    reason: str
    values: dict[str, float]
    origin: str
    """Where the section stands and whom it means, for the verdict."""


@dataclass(frozen=True)
class Thresholds:
    """All sections, in the file's order."""

    sections: tuple[Section, ...]
    path: Path

    def limit(self, metric: str, workload: str) -> Threshold:
        """Return the relative limit of a counted metric; CannotMeasure when no section names it."""
        section = self._section(metric, workload)
        return Threshold(section.values["limit_percent"], "%", section.origin)

    def memory(self, workload: str) -> MemoryLimits:
        """Return the limits of a memory series; CannotMeasure when no section names it."""
        section = self._section(MEMORY_METRIC, workload)
        return MemoryLimits(origin=section.origin, **section.values)

    def gates(self, metric: str, workload: str) -> bool:
        """Say whether a metric of a workload is judged by the gate."""
        return any(_holds(section, metric, workload) for section in self.sections)

    def _section(self, metric: str, workload: str) -> Section:
        for section in reversed(self.sections):
            if _holds(section, metric, workload):
                return section
        raise CannotMeasure(f"{self.path.name} has no threshold for {metric} of {workload}: add one with its reason.")


def load_thresholds(path: Path) -> Thresholds:
    """Return the thresholds in `path`; CannotMeasure says what is wrong with the file."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CannotMeasure(f"{path} is missing: restore it with `git checkout`.") from error
    except tomllib.TOMLDecodeError as error:
        raise CannotMeasure(f"{path.name} is not valid TOML ({error}): correct it.") from error
    sections = table.get("threshold", [])
    if not isinstance(sections, list) or not sections:
        raise CannotMeasure(f"{path.name} has no [[threshold]]: add one.")
    return Thresholds(tuple(_section(index, fields, path) for index, fields in enumerate(sections, start=1)), path)


def _holds(section: Section, metric: str, workload: str) -> bool:
    return section.metric == metric and fnmatchcase(workload, section.workload)


def _section(index: int, fields: dict[str, Any], path: Path) -> Section:
    where = f"{path.name}, threshold {index}"
    metric, workload, reason = (fields.get(key, "") for key in ("metric", "workload", "reason"))
    if not metric or not workload:
        raise CannotMeasure(f"{where} needs the keys metric and workload: add them.")
    if len(str(reason).split()) < 4:
        raise CannotMeasure(f"{where} has no reason that a reviewer could check: write one.")
    keys = _MEMORY_KEYS if metric == MEMORY_METRIC else _COUNT_KEYS
    unknown = sorted(set(fields) - keys)
    missing = sorted(keys - set(fields))
    if unknown or missing:
        complaint = f"the unknown key {unknown[0]}" if unknown else f"no key {missing[0]}"
        raise CannotMeasure(f"{where} has {complaint}: it takes {', '.join(sorted(keys))}.")
    values = {key: fields[key] for key in keys - {"metric", "workload", "reason"}}
    for key, value in values.items():
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value < 0:
            raise CannotMeasure(f"{where}: {key} is {value!r}, it must be a number of at least 0.")
    origin = f"{path.name}: {metric} of {workload}"
    return Section(metric, workload, reason, {key: float(value) for key, value in values.items()}, origin)
