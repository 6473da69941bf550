"""The `sqlite` workload: the sqlite3 shell runs a generated script each round; `size` is rows.

The right output of every query is computed here from the same rows with plain dictionaries.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass

from apprun.arm import Program
from apprun.process import Conversation
from apprun.session import Session, converse

SQLITE = Program("sqlite3", "sqlite3", ("-version",))
ROWS_PER_INSERT = 50
WORDS = ("ebb", "flow", "neap", "spring", "slack", "surge", "bore", "rip", "swell", "groundswell")


@dataclass(frozen=True)
class Reading:
    """One row of the table `reading`."""

    identity: int
    station: int
    level: int
    note: str


def make_readings(seed: int, count: int) -> list[Reading]:
    """Return `count` rows; stations repeat about every 20 rows, notes are 1 to 200 characters."""
    source = random.Random(seed)
    return [
        Reading(
            identity,
            source.randrange(max(1, count // 20)),
            source.randrange(-500, 500),
            "-".join(source.choices(WORDS, k=source.randint(1, 18))),
        )
        for identity in range(1, count + 1)
    ]


def script(readings: list[Reading]) -> str:
    """Return the round's SQL: build, index, query, change, query, drop."""
    lines = [
        "BEGIN;",
        "CREATE TABLE reading(id INTEGER PRIMARY KEY, station INT, level INT, note TEXT);",
        "CREATE TABLE station(id INTEGER PRIMARY KEY, name TEXT);",
    ]
    for first in range(0, len(readings), ROWS_PER_INSERT):
        rows = readings[first : first + ROWS_PER_INSERT]
        values = ",".join(f"({r.identity},{r.station},{r.level},'{r.note}')" for r in rows)
        lines.append(f"INSERT INTO reading VALUES {values};")
    lines += [
        "INSERT INTO station SELECT DISTINCT station, 'station ' || station FROM reading;",
        "COMMIT;",
        "CREATE INDEX by_note ON reading(note);",
        "CREATE INDEX by_station ON reading(station, level);",
        "SELECT count(*), sum(level), max(length(note)) FROM reading;",
        "SELECT s.name, count(*), min(r.level), max(r.level) FROM reading r JOIN station s"
        " ON s.id = r.station GROUP BY s.id ORDER BY s.id;",
        "SELECT substr(note, 1, 8) AS head, count(*) FROM reading GROUP BY head ORDER BY head;",
        "SELECT id FROM reading ORDER BY note DESC, id LIMIT 50;",
        "UPDATE reading SET note = note || '/' || upper(note) WHERE level < 0;",
        "DELETE FROM reading WHERE id % 3 = 0;",
        "SELECT count(*), sum(length(note)) FROM reading;",
        "SELECT group_concat(id, ' ') FROM (SELECT id FROM reading WHERE level > 400 ORDER BY id);",
        "DROP TABLE reading;",
        "DROP TABLE station;",
        ".print === done",
    ]
    return "\n".join(lines) + "\n"


def expected_answer(readings: list[Reading]) -> bytes:
    """Return what the shell must print for `script(readings)`."""
    longest = max(len(r.note) for r in readings)
    lines = [f"{len(readings)}|{sum(r.level for r in readings)}|{longest}"]
    levels: defaultdict[int, list[int]] = defaultdict(list)
    for r in readings:
        levels[r.station].append(r.level)
    for station, values in sorted(levels.items()):
        lines.append(f"station {station}|{len(values)}|{min(values)}|{max(values)}")
    heads = Counter(r.note[:8] for r in readings)
    lines += [f"{head}|{count}" for head, count in sorted(heads.items())]
    by_note = sorted(readings, key=lambda r: r.identity)
    by_note.sort(key=lambda r: r.note, reverse=True)
    lines += [str(r.identity) for r in by_note[:50]]
    kept = [r for r in readings if r.identity % 3 != 0]
    lengths = sum(len(r.note) if r.level >= 0 else 2 * len(r.note) + 1 for r in kept)
    lines.append(f"{len(kept)}|{lengths}")
    lines.append(" ".join(str(r.identity) for r in kept if r.level > 400))
    return ("\n".join(lines) + "\n").encode()


def run(session: Session) -> None:
    """Run one script a round in one sqlite3 process with a database in memory."""
    path = session.program(SQLITE)
    requests = []
    for seed in range(1, session.rounds + 1):
        readings = make_readings(seed, session.size)
        source = session.scratch / f"round{seed}.sql"
        source.write_text(script(readings))
        requests.append((f".read {source.name}", expected_answer(readings)))
    with Conversation(session.arm, [path, "-batch", "-bail", ":memory:"], session.scratch) as talk:
        converse(session, talk, requests, live_bytes=0, operations_each=session.size)
