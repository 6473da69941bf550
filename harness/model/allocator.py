"""Allocators as `harness/allocators.toml` describes them.

One section makes an allocator measurable like any other: the libc's own, a shared object that a package brings,
or a git repository with build commands (`self` for this one).
"""

from __future__ import annotations

import fnmatch
import glob
import platform
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Literal

from harness.model.errors import CannotMeasure

Kind = Literal["libc", "preload", "git"]

_KEYS = {
    "kind", "summary", "paths", "package", "repository", "revision", "build", "artefact", "working_tree",
    "environment", "counting_environment", "provides", "adapter", "capabilities", "version_command",
    "excluded", "incomparable", "statistics",
}  # fmt: skip
_INCOMPARABLE_KEYS = {"workload", "versions", "reason"}


@dataclass(frozen=True)
class Incomparable:
    """A workload whose figures of an allocator say nothing beside those of others, and why."""

    workload: str
    """`name`, or `name:variant` for one variant."""
    reason: str
    versions: str = "*"
    """Pattern of the versions it holds for, so that it ends with the fault that it names."""

    def holds(self, workload: str, variant: str, version: str) -> bool:
        """Say whether it speaks of this variant of a workload under this version."""
        return self.workload in (workload, f"{workload}:{variant}") and fnmatch.fnmatchcase(version, self.versions)


@dataclass(frozen=True)
class AllocatorConfig:
    """One section of allocators.toml."""

    name: str
    kind: Kind
    summary: str = ""
    paths: tuple[str, ...] = ()
    """preload: glob patterns of the shared object; the first match counts."""
    package: str = ""
    """preload: the Debian package that brings the object."""
    repository: str = ""
    """git: a path or address of the repository; `self` is this checkout."""
    revision: str = ""
    """git: the revision to measure as a reference; empty for `self`, where the command names it."""
    build: tuple[tuple[str, ...], ...] = ()
    """git: commands with the placeholders {source} and {build}, run in order."""
    artefact: str = ""
    """git: the shared object, or a static archive of position-independent code, relative to {build}."""
    working_tree: str = ""
    """git, self: where `make` leaves the working tree's own artefact, relative to the root."""
    environment: dict[str, str] = field(default_factory=dict)
    """Tunables of every measurement."""
    counting_environment: dict[str, str] = field(default_factory=dict)
    """Tunables of counting measurements on top: they stop work that a clock drives, which would leak into counts."""
    provides: str = ""
    """Pattern of the object that provides malloc, if it is not the preloaded object itself."""
    adapter: str = "none"
    """The adapter that the workload is expected to find."""
    capabilities: tuple[str, ...] = ()
    """What the allocator offers of heap, collect and park."""
    excluded: dict[str, str] = field(default_factory=dict)
    """Providers that cannot measure it, each with the reason; tables show the reason."""
    incomparable: tuple[Incomparable, ...] = ()
    """Workloads that it is not measured on, each with the reason; tables show the reason."""
    statistics: str = ""
    """Its function `size_t f(char *buffer, size_t capacity)` that writes its statistics as one JSON object."""
    version_command: tuple[str, ...] = ()
    """Prints the version; {object} stands for the shared object."""

    def object_path(self) -> Path | None:
        """Return the shared object of a preload allocator, or None when it is not installed."""
        for pattern in self.paths:
            for match in sorted(glob.glob(pattern)):
                if Path(match).is_file():
                    return Path(match)
        return None

    def incomparable_on(self, workload: str, variant: str, version: str) -> str:
        """Return why a workload's figures would not be comparable under a version, or an empty string."""
        return next((entry.reason for entry in self.incomparable if entry.holds(workload, variant, version)), "")

    def missing_sentence(self) -> str:
        """Return what to do about an allocator whose object is not there."""
        if self.package:
            return f"{self.name} is not installed: run `apt-get install {self.package}`."
        return f"No file matches {' or '.join(self.paths)} for {self.name}: correct its section in allocators.toml."


def load_allocators(path: Path) -> dict[str, AllocatorConfig]:
    """Return every configured allocator by name, in the file's order; CannotMeasure when the file is wrong."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CannotMeasure(f"{path} is missing: restore it or point TIDEMARK_ALLOCATORS at another.") from error
    except tomllib.TOMLDecodeError as error:
        raise CannotMeasure(f"{path} is not valid TOML ({error}): correct it.") from error
    sections = table.get("allocator", {})
    if not sections:
        raise CannotMeasure(f"{path} has no [allocator.NAME] section: add one.")
    return {name: _parse(name, section, path, path.parent) for name, section in sections.items()}


def select_allocators(known: dict[str, AllocatorConfig], names: Iterable[str]) -> list[AllocatorConfig]:
    """Return the named allocators; CannotMeasure when a name is unknown."""
    chosen = []
    for name in names:
        if name not in known:
            raise CannotMeasure(f"There is no allocator {name}: allocators.toml has {', '.join(known)}.")
        chosen.append(known[name])
    return list({config.name: config for config in chosen}.values())


def _parse(name: str, section: dict[str, Any], path: Path, base: Path) -> AllocatorConfig:
    where = f"{path.name}, [allocator.{name}]"
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        raise CannotMeasure(f"{where}: the name may hold lower-case letters, digits, - and _ only.")
    unknown = sorted(set(section) - _KEYS)
    if unknown:
        raise CannotMeasure(f"{where} has the unknown key {unknown[0]}: correct it or remove it.")
    kind = section.get("kind")
    if kind not in ("libc", "preload", "git"):
        raise CannotMeasure(f"{where}: kind is {kind}, it must be libc, preload or git.")
    for key in _required(kind):
        if not section.get(key):
            raise CannotMeasure(f"{where} lacks the key {key}, which kind {kind} needs: add it.")
    repository = section.get("repository", "")
    if repository and repository != "self" and "://" not in repository and not Path(repository).is_absolute():
        repository = str((base / repository).resolve())
    try:
        return AllocatorConfig(
            name=name,
            kind=kind,
            summary=section.get("summary", ""),
            paths=tuple(
                str(base / pattern.replace("{machine}", platform.machine())) for pattern in section.get("paths", ())
            ),
            package=section.get("package", ""),
            repository=repository,
            revision=section.get("revision", ""),
            build=tuple(tuple(command) for command in section.get("build", ())),
            artefact=section.get("artefact", ""),
            working_tree=section.get("working_tree", ""),
            environment=_strings(section.get("environment", {})),
            counting_environment=_strings(section.get("counting_environment", {})),
            excluded=_strings(section.get("excluded", {})),
            incomparable=tuple(_incomparable(entry, where) for entry in section.get("incomparable", ())),
            statistics=section.get("statistics", ""),
            provides=section.get("provides", ""),
            adapter=section.get("adapter", "none"),
            capabilities=tuple(section.get("capabilities", ())),
            version_command=tuple(section.get("version_command", ())),
        )
    except (TypeError, AttributeError) as error:
        raise CannotMeasure(f"{where} holds a value of the wrong type ({error}): correct it.") from error


def _required(kind: str) -> tuple[str, ...]:
    return {"libc": (), "preload": ("paths",), "git": ("repository", "build", "artefact")}[kind]


def _incomparable(entry: dict[str, Any], where: str) -> Incomparable:
    unknown = sorted(set(entry) - _INCOMPARABLE_KEYS)
    if unknown:
        raise CannotMeasure(f"{where}, incomparable has the unknown key {unknown[0]}: correct it or remove it.")
    if not entry.get("workload") or len(str(entry.get("reason", "")).split()) < 4:
        raise CannotMeasure(f"{where}, incomparable needs a workload and a reason that a reader can check: add them.")
    return Incomparable(str(entry["workload"]), str(entry["reason"]).rstrip("."), str(entry.get("versions", "*")))


def _strings(table: dict[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in table.items()}
