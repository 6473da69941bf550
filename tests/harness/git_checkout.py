"""The repository under test, and git in a folder of a test's own. A module of its own, because there is more than
one conftest.py."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_git(folder: Path, *words: str) -> str:
    """Run git in a fixture repository with an identity of its own."""
    identity = {
        "GIT_AUTHOR_NAME": "Test", "GIT_AUTHOR_EMAIL": "test@example.org", "GIT_COMMITTER_NAME": "Test",
        "GIT_COMMITTER_EMAIL": "test@example.org", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
    }  # fmt: skip
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **identity}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
