"""Fixtures of the harness's tests: a small checkout of its own with a fake workload and a git-built allocator.

The checkout has everything a real one has (git history, manifests, allocators.toml, a built tree), so that every
command runs as it does for a user, in milliseconds. It is made once a test process and copied per test.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

FIXTURES = Path(__file__).resolve().parent / "fixtures"
sys.path.insert(0, str(FIXTURES.parent))
from git_checkout import ROOT, run_git  # noqa: E402

sys.path.insert(0, str(ROOT))

from harness.build.launcher import launcher_path  # noqa: E402
from harness.cli import main  # noqa: E402
from harness.collect.execution import StopRequest  # noqa: E402
from harness.collect.providers.base import Context as ProviderContext  # noqa: E402
from harness.model.allocator import load_allocators  # noqa: E402
from harness.model.arm import REFERENCE, Arm  # noqa: E402
from harness.model.layout import Layout  # noqa: E402
from harness.model.plan import Job  # noqa: E402
from harness.model.workload import load_workloads  # noqa: E402
from results.records import Build  # noqa: E402

# A deadline is an assertion on absolute time, which a busy machine fails.
hypothesis.settings.register_profile("without_deadline", deadline=None)
hypothesis.settings.load_profile("without_deadline")

MANIFEST = """
name = "fake"
summary = "A fake workload."
stresses = "The harness."
kind = "binary"
threads = 1
tags = ["fixed", "gated"]
metrics = ["instructions", "rss_bytes", "wall_s"]
timeout_s = 20

[memory]
series_label = "round"
warmup_rounds = 1

[[variant]]
name = "default"
quick = []
"""

ALLOCATORS = """
[allocator.own]
kind = "git"
repository = "self"
build = [["cc", "-O1", "-g", "-shared", "-fPIC", "-ffile-prefix-map={source}=.", "-o", "{build}/libown.so",
          "{source}/own.c"]]
artefact = "libown.so"
working_tree = "build/release/libown.so"

[allocator.glibc]
kind = "libc"

[allocator.absent]
kind = "preload"
package = "libabsent9"
paths = ["/nonexistent/libabsent.so"]
"""


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the checkout that tests copy."""
    root = tmp_path_factory.mktemp("checkout") / "root"
    release = root / "build" / "release"
    (release / "workloads").mkdir(parents=True)
    (root / "workloads" / "fake").mkdir(parents=True)
    (root / "harness").mkdir()
    (root / "workloads" / "fake" / "workload.toml").write_text(MANIFEST)
    (root / "harness" / "allocators.toml").write_text(ALLOCATORS)
    (root / ".gitignore").write_text("build/\nresults/*.sqlite*\n")
    shutil.copy(FIXTURES / "bump_allocator.c", root / "own.c")
    compile_c(FIXTURES / "fake_workload.c", release / "workloads" / "fake", "-O1", "-g", "-pthread")
    compile_c(root / "own.c", release / "libown.so", "-O1", "-g", "-shared", "-fPIC", f"-ffile-prefix-map={root}=.")
    run_git(root, "init", "-q", "-b", "main")
    run_git(root, "add", ".")
    run_git(root, "commit", "-q", "-m", "own: first version")
    return root


def compile_c(source: Path, target: Path, *flags: str) -> None:
    """Compile one C file."""
    subprocess.run(["cc", *flags, "-o", str(target), str(source)], cwd=source.parent, check=True)


@pytest.fixture
def checkout(template: Path, tmp_path: Path) -> Layout:
    """Return a fresh checkout of the test's own."""
    shutil.copytree(template, tmp_path / "root", symlinks=True)
    return Layout(tmp_path / "root")


@dataclass
class Bench:
    """What a provider test needs: jobs for the fake workload with chosen arguments, and a place to run them."""

    layout: Layout
    scratch: Path
    made: int = 0

    def job(
        self, *arguments: str, provider: str = "smaps", allocator: str = "glibc", preload: Path | None = None,
        **fields: object,
    ) -> Job:  # fmt: skip
        """Return a job that runs the fake workload with `arguments`; `fields` change the manifest."""
        workload = dataclasses.replace(load_workloads(self.layout)["fake"], **fields)  # type: ignore[arg-type]
        words = tuple(arguments)
        variant = dataclasses.replace(workload.variants[0], quick=words, full=words, counted=words)
        config = load_allocators(self.layout.allocators_file)[allocator]
        arm = Arm(REFERENCE, config, Build(allocator, "1", sha256="s" if preload else ""), preload)
        return Job(arm, workload, variant, provider, "quick", 0, 0)

    def context(self) -> ProviderContext:
        """Return a fresh place to run one job."""
        self.made += 1
        folder = self.scratch / str(self.made)
        folder.mkdir(parents=True)
        return ProviderContext(self.layout, launcher_path(self.layout), folder, StopRequest())


@pytest.fixture
def bench(checkout: Layout, tmp_path: Path) -> Bench:
    """Return the bench of a provider test."""
    return Bench(checkout, tmp_path / "scratch")


@dataclass
class Cli:
    """Runs Tidemark's command line in the test's checkout as a user would."""

    layout: Layout
    database: Path

    def environment(self, **extra: str) -> dict[str, str]:
        """Return the environment of a command."""
        return {
            **os.environ, "TIDEMARK_ROOT": str(self.layout.root), "TIDEMARK_DB": str(self.database),
            "PYTHONPATH": str(ROOT), "GIT_CONFIG_GLOBAL": "/dev/null", **extra,
        }  # fmt: skip

    def __call__(self, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, in this process: what it imports is there already."""
        output, errors = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.layout.root)
            for name, value in self.environment(**extra).items():
                patch.setenv(name, value)
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
                code = main(words)
        return subprocess.CompletedProcess(words, code, output.getvalue(), errors.getvalue())

    def process(self, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own, for what an environment changes at start-up."""
        return subprocess.run(
            [sys.executable, "-m", "harness", *words], env=self.environment(**extra), cwd=self.layout.root,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    def cannot(self, *words: str, **extra: str) -> str:
        """Run a command that cannot measure: exit code 2, one sentence, no traceback. Return the sentence."""
        done = self(*words, **extra)
        assert done.returncode == 2, (done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        sentences = [line for line in done.stderr.splitlines() if line.startswith("tidemark: ")]
        assert len(sentences) == 1, done.stderr
        return sentences[0]


@pytest.fixture
def cli(checkout: Layout, tmp_path: Path) -> Cli:
    """Return the command line of the test's checkout."""
    return Cli(checkout, tmp_path / "store.sqlite")
