"""Provider `hyperfine`: wall clock of the whole process, from hyperfine's JSON export.

Runs without a shell and without checkpoints, so that nothing waits for the harness. The last run's output is checked
like any other: an end event, the allocator that was asked for. hyperfine moves the stack at random with a variable of
its own; the launcher behind it drops that variable, so that all arms see one environment.
"""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace

from harness.collect.environment import tool_version
from harness.collect.events import BrokenProtocol, parse_free_run
from harness.collect.execution import Execution, execute
from harness.collect.launch import Launch, prepare
from harness.collect.providers.base import Context, Probe, Reading
from harness.collect.validity import Void, check, repeat_command
from harness.model.plan import Job, unit_of
from harness.model.workload import Workload
from results.records import Attachment, Sample

RUNS = 3
"""Timed executions in one job: few, because a job is one place in the interleaved order, and drift hits a job whole.
More runs are more jobs (`--repeat`). No warm-up: the median of three does not see a first run that was slower."""


class HyperfineProvider:
    """Wall-clock time."""

    name = "hyperfine"
    alone = True

    def probe(self) -> Probe:
        """Say whether hyperfine is installed."""
        if shutil.which("hyperfine") is None:
            return Probe(False, "hyperfine is missing: run `apt-get install hyperfine`.")
        return Probe(True, f"wall clock of whole processes (hyperfine {tool_version('hyperfine')})")

    def accepts(self, workload: Workload) -> str:
        """Refuse what brings its own clock."""
        if workload.kind == "gbench":
            return "gbench programs time themselves; use --provider gbench."
        if workload.kind == "app":
            return "an app's driver would be timed with its program; its own wall_s is read by --provider smaps."
        return ""

    def measure(self, job: Job, context: Context) -> Reading:
        """Time the job."""
        context.scratch.mkdir(parents=True, exist_ok=True)
        export, output = context.scratch / "hyperfine.json", context.scratch / "workload.out"
        tool = (
            shutil.which("hyperfine") or "hyperfine", "--shell=none", "--style=basic", f"--runs={RUNS}",
            "--warmup=0", f"--export-json={export}", f"--output={output}",
        )  # fmt: skip
        plain = prepare(job, context.layout, context.launcher, counting=False, slowdown=RUNS)
        execution = execute(_under_hyperfine(plain, tool), context.scratch, context.stop, checkpoints=False)
        execution.command = shlex.join(plain.command)
        _take_workload_output(execution, output.read_text(errors="replace") if output.exists() else "")
        _check_exit(execution, job)
        outcome = check(execution, job)
        text = export.read_text(encoding="utf-8") if export.exists() else ""
        samples = read_times(text, job)
        samples += [Sample(n, unit_of(n), v) for n, v in outcome.end.metrics.items() if n != "wall_s"]
        return Reading(execution.command, outcome, tuple(samples), (Attachment("hyperfine", text.encode()),))


def read_times(text: str, job: Job) -> list[Sample]:
    """Return each run of hyperfine's export as a `wall_s` sample; Void when the export is not what it should be."""
    try:
        result = json.loads(text)["results"][0]
        times = [float(value) for value in result["times"]]
        user, system = float(result["user"]), float(result["system"])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise Void(
            f"hyperfine's export cannot be read ({error}): check its version, then `{repeat_command(job)}`."
        ) from error
    if len(times) != RUNS:
        raise Void(f"hyperfine timed {len(times)} runs instead of {RUNS}: `{repeat_command(job)}`.")
    samples = [Sample("wall_s", "s", value, checkpoint=index, label="run") for index, value in enumerate(times)]
    return [*samples, Sample("user_s", "s", user), Sample("system_s", "s", system)]


def _under_hyperfine(plain: Launch, tool: tuple[str, ...]) -> Launch:
    """Return a launch of hyperfine, which starts the launcher, which starts the workload."""
    words = [str(plain.launcher), "-d", str(plain.cwd)]
    words += [word for name, value in sorted(plain.environment.items()) for word in ("-e", f"{name}={value}")]
    command = shlex.join([*words, "--", *plain.command])
    clean = {"PATH": plain.environment.get("PATH", ""), "LC_ALL": "C"}
    return replace(plain, command=(command,), wrapper=tool, environment=clean)


def _take_workload_output(execution: Execution, text: str) -> None:
    execution.output = text
    try:
        execution.events = parse_free_run(text)
        execution.broken = ""
    except BrokenProtocol as error:
        execution.broken = str(error)


def _check_exit(execution: Execution, job: Job) -> None:
    """hyperfine hides how the workload ended: send the user to a provider that shows it."""
    if execution.usage is not None and execution.usage.exit == 1 and not execution.timed_out:
        shown = repeat_command(replace(job, provider="smaps"))
        lines = [line.strip() for line in execution.errors.splitlines()]
        said = [line.partition(". ")[0] for line in lines if line.startswith("Error:")]
        raise Void(
            f"{job.workload.label(job.variant)} under {job.arm.name} failed while it was timed: see how with `{shown}`."
            + (f" hyperfine said: {said[-1]}" if said else "")
        )
