"""Provider `callgrind`: exact instruction counts by function, line and address, without a PMU.

What it takes care of (each found by measuring, and tested):
- Collection starts switched off; the workload toggles it around its region of interest, in every thread.
- A forked child inherits the counts its parent has collected so far. The profile is therefore dumped, which also
  zeroes it, before every fork; the parts and the children's files then add up without counting anything twice.
- Threads run in a fair, repeatable order (`--fair-sched`).
- ASLR is off, the environment has one size, clock-driven work of the allocator is off (`counting_environment`).
"""

from __future__ import annotations

import shlex
import shutil
from dataclasses import replace
from pathlib import Path

from harness.collect.callgrind_profile import BrokenProfile, Profile, pack, parse
from harness.collect.environment import tool_version
from harness.collect.execution import execute
from harness.collect.launch import Launch, prepare
from harness.collect.providers.base import Context, Probe, Reading, own_samples
from harness.collect.validity import Void, check, repeat_command, require_nobody_left
from harness.model.plan import Job
from harness.model.workload import Workload
from results.records import Attachment, Sample

SLOWDOWN = 60
"""Times a native run: 20 to 50 is usual, contended spinning costs more."""
NAMES_OF_FORK = ("fork", "fork@*", "__fork", "__libc_fork", "_Fork", "_Fork@*")
"""How libc's fork is called, with and without its debug symbols. A dump too many costs a file and no count."""
FUNCTION_SHARE_MIN = 0.001
FUNCTIONS_MAX = 60
"""Functions stored as samples: those with a thousandth of the total, at most 60; the attachment holds all."""


class CallgrindProvider:
    """Instruction counts by simulation."""

    name = "callgrind"
    alone = False

    def probe(self) -> Probe:
        """Say whether valgrind is installed."""
        if shutil.which("valgrind") is None:
            return Probe(False, "callgrind needs valgrind: run `apt-get install valgrind`.")
        return Probe(True, f"exact instruction counts by function and line (valgrind {tool_version('valgrind')})")

    def accepts(self, workload: Workload) -> str:
        """Refuse benchmarks: they repeat until a clock says enough, which a count cannot use."""
        return "gbench programs repeat by the clock; use --provider gbench." if workload.kind == "gbench" else ""

    def measure(self, job: Job, context: Context) -> Reading:
        """Run the job under callgrind and read its profile."""
        folder = context.scratch / "profile"
        folder.mkdir(parents=True, exist_ok=True)
        launch = _under_callgrind(job, context, folder)
        execution = execute(launch, context.scratch, context.stop)
        outcome = check(execution, job)
        require_nobody_left(execution, job)
        files = sorted(folder.iterdir(), key=_file_order)
        profile, packed = _read(files, job)
        samples = [Sample("instructions", "count", float(profile.total))]
        samples += _by_function(profile)
        samples += [
            sample for sample in own_samples(execution.events, outcome) if sample.unit != "s" and sample.unit != "ns"
        ]
        return Reading(execution.command, outcome, tuple(samples), attachments=(Attachment("callgrind", packed),))


def _under_callgrind(job: Job, context: Context, folder: Path) -> Launch:
    launch = prepare(job, context.layout, context.launcher, counting=True, slowdown=SLOWDOWN,
                     temporary=context.temporary)  # fmt: skip
    valgrind = shutil.which("valgrind") or "valgrind"
    tool = (
        valgrind,
        "--tool=callgrind",
        "--quiet",
        f"--callgrind-out-file={folder}/p.%p",
        "--dump-instr=yes",
        *(f"--dump-before={name}" for name in NAMES_OF_FORK),
        "--trace-children=yes",
        f"--collect-atstart={'yes' if job.workload.region == 'process' else 'no'}",
        f"--fair-sched={'yes' if job.workload.threads > 1 else 'no'}",
    )
    launch = replace(launch, cpus="" if context.cpu is None else str(context.cpu))
    if job.workload.kind == "app":
        wrapped = {**launch.environment, "TIDEMARK_WRAP": shlex.join(tool)}
        return replace(launch, environment=wrapped)
    return launch.wrapped(tool, inner=False)


def _file_order(path: Path) -> tuple[int, ...]:
    """Sort `p.<pid>[.<part>]` by pid, parts before the last file of each."""
    numbers = [int(word) for word in path.name.split(".")[1:] if word.isdigit()]
    return (numbers[0] if numbers else 0, numbers[1] if len(numbers) > 1 else 1 << 30)


def _read(files: list[Path], job: Job) -> tuple[Profile, bytes]:
    """Return the summed profile of all parts and processes, and its packed text."""
    who = f"{job.workload.label(job.variant)} under {job.arm.name}"
    if not files:
        raise Void(f"callgrind left no profile of {who}: repeat it with `{repeat_command(job)}`.")
    packed = pack(path.read_bytes() for path in files)
    try:
        profile = parse(packed)
    except BrokenProfile as error:
        raise Void(
            f"callgrind's profile of {who} is broken ({error}): repeat it with `{repeat_command(job)}`."
        ) from error
    if profile.total == 0:
        raise Void(f"{who} counted nothing: the workload must toggle collection around its region of interest.")
    if profile.total != sum(profile.functions.values()):
        raise Void(
            f"callgrind's profile of {who} does not add up ({profile.total} in all, "
            f"{sum(profile.functions.values())} by function): repeat it with `{repeat_command(job)}`."
        )
    return profile, packed


def _by_function(profile: Profile) -> list[Sample]:
    floor = profile.total * FUNCTION_SHARE_MIN
    return [
        Sample("function_instructions", "count", float(cost), detail=name)
        for name, cost in profile.by_name().most_common(FUNCTIONS_MAX)
        if cost >= floor
    ]
