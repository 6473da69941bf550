"""Somebody else's allocator: one section of allocators.toml, and it is pinned, compared, bisected and gated like Ebb."""

from __future__ import annotations

import glob
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.analyze.planted import PlantedCheckout
from tests.harness.analyze.conftest import Tidemark

PAIR = ("--quick", "-w", "pairs")


@pytest.fixture
def sections(checkout: PlantedCheckout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A configuration with two strangers: a git repository, preloaded and linked, and a shared object of a package."""
    installed = sorted(glob.glob("/usr/lib/*/libjemalloc.so.2"))
    assert installed, "libjemalloc2 is in harness/setup/debian-packages.txt: run `sh harness/setup/install`"
    packaged = tmp_path / "packaged"
    packaged.mkdir()
    shutil.copy(installed[0], packaged / "libpackaged.so.2")
    stranger = f'kind = "git"\nrepository = "{checkout.layout.root}"\n'
    build = '["sh", "{source}/allocator/build.sh", "{source}/allocator", "{build}"]'
    compiled = "gcc -O2 -g -fPIC -fno-builtin -c -o {build}/p.o {source}/allocator/planted.c && ar rc $0 {build}/p.o"
    archive = f'"sh", "-c", "{compiled}"'
    text = checkout.layout.allocators_file.read_text() + (
        f'\n[allocator.stranger]\n{stranger}build = [{build}]\nartefact = "libplanted.so"\n'
        f'\n[allocator.linked]\n{stranger}build = [[{archive}, "{{build}}/libplanted.a"]]\nartefact = "libplanted.a"\n'
        f'\n[allocator.packaged]\nkind = "preload"\npaths = ["{packaged}/libpackaged.so.2"]\n'
    )
    (tmp_path / "allocators.toml").write_text(text)
    monkeypatch.setenv("TIDEMARK_ALLOCATORS", str(tmp_path / "allocators.toml"))
    yield packaged
    for pin in checkout.layout.pin_file.parent.glob("pin-*.toml"):
        pin.unlink()


def test_a_git_repository_is_pinned_gated_compared_and_bisected(
    sections: Path, tidemark: Tidemark, checkout: PlantedCheckout, slower_free: str
) -> None:
    name = "stranger"
    assert f"./tidemark pin set HEAD --allocator {name}" in tidemark("pin", "show", "-a", name).err
    pinned = tidemark("pin", "set", checkout.clean, "-a", name, "--reason", "the clean one", "--repeat", "1")
    assert pinned.code == 0, pinned.err
    assert "the clean one" in tidemark("pin", "show", "-a", name).out
    assert tidemark("pin", "check", "-a", name).code == 0
    gated = tidemark("gate", "-a", name, "--revision", slower_free, *PAIR)
    assert gated.code == 1 and "free" in gated.out and "costs more a call" in gated.out
    assert tidemark("gate", "-a", name, "--revision", checkout.clean, *PAIR).code == 0
    compared = json.loads(tidemark("compare", checkout.clean, slower_free, "-a", name, *PAIR, "--json").out)
    assert compared["a"]["allocator"] == name and compared["verdicts"][0]["outcome"] == "regressed"
    bisected = json.loads(tidemark("bisect", checkout.clean, slower_free, "-a", name, "-w", "pairs", "--json").out)
    assert bisected["first_bad"] == slower_free


def test_a_static_archive_is_linked_and_compared_like_a_shared_object(
    sections: Path, tidemark: Tidemark, checkout: PlantedCheckout, slower_free: str
) -> None:
    compared = json.loads(tidemark("compare", checkout.clean, slower_free, "-a", "linked", *PAIR, "--json").out)
    assert compared["a"]["allocator"] == "linked" and compared["verdicts"][0]["outcome"] == "regressed"
    assert [item["function"] for item in compared["explanations"][0]["functions"]] == ["free"]


def test_a_shared_object_of_a_package_is_pinned_and_its_upgrade_gated(
    sections: Path, tidemark: Tidemark, checkout: PlantedCheckout
) -> None:
    name, installed = "packaged", sections / "libpackaged.so.2"
    assert "run `./tidemark pin set --allocator packaged --reason" in tidemark("gate", "-a", name, *PAIR).err
    assert "not 9.9" in tidemark("pin", "set", "9.9", "-a", name, "--reason", "no such version").err
    assert tidemark("pin", "set", "-a", name, "--reason", "as installed", "--repeat", "1").code == 0
    assert tidemark("pin", "check", "-a", name).code == 0
    same = tidemark("gate", "-a", name, *PAIR)
    assert same.code == 0 and "unchanged" in same.out
    assert "has no commits" in tidemark("bisect", "1", "2", "-a", name, "-w", "pairs").err
    shutil.copy(sorted(glob.glob("/usr/lib/*/libtcmalloc_minimal.so.4"))[0], installed)
    upgraded = json.loads(tidemark("gate", "-a", name, *PAIR, "--json").out)
    (verdict,) = upgraded["verdicts"]
    assert verdict["outcome"] in ("regressed", "improved") and verdict["before"] != verdict["after"]
    compared = json.loads(tidemark("compare", name, f"planted@{checkout.clean}", *PAIR, "--json").out)
    assert (compared["a"]["allocator"], compared["b"]["allocator"]) == (name, "planted")
    shutil.rmtree(checkout.layout.stage)
    lost = tidemark("gate", "-a", name, *PAIR)
    assert lost.code == 2 and "is not here any more" in lost.err and "pin set --allocator packaged" in lost.err
