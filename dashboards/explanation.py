"""Verdicts and explanations as a comparison stores them, read into records that a page can show.

Who calls it: comparison.py. Pure, safe from any thread.

The stored form is JSON: an attachment `verdicts` is a list of objects, an attachment `explanation` an object
whose `kind` is `instructions` or `memory`. Whatever does not have that form, from an older or a newer
writer, is kept as plain data and shown as it is: nothing that was stored is hidden.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.figures import format_compared, format_delta, format_value

_BROKEN = (KeyError, TypeError, ValueError, AttributeError)
"""What a wrong shape of JSON raises while it is read."""

_GOOD = frozenset({"unchanged", "improved", "plateau"})
_BAD = frozenset({"regressed", "higher plateau", "growing"})


@dataclass(frozen=True)
class VerdictRow:
    """One judged figure."""

    name: str
    metric: str
    provider: str
    outcome: str
    tone: str
    """`good`, `bad` or `open`."""
    before: str
    after: str
    change: str
    figure: str
    """What is held against the threshold."""
    interval: str
    """Its interval of confidence; empty where the figure is exact."""
    threshold: str
    origin: str
    reason: str
    command: str
    samples: str


@dataclass(frozen=True)
class FunctionRow:
    """One function's own instructions per operation."""

    function: str
    place: str
    """Object, or file and line."""
    before: float
    after: float
    delta: float
    note: str


@dataclass(frozen=True)
class ListingRow:
    """One line of two disassemblies side by side."""

    mark: str
    before: str
    before_executed: float | None
    after: str
    after_executed: float | None


@dataclass(frozen=True)
class Listing:
    """One function's machine code in both builds."""

    function: str
    executed_before: float
    executed_after: float
    rows: tuple[ListingRow, ...]


@dataclass(frozen=True)
class CategoryRow:
    """One category of memory; bytes."""

    metric: str
    shape: str
    begins_at: int
    level: str
    final: str


@dataclass(frozen=True)
class Explanation:
    """Why a figure moved, or plain data where its form is unknown."""

    kind: str
    """`instructions`, `memory` or `data`."""
    label: str
    sentences: tuple[str, ...] = ()
    before: float | None = None
    after: float | None = None
    functions: tuple[FunctionRow, ...] = ()
    source_functions: tuple[FunctionRow, ...] = ()
    lines: tuple[FunctionRow, ...] = ()
    listings: tuple[Listing, ...] = ()
    categories: tuple[CategoryRow, ...] = ()
    data: Any = None


def read_verdicts(text: bytes) -> list[VerdictRow] | None:
    """Return the verdicts of an attachment; None if it has another form."""
    try:
        return [_verdict(each) for each in json.loads(text)]
    except _BROKEN:
        return None


def read_explanation(text: bytes, label: str) -> Explanation:
    """Return the explanation of an attachment; its data as they are if it has another form."""
    try:
        content = json.loads(text)
    except ValueError:
        return Explanation("data", label, data=text.decode("utf-8", "replace"))
    try:
        if content["kind"] == "instructions":
            return _instructions(content, label)
        if content["kind"] == "memory":
            return _memory(content, label)
    except _BROKEN:
        pass
    return Explanation("data", label, data=content)


def _verdict(fields: Mapping[str, Any]) -> VerdictRow:
    outcome = str(fields["outcome"])
    before, after, unit = fields["before"], fields["after"], fields["unit"]
    both = before is not None and after is not None
    threshold = fields["threshold"]
    limit_unit = threshold["unit"] if threshold else unit
    interval = [format_value(limit_unit, end) for end in fields["interval"] or ()]
    return VerdictRow(
        name=str(fields.get("label") or fields["workload"]),
        metric=str(fields["metric"]),
        provider=str(fields["provider"]),
        outcome=outcome,
        tone="bad" if outcome in _BAD else "good" if outcome in _GOOD else "open",
        before="" if before is None else format_compared(unit, before),
        after="" if after is None else format_compared(unit, after),
        change=format_delta(before, after) if both else "",
        figure="" if fields["figure"] is None else format_value(limit_unit, fields["figure"]),
        interval=" to ".join(interval),
        threshold=format_value(threshold["unit"], threshold["value"]) if threshold else "",
        origin=str(threshold["origin"]) if threshold else "",
        reason=str(fields["reason"]),
        command=str(fields["command"]),
        samples=" / ".join(str(count) for count in fields["samples"]),
    )


def _instructions(content: Mapping[str, Any], label: str) -> Explanation:
    return Explanation(
        kind="instructions",
        label=label,
        sentences=_sentences(content),
        before=float(content["before"]["per_operation"]),
        after=float(content["after"]["per_operation"]),
        functions=tuple(_moved(each, str(each["object"]), str(each["change"])) for each in content["functions"]),
        source_functions=tuple(_moved(each, "", "") for each in content["source_functions"]),
        lines=tuple(_moved(each, _line_place(each), str(each["text"]).strip()) for each in content["lines"]),
        listings=tuple(_listing(each) for each in content["listings"]),
    )


def _memory(content: Mapping[str, Any], label: str) -> Explanation:
    categories = tuple(
        CategoryRow(
            str(each["metric"]),
            str(each["shape"]),
            int(each["begins_at"]),
            format_value("bytes", float(each["level"])),
            format_value("bytes", float(each["final"])),
        )
        for each in content["categories"]
    )
    return Explanation("memory", label, _sentences(content), categories=categories)


def _sentences(content: Mapping[str, Any]) -> tuple[str, ...]:
    sentences: Sequence[Any] = content["sentences"]
    return tuple(str(sentence) for sentence in sentences)


def _moved(fields: Mapping[str, Any], place: str, note: str) -> FunctionRow:
    before, after, delta = (float(fields[name]) for name in ("before", "after", "delta"))
    return FunctionRow(str(fields["function"]), place, before, after, delta, note)


def _line_place(fields: Mapping[str, Any]) -> str:
    if fields["line_after"] is not None:
        return f"{fields['file']}:{fields['line_after']}"
    return f"{fields['file']}:{fields['line_before']} (gone)"


def _listing(fields: Mapping[str, Any]) -> Listing:
    return Listing(
        str(fields["function"]),
        float(fields["executed_before"]),
        float(fields["executed_after"]),
        tuple(_listing_row(each) for each in fields["rows"]),
    )


def _listing_row(fields: Mapping[str, Any]) -> ListingRow:
    before, after = fields["before"], fields["after"]
    return ListingRow(
        mark=str(fields["mark"]).strip(),
        before=str(before["text"]) if before else "",
        before_executed=float(before["executed"]) if before else None,
        after=str(after["text"]) if after else "",
        after_executed=float(after["executed"]) if after else None,
    )
