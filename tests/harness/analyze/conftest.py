"""A checkout with known faults, shared by the tests of the judging commands, and a way to run a command in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from harness.analyze.planted import PlantedCheckout
from harness.cli import main


# A busy machine makes single examples slow; how long one takes says nothing about what is tested.
settings.register_profile("judging", deadline=None)
settings.load_profile("judging")


@dataclass(frozen=True)
class Answer:
    """What a command did."""

    code: int
    out: str
    err: str


Tidemark = Callable[..., Answer]


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> PlantedCheckout:
    return PlantedCheckout(tmp_path_factory.mktemp("planted") / "checkout")


@pytest.fixture(scope="session")
def slower_free(checkout: PlantedCheckout) -> str:
    """A commit with one instruction more in free."""
    return checkout.plant({"FREE_INSTRUCTION": 1}, "one instruction in free")


@pytest.fixture(scope="session")
def leak(checkout: PlantedCheckout) -> str:
    """A commit that leaks 0.3 % of the level a round."""
    return checkout.plant({"LEAK_ONE_IN": 33}, "a leak of 0.3 % a round")


@pytest.fixture
def tidemark(checkout: PlantedCheckout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
             capsys: pytest.CaptureFixture[str]) -> Tidemark:  # fmt: skip
    """Run a command in the checkout with a store of the test's own."""
    monkeypatch.setenv("TIDEMARK_ROOT", str(checkout.layout.root))
    monkeypatch.setenv("TIDEMARK_DB", str(tmp_path / "tidemark.sqlite"))

    def run(*arguments: str) -> Answer:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run
