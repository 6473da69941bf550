"""The rules about the tree hold, and each of them sees what it forbids."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

import cpp_rules
import python_rules
import text_rules
from tree import CODE, CPP, ROOT, files, text_of, tracked

Rule = Callable[[str, str], list[str]]

RECORDED = ("tests/harness/fixtures/", "tests/results/data/", "tests/allocator/fuzz/corpus/")
"""Recorded outputs of other programs: nobody writes them by hand."""


def complaints(rule: Rule, paths: list[str]) -> list[str]:
    """Return what a rule says of files; there must be some, lest a moved folder make it blind."""
    assert paths, "the rule looks at nothing"
    return [complaint for path in paths for complaint in rule(path, text_of(path))]


def written_by_hand(*suffixes: str) -> list[str]:
    """Return all files of a kind but recorded ones."""
    return [path for path in files(*suffixes) if not path.startswith(RECORDED)]


RULES: dict[str, tuple[Rule, Callable[[], list[str]]]] = {
    "layers": (cpp_rules.layering, lambda: files(*CPP, ".def", under="allocator/")),
    "operating system": (cpp_rules.operating_system, lambda: files(*CPP, under="allocator/")),
    "C linkage": (cpp_rules.c_linkage, lambda: files(*CPP, under="allocator/")),
    "file comments": (cpp_rules.file_comment, lambda: files(".h", ".hpp", under="allocator/")),
    "workloads": (cpp_rules.own_includes_only, lambda: files(*CPP, under="workloads/")),
    "C++ functions": (cpp_rules.long_functions, lambda: files(*CPP)),
    "files": (cpp_rules.long_files, lambda: written_by_hand(*CODE)),
    "imports": (
        python_rules.import_direction,
        lambda: [path for package in python_rules.PACKAGES for path in files(".py", under=package + "/")],
    ),
    "Python functions": (python_rules.long_functions, lambda: files(".py")),
    "docstrings": (python_rules.docstrings, lambda: files(".py")),
    "annotations": (
        python_rules.annotations, lambda: [path for path in files(".py") if not path.startswith("tests/")],
    ),
    "unfinished": (text_rules.unfinished, lambda: written_by_hand("")),
    "machine paths": (text_rules.machine_paths, lambda: written_by_hand("")),
    "native code": (text_rules.native_code, lambda: files("CMakeLists.txt", "Makefile", ".cmake", ".sh", ".toml")),
    "vague names": (text_rules.vague_names, lambda: written_by_hand("")),
}


@pytest.mark.parametrize("name", RULES)
def test_the_rule_holds(name: str) -> None:
    rule, paths = RULES[name]
    found = complaints(rule, paths())
    assert not found, "\n" + "\n".join(found)


def case_name(value: object) -> str:
    """Name a case by its rule and its path."""
    return getattr(value, "__name__", "text" if "\n" in str(value) else str(value))


LONG_CPP = "void f(\n    int x) {\n" + "  g();\n" * 80 + "}\n"
FORBIDDEN: list[tuple[Rule, str, str]] = [
    (cpp_rules.layering, "allocator/arena/a.cc", '#include "heap/heap.h"\n'),
    (cpp_rules.layering, "allocator/scavenger/a.cc", '#include "diagnostics/a.h"\n'),
    (cpp_rules.layering, "allocator/stats/a.cc", '#  include "config/options.h"\n'),
    (cpp_rules.layering, "allocator/heap/a.cc", "#include <ebb/ebb.h>\n"),
    (cpp_rules.layering, "allocator/heap/a.cc", '#include "alloc.h"\n'),
    (cpp_rules.layering, "allocator/include/ebb/ebb.h", '#include "base/bits.h"\n'),
    (cpp_rules.operating_system, "allocator/heap/a.cc", "#include <pthread.h>\n"),
    (cpp_rules.operating_system, "allocator/arena/a.cc", "#if defined(__linux__)\n"),
    (cpp_rules.c_linkage, "allocator/heap/a.cc", 'extern "C" void f();\n'),
    (cpp_rules.file_comment, "allocator/heap/a.h", "#pragma once\n// late\n"),
    (cpp_rules.own_includes_only, "workloads/a/a.cc", "#include <ebb/ebb.h>\n"),
    (cpp_rules.own_includes_only, "workloads/a/a.cc", '#include "heap/alloc.h"\n'),
    (cpp_rules.long_functions, "a.cc", LONG_CPP),
    (cpp_rules.long_functions, "a.cc", "class A {\n  int f() const {\n" + "    g();\n" * 70 + "  }\n};\n"),
    (cpp_rules.long_files, "a.cc", "\n" * 501),
    (python_rules.import_direction, "results/a.py", "from harness.model import arm\n"),
    (python_rules.import_direction, "results/a.py", "def f():\n    import dashboards\n"),
    (python_rules.import_direction, "dashboards/a.py", "import harness.cli\n"),
    (python_rules.long_functions, "a.py", "def f():\n" + "    g()\n" * 70),
    (python_rules.docstrings, "a.py", "import os\n"),
    (python_rules.annotations, "a.py", "def f(a, b: int) -> None: ...\n"),
    (python_rules.annotations, "a.py", "def f(a: int): ...\n"),
    (text_rules.unfinished, "a.md", "Later: TO" + "DO\n"),
    (text_rules.machine_paths, "a.sh", "cd /wo" + "rk/main\n"),
    (text_rules.native_code, "CMakeLists.txt", "-march=" + "native\n"),
    (text_rules.vague_names, "harness/utils.py", ""),
]


@pytest.mark.parametrize("rule, path, text", FORBIDDEN, ids=case_name)
def test_the_rule_sees_what_it_forbids(rule: Rule, path: str, text: str) -> None:
    assert len(rule(path, text)) == 1


ALLOWED: list[tuple[Rule, str, str]] = [
    (cpp_rules.layering, "allocator/heap/a.cc", '#include "heap/heap.h"\n#include "base/bits.h"\n#include <atomic>\n'),
    (cpp_rules.layering, "allocator/arena/a.cc", '// as #include "heap/heap.h" would\n'),
    (cpp_rules.operating_system, "allocator/os/a.cc", "#include <pthread.h>\n"),
    (cpp_rules.operating_system, "allocator/api/a.cc", "#include <errno.h>\n"),
    (cpp_rules.long_functions, "a.cc", "namespace a {\n" + "int f();\n" * 100 + "}\n"),
    (python_rules.import_direction, "harness/a.py", "import results\nimport dashboards\n"),
    (text_rules.unfinished, "a.md", "mastodon\n"),
    (text_rules.machine_paths, "a.sh", 'cd "$here/work/x"; ls harness/root/x workloads/home/y\n'),
]


@pytest.mark.parametrize("rule, path, text", ALLOWED, ids=case_name)
def test_the_rule_lets_pass_what_is_right(rule: Rule, path: str, text: str) -> None:
    assert rule(path, text) == []


def test_scripts_that_are_run_by_name_may_be_executed() -> None:
    for script in ("tidemark", ".ci/run"):
        assert os.access(ROOT / script, os.X_OK), script


def test_generated_files_are_not_kept() -> None:
    assert not [path for path in tracked() if path.startswith(("build/", "node_modules/")) or path.endswith(".pyc")]
