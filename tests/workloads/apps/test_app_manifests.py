"""Each application's manifest fits the protocol, and its arguments are the driver's."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from app_runs import APP_NAMES, APPS, LIVING


def _manifest(app: str) -> dict[str, object]:
    with (APPS / app / "workload.toml").open("rb") as source:
        return tomllib.load(source)


def test_every_app_has_a_folder_and_is_tested() -> None:
    assert sorted(path.parent.name for path in APPS.glob("*/app.py")) == sorted(APP_NAMES)


@pytest.mark.parametrize("app", APP_NAMES)
def test_manifest_is_complete(app: str) -> None:
    manifest = _manifest(app)
    assert manifest["name"] == app
    assert manifest["kind"] == "app"
    assert manifest["tags"] == ["fixed", "app"]
    memory = "rss_bytes" if app in LIVING else "peak_rss_bytes"
    assert manifest["metrics"] == ["wall_s", memory]
    for text in ("summary", "stresses"):
        assert str(manifest[text]).endswith(".")
    assert (APPS / app / "README.md").read_text().startswith(f"# {app}\n")


@pytest.mark.parametrize("app", APP_NAMES)
def test_quick_variant_runs_from_its_folder(app: str) -> None:
    manifest = _manifest(app)
    variants = manifest["variant"]
    assert isinstance(variants, list)
    command = [*manifest["command"], *variants[0]["quick"]]  # type: ignore[misc]
    environment = {"PATH": "/usr/bin:/bin"}
    ran = subprocess.run(command, cwd=Path(APPS / app), env=environment, capture_output=True, text=True, timeout=90)
    assert ran.returncode == 0, ran.stderr
    assert '"event":"end"' in ran.stdout.splitlines()[-1]
