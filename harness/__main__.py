"""Entry point of `python3 -m harness`.

Owns the one place where a missing Python package becomes a sentence; everything else is `harness.cli`.
"""

from __future__ import annotations

import sys

_DEBIAN_NAMES = {
    "click": "python3-click",
    "hypothesis": "python3-hypothesis",
    "jinja2": "python3-jinja2",
    "junitparser": "python3-junitparser",
    "numpy": "python3-numpy",
    "pandas": "python3-pandas",
    "psycopg2": "python3-psycopg2",
    "rich": "python3-rich",
    "scipy": "python3-scipy",
    "sqlalchemy": "python3-sqlalchemy",
}


def run() -> int:
    """Run the command line and return its exit code; 2 when a package it needs is missing."""
    try:
        from harness.cli import main
    except ModuleNotFoundError as missing:
        top = (missing.name or "").partition(".")[0]
        package = _DEBIAN_NAMES.get(top)
        if package is None:
            raise
        print(
            f"tidemark: {sys.executable} has no package {top}: run `apt-get install {package}` "
            "(or `sh harness/setup/install` for everything), or set PYTHON= to an interpreter that has it.",
            file=sys.stderr,
        )
        return 2
    return main()


if __name__ == "__main__":
    sys.exit(run())
