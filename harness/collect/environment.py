"""Reads the machine into a `results.records.Environment`, and names the environment variables a workload gets.

Everything a figure depends on besides the code is fixed or recorded here.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from results.records import Environment

CPU_FEATURES_OFF = "-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,-AVX512DQ,-ERMS,-FSRM"
"""Switched off in glibc's dispatch, so that memcpy and friends are the same code on every x86-64 of the last decade
and the same under valgrind (which has no AVX-512) as without."""

WORKLOAD_ENVIRONMENT_BYTES = 2048
"""The environment is padded to this size: its size moves the stack, and with it counts and cache lines."""


def pinned_tunables() -> str:
    """Return the GLIBC_TUNABLES of every measurement: libc's choice of code does not follow the processor."""
    if platform.machine() != "x86_64":
        return ""
    return f"glibc.cpu.hwcaps={CPU_FEATURES_OFF}:glibc.cpu.x86_non_temporal_threshold=0xc0000"


def workload_environment(preload: Path | None, extra: dict[str, str]) -> dict[str, str]:
    """Return the whole environment of a workload, padded to one size for every arm."""
    variables = {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/games",
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "TZ": "UTC",
        **extra,
    }
    tunables = pinned_tunables()
    if tunables:
        variables["GLIBC_TUNABLES"] = tunables
    if preload is not None:
        variables["LD_PRELOAD"] = str(preload)
    used = sum(len(name) + len(value) + 2 for name, value in variables.items())
    # One variable more is also one pointer more: the padding stands for the preload of the arm that has none.
    variables.setdefault("LD_PRELOAD", "")
    used = used if preload is not None else used + len("LD_PRELOAD") + 2
    variables["TIDEMARK_PADDING"] = "." * max(0, WORKLOAD_ENVIRONMENT_BYTES - used - len("TIDEMARK_PADDING") - 2)
    return dict(sorted(variables.items()))


@functools.lru_cache(maxsize=1)
def read_environment() -> Environment:
    """Return the description of this machine. Read once a process: it does not change under a run."""
    return Environment(
        machine=platform.machine(),
        kernel=platform.release(),
        cpu_model=_cpu_model(),
        cpu_count=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        page_size_bytes=os.sysconf("SC_PAGE_SIZE"),
        thp_mode=thp_mode(),
        governor=governor(),
        libc=_libc(),
        tunables=pinned_tunables(),
        tools={name: version for name, version in ((t, tool_version(t)) for t in TOOLS) if version},
    )


TOOLS = ("perf", "valgrind", "hyperfine", "benchmark", "python", "compiler")


@functools.lru_cache(maxsize=None)
def tool_version(tool: str) -> str:
    """Return the version of a tool, or an empty string when it is not there."""
    if tool == "python":
        return platform.python_version()
    if tool == "benchmark":
        return _dpkg_version("libbenchmark-dev")
    command = {"compiler": "c++"}.get(tool, tool)
    path = shutil.which(command)
    if path is None:
        return ""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=20, env={**os.environ, "LC_ALL": "C"}
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"\d+\.\d+(\.\d+)*", (done.stdout.splitlines() or [""])[0])
    return match.group(0) if done.returncode == 0 and match else ""


def thp_mode() -> str:
    """Return the system's mode of transparent huge pages: `always`, `madvise`, `never` or `unknown`."""
    text = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    match = re.search(r"\[(\w+)\]", text)
    return match.group(1) if match else "unknown"


def governor() -> str:
    """Return the frequency governor of the first processor, or `unknown` (virtual machines have none)."""
    return _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "unknown"


def system_setting(name: str) -> str:
    """Return a setting below /proc/sys, such as `kernel/perf_event_paranoid`; empty when it is not there."""
    return _read(f"/proc/sys/{name}")


def _cpu_model() -> str:
    fields: dict[str, str] = {}
    for line in _read("/proc/cpuinfo").split("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    if "model name" in fields:
        numbers = [fields.get(key, "?") for key in ("cpu family", "model", "stepping")]
        return f"{fields['model name']} ({'/'.join(numbers)})"
    parts = [fields.get(key, "") for key in ("CPU implementer", "CPU part", "CPU revision")]
    return " ".join(part for part in parts if part) or platform.processor() or "unknown"


def _libc() -> str:
    return _dpkg_version("libc6") or os.confstr("CS_GNU_LIBC_VERSION") or "unknown"


def _dpkg_version(package: str) -> str:
    query = shutil.which("dpkg-query")
    if query is None:
        return ""
    done = subprocess.run([query, "-W", "-f=${Version}", package], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def describe_interpreter() -> str:
    """Return which Python runs the suite."""
    return f"{sys.executable} {platform.python_version()}"
