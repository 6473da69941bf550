"""Records to rows and back: the only place that knows both.

Who calls it: store.py, queries.py and interchange.py. Pure functions, safe from any thread.

Invariant: `x_of_row(row_of_x(x)) == x` for every record, on both databases; a record that would not
come back equal is refused with a sentence before it is written.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from results.errors import StoreError
from results.records import Attachment, Build, Environment, Measurement, Run, Sample

Row = Mapping[str, Any]

_COMPRESS_FROM_BYTES = 512
"""Smaller attachments gain less than the bookkeeping costs; a callgrind profile shrinks to a tenth."""


def content_id(record: Environment | Build) -> str:
    """Return the identity of a fact that many rows share: the hash of all its fields (64 hexadecimal digits)."""
    text = json.dumps(dataclasses.asdict(record), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def row_of_environment(environment: Environment) -> dict[str, Any]:
    """Return the row of table `environment`."""
    return {"id": content_id(environment), "key": environment.key, **dataclasses.asdict(environment)}


def row_of_build(build: Build) -> dict[str, Any]:
    """Return the row of table `build`."""
    return {"id": content_id(build), "key": build.key, **dataclasses.asdict(build)}


def row_of_run(run: Run) -> dict[str, Any]:
    """Return the row of table `run`. Raises StoreError for a time without a time zone."""
    for moment in (run.started_at, run.finished_at):
        if moment is not None and moment.tzinfo is None:
            raise StoreError(f"Run {run.id} has a time without a time zone; use results.records.utc_now().")
    row = {field: getattr(run, field) for field in _RUN_FIELDS}
    row["environment_id"] = content_id(run.environment)
    return row


def row_of_measurement(measurement: Measurement) -> dict[str, Any]:
    """Return the row of table `measurement`. Raises StoreError for a figure that is not a number."""
    if measurement.started_at.tzinfo is None:
        raise StoreError(f"Measurement {measurement.id} has a time without a time zone; use results.records.utc_now().")
    if not math.isfinite(measurement.duration_s):
        raise StoreError(f"Measurement {measurement.id} has a duration that is not finite; record it as failed.")
    row = {field: getattr(measurement, field) for field in _MEASUREMENT_FIELDS}
    row["build_id"] = content_id(measurement.build)
    return row


def rows_of_samples(measurement: Measurement) -> list[dict[str, Any]]:
    """Return the rows of table `sample`, in order. Raises StoreError for a value that is not finite."""
    rows = []
    for ordinal, sample in enumerate(measurement.samples):
        for figure in (sample.value, sample.time_s):
            if figure is not None and not math.isfinite(figure):
                raise StoreError(
                    f"Sample {sample.metric} of workload {measurement.workload} is {figure}, which is no figure; "
                    "record the measurement as failed with the reason."
                )
        rows.append({"measurement_id": measurement.id, "ordinal": ordinal, **vars(sample)})
    return rows


def rows_of_attachments(measurement: Measurement) -> list[dict[str, Any]]:
    """Return the rows of table `attachment`, compressed where that makes them smaller."""
    rows = []
    for ordinal, attachment in enumerate(measurement.attachments):
        encoding, data = "identity", attachment.data
        if len(data) >= _COMPRESS_FROM_BYTES:
            packed = zlib.compress(data, 6)
            if len(packed) < len(data):
                encoding, data = "zlib", packed
        rows.append(
            {
                "measurement_id": measurement.id,
                "ordinal": ordinal,
                "kind": attachment.kind,
                "encoding": encoding,
                "size_bytes": len(attachment.data),
                "data": data,
            }
        )
    return rows


def environment_of(row: Row, prefix: str = "") -> Environment:
    """Return the environment that a row holds in columns that begin with `prefix`."""
    return Environment(**{field: row[prefix + field] for field in _ENVIRONMENT_FIELDS})


def build_of(row: Row, prefix: str = "") -> Build:
    """Return the build that a row holds in columns that begin with `prefix`."""
    return Build(**{field: row[prefix + field] for field in _BUILD_FIELDS})


def run_of(row: Row, environment: Environment) -> Run:
    """Return the run of a row of table `run`."""
    return Run(environment=environment, **{field: row[field] for field in _RUN_FIELDS})


def measurement_of(
    row: Row, build: Build, samples: Iterable[Sample] = (), attachments: Iterable[Attachment] = ()
) -> Measurement:
    """Return the measurement of a row of table `measurement` and of the rows that hang on it."""
    fields = {field: row[field] for field in _MEASUREMENT_FIELDS}
    return Measurement(build=build, samples=tuple(samples), attachments=tuple(attachments), **fields)


def attachment_of(row: Row) -> Attachment:
    """Return the attachment of a row of table `attachment`, unpacked. Raises StoreError if it is damaged."""
    data = bytes(row["data"])
    if row["encoding"] == "zlib":
        try:
            data = zlib.decompress(data)
        except zlib.error as error:
            raise StoreError(
                f"Attachment {row['kind']} of measurement {row['measurement_id']} is damaged; import an export of it "
                "into a new store."
            ) from error
    return Attachment(kind=row["kind"], data=data)


def _names(record: type, *without: str) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(record) if field.name not in without)


_ENVIRONMENT_FIELDS = _names(Environment)
_BUILD_FIELDS = _names(Build)
_RUN_FIELDS = _names(Run, "environment")
SAMPLE_FIELDS = _names(Sample)
"""Columns of table `sample` in the order of the record's fields."""
_MEASUREMENT_FIELDS = _names(Measurement, "build", "samples", "attachments")
