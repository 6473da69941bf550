"""Commands run side by side within their processors and their time."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from runner.execution import PROCESSORS, Finished, Task, run_all
from runner.suites import python_suites

ROOT = Path(__file__).resolve().parents[2]
COUNT_NEIGHBOURS = """
import pathlib, sys, time
mine = pathlib.Path(sys.argv[1]); weight = int(sys.argv[2])
mine.write_text(str(weight))
most = 0
for _ in range(20):
    most = max(most, sum(int(p.read_text() or 0) for p in mine.parent.glob("*.running")))
    time.sleep(0.005)
mine.rename(mine.with_suffix(".done"))
sys.exit(0 if most <= %d else 9)
""" % PROCESSORS


def python(name: str, directory: Path, code: str, *arguments: str, processors: int = 1, timeout_s: float = 60) -> Task:
    command = (sys.executable, "-c", code, *arguments)
    return Task(name, command, directory, timeout_s, processors).logged_in(directory / "logs")


def test_no_more_processors_are_kept_busy_than_there_are(tmp_path: Path) -> None:
    tasks = [
        python(str(i), tmp_path, COUNT_NEIGHBOURS, str(tmp_path / f"{i}.running"), str(weight), processors=weight)
        for i, weight in enumerate((1, 1, 2, 1, 2, 1, 1))
    ]
    assert [done.code for done in run_all(tasks, None)] == [0] * len(tasks)


def test_each_end_is_reported_once_with_its_output_in_a_file(tmp_path: Path) -> None:
    reported: list[Finished] = []
    tasks = [python(f"a/{code}", tmp_path, f"print('code {code}'); raise SystemExit({code})") for code in (0, 3)]
    ended = run_all(tasks, reported.append)
    assert sorted(done.code for done in reported) == [0, 3] == sorted(done.code for done in ended)
    assert "code 3" in (tmp_path / "logs" / "a-3.txt").read_text(encoding="utf-8")


def test_what_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    code = "import subprocess, time; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); time.sleep(600)"
    done = run_all([python("slow", tmp_path, code, timeout_s=2)], None)[0]
    assert "did not end" in done.complaint and done.code < 0
    child = (tmp_path / "logs" / "slow.txt").read_text(encoding="utf-8").split()[-1]
    # The signal is on its way when run_all returns; what it ended may stay a zombie for a while.
    deadline_s = time.monotonic() + 30
    while is_running(child):
        assert time.monotonic() < deadline_s, f"process {child} was left behind"
        time.sleep(0.01)


def is_running(process: str) -> bool:
    """Say whether a process exists and is no zombie."""
    try:
        return "Z (zombie)" not in Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_every_test_file_belongs_to_exactly_one_suite() -> None:
    suites = python_suites(ROOT)
    for path in (ROOT / "tests").rglob("test_*.py"):
        name = path.relative_to(ROOT).as_posix()
        holders = [
            suite.name
            for suite in suites
            if any(argument == name or name.startswith(argument + "/") for argument in suite.arguments)
            and f"--ignore={name}" not in suite.arguments
        ]
        assert len(holders) == 1, f"{name}: {holders}"
