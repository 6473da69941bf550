"""A broken allocator is found by every workload, and a broken argument gets one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiny_arguments import TINY
from workload_runs import compile_shared, manifests, run

PRELOADS = Path(__file__).parent / "preloads"
BLIND = {
    "churn_bare": "it does not look into blocks",
    "startup": "it allocates nothing",
    "aligned": "the overlapping allocator is right for aligned blocks",
    "calloc_large": "it checks for zeros before it writes, which the same block twice satisfies seldom",
}
CORRUPTED = sorted(set(manifests()) - set(BLIND))


@pytest.fixture(scope="module")
def overlapping(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An allocator that hands some blocks out twice."""
    target = tmp_path_factory.mktemp("preload") / "overlapping.so"
    return compile_shared(PRELOADS / "overlapping.c", target, "-fno-builtin")


def one_sentence(name: str, text: str) -> bool:
    """Say whether standard error holds exactly one line that begins with the program's name and ends with a stop."""
    return text.startswith(f"{name}: ") and text.endswith(".\n") and text.count("\n") == 1


@pytest.mark.parametrize("name", CORRUPTED)
def test_overlapping_blocks_end_the_run_with_3(name: str, overlapping: Path) -> None:
    done = run(name, *TINY[name], preload=[overlapping])
    assert done.code == 3, done.output
    assert "gave the memory away" in done.errors or "child of fork" in done.errors
    assert all(event["event"] != "end" for event in done.events)


FAULTS = [
    ("aligned", "MISALIGNS", "not aligned as asked"),
    ("calloc_large", "CALLOC_LEAVES_A_BYTE", "gave the memory away or wrote to it"),
    ("realloc", "REALLOC_FORGETS", "gave the memory away or wrote to it"),
    ("waste", "USABLE_IS_SHORT", "malloc_usable_size is below"),
]


@pytest.mark.parametrize("name,fault,words", FAULTS)
def test_other_faults_end_the_run_with_3(name: str, fault: str, words: str, tmp_path: Path) -> None:
    flags = (f"-D{fault}", "-fno-builtin")
    done = run(name, *TINY[name], preload=[compile_shared(PRELOADS / "overlapping.c", tmp_path / "faulty.so", *flags)])
    assert done.code == 3, done.output
    assert words in done.errors


@pytest.mark.parametrize("name", ["buffers", "calloc_large", "realloc", "server"])
def test_no_memory_ends_the_run_with_1(name: str, tmp_path: Path) -> None:
    library = compile_shared(PRELOADS / "refusing.c", tmp_path / "refusing.so", "-fno-builtin")
    done = run(name, *TINY[name], preload=[library])
    assert done.code == 1
    assert one_sentence(name, done.errors)


WRONG = [
    (("--iterations",), "--iterations needs a whole number from 1 to 10000000000"),
    (("--iterations", "0"), '--iterations needs a whole number from 1 to 10000000000, not "0"'),
    (("--iterations", "-5"), '--iterations needs a whole number from 1 to 10000000000, not "-5"'),
    (("--iterations", "1e6"), '--iterations needs a whole number from 1 to 10000000000, not "1e6"'),
    (("--iterations", ""), '--iterations needs a whole number from 1 to 10000000000, not ""'),
    (("--iterations", "99999999999999999999999"), "not \"99999999999999999999999\""),
    (("--check", "maybe"), '--check needs one of no, yes, not "maybe"'),
    (("--itérations", "5"), 'there is no option "--itérations"'),
    (("5",), 'there is no option "5"'),
    (("--iterations=5",), 'there is no option "--iterations=5"'),
]


@pytest.mark.parametrize("arguments,words", WRONG)
def test_wrong_arguments(arguments: tuple[str, ...], words: str) -> None:
    done = run("churn", *arguments)
    assert done.code == 2 and done.output == ""
    assert one_sentence("churn", done.errors)
    assert words in done.errors and done.errors.endswith("; see churn --help.\n")


@pytest.mark.parametrize("name", sorted(manifests()))
def test_every_workload_refuses_an_unknown_option(name: str) -> None:
    done = run(name, "--no-such-option", "1")
    assert done.code == 2 and done.output == ""
    assert one_sentence(name, done.errors)


def test_options_that_contradict_each_other() -> None:
    done = run("remote", "--size-min", "100", "--size-max", "50")
    assert (done.code, done.errors) == (2, "remote: --size-max must not be below --size-min; see remote --help.\n")
    assert run("remote", "--depth", "3").code == 2
