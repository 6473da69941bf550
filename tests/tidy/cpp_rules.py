"""Rules about C and C++ files. Each takes a path and a text and returns one sentence for each violation."""

from __future__ import annotations

import re

RANK = {
    "base": 0, "config": 1, "stats": 1, "os": 2, "arena": 3, "page": 4, "heap": 5, "scavenger": 6, "diagnostics": 6,
    "api": 7,
}  # fmt: skip
"""The layers of allocator/, lowest first. Layers of one rank do not know each other."""
PUBLIC = "include"
FREESTANDING = frozenset(
    ("atomic", "cstddef", "cstdint", "cstring", "limits", "limits.h", "new", "stddef.h", "stdint.h", "type_traits",
     "utility")
)  # fmt: skip
"""Headers that promise nothing about an operating system."""
LIBC = frozenset(("dlfcn.h", "errno.h", "malloc.h", "stdio.h", "stdlib.h"))
"""What the interface layer needs besides, as it stands in for a part of the C library."""
PLATFORM_MACRO = re.compile(r"\b(__linux__|__gnu_linux__|__APPLE__|_WIN32|__FreeBSD__|__ANDROID__)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
FUNCTION_LINES_MOST = 70
FILE_LINES_MOST = 500


def without_comments(text: str) -> str:
    """Return the text with comments emptied, line by line as before."""
    def blank(match: re.Match[str]) -> str:
        found = match.group(0)
        return found if found.startswith(('"', "'")) else re.sub(r"[^\n]", " ", found)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', blank, text, flags=re.DOTALL)  # fmt: skip


def layer_of(path: str) -> str:
    """Return the layer of a file of allocator/: `allocator/heap/alloc.cc` is of `heap`."""
    return path.split("/")[1]


def layering(path: str, text: str) -> list[str]:
    """Includes go downwards: a layer knows itself and lower ones."""
    layer = layer_of(path)
    found = []
    for match in INCLUDE.finditer(without_includes_of_others(text)):
        name = match[1] or match[2]
        target = name.split("/")[0]
        if target == "ebb":
            target = PUBLIC
        if match[1] is not None and "/" not in name and target not in RANK:
            found.append(f'{path}: #include "{name}" must name its layer, as in "{layer}/{name}"')
        elif layer == PUBLIC and target in RANK:
            found.append(f"{path}: a public header includes {name} of the layer {target}")
        elif target == PUBLIC and layer not in (PUBLIC, "api", "diagnostics"):
            found.append(f"{path}: the layer {layer} includes the interface, {name}")
        elif target in RANK and layer in RANK and target != layer and RANK[target] >= RANK[layer]:
            found.append(f"{path}: the layer {layer} includes {name} of the layer {target}, which is not below it")
    return found


def without_includes_of_others(text: str) -> str:
    """Return the text without its comments but with its include lines whole."""
    lines = zip(text.splitlines(), without_comments(text).splitlines(), strict=False)
    return "\n".join(raw if bare.lstrip().startswith("#") else bare for raw, bare in lines)


def operating_system(path: str, text: str) -> list[str]:
    """Headers and macros of an operating system stand in os/ alone."""
    layer = layer_of(path)
    if layer in ("os", PUBLIC):
        return []
    allowed = FREESTANDING | (LIBC if layer == "api" else frozenset())
    code = without_comments(text)
    names = [match[2] for match in INCLUDE.finditer(without_includes_of_others(text)) if match[2]]
    found = [f"{path}: <{name}> is the operating system's: put it behind os/os.h"
             for name in names if name not in allowed and not name.startswith("ebb/")]  # fmt: skip
    return found + [f"{path}: {match} is decided in os/" for match in sorted(set(PLATFORM_MACRO.findall(code)))]


def c_linkage(path: str, text: str) -> list[str]:
    """extern "C" stands in include/ and api/ alone."""
    if layer_of(path) in (PUBLIC, "api") or not re.search(r'extern\s*"C"', without_comments(text)):
        return []
    return [f'{path}: extern "C" belongs into api/']


def own_includes_only(path: str, text: str) -> list[str]:
    """Workloads know nothing of the allocator that is measured."""
    names = [match[1] or match[2] for match in INCLUDE.finditer(without_includes_of_others(text))]
    return [f"{path}: {name} is the allocator's" for name in names
            if name.split("/")[0] in (*RANK, "ebb", "allocator") and not name.startswith("common/")]  # fmt: skip


def long_functions(path: str, text: str) -> list[str]:
    """Functions are short. A function begins at a line with `(` or a continuation of one that ends with `{`, and ends
    at the brace with the same indentation."""
    lines = without_comments(text).splitlines()
    found = []
    for start in range(len(lines)):
        if not is_function_head(lines, start):
            continue
        first = lines[head_begin(lines, start)]
        indentation = len(first) - len(first.lstrip())
        closing = re.compile(" " * indentation + r"\}")
        end = next((i for i in range(start + 1, len(lines)) if closing.match(lines[i])), start)
        if end - start + 1 > FUNCTION_LINES_MOST:
            found.append(f"{path}:{start + 1}: a function of {end - start + 1} lines; {FUNCTION_LINES_MOST} at most")
    return found


def head_begin(lines: list[str], index: int) -> int:
    """Return the line on which the parameters begin that end on this one."""
    depth = 0
    while index > 0 and lines[index].lstrip().startswith((":", ",")):
        index -= 1  # a constructor's initialisers
    for i in range(index, -1, -1):
        depth += lines[i].count(")") - lines[i].count("(")
        if depth <= 0:
            return i
    return index


def is_function_head(lines: list[str], index: int) -> bool:
    """Say whether a function's body begins at the end of this line."""
    line = lines[index].rstrip()
    if not line.endswith("{") or re.match(r"\s*(namespace|extern|class|struct|union|enum|if|for|while|switch|do|else)\b", line):
        return False
    return bool(re.search(r"\)\s*(const|noexcept|override|final|->.*|:.*)*\s*\{$", line))


def long_files(path: str, text: str) -> list[str]:
    """Files are about one subject, which fits on some pages."""
    count = text.count("\n")
    return [f"{path}: {count} lines; {FILE_LINES_MOST} at most: split it"] if count > FILE_LINES_MOST else []


def file_comment(path: str, text: str) -> list[str]:
    """A header says first what it owns."""
    if path.endswith(".def") or text.startswith(("//", "/*")):
        return []
    return [f"{path}: begin with a comment that says what the file owns and who calls it"]
