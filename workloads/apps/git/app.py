"""The `git` workload: import a generated history, repack, log and check it; `size` is commits.

Every object id is computed here with hashlib from git's object format, so the head commit's id proves
the whole history. Each round does all steps in a repository of its own.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from pathlib import Path

from apprun.arm import Program
from apprun.process import Usage, run_step
from apprun.session import Session

GIT = Program("git", "git", ("--version",))
FILES = 60
LINES_PER_FILE = 120
FIRST_COMMIT_TIME_S = 1_700_000_000
AUTHOR = "Tide Gauge <gauge@example.org>"
VARIABLES = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    # One thread: how several share the deltas among them would differ from run to run.
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "pack.threads",
    "GIT_CONFIG_VALUE_0": "1",
    "GIT_CONFIG_KEY_1": "gc.auto",
    "GIT_CONFIG_VALUE_1": "0",
}


def object_id(kind: str, content: bytes) -> bytes:
    """Return the binary id that git gives an object."""
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content).digest()


@dataclass(frozen=True)
class History:
    """A generated history: the stream that git fast-import reads, and what must come of it."""

    stream: bytes
    head: str
    subjects: list[str]
    """Of the commits, newest first."""
    last_files: dict[str, bytes]


def _tree(blobs: dict[str, bytes]) -> bytes:
    return b"".join(f"100644 {name}\0".encode() + blobs[name] for name in sorted(blobs))


def make_history(seed: int, commits: int) -> History:
    """Return a linear history in which each commit changes some lines of a few files."""
    source = random.Random(seed)
    files: dict[str, list[str]] = {}
    blobs: dict[str, bytes] = {}
    stream: list[bytes] = [b"feature done\n"]
    subjects: list[str] = []
    parent = b""
    for number in range(1, commits + 1):
        changed = range(FILES) if number == 1 else source.sample(range(FILES), 3)
        message = f"Commit {number} of seed {seed}\n"
        when = f"{AUTHOR} {FIRST_COMMIT_TIME_S + 60 * number} +0000"
        stream.append(f"commit refs/heads/main\nmark :{number}\ncommitter {when}\n".encode())
        stream.append(f"data {len(message)}\n{message}".encode())
        if number > 1:
            stream.append(f"from :{number - 1}\n".encode())
        for index in changed:
            name = f"chart{index:03}.txt"
            lines = files.setdefault(name, [f"{name} {i} {source.random()}\n" for i in range(LINES_PER_FILE)])
            for _ in range(4):
                lines[source.randrange(len(lines))] = f"{number} {source.random()} {'~' * source.randrange(60)}\n"
            content = "".join(lines).encode()
            blobs[name] = object_id("blob", content)
            stream.append(f"M 100644 inline {name}\ndata {len(content)}\n".encode() + content + b"\n")
        ancestry = f"parent {parent.hex()}\n" if parent else ""
        tree = object_id("tree", _tree(blobs)).hex()
        header = f"tree {tree}\n{ancestry}author {when}\ncommitter {when}\n\n"
        parent = object_id("commit", (header + message).encode())
        subjects.insert(0, message.strip())
    stream.append(b"done\n")
    return History(
        b"".join(stream), parent.hex(), subjects, {name: "".join(lines).encode() for name, lines in files.items()}
    )


class Repository:
    """One repository under test, and the usage of all git commands run on it."""

    def __init__(self, session: Session, git: str, round_index: int) -> None:
        self._session = session
        self._git = git
        self._round = round_index
        self.path = session.scratch / f"repository{round_index}"
        self.usages: list[Usage] = []

    def git(self, *arguments: str, input_path: Path | None = None) -> bytes:
        """Run a git command, report its peak memory at a checkpoint, and return its output."""
        argv = [self._git, "-C", str(self.path), *arguments]
        session = self._session
        with session.region():
            step = run_step(session.arm, argv, session.scratch, VARIABLES, input_path)
        self.usages.append(step.usage)
        session.operations += 1
        metrics = {"step_peak_rss_bytes": step.usage.peak_rss_bytes, "step_wall_s": round(step.wall_s, 6)}
        session.events.checkpoint(self._round, arguments[0], 0, metrics)
        return step.output

    def check(self, what: str, output: bytes, expected: str) -> None:
        """Compare a command's output with what it must be."""
        self._session.check(f"git {what}, round {self._round}", output, expected.encode())


def _run_round(session: Session, git: str, round_index: int) -> list[Usage]:
    history = make_history(round_index + 1, session.size)
    stream = session.scratch / "stream"
    stream.write_bytes(history.stream)
    repository = Repository(session, git, round_index)
    repository.path.mkdir()
    repository.git("init", "--quiet", "--initial-branch=main")
    repository.git("fast-import", "--quiet", "--done", input_path=stream)
    repository.check("rev-parse", repository.git("rev-parse", "main"), f"{history.head}\n")
    repository.git("gc", "--quiet", "--aggressive")
    repository.check("fsck", repository.git("fsck", "--full", "--strict", "--no-progress"), "")
    log = repository.git("log", "--format=%s", "--shortstat", "-M")
    subjects = [line for line in log.decode().splitlines() if line.startswith("Commit ")]
    repository.check("log", "\n".join(subjects).encode(), "\n".join(history.subjects))
    repository.git("reset", "--quiet", "--hard", "main")
    for name, content in sorted(history.last_files.items()):
        session.check(f"git reset, {name}", (repository.path / name).read_bytes(), content)
    notes = repository.path / "chart000.txt"
    notes.write_bytes(notes.read_bytes() + b"one more line\n")
    repository.check("diff", repository.git("diff", "--numstat"), "1\t0\tchart000.txt\n")
    return repository.usages


def run(session: Session) -> None:
    """Run all steps on one repository a round."""
    git = session.program(GIT)
    session.start()
    usages: list[Usage] = []
    for round_index in range(session.rounds):
        usages += _run_round(session, git, round_index)
    session.close(
        Usage(
            sum(usage.user_s for usage in usages),
            sum(usage.faults_minor for usage in usages),
            max(usage.peak_rss_bytes for usage in usages),
        )
    )
