"""Builds of an allocator at a revision of its repository, with a cache.

A revision is built in a git worktree of its own and cached by what was compiled: the tree's hash and the build
commands. Two commits with the same tree share one build, and a finished build is never repeated. One build at a time
per cache entry, also across processes: a lock file guards each.

Layout: `build/pins/<key>/source` (the worktree), `build/pins/<key>/build`, `build/pins/<key>/done.json`;
`build/pins/by-commit/<commit>` names the key.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from harness.build.commands import git, run_logged
from harness.model.allocator import AllocatorConfig
from harness.model.errors import CannotMeasure
from harness.model.layout import Layout


@dataclass(frozen=True)
class RevisionBuild:
    """A finished build of one revision."""

    commit: str
    """Full commit id."""
    artefact: Path
    compiler: str
    flags: str
    reused: bool
    """True when nothing had to be compiled."""


def resolve_commit(layout: Layout, config: AllocatorConfig, revision: str) -> str:
    """Return the full commit id of `revision` in the allocator's repository; CannotMeasure when it has none."""
    repository = repository_of(layout, config)
    try:
        return git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except CannotMeasure as error:
        raise CannotMeasure(
            f"There is no commit {revision} in the repository of {config.name}: `git log --oneline` lists them "
            "(a shallow clone lacks the old ones: `git fetch --unshallow`)."
        ) from error


def repository_of(layout: Layout, config: AllocatorConfig) -> Path:
    """Return the local repository of a git allocator, cloning an address once; CannotMeasure when it is not there."""
    if config.kind != "git":
        raise CannotMeasure(
            f"{config.name} is not built from git, so it has no commits: give it a section of kind git with its "
            "repository in allocators.toml."
        )
    if config.repository == "self":
        return layout.root
    if "://" not in config.repository:
        path = Path(config.repository)
        if not path.exists():
            raise CannotMeasure(f"{config.name}'s repository {path} is missing: correct allocators.toml or clone it.")
        return path
    name = hashlib.sha256(config.repository.encode()).hexdigest()[:12]
    clone = layout.build / "repositories" / f"{config.name}-{name}"
    if not (clone / "HEAD").exists():
        log = layout.build / "logs" / f"clone-{config.name}.log"
        run_logged(["git", "clone", "--bare", config.repository, str(clone)], log, f"The clone of {config.name}",
                   layout.root)  # fmt: skip
    return clone


def build_revision(layout: Layout, config: AllocatorConfig, revision: str) -> RevisionBuild:
    """Build `revision` of a git allocator, or find it built.

    CannotMeasure when the revision is unknown or does not build; a failed build is remembered by nobody, so that a
    repaired machine tries again.
    """
    commit = resolve_commit(layout, config, revision)
    repository = repository_of(layout, config)
    tree = git(repository, "rev-parse", f"{commit}^{{tree}}")
    key = _cache_key(config, tree)
    home = layout.pins / key
    what = f"Commit {commit[:12]} of {config.name}"
    with _locked(layout.pins / f"{key}.lock"):
        done = _finished(home, config)
        if done is not None:
            return RevisionBuild(commit, home / "build" / config.artefact, done["compiler"], done["flags"], True)
        shutil.rmtree(home, ignore_errors=True)
        source, build = home / "source", home / "build"
        build.mkdir(parents=True)
        _check_out(repository, commit, source)
        try:
            _compile(config, source, build, home / "build.log", what)
        finally:
            _forget_worktree(repository, source)
        compiler, flags = read_cmake_cache(build)
        artefact = build / config.artefact
        if not artefact.is_file():
            raise CannotMeasure(
                f"{what} was built but left no {config.artefact}: correct `artefact` in allocators.toml."
            )
        record = {"commit": commit, "tree": tree, "compiler": compiler, "flags": flags}
        temporary = home / "done.json.new"
        temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        temporary.rename(home / "done.json")
        return RevisionBuild(commit, artefact, compiler, flags, False)


def source_folder(layout: Layout, config: AllocatorConfig, commit: str) -> Path:
    """Return where the sources of a built commit lie (kept beside its build, so that explanations can quote lines)."""
    tree = git(repository_of(layout, config), "rev-parse", f"{commit}^{{tree}}")
    return layout.pins / _cache_key(config, tree) / "source"


def read_cmake_cache(build: Path) -> tuple[str, str]:
    """Return (compiler, flags) from a CMake build folder; empty strings when it is not one."""
    cache = build / "CMakeCache.txt"
    if not cache.is_file():
        return "", ""
    values: dict[str, str] = {}
    for line in cache.read_text(encoding="utf-8", errors="replace").splitlines():
        match = re.match(r"([A-Z_0-9]+):[A-Z]+=(.*)", line)
        if match:
            values[match.group(1)] = match.group(2)
    kind = values.get("CMAKE_BUILD_TYPE", "")
    flags = " ".join(
        part for part in (values.get("CMAKE_CXX_FLAGS"), values.get(f"CMAKE_CXX_FLAGS_{kind.upper()}")) if part
    )
    version = ""
    for file in sorted(build.glob("CMakeFiles/*/CMakeCXXCompiler.cmake")):
        found = dict(re.findall(r'set\((CMAKE_CXX_COMPILER_(?:ID|VERSION)) "([^"]*)"\)', file.read_text()))
        version = f"{found.get('CMAKE_CXX_COMPILER_ID', '')} {found.get('CMAKE_CXX_COMPILER_VERSION', '')}".strip()
    return version or values.get("CMAKE_CXX_COMPILER", ""), flags


def _cache_key(config: AllocatorConfig, tree: str) -> str:
    commands = json.dumps([config.build, config.artefact])
    return f"{config.name}-{tree[:16]}-{hashlib.sha256(commands.encode()).hexdigest()[:8]}"


def _finished(home: Path, config: AllocatorConfig) -> dict[str, str] | None:
    try:
        done = json.loads((home / "done.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return done if (home / "build" / config.artefact).is_file() else None


def _check_out(repository: Path, commit: str, source: Path) -> None:
    git(repository, "worktree", "prune")
    git(repository, "worktree", "add", "--detach", "--force", str(source), commit)


def _forget_worktree(repository: Path, source: Path) -> None:
    """Detach the sources from git but keep the files: the repository must not fill with worktrees of the cache."""
    (source / ".git").unlink(missing_ok=True)
    git(repository, "worktree", "prune")


def _compile(config: AllocatorConfig, source: Path, build: Path, log: Path, what: str) -> None:
    places = {"{source}": str(source), "{build}": str(build), "{jobs}": str(os.cpu_count() or 1)}
    for command in config.build:
        words = list(command)
        for name, value in places.items():
            words = [word.replace(name, value) for word in words]
        run_logged(words, log, what, source)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
