"""Runs a build command with its output in a log, and turns a failure into one sentence with the log's end.

Used by everything in `harness.build`. Thread safe as long as each build has a log of its own.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Sequence

from harness.model.errors import CannotMeasure

LOG_LINES_SHOWN = 12


def run_logged(command: Sequence[str], log: Path, what: str, cwd: Path, timeout_s: float = 1800) -> None:
    """Run `command`, appending its output to `log`; CannotMeasure with the log's last lines when it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        sink.write(("$ " + " ".join(command) + "\n").encode())
        sink.flush()
        try:
            code = subprocess.run(
                list(command), cwd=cwd, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, timeout=timeout_s
            ).returncode
        except FileNotFoundError as error:
            raise CannotMeasure(f"{what} needs {command[0]}: run `sh harness/setup/install`.") from error
        except OSError as error:
            raise CannotMeasure(f"{what} cannot start {command[0]} ({error.strerror}).") from error
        except subprocess.TimeoutExpired as error:
            raise CannotMeasure(f"{what} did not end within {timeout_s:.0f} s; its log is {log}.") from error
    if code != 0:
        raise CannotMeasure(f"{what} does not build; the last lines of {log} are:\n{tail(log)}")


def tail(log: Path, lines: int = LOG_LINES_SHOWN) -> str:
    """Return the last lines of a log, indented."""
    text = log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()
    return "\n".join("  " + line for line in text[-lines:])


def git(repository: Path, *arguments: str) -> str:
    """Return the output of a git command, stripped; CannotMeasure with git's own words when it fails."""
    environment = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *arguments],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment, errors="replace",
        )  # fmt: skip
    except FileNotFoundError as error:
        raise CannotMeasure("git is missing: run `apt-get install git`.") from error
    if done.returncode != 0:
        words = done.stderr.strip().splitlines()
        raise CannotMeasure(f"git {arguments[0]} failed in {repository}: {words[-1] if words else 'no message'}.")
    return done.stdout.strip()
