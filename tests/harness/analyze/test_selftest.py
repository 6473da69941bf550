"""The self-test keeps its promises, and notices when a rule does not."""

from __future__ import annotations

import json

import pytest

from harness.analyze.planted import PLANTS, PlantedCheckout, with_switches
from harness.analyze.simulate import Rate
from harness.cli.selftest import VERDICTS_SHORT, broken_promises
from tests.harness.analyze.conftest import Tidemark


def test_every_planted_change_is_named_and_nothing_else_is(tidemark: Tidemark) -> None:
    answer = tidemark("selftest", "--short", "--json")
    document = json.loads(answer.out)
    assert [trial["name"] for trial in document["planted"] if not trial["right"]] == []
    assert document["detected"] == len(PLANTS) + 1
    for workload, verdicts in VERDICTS_SHORT.items():
        assert document["against_itself"][workload] == {"verdicts": verdicts, "false_alarms": 0, "promise_kept": True}
    assert answer.code == 0


def test_the_own_build_is_gated_against_itself(tidemark: Tidemark, checkout: PlantedCheckout) -> None:
    checkout.build_tree()
    answer = tidemark("selftest", "--gated", "2", "--json")
    document = json.loads(answer.out)
    assert (answer.code, document["gates"], document["passed"], document["verdicts"]) == (0, 2, 2, 4)
    assert document["false_alarms"] == document["undecided"] == []


def test_simulated_rates_are_printed_and_judged(tidemark: Tidemark) -> None:
    answer = tidemark("selftest", "--simulate", "--trials", "40")
    assert "two arms" in answer.out and "40 verdicts a row; 0 promises broken" in answer.out
    assert answer.code == 0


def test_a_rule_that_raises_false_alarms_breaks_its_promise() -> None:
    bold = Rate("two arms", "flat against flat", "plateau", 100, convicted=3, undecided=0, named=97)
    blind = Rate("two arms", "leak of 0.3 % a round against flat", "growing", 100, convicted=50, undecided=0, named=50)
    fine = Rate("noisy counts", "steady against itself", "unchanged", 100, convicted=1, undecided=0, named=99)
    assert broken_promises([bold, blind, fine]) == [bold, blind]


def test_an_unknown_switch_is_refused() -> None:
    with pytest.raises(ValueError, match="no switch PLANT_NOTHING"):
        with_switches("#define PLANT_SOMETHING 0\n", {"NOTHING": 1})
