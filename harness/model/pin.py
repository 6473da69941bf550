"""The pin: the commit that changes are judged against, as text that a review can read.

`results/baselines/pin.toml` names the commit (`pin-NAME.toml` that of another allocator, or the version of its package), why it was pinned, and its figures with the key of the environment they
were measured in; older pins stay below with their reasons. Figures of another environment are never compared: they
answer another question.

The file is written here only (`tidemark pin set`), whole or not at all, and always in the same form, so that a diff
shows what changed and nothing else.
"""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.model.errors import CannotMeasure

FORMAT = 1


@dataclass(frozen=True)
class Figure:
    """One figure of the pinned commit."""

    workload: str
    variant: str
    provider: str
    metric: str
    value: float
    unit: str

    @property
    def name(self) -> str:
        """Return the key in the file: `churn/default callgrind instructions`."""
        return f"{self.workload}/{self.variant} {self.provider} {self.metric}"


@dataclass(frozen=True)
class PastPin:
    """A pin that was replaced."""

    commit: str
    reason: str
    pinned_at: str


@dataclass(frozen=True)
class Pin:
    """The pin in force."""

    commit: str
    reason: str
    pinned_at: str
    """Date, ISO 8601, UTC."""
    environment_key: str
    environment: dict[str, str] = field(default_factory=dict)
    """The environment in words: cpu_model, libc, thp_mode, valgrind."""
    profile: str = "quick"
    figures: tuple[Figure, ...] = ()
    history: tuple[PastPin, ...] = ()
    sha256: str = ""
    """Of the pinned shared object, where a package brought it; empty for what is built from a repository."""

    def figures_for(self, environment_key: str, options: str = "") -> tuple[Figure, ...]:
        """Return the figures if they were measured in this environment; else CannotMeasure says how to get them.

        `options` are those that name the allocator to `pin set`.
        """
        if environment_key != self.environment_key:
            words = ", ".join(f"{name} {value}" for name, value in self.environment.items())
            raise CannotMeasure(
                f"The figures of pin {self.commit[:12]} were measured in another environment ({words}): "
                f"run `./tidemark pin set {self.commit[:12]}{options} --reason 'measured here'` to measure it on this machine."
            )
        return self.figures


def missing_pin_sentence(path: Path, words: str) -> str:
    """Return what to do when nothing is pinned."""
    return (
        f"Nothing is pinned ({path.name} is missing): run `./tidemark pin set {words} --reason '…'` "
        "to pin it and measure it."
    )


def load_pin(path: Path, words: str = "HEAD") -> Pin:
    """Return the pin; CannotMeasure when there is none or the file is wrong. `words` say to `pin set` what to pin."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CannotMeasure(missing_pin_sentence(path, words)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CannotMeasure(f"{path} is not valid TOML ({error}): restore it from git or pin again.") from error
    if table.get("format") != FORMAT:
        raise CannotMeasure(
            f"{path} has format {table.get('format')}, this version reads {FORMAT}: update or pin again."
        )
    try:
        return _parse(table)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CannotMeasure(f"{path} lacks or misspells {error}: restore it from git or pin again.") from error


def save_pin(path: Path, pin: Pin) -> None:
    """Write the pin, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".pin-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as sink:
            sink.write(render(pin))
        os.chmod(temporary, 0o644)
        os.rename(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def succeed(old: Pin | None, new: Pin) -> Pin:
    """Return `new` with `old` at the top of its history."""
    if old is None:
        return new
    past = PastPin(old.commit, old.reason, old.pinned_at)
    return replace(new, history=(past, *old.history))


def render(pin: Pin) -> str:
    """Return the file's text."""
    lines = [
        "# The commit that changes are judged against. Written by `./tidemark pin set REV --reason '…'`.",
        "# Figures hold only in the environment they name; elsewhere the pin is measured again.",
        f"format = {FORMAT}",
        f"commit = {_quote(pin.commit)}",
        *([f"sha256 = {_quote(pin.sha256)}"] if pin.sha256 else []),
        f"reason = {_quote(pin.reason)}",
        f"pinned_at = {_quote(pin.pinned_at)}",
        f"profile = {_quote(pin.profile)}",
        "",
        "[environment]",
        f"key = {_quote(pin.environment_key)}",
    ]
    lines += [f"{name} = {_quote(value)}" for name, value in sorted(pin.environment.items())]
    lines += ["", "[figures]"]
    for figure in sorted(pin.figures, key=lambda f: f.name):
        lines.append(f"{_quote(figure.name)} = {{ value = {_number(figure.value)}, unit = {_quote(figure.unit)} }}")
    for past in pin.history:
        lines += ["", "[[history]]", f"commit = {_quote(past.commit)}", f"reason = {_quote(past.reason)}",
                  f"pinned_at = {_quote(past.pinned_at)}"]  # fmt: skip
    return "\n".join(lines) + "\n"


def _parse(table: dict[str, Any]) -> Pin:
    environment = dict(table["environment"])
    figures = []
    for name, entry in table.get("figures", {}).items():
        place, provider, metric = name.split(" ")
        workload, variant = place.split("/")
        figures.append(Figure(workload, variant, provider, metric, float(entry["value"]), str(entry["unit"])))
    return Pin(
        commit=str(table["commit"]), reason=str(table["reason"]), pinned_at=str(table["pinned_at"]),
        environment_key=str(environment.pop("key")), environment=environment,
        profile=str(table.get("profile", "quick")),
        figures=tuple(figures),
        sha256=str(table.get("sha256", "")),
        history=tuple(PastPin(p["commit"], p["reason"], p["pinned_at"]) for p in table.get("history", ())),
    )  # fmt: skip


def _quote(text: str) -> str:
    """Return a TOML basic string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: float) -> str:
    """Return whole numbers (counts, bytes) exactly, times to the six digits that any clock is good for."""
    return str(int(value)) if value == int(value) else f"{value:.6g}"
