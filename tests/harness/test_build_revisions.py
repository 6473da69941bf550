"""Builds of revisions: the cache, what does not build, allocators from other repositories and static archives."""

from __future__ import annotations

import dataclasses
import shutil
import threading
from pathlib import Path

import pytest
from git_checkout import run_git

from harness.build.arms import arm_named, pin_arm, reference_arm, revision_arm, tree_arm
from harness.build.revision import build_revision, resolve_commit
from harness.build.stage import stage
from harness.model.allocator import load_allocators
from harness.model.errors import CannotMeasure


@pytest.fixture
def own(checkout):
    """Return the checkout's own allocator."""
    return load_allocators(checkout.allocators_file)["own"]


def commit(layout, message: str, text: str) -> str:
    """Append to the allocator's source, commit, and return the commit."""
    with (layout.root / "own.c").open("a") as sink:
        sink.write(text)
    run_git(layout.root, "commit", "-q", "-a", "-m", message)
    return run_git(layout.root, "rev-parse", "HEAD")


def test_a_build_is_made_once_and_then_found(checkout, own):
    first = build_revision(checkout, own, "HEAD")
    stamp = first.artefact.stat().st_mtime_ns
    second = build_revision(checkout, own, "main")
    assert (first.reused, second.reused) == (False, True)
    assert second.artefact.stat().st_mtime_ns == stamp and second.commit == first.commit


def test_commits_with_the_same_tree_share_a_build(checkout, own):
    build_revision(checkout, own, "HEAD")
    run_git(checkout.root, "commit", "-q", "--allow-empty", "-m", "own: say more")
    again = build_revision(checkout, own, "HEAD")
    assert again.reused and again.commit == run_git(checkout.root, "rev-parse", "HEAD")


def test_other_build_commands_are_another_build(checkout, own):
    build_revision(checkout, own, "HEAD")
    command = tuple("-O2" if word == "-O1" else word for word in own.build[0])
    assert not build_revision(checkout, dataclasses.replace(own, build=(command,)), "HEAD").reused


def test_identical_sources_give_identical_binaries(checkout, own):
    """Tree and pin of the same commit are one binary, so that `unchanged` can be said without measuring."""
    arm, tree = revision_arm(checkout, own, "HEAD"), tree_arm(checkout, own)
    assert arm.build.sha256 == tree.build.sha256 and arm.preload == tree.preload


def test_the_working_tree_and_the_list_of_worktrees_stay_as_they_were(checkout, own):
    (checkout.root / "own.c").write_text("int changed;\n")
    build_revision(checkout, own, "HEAD")
    assert (checkout.root / "own.c").read_text() == "int changed;\n"
    assert len(run_git(checkout.root, "worktree", "list").splitlines()) == 1


def test_an_unknown_commit_is_one_sentence(checkout, own):
    with pytest.raises(CannotMeasure, match="There is no commit nope in the repository of own"):
        resolve_commit(checkout, own, "nope")
    with pytest.raises(CannotMeasure, match="There is no commit --help"):
        resolve_commit(checkout, own, "--help")


def test_a_commit_that_does_not_build_shows_the_log_and_is_tried_again(checkout, own):
    broken = commit(checkout, "own: break it", "this is no C;\n")
    for _ in range(2):
        with pytest.raises(CannotMeasure) as error:
            build_revision(checkout, own, broken)
        assert f"Commit {broken[:12]} of own does not build" in error.value.sentence
        assert "error:" in error.value.sentence
    assert not build_revision(checkout, own, "HEAD~1").reused


def test_a_pin_that_does_not_build_stays_in_the_tables_with_its_reason(checkout, own):
    broken = commit(checkout, "own: break it", "this is no C;\n")
    arm = pin_arm(checkout, own, broken)
    assert arm.preload is None and "does not build" in arm.missing


def test_a_build_without_the_promised_artefact_says_so(checkout, own):
    with pytest.raises(CannotMeasure, match="left no libother.so"):
        build_revision(checkout, dataclasses.replace(own, artefact="libother.so"), "HEAD")


def test_a_missing_build_tool_says_what_to_install(checkout, own):
    config = dataclasses.replace(own, build=(("no-such-compiler", "{source}"),))
    with pytest.raises(CannotMeasure, match="needs no-such-compiler: run `sh harness/setup/install`"):
        build_revision(checkout, config, "HEAD")


def test_builds_of_one_revision_at_once_are_one_build(checkout, own):
    results = []
    threads = [threading.Thread(target=lambda: results.append(build_revision(checkout, own, "HEAD"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.reused for result in results) == [False, True, True]


def test_a_tree_that_was_not_built_says_make(checkout, own):
    (checkout.release / "libown.so").unlink()
    with pytest.raises(CannotMeasure, match="build/release/libown.so is missing: run `make` first"):
        tree_arm(checkout, own)


def test_a_changed_tree_is_dirty(checkout, own):
    assert not tree_arm(checkout, own).build.dirty
    (checkout.root / "own.c").write_text("int changed;\n")
    assert tree_arm(checkout, own).build.dirty


def test_a_rebuild_does_not_change_what_is_being_measured(checkout, own):
    arm = tree_arm(checkout, own)
    before = arm.preload.read_bytes()
    (checkout.release / "libown.so").write_bytes(b"something else")
    assert arm.preload.read_bytes() == before


def test_staged_paths_have_one_length(checkout, own):
    commit(checkout, "own: add a function", "int more(void) { return 1; }\n")
    arms = [revision_arm(checkout, own, revision) for revision in ("HEAD", "HEAD~1")]
    assert arms[0].preload != arms[1].preload
    assert len(str(arms[0].preload)) == len(str(arms[1].preload))


def test_somebody_else_s_repository_is_built_at_its_revision(checkout, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(checkout.root, other, ignore=shutil.ignore_patterns("build"))
    config = dataclasses.replace(
        load_allocators(checkout.allocators_file)["own"], name="other", repository=str(other), revision="main"
    )
    arm = reference_arm(checkout, config)
    assert not arm.missing and arm.build.revision == run_git(other, "rev-parse", "HEAD")
    gone = reference_arm(checkout, dataclasses.replace(config, repository=str(tmp_path / "gone")))
    assert "is missing: correct allocators.toml or clone it" in gone.missing


def test_a_repository_by_address_is_cloned_once(checkout, tmp_path):
    config = dataclasses.replace(
        load_allocators(checkout.allocators_file)["own"], name="remote", repository=f"file://{checkout.root}"
    )
    first = build_revision(checkout, config, "main")
    assert build_revision(checkout, config, first.commit).reused
    gone = dataclasses.replace(config, repository=f"file://{tmp_path}/gone")
    with pytest.raises(CannotMeasure, match="The clone of remote does not"):
        build_revision(checkout, gone, "main")


def test_a_static_archive_becomes_a_shared_object(checkout, own, tmp_path):
    import subprocess

    subprocess.run(["cc", "-c", "-fPIC", "-o", str(tmp_path / "own.o"), str(checkout.root / "own.c")], check=True)
    subprocess.run(["ar", "rcs", str(tmp_path / "libown.a"), str(tmp_path / "own.o")], check=True)
    path, digest = stage(checkout, tmp_path / "libown.a")
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(path)], capture_output=True, text=True, check=True)
    assert path.suffix == ".so" and len(digest) == 64 and " T malloc" in symbols.stdout


def test_an_allocator_that_is_not_installed_names_its_package(checkout):
    absent = load_allocators(checkout.allocators_file)["absent"]
    assert reference_arm(checkout, absent).missing == "absent is not installed: run `apt-get install libabsent9`."
    with pytest.raises(CannotMeasure, match="apt-get install libabsent9"):
        arm_named(checkout, absent)


def test_only_git_allocators_have_revisions(checkout):
    glibc = load_allocators(checkout.allocators_file)["glibc"]
    with pytest.raises(CannotMeasure, match="glibc is not built from git"):
        arm_named(checkout, glibc, "HEAD")


def test_arms_prove_who_serves_malloc(checkout, own):
    arm = tree_arm(checkout, own)
    glibc = reference_arm(checkout, load_allocators(checkout.allocators_file)["glibc"])
    assert arm.expects(str(arm.preload)) and not arm.expects("/usr/lib/libc.so.6")
    assert glibc.expects("/lib/x86_64-linux-gnu/libc.so.6") and not glibc.expects(str(arm.preload))
    renamed = dataclasses.replace(arm, config=dataclasses.replace(own, provides="libinner*.so"))
    assert renamed.expects("/x/libinner2.so") and not renamed.expects(str(Path(arm.preload)))
