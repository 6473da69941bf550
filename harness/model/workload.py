"""Workloads as their manifests describe them (`docs/workload-protocol.md`).

Loading checks every field, so that a typing error is one sentence here and not a strange figure later.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Literal

from harness.model.errors import CannotMeasure
from harness.model.layout import Layout

Profile = Literal["quick", "full"]
Region = Literal["marked", "process"]
SETS = ("fixed", "speed", "memory", "gated")
"""Tags that a command may ask for as a set."""

_KINDS = ("binary", "app", "gbench")
_KEYS = {
    "name", "summary", "stresses", "kind", "binary", "command", "threads", "tags", "metrics", "timeout_s",
    "memory", "memory_runs", "variant", "region", "requires",
}  # fmt: skip
_VARIANT_KEYS = {"name", "summary", "quick", "full", "counted", "in_quick"}
_MEMORY_KEYS = {"series_label", "warmup_rounds"}


@dataclass(frozen=True)
class MemorySeries:
    """Which checkpoints of a workload form the judged series."""

    series_label: str
    warmup_rounds: int
    """Rounds at the begin that the judgement leaves out."""


@dataclass(frozen=True)
class Variant:
    """One set of arguments of a workload."""

    name: str
    quick: tuple[str, ...]
    full: tuple[str, ...]
    counted: tuple[str, ...]
    """Arguments under callgrind, which is 20 to 50 times slower."""
    in_quick: bool = True
    """Whether a bench of the fixed set and every quick bench measure it; by default each workload's first variant."""

    def arguments(self, profile: Profile, counting: bool) -> tuple[str, ...]:
        """Return the arguments for a profile; `counting` for providers that simulate the processor."""
        if counting:
            return self.counted
        return self.quick if profile == "quick" else self.full


@dataclass(frozen=True)
class Workload:
    """A program that stresses one part of an allocator."""

    name: str
    summary: str
    stresses: str
    kind: Literal["binary", "app", "gbench"]
    folder: Path
    command: tuple[str, ...]
    """For an app: what to run, from `folder`. Empty for a binary."""
    binary: str
    threads: int
    tags: frozenset[str]
    metrics: tuple[str, ...]
    timeout_s: float
    region: Region
    """`marked`: the workload brackets what is counted. `process`: all of it is."""
    requires: tuple[str, ...]
    """Programs that must be on PATH."""
    memory: MemorySeries | None
    memory_runs: int
    """Executions whose memory is looked at, at least: more than one where it differs with the places the OS chooses."""
    variants: tuple[Variant, ...]

    def variant(self, name: str) -> Variant:
        """Return the variant called `name`; CannotMeasure when there is none."""
        for candidate in self.variants:
            if candidate.name == name:
                return candidate
        known = ", ".join(v.name for v in self.variants)
        raise CannotMeasure(f"Workload {self.name} has no variant {name}: choose one of {known}.")

    def label(self, variant: Variant | str) -> str:
        """Return the name for tables: the first variant is shown as the bare workload name."""
        name = variant if isinstance(variant, str) else variant.name
        return self.name if name == self.variants[0].name else f"{self.name}:{name}"

    def program(self, layout: Layout) -> tuple[tuple[str, ...], Path]:
        """Return the command without a variant's arguments, and the folder to run it from.

        CannotMeasure when the binary has not been built.
        """
        if self.kind == "app":
            return self.command, self.folder
        path = layout.workload_binaries / self.binary
        if not path.is_file():
            raise CannotMeasure(
                f"The binary of workload {self.name} is missing ({path.relative_to(layout.root)}): run `make` first."
            )
        return (str(path),), layout.root


def load_workloads(layout: Layout) -> dict[str, Workload]:
    """Return every workload of the checkout by name, sorted; CannotMeasure names the manifest that is wrong."""
    manifests = sorted({*layout.workloads.glob("*/workload.toml"), *layout.workloads.glob("apps/*/workload.toml")})
    found: dict[str, Workload] = {}
    for path in manifests:
        workload = _load(path, layout)
        if workload.name in found:
            raise CannotMeasure(f"Two workloads are called {workload.name}: rename the one in {path.parent}.")
        found[workload.name] = workload
    return dict(sorted(found.items()))


def select_workloads(known: dict[str, Workload], names: Iterable[str]) -> list[tuple[Workload, Variant]]:
    """Return the (workload, variant) pairs that `names` ask for: `churn` means all variants, `churn:small` one.

    CannotMeasure when a name is unknown.
    """
    chosen: list[tuple[Workload, Variant]] = []
    for name in names:
        base, _, variant = name.partition(":")
        if base not in known:
            raise CannotMeasure(
                f"There is no workload {base}: `./tidemark list workloads` shows the {len(known)} there are."
            )
        workload = known[base]
        chosen += [(workload, workload.variant(variant))] if variant else [(workload, v) for v in workload.variants]
    return list(dict.fromkeys(chosen))


def select_set(known: dict[str, Workload], name: str, quick: bool = False) -> list[tuple[Workload, Variant]]:
    """Return the variants of the workloads tagged `name`; CannotMeasure when there are none.

    `quick` leaves out those that would make a run too long.
    """
    chosen = [(w, v) for w in known.values() if name in w.tags for v in w.variants if v.in_quick or not quick]
    if not chosen:
        raise CannotMeasure(f"No workload is tagged {name}: tag one in its workload.toml or ask for another set.")
    return chosen


class _Fields:
    """Typed access to a parsed manifest, with errors that name the file and the key."""

    def __init__(self, table: dict[str, Any], where: str, allowed: set[str]) -> None:
        self.table = table
        self.where = where
        unknown = sorted(set(table) - allowed)
        if unknown:
            raise CannotMeasure(f"{where} has the unknown key {unknown[0]}: correct it or remove it.")

    def get(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """Return a field of the wanted type; a field without default must be there."""
        if key not in self.table:
            if default is None:
                raise CannotMeasure(f"{self.where} lacks the key {key}: add it.")
            return default
        value = self.table[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise CannotMeasure(f"{self.where}: the key {key} has the wrong type ({type(value).__name__}).")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Return a field that is true or false."""
        value = self.table.get(key, default)
        if not isinstance(value, bool):
            raise CannotMeasure(f"{self.where}: the key {key} must be true or false.")
        return value

    def strings(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Return a list of strings."""
        values = self.get(key, (list, tuple), default)
        if not all(isinstance(value, str) for value in values):
            raise CannotMeasure(f"{self.where}: the key {key} must hold strings only.")
        return tuple(values)


def _load(path: Path, layout: Layout) -> Workload:
    where = str(path.relative_to(layout.root))
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise CannotMeasure(f"{where} is not valid TOML ({error}): correct it.") from error
    fields = _Fields(table, where, _KEYS)
    name = fields.get("name", str)
    if name != path.parent.name:
        raise CannotMeasure(f"{where} calls itself {name}: the name must be that of its folder, {path.parent.name}.")
    kind = fields.get("kind", str, "binary")
    if kind not in _KINDS:
        raise CannotMeasure(f"{where}: kind is {kind}, it must be one of {', '.join(_KINDS)}.")
    region = fields.get("region", str, "process" if kind == "app" else "marked")
    if region not in ("marked", "process"):
        raise CannotMeasure(f"{where}: region is {region}, it must be marked or process.")
    command = fields.strings("command") if kind == "app" else ()
    if kind == "app" and not command:
        raise CannotMeasure(f"{where}: an app needs a command with at least one word.")
    return Workload(
        name=name,
        summary=fields.get("summary", str),
        stresses=fields.get("stresses", str, " "),
        kind=kind,
        folder=path.parent,
        command=command,
        binary="" if kind == "app" else fields.get("binary", str, name),
        threads=fields.get("threads", int, 1),
        tags=frozenset(fields.strings("tags", ())),
        metrics=fields.strings("metrics", ("instructions", "rss_bytes", "wall_s")),
        timeout_s=float(fields.get("timeout_s", (int, float), 60)),
        region=region,
        requires=fields.strings("requires", ()),
        memory_runs=_memory_runs(fields, where),
        memory=_memory(fields.get("memory", dict, {}), where),
        variants=_variants(fields.get("variant", list), where),
    )


def _memory_runs(fields: _Fields, where: str) -> int:
    runs = fields.get("memory_runs", int, 1)
    if runs < 1:
        raise CannotMeasure(f"{where}: memory_runs is {runs}, it must be at least 1.")
    return int(runs)


def _memory(table: dict[str, Any], where: str) -> MemorySeries | None:
    if not table:
        return None
    fields = _Fields(table, f"{where}, [memory]", _MEMORY_KEYS)
    return MemorySeries(fields.get("series_label", str), fields.get("warmup_rounds", int, 3))


def _variants(tables: list[dict[str, Any]], where: str) -> tuple[Variant, ...]:
    variants: list[Variant] = []
    for table in tables:
        fields = _Fields(table, f"{where}, [[variant]]", _VARIANT_KEYS)
        quick = fields.strings("quick")
        variants.append(
            Variant(
                name=fields.get("name", str),
                quick=quick,
                full=fields.strings("full", quick),
                counted=fields.strings("counted", quick),
                in_quick=fields.flag("in_quick", default=not variants),
            )
        )
    names = [variant.name for variant in variants]
    if not names or len(set(names)) != len(names):
        raise CannotMeasure(f"{where} needs at least one [[variant]], each with a name of its own.")
    return tuple(variants)
