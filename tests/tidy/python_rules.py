"""Rules about Python files. Each takes a path and a text and returns one sentence for each violation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

PACKAGES = ("harness", "results", "dashboards")
MAY_IMPORT = {"results": ("results",), "dashboards": ("dashboards", "results"), "harness": PACKAGES}
"""What each package may know of the others."""
FUNCTION_LINES_MOST = 70


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, module) of each import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            yield node.lineno, node.module


def import_direction(path: str, text: str) -> list[str]:
    """The store knows nobody, the dashboards know the store, the harness knows both."""
    package = path.split("/")[0]
    found = []
    for line, module in imported(ast.parse(text)):
        top = module.split(".")[0]
        if top in PACKAGES and top not in MAY_IMPORT[package]:
            found.append(f"{path}:{line}: {package}/ imports {module}")
        if top == "tests":
            found.append(f"{path}:{line}: {package}/ imports tests")
    return found


def long_functions(path: str, text: str) -> list[str]:
    """Functions are short."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno is not None:
            count = node.end_lineno - node.lineno + 1
            if count > FUNCTION_LINES_MOST:
                found.append(f"{path}:{node.lineno}: {node.name} has {count} lines; {FUNCTION_LINES_MOST} at most")
    return found


def docstrings(path: str, text: str) -> list[str]:
    """A module says what it is for."""
    has_code = any(line.strip() and not line.startswith("#") for line in text.splitlines())
    if not has_code or ast.get_docstring(ast.parse(text)):
        return []
    return [f"{path}: begin with a docstring that says what the module is for"]


def annotations(path: str, text: str) -> list[str]:
    """Every parameter and result has its type."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        bare = [p.arg for p in parameters if p.annotation is None and p.arg not in ("self", "cls")]
        if bare:
            found.append(f"{path}:{node.lineno}: {node.name} has no type for {', '.join(bare)}")
        if node.returns is None:
            found.append(f"{path}:{node.lineno}: {node.name} has no type for its result")
    return found
