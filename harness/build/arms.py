"""Makes the arms of a run: Ebb's working tree, its pin, any revision, and the reference allocators.

The only place that decides what an arm's `Build` says. An arm that cannot be made is returned with the sentence why
when it is one of many (references, the pin); what the user named himself raises instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from harness.build.commands import git
from harness.build.revision import build_revision, read_cmake_cache
from harness.build.stage import sha256_of, stage
from harness.model.allocator import AllocatorConfig
from harness.model.arm import PIN, REFERENCE, TREE, Arm
from harness.model.errors import CannotMeasure
from harness.model.layout import Layout
from harness.model.pin import Pin
from results.records import Build


def tree_arm(layout: Layout, config: AllocatorConfig) -> Arm:
    """Return the arm of the working tree's own build; CannotMeasure when `make` has not been run."""
    artefact = layout.root / (config.working_tree or f"build/release/{config.artefact}")
    if not artefact.is_file():
        raise CannotMeasure(f"{artefact.relative_to(layout.root)} is missing: run `make` first.")
    revision, dirty = tree_revision(layout)
    compiler, flags = read_cmake_cache(artefact.parent)
    path, digest = stage(layout, artefact)
    build = Build(
        allocator=config.name, revision=revision, dirty=dirty, version=_version(config, path, revision[:12]),
        compiler=compiler, flags=flags, path=str(path), sha256=digest,
    )  # fmt: skip
    return Arm(TREE, config, build, path)


def revision_arm(layout: Layout, config: AllocatorConfig, revision: str, role: str | None = None) -> Arm:
    """Return the arm of a revision, built in a worktree; `role` defaults to the revision as given.

    CannotMeasure when the revision is unknown or does not build.
    """
    if config.kind != "git":
        raise CannotMeasure(f"{config.name} is not built from git, so it has no revision {revision} to build.")
    built = build_revision(layout, config, revision)
    path, digest = stage(layout, built.artefact)
    build = Build(
        allocator=config.name, revision=built.commit, version=_version(config, path, built.commit[:12]),
        compiler=built.compiler, flags=built.flags, path=str(path), sha256=digest,
    )  # fmt: skip
    return Arm(role or revision, config, build, path)


def pin_arm(layout: Layout, config: AllocatorConfig, commit: str) -> Arm:
    """Return the arm of the pinned commit; when it does not build, the arm says so and stays in the tables."""
    try:
        return revision_arm(layout, config, commit, PIN)
    except CannotMeasure as error:
        return Arm(PIN, config, Build(config.name, commit), None, missing=error.sentence)


def pinned_arm(layout: Layout, config: AllocatorConfig, pin: Pin) -> Arm:
    """Return the arm of what is pinned; CannotMeasure when it cannot be made.

    A package may have been upgraded since: the copy that was staged when it was pinned stands in for it.
    """
    if config.kind == "git":
        return revision_arm(layout, config, pin.commit, PIN)
    now = arm_named(layout, config)
    if (now.build.revision, now.build.sha256) == (pin.commit, pin.sha256):
        return replace(now, role=PIN)
    kept = layout.stage / pin.sha256[:16] / now.preload.name if now.preload is not None and pin.sha256 else None
    if kept is None or not kept.is_file():
        raise CannotMeasure(
            f"The pinned {config.name} {pin.commit} is not here any more, installed is {now.build.revision}: install "
            f"that version, or pin what is here with `./tidemark pin set --allocator {config.name} --reason '…'`."
        )
    build = Build(config.name, pin.commit, version=pin.commit, path=str(kept), sha256=pin.sha256)
    return Arm(PIN, config, build, kept)


def missing_pin_arm(config: AllocatorConfig, sentence: str) -> Arm:
    """Return the arm that stands for a pin that is not set."""
    return Arm(PIN, config, Build(config.name, "none"), None, missing=sentence)


def reference_arm(layout: Layout, config: AllocatorConfig) -> Arm:
    """Return the arm of a reference allocator; when it is not installed or does not build, the arm says so."""
    if config.kind == "git":
        try:
            return revision_arm(layout, config, config.revision or "HEAD", REFERENCE)
        except CannotMeasure as error:
            return Arm(REFERENCE, config, Build(config.name, config.revision), None, missing=error.sentence)
    if config.kind == "libc":
        version = os.confstr("CS_GNU_LIBC_VERSION") or "libc"
        revision = package_version("libc6") or version
        return Arm(REFERENCE, config, Build(config.name, revision, version=version), None)
    path = config.object_path()
    if path is None:
        return Arm(REFERENCE, config, Build(config.name, "none"), None, missing=config.missing_sentence())
    digest = sha256_of(path)
    revision = package_version(config.package) or digest[:16]
    build = Build(config.name, revision, version=_version(config, path, revision), path=str(path), sha256=digest)
    return Arm(REFERENCE, config, build, path)


def loop_arm(layout: Layout, role: str) -> Arm:
    """Return the arm of the allocator that does nothing, which `churn_loop` is linked to; nothing is preloaded."""
    path = layout.workload_binaries / "libnull_allocator.so"
    config = AllocatorConfig("null", "libc", summary="an allocator that does nothing", provides=path.name)
    if not path.is_file():
        sentence = f"{path.relative_to(layout.root)} is missing: run `make` first."
        return Arm(role, config, Build(config.name, "none"), None, missing=sentence)
    digest = sha256_of(path)
    return Arm(role, config, Build(config.name, digest[:16], path=str(path), sha256=digest), None)


def arm_named(layout: Layout, config: AllocatorConfig, revision: str | None = None) -> Arm:
    """Return the arm a user means by `NAME` or `NAME@REVISION`; CannotMeasure when it cannot be made."""
    if revision is not None:
        return revision_arm(layout, config, revision)
    arm = tree_arm(layout, config) if config.repository == "self" else reference_arm(layout, config)
    if arm.missing:
        raise CannotMeasure(arm.missing)
    return arm


def tree_revision(layout: Layout) -> tuple[str, bool]:
    """Return (commit, dirty) of the checkout; outside git the commit reads `unknown`."""
    try:
        return git(layout.root, "rev-parse", "HEAD"), bool(git(layout.root, "status", "--porcelain", "-uno"))
    except CannotMeasure:
        return "unknown", True


def package_version(package: str) -> str:
    """Return the version of an installed Debian package, or an empty string."""
    query = shutil.which("dpkg-query")
    if not package or query is None:
        return ""
    done = subprocess.run([query, "-W", "-f=${Version}", package], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def _version(config: AllocatorConfig, path: Path, default: str) -> str:
    if not config.version_command:
        return default
    command = [word.replace("{object}", str(path)) for word in config.version_command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return default
    lines = done.stdout.strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else default
