"""Entry point of the application workloads: `driver.py <app> [--rounds N] [--size N]`.

Runs from the app's folder or any other; loads `<app>/app.py` and lets it work in a scratch directory.
The driver never runs under the allocator under test. The harness names that in TIDEMARK_PRELOAD (path
or empty) and TIDEMARK_TUNABLES (`A=b C=d`); TIDEMARK_WRAP (`valgrind …`) is an optional prefix of the
program under test, TIDEMARK_PROGRAM_<NAME> names another program than Debian's.

Exit codes: 0 a valid run, 2 could not measure, 3 the program crashed or its output was wrong.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, ModuleType

from apprun.arm import Arm
from apprun.events import EventStream
from apprun.faults import EXIT_CANNOT_MEASURE, EXIT_WRONG_OUTPUT, CannotMeasure, WrongOutput
from apprun.session import Session

APPS = Path(__file__).resolve().parent


def _app_names() -> list[str]:
    return sorted(path.parent.name for path in APPS.glob("*/app.py"))


def _load(name: str) -> ModuleType:
    """Load an app by path: a folder called `git` or `redis` must not shadow a library of that name.

    Its own folder goes on the search path, for the modules that lie beside it.
    """
    sys.path.insert(0, str(APPS / name))
    spec = importlib.util.spec_from_file_location(f"app_{name}", APPS / name / "app.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="driver.py", description=__doc__.splitlines()[0])
    parser.add_argument("app", choices=_app_names())
    parser.add_argument("--rounds", type=_count, default=3, help="how often the load is run")
    parser.add_argument("--size", type=_count, default=1000, help="work of a round, in the app's unit")
    return parser.parse_args(arguments)


def _leave(number: int, frame: FrameType | None) -> None:
    """Turn a signal into an exception, so that every `with` block stops what it started."""
    raise SystemExit(128 + number)


def run(app: str, rounds: int, size: int) -> None:
    """Run `app` once; raises CannotMeasure or WrongOutput when there is no valid run."""
    try:
        events = EventStream(app, os.environ)
    except ValueError as error:
        raise CannotMeasure(f"{error}.") from error
    arm = Arm.from_environment(os.environ)
    with tempfile.TemporaryDirectory(prefix=f"tidemark-{app}-", ignore_cleanup_errors=True) as scratch:
        session = Session(APPS / app, Path(scratch), os.environ, arm, events, rounds, size)
        _load(app).run(session)


def main(arguments: Sequence[str]) -> int:
    """Run the app named on the command line and return the exit code."""
    options = _parse(arguments)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        run(options.app, options.rounds, options.size)
    except CannotMeasure as fault:
        print(fault, file=sys.stderr)
        return EXIT_CANNOT_MEASURE
    except WrongOutput as fault:
        print(fault, file=sys.stderr)
        return EXIT_WRONG_OUTPUT
    except OSError as error:
        print(f"{options.app} could not be run: {error}.", file=sys.stderr)
        return EXIT_CANNOT_MEASURE
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
