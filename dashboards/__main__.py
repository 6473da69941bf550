"""`python -m dashboards --out DIR`: builds the site of a store.

Exit codes are those of all of Tidemark: 0 fine, 2 could not.
"""

from __future__ import annotations

import argparse
import sys

from dashboards import DashboardError, build
from results import StoreError, open_store


def main(arguments: list[str] | None = None) -> int:
    """Build the site and print where it is; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m dashboards", description="Build the dashboard of a store.")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to write, replaced as a whole")
    parser.add_argument("--store", metavar="URL", help="the store; TIDEMARK_DB or results/tidemark.sqlite otherwise")
    parser.add_argument("--run", metavar="ID", help="the run to show; the newest bench otherwise")
    parser.add_argument(
        "--history", type=argparse.FileType(encoding="ascii"), metavar="FILE",
        help="commits, the oldest first, one a line, `-` for standard input: `git log --reverse --format=%%H`",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    history = options.history.read().split() if options.history else ()
    try:
        with open_store(options.store) as store:
            folder = build(store, options.out, options.run, history)
    except (StoreError, DashboardError) as error:
        print(f"dashboards: {error}", file=sys.stderr)
        return 2
    print(folder / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
