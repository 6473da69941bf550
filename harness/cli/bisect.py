"""`tidemark bisect GOOD BAD`: the first commit that made a workload's figure worse."""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace

import click

from harness.analyze.bisection import Bisection, State, first_bad
from harness.analyze.docket import Docket, Entry, fill, unchanged_code
from harness.analyze.evidence import explain_entry
from harness.analyze.thresholds import MEMORY_METRIC, load_thresholds
from harness.analyze.verdict import Outcome, Verdict
from harness.build.arms import revision_arm
from harness.build.commands import git
from harness.build.revision import repository_of, resolve_commit
from harness.cli.context import Context, command_line, json_option, pass_context, print_json
from harness.collect.environment import read_environment
from harness.collect.providers import instruction_counter
from harness.collect.session import Session
from harness.model.allocator import AllocatorConfig, select_allocators
from harness.model.arm import Arm
from harness.model.errors import EXIT_FINE, CannotMeasure
from harness.model.plan import Job
from harness.model.workload import Profile, select_workloads
from harness.present.progress import progress_for
from results.records import Measurement

METRICS = ("instructions", MEMORY_METRIC)


@click.command()
@click.argument("good")
@click.argument("bad")
@click.option(
    "--workload", "-w", "workload", required=True, metavar="NAME[:VARIANT]", help="Whose figure became worse."
)
@click.option("--metric", "-m", type=click.Choice(METRICS), default="instructions", show_default=True)
@click.option(
    "--profile",
    type=click.Choice(["quick", "full"]),
    default="quick",
    show_default=True,
    help="Size of each execution.",
)
@click.option(
    "--allocator",
    "-a",
    "allocator",
    metavar="NAME",
    help="A git allocator of allocators.toml; default: this repository's.",
)
@json_option
@pass_context
def command(context: Context, good: str, bad: str, workload: str, metric: str, profile: Profile,
            allocator: str | None, as_json: bool) -> int:  # fmt: skip
    """Find the first commit between GOOD and BAD that is a regression against GOOD.

    Commits that do not build are stepped around; what is stored of this environment is not measured again.
    """
    config = select_allocators(context.allocators(), [allocator])[0] if allocator else context.own_allocator()
    commits = commits_between(context, config, good, bad)
    with Session(context.layout, context.store(), "bisect", command_line(), progress_for()) as session:
        judge = CommitJudge(context, config, session, good, workload, metric, profile)
        last = judge(commits[-1])
        if last != "bad":
            verdict = judge.verdicts.get(commits[-1])
            said = verdict.sentence() if verdict is not None else judge.skipped.get(commits[-1], "")
            raise CannotMeasure(f"{bad} is no regression against {good}, so there is nothing to bisect: {said}")
        found = first_bad(commits, judge)
    _report(context, config, judge, found, as_json)
    return EXIT_FINE


def commits_between(context: Context, config: AllocatorConfig, good: str, bad: str) -> list[str]:
    """Return the commits after GOOD up to BAD, oldest first; CannotMeasure when GOOD is no ancestor of BAD."""
    repository = repository_of(context.layout, config)
    first, last = (resolve_commit(context.layout, config, revision) for revision in (good, bad))
    commits = git(repository, "rev-list", "--reverse", "--topo-order", "--ancestry-path", f"{first}..{last}").split()
    if not commits:
        raise CannotMeasure(f"{good} is no ancestor of {bad}: name an older commit of the same branch as GOOD.")
    return commits


class CommitJudge:
    """Judges commits against GOOD, from stored measurements as far as there are any. Keeps every verdict."""

    def __init__(
        self,
        context: Context,
        config: AllocatorConfig,
        session: Session,
        good: str,
        workload: str,
        metric: str,
        profile: Profile,
    ) -> None:
        self.layout = context.layout
        self.config = config
        self.session = session
        self.metric = metric
        self.profile: Profile = profile
        self.selection = select_workloads(context.workloads(), [workload])[:1]
        self.thresholds = load_thresholds(context.layout.pin_file.parent / "thresholds.toml")
        self.good = _arm(context, config, good)
        self.positions = itertools.count()
        self.verdicts: dict[str, Verdict] = {}
        self.entries: dict[str, tuple[Docket, Entry]] = {}
        self.skipped: dict[str, str] = {}
        self.reused = self.measured = 0
        self._runs: dict[str, list[Measurement]] = {}
        self._command = f"./tidemark compare {good} {{}} --workload {workload} --metric {metric}"

    def __call__(self, commit: str) -> State:
        """Return whether `commit` is a regression against GOOD; `skip` when it does not build or run."""
        if commit in self.verdicts:
            return "bad" if self.verdicts[commit].is_regression else "good"
        try:
            arm = replace(revision_arm(self.layout, self.config, commit), role=commit[:12])
        except CannotMeasure as error:
            return self._skip(commit, error.sentence)
        docket = Docket(self.good, arm, self.profile, self.positions)
        fill(docket, self.selection, self.thresholds, counter=instruction_counter(), metrics=(self.metric,),
             command=lambda _: self._command.format(commit[:12]))  # fmt: skip
        if not docket.entries:
            raise CannotMeasure(
                f"{self.selection[0][0].name} has no {self.metric} that could be judged: choose another metric."
            )
        (entry,) = docket.entries
        same = unchanged_code(docket)
        if same is None:
            self._decide(docket)
        verdict = entry.verdict() if same is None else same[0]
        if verdict.outcome in (Outcome.NOT_MEASURED, Outcome.CANNOT_TELL):
            return self._skip(commit, verdict.reason)
        self.verdicts[commit], self.entries[commit] = verdict, (docket, entry)
        self._say(commit, verdict.sentence())
        return "bad" if verdict.is_regression else "good"

    def _decide(self, docket: Docket) -> None:
        while jobs := docket.wanted():
            found = {job.position: run for job in jobs if (run := self._stored(job)) is not None}
            todo = [job for job in jobs if job.position not in found]
            self.reused += len(found)
            self.measured += len(todo)
            fresh = dict(zip([job.position for job in todo], self.session.execute(todo), strict=True)) if todo else {}
            for job in todo:
                self._pool(job).append(fresh[job.position])
            docket.take(jobs, [found[job.position] if job.position in found else fresh[job.position] for job in jobs])

    def _stored(self, job: Job) -> Measurement | None:
        """Return the run that stands for repeat number `job.repeat` of this build, if there is one."""
        pool = [run for run in self._pool(job) if run.status == "ok"]
        return pool[job.repeat] if job.repeat < len(pool) else None

    def _pool(self, job: Job) -> list[Measurement]:
        key = job.arm.build.key
        if key not in self._runs:
            stored = self.session.store.measurements(
                workload=job.workload.name, variant=job.variant.name, provider=job.provider, status="ok",
                environment_key=read_environment().key, allocator=job.arm.build.allocator, profile=self.profile,
            )  # fmt: skip
            self._runs[key] = [run for run in stored if run.build.key == key]
        return self._runs[key]

    def _skip(self, commit: str, reason: str) -> State:
        self.skipped[commit] = reason
        self._say(commit, f"skipped: {reason.splitlines()[0]}")
        return "skip"

    def _say(self, commit: str, text: str) -> None:
        print(f"{commit[:12]} {text}", file=sys.stderr, flush=True)


def _arm(context: Context, config: AllocatorConfig, revision: str) -> Arm:
    arm = revision_arm(context.layout, config, revision)
    return replace(arm, role=arm.build.revision[:12])


def _report(context: Context, config: AllocatorConfig, judge: CommitJudge, found: Bisection, as_json: bool) -> None:
    repository = repository_of(context.layout, config)
    subject = git(repository, "log", "-1", "--format=%s", found.first_bad)
    verdict = judge.verdicts[found.first_bad]
    docket, entry = judge.entries[found.first_bad]
    try:
        explanation = explain_entry(context.layout, entry, (docket.before, docket.after), context.store().attachment)
    except CannotMeasure as error:
        explanation = None
        print(f"tidemark: no explanation. {error.sentence}", file=sys.stderr)
    if as_json:
        print_json({
            "first_bad": found.first_bad, "subject": subject, "suspects": found.suspects, "judged": found.judged,
            "skipped": judge.skipped, "verdict": verdict.as_dict(), "measured": judge.measured, "reused": judge.reused,
            "explanation": None if explanation is None else explanation.as_dict(),
        })  # fmt: skip
        return
    click.echo(f"first bad commit: {found.first_bad[:12]} {subject}")
    click.echo(verdict.sentence())
    for sentence in explanation.sentences if explanation is not None else ():
        click.echo(f"why: {sentence}")
    if found.suspects:
        names = ", ".join(commit[:12] for commit in found.suspects)
        click.echo(f"it may also be one of these, which could not be judged: {names}")
    click.echo(
        f"{len(found.judged)} commits judged, {judge.measured} executions measured, {judge.reused} taken from the store"
    )
