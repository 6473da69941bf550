"""What a user may write where a build is meant: a commit, `tree`, an allocator, or an allocator's commit.

Called by gate and compare. Builds what has to be built; CannotMeasure says why that failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness.build.arms import arm_named, revision_arm, tree_arm
from harness.model.allocator import AllocatorConfig
from harness.model.arm import TREE, Arm
from harness.model.errors import CannotMeasure
from harness.model.layout import Layout

SIDE_HELP = "a commit, `tree`, NAME of an allocator, or NAME@COMMIT"


def side(layout: Layout, known: Mapping[str, AllocatorConfig], own: AllocatorConfig, text: str) -> Arm:
    """Return the arm that `text` means; its role is the text, with commits in their short form.

    A bare word that is no allocator is a commit of `own`. CannotMeasure when there is no such thing.
    """
    if text == TREE:
        if own.repository != "self":
            raise CannotMeasure(
                f"{own.name} is not built from this checkout, so it has no working tree: name a commit."
            )
        return tree_arm(layout, own)
    name, at, revision = text.partition("@")
    if at and name in known:
        arm = revision_arm(layout, known[name], revision)
        return replace(arm, role=f"{name}@{arm.build.revision[:12]}")
    if text in known:
        return replace(arm_named(layout, known[text]), role=text)
    arm = revision_arm(layout, own, text)
    return replace(arm, role=arm.build.revision[:12])
