"""What README says exists: make's targets, Tidemark's commands and options, linked files, EBB_ variables."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator

import click
import pytest

from tree import ROOT, text_of

sys.path.insert(0, str(ROOT))
README = text_of("README.md")


def code(text: str) -> Iterator[str]:
    """Yield each line of code: fenced, indented, or between backticks."""
    yield from re.findall(r"^    (\S.*)$", text, re.MULTILINE)
    for block in re.findall(r"^```(?:sh)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield from block.splitlines()
    yield from re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)


def mentioned(pattern: str) -> list[str]:
    """Return what a pattern's group finds in the code of README, each once."""
    return sorted({match for line in code(README) for match in re.findall(pattern, line)})


def test_readme_begins_with_the_two_commands() -> None:
    assert [line.split("#")[0].strip() for line in re.findall(r"^    (make .*)$", README, re.MULTILINE)][:2] == [
        "make bench", "make test",
    ]  # fmt: skip


def make_targets() -> set[str]:
    """Return the targets that Makefile has rules for, those that a variable names among them."""
    makefile = text_of("Makefile")
    variables = dict(re.findall(r"^(\w+) *[:?]?= *(.*)$", makefile, re.MULTILINE))
    rules = re.findall(r"^([^\s#:=][^:=\n]*):(?!=)", makefile, re.MULTILINE)
    expanded = [re.sub(r"\$\((\w+)\)", lambda match: variables.get(match[1], ""), rule) for rule in rules]
    return {target for rule in expanded for target in rule.split()}


def test_make_has_the_targets() -> None:
    wanted = set(mentioned(r"\bmake ([a-z][\w-]*)"))
    assert {"bench", "test", "gate", "compare"} <= wanted
    assert wanted <= make_targets(), wanted - make_targets()


def test_tidemark_has_the_commands() -> None:
    from harness.cli import main

    commands = main.cli.commands if hasattr(main, "cli") else None
    wanted = set(mentioned(r"\./tidemark ([a-z]+)"))
    assert wanted
    modules = {path.stem.rstrip("_") for path in (ROOT / "harness" / "cli").glob("*.py")}
    assert wanted <= (set(commands) if commands else modules), wanted


@pytest.mark.parametrize("line", [line for line in code(README) if re.match(r"\./tidemark [a-z]+ .*--", line)])
def test_tidemark_has_the_options(line: str) -> None:
    words = line.split("#")[0].split()
    command = importlib.import_module(f"harness.cli.{words[1]}").command
    if isinstance(command, click.Group):
        command = command.commands[words[2]]
    known = {option for parameter in command.params for option in parameter.opts}
    used = {word.split("=")[0] for word in words if word.startswith("--")}
    assert used <= known, used - known


def test_linked_files_exist() -> None:
    links = [target for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README) if "://" not in target]
    assert len(links) >= 5
    missing = [target for target in links if not (ROOT / target).exists()]
    assert not missing, missing


def test_variables_are_options() -> None:
    options = set(re.findall(r"EBB_OPTION\((\w+),", text_of("allocator/config/options.def")))
    assert {name.lower() for name in mentioned(r"\bEBB_([A-Z_]+)=")} <= options
