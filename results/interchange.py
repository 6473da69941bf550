"""Exports of a store as JSON lines, and their merge into another store.

Who calls it: store.py. Works inside one transaction of the caller's, so that an export is one moment of
the store and an import is merged whole or not at all.

Format: a header line, then each run followed by its measurements, then an end line that counts them; so
a file that was cut short is noticed. Times are ISO 8601 in UTC, attachments are base64 of the unpacked
bytes. Fields that are empty by default may be missing.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import gzip
import io
import json
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from sqlalchemy.engine import Connection

from results import engine, insertion, queries, schema
from results.errors import StoreError
from results.queries import Filter
from results.records import Attachment, Build, Environment, Measurement, Run, Sample, utc_now

_HEADER = "tidemark-export"


def export(connection: Connection, path: Path) -> int:
    """Write everything to `path` (gzip if it ends in .gz) and return the number of runs and measurements.

    The file appears whole or not at all. Raises StoreError if it can't be written.
    """
    try:
        with _written_whole(path) as file:
            counts = {"run": 0, "measurement": 0}
            for line in _lines(connection):
                if line["type"] in counts:
                    counts[line["type"]] += 1
                file.write(json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n")
            file.write(json.dumps({"type": "end", **counts}) + "\n")
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"The export {path} can't be written ({reason}); name another file.") from error
    return sum(counts.values())


def import_(connection: Connection, path: Path) -> int:
    """Merge the export at `path` by id and return how many of its records were new here.

    Raises StoreError for a file that is no whole export, and for a record that differs from the stored one.
    """
    # Each waits for the other's new builds: two imports that met them in different orders would wait forever.
    engine.take_turns(connection, engine.Turn.IMPORT)
    added = 0
    for number, line in _read_lines(path):
        try:
            if line["type"] == "run":
                added += insertion.merge_run(connection, _run_of(line))
            else:
                added += insertion.add_measurement(connection, _measurement_of(line))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            sentence = f"Line {number} of {path} is not a {line['type']} of an export; export it again."
            raise StoreError(sentence) from error
    return added


def _lines(connection: Connection) -> Iterator[dict[str, Any]]:
    yield {"type": _HEADER, "schema_version": schema.CURRENT_VERSION, "exported_at": utc_now().isoformat()}
    for run in reversed(queries.select_runs(connection, None, None, None)):
        yield {"type": "run", **_plain(dataclasses.asdict(run))}
        for measurement in queries.select_measurements(connection, Filter(run_id=run.id), attachments=True):
            yield {"type": "measurement", **_plain(dataclasses.asdict(measurement))}


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Replace what JSON has no word for, and leave out what is None."""
    plain = {}
    for name, value in fields.items():
        if isinstance(value, datetime):
            value = value.isoformat()
        elif isinstance(value, bytes):
            value = base64.b64encode(value).decode("ascii")
        elif isinstance(value, tuple):
            value = [_plain(each) for each in value]
        if value is not None:
            plain[name] = value
    return plain


def _run_of(line: dict[str, Any]) -> Run:
    fields = {name: value for name, value in line.items() if name != "type"}
    fields["environment"] = Environment(**fields["environment"])
    for name in ("started_at", "finished_at"):
        if name in fields:
            fields[name] = datetime.fromisoformat(fields[name])
    return Run(**fields)


def _measurement_of(line: dict[str, Any]) -> Measurement:
    fields = {name: value for name, value in line.items() if name != "type"}
    fields["build"] = Build(**fields["build"])
    fields["started_at"] = datetime.fromisoformat(fields["started_at"])
    fields["samples"] = tuple(Sample(**each) for each in fields.get("samples", ()))
    fields["attachments"] = tuple(
        Attachment(each["kind"], base64.b64decode(each["data"], validate=True))
        for each in fields.get("attachments", ())
    )
    return Measurement(**fields)


@contextlib.contextmanager
def _written_whole(path: Path) -> Iterator[io.TextIOBase]:
    """A text file that takes its name only when it is complete."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "wb") as raw:
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=raw) if path.suffix == ".gz" else raw
            with io.TextIOWrapper(cast(BinaryIO, packed), encoding="utf-8") as text:
                yield text
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, record) for each run and measurement; checks the header and the count at the end."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            yield from _checked(_parsed(file, path), path)
    except FileNotFoundError as error:
        raise StoreError(f"There is no file {path}; name an export.") from error
    except (gzip.BadGzipFile, zlib.error, EOFError, UnicodeDecodeError, binascii.Error) as error:
        raise StoreError(f"The export {path} is damaged ({error}); export it again.") from error
    except OSError as error:
        raise StoreError(f"The export {path} can't be read ({error.strerror or error}); check it.") from error


def _parsed(file: Iterable[str], path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, text in enumerate(file, start=1):
        try:
            line = json.loads(text)
        except json.JSONDecodeError as error:
            raise StoreError(f"Line {number} of {path} is not JSON; export it again.") from error
        if not isinstance(line, dict) or not isinstance(line.get("type"), str):
            raise StoreError(f"Line {number} of {path} is no record of an export; export it again.")
        yield number, line


def _checked(lines: Iterator[tuple[int, dict[str, Any]]], path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    header = next(lines, (0, {"type": ""}))[1]
    if header["type"] != _HEADER:
        raise StoreError(f"{path} is not an export of Tidemark; make one with `./tidemark export`.")
    version = header.get("schema_version")
    if not isinstance(version, int) or version > schema.CURRENT_VERSION:
        raise StoreError(
            f"{path} was written with schema version {version} and this Tidemark knows versions up to "
            f"{schema.CURRENT_VERSION}; update this checkout."
        )
    counts = {"run": 0, "measurement": 0}
    end: dict[str, Any] | None = None
    # Read to the end of the file, behind the end line too: only there gzip finds out that bytes are missing.
    for number, line in lines:
        if end is not None or line["type"] not in (*counts, "end"):
            raise StoreError(f"Line {number} of {path} does not belong there ({line['type']!r}); export it again.")
        if line["type"] == "end":
            end = line
        else:
            counts[line["type"]] += 1
            yield number, line
    if end is None:
        raise StoreError(f"The export {path} was cut short; export it again.")
    if {name: end.get(name) for name in counts} != counts:
        raise StoreError(f"{path} does not hold as many records as it says; export it again.")
