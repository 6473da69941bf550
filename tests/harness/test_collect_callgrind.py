"""Provider callgrind and the parser of its profiles, live and on recorded text."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.collect.callgrind_profile import BrokenProfile, Function, Line, pack, parse
from harness.collect.providers import provider_named
from harness.collect.validity import Void

HEAD = """# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 1
cmd: x
part: 1

positions: line
events: Ir
"""

RECORDED = (
    HEAD
    + """summary: 122

ob=(1) /lib/liba.so
fl=(1) a.c
fn=(1) outer
10 5
fi=(2) inline.h
+3 7
* 1
fe=(1)
-2 2
cob=(2) /lib/libb.so
cfi=(3) b.c
cfn=(2) inner
calls=4 100
+1 100
jcnd=1/2 +3
15
jump=3 9
16

ob=(2)
fl=(3)
fn=(2)
100 100

fn=(3) again'2
101 7
cfn=(2)
calls=0 100
102 9

totals: 122
"""
)


def figures(reading):
    """Return the samples without detail by metric."""
    return {sample.metric: sample.value for sample in reading.samples if sample.detail is None}


def run(bench, *arguments, **fields):
    """Measure the fake workload by callgrind."""
    job = bench.job(*arguments, provider="callgrind", allocator="own",
                    preload=bench.layout.release / "libown.so", **fields)  # fmt: skip
    return provider_named("callgrind").measure(job, bench.context())


def profile_of(reading):
    """Return the attached profile, parsed."""
    return parse(reading.attachments[0].data)


class TestParser:
    def test_names_positions_inlining_and_calls(self):
        profile = parse(RECORDED.encode())
        outer, inner = Function("/lib/liba.so", "a.c", "outer"), Function("/lib/libb.so", "b.c", "inner")
        assert profile.functions[outer] == 5 + 7 + 1 + 2
        assert profile.functions[inner] == 100
        assert profile.lines[Line(outer, "a.c", 10)] == 5
        assert profile.lines[Line(outer, "inline.h", 13)] == 8
        assert profile.lines[Line(outer, "a.c", 11)] == 2
        (edge,) = [call for call in profile.calls if call.caller == outer]
        assert edge.callee == inner and profile.calls[edge] == 4 and profile.inclusive[edge] == 100

    def test_self_costs_add_up_to_the_total(self):
        profile = parse(RECORDED.encode())
        assert sum(profile.functions.values()) == sum(profile.lines.values()) == profile.total == 122

    def test_a_call_made_zero_times_in_this_part_is_no_self_cost(self):
        """A part that begins below a call names that call with count 0 and its inclusive cost."""
        assert parse(RECORDED.encode()).by_name()["again'2"] == 7

    def test_several_files_are_one_profile_with_names_of_their_own(self):
        other = HEAD + "summary: 3\nob=(1) /lib/libc.so\nfl=(1) c.c\nfn=(1) third\n1 3\ntotals: 3\n"
        profile = parse(pack([RECORDED.encode(), other.encode()]))
        assert profile.total == 125 and profile.processes == 2
        assert profile.functions[Function("/lib/libc.so", "c.c", "third")] == 3

    def test_positions_by_instruction(self):
        text = HEAD.replace("positions: line", "positions: instr line") + (
            "summary: 6\nob=(1) a.so\nfl=(1) a.c\nfn=(1) f\n0x1000 5 1\n+4 +1 2\n+2 * 3\ntotals: 6\n"
        )
        profile = parse(text.encode())
        assert profile.addresses == {("a.so", 0x1000): 1, ("a.so", 0x1004): 2, ("a.so", 0x1006): 3}
        assert profile.in_object("a.so") == 6

    @pytest.mark.parametrize("text", ["", "nothing of the kind\n", HEAD + "fn=(9)\n1 1\n", HEAD + "1 1\n",
                                      HEAD.replace("Ir", "Dr")])  # fmt: skip
    def test_what_is_no_profile_is_refused(self, text):
        with pytest.raises(BrokenProfile):
            parse(text.encode())

    @given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 500), st.integers(0, 10**9)), min_size=1))
    def test_any_costs_add_up(self, costs):
        body = "".join(f"fn=({number}) f{number}\n{line} {cost}\n" for number, line, cost in costs)
        total = sum(cost for _, _, cost in costs)
        profile = parse((HEAD + f"ob=(1) o\nfl=(1) c\n{body}totals: {total}\n").encode())
        assert sum(profile.functions.values()) == sum(profile.lines.values()) == profile.total == total

    def test_packing_is_reproducible(self):
        assert pack([b"a", b"b"]) == pack([b"a", b"b"])
        assert gzip.decompress(pack([b"a", b"b"])) == b"a\nb"


class TestLive:
    def test_counts_are_exact_and_repeat(self, bench):
        first, second = (figures(run(bench, "--pairs", "2000"))["instructions"] for _ in range(2))
        assert abs(first - second) <= 2

    def test_only_the_region_counts(self, bench):
        small = figures(run(bench, "--pairs", "1000"))["instructions"]
        large = figures(run(bench, "--pairs", "2000", "--rounds", "9"))["instructions"]
        assert 1.9 < large / small < 2.1

    def test_functions_of_the_allocator_are_named(self, bench):
        reading = run(bench, "--pairs", "2000")
        named = {s.detail: s.value for s in reading.samples if s.metric == "function_instructions"}
        assert {"malloc", "free", "work"} <= set(named)
        assert named["malloc"] % 2000 == 0
        profile = profile_of(reading)
        assert sum(profile.functions.values()) == profile.total == figures(reading)["instructions"]
        assert any(line.file.endswith("own.c") and line.line > 0 for line in profile.lines)

    def test_threads_of_the_region_are_counted(self, bench):
        one = profile_of(run(bench, "--pairs", "4000")).by_name()["work"]
        four = profile_of(run(bench, "--pairs", "4000", "--threads", "4", threads=4)).by_name()["work"]
        assert four == pytest.approx(one, rel=0.01)

    def test_a_forked_child_is_counted_once(self, bench):
        """A child inherits what its parent has counted: without a dump before the fork that would count twice."""
        parent = profile_of(run(bench, "--pairs", "4000")).by_name()["work"]
        both = profile_of(run(bench, "--pairs", "4000", "--fork-work", "2000")).by_name()["work"]
        assert both == pytest.approx(1.5 * parent, rel=0.01)

    def test_a_region_that_never_opened_is_void(self, bench):
        with pytest.raises(Void, match="counted nothing"):
            run(bench, "--no-region")

    def test_a_crash_under_callgrind_is_void(self, bench):
        with pytest.raises(Void, match="SIGSEGV"):
            run(bench, "--misbehave", "crash")

    def test_a_child_that_outlives_its_parent_is_void(self, bench):
        with pytest.raises(Void, match="left 1 process running that were not counted to their end"):
            run(bench, "--misbehave", "leave-child")

    def test_the_whole_process_where_the_manifest_says_so(self, bench):
        whole = figures(run(bench, "--no-region", region="process"))["instructions"]
        region = figures(run(bench))["instructions"]
        assert whole > region

    def test_wall_clock_under_simulation_is_not_kept(self, bench):
        assert "region_s" not in figures(run(bench))

    def test_without_valgrind_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setattr("shutil.which", lambda name: None)
        probe = provider_named("callgrind").probe()
        assert not probe.available and "apt-get install valgrind" in probe.sentence
