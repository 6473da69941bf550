"""The standard-library load of the `python` workload: answers each line "round <seed> <records>".

Stresses dictionaries and lists that grow, many small objects, text and bytes of all sizes (json, re,
zlib) and sorting. Run with PYTHONMALLOC=malloc, so that every object comes from the allocator under
test instead of Python's own arenas. `app.py` imports `answer` to know the right output.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import sys
import zlib
from collections import Counter, defaultdict, deque

Record = dict[str, object]


def make_records(source: random.Random, count: int) -> list[Record]:
    """Return `count` nested records."""
    return [
        {
            "id": identity,
            "name": "".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randint(3, 14))),
            "scores": [source.randrange(1000) for _ in range(source.randint(1, 12))],
            "tags": {f"t{source.randrange(50)}": source.random() < 0.5 for _ in range(4)},
        }
        for identity in range(count)
    ]


def round_trips(records: list[Record]) -> bytes:
    """Send the records through json and zlib and back; raises ValueError when they come back changed."""
    text = json.dumps(records, sort_keys=True)
    packed = zlib.compress(text.encode(), 1)
    if json.loads(zlib.decompress(packed)) != records:
        raise ValueError("records changed on their way through json and zlib")
    return packed


def group_names(records: list[Record]) -> list[str]:
    """Return `prefix: names` lines, made by regular expressions, dictionaries and sorting."""
    text = " ".join(f"{record['name']}#{record['id']}" for record in records)
    groups: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for match in re.finditer(r"([a-z]+)#(\d+)", text):
        groups[match[1][:2]].append((match[1], int(match[2])))
    return [
        f"{prefix}: {','.join(f'{name}{identity}' for name, identity in sorted(members))}"
        for prefix, members in sorted(groups.items())
    ]


def churn(source: random.Random, count: int) -> int:
    """Fill and drop dictionaries, deques and growing byte arrays; return a sum over what they held."""
    window: deque[dict[int, str]] = deque(maxlen=64)
    total = 0
    for step in range(count):
        table = {source.randrange(10_000): "x" * (step % 97) for _ in range(8)}
        window.append(table)
        total += sum(map(len, window[0].values())) + len(table)
    grown = bytearray()
    for step in range(count):
        grown += step.to_bytes(4, "little")
    return total + zlib.crc32(grown)


def answer(seed: int, count: int) -> str:
    """Return the lines that answer `round <seed> <count>`."""
    source = random.Random(seed)
    records = make_records(source, count)
    packed = round_trips(records)
    lines = group_names(records)
    letters = Counter("".join(str(record["name"]) for record in records))
    out = io.StringIO()
    out.write("\n".join(lines))
    out.write(f"\n{sorted(letters.items())}\n{churn(source, count)}\n")
    out.write(f"{hashlib.sha256(packed).hexdigest()}\n")
    return out.getvalue()


def main() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        _, seed, count = line.split()
        sys.stdout.write(answer(int(seed), int(count)) + "=== done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
