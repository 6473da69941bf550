"""What a provider is: it says whether it works here, and turns one job into samples.

Providers are stateless beyond their probe and are called from several threads. A provider raises `Void` for an
execution that does not count; the session turns that into a failed measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, Protocol

from harness.collect.events import Checkpoint, Event
from harness.collect.execution import StopRequest
from harness.collect.validity import Outcome
from harness.model.layout import Layout
from harness.model.plan import Job, unit_of
from harness.model.workload import Workload
from results.records import Attachment, Sample


@dataclass(frozen=True)
class Probe:
    """Whether a provider works on this machine."""

    available: bool
    sentence: str
    """What it measures here; or why it does not work and what would help."""


@dataclass(frozen=True)
class Context:
    """What a provider gets beside the job."""

    layout: Layout
    launcher: Path
    scratch: Path
    """A folder of this job's own, empty."""
    stop: StopRequest
    cpu: int | None = None
    """The processor to stay on, when the session runs counting jobs side by side."""
    temporary: Path | None = None
    """Where an app's driver makes its temporary files; removed with all that is in it when the job has ended."""


@dataclass(frozen=True)
class Reading:
    """What a provider measured in one valid execution."""

    command: str
    outcome: Outcome | None
    """None for programs that do not speak the protocol (gbench)."""
    samples: tuple[Sample, ...]
    attachments: tuple[Attachment, ...] = ()
    active_allocator: str = ""
    """The object that provides malloc, where `outcome` does not say it."""


class Provider(Protocol):
    """One way to look at an execution."""

    name: str
    alone: bool
    """True when nothing else may run beside it: it measures time or memory."""

    def probe(self) -> Probe:
        """Say whether the provider works here. Cheap enough to call before every run."""

    def accepts(self, workload: Workload) -> str:
        """Return why this provider cannot look at a workload, or an empty string."""

    def measure(self, job: Job, context: Context) -> Reading:
        """Run the job once; Void when the execution does not count."""


def own_samples(events: Iterable[Event], outcome: Outcome) -> list[Sample]:
    """Return the figures that the workload reported itself, at its checkpoints and at its end."""
    samples = []
    for event in events:
        if isinstance(event, Checkpoint):
            samples += [checkpoint_sample(event, name, value) for name, value in event.metrics.items()]
    samples += [Sample(name, unit_of(name), value) for name, value in outcome.end.metrics.items()]
    return samples


def checkpoint_sample(event: Checkpoint, metric: str, value: float) -> Sample:
    """Return a sample placed at a checkpoint."""
    return Sample(
        metric, unit_of(metric), float(value), checkpoint=event.checkpoint, label=event.label, time_s=event.time_s
    )
