"""Manifests and binaries agree: every folder is described, and every argument is one that its binary takes."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from workload_runs import RUN_TIMEOUT_S, WORKLOADS, binary, clean_environment, run

PATHS = sorted(WORKLOADS.glob("*/workload.toml"))
REQUIRED = {"name", "summary", "stresses", "kind", "binary", "threads", "tags", "metrics", "timeout_s", "variant"}
TAGS = {"fixed", "gated", "speed", "memory"}
NO_WORKLOAD = {"common", "apps"}
QUICK_ROUNDS_MIN = 15
"""A plateau verdict needs as many points (docs/workload-protocol.md, harness/analyze)."""


def manifest_of(path: Path) -> dict[str, Any]:
    """Return the parsed manifest."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


JUDGED = [path for path in PATHS if "memory" in manifest_of(path)]
VARIANTS = [(path.parent.name, variant) for path in PATHS for variant in manifest_of(path)["variant"]]


def test_every_folder_has_a_manifest_and_a_readme() -> None:
    folders = {path.name for path in WORKLOADS.iterdir() if path.is_dir()} - NO_WORKLOAD
    assert folders == {path.parent.name for path in PATHS}
    for folder in folders:
        words = (WORKLOADS / folder / "README.md").read_text(encoding="utf-8")
        assert words.startswith(f"# {folder}\n")
        assert "A good figure" in words, folder


@pytest.mark.parametrize("path", PATHS, ids=[path.parent.name for path in PATHS])
def test_fields(path: Path) -> None:
    manifest = manifest_of(path)
    assert REQUIRED <= set(manifest)
    assert manifest["name"] == path.parent.name
    assert set(manifest["tags"]) <= TAGS and manifest["tags"]
    assert manifest["threads"] >= 1 and manifest["timeout_s"] > 0
    assert binary(manifest["binary"]).stat().st_mode & 0o111


@pytest.mark.parametrize("name,variant", VARIANTS, ids=[f"{name}:{variant['name']}" for name, variant in VARIANTS])
@pytest.mark.parametrize("profile", ["quick", "full", "counted"])
def test_arguments_are_taken(name: str, variant: dict[str, Any], profile: str) -> None:
    manifest = manifest_of(WORKLOADS / name / "workload.toml")
    arguments = variant.get(profile, variant["quick"])
    if manifest["kind"] == "gbench":
        listing = subprocess.run(
            [binary(manifest["binary"]), "--benchmark_list_tests=true", *arguments],
            env=clean_environment(), capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False,
        )  # fmt: skip
        assert listing.returncode == 0 and listing.stdout.splitlines()
        return
    if not arguments:
        return
    # --help comes last, so everything before it has been parsed and accepted.
    assert run(manifest["binary"], *arguments, "--help").code == 0


@pytest.mark.parametrize("path", JUDGED, ids=[path.parent.name for path in JUDGED])
def test_a_judged_series_is_long_enough(path: Path) -> None:
    manifest = manifest_of(path)
    label = manifest["memory"]["series_label"]
    for variant in manifest["variant"]:
        done = run(manifest["binary"], *variant["quick"])
        assert done.code == 0, done.errors
        points = [event for event in done.checkpoints if event["label"] == label]
        assert len(points) >= QUICK_ROUNDS_MIN, variant["name"]


def test_gbench_runs_and_names_the_allocator() -> None:
    done = subprocess.run(
        [binary("micro"), "--benchmark_filter=^malloc_free/64$", "--benchmark_min_time=0.001",
         "--benchmark_format=json"],
        env=clean_environment(), capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert '"malloc_object": "' in done.stdout and '"adapter": "glibc"' in done.stdout


def test_gbench_refuses_what_it_does_not_know() -> None:
    unknown = subprocess.run(
        [binary("micro"), "--no-such-option"], env=clean_environment(), capture_output=True, text=True,
        timeout=RUN_TIMEOUT_S, check=False,
    )  # fmt: skip
    assert unknown.returncode == 2 and unknown.stderr.startswith("micro: ")
