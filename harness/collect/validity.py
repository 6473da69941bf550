"""Decides whether an execution counts: ended by itself, said its end, same allocator as asked for.

perf exits 0 when the program died and callgrind's file exists either way, so nothing here trusts a tool: only the
workload's own end event, its exit code as the launcher saw it, and its word about who provides malloc.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

from harness.collect.events import BrokenProtocol, End, Start, end_of, start_of
from harness.collect.execution import Execution
from harness.model.plan import Job

_EXIT_WRONG_ARGUMENT = 2
_EXIT_WRONG_BYTE = 3
_EXIT_CANNOT_EXEC = 127


class Void(Exception):
    """The execution does not count. The message is one sentence that says what to do."""


@dataclass(frozen=True)
class Outcome:
    """The events of a valid execution."""

    start: Start
    end: End


def check(execution: Execution, job: Job) -> Outcome:
    """Return the outcome of a valid execution; Void says what is wrong with it."""
    who = f"{job.workload.label(job.variant)} under {job.arm.name}"
    repeat = f"repeat it with `{repeat_command(job)}`"
    if execution.timed_out:
        raise Void(
            f"{who} did not end in its time (timeout_s {job.workload.timeout_s:g}): "
            f"look for a hang, or raise timeout_s in its manifest; {repeat}."
        )
    if execution.broken:
        raise Void(f"{who} {execution.broken}: correct the workload; {repeat}.")
    check_exit(execution, job)
    try:
        start, end = start_of(execution.events), end_of(execution.events)
    except BrokenProtocol as error:
        raise Void(f"{who} {error}, so its figures are void: {repeat}.{_said(execution)}") from error
    if start.workload != job.workload.name:
        raise Void(f"The binary of {job.workload.name} calls itself {start.workload}: rebuild with `make`.")
    if not job.arm.expects(start.malloc_object):
        raise Void(
            f"{who} used malloc of {start.malloc_object or 'nobody'} instead: the allocator was not loaded; "
            f"check its section in allocators.toml.{_said(execution)}"
        )
    return Outcome(start, end)


def require_nobody_left(execution: Execution, job: Job) -> None:
    """Raise Void if a process outlived the workload: what it had still to do is in nobody's count."""
    left = execution.usage.leftovers if execution.usage else 0
    if left:
        raise Void(
            f"{job.workload.label(job.variant)} under {job.arm.name} left {left} process{'es' if left > 1 else ''} "
            "running that were not counted to their end: the workload must wait for its children."
        )


def repeat_command(job: Job) -> str:
    """Return the command that repeats one job."""
    config, role = job.arm.config, job.arm.role
    named = config.name if role in ("tree", "reference") else f"{config.name}@{job.arm.build.revision[:12]}"
    profile = "" if job.profile == "quick" else " --profile full"
    return (
        f"./tidemark run --workload {job.workload.name}:{job.variant.name} --allocator {named} "
        f"--provider {job.provider}{profile}"
    )


def check_exit(execution: Execution, job: Job) -> None:
    """Raise Void unless the program ended by itself with exit code 0."""
    who = f"{job.workload.label(job.variant)} under {job.arm.name}"
    repeat = f"repeat it with `{repeat_command(job)}`"
    usage = execution.usage
    if usage is None:
        raise Void(f"{who} was lost, its launcher left no report: {repeat}.{_said(execution)}")
    if usage.signal:
        raise Void(f"{who} was ended by {_signal_name(usage.signal)}: {repeat}.{_said(execution)}")
    if usage.exit == _EXIT_WRONG_BYTE:
        raise Void(f"{who} found a wrong byte or result: {repeat}.{_said(execution)}")
    if usage.exit == _EXIT_WRONG_ARGUMENT:
        raise Void(f"{who} could not run: correct what it names, then {repeat}.{_said(execution)}")
    if usage.exit == _EXIT_CANNOT_EXEC:
        raise Void(f"{who} could not be started: run `make`, then {repeat}.{_said(execution)}")
    if usage.exit > 128 and usage.exit - 128 in set(signal.Signals):
        raise Void(f"{who} was ended by {_signal_name(usage.exit - 128)}: {repeat}.{_said(execution)}")
    if usage.exit:
        raise Void(f"{who} ended with exit code {usage.exit}: {repeat}.{_said(execution)}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _said(execution: Execution) -> str:
    lines = [line for line in execution.errors.splitlines() if line.strip()]
    return f" It said: {lines[-1].strip()[:200]}" if lines else ""
