"""compare and explain on an allocator whose faults are known."""

from __future__ import annotations

import contextlib
import glob
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.analyze.planted import PlantedCheckout
from harness.cli import main
from results import open_store
from tests.harness.analyze.conftest import Tidemark


@pytest.fixture(scope="module")
def compared(
    checkout: PlantedCheckout, slower_free: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, dict[str, Any], str]:
    """One comparison for the tests that only read it: exit code, document and store."""
    store = str(tmp_path_factory.mktemp("compared") / "tidemark.sqlite")
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(output):
        patch.setenv("TIDEMARK_ROOT", str(checkout.layout.root))
        patch.setenv("TIDEMARK_DB", store)
        code = main(["compare", checkout.clean, slower_free, "--quick", "-w", "pairs", "--json"])
    return code, json.loads(output.getvalue()), store


def test_counts_are_compared_to_the_instruction_beside_a_control(compared: tuple[int, dict[str, Any], str]) -> None:
    code, document, _ = compared
    (verdict,) = document["verdicts"]
    assert (code, verdict["outcome"]) == (1, "regressed")
    frees = verdict["after"] - verdict["before"]
    assert 45_000 < frees < 55_000
    (control,) = document["controls"]
    assert (control["control"], control["within_run_percent"], control["moved"]) == ("glibc", 0.0, False)
    (explanation,) = document["explanations"]
    assert [item["function"] for item in explanation["functions"]] == ["free"]
    assert explanation["functions"][0]["change"] == "costs more a call"
    assert any(row["mark"] == ">" and row["after"]["text"] == "nop" and row["after"]["executed"] > 0.4
               for listing in explanation["listings"] for row in listing["rows"])  # fmt: skip


def test_the_other_way_round_is_an_improvement(tidemark: Tidemark, checkout: PlantedCheckout, slower_free: str) -> None:
    answer = tidemark("compare", slower_free, checkout.clean, "--quick", "-w", "pairs")
    assert answer.code == 0
    assert "improved" in answer.out and "so what moved is the allocator" in answer.out


def test_verdicts_and_explanations_are_stored_with_the_run(compared: tuple[int, dict[str, Any], str]) -> None:
    with open_store(compared[2]) as store:
        (run,) = store.runs(kind="compare")
        kinds = {kind for _, kind, _ in store.attachment_kinds(run.id)}
    assert {"callgrind", "verdicts", "explanation"} <= kinds


def test_a_stored_comparison_is_explained_again_without_measuring(
    tidemark: Tidemark, compared: tuple[int, dict[str, Any], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_DB", compared[2])
    answer = tidemark("explain")
    assert answer.code == 0
    assert "free (libplanted.so) costs more a call" in answer.out
    assert "free:" in answer.out and "nop" in answer.out
    assert "measuring" not in answer.err


def test_explain_measures_two_commits_and_names_the_shape_of_memory(
    tidemark: Tidemark, checkout: PlantedCheckout, leak: str
) -> None:
    answer = tidemark("explain", checkout.clean, leak, "-w", "rounds", "-p", "smaps", "--json")
    (explanation,) = json.loads(answer.out)
    shapes = {item["metric"]: item["shape"] for item in explanation["categories"]}
    assert shapes["rss_bytes"] == "ramp" and shapes["live_bytes"] == "same"


def test_a_moved_line_is_not_a_changed_line(tidemark: Tidemark, checkout: PlantedCheckout) -> None:
    checkout.plant({"FREE_INSTRUCTION": 1}, "one instruction in free")
    source = checkout.layout.root / "allocator" / "planted.c"
    clean = source.read_text()
    try:
        source.write_text("/* A line more at the top moves every line below. */\n" + clean)
        moved = checkout.commit("the same instruction, a line further down")
    finally:
        source.write_text(clean)
    answer = tidemark("explain", checkout.clean, moved, "-w", "pairs", "-p", "callgrind", "--json")
    (explanation,) = json.loads(answer.out)
    assert [line["text"] for line in explanation["lines"]] == ['__asm__ volatile("nop");']


def test_a_commit_is_unchanged_against_itself_without_measuring(tidemark: Tidemark, checkout: PlantedCheckout) -> None:
    answer = tidemark("compare", checkout.clean, checkout.clean, "--json")
    assert answer.code == 0
    assert {verdict["outcome"] for verdict in json.loads(answer.out)["verdicts"]} == {"unchanged"}
    assert answer.err == ""


def test_two_allocators_of_the_configuration_are_compared(
    tidemark: Tidemark, checkout: PlantedCheckout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = sorted(glob.glob("/usr/lib/*/libjemalloc.so.2"))
    assert installed, "libjemalloc2 is in harness/setup/debian-packages.txt: run `sh harness/setup/install`"
    configuration = tmp_path / "allocators.toml"
    section = f'\n[allocator.jemalloc]\nkind = "preload"\npaths = ["{installed[0]}"]\n'
    own = checkout.layout.allocators_file.read_text().replace('"self"', f'"{checkout.layout.root}"')
    configuration.write_text(own + section)
    monkeypatch.setenv("TIDEMARK_ALLOCATORS", str(configuration))
    answer = tidemark(
        "compare", "jemalloc", f"planted@{checkout.clean}", "--allocator", "planted", "--quick", "-w", "pairs", "--json"
    )
    document = json.loads(answer.out)
    (verdict,) = document["verdicts"]
    assert (document["a"]["allocator"], document["b"]["allocator"]) == ("jemalloc", "planted")
    assert verdict["outcome"] in ("regressed", "improved") and verdict["before"] != verdict["after"]
    changes = {item["change"] for item in document["explanations"][0]["functions"]}
    assert {"new", "vanished"} <= changes
    gated = tidemark(
        "gate", "--quick", "--allocator", "planted", "--pin", "jemalloc", "--revision", checkout.clean, "-w", "pairs"
    )
    assert gated.code == (1 if verdict["outcome"] == "regressed" else 0)


def test_bad_input_is_one_sentence_and_exit_2(tidemark: Tidemark, checkout: PlantedCheckout) -> None:
    for arguments, sentence in (
        (["compare", "nowhere", checkout.clean], "There is no commit nowhere"),
        (["compare", checkout.clean, checkout.clean, "--control", "nobody"], "There is no allocator nobody"),
        (["explain"], "No comparison is stored yet"),
        (["explain", checkout.clean], "Give two revisions"),
        (["explain", checkout.clean, checkout.clean], "are the same commit"),
        (["explain", "--run", "0123"], "no run whose id begins with 0123"),
    ):
        answer = tidemark(*arguments)
        assert answer.code == 2, arguments
        assert sentence in answer.err, answer.err


def test_a_changed_workload_is_told_from_a_changed_allocator(
    tidemark: Tidemark, checkout: PlantedCheckout, slower_free: str, compared: tuple[int, dict[str, Any], str],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    assert not any("workload changed" in control["sentence"] for control in compared[1]["controls"])
    shutil.copy(compared[2], tmp_path / "copy.sqlite")
    monkeypatch.setenv("TIDEMARK_DB", str(tmp_path / "copy.sqlite"))
    manifest = checkout.layout.workloads / "pairs" / "workload.toml"
    text = manifest.read_text()
    assert '"100000"' in text
    try:
        manifest.write_text(text.replace('"100000"', '"101000"'))
        second = tidemark("compare", checkout.clean, slower_free, "--quick", "-w", "pairs")
    finally:
        manifest.write_text(text)
    assert second.code == 1, "both arms ran the changed workload, so the comparison stands"
    assert "glibc's own count moved by" in second.out and "the workload changed, not the allocator" in second.out
