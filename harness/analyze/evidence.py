"""Turns arms and their stored measurements into explanations: profiles, binaries and sources are fetched here.

Called by gate, compare and explain. Reads build folders and the measurements' attachments; the thinking is in
`explanation`. CannotMeasure says what evidence is missing and how to get it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from harness.analyze.docket import Entry
from harness.analyze.explanation import CountExplanation, MemoryExplanation, Side, explain_counts, explain_memory
from harness.analyze.placement import place
from harness.analyze.profile_diff import SourceView
from harness.analyze.source_lines import Sources
from harness.build.revision import source_folder
from harness.collect.callgrind_profile import BrokenProfile, parse
from harness.model.arm import TREE, Arm
from harness.model.errors import CannotMeasure
from harness.model.layout import Layout
from results.records import Measurement

PROFILE_KIND = "callgrind"
EXPLANATION_KIND = "explanation"
MEMORY_FLOOR_BYTES = 64.0 * 1024
"""Sixteen pages: what process start moves by itself."""

_FIGURES = re.compile(r"[-+]?\d[\d.,]*")
Explanation = CountExplanation | MemoryExplanation
Fetch = Callable[[str, str], bytes | None]
"""From a measurement's id and an attachment's kind to the attachment: the store's own method."""


def explain_entry(
    layout: Layout, entry: Entry, arms: tuple[Arm, Arm], fetch: Fetch, floor_bytes: float = MEMORY_FLOOR_BYTES
) -> Explanation | None:
    """Explain one judged case from the measurements it holds; None when it has nothing that could explain it.

    `floor_bytes` is the least difference of a memory category worth a word.
    """
    if entry.failure or not entry.before:
        return None
    if entry.workload.memory is not None and entry.provider == "smaps":
        return explain_memory(entry.label, entry.before, entry.after, floor_bytes)
    if entry.provider != PROFILE_KIND:
        return None
    return explain_pair(layout, entry.label, arms, (entry.before[-1], entry.after[-1]), fetch)


def explain_pair(
    layout: Layout, label: str, arms: tuple[Arm, Arm], pair: tuple[Measurement, Measurement], fetch: Fetch
) -> CountExplanation:
    """Explain the counts of two measurements; `fetch` finds profiles that the records do not carry."""
    sides = tuple(_side(arm, measurement, fetch) for arm, measurement in zip(arms, pair, strict=True))
    return explain_counts(label, sides[0], sides[1], source_view(layout, arms))


def source_view(layout: Layout, arms: tuple[Arm, Arm]) -> SourceView:
    """Return how source files and lines of the two builds correspond."""
    roots = tuple(_source_root(layout, arm) for arm in arms)
    judged = frozenset(arm.preload.name for arm in arms if arm.preload is not None)
    sources = Sources(*(_reader(root) for root in roots))
    return SourceView(
        name_before=_namer(roots[0]), name_after=_namer(roots[1]), moved_line=sources.moved_line,
        text_before=sources.text_before, text_after=sources.text_after, judged=judged,
    )  # fmt: skip


def _side(arm: Arm, measurement: Measurement, fetch: Fetch) -> Side:
    packed = next((item.data for item in measurement.attachments if item.kind == PROFILE_KIND), None)
    packed = packed if packed is not None else fetch(measurement.id, PROFILE_KIND)
    if packed is None:
        raise CannotMeasure(
            f"The measurement of {measurement.workload} under {arm.name} has no callgrind profile: "
            "measure it with --provider callgrind."
        )
    if not measurement.operations:
        raise CannotMeasure(
            f"{measurement.workload} says nothing of its operations, so its count cannot be explained "
            "per operation: let its end event carry them."
        )
    try:
        profile = parse(packed) if arm.preload is None else place(parse(packed), arm.preload)
    except BrokenProfile as error:
        raise CannotMeasure(
            f"The stored profile of {measurement.workload} under {arm.name} is broken ({error}): " "measure it again."
        ) from error
    return Side(arm.name, arm.build.revision, profile, measurement.operations, arm.preload)


def _source_root(layout: Layout, arm: Arm) -> Path | None:
    if arm.config.kind != "git":
        return None
    if arm.role == TREE and arm.config.repository == "self":
        return layout.root
    try:
        return source_folder(layout, arm.config, arm.build.revision).resolve()
    except CannotMeasure:
        return None


def _namer(root: Path | None) -> Callable[[str], str]:
    prefix = "" if root is None else f"{root}/"

    def name(path: str) -> str:
        if prefix and path.startswith(prefix):
            return path[len(prefix) :]
        # A build that maps its source folder to `.` names `build/./heap/heap.cc`, whatever folder it was made in.
        return path if path.startswith("/") else path.rpartition("/./")[2].removeprefix("./")

    return name


def _reader(root: Path | None) -> Callable[[str], str | None]:
    def read(name: str) -> str | None:
        if root is None or Path(name).is_absolute():
            return None
        try:
            return (root / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    return read


def sentences_of(explanations: Iterable[Explanation]) -> list[str]:
    """Return the sentences, each with its workload in front.

    Workloads often move for one reason: what another workload has said already but for the figures is
    left out, except for the first sentence, which holds a workload's total.
    """
    told: set[str] = set()
    sentences = []
    for item in explanations:
        for index, sentence in enumerate(item.sentences):
            gist = _FIGURES.sub("", sentence)
            if index == 0 or gist not in told:
                sentences.append(f"{item.workload}: {sentence}")
            told.add(gist)
    return sentences
