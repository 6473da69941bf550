"""bisect on a git history with a planted change and a commit that does not build."""

from __future__ import annotations

import json

from harness.analyze.planted import FIXTURE, PlantedCheckout
from tests.harness.analyze.conftest import Tidemark


def history(checkout: PlantedCheckout) -> tuple[str, list[str]]:
    """Return (good, commits after it): the fourth is broken, the sixth is the first bad one."""
    good = checkout.plant({}, "good")
    script = checkout.layout.root / "allocator" / "build.sh"
    commits = []
    for index in range(8):
        script.write_text(
            "exit 1\n" if index == 3 else (FIXTURE / "allocator" / "build.sh").read_text() + f"# {index}\n"
        )
        commits.append(checkout.plant({"FREE_INSTRUCTION": 1} if index >= 5 else {}, f"commit {index}"))
    return good, commits


def test_the_first_bad_commit_is_found_around_a_broken_one(tidemark: Tidemark, checkout: PlantedCheckout) -> None:
    good, commits = history(checkout)
    answer = tidemark("bisect", good, commits[-1], "-w", "pairs", "--json")
    document = json.loads(answer.out)
    assert answer.code == 0
    assert (document["first_bad"], document["subject"]) == (commits[5], "commit 5")
    assert document["verdict"]["outcome"] == "regressed"
    assert "free" in document["explanation"]["sentences"][1]
    again = json.loads(tidemark("bisect", good, commits[-1], "-w", "pairs", "--json").out)
    assert again["first_bad"] == commits[5]
    assert (again["measured"], again["reused"] > 0) == (0, True)


def test_what_cannot_be_bisected_is_one_sentence(tidemark: Tidemark, checkout: PlantedCheckout, leak: str) -> None:
    good = checkout.clean
    same = checkout.plant({}, "no change")
    for arguments, sentence in (
        ((same, good, "-w", "pairs"), "is no ancestor of"),
        ((good, same, "-w", "pairs"), "is no regression against"),
        ((good, same, "-w", "rounds"), "has no instructions"),
        ((good, "nowhere", "-w", "pairs"), "There is no commit nowhere"),
    ):
        answer = tidemark("bisect", *arguments)
        assert answer.code == 2
        assert sentence in answer.err, answer.err
