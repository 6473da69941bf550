"""The thresholds file: the repository's own is valid, and each mistake is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.analyze.thresholds import load_thresholds
from harness.model.errors import CannotMeasure

OWN = Path(__file__).resolve().parents[3] / "results" / "baselines" / "thresholds.toml"
COUNT = (
    '[[threshold]]\nmetric = "instructions"\nworkload = "{workload}"\nlimit_percent = {limit}\nreason = "{reason}"\n'
)


def written(folder: Path, text: str) -> Path:
    path = folder / "thresholds.toml"
    path.write_text(text)
    return path


def test_own_file_covers_counts_and_memory_of_every_workload() -> None:
    thresholds = load_thresholds(OWN)
    assert thresholds.limit("instructions", "any_workload").value > 0
    assert thresholds.memory("any_workload").level_bytes >= 4096
    assert "thresholds.toml" in thresholds.limit("instructions", "churn").origin


def test_the_last_matching_section_holds(tmp_path: Path) -> None:
    text = COUNT.format(workload="*", limit=0.05, reason="the quiet ones repeat exactly")
    text += COUNT.format(workload="remote*", limit=0.5, reason="four threads differ this much")
    thresholds = load_thresholds(written(tmp_path, text))
    assert thresholds.limit("instructions", "churn").value == 0.05
    assert thresholds.limit("instructions", "remote").value == 0.5
    assert thresholds.gates("instructions", "churn")
    assert not thresholds.gates("rss_bytes", "churn")
    with pytest.raises(CannotMeasure, match="no threshold for rss_bytes"):
        thresholds.memory("churn")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no \\[\\[threshold\\]\\]"),
        ("[[threshold", "not valid TOML"),
        (COUNT.format(workload="*", limit=0.05, reason="because"), "no reason"),
        (COUNT.format(workload="*", limit=-1, reason="a reason of enough words"), "at least 0"),
        (COUNT.format(workload="*", limit='"x"', reason="a reason of enough words"), "must be a number"),
        (COUNT.format(workload="", limit=1, reason="a reason of enough words"), "metric and workload"),
        (
            COUNT.format(workload="*", limit=1, reason="a reason of enough words") + "percent = 3\n",
            "unknown key percent",
        ),
        (
            '[[threshold]]\nmetric = "rss_bytes"\nworkload = "*"\nreason = "a reason of enough words"\n',
            "no key growth_bytes",
        ),
    ],
)
def test_each_mistake_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(CannotMeasure, match=sentence):
        load_thresholds(written(tmp_path, text))


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(CannotMeasure, match="is missing"):
        load_thresholds(tmp_path / "nowhere.toml")
