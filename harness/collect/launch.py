"""What to start and how: the command line of a measured program, from a job's parts.

The launcher (`launcher.c`) is always outermost, so that what is inherited is fixed in one place. Immutable data.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.collect.environment import workload_environment
from harness.model.layout import Layout
from harness.model.plan import Job


@dataclass(frozen=True)
class Launch:
    """One program to start."""

    launcher: Path
    command: tuple[str, ...]
    cwd: Path
    environment: dict[str, str]
    timeout_s: float
    randomize: bool = True
    """False switches address-space randomisation off, for counting."""
    cpus: str = ""
    """Processors to stay on, as the kernel lists them (`3`, `0-7,9`); empty for all."""
    wrapper: tuple[str, ...] = ()
    """A tool that starts the program, such as perf or valgrind."""
    inner: bool = False
    """True when the tool itself must not run under the arm's environment: a second launcher sets it behind it."""
    kept_fds: tuple[int, ...] = field(default=())

    def argv(self, report_fd: int | None, added: dict[str, str]) -> list[str]:
        """Return the command line; `added` are variables that only exist for this execution.

        The padding shrinks by what is added, so that the environment keeps its size.
        """
        variables = {**self.environment, **added}
        padding = variables.get("TIDEMARK_PADDING", "")
        grown = sum(len(name) + len(value) + 2 for name, value in added.items() if name not in self.environment)
        variables["TIDEMARK_PADDING"] = padding[: max(0, len(padding) - grown)]
        outer = [str(self.launcher)]
        if report_fd is not None:
            outer += ["-r", str(report_fd)]
        if not self.randomize:
            outer.append("-R")
        if self.cpus:
            outer += ["-c", self.cpus]
        outer += ["-d", str(self.cwd)]
        listed = [word for name, value in sorted(variables.items()) for word in ("-e", f"{name}={value}")]
        if not self.inner:
            return [*outer, *listed, "--", *self.wrapper, *self.command]
        tool = ["-e", f"PATH={variables.get('PATH', '')}", "-e", "LC_ALL=C"]
        return [*outer, *tool, "--", *self.wrapper, str(self.launcher), *listed, "--", *self.command]

    def wrapped(self, wrapper: tuple[str, ...], inner: bool) -> Launch:
        """Return the same launch under a tool."""
        return replace(self, wrapper=wrapper, inner=inner)


def prepare(
    job: Job, layout: Layout, launcher: Path, counting: bool, slowdown: float = 1.0, temporary: Path | None = None
) -> Launch:
    """Return the launch of a job's workload under its arm, without any tool; CannotMeasure when it is not built.

    `counting`: ASLR off and the arm's counting tunables. `slowdown` stretches the workload's timeout. An app gets
    the arm in TIDEMARK_PRELOAD and TIDEMARK_TUNABLES: its driver must not itself run under the allocator. Its
    temporary files go to `temporary`, since a driver that is killed removes nothing.
    """
    program, folder = job.workload.program(layout)
    arguments = job.variant.arguments(job.profile, counting and job.provider == "callgrind")
    tunables = job.arm.environment(counting)
    if job.workload.kind == "app":
        extra = {"TIDEMARK_TUNABLES": shlex.join(f"{name}={value}" for name, value in sorted(tunables.items()))}
        if job.arm.preload is not None:
            extra["TIDEMARK_PRELOAD"] = str(job.arm.preload)
        if temporary is not None:
            extra["TMPDIR"] = str(temporary)
        environment = workload_environment(None, extra)
    else:
        environment = workload_environment(job.arm.preload, tunables)
    return Launch(
        launcher=launcher,
        command=(*program, *arguments),
        cwd=folder,
        environment=environment,
        timeout_s=job.workload.timeout_s * slowdown,
        randomize=not counting,
    )
