"""The docket: every case of a gate or a comparison, and the runs it still asks for.

Called by gate, compare, bisect and the self-test, each of which only has to run the jobs that
`Docket.wanted` asks for and hand the measurements back, until none is wanted. Pure but for that dialogue:
starts nothing, stores nothing, and reads the store only for the noise it has seen. Not thread safe.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from harness.analyze.case import Case, CountCase, Histories, MemoryCase
from harness.analyze.figures import NoFigure, count_of, histories_in, reached_allocator, series_of
from harness.analyze.identity import code_digest
from harness.analyze.thresholds import MEMORY_METRIC, Thresholds
from harness.analyze.verdict import Outcome, Verdict, unplaced
from harness.model.arm import Arm
from harness.model.plan import Job
from harness.model.workload import Profile, Variant, Workload
from results.records import Measurement, utc_now
from results.store import Store

EXACT_PROVIDERS = frozenset({"callgrind"})
"""Providers that count by simulation: one thread's counts repeat."""

UNITS = {"instructions": "instructions", "wall_s": "s", "cycles": "cycles"}
HistorySource = Callable[[Workload, Variant, str, str, Profile], Histories]
"""From workload, variant, provider, metric and profile to the stored histories of this environment."""


def no_history(workload: Workload, variant: Variant, provider: str, metric: str, profile: Profile) -> Histories:
    """The source of histories where nothing is stored."""
    return ()


def stored_history(store: Store, environment_key: str) -> HistorySource:
    """Return the source of the histories that `store` held for one environment at the time of this call."""
    now = utc_now()

    def source(workload: Workload, variant: Variant, provider: str, metric: str, profile: Profile) -> Histories:
        frame = store.samples_frame(
            workload=workload.name, variant=variant.name, provider=provider, status="ok", profile=profile,
            environment_key=environment_key, metric=metric,
        )  # fmt: skip
        return histories_in(frame, now)

    return source


@dataclass
class Entry:
    """One case with what belongs to it."""

    workload: Workload
    variant: Variant
    metric: str
    provider: str
    case: Case
    command: str
    failure: str = ""
    """Why the case could not be measured; ends it."""
    before: list[Measurement] = field(default_factory=list)
    after: list[Measurement] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The workload with its variant, for tables."""
        return self.workload.label(self.variant)

    @property
    def needs_pair(self) -> bool:
        """True while the case wants another run of each arm."""
        return not self.failure and self.case.needs_pair

    def verdict(self) -> Verdict:
        """Return the verdict on the runs so far, placed."""
        bare = unplaced(Outcome.NOT_MEASURED, reason=self.failure) if self.failure else self.case.verdict()
        return bare.named(self.workload.name, self.variant.name, self.metric, self.provider, self.command, self.label)

    def take(self, before: Measurement, after: Measurement) -> None:
        """Take one run of each arm; a run that failed, or two that computed different things, end the case."""
        self.before.append(before)
        self.after.append(after)
        broken = [run for run in (before, after) if run.status != "ok"]
        if broken:
            self.failure = " ".join(dict.fromkeys(f"{run.arm}: {run.reason}" for run in broken))
        elif before.checksum != after.checksum:
            self.failure = (
                f"wrong result: {self.label} computed {after.checksum} under {after.arm} but "
                f"{before.checksum} under {before.arm}, so their figures are not comparable; "
                "repeat it under a debug build."
            )
        else:
            self._add(before, after)

    def _add(self, before: Measurement, after: Measurement) -> None:
        try:
            if isinstance(self.case, MemoryCase):
                assert self.workload.memory is not None
                label = self.workload.memory.series_label
                self.case.add_pair(series_of(before, self.metric, label), series_of(after, self.metric, label))
            elif isinstance(self.case, CountCase):
                self.case.add_pair(count_of(before, self.metric), count_of(after, self.metric))
                if len(self.before) == 1 and self.workload.region == "marked" and not reached_allocator(after):
                    self.failure = (
                        f"{self.label} never allocates in its region of interest, so its count says nothing "
                        "about an allocator: take it out of the gated set or correct it."
                    )
        except NoFigure as error:
            self.failure = str(error)


class Docket:
    """All cases between two arms."""

    def __init__(self, before: Arm, after: Arm, profile: Profile, positions: Iterator[int] | None = None) -> None:
        """`positions` numbers the jobs; a caller that adds jobs of its own shares it."""
        self.before = before
        self.after = after
        self.profile = profile
        self.entries: list[Entry] = []
        self._positions = itertools.count() if positions is None else positions

    def add(self, entry: Entry) -> None:
        """Put a case on the docket."""
        self.entries.append(entry)

    def wanted(self) -> list[Job]:
        """Return the jobs of the next pairs of every open case: counts first, arms in ABBA order by repeat.

        Cases of one workload and provider share their runs.
        """
        jobs: list[Job] = []
        for key, (workload, variant, provider) in self._open_keys().items():
            entries = [entry for entry in self.entries if _key(entry) == key]
            done = max(len(entry.before) for entry in entries)
            pairs = max(entry.case.pairs_certain for entry in entries if entry.needs_pair)
            for repeat in range(done, done + pairs):
                order = (self.before, self.after) if repeat % 2 == 0 else (self.after, self.before)
                jobs += [
                    Job(arm, workload, variant, provider, self.profile, repeat, self.next_position()) for arm in order
                ]
        return jobs

    def next_position(self) -> int:
        """Return the place in the run's order of one more job."""
        return next(self._positions)

    def take(self, jobs: Sequence[Job], measurements: Iterable[Measurement]) -> None:
        """Hand over the measurements of `jobs`, in the same order."""
        pairs: dict[tuple[str, str, str], dict[int, dict[str, Measurement]]] = {}
        for job, measurement in zip(jobs, measurements, strict=True):
            repeats = pairs.setdefault((job.workload.name, job.variant.name, job.provider), {})
            repeats.setdefault(job.repeat, {})["before" if job.arm is self.before else "after"] = measurement
        for entry in self.entries:
            for pair in pairs.get(_key(entry), {}).values():
                if entry.needs_pair:
                    entry.take(pair["before"], pair["after"])

    def ahead(self, wanted: Sequence[Job]) -> list[Job]:
        """Return jobs that stand for those that may follow the `wanted` ones, at most, for the progress display."""
        own = [job for job in wanted if job.arm in (self.before, self.after)]
        now = Counter((job.workload.name, job.variant.name, job.provider) for job in own)
        found: list[Job] = []
        for key, (workload, variant, provider) in self._open_keys().items():
            most = max(entry.case.pairs_left_max for entry in self.entries if _key(entry) == key and entry.needs_pair)
            job = Job(self.after, workload, variant, provider, self.profile, 0, 0)
            found += [job] * max(0, 2 * most - now[key])
        return found

    def verdicts(self) -> list[Verdict]:
        """Return the verdicts of all cases, in the order they were added."""
        return [entry.verdict() for entry in self.entries]

    def _open_keys(self) -> dict[tuple[str, str, str], tuple[Workload, Variant, str]]:
        order = sorted(
            (entry for entry in self.entries if entry.needs_pair),
            key=lambda entry: entry.provider not in EXACT_PROVIDERS,
        )
        return {_key(entry): (entry.workload, entry.variant, entry.provider) for entry in order}


def _key(entry: Entry) -> tuple[str, str, str]:
    return entry.workload.name, entry.variant.name, entry.provider


def fill(
    docket: Docket,
    selection: Sequence[tuple[Workload, Variant]],
    thresholds: Thresholds,
    *,
    counter: str,
    command: Callable[[str], str],
    history: HistorySource = no_history,
    complete: bool = False,
    metrics: Sequence[str] = ("instructions", MEMORY_METRIC),
) -> None:
    """Put a case on the docket for each judged metric of the selected workloads.

    `counter` is the provider of instruction counts here; `command` makes the repeating command from a
    workload's `name:variant`. `complete` asks for all runs of noisy cases, for tables with intervals.
    """
    for workload, variant in selection:
        repeat = command(f"{workload.name}:{variant.name}")
        for metric in metrics:
            if metric not in workload.metrics or not thresholds.gates(metric, workload.name):
                continue
            if metric == MEMORY_METRIC:
                if workload.memory is not None:
                    case: Case = MemoryCase(
                        workload.memory.warmup_rounds, thresholds.memory(workload.name), complete=complete
                    )
                    docket.add(Entry(workload, variant, metric, "smaps", case, repeat))
                continue
            provider = counter if metric == "instructions" else "hyperfine"
            exact = provider in EXACT_PROVIDERS and workload.threads == 1
            case = CountCase(
                thresholds.limit(metric, workload.name),
                UNITS.get(metric, metric),
                exact,
                partial(history, workload, variant, provider, metric, docket.profile),
                complete,
            )
            docket.add(Entry(workload, variant, metric, provider, case, repeat))


def unchanged_code(docket: Docket) -> list[Verdict] | None:
    """Return the verdict `unchanged` for every case when both arms are the same code, else None.

    Nothing is measured then: what is instruction for instruction the same cannot have changed.
    """
    paths = docket.before.preload, docket.after.preload
    if docket.before.build.key == docket.after.build.key:
        reason = (
            f"both are {docket.before.build.allocator} {docket.before.build.revision[:16]}, so nothing was measured"
        )
    elif paths[0] is None or paths[1] is None or code_digest(paths[0]) != code_digest(paths[1]):
        return None
    else:
        reason = "both builds are the same code, instruction for instruction, so nothing was measured"
    return [
        replace(entry.verdict(), outcome=Outcome.UNCHANGED, reason=reason, samples=(0, 0)) for entry in docket.entries
    ]
