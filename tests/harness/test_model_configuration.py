"""Manifests, allocators.toml and plans: what is right is read, what is wrong is one sentence with the place."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.allocator import load_allocators, select_allocators
from harness.model.arm import REFERENCE, Arm
from harness.model.errors import CannotMeasure
from harness.model.layout import Layout
from harness.model.plan import build_plan, providers_for, unit_of
from harness.model.workload import load_workloads, select_set, select_workloads
from results.records import Build


def write_manifest(layout: Layout, text: str) -> None:
    """Replace the fake workload's manifest."""
    (layout.workloads / "fake" / "workload.toml").write_text(text)


class TestManifest:
    def test_defaults_follow_the_protocol(self, checkout):
        workload = load_workloads(checkout)["fake"]
        assert workload.region == "marked" and workload.memory.series_label == "round"
        assert workload.variants[0].full == workload.variants[0].counted == workload.variants[0].quick == ()

    def test_the_first_variant_is_the_bare_name_and_the_only_one_in_quick(self, checkout):
        text = (checkout.workloads / "fake" / "workload.toml").read_text()
        write_manifest(checkout, text + '\n[[variant]]\nname = "small"\nquick = ["--pairs", "10"]\n'
                                        '\n[[variant]]\nname = "tiny"\nquick = []\nin_quick = true\n')  # fmt: skip
        known = load_workloads(checkout)
        labels = [w.label(v) for w, v in select_set(known, "fixed")]
        assert labels == ["fake", "fake:small", "fake:tiny"]
        assert [w.label(v) for w, v in select_set(known, "fixed", quick=True)] == ["fake", "fake:tiny"]
        assert [v.name for _, v in select_workloads(known, ["fake:small"])] == ["small"]
        with pytest.raises(CannotMeasure, match="no variant huge: choose one of default, small, tiny"):
            select_workloads(known, ["fake:huge"])

    @pytest.mark.parametrize(
        ("old", "new", "clause"),
        [
            ('name = "fake"', 'name = "other"', "must be that of its folder"),
            ('name = "fake"', "name = 7", "wrong type"),
            ('summary = "A fake workload."', "", "lacks the key summary"),
            ('kind = "binary"', 'kind = "binarry"', "kind is binarry"),
            ('kind = "binary"', 'kind = "app"', "lacks the key command"),
            ("threads = 1", "thread = 1", "unknown key thread"),
            ("threads = 1", 'region = "all"', "region is all"),
            ("threads = 1", "memory_runs = 0", "memory_runs is 0, it must be at least 1"),
            ("quick = []", "quick = [1]", "strings only"),
            ("quick = []", "", "lacks the key quick"),
            ("warmup_rounds = 1", "warm_up = 1", "unknown key warm_up"),
            ("[[variant]]", "[[variant", "not valid TOML"),
        ],
    )
    def test_a_typing_error_is_one_sentence_with_the_file(self, checkout, old, new, clause):
        text = (checkout.workloads / "fake" / "workload.toml").read_text()
        assert old in text
        write_manifest(checkout, text.replace(old, new))
        with pytest.raises(CannotMeasure, match=clause) as error:
            load_workloads(checkout)
        assert "workloads/fake/workload.toml" in error.value.sentence

    def test_unknown_names_say_where_to_look(self, checkout):
        known = load_workloads(checkout)
        with pytest.raises(CannotMeasure, match="no workload nope: `./tidemark list workloads`"):
            select_workloads(known, ["nope"])
        with pytest.raises(CannotMeasure, match="No workload is tagged speed"):
            select_set(known, "speed")

    def test_a_binary_that_is_not_built_says_make(self, checkout):
        (checkout.workload_binaries / "fake").unlink()
        with pytest.raises(CannotMeasure, match="run `make` first"):
            load_workloads(checkout)["fake"].program(checkout)


class TestAllocators:
    @pytest.mark.parametrize(
        ("text", "clause"),
        [
            ("", "has no .allocator.NAME. section"),
            ("[allocator.x]\nkind = 'shared'", "kind is shared"),
            ("[allocator.x]\nkind = 'preload'", "lacks the key paths"),
            ("[allocator.x]\nkind = 'git'\nrepository = 'self'", "lacks the key build"),
            ("[allocator.x]\nkind = 'libc'\npath = 'y'", "unknown key path"),
            ("[allocator.X]\nkind = 'libc'", "lower-case"),
            ("[allocator.x]\nkind = 'libc'\nenvironment = 3", "wrong type"),
            ("[allocator.x]\nkind = 'libc'\nincomparable = [{ workload = 'a' }]", "needs a workload and a reason"),
            ("[allocator.x]\nkind = 'libc'\nincomparable = [{ why = 'a' }]", "unknown key why"),
            ("[allocator.x", "not valid TOML"),
        ],
    )
    def test_a_wrong_section_is_one_sentence(self, tmp_path, text, clause):
        path = tmp_path / "allocators.toml"
        path.write_text(text)
        with pytest.raises(CannotMeasure, match=clause):
            load_allocators(path)

    def test_a_missing_file_says_so(self, tmp_path):
        with pytest.raises(CannotMeasure, match="restore it"):
            load_allocators(tmp_path / "none.toml")

    def test_the_first_match_of_the_patterns_counts(self, tmp_path):
        (tmp_path / "libb.so.1").touch()
        path = tmp_path / "allocators.toml"
        path.write_text("[allocator.b]\nkind = 'preload'\npaths = ['none*', 'libb.so*']")
        assert load_allocators(path)["b"].object_path() == tmp_path / "libb.so.1"

    def test_an_unknown_name_lists_the_known(self, checkout):
        known = load_allocators(checkout.allocators_file)
        with pytest.raises(CannotMeasure, match="allocators.toml has own, glibc, absent"):
            select_allocators(known, ["nope"])

    def test_the_shipped_file_names_ebb_and_six_references(self):
        shipped = Path(__file__).resolve().parents[2] / "harness" / "allocators.toml"
        names = set(load_allocators(shipped))
        assert {"ebb", "glibc", "jemalloc", "tcmalloc", "mimalloc", "tbbmalloc", "scudo"} <= names

    def test_counting_switches_clock_driven_work_off(self, checkout):
        config = dataclasses.replace(
            load_allocators(checkout.allocators_file)["own"], environment={"A": "1"}, counting_environment={"B": "2"}
        )
        arm = Arm(REFERENCE, config, Build("own", "1"), None)
        assert arm.environment(counting=False) == {"A": "1"}
        assert arm.environment(counting=True) == {"A": "1", "B": "2"}


class TestPlan:
    def arms(self, checkout, count):
        config = load_allocators(checkout.allocators_file)["glibc"]
        return [Arm(REFERENCE, config, Build(f"a{index}", "1"), None) for index in range(count)]

    @given(count=st.integers(1, 8), repeats=st.integers(1, 6))
    def test_every_arm_has_the_same_share_and_the_same_mean_place(self, template, count, repeats):
        layout = Layout(template)
        selection = select_set(load_workloads(layout), "fixed")
        jobs = build_plan(self.arms(layout, count), selection, ["smaps"], repeats=2 * repeats)
        places = {}
        for job in jobs:
            places.setdefault(job.arm.build.allocator, []).append(job.position)
        assert {len(found) for found in places.values()} == {2 * repeats}
        assert len({sum(found) for found in places.values()}) == 1
        assert [job.position for job in jobs] == list(range(len(jobs)))

    def test_the_order_is_abba(self, checkout):
        selection = select_set(load_workloads(checkout), "fixed")
        jobs = build_plan(self.arms(checkout, 2), selection, ["smaps"], repeats=2)
        assert [job.arm.build.allocator for job in jobs] == ["a0", "a1", "a1", "a0"]

    def test_exact_counts_are_not_repeated_for_nothing(self, checkout):
        selection = select_set(load_workloads(checkout), "fixed")
        jobs = build_plan(self.arms(checkout, 1), selection, None, repeats=3)
        assert [job.provider for job in jobs] == ["callgrind"] + ["smaps"] * 3 + ["hyperfine"] * 3

    def test_a_workload_may_want_more_looks_at_its_memory(self, checkout):
        text = (checkout.workloads / "fake" / "workload.toml").read_text()
        write_manifest(checkout, text.replace("threads = 1", "memory_runs = 5"))
        selection = select_set(load_workloads(checkout), "fixed")
        jobs = build_plan(self.arms(checkout, 1), selection, None, repeats=3)
        assert [job.provider for job in jobs] == ["callgrind"] + ["smaps"] * 5 + ["hyperfine"] * 3

    @pytest.mark.parametrize(
        ("metric", "unit"),
        [("rss_bytes", "byte"), ("handover_ns_p999", "ns"), ("wall_s", "s"), ("usable_worst_ratio", "ratio"),
         ("faults_minor", "count"), ("s", "s"), ("lines_shared", "count")],
    )  # fmt: skip
    def test_a_metric_s_name_carries_its_unit(self, metric, unit):
        assert unit_of(metric) == unit

    def test_metrics_choose_the_providers(self, checkout):
        workload = load_workloads(checkout)["fake"]
        assert providers_for(workload, "perf") == ("perf", "smaps", "hyperfine")
        own = dataclasses.replace(workload, metrics=("handover_ns_p50",))
        assert providers_for(own) == ("smaps",)
        app = dataclasses.replace(workload, kind="app")
        assert providers_for(app, "perf") == ("callgrind", "smaps")
