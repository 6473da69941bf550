"""The commands about what is there: list, report, export, import, pin, doctor, and the launcher script."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from git_checkout import ROOT, run_git

from harness.cli import main
from harness.collect.environment import read_environment

VERBS = ("bench", "doctor", "export", "import", "list", "pin", "report", "run")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_and_speaks_json(cli, verb):
    done = cli(verb, "--help")
    assert done.returncode == 0 and "Usage: tidemark " + verb in done.stdout
    pages = [done.stdout] if verb != "pin" else [cli("pin", sub, "--help").stdout for sub in ("show", "set", "check")]
    assert all("--json" in page for page in pages)


def test_help_lists_every_verb(cli):
    text = cli("--help").stdout
    assert all(f"  {verb} " in text for verb in VERBS)


def test_an_unknown_verb_is_one_sentence(cli):
    assert "No such command 'nope'" in cli.cannot("nope")


def test_lists(cli):
    (workload,) = json.loads(cli("list", "workloads", "--json").stdout)
    assert workload["workload"] == "fake"
    states = {row["allocator"]: row["state"] for row in json.loads(cli("list", "allocators", "--json").stdout)}
    assert states["own"] == "built" and "libabsent9" in states["absent"]
    providers = {row["provider"] for row in json.loads(cli("list", "providers", "--json").stdout)}
    assert providers == {"perf", "callgrind", "smaps", "hyperfine", "gbench", "statistics"}
    assert "There are no runs yet." in cli("list", "runs").stdout


def test_a_command_leaves_its_store_closed(cli, monkeypatch):
    monkeypatch.setenv("TIDEMARK_ROOT", str(cli.layout.root))
    store = cli.layout.root.parent / "closed" / "tidemark.sqlite"
    store.parent.mkdir()
    monkeypatch.setenv("TIDEMARK_DB", str(store))
    gc.disable()  # an open store that is garbage would be closed some time
    try:
        assert main(["list", "runs"]) == 0
        assert [file.name for file in store.parent.iterdir()] == ["tidemark.sqlite"], "no log beside it: it is whole"
    finally:
        gc.enable()


def test_a_checkout_without_workloads_says_so(cli):
    (cli.layout.workloads / "fake" / "workload.toml").unlink()
    assert "There are no workloads" in cli.cannot("list", "workloads")


def test_a_report_of_nothing_and_of_an_unknown_run(cli):
    assert "run `./tidemark bench --quick`" in cli.cannot("report")
    assert "There is no run whose id begins with feed" in cli.cannot("report", "--run", "feed")


def test_export_and_import_carry_a_run_to_another_store(cli, tmp_path):
    cli("run", "-w", "fake", "-a", "glibc", "-p", "smaps")
    assert cli("export", str(tmp_path / "all.gz")).returncode == 0
    other = f"sqlite:///{tmp_path}/other.sqlite"
    assert json.loads(cli("import", "--json", str(tmp_path / "all.gz"), TIDEMARK_DB=other).stdout)["new_records"] > 0
    assert json.loads(cli("import", "--json", str(tmp_path / "all.gz"), TIDEMARK_DB=other).stdout)["new_records"] == 0
    here, there = (json.loads(cli("report", "--json", TIDEMARK_DB=db).stdout) for db in (str(cli.database), other))
    assert here == there
    assert "name an export" in cli.cannot("import", str(tmp_path / "none.gz"))


def test_the_dashboard_of_a_stored_run(cli, tmp_path):
    assert cli("run", "-w", "fake", "-a", "glibc", "-p", "smaps").returncode == 0
    run = json.loads(cli("list", "runs", "--json").stdout)[0]["run"]
    done = cli("report", "--dashboard", "--out", str(tmp_path / "site"), "--run", run[:8], "--json")
    page = Path(json.loads(done.stdout)["dashboard"])
    assert done.returncode == 0 and "fake" in page.read_text() and page.parent == tmp_path / "site"
    assert str(cli.layout.dashboard / "index.html") in cli("report", "--dashboard").stdout
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("mine")
    assert "holds other files" in cli.cannot("report", "--dashboard", "--out", str(tmp_path / "full"))
    assert "--dashboard, too" in cli.cannot("report", "--out", str(tmp_path / "site"))


def test_markdown_is_a_table(cli):
    cli("run", "-w", "fake", "-a", "glibc", "-p", "smaps")
    text = cli("report", "--format", "markdown").stdout
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert text.startswith("### fake") and len({row.count("|") for row in rows}) == 1


def test_a_corrupt_database_is_one_sentence(cli):
    cli.database.write_bytes(b"no database" * 1000)
    before = cli.database.read_bytes()
    cli.cannot("report")
    cli.cannot("run", "-w", "fake", "-a", "glibc", "-p", "smaps")
    assert cli.database.read_bytes() == before


class TestPin:
    def test_without_a_pin_every_use_says_how_to_set_one(self, cli):
        for words in (["show"], ["check"]):
            assert "./tidemark pin set HEAD --reason" in cli.cannot("pin", *words)

    def test_set_writes_a_text_that_a_review_can_read(self, cli):
        done = cli("pin", "set", "HEAD", "--reason", 'the "first" one', "--json")
        assert done.returncode == 0, done.stderr
        table = tomllib.loads(cli.layout.pin_file.read_text())
        assert table["commit"] == run_git(cli.layout.root, "rev-parse", "HEAD")
        assert table["reason"] == 'the "first" one'
        assert table["environment"]["key"] == read_environment().key
        assert table["figures"]["fake/default callgrind instructions"]["value"] > 0
        assert "fake/default smaps peak_rss_bytes" in table["figures"]
        assert json.loads(cli("pin", "show", "--json").stdout)["this_environment"] is True

    def test_check_accepts_it_and_measures_again_when_asked(self, cli):
        cli("pin", "set", "HEAD", "--reason", "first")
        assert cli("pin", "check").returncode == 0
        done = cli("pin", "check", "--measure")
        assert done.returncode == 0, done.stderr
        text = cli.layout.pin_file.read_text()
        (line,) = [line for line in text.splitlines() if "instructions" in line]
        value = line.split("value = ")[1].split(",")[0]
        cli.layout.pin_file.write_text(text.replace(value, str(int(value) + 1000)))
        sentence = cli.cannot("pin", "check", "--measure")
        assert "fake/default callgrind instructions" in sentence and "do not repeat here" in sentence

    def test_a_new_pin_keeps_the_old_one_in_its_history(self, cli):
        cli("pin", "set", "HEAD", "--reason", "first")
        (cli.layout.root / "own.c").open("a").write("int more(void) { return 1; }\n")
        run_git(cli.layout.root, "commit", "-q", "-a", "-m", "own: more")
        cli("pin", "set", "HEAD", "--reason", "second")
        table = tomllib.loads(cli.layout.pin_file.read_text())
        assert table["reason"] == "second" and [past["reason"] for past in table["history"]] == ["first"]
        assert table["history"][0]["commit"] == run_git(cli.layout.root, "rev-parse", "HEAD~1")

    def test_figures_of_another_environment_are_refused_with_the_way_out(self, cli):
        cli("pin", "set", "HEAD", "--reason", "first")
        text = cli.layout.pin_file.read_text()
        cli.layout.pin_file.write_text(text.replace(read_environment().key, "0123456789abcdef"))
        sentence = cli.cannot("pin", "check")
        assert "another environment" in sentence and "./tidemark pin set" in sentence
        assert "ANOTHER environment" in cli("pin", "show").stdout

    @pytest.mark.parametrize(
        ("words", "clause"),
        [
            (["set", "nope", "--reason", "x"], "no commit nope"),
            (["set", "HEAD"], "--reason"),
            (["set", "HEAD", "--reason", "  "], "needs a reason"),
            (["set", "HEAD", "--reason", "x", "--set", "speed"], "No workload is tagged speed"),
        ],
    )
    def test_bad_input(self, cli, words, clause):
        assert clause in cli.cannot("pin", *words)
        assert not cli.layout.pin_file.exists()

    def test_nothing_is_pinned_when_a_figure_is_missing(self, cli):
        path = cli.layout.workloads / "fake" / "workload.toml"
        path.write_text(path.read_text().replace("quick = []", 'quick = ["--misbehave", "crash"]'))
        assert "Nothing was pinned" in cli.cannot("pin", "set", "HEAD", "--reason", "x")
        assert not cli.layout.pin_file.exists()

    @pytest.mark.parametrize(
        ("text", "clause"),
        [("format = 1\n", "lacks or misspells"), ("format = 2\n", "has format 2"), ("no toml", "not valid TOML")],
    )
    def test_a_damaged_file_is_one_sentence(self, cli, text, clause):
        cli.layout.pin_file.parent.mkdir(parents=True)
        cli.layout.pin_file.write_text(text)
        assert clause in cli.cannot("pin", "show")


class TestDoctor:
    def test_it_says_what_is_measured_and_what_would_help(self, cli):
        done = cli("doctor", "--json")
        result = json.loads(done.stdout)
        subjects = {finding["subject"]: finding for finding in result["findings"]}
        assert {"provider perf", "provider callgrind", "perf_event_paranoid", "transparent huge pages",
                "frequency governor", "ASLR", "overcommit", "noise of timings", "noise of counts", "version of valgrind",
                "allocator absent"} <= set(subjects)  # fmt: skip
        assert "apt-get install libabsent9" in subjects["allocator absent"]["help"]
        assert "instructions between two runs" in subjects["noise of counts"]["state"]
        assert all(finding["help"] for finding in result["findings"] if finding["level"] == "bad")
        assert done.returncode == (2 if any(f["level"] == "bad" for f in result["findings"]) else 0)
        assert result["environment"]["key"] == read_environment().key

    def test_a_tool_that_is_missing_is_bad_and_exits_with_2(self, cli, tmp_path):
        for tool in ("git", "cc", "c++", "dpkg-query"):
            os.symlink(subprocess.run(["which", tool], capture_output=True, text=True).stdout.strip(), tmp_path / tool)
        done = cli.process("doctor", "--json", PATH=str(tmp_path))
        findings = {f["subject"]: f for f in json.loads(done.stdout)["findings"]}
        assert done.returncode == 2 and findings["provider callgrind"]["level"] == "bad"
        assert "apt-get install valgrind" in findings["provider callgrind"]["help"]


class TestLauncherScript:
    def run(self, *words, cwd="/", **extra):
        """Run ./tidemark itself."""
        return subprocess.run([str(ROOT / "tidemark"), *words], cwd=cwd, env={**os.environ, **extra},
                              capture_output=True, text=True, timeout=60)  # fmt: skip

    def test_it_works_from_any_folder_and_through_a_link(self, tmp_path):
        assert self.run("--help").returncode == 0
        (tmp_path / "link").symlink_to(ROOT / "tidemark")
        assert subprocess.run([str(tmp_path / "link"), "--help"], capture_output=True, cwd="/").returncode == 0

    def test_a_missing_interpreter_is_one_sentence(self):
        done = self.run("list", "runs", PYTHON="/nonexistent/python3")
        assert done.returncode == 2 and "apt-get install python3" in done.stderr

    def test_an_interpreter_without_the_packages_is_one_sentence(self, tmp_path):
        bare = tmp_path / "bare-python"
        bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
        bare.chmod(0o755)
        done = self.run("list", "runs", PYTHON=str(bare))
        assert done.returncode == 2 and "apt-get install python3-" in done.stderr and "Traceback" not in done.stderr


class TestSetup:
    def install(self, *words, **extra):
        """Run the installer."""
        return subprocess.run(["sh", str(ROOT / "harness" / "setup" / "install"), *words],
                              env={**os.environ, **extra}, capture_output=True, text=True, timeout=60)  # fmt: skip

    def test_what_is_missing_is_named(self, tmp_path):
        packages = tmp_path / "packages.txt"
        packages.write_text("# a list\ndpkg  # there\nno-such-package-at-all  # why\n")
        done = self.install("--check", TIDEMARK_PACKAGES=str(packages))
        assert done.returncode == 2 and "missing: no-such-package-at-all " in done.stderr and "dpkg " not in done.stderr

    def test_nothing_to_do_says_nothing(self, tmp_path):
        packages = tmp_path / "packages.txt"
        packages.write_text("dpkg  # there\n")
        done = self.install(TIDEMARK_PACKAGES=str(packages))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_a_missing_list_is_one_sentence(self):
        done = self.install(TIDEMARK_PACKAGES="/nonexistent/list")
        assert done.returncode == 2 and "is missing: restore it from git" in done.stderr

    def test_every_line_of_the_list_says_why(self):
        for line in (ROOT / "harness" / "setup" / "debian-packages.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                name, mark, why = line.partition("  # ")
                assert mark and why.strip() and name == name.strip(), line
