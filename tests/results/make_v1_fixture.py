"""Writes data/schema_v1.sql: a store of version 1 as the migration code itself makes it, as text.

Run it only to make the file anew from the code of version 1; the file then stays as it is, so that every later
version of the code proves that it can read what version 1 wrote.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

FIXTURE = Path(__file__).resolve().parent / "data" / "schema_v1.sql"

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from results import Attachment, Measurement, Run, engine, insertion, migrations  # noqa: E402
from store_factory import EPOCH, make_build, make_measurement, make_run  # noqa: E402


def contents() -> tuple[Run, list[Measurement]]:
    """Return what the fixture holds, in the order in which a store gives it back."""
    run = make_run(id="1" * 32, finished_at=EPOCH + timedelta(minutes=2), status="finished")
    packed = Attachment("profile", b"fn=(1) malloc\n16 13\n" * 60)
    first = make_measurement(run, id="a" * 32, position=1, attachments=(packed, Attachment("output", b"\x00\xff")))
    second = make_measurement(
        run, id="b" * 32, position=2, samples=0, status="failed", reason="The workload ended by signal 11.",
        build=make_build("jemalloc", "5.3.0-1", version="5.3.0"), arm="reference", operations=None, attachments=(),
    )  # fmt: skip
    return run, [first, second]


def main() -> None:
    """Write the fixture."""
    run, measurements = contents()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "v1.sqlite"
        store = engine.create(engine.resolve_url(str(path)))
        with engine.writing(store, str(path)) as connection:
            migrations.migrate(connection, steps=migrations.STEPS[:1])
            insertion.add_run(connection, run)
            for measurement in measurements:
                insertion.add_measurement(connection, measurement)
        store.dispose()
        with sqlite3.connect(path) as raw:
            FIXTURE.write_text("\n".join(raw.iterdump()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
