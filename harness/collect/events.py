"""The workload protocol as data (`docs/workload-protocol.md`): one JSON object a line.

Parsing is strict where the validity of a run depends on it (the end event with its checksum) and open for additions.
Pure; no thread safety needed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable

PROTOCOL = 1
_CHECKSUM = re.compile(r"[0-9a-fA-F]{16}\Z")


class BrokenProtocol(Exception):
    """The workload said something that the protocol does not allow. The message is one clause."""


@dataclass(frozen=True)
class Start:
    """The first line."""

    workload: str
    pid: int
    malloc_object: str
    adapter: str = "none"
    modes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoint:
    """A point of the series; the workload waits there."""

    checkpoint: int
    round: int
    label: str
    time_s: float
    live_bytes: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class End:
    """The last line; without it the run is void."""

    checksum: str
    operations: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)


Event = Start | Checkpoint | End


def parse_event(line: str) -> Event:
    """Return the event in one line; BrokenProtocol when it is none."""
    try:
        fields = json.loads(line)
        kind = fields["event"]
    except (ValueError, TypeError, KeyError) as error:
        raise BrokenProtocol(f"wrote a line that is no event ({line.strip()[:80]!r})") from error
    try:
        return _PARSERS[kind](fields)
    except KeyError as error:
        raise BrokenProtocol(f"wrote an event without {error} ({line.strip()[:80]!r})") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise BrokenProtocol(f"wrote an event with a wrong field ({line.strip()[:80]!r})") from error


def parse_free_run(text: str) -> list[Event]:
    """Return the events on the standard output of a workload that ran without descriptors.

    Lines that are no JSON object are the program's own output and do not count.
    """
    return [parse_event(line) for line in text.splitlines() if line.startswith('{"') and '"event"' in line]


def end_of(events: Iterable[Event]) -> End:
    """Return the end event; BrokenProtocol when there is none or more than one."""
    ends = [event for event in events if isinstance(event, End)]
    if len(ends) != 1:
        raise BrokenProtocol("ended without its end event" if not ends else "wrote two end events")
    return ends[0]


def start_of(events: Iterable[Event]) -> Start:
    """Return the start event; BrokenProtocol when there is none."""
    for event in events:
        if isinstance(event, Start):
            return event
    raise BrokenProtocol("ended without its start event")


def _start(fields: dict[str, Any]) -> Start:
    if fields.get("protocol", PROTOCOL) != PROTOCOL:
        raise BrokenProtocol(
            f"speaks protocol {fields['protocol']}, this harness speaks {PROTOCOL}: rebuild with `make`"
        )
    return Start(
        workload=str(fields["workload"]),
        pid=int(fields["pid"]),
        malloc_object=str(fields["malloc_object"]),
        adapter=str(fields.get("adapter", "none")),
        modes={str(k): str(v) for k, v in fields.get("modes", {}).items()},
    )


def _checkpoint(fields: dict[str, Any]) -> Checkpoint:
    live = fields.get("live_bytes")
    return Checkpoint(
        checkpoint=int(fields["checkpoint"]),
        round=int(fields.get("round", fields["checkpoint"])),
        label=str(fields.get("label", "round")),
        time_s=float(fields["time_s"]),
        live_bytes=None if live is None else int(live),
        metrics=_metrics(fields),
    )


def _end(fields: dict[str, Any]) -> End:
    checksum = str(fields["checksum"])
    if not _CHECKSUM.match(checksum):
        raise BrokenProtocol(f"ended with the checksum {checksum[:40]!r}, which is not 16 hexadecimal digits")
    operations = fields.get("operations")
    return End(checksum.lower(), None if operations is None else int(operations), _metrics(fields))


def _metrics(fields: dict[str, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in (fields.get("metrics") or {}).items()}


_PARSERS: dict[str, Callable[[dict[str, Any]], Event]] = {"start": _start, "checkpoint": _checkpoint, "end": _end}
