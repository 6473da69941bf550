"""The `gpp` workload: g++ compiles a generated translation unit each round; `size` is its functions.

What is measured is the whole of g++ with the programs it runs (cc1plus, as, collect2, ld), each under
the allocator; peak memory is given for cc1plus, where nearly all of it is. The unit is right when the
linked program prints the number that this file computes.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from apprun.arm import SETPRIV, Program, prove_allocator
from apprun.faults import CannotMeasure, WrongOutput
from apprun.process import Step, Usage, read_usages, run_step, time_prefix
from apprun.session import Session

GPP = Program("g++", "g++", ("--version",))
MODULUS = 1_000_003
RUN_TIMEOUT_S = 30


def make_unit(seed: int, functions: int) -> str:
    """Return a translation unit of `functions` functions over as many template instantiations."""
    parts = [
        "#include <algorithm>\n#include <cstdio>\n#include <string>\n#include <vector>\n",
        "template <int N> struct Tide {",
        "  std::vector<long> levels;",
        "  explicit Tide(long first) { for (int i = 0; i < 8; ++i) levels.push_back((first + i) * N); }",
        f"  long sum() const {{ long s = 0; for (long l : levels) s = (s + l) % {MODULUS}; return s; }}",
        "};",
    ]
    for index in range(functions):
        parts.append(
            f"static long step{index}(long x) {{\n"
            f"  Tide<{seed + index + 1}> tide(x);\n"
            f"  std::string name(x % 7 + 1, 'a' + {index % 26});\n"
            f"  return (tide.sum() * 31 + long(name.size())) % {MODULUS};\n}}"
        )
    calls = "".join(f"  x = step{index}(x);\n" for index in range(functions))
    parts.append(f'int main() {{\n  long x = {seed};\n{calls}  std::printf("%ld\\n", x);\n}}')
    return "\n".join(parts) + "\n"


def expected_number(seed: int, functions: int) -> int:
    """Return what the program of `make_unit(seed, functions)` prints."""
    x = seed
    for index in range(functions):
        factor = seed + index + 1
        total = sum((x + i) * factor for i in range(8)) % MODULUS
        x = (total * 31 + x % 7 + 1) % MODULUS
    return x


def _compiler_proper(gpp: str) -> str:
    """Return the path of the cc1plus that `gpp` runs."""
    asked = subprocess.run([gpp, "-print-prog-name=cc1plus"], capture_output=True, text=True, timeout=30)
    path = asked.stdout.strip()
    if not Path(path).is_file():
        raise CannotMeasure(f"{gpp} has no cc1plus ('{path}'): run 'apt-get install g++'.")
    return path


def _compile(session: Session, gpp: str, unit: str) -> tuple[Step, dict[str, float]]:
    """Compile and link `unit`.cc; return the step and the peaks of the programs that g++ ran."""
    record = session.scratch / "subprograms"
    record.unlink(missing_ok=True)
    wrapper = [*time_prefix(record), SETPRIV, "--pdeathsig", "KILL", *session.arm.wrap]
    if any("," in word for word in wrapper):
        raise CannotMeasure("TIDEMARK_WRAP and the scratch path must hold no comma: g++ -wrapper splits there.")
    argv = [gpp, "-O1", "-wrapper", ",".join(wrapper), f"{unit}.cc", "-o", unit]
    step = run_step(session.arm, argv, session.scratch, wrapped=False)
    peaks: dict[str, float] = {"step_wall_s": round(step.wall_s, 6)}
    launcher = " ".join([SETPRIV, "--pdeathsig", "KILL", *session.arm.wrap, ""])
    for command, usage in read_usages(record):
        name = Path(command.removeprefix(launcher).split(" ", 1)[0]).name
        peaks[f"{name}_peak_rss_bytes"] = usage.peak_rss_bytes
    if "cc1plus_peak_rss_bytes" not in peaks:
        raise CannotMeasure("g++ ran no cc1plus through its -wrapper option; use Debian's g++.")
    return step, peaks


def _printed_by(program: Path) -> bytes:
    try:
        ran = subprocess.run([str(program)], capture_output=True, timeout=RUN_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WrongOutput(f"the program that g++ made does not run: {error}.") from error
    return ran.stdout


def run(session: Session) -> None:
    """Compile one unit a round; each has a seed of its own."""
    gpp = session.program(GPP)
    prove_allocator(_compiler_proper(gpp), ("--version",), session.arm, session.scratch)
    session.start()
    user_s, faults, peak = 0.0, 0, 0
    for seed in range(1, session.rounds + 1):
        unit = f"unit{seed}"
        (session.scratch / f"{unit}.cc").write_text(make_unit(seed, session.size))
        with session.region():
            step, metrics = _compile(session, gpp, unit)
        expected = f"{expected_number(seed, session.size)}\n".encode()
        session.check(f"unit {seed}", _printed_by(session.scratch / unit), expected)
        session.operations += session.size
        session.events.checkpoint(seed - 1, "round", 0, metrics)
        user_s += step.usage.user_s
        faults += step.usage.faults_minor
        peak = max(peak, int(metrics["cc1plus_peak_rss_bytes"]))
    session.close(Usage(user_s, faults, peak))
