"""The commands that measure, run as a user runs them, and what they say to bad input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from git_checkout import ROOT, run_git

from harness.collect.memory import descendants
from harness.model.allocator import load_allocators

FAKE_DASHBOARD = "class DashboardError(Exception): pass\ndef build(store, out, run_id, history):\n"
MANIFEST_HANG = ('quick = []', 'quick = ["--misbehave", "hang"]')


def change_manifest(layout, old: str, new: str) -> None:
    """Replace a piece of the fake workload's manifest."""
    path = layout.workloads / "fake" / "workload.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


class TestRun:
    def test_a_part_of_the_matrix_is_measured_stored_and_printed(self, cli):
        done = cli("run", "-w", "fake", "-a", "own", "-a", "glibc", "-p", "smaps", "-p", "callgrind", "--json")
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        (block,) = result["matrix"]
        assert [arm["arm"] for arm in block["arms"]] == ["own (tree)", "glibc"]
        assert all(arm["figures"]["instructions"] > 0 for arm in block["arms"])
        report = json.loads(cli("report", "--json").stdout)
        assert report["matrix"] == result["matrix"] and report["run"] == result["run"]

    def test_a_table_for_people(self, cli):
        done = cli("run", "-w", "fake", "-a", "glibc", "-p", "smaps")
        assert done.returncode == 0 and "peak RSS" in done.stdout and "heap emulated" in done.stdout
        assert "measuring: 1 of 1" in done.stderr and "\x1b" not in done.stdout + done.stderr

    def test_names_are_printed_as_they_are(self, cli):
        """`:one:` is no emoji and `[b]` no markup: a table must show what the manifest says."""
        path = cli.layout.workloads / "fake" / "workload.toml"
        path.write_text(path.read_text() + '\n[[variant]]\nname = "one"\nquick = ["--misbehave", "wrong", "[b]"]\n')
        change_manifest(cli.layout, '"A fake workload."', '"A fake:one: workload [b]bold[/b]."')
        assert ":one: workload [b]bold[/b]" in cli("list", "workloads").stdout
        done = cli("run", "-w", "fake:one", "-a", "glibc", "-p", "smaps")
        assert "not measured: fake:one under glibc " in done.stdout

    def test_a_commit_is_an_arm(self, cli):
        commit = run_git(cli.layout.root, "rev-parse", "HEAD")
        done = cli("run", "-w", "fake", "-a", f"own@{commit[:8]}", "-p", "callgrind", "--json")
        (arm,) = json.loads(done.stdout)["matrix"][0]["arms"]
        assert done.returncode == 0 and arm["arm"] == f"own ({commit[:8]})"

    def test_one_section_makes_somebody_else_s_allocator_measurable(self, cli, tmp_path):
        """A shared object from a package and a git repository stand beside the others like the repository's own."""
        shipped = load_allocators(ROOT / "harness" / "allocators.toml")
        there = [c for c in shipped.values() if c.kind == "preload" and c.object_path() and not c.excluded]
        other = tmp_path / "other"
        shutil.copytree(cli.layout.root, other, ignore=shutil.ignore_patterns("build"))
        build = ["cc", "-O1", "-shared", "-fPIC", "-o", "{build}/libown.so", "{source}/own.c"]
        sections = [f"[allocator.{c.name}]\nkind = 'preload'\npaths = ['{c.object_path()}']" for c in there]
        sections += [f"[allocator.other]\nkind = 'git'\nrepository = '{other}'\nrevision = 'main'\n"
                     f"artefact = 'libown.so'\nbuild = [{json.dumps(build)}]"]  # fmt: skip
        (tmp_path / "allocators.toml").write_text("\n".join(sections))
        done = cli("run", "-w", "fake", "-p", "smaps", "-p", "callgrind", "--json",
                   TIDEMARK_ALLOCATORS=str(tmp_path / "allocators.toml"))  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        arms = {arm["arm"]: arm["figures"] for arm in json.loads(done.stdout)["matrix"][0]["arms"]}
        assert set(arms) == {c.name for c in there} | {"other"}
        assert all(figures["instructions"] > 0 for figures in arms.values())

    @pytest.mark.parametrize(
        ("words", "clause"),
        [
            (["-w", "nope"], "no workload nope"),
            (["-w", "fake:nope"], "no variant nope"),
            (["-a", "nope"], "no allocator nope"),
            (["-a", "own@nope"], "no commit nope"),
            (["-a", "absent"], "apt-get install libabsent9"),
            (["-a", "glibc@HEAD"], "not built from git"),
            (["-p", "nope"], "no provider nope"),
            (["--set", "speed"], "No workload is tagged speed"),
            (["--set", "everything"], "--help"),
            (["-w", "fake", "--set", "fixed"], "not both"),
            (["--repeat", "0"], "--help"),
            (["--nonsense"], "--help"),
            (["--resume", "-a", "glibc"], "no stopped run"),
        ],
    )
    def test_bad_input_is_one_sentence_and_exit_code_2(self, cli, words, clause):
        assert clause in cli.cannot("run", *words)

    def test_a_failing_workload_ends_with_2_and_its_reason(self, cli):
        change_manifest(cli.layout, "quick = []", 'quick = ["--misbehave", "wrong"]')
        done = cli("run", "-w", "fake", "-a", "glibc", "-p", "smaps")
        assert done.returncode == 2 and "byte 7 of block 3" in done.stdout and "Traceback" not in done.stderr

    def test_a_commit_that_does_not_build_shows_the_compiler_s_words(self, cli):
        (cli.layout.root / "own.c").write_text("this is no C;\n")
        run_git(cli.layout.root, "commit", "-q", "-a", "-m", "own: break it")
        done = cli("run", "-a", "own@HEAD")
        assert done.returncode == 2 and "does not build" in done.stderr and "error:" in done.stderr

    def test_a_tree_that_is_not_built_says_make(self, cli):
        (cli.layout.release / "libown.so").unlink()
        assert "run `make` first" in cli.cannot("run", "-a", "own")

    def test_gbench_asked_of_a_workload_that_is_none(self, cli):
        done = cli("run", "-w", "fake", "-a", "glibc", "-p", "gbench")
        assert done.returncode == 2 and "it is no Google Benchmark program" in done.stdout

    def test_ctrl_c_stores_marks_and_ends_with_2(self, cli):
        """The first job ends, the second hangs: SIGINT must leave one row, a marked run and no process."""
        shutil.copytree(cli.layout.workloads / "fake", cli.layout.workloads / "hang")
        path = cli.layout.workloads / "hang" / "workload.toml"
        path.write_text(path.read_text().replace('name = "fake"', 'name = "hang"\nbinary = "fake"', 1)
                        .replace(*MANIFEST_HANG))  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-m", "harness", "run", "-w", "fake", "-w", "hang", "-a", "glibc", "-p", "smaps"],
            env=cli.environment(), cwd=cli.layout.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        hanging = wait_for_child(process.pid, "hang")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 2 and "Traceback" not in errors
        assert "1 of 2 measurements made so far are stored" in errors
        assert not Path(f"/proc/{hanging}").exists()
        (run,) = json.loads(cli("list", "runs", "--json").stdout)
        assert run["status"] == "interrupted"
        path.write_text(path.read_text().replace(MANIFEST_HANG[1], "quick = []"))
        resumed = cli("run", "-w", "fake", "-a", "glibc", "-p", "smaps", "--resume", "--json")
        assert json.loads(resumed.stdout)["run"] == run["run"]
        assert [row["status"] for row in json.loads(cli("list", "runs", "--json").stdout)] == ["finished"]


def wait_for_child(parent: int, word: str) -> int:
    """Return the pid of the descendant that was started with `word`; bounded by the test's own timeout."""
    while True:
        assert Path(f"/proc/{parent}").exists(), "the command ended before its workload hung"
        for pid in descendants(parent)[1:]:
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words and words[0].endswith(b"/workloads/fake") and word.encode() in words:
                return pid
        os.sched_yield()


class TestBench:
    def test_tree_pin_and_references_stand_side_by_side(self, cli):
        assert cli("pin", "set", "HEAD", "--reason", "the first version").returncode == 0
        done = cli("bench", "--quick", "--no-dashboard", "--json")
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        (block,) = result["matrix"]
        assert [arm["arm"] for arm in block["arms"]] == ["own (tree)", "own (pin)", "glibc", "absent"]
        tree, pin, glibc, absent = block["arms"]
        assert tree["figures"]["instructions"] == pytest.approx(pin["figures"]["instructions"], abs=2)
        assert {"instructions", "wall_s", "peak_rss_bytes", "end_rss_bytes"} <= set(glibc["figures"])
        assert "libabsent9" in absent["reason"] and result["spent_s"] > 0

    def test_without_a_pin_its_row_says_how_to_set_one(self, cli):
        done = cli("bench", "--quick", "--no-dashboard")
        assert done.returncode == 0 and "./tidemark pin set HEAD" in done.stdout

    def test_a_dashboard_that_fails_leaves_the_figures(self, cli, tmp_path):
        broken = tmp_path / "broken" / "dashboards"
        broken.mkdir(parents=True)
        (broken / "__init__.py").write_text(FAKE_DASHBOARD + "    raise RuntimeError('no template')\n")
        done = cli.process("bench", "--quick", PYTHONPATH=f"{broken.parent}:{ROOT}")
        assert done.returncode == 2 and "the dashboard could not be drawn" in done.stderr
        assert "no template" in done.stderr and "Traceback" not in done.stderr
        assert json.loads(cli("report", "--json").stdout)["matrix"]

    def test_the_dashboard_is_written_where_it_says(self, cli, tmp_path):
        fine = tmp_path / "fine" / "dashboards"
        fine.mkdir(parents=True)
        (fine / "__init__.py").write_text(
            FAKE_DASHBOARD + "    out.mkdir(parents=True)\n"
            "    (out / 'index.html').write_text(f'{len(store.measurements())} {history}')\n"
        )
        first = run_git(cli.layout.root, "rev-parse", "HEAD")
        run_git(cli.layout.root, "commit", "-q", "--allow-empty", "-m", "own: second version")
        second = run_git(cli.layout.root, "rev-parse", "HEAD")
        done = cli.process("bench", "--quick", PYTHONPATH=f"{fine.parent}:{ROOT}")
        assert done.returncode == 0, done.stderr
        page = cli.layout.root / "dashboards" / "site" / "index.html"
        count, history = page.read_text().split(" ", 1)
        assert int(count) > 0 and history == str([first, second]), "the timeline needs the order of commits"
