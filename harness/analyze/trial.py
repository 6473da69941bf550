"""Tries a docket: measures until every case is decided, then explains what moved.

Called by gate, compare and the self-test with an open session, which stores every measurement. Not thread safe.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.analyze.case import MemoryCase
from harness.analyze.docket import EXACT_PROVIDERS, Docket, Entry
from harness.analyze.evidence import (
    EXPLANATION_KIND,
    MEMORY_FLOOR_BYTES,
    PROFILE_KIND,
    Explanation,
    explain_entry,
    explain_pair,
)
from harness.analyze.explanation import explain_memory
from harness.analyze.plateau import judge_one_arm
from harness.analyze.robust import median_series
from harness.analyze.verdict import Outcome, Verdict
from harness.collect.session import Session
from harness.model.errors import CannotMeasure
from harness.model.plan import Job
from results.records import Attachment, Measurement

STATISTICS = "statistics"
JUDGE = "judge"
"""The provider of rows that hold verdicts and explanations instead of samples."""

VERDICTS_KIND = "verdicts"
Moved = Callable[[Entry, Verdict], bool]


@dataclass
class Explained:
    """Explanations by (workload with variant, metric), and why some are missing."""

    by_case: dict[tuple[str, str], Explanation] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def measure(docket: Docket, session: Session) -> list[Verdict]:
    """Measure until every case is decided and return the verdicts."""
    while jobs := docket.wanted():
        session.progress.ahead(docket.ahead(jobs))
        docket.take(jobs, session.execute(jobs))
    session.progress.ahead(())
    return docket.verdicts()


def regressed(entry: Entry, verdict: Verdict) -> bool:
    """What the gate explains."""
    return verdict.is_regression


def moved_at_all(entry: Entry, verdict: Verdict) -> bool:
    """What a comparison explains: beyond a threshold, and exact counts however little they moved."""
    exact = entry.provider in EXACT_PROVIDERS and verdict.before != verdict.after
    judged = verdict.outcome not in (Outcome.NOT_MEASURED, Outcome.CANNOT_TELL)
    return judged and (exact or verdict.is_regression or verdict.outcome is Outcome.IMPROVED)


def advice(docket: Docket) -> list[str]:
    """Return which memory series of the judged arm grow by themselves, by the one-arm rule, which only advises.

    Two arms that leak alike are no change, and the two-arm rule rightly says plateau.
    """
    found = []
    for entry in docket.entries:
        if isinstance(entry.case, MemoryCase) and entry.case.after:
            alone = judge_one_arm(median_series(entry.case.after), entry.case.warmup_rounds)
            if alone.outcome is Outcome.GROWING and not entry.verdict().is_regression:
                found.append(
                    f"{entry.label} {entry.metric} grows in both arms; by itself: {alone.sentence().lstrip(' :')}"
                )
    return found


def explain(docket: Docket, verdicts: Sequence[Verdict], session: Session, moved: Moved) -> Explained:
    """Explain every case that `moved`. A count by `perf` is explained by one pair under callgrind."""
    found = Explained()
    for entry, verdict in zip(docket.entries, verdicts, strict=True):
        if not moved(entry, verdict):
            continue
        try:
            explanation = _explanation(docket, entry, session)
        except CannotMeasure as error:
            found.missing.append(f"{entry.label} {entry.metric} has no explanation: {error.sentence}")
            continue
        if explanation is not None:
            found.by_case[entry.label, entry.metric] = explanation
    return found


def _explanation(docket: Docket, entry: Entry, session: Session) -> Explanation | None:
    arms = docket.before, docket.after
    if isinstance(entry.case, MemoryCase) and not entry.failure and entry.before:
        return _memory_explanation(docket, entry, session)
    if entry.metric != "instructions" or entry.provider == PROFILE_KIND:
        return explain_entry(session.layout, entry, arms, session.store.attachment)
    jobs = [
        Job(arm, entry.workload, entry.variant, PROFILE_KIND, docket.profile, 0, docket.next_position()) for arm in arms
    ]
    before, after = session.execute(jobs)
    for measurement in (before, after):
        if measurement.status != "ok":
            raise CannotMeasure(measurement.reason)
    return explain_pair(session.layout, entry.label, arms, (before, after), session.store.attachment)


def _memory_explanation(docket: Docket, entry: Entry, session: Session) -> Explanation:
    """Explain a memory case with the allocators' own statistics beside it, from one more execution of each arm."""
    jobs = [
        Job(arm, entry.workload, entry.variant, STATISTICS, docket.profile, 0, docket.next_position())
        for arm in (docket.before, docket.after)
    ]
    before, after = session.execute(jobs)
    told = [[run] if run.status == "ok" else [] for run in (before, after)]
    return explain_memory(entry.label, [*entry.before, *told[0]], [*entry.after, *told[1]], MEMORY_FLOOR_BYTES)


def record_verdicts(
    docket: Docket, verdicts: Sequence[Verdict], explanations: Mapping[tuple[str, str], Explanation], session: Session
) -> None:
    """Store a row a workload that carries its verdicts and explanations, beside the samples they were made from."""
    first_of: dict[str, Entry] = {}
    for entry in docket.entries:
        first_of.setdefault(entry.label, entry)
    for label, entry in first_of.items():
        own = [verdict.as_dict() for verdict in verdicts if verdict.name == label]
        attachments = [Attachment(VERDICTS_KIND, json.dumps(own, default=str).encode())]
        attachments += [
            Attachment(EXPLANATION_KIND, json.dumps(explanation.as_dict()).encode())
            for (name, _), explanation in explanations.items()
            if name == label
        ]
        session.store.record(
            Measurement(
                run_id=session.run.id, build=docket.after.build, workload=entry.workload.name, provider=JUDGE,
                variant=entry.variant.name, profile=docket.profile, arm=docket.after.role, status="ok",
                position=docket.next_position(), command=entry.command, attachments=tuple(attachments),
            )
        )  # fmt: skip
